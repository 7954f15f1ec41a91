"""Times of whole robust acquisition functions against their plain counterparts."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.problems import make
from benchmarks.speed.job import BETA
from benchmarks.speed.tables import Line
from benchmarks.speed.timing import alternate, value_and_gradient
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe, make_recipe


@dataclass(frozen=True)
class Comparison:
    """A robust acquisition function, what it is compared with, and the limit."""

    what: str
    robust: AcquisitionFunction
    plain: AcquisitionFunction
    against: str
    limit: float


def measure_acquisitions(*, b: int, ts: tuple[int, ...], repeats: int) -> list[Line]:
    """DRBO-KDE against SBO-KDE, DRBO-MMD against ERBO on its grid."""
    problem = make("ackley_2_1")
    low, high = problem.bounds
    generator = torch.Generator().manual_seed(0)
    X = low + (high - low) * torch.rand(b, 1, 2, generator=generator).double()
    lines = []
    for t in ts:
        for comparison in _comparisons(t):
            robust, plain = alternate(
                [
                    lambda c=comparison: value_and_gradient(c.robust, X),
                    lambda c=comparison: value_and_gradient(c.plain, X),
                ],
                repeats,
            )
            ratio = statistics.median(a / b for a, b in zip(robust, plain, strict=True))
            limit = comparison.limit
            times = [1e3 * statistics.median(side) for side in (robust, plain)]
            lines.append(
                Line(
                    what=f"{comparison.what}, b={b}, t={t}",
                    ours=f"{times[0]:.3g} ms",
                    other=f"{times[1]:.3g} ms ({comparison.against})",
                    result=f"{ratio:.3g} times the cost",
                    target=f"at most {limit:g}: "
                    f"{'met' if ratio <= limit else 'missed'}",
                )
            )
    return lines


def _comparisons(t: int) -> list[Comparison]:
    problem = make("ackley_2_1")
    space = SearchSpace(bounds=problem.bounds, context_bounds=problem.context_bounds)
    generator = torch.Generator().manual_seed(t)
    low, high = problem.bounds
    X = low + (high - low) * torch.rand(t, 2, generator=generator).double()
    C = problem.sample_contexts(t, seed=t)
    history = History(X=X, C=C, Y=problem.evaluate(X, C).unsqueeze(-1), contexts=C)
    inputs = torch.cat([X, C], dim=-1)
    transform = Normalize(inputs.shape[-1], bounds=space.joint_bounds)
    model = SingleTaskGP(inputs, history.Y, input_transform=transform)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    model.requires_grad_(False)

    def acquisition(name: str) -> AcquisitionFunction:
        recipe = make_recipe(name, beta=BETA)
        assert isinstance(recipe, RobustRecipe)
        return recipe.exploring(recipe.state_of(model, history, space, 0), None)

    mmd = acquisition("drbo_mmd")
    assert isinstance(mmd, DistributionallyRobustUCB)
    erbo = DistributionallyRobustUCB(
        model, BETA, mmd.context_set, UncertaintyObjective.so()
    )
    return [
        Comparison(
            "drbo_kde, 1024 draws",
            acquisition("drbo_kde"),
            acquisition("sbo_kde"),
            "sbo_kde on the draws",
            1.5,
        ),
        Comparison("drbo_mmd, grid of 100", mmd, erbo, "erbo on the grid", 10.0),
    ]
