"""A few contexts on which rows are ranked: where they lie and what they keep."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import NoAmbiguity, TotalVariation, Wasserstein
from botorch_drbo.ambiguity._transport import farthest_points
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import SearchSpace
from botorch_drbo.search.maximise import Effort, maximise
from tests.models import make_model


def on_list(seen: int, others: int, d: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Contexts, those with weight first, their weights, and the rows of the cost."""
    generator = torch.Generator().manual_seed(seen + d)
    points = torch.rand(seen + others, d, generator=generator, dtype=torch.double)
    weights = torch.rand(seen, generator=generator, dtype=torch.double)
    weights = torch.cat([weights / weights.sum(), torch.zeros(others).double()])
    mode = "donot_use_mm_for_euclid_dist"
    return points, weights, torch.cdist(points[:seen], points, compute_mode=mode)


def test_each_point_is_the_farthest_from_those_before():
    points, _, cost = on_list(60, 0, d=2)
    chosen = farthest_points(lambda i: cost[i], torch.full((60,), torch.inf), 12)
    chosen = chosen.tolist()
    assert len(set(chosen)) == 12
    for k in range(1, 12):
        away = cost[chosen[:k]].amin(0)
        assert away[chosen[k]] == away.max()
    points[:] = points[0]
    at_once = farthest_points(lambda i: 0 * cost[i], torch.full((60,), torch.inf), 12)
    assert at_once.tolist() == [0]


@pytest.mark.parametrize("seen, others", [(200, 0), (200, 128), (100, 40), (20, 400)])
@pytest.mark.parametrize("d", [1, 2])
def test_the_weights_move_by_less_than_the_radius(seen, others, d):
    _, weights, cost = on_list(seen, others, d)
    few = Wasserstein(0.06, cost).few(weights)
    assert few is not None
    assert len(few.positions.unique()) == len(few.positions) < len(weights) / 2 + 24
    moved = torch.zeros_like(weights)
    moved[few.positions[: len(few.weights)]] = few.weights
    found = Wasserstein(0.06, cost).distance(weights, moved).item()
    assert found < 0.06
    assert few.weights.sum().item() == pytest.approx(1.0)
    ball = few.ambiguity_set
    assert isinstance(ball, Wasserstein) and ball.radius == 0.06
    atoms = int((few.weights > 0).sum())
    torch.testing.assert_close(ball.cost, cost[few.positions[:atoms]][:, few.positions])


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_of_a_long_list_all_with_mass_are_taken_where_less_would_move_too_far(share):
    """Sixty outcomes on a long list, and a radius that few contexts would exceed."""
    _, weights, cost = on_list(60, 400, 2)
    few = Wasserstein(1e-3, cost).few(weights, share)
    assert few is not None
    assert int((few.weights > 0).sum()) == 60
    assert len(few.positions) == 60 + int(24 * share)


