"""A plate: rows of one batch, taken from a list that is ranked once."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.view import View
from botorch_drbo.problem import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.search.candidates import SEPARATION, Plate, gaps
from tests.models import UNIT

SPACE = SearchSpace(UNIT.repeat(1, 2), UNIT)


class Repelled(AcquisitionFunction):
    """Hills, lower near what is pending: further pending rows never raise it."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        self.pending, self.rows = UNIT.repeat(1, 2)[:0], 0

    def forward(self, X: Tensor) -> Tensor:
        x = X.squeeze(-2)
        self.rows += len(x)
        near = torch.exp(-20.0 * torch.cdist(x, self.pending).square())
        return (7.0 * x).sin().sum(-1) - near.sum(-1)


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_a_search_of_the_whole_list(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(600, 2, generator=generator, dtype=torch.double)
    acqf, none = Repelled(), rows[:0]
    plate = Plate(acqf, rows[:5], rows[5:])
    acqf.rows = 0
    for _ in range(20):
        everything = acqf(rows.unsqueeze(-2))
        acqf.rows -= len(rows)
        apart = gaps(SPACE, rows, acqf.pending, none) > SEPARATION
        best = rows[everything.masked_fill(~apart, -torch.inf).argmax()]
        found = plate.best(acqf, acqf.pending, none, SPACE)
        assert found is not None
        assert found[0].equal(best)
        acqf.pending = torch.cat([acqf.pending, found])
    assert acqf.rows < 20 * 600 / 3  # and most of the list was not looked at again


def test_a_list_that_is_taken_has_no_row() -> None:
    rows = torch.full((1, 2), 0.5, dtype=torch.double)
    plate = Plate(Repelled(), rows, rows)
    assert plate.best(Repelled(), rows, rows[:0], SPACE) is None


@pytest.mark.parametrize("method", ["exact", "product", "generic"])
def test_hallucinated_moments_are_those_of_the_conditioned_model(method: str) -> None:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(12, 2, generator=generator, dtype=torch.double)
    P = torch.rand(3, 2, generator=generator, dtype=torch.double)
    model = SingleTaskGP(
        Z,
        (3.0 * Z).sin().sum(-1, keepdim=True),
        torch.full((12, 1), 0.01, dtype=torch.double),
        input_transform=Normalize(2, bounds=UNIT.repeat(1, 2)),
        outcome_transform=None,
    ).eval()
    observed = marginal_posterior(model, [1], method=method)  # pyright: ignore[reportArgumentType]
    means = model.posterior(P).mean.detach()
    oracle = model.condition_on_observations(
        model.transform_inputs(P), means, noise=torch.full_like(means, 0.01)
    )
    X, contexts = Z[:4, :1], Z[:5, 1:]
    for pending in (P, P[:1]):
        conditioned = observed.hallucinating(pending)
        mean, variance = conditioned(X, contexts)
        assert mean.allclose(observed(X, contexts)[0])
        if pending is P:
            joint = observed.join(X, contexts).flatten(0, 1)
            expected = oracle.posterior(joint)
            assert mean.flatten().allclose(expected.mean.flatten(), atol=1e-6)
            found = variance.flatten()
            assert found.allclose(expected.variance.flatten(), atol=1e-6)
    # and what was observed is as before
    again = marginal_posterior(model, [1], method=method)  # pyright: ignore[reportArgumentType]
    assert observed(X, contexts)[1].equal(again(X, contexts)[1])


@pytest.mark.parametrize("name", ["wdrbo_exact", "erbo", "wdrbo"])
def test_rows_of_a_plate_stay_apart(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(8, 1, generator=generator, dtype=torch.double)
    C = torch.rand(8, 1, generator=generator, dtype=torch.double)
    history = History(X=X, C=C, Y=(5.0 * X + C).sin(), contexts=C)
    space = SearchSpace(UNIT, UNIT)
    recipe = make_recipe(name, surrogate="botorch", raw_samples=64, num_restarts=2)
    rows = recipe.propose(history, space, q=24, seed=0)
    distance = torch.cdist(rows, rows, p=torch.inf)
    distance.fill_diagonal_(1.0)
    assert distance.min() > SEPARATION - 1e-9


@pytest.mark.parametrize("method", ["exact", "product"])
def test_pending_inputs_are_looked_at_once_whatever_their_noise(
    method: Literal["exact", "product"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moments as of the conditioned model, with one noise after the other."""
    generator = torch.Generator().manual_seed(4)
    Z = torch.rand(12, 2, generator=generator, dtype=torch.double)
    noise = torch.full((12, 1), 0.04, dtype=torch.double)
    model = SingleTaskGP(
        Z,
        (3.0 * Z).sin().sum(-1, keepdim=True),
        noise,
        input_transform=Normalize(2, bounds=UNIT.repeat(1, 2)),
        outcome_transform=None,
    ).eval()
    asked: list[int] = []
    covariance = ExactPosterior.covariance

    def counted(self: ExactPosterior, left: Tensor, right: Tensor) -> Tensor:
        asked.append(len(left))
        return covariance(self, left, right)

    monkeypatch.setattr(ExactPosterior, "covariance", counted)
    for least in ("_MIN_CONTEXTS", "_MIN_PAIRS"):  # so that both sides are looked at
        monkeypatch.setattr(f"botorch_drbo.posterior.product.{least}", 0)
    observed = marginal_posterior(model, [1], method=method)
    X, contexts = Z[:4, :1], Z[:5, 1:]
    joint = observed.join(X, contexts).flatten(0, 1)
    before = observed(X, contexts)
    for num in (3, 5, 5, 2):
        P = torch.rand(num, 2, generator=generator, dtype=torch.double)
        at, means = model.transform_inputs(P), model.posterior(P).mean.detach()
        asked.clear()
        for share in (1.0, 0.01, 1.0):
            conditioned = observed.hallucinating(P.clone(), share)
            own = torch.full_like(means, 0.04 * share)
            oracle = model.condition_on_observations(at, means, noise=own)
            expected = oracle.posterior(joint).variance.flatten()
            found = conditioned(X, contexts)[1].flatten()
            assert found.allclose(expected, atol=1e-6)
            # What was conditioned already can be conditioned once more.
            twice = conditioned.hallucinating(P, share)(X, contexts)[1].flatten()
            own = torch.cat([own, own])
            oracle = model.condition_on_observations(
                torch.cat([at, at]), torch.cat([means, means]), noise=own
            )
            expected = oracle.posterior(joint).variance.flatten()
            assert twice.allclose(expected, atol=1e-6)
        assert asked.count(12) == 1  # the kernel with what was observed
    for part, known in zip(observed(X, contexts), before, strict=True):
        assert part.equal(known)


@pytest.mark.parametrize("heavy", [False, True])
def test_what_was_observed_is_prepared_once_for_the_contexts_of_a_plate(
    heavy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values as of a new function, with ever more pending rows and then fewer.

    With a heavy context three stand for eight, and three others for seven.
    """
    generator = torch.Generator().manual_seed(5)
    Z = torch.rand(9, 2, generator=generator, dtype=torch.double)
    model = SingleTaskGP(Z, (4.0 * Z).sin().sum(-1, keepdim=True))
    weights = torch.ones(30, dtype=torch.double)
    if heavy:
        weights[0], weights[11:] = 30.0, 0.0
    points = torch.rand(30, 1, generator=generator, dtype=torch.double)
    contexts = ContextSet(points, weights / weights.sum())
    objective = UncertaintyObjective(Wasserstein(0.1))
    X = torch.rand(6, 1, 1, generator=generator, dtype=torch.double)
    P = torch.rand(24, 1, generator=generator, dtype=torch.double)
    over, prepared = ExactPosterior._over, []

    def counted(self: ExactPosterior, at: Tensor) -> View:
        prepared.append((len(self.alpha), len(at)))
        return over(self, at)

    monkeypatch.setattr(ExactPosterior, "_over", counted)
    acqf = DistributionallyRobustUCB(model, 4.0, contexts, objective, method="exact")
    nums = 1, 2, 16, 17, 18, 24, 3
    found = []
    for num in nums:
        acqf.set_X_pending(P[:num])
        found.append(acqf(X))
    # 8, 7, 5 and again 8 contexts for each decision
    assert len([0 for rows, at in prepared if rows == 9 and at < 30]) == 4
    for num, values in zip(nums, found, strict=True):
        fresh = DistributionallyRobustUCB(
            model, 4.0, contexts, objective, X_pending=P[:num], method="exact"
        )
        assert values.equal(fresh(X))
