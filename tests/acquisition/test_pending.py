"""Decisions that are on their way repel the next one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LipschitzPenalizedUCB,
)
from botorch_drbo.acquisition.analytic import RobustAcquisitionFunction
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT

Make = Callable[[SingleTaskGP, ContextSet, Tensor], RobustAcquisitionFunction]


def lipschitz(
    model: SingleTaskGP, contexts: ContextSet, bounds: Tensor
) -> RobustAcquisitionFunction:
    return LipschitzPenalizedUCB(model, 2.25, contexts, 0.05, bounds)


def robust(
    model: SingleTaskGP, contexts: ContextSet, bounds: Tensor
) -> RobustAcquisitionFunction:
    objective = UncertaintyObjective.dro(TotalVariation(0.3))
    return DistributionallyRobustUCB(model, 2.25, contexts, objective)


def smooth(
    seed: int = 0,
    *,
    x_unit: float = 1.0,
    c_unit: float = 1.0,
    y_unit: float = 1.0,
) -> tuple[SingleTaskGP, ContextSet, Tensor, Tensor]:
    """A wave seen 40 times: model, contexts, bounds of ``x``, bounds of ``c``."""
    generator = torch.Generator().manual_seed(seed)
    X, C = torch.rand(2, 40, 1, generator=generator, dtype=torch.double)
    noise = 0.1 * torch.randn(40, 1, generator=generator, dtype=torch.double)
    Y = (3.0 * X + C).sin() - (C - 0.5).square() + noise
    X, C, Y = x_unit * (X + 3.0), c_unit * (C - 7.0), y_unit * (Y + 50.0)
    x_bounds, c_bounds = x_unit * (UNIT + 3.0), c_unit * (UNIT - 7.0)
    model = SingleTaskGP(
        torch.cat([X, C], dim=-1),
        Y,
        input_transform=Normalize(2, bounds=torch.cat([x_bounds, c_bounds], dim=-1)),
        outcome_transform=Standardize(1),
    )
    model.covar_module.lengthscale = torch.tensor([0.5, 0.5]).double()
    model.likelihood.noise = 0.02
    model.eval().requires_grad_(False)
    return model, ContextSet.empirical(C), x_bounds, c_bounds


def spread(X: Tensor) -> float:
    return torch.cdist(X, X).fill_diagonal_(1.0).min().item()


@pytest.mark.parametrize("path", ["generic", "exact", "product"])
def test_the_repulsion_is_its_formula(path: str) -> None:
    """Oracle: GPyTorch's joint posterior, conditioned by hand."""
    model, contexts, _, _ = smooth()
    X = torch.tensor([[3.05], [3.31], [3.4], [3.9]], dtype=torch.double)
    pending = torch.tensor([[3.3], [3.5]], dtype=torch.double)
    acqf = DistributionallyRobustUCB(
        model,
        2.25,
        contexts,
        UncertaintyObjective.so(),
        X_pending=pending,
        num_pending_contexts=2,
        method=path,  # pyright: ignore[reportArgumentType]
    )
    with_repulsion = acqf(X.unsqueeze(-2))
    acqf.repulsion = 0.0
    found = with_repulsion - acqf(X.unsqueeze(-2))
    few = contexts.representatives(2)

    def joined(decisions: Tensor) -> Tensor:
        rows = [torch.cat([x, c]) for x in decisions for c in few]
        return torch.stack(rows)

    Z = torch.cat([joined(X), joined(pending)])
    covariance = model.posterior(Z).distribution.covariance_matrix
    own, cross = covariance[:8, :8], covariance[:8, 8:]
    left = own - cross @ torch.linalg.solve(covariance[8:, 8:], cross.mT)
    before = own.diagonal().reshape(4, 2).mean(-1).sqrt()
    share = left.diagonal().reshape(4, 2).mean(-1).sqrt() / before
    expected = 0.05 * 1.5 * before * (1.0 + share.log() - share)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-8)
    assert (found < 0).all() and found.argmin() == 1  # next to the first


@pytest.mark.parametrize("own", [False, True], ids=["context set", "other contexts"])
def test_scores_with_and_without_what_is_pending(own: bool) -> None:
    model, contexts, _, bounds = smooth()
    X = torch.linspace(3.0, 4.0, 9).double().reshape(-1, 1)
    C = contexts.points[:5] + 0.01 if own else None
    acqf = robust(model, contexts, bounds)
    free = acqf.scores(X, C)
    acqf.set_X_pending(torch.tensor([[3.3], [3.5]], dtype=torch.double))
    torch.testing.assert_close(acqf.scores(X, C, pending=False), free)
    assert (acqf.scores(X, C) < free).all()
    assert (free - acqf.scores(X, C)).max() > 1e-3


