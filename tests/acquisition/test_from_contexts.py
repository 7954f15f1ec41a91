"""The five named acquisition functions, made in one call from the contexts seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models.deterministic import GenericDeterministicModel

from botorch_drbo import acquisition
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    KernelDensityRobustUCB,
    LipschitzPenalizedUCB,
    MaximumMeanDiscrepancyRobustUCB,
    RobustThompsonSampling,
)
from botorch_drbo.adversaries import FittedRound
from botorch_drbo.ambiguity import TotalVariation, Wasserstein
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.recipes.robust_recipe import RobustRecipe
from botorch_drbo.sampling import derive_seed
from botorch_drbo.schedules import InverseSquareRoot
from tests.models import known_model, uniform

FIVE: dict[str, Any] = {
    "WDRBO": LipschitzPenalizedUCB,
    "DRBO-KDE": KernelDensityRobustUCB,
    "DRBO-MMD": MaximumMeanDiscrepancyRobustUCB,
    "EC-GP-UCB": EnlargedConfidenceUCB,
    "TS-BOCU": RobustThompsonSampling,
}
Z = uniform(12, 4, seed=2)  # two decisions, two contexts
C_BOUNDS = torch.tensor([[-0.5, 0.0], [1.5, 1.0]], dtype=torch.double)
BOUNDS = torch.stack([Z[:, :2].amin(0), Z[:, :2].amax(0)])
Y = (3 * Z[:, :1] - 2 * Z[:, 2:3]).sin() + Z[:, 1:2] * Z[:, 3:]
MODEL = known_model(Z, Y, noise=1e-3)
C = Z[:, 2:]
X = uniform(5, 1, 2, seed=3)
DOCS = Path(__file__).parents[2] / "docs" / "botorch.md"


def of_recipe(name: str, **options: Any) -> AcquisitionFunction:
    """What the search of a recipe maximises, for the same model and contexts."""
    recipe = make_recipe(name, **options)
    assert isinstance(recipe, RobustRecipe)
    history = History(X=Z[:, :2], C=C, Y=Y, contexts=C)
    space = SearchSpace(BOUNDS, C_BOUNDS)
    return recipe.exploring(recipe.state_of(MODEL, history, space, 7), None)


def from_contexts(kind: Any, **options: Any) -> Any:
    return kind.from_contexts(MODEL, C, C_BOUNDS, **options)


@pytest.mark.parametrize("paper", FIVE)
def test_each_is_a_final_class_that_begins_with_the_papers_name(paper: str) -> None:
    kind = FIVE[paper]
    assert issubclass(kind, AcquisitionFunction)
    assert getattr(acquisition, kind.__name__) is kind
    assert kind.__final__ and kind.__doc__.startswith(f"{paper}: ")


PAIRS: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (
        lambda: from_contexts(LipschitzPenalizedUCB),
        lambda: of_recipe("wdrbo", radius=InverseSquareRoot(0.3)),
    ),
    (
        lambda: from_contexts(LipschitzPenalizedUCB, radius="sd", beta=1.0),
        lambda: of_recipe("wdrbo", radius="sd", beta=1.0),
    ),
    (
        lambda: from_contexts(KernelDensityRobustUCB, seed=7),
        lambda: of_recipe("drbo_kde"),
    ),
    (
        lambda: from_contexts(MaximumMeanDiscrepancyRobustUCB, radius=0.2),
        lambda: of_recipe("drbo_mmd", radius=0.2),
    ),
    (
        lambda: from_contexts(EnlargedConfidenceUCB, misspecification=0.1),
        lambda: of_recipe("erbo", misspecification=0.1),
    ),
    (
        lambda: from_contexts(RobustThompsonSampling, seed=derive_seed(7, 0)),
        lambda: of_recipe("ts_bocu"),
    ),
    (
        lambda: from_contexts(
            DistributionallyRobustUCB, ambiguity_set=Wasserstein(0.1)
        ),
        lambda: of_recipe("dro", ambiguity_set=Wasserstein(0.1)),
    ),
]


@pytest.mark.parametrize(("ours", "recipes"), PAIRS)
def test_it_is_what_the_recipe_maximises_to_the_bit(
    ours: Callable[[], Any], recipes: Callable[[], Any]
) -> None:
    assert torch.equal(ours()(X), recipes()(X))


def test_the_papers_radii() -> None:
    kde = from_contexts(KernelDensityRobustUCB, num_contexts=8, num_outside=8)
    assert kde.objective.ambiguity_set.radius.item() == pytest.approx(12 ** (-2 / 6))
    mmd = from_contexts(MaximumMeanDiscrepancyRobustUCB)
    expected = (2 + (2 * np.log(10)) ** 0.5) / 12**0.5
    assert mmd.objective.ambiguity_set.radius.item() == pytest.approx(expected)
    assert mmd.context_set.num_points == 100
    wdrbo = from_contexts(LipschitzPenalizedUCB)
    assert wdrbo.radius.item() == pytest.approx(0.3 / 12**0.5)


def test_drbo_kde_against_a_linear_program() -> None:
    """The draws, and the lowest score outside them as one more atom."""
    options = {"num_contexts": 16, "num_outside": 16, "radius": 0.6}
    acqf = from_contexts(KernelDensityRobustUCB, **options)
    reference, outside = acqf.context_set, acqf.outside_contexts
    inside = acqf.scores(X.squeeze(1)).numpy(force=True)
    floor = acqf.scores(X.squeeze(1), outside).numpy(force=True).min(-1)
    p = np.append(reference.weights.numpy(), 0.0)
    for scores, least, found in zip(inside, floor, acqf(X).tolist(), strict=True):
        q = cp.Variable(17, nonneg=True)
        problem = cp.Problem(
            cp.Minimize(np.append(scores, least) @ q),
            [cp.sum(q) == 1, cp.norm1(q - p) <= 0.6],
        )
        assert problem.solve(solver=cp.CLARABEL) == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (KernelDensityRobustUCB, {"num_contexts": 6, "num_outside": 6}),
        (MaximumMeanDiscrepancyRobustUCB, {"num_contexts": 9, "radius": 0.3}),
        (RobustThompsonSampling, {"seed": 1, "num_features": 32}),
    ],
)
def test_the_convex_solver_gives_the_same_values_and_slopes(
    kind: Any, options: dict[str, Any]
) -> None:
    found = []
    for solver in ("exact", "cvxpylayers"):
        acqf = from_contexts(kind, solver=solver, **options)
        rows = X[:2].clone().requires_grad_()
        value = acqf(rows)
        (slope,) = torch.autograd.grad(value.sum(), rows)
        found.append((value.detach(), slope))
    torch.testing.assert_close(*(v for v, _ in found), rtol=0.0, atol=1e-6)
    torch.testing.assert_close(*(s for _, s in found), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputDataError, match="solver"):
        from_contexts(kind, solver="gurobi", **options)


def test_contexts_in_other_columns() -> None:
    """The same data with the contexts first: the same values."""
    order = [2, 3, 0, 1]
    model = known_model(Z[:, order], Y, noise=1e-3)
    own: dict[Any, dict[str, Any]] = {
        LipschitzPenalizedUCB: {},
        KernelDensityRobustUCB: {},
        MaximumMeanDiscrepancyRobustUCB: {"radius": 0.2},
        EnlargedConfidenceUCB: {"misspecification": 0.1},
    }
    for kind, options in own.items():
        other = kind.from_contexts(
            model, C, C_BOUNDS, context_indices=[0, 1], **options
        )
        torch.testing.assert_close(other(X), from_contexts(kind, **options)(X))


def test_a_decision_that_has_not_varied_yet_has_a_side_of_one() -> None:
    rows = Z.index_fill(1, torch.tensor([0]), 0.3)
    model = known_model(rows, Y, noise=1e-3)
    box = FittedRound.of_contexts(model, C, C_BOUNDS).space.bounds
    assert box[:, 0].tolist() == [0.3, 1.3] and box[:, 1].equal(BOUNDS[:, 1])
    assert LipschitzPenalizedUCB.from_contexts(model, C, C_BOUNDS)(X).isfinite().all()
    told_nothing = GenericDeterministicModel(lambda z: z[..., :1])
    box = FittedRound.of_contexts(told_nothing, C, C_BOUNDS).space.bounds
    assert box.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("paper", FIVE)
def test_contexts_that_do_not_fit_are_refused(paper: str) -> None:
    options = {"misspecification": 0.1} if paper == "EC-GP-UCB" else {}
    make = FIVE[paper].from_contexts
    with pytest.raises(InputDataError, match="`contexts` has rows outside"):
        make(MODEL, C + 5.0, C_BOUNDS, **options)
    with pytest.raises(BotorchTensorDimensionError, match="contexts"):
        make(MODEL, Z, C_BOUNDS, **options)
    with pytest.raises(BotorchTensorDimensionError, match="at least one row"):
        make(MODEL, C[:0], C_BOUNDS, **options)


def test_the_page_has_all_five() -> None:
    """Its block runs in tests/docs/test_paste.py."""
    calls = re.findall(r"acquisition\.(\w+)\.from_contexts", DOCS.read_text())
    assert calls == [kind.__name__ for kind in FIVE.values()]


def test_the_recipes_of_the_five_have_the_same_set() -> None:
    assert {"wdrbo", "drbo_kde", "drbo_mmd", "ec_gp_ucb", "ts_bocu"} <= RECIPES.keys()
    default = from_contexts(RobustThompsonSampling, seed=0).objective.ambiguity_set
    assert isinstance(default, TotalVariation) and default.radius == 0.2