@given(
    seen=st.integers(97, 400),
    others=st.integers(0, 300),
    radius=st.floats(1e-4, 0.5),
    clusters=st.integers(1, 200),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_on_a_line_they_never_move_by_the_radius(
    seen: int, others: int, radius: float, clusters: int, seed: int
) -> None:
    """The distance on a line is the area between the distribution functions."""
    generator = torch.Generator().manual_seed(seed)
    where = torch.rand(clusters, generator=generator, dtype=torch.double)
    places = torch.randint(clusters, (seen + others,), generator=generator)
    points = where[places] + 1e-3 * torch.rand(seen + others, generator=generator)
    weights = torch.rand(seen + others, generator=generator, dtype=torch.double)
    weights[seen:] = 0.0
    weights = weights / weights.sum()
    cost = (points[:seen, None] - points).abs()
    few = Wasserstein(radius, cost).few(weights)
    if few is None:
        return
    moved = torch.zeros_like(weights).index_add(0, few.positions, few.weights)
    order = points.argsort()
    area = (weights - moved)[order].cumsum(0)[:-1].abs() @ points[order].diff()
    assert area < radius


def test_there_are_none_on_a_short_list_or_where_none_stand_for_all():
    _, weights, cost = on_list(40, 128)
    assert Wasserstein(0.1, cost).few(weights) is None
    _, weights, cost = on_list(200, 0, d=2)
    assert Wasserstein(0.0, cost).few(weights) is None
    assert Wasserstein(1e-4, cost).few(weights) is None
    assert TotalVariation(0.2).few(weights) is None
    ball = Wasserstein(0.1, cost)
    assert UncertaintyObjective.gen(ball).few(weights) is None
    assert UncertaintyObjective(ball).few(weights) is not None


@pytest.mark.parametrize("seen, others", [(300, 128), (30, 600)])
def test_rows_have_nearly_the_same_order(seen, others):
    points, weights, cost = on_list(seen, others)
    generator = torch.Generator().manual_seed(0)
    waves = 3.0 * torch.randn(500, 2, generator=generator, dtype=torch.double)
    values = waves[:, 1:] + torch.sin(points.T * waves[:, :1] + waves[:, 1:])
    ball = Wasserstein(0.05, cost)
    few = ball.few(weights)
    assert few is not None
    ranked = few.ambiguity_set.lower_bound(values[:, few.positions], few.weights)
    exact = ball.value(values, weights)
    ranks = torch.stack([v.argsort().argsort().double() for v in (ranked, exact)])
    assert torch.corrcoef(ranks)[0, 1] > 0.99
    assert exact.argmax() in ranked.topk(5).indices


def test_an_acquisition_function_ranks_on_them_and_follows_its_model():
    """Within a memory budget of 64 MB."""
    points, weights, cost = on_list(300, 128)
    contexts, ball = ContextSet(points, weights), Wasserstein(0.05, cost)
    model = make_model(d=2, t=20)
    acqf = DistributionallyRobustUCB(
        model, 2.25, contexts, UncertaintyObjective(ball), memory_budget=2**26
    )
    X = torch.rand(200, 1, 1, dtype=torch.double)
    ranked, view, more = acqf.ranking(X), acqf._few(0.5), acqf._few(1.0)
    assert view is not None and len(view[2]) == 36
    assert more is not None and len(more[2]) == 72
    values = acqf(X).detach()
    ranks = torch.stack([v.argsort().argsort().double() for v in (ranked, values)])
    assert torch.corrcoef(ranks)[0, 1] > 0.97
    with torch.no_grad():
        for parameter in model.covar_module.parameters():
            parameter.add_(0.5)
    assert not torch.equal(acqf.ranking(X), ranked)
    assert acqf._few(0.5) is not view


def test_an_expectation_is_that_of_contexts_drawn_systematically() -> None:
    """The share of each run of contexts from the first on is kept."""
    generator = torch.Generator().manual_seed(3)
    weights = torch.rand(400, generator=generator).double()
    weights[::3] = 0.0
    weights = weights / weights.sum()
    assert NoAmbiguity().few(weights[:190] / weights[:190].sum()) is None
    few = NoAmbiguity().few(weights)
    assert few is not None and (weights[few.positions] > 0).all()
    assert few.weights.sum().item() == pytest.approx(1.0)
    moved = torch.zeros_like(weights).index_add(0, few.positions, few.weights)
    gap = (moved.cumsum(0) - weights.cumsum(0)).abs().max().item()
    assert gap <= 0.5 / len(few.weights) + 1e-12


@pytest.mark.parametrize("objective", ["expectation", "ball"])
def test_ascents_on_few_contexts_end_where_ascents_on_all_do(objective: str) -> None:
    """Within a memory budget of 64 MB; a short list has no such function."""
    points, weights, cost = on_list(300, 128)
    ball = NoAmbiguity() if objective == "expectation" else Wasserstein(0.05, cost)
    box = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    space = SearchSpace(box, box)

    def acqf(num: int) -> DistributionallyRobustUCB:
        known = ContextSet(points[:num], weights[:num])
        found = ball if num > 300 else NoAmbiguity()
        return DistributionallyRobustUCB(
            make_model(d=2, t=20),
            2.25,
            known,
            UncertaintyObjective(found),
            memory_budget=2**26,
        )

    assert acqf(150).on_few() is None
    full = acqf(428)
    few = full.on_few()
    assert few is not None
    X = torch.rand(50, 1, 1, dtype=torch.double)
    with torch.no_grad():
        near, exact = few(X), full(X)
    assert not torch.equal(near, exact)
    chosen = ball.few(weights)
    assert chosen is not None
    alone = DistributionallyRobustUCB(
        make_model(d=2, t=20),
        2.25,
        ContextSet(points[chosen.positions], chosen.weights),
        UncertaintyObjective(chosen.ambiguity_set),
    )
    torch.testing.assert_close(near, alone(X).detach())
    assert (near - exact).abs().max() < 0.1 * (exact.max() - exact.min())
    values = maximise(full, space, Effort(4, 64, 50, 0))[1]
    with patch.object(DistributionallyRobustUCB, "on_few", lambda self: None):
        on_all = maximise(full, space, Effort(4, 64, 50, 0))[1]
    assert values.max().item() == pytest.approx(on_all.max().item(), abs=1e-6)
