"""A radius that is larger than every distance is taken with a warning."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.schedules import Constant, InverseSquareRoot

BOUNDS = torch.tensor([[0.0], [1.0]], dtype=torch.double)
CONTEXTS = torch.tensor([[0.0, 5.0], [2.0, 9.0]], dtype=torch.double)
TRANSPORT = ("wdrbo", "ec_wdrbo", "wdrbo_exact", "ts_wdrbo", "ei_wdrbo")
VARIATION = (
    "drbo_kde", "ts_drbo_kde", "ei_drbo_kde", "dro", "ts_bocu", "ucb_bocu_1",
    "ucb_bocu_2",
)  # fmt: skip
KERNEL = ("drbo_mmd", "ts_drbo_mmd", "drbo_mmd_minimax")
DIAMETERS = {
    **dict.fromkeys(TRANSPORT, 2.0**0.5),
    **dict.fromkeys(VARIATION, 2.0),
    **dict.fromkeys(KERNEL, 2.0**0.5),
}


def optimizer(name: str, **options: Any) -> RobustOptimizer:
    return RobustOptimizer(name, BOUNDS, CONTEXTS, num_initial=2, **options)


def test_every_recipe_with_a_radius_is_here() -> None:
    taking = {name for name, made in RECIPES.items() if "radius" in made.options}
    assert taking == set(DIAMETERS)


@pytest.mark.parametrize("name", DIAMETERS)
def test_a_radius_beyond_the_diameter_is_named_with_it(name: str) -> None:
    shown = f"{DIAMETERS[name]:.4g}"
    with pytest.warns(InputDataWarning, match="`radius` of 3 is larger") as caught:
        optimizer(name, radius=3)
    assert len(caught) == 1
    assert f"distributions of the context, {shown} (in " in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer(name, radius=DIAMETERS[name])
        optimizer(name)  # its own rule


def test_a_constant_is_a_number_and_a_schedule_is_none() -> None:
    with pytest.warns(InputDataWarning, match="of 3 is larger"):
        optimizer("wdrbo", radius=Constant(3.0))
    with pytest.warns(InputDataWarning, match="of 2.5 is larger"):
        optimizer("dro", ambiguity_set=TotalVariation(2.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer("wdrbo", radius=InverseSquareRoot(3.0))  # it falls
        optimizer("dro", ambiguity_set=TotalVariation(2.5), radius=0.1)
        optimizer("dro", ambiguity_set=KullbackLeibler(50.0))


def test_a_round_and_a_profile_warn_too(tmp_path: Path) -> None:
    short = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 3}
    opt = optimizer("wdrbo_exact", radius=0.1, **short)
    for k in range(3):
        c = torch.tensor([[0.5 * k, 6.0 + k]]).double()
        opt.tell(torch.tensor([[0.3 * k]]).double(), c, torch.tensor([[1.0 * k]]))
    with pytest.warns(InputDataWarning, match="`radius` of 1.5 .*1.414 "):
        opt.ask(radius=1.5)
    with pytest.warns(InputDataWarning, match="`radius` of 1.5 .*1.414 "):
        opt.recommend(radius=1.5)
    # A column that is known cannot vary: the diagonal of what is left is 1.
    known = torch.tensor([torch.nan, 6.0]).double()
    with pytest.warns(InputDataWarning, match="`radius` of 1.2 .* 1 "):
        opt.recommend(radius=1.2, context=known)
    x = torch.tensor([0.5]).double()
    with pytest.warns(InputDataWarning, match="`radii` of 2 .*1.414 "):
        opt.robustness_profile(x, radii=torch.tensor([0.1, 2.0]).double())
    with pytest.warns(InputDataWarning, match="`radii` of 2.5 .* 2 "):
        opt.robustness_profile(
            x,
            radii=torch.tensor([0.1, 2.5]).double(),
            ambiguity_set=TotalVariation(0.1),
        )


def test_the_kernel_of_a_users_model_has_no_known_diameter() -> None:
    def model(**changes: object) -> None:
        raise AssertionError("not called")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer("drbo_mmd", radius=3.0, model=model)


POINTS = torch.tensor([[0.0], [0.4], [1.0]], dtype=torch.double)
COST = (POINTS - POINTS.mT).abs()


@pytest.mark.parametrize(
    "ball",
    [
        TotalVariation(0.1),
        Wasserstein(0.1, COST),
        MaximumMeanDiscrepancy(0.1, (-COST).exp()),
        MinimaxApproximation(TotalVariation(0.1)),
    ],
    ids=lambda ball: type(ball).__name__,
)
def test_the_diameter_is_the_largest_distance(ball: AmbiguitySet) -> None:
    corners = torch.eye(3).double()
    largest = max(
        ball.distance(corners[i], corners[j]).item() for i in range(3) for j in range(3)
    )
    assert ball.diameter == pytest.approx(largest)
    within = torch.rand(50, 2, 3).double()
    within = within / within.sum(-1, keepdim=True)
    for p, q in within:
        assert ball.distance(p, q) <= largest + 1e-9


def test_the_largest_distance_of_contexts_by_brute_force() -> None:
    space = SearchSpace(
        BOUNDS,
        torch.tensor([[0.0, 5.0], [2.0, 9.0]]).double(),
        context_categories={0: 3},
    )
    corners = torch.cartesian_prod(
        torch.tensor([0.0, 1.0, 2.0]), torch.tensor([5.0, 9.0])
    ).double()
    distances: Tensor = space.context_distances(corners, corners)
    assert space.context_diameter == pytest.approx(distances.max().item())


def test_a_recipe_of_ones_own_warns_in_a_round() -> None:
    from botorch_drbo.problem import Round

    wdrbo = make_recipe("wdrbo_exact", radius=0.1, num_restarts=1, raw_samples=8)
    X = torch.linspace(0, 1, 4).double().unsqueeze(-1)
    C = torch.cat([2.0 * X, 5.0 + 4.0 * X], dim=-1)
    history = History(X=X, C=C, Y=X, contexts=C)
    forecast = ContextSet(C)
    with pytest.warns(InputDataWarning, match="of 9 is larger"):
        wdrbo.recommend(
            history,
            SearchSpace(BOUNDS, CONTEXTS),
            this_round=Round(context_set=forecast, radius=9.0),
        )