@pytest.mark.parametrize("misspecification", [0.0, 0.01])
def test_the_penalty_is_of_the_scores_as_observed(misspecification: float) -> None:
    """A hallucinated deviation is flatter than the one that counts."""
    model, contexts, _, bounds = smooth()
    X = torch.linspace(3.0, 4.0, 9).double().reshape(-1, 1, 1)
    pending = torch.tensor([[3.3], [3.5], [3.8]], dtype=torch.double)

    def make(radius: float, X_pending: Tensor | None) -> LipschitzPenalizedUCB:
        options = {"misspecification": misspecification, "X_pending": X_pending}
        return LipschitzPenalizedUCB(model, 25.0, contexts, radius, bounds, **options)

    free, steep = make(0.0, None), make(0.05, None)
    plain, penalised = make(0.0, pending), make(0.05, pending)
    steepest = steep.lipschitz_constant(X.squeeze(-2))
    taken = plain(X) - penalised(X)
    torch.testing.assert_close(taken, 0.05 * steepest)
    torch.testing.assert_close(
        plain.ranking(X) - penalised.ranking(X), free.ranking(X) - steep.ranking(X)
    )
    torch.testing.assert_close(penalised.lipschitz_constant(X.squeeze(-2)), steepest)

    lipschitz = penalised.lipschitz
    hallucinated = penalised.posterior.over(lipschitz.candidates)
    slopes = penalised.bound.slope(hallucinated.at(X.squeeze(-2)).slopes())
    flatter = lipschitz.steepest(slopes)
    assert (steepest - flatter).abs().max() > 0.05 * steepest.max()  # it matters


@pytest.mark.parametrize("make", [lipschitz, robust])
def test_it_is_steep_near_and_vanishes_far_away(make: Make) -> None:
    model, contexts, bounds, context_bounds = smooth()
    acqf = make(model, contexts, context_bounds)
    acqf.set_X_pending(torch.tensor([[3.5]], dtype=torch.double))
    at = torch.tensor([3.5, 3.5001, 3.501, 3.51, 3.6, 0.0]).double()
    at[-1] = bounds[0, 0] - 30.0  # far from all data: nothing in common
    X = at.reshape(-1, 1, 1).requires_grad_()
    repelled = acqf(X)
    (gradient,) = torch.autograd.grad(repelled.sum(), X)
    assert gradient.isfinite().all()
    acqf.repulsion = 0.0
    taken = acqf(X) - repelled
    assert (taken[:-1].diff() < 0).all()
    assert abs(taken[-1]) < 1e-12


@pytest.mark.parametrize("make", [lipschitz, robust])
@pytest.mark.parametrize("seed", range(5))
def test_sequential_decisions_spread(make: Make, seed: int) -> None:
    model, contexts, bounds, context_bounds = smooth(seed)
    acqf: AcquisitionFunction = make(model, contexts, context_bounds)
    X, _ = optimize_acqf(
        acqf,
        bounds,
        q=3,
        sequential=True,
        num_restarts=2,
        raw_samples=32,
        options={"seed": seed, "maxiter": 50},
    )
    # Of a side. Before, nothing but the bonus kept them apart: .0001 to .0016.
    assert spread(X) > 0.01


@pytest.mark.parametrize("make", [lipschitz, robust])
@pytest.mark.parametrize(
    "units",
    [{"y_unit": 1e4}, {"y_unit": 1e-3}, {"x_unit": 1e5}, {"c_unit": 1e-4}],
    ids=str,
)
def test_units_do_not_matter(make: Make, units: dict[str, float]) -> None:
    def chosen(**units: float) -> list[int]:
        model, contexts, bounds, context_bounds = smooth(**units)
        acqf = make(model, contexts, context_bounds)
        grid = torch.linspace(0.0, 1.0, 201, dtype=torch.double).unsqueeze(-1)
        grid = bounds[0] + (bounds[1] - bounds[0]) * grid
        rows: list[int] = []
        for _ in range(4):
            rows.append(int(acqf(grid.unsqueeze(-2)).argmax()))
            acqf.set_X_pending(grid[rows])
        return rows

    assert chosen(**units) == chosen()
