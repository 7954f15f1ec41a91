"""What decisions are ranked by before an ascent, against the values."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LipschitzPenalizedUCB,
    RobustAcquisitionFunction,
)
from botorch_drbo.acquisition.analytic import COARSER
from botorch_drbo.ambiguity import MaximumMeanDiscrepancy, TotalVariation, Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.search.maximise import maximise

UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()


def uniform(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.double)


def history(t: int, d_c: int, seed: int) -> History:
    X, C = uniform(t, 2, seed=seed), uniform(t, d_c, seed=seed + 1)
    Y = torch.sin(7 * X[:, :1] + 3 * C[:, :1]) + (X[:, 1:] - C[:, -1:]).abs()
    return History(X=X, C=C, Y=Y, contexts=C)


def acquisition(kind: str, d_c: int) -> RobustAcquisitionFunction:
    known = history(20, d_c, seed=3)
    model = SingleTaskGP(torch.cat([known.X, known.C], -1), known.Y)
    points = uniform(45, d_c, seed=9)  # of more, some stand for the others
    contexts = ContextSet(points)
    if kind == "slopes":
        return LipschitzPenalizedUCB(model, 2.25, contexts, 0.1, UNIT[:, :d_c])
    away = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    ball = {
        "kernel": MaximumMeanDiscrepancy(0.3, (-4.0 * away.square()).exp()),
        "transport": Wasserstein(0.1, away),
        "variation": TotalVariation(0.4),
    }[kind]
    objective = UncertaintyObjective(ball)
    return DistributionallyRobustUCB(model, 2.25, contexts, objective)


def correlation(first: Tensor, second: Tensor) -> float:
    ranks = torch.stack([x.argsort().argsort().double() for x in (first, second)])
    return float(torch.corrcoef(ranks)[0, 1])


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("pending", [True, False])
@pytest.mark.parametrize("kind", ["kernel", "transport", "variation", "slopes"])
def test_the_order_is_nearly_that_of_the_values(kind, pending, d_c):
    acqf = acquisition(kind, d_c)
    if pending:
        acqf.set_X_pending(uniform(2, 2, seed=1))
    X = uniform(300, 1, 2, seed=2)
    with torch.no_grad():
        values, ranking = acqf(X), acqf.ranking(X)
    assert not ranking.requires_grad
    assert correlation(values, ranking) > 0.97
    assert values.argmax() in ranking.topk(10).indices
    side = {"kernel": 1.0, "transport": 1.0, "variation": 0.0, "slopes": -1.0}[kind]
    error = side * (values - ranking) if side else -(values - ranking).abs()
    # Variances are off by up to 1e-9 (ExplainedVariance), and so deviations by more.
    assert (error > -1e-6).all()


@pytest.mark.parametrize("d_c", [1, 2])
def test_outside_contexts_are_looked_at_in_all_of_the_box(d_c):
    known = history(20, d_c, seed=3)
    model = SingleTaskGP(torch.cat([known.X, known.C], -1), known.Y)
    outside = sobol_in_box(256, UNIT[:, :d_c], seed=0)
    acqf = DistributionallyRobustUCB(
        model,
        2.25,
        ContextSet(0.5 + 0.1 * uniform(60, d_c, seed=9)),
        UncertaintyObjective(TotalVariation(0.4)),
        outside_contexts=outside,
    )
    X = uniform(300, 1, 2, seed=2)
    with torch.no_grad():
        values, ranking = acqf(X), acqf.ranking(X)
    assert correlation(values, ranking) > 0.99
    assert values.argmax() in ranking.topk(5).indices
    assert (ranking >= values - 1e-8).all()  # fewer contexts, never a lower worst one
    ranked = outside[::COARSER]
    assert (ranked.amin(0) < 0.1).all() and (ranked.amax(0) > 0.9).all()


def test_keeps_no_graph_and_checks_its_columns():
    acqf = acquisition("kernel", 1)
    assert not acqf.ranking(uniform(3, 1, 2, seed=0).requires_grad_()).requires_grad
    with pytest.raises(BotorchTensorDimensionError):
        acqf.ranking(uniform(3, 1, 3, seed=0))


class ByValue(torch.nn.Module):
    """Ranks by the values themselves."""

    def __init__(self, acqf: AcquisitionFunction) -> None:
        super().__init__()
        self.acqf, self.model, self._log = acqf, acqf.model, acqf._log

    def forward(self, X: Tensor) -> Tensor:
        return self.acqf(X)


@pytest.mark.parametrize("name", ["drbo_mmd", "wdrbo_exact", "wdrbo"])
@pytest.mark.parametrize("t, seed", [(8, 0), (25, 1), (25, 2)])
def test_an_ascent_ends_as_high_as_from_starts_by_value(name, t, seed):
    known = history(t, 1, seed)
    space = SearchSpace(UNIT, UNIT[:, :1])
    recipe = make_recipe(name, num_restarts=4, raw_samples=64)
    assert isinstance(recipe, ModelBasedRecipe)
    inputs = torch.cat([known.X, known.C], -1)
    model = SingleTaskGP(inputs, known.Y)
    acqf = recipe.exploring(recipe.state_of(model, known, space, 0), None)
    _, ranked = maximise(acqf, space, recipe.effort(0))
    _, exact = maximise(ByValue(acqf), space, recipe.effort(0))
    spread = acqf(uniform(64, 1, 2, seed=5)).std()
    assert ranked.max() >= exact.max() - 0.02 * spread
