"""``half_life``: old contexts count for less, in every recipe that learns from them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import ContextSet
from botorch_drbo.contexts.sources import weighted_variance
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import (
    RECIPES,
    Recipe,
    RobustRecipe,
    make_recipe,
    recipe_from_dict,
)
from botorch_drbo.schedules import InverseSquareRoot, SpreadRadius
from botorch_drbo.testing.fixtures import PRIOR, nothing_fitted
from tests.products import FEW, each_recipe, robust_set

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
SPACE = SearchSpace(UNIT, UNIT)
SMALL = {
    "num_restarts": 1,
    "raw_samples": 8,
    "max_iterations": 4,
}
# The world has moved: low contexts long ago, high ones now.
CONTEXTS = torch.linspace(0.1, 0.9, 12, dtype=torch.double).unsqueeze(-1)
X = torch.linspace(0.0, 1.0, 12, dtype=torch.double).unsqueeze(-1)
HISTORY = History(X=X, C=CONTEXTS, Y=-(X - CONTEXTS).square(), contexts=CONTEXTS)


def weights(half_life: float, num: int = 12) -> torch.Tensor:
    raw = torch.tensor([2.0 ** (-(num - 1 - i) / half_life) for i in range(num)])
    return (raw / raw.sum()).double()


def make(name: str, **options: Any) -> Any:
    recipe = RECIPES[name]
    known: dict[str, Any] = {"hyperparameters": PRIOR}
    if isinstance(recipe, RobustRecipe):
        known = nothing_fitted(recipe.policy)
    few = FEW.get(name, {})
    return make_recipe(name, **{**SMALL, **known, **few, **options})


def radius(recipe: Recipe) -> float:
    """That of the set of this round."""
    model = recipe.fitted_model(HISTORY, SPACE)
    return robust_set(recipe, model, HISTORY, SPACE, 0)[1].radius.item()


def test_weights_halve_with_age() -> None:
    contexts = make("wdrbo", half_life=3).recommend(HISTORY, SPACE).context_set
    assert torch.allclose(contexts.weights[:12], weights(3.0), atol=1e-7)


@pytest.mark.parametrize("name", each_recipe())
def test_every_recipe_follows_a_world_that_drifts(name: str) -> None:
    options = {"reward_range": (-2.0, 2.0)} if name == "regret_balancing" else {}
    still = make(name, **options).recommend(HISTORY, SPACE).context_set
    moved = make(name, half_life=2.0, **options)
    recent = moved.recommend(HISTORY, SPACE).context_set
    # `ucb_ro` takes every context for possible, and `stable_opt` two moments.
    if name not in {"ucb_ro"}:
        assert recent.mean.item() > still.mean.item() + 0.1
    again = recipe_from_dict(moved.to_dict())
    assert again.to_dict() == moved.to_dict()


def test_schedules_count_the_effective_sample_size() -> None:
    p = weights(3.0)
    size = round(1.0 / p.square().sum().item())
    assert 1 < size < 12
    recipe = make("wdrbo", half_life=3.0, radius=InverseSquareRoot(1.0))
    found = radius(recipe)
    assert found == pytest.approx(1.0 / math.sqrt(size))
    forgetful = make("dro", half_life=3.0, radius=InverseSquareRoot(1.0))
    assert radius(forgetful) == pytest.approx(found)
    mean = (p @ CONTEXTS).item()
    variance = (p @ (CONTEXTS - mean).square()).item() / (1 - p.square().sum().item())
    effective = 1.0 / p.square().sum().item()
    spread = make("wdrbo", half_life=3.0)
    assert radius(spread) == pytest.approx(1.25 * math.sqrt(variance / effective))


def test_a_long_half_life_forgets_nothing() -> None:
    for name in ("wdrbo", "sbo_kde"):
        still = make(name).recommend(HISTORY, SPACE)
        slow = make(name, half_life=1e9).recommend(HISTORY, SPACE)
        assert slow.worst_case_value == pytest.approx(still.worst_case_value, abs=1e-6)
        assert slow.expected_value == pytest.approx(still.expected_value, abs=1e-6)


def test_a_short_half_life_knows_the_last_context_only() -> None:
    density = ContextSet.kernel_density(
        ContextSet.empirical(CONTEXTS, half_life=1e-3), 64, UNIT, seed=0
    )
    assert (density.points - CONTEXTS[-1]).abs().max() < 1e-3
    rule = SpreadRadius()
    last = torch.zeros(12, dtype=torch.double)
    last[-1] = 1.0
    assert rule.of(CONTEXTS, last) == rule.of(CONTEXTS[-1:])


def test_a_weighted_density_counts_repeats() -> None:
    # An observation of weight 1/2 is two of weight 1/4.
    points = torch.tensor([[0.2], [0.7], [0.4]], dtype=torch.double)
    once = ContextSet(points, torch.tensor([2.0, 1.0, 1.0], dtype=torch.double))
    twice = points[[0, 0, 1, 2]]
    h = 0.05
    a = ContextSet.kernel_density(once, 4096, UNIT, bandwidth=h, seed=0)
    b = ContextSet.kernel_density(twice, 4096, UNIT, bandwidth=h, seed=0)
    assert torch.allclose(a.points, b.points)
    equal = torch.full((4,), 0.25, dtype=torch.double)
    assert torch.allclose(weighted_variance(twice, equal), twice.var(0))


@pytest.mark.parametrize("half_life", [0, -1.0, math.inf, math.nan, "3", True])
def test_bad_half_lives(half_life: Any) -> None:
    for name in ("wdrbo", "random", "phased_gp_us"):
        with pytest.raises(InputDataError, match="`half_life`"):
            make(name, half_life=half_life)
    with pytest.raises(InputDataError, match="`half_life`"):
        ContextSet.empirical(CONTEXTS, half_life)
