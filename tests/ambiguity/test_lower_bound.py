"""The cheap bounds that rows are ranked by, against exact values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    MaximumMeanDiscrepancy,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.codec import encode
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective


def rank_correlation(first: Tensor, second: Tensor) -> float:
    ranks = torch.stack([x.argsort().argsort().double() for x in (first, second)])
    return float(torch.corrcoef(ranks)[0, 1])


def distances(first: Tensor, second: Tensor) -> Tensor:
    return torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")


def smooth(lengthscale: float, points: Tensor, radius: float) -> AmbiguitySet:
    squared = distances(points, points).square()
    return MaximumMeanDiscrepancy(radius, (-0.5 * squared / lengthscale**2).exp())


def rough(lengthscale: float, points: Tensor, radius: float) -> AmbiguitySet:
    matrix = (-distances(points, points) / lengthscale).exp()
    return MaximumMeanDiscrepancy(radius, matrix)


def transport(points: Tensor, radius: float) -> AmbiguitySet:
    return Wasserstein(radius, distances(points, points))


SETS = {
    "smooth kernel": lambda points, radius: smooth(0.3, points, radius),
    "rough kernel": lambda points, radius: rough(0.3, points, radius),
    "transport": transport,
}
each_set = pytest.mark.parametrize("make", SETS.values(), ids=SETS)


def problems(n: int = 40, d: int = 1, *, zeros: bool) -> tuple[Tensor, ...]:
    """Points, scores that are smooth in them, and weights."""
    generator = torch.Generator().manual_seed(n + d)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    points = torch.rand(n, d, generator=generator, dtype=torch.double)
    waves = torch.sin(points @ (4 * normal(200, d)).mT + 3 * normal(200))  # n x 200
    weights = torch.rand(n, generator=generator, dtype=torch.double)
    if zeros:
        weights[n // 2 :] = 0.0
    values = 5.0 + normal(200, 1) + waves.mT * normal(200, 1).exp()
    return points, values, weights / weights.sum()


@each_set
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.05, 0.3, 0.7, 5.0])
def test_bounds_from_below(make, d, zeros, radius):
    points, values, weights = problems(d=d, zeros=zeros)
    ball = make(points, radius)
    bound, exact = ball.lower_bound(values, weights), ball.value(values, weights)
    assert (bound <= exact + 1e-9).all()
    assert (bound >= values.amin(-1) - 1e-9).all()
    assert not bound.requires_grad


@each_set
@pytest.mark.parametrize("radius", [0.03, 0.1, 0.4])
def test_puts_rows_in_nearly_the_right_order(make, radius):
    points, values, weights = problems(zeros=True)
    ball = make(points, radius)
    bound, exact = ball.lower_bound(values, weights), ball.value(values, weights)
    assert rank_correlation(bound, exact) > 0.97
    assert exact.argmax() in bound.topk(5).indices


@each_set
def test_is_exact_where_all_mass_reaches_the_lowest_score(make):
    points, values, weights = problems(zeros=False)
    torch.testing.assert_close(
        make(points, 5.0).lower_bound(values, weights), values.amin(-1)
    )


def test_is_the_closed_form_of_a_small_kernel_ball():
    """With a regular kernel and no weight near zero ``q >= 0`` does not matter."""
    _points, values, weights = problems(n=8, zeros=False)
    matrix = torch.eye(8).double() + 0.1
    ball = MaximumMeanDiscrepancy(1e-3, matrix)
    centred = values - values.mean(-1, keepdim=True)  # sums to zero: K is the identity
    expected = values @ weights - 1e-3 * centred.norm(dim=-1)
    torch.testing.assert_close(ball.lower_bound(values, weights), expected)
    torch.testing.assert_close(ball.value(values, weights), expected)


def test_transport_to_candidates_at_a_cost_of_staying():
    """More candidates than atoms, none of them at an atom: staying costs something."""
    points, values, _ = problems(zeros=False)
    atoms = points[:7] + 0.01
    weights = torch.full((7,), 1 / 7).double()
    ball = Wasserstein(0.2, distances(atoms, points))
    bound, exact = ball.lower_bound(values, weights), ball.value(values, weights)
    assert (bound <= exact + 1e-9).all()
    assert rank_correlation(bound, exact) > 0.97


def test_each_row_may_have_weights_of_its_own():
    points, values, _ = problems(zeros=False)
    weights = torch.rand(200, 40, generator=torch.Generator().manual_seed(0)).double()
    weights = weights * (weights > 0.5)
    weights = weights / weights.sum(-1, keepdim=True)
    for make in SETS.values():
        ball = make(points, 0.1)
        found = ball.lower_bound(values, weights)
        for row in (0, 57, 199):
            alone = ball.lower_bound(values[row], weights[row])
            torch.testing.assert_close(alone, found[row])


def test_float32_scores_have_float32_bounds():
    points, values, weights = problems(zeros=True)
    for make in SETS.values():
        ball = make(points, 0.1)
        found = ball.lower_bound(values.float(), weights.float())
        assert found.dtype == torch.float
        torch.testing.assert_close(
            found.double(), ball.lower_bound(values, weights), rtol=1e-4, atol=1e-4
        )


def test_sets_without_a_cheaper_bound_give_the_value():
    _, values, weights = problems(zeros=True)
    ball = TotalVariation(0.3)
    found = ball.lower_bound(values, weights)
    torch.testing.assert_close(found, ball.worst_case(values, weights).value)


def test_the_bound_of_an_objective():
    points, values, weights = problems(zeros=True)
    ball = smooth(0.3, points, 0.1)
    half = UncertaintyObjective(ball, value_weight=0.5)
    torch.testing.assert_close(
        half.lower_bound(values, weights), 0.5 * ball.lower_bound(values, weights)
    )
    # Of a sensitivity there is none, nor of a fragility.
    for objective in (
        UncertaintyObjective.gen(ball),
        RobustSatisficing(ball, target=4.0),
    ):
        torch.testing.assert_close(
            objective.lower_bound(values[:5], weights), objective(values[:5], weights)
        )


@pytest.mark.parametrize("make", [SETS["smooth kernel"], SETS["rough kernel"]])
def test_values_do_not_depend_on_what_was_asked_before(make):
    points, values, weights = problems(zeros=True)
    ball = make(points, 0.15)
    values = values[:20]
    saved = encode(ball)
    for step in range(4):  # an ascent, that stops for some and jumps for others
        values = values[: 20 - 4 * step] + 0.1 * values.roll(step, -1)[: 20 - 4 * step]
        leaf = values.clone().requires_grad_()
        found = ball.value(leaf, weights)
        exact = ball.worst_case(values, weights)
        torch.testing.assert_close(found.detach(), exact.value, rtol=0, atol=1e-9)
        (gradient,) = torch.autograd.grad(found.sum(), leaf)
        torch.testing.assert_close(gradient, exact.weights, rtol=0, atol=1e-5)
    assert encode(ball) == saved  # nor does a journal
