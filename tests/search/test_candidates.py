"""Decisions from a list: every recipe chooses rows, and the best ones."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.search.candidates import (
    best_of_many,
    best_row,
    best_rows,
    check_candidates,
    score,
)
from tests.products import each_recipe, one_model

SPACE = SearchSpace(
    bounds=torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double),
    context_bounds=torch.tensor([[10.0], [12.0]], dtype=torch.double),
)
SMALL = {"num_restarts": 1, "raw_samples": 4, "max_iterations": 2}
UNREPEATING = sorted(key for key, kind in RECIPES.items() if not kind.may_repeat)
# What a recipe has to be told about the problem here: it has no default for it.
NEEDED = {"regret_balancing": {"reward_range": (-1.0, 1.0)}}


def small(name: str) -> Recipe:
    return make_recipe(name, **SMALL, **one_model(name), **NEEDED.get(name, {}))


def history(t: int = 8) -> History:
    generator = torch.Generator().manual_seed(3)
    unit = torch.rand(t, 3, generator=generator, dtype=torch.double)
    X, C = (
        unit[:, :2] * torch.tensor([4.0, 1.0]) + SPACE.bounds[0],
        10 + 2 * unit[:, 2:],
    )
    return History(X=X, C=C, Y=(X.sum(-1, True) * (C - 11)).sin(), contexts=C)


def listed(m: int = 40) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    unit = torch.rand(m, 2, generator=generator, dtype=torch.double)
    return SPACE.bounds[0] + unit * (SPACE.bounds[1] - SPACE.bounds[0])


def rows_of(x: Tensor, candidates: Tensor) -> list[int]:
    """The place of each row in the list; -1 where it is none of it, to the bit."""
    equal = (x.unsqueeze(1) == candidates).all(-1)
    return [int(row.nonzero()[0]) if row.any() else -1 for row in equal]


@pytest.fixture(params=each_recipe())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_rows_of_the_list_different_and_not_pending(name: str) -> None:
    recipe, candidates = small(name), listed(12)
    first = recipe.propose(history(), SPACE, q=3, candidates=candidates, seed=5)
    indices = rows_of(first, candidates)
    assert -1 not in indices and len(set(indices)) == 3
    one = recipe.propose(history(), SPACE, candidates=candidates, seed=5)
    assert torch.equal(one, first[:1])
    more = recipe.propose(
        history(), SPACE, q=2, X_pending=first, candidates=candidates, seed=5
    )
    assert len(set(indices + rows_of(more, candidates)) - {-1}) == 5


@pytest.mark.parametrize("name", UNREPEATING)
def test_pending_rows_come_last(name: str) -> None:
    recipe, candidates = small(name), listed(4)
    pending = candidates[[0, 2, 3]]
    x = recipe.propose(history(), SPACE, q=4, X_pending=pending, candidates=candidates)
    assert rows_of(x[:1], candidates) == [1]
    assert sorted(rows_of(x, candidates)) == [0, 1, 2, 3]


def test_recommendation_is_a_row(name: str) -> None:
    recipe, candidates = small(name), listed(8)
    best = recipe.recommend(history(), SPACE, candidates=candidates)
    (index,) = rows_of(best.x.unsqueeze(0), candidates)
    assert index >= 0
    everywhere = [
        recipe.recommend(history(), SPACE, candidates=row).objective
        for row in candidates.split(1)[:2]
    ]
    assert best.objective >= max(everywhere) - 1e-9


@pytest.mark.parametrize(
    "name",
    [key for key, kind in RECIPES.items() if isinstance(kind, ModelBasedRecipe)],
)
def test_best_row_of_the_acquisition_function(name: str) -> None:
    recipe, candidates = small(name), listed(12)
    assert isinstance(recipe, ModelBasedRecipe)
    x = recipe.propose(history(), SPACE, candidates=candidates, seed=7)
    model = recipe.fitted(history(), SPACE, uses_contexts=recipe.uses_contexts)
    torch.manual_seed(7)
    acqf = recipe.exploring(recipe.state_of(model, history(), SPACE, 7), None)
    values = torch.stack([acqf(row.reshape(1, 1, 2)).squeeze() for row in candidates])
    assert rows_of(x, candidates) == [int(values.argmax())]


def test_long_lists_are_scored_in_parts() -> None:
    sizes = []

    def acqf(X: Tensor) -> Tensor:
        sizes.append(len(X))
        assert not torch.is_grad_enabled()
        return X.sum((-1, -2))

    rows = listed(2500)
    assert torch.equal(score(acqf, rows), rows.sum(-1))  # pyright: ignore
    assert max(sizes) <= 1024 and sum(sizes) == 2500


def test_best_rows_by_hand() -> None:
    rows = torch.tensor([[1.0], [2.0], [2.0], [3.0], [4.0]])
    values = torch.tensor([0.0, 9.0, 8.0, -torch.inf, 5.0])
    found = best_rows(rows, values, 4, torch.tensor([[2.0], [7.0]]))
    assert found.flatten().tolist() == [4.0, 1.0, 3.0, 2.0]
    assert best_rows(rows, values, 2, rows[:0]).flatten().tolist() == [2.0, 4.0]


def test_float32_list_in_a_float64_space_and_back() -> None:
    recipe = make_recipe("random")
    wide = recipe.propose(history(), SPACE, q=2, candidates=listed().float())
    assert wide.dtype == torch.double
    assert -1 not in rows_of(wide.float(), listed().float())
    narrow = SearchSpace(SPACE.bounds.float(), SPACE.context_bounds.float())
    assert check_candidates(listed(), narrow).dtype == torch.float


@pytest.mark.parametrize(
    ("candidates", "error", "text"),
    [
        (torch.empty(0, 2).double(), InputDataError, "empty"),
        (torch.tensor([[0.0, 1.5]]).double(), InputDataError, "outside `bounds`"),
        (torch.tensor([[0.0, torch.nan]]).double(), InputDataError, "NaN"),
        (torch.zeros(3, 1).double(), BotorchTensorDimensionError, "2 columns"),
        (torch.zeros(2).double(), BotorchTensorDimensionError, "n x d"),
        (torch.zeros(2, 2).long(), InputDataError, "floating"),
        ([[0.0, 0.5]], InputDataError, "Tensor"),
    ],
)
def test_bad_lists(name: str, candidates, error: type, text: str) -> None:
    recipe = small(name)
    with pytest.raises(error, match=text):
        recipe.propose(history(), SPACE, candidates=candidates)
    with pytest.raises(error, match=text):
        recipe.recommend(history(), SPACE, candidates=candidates)


@pytest.mark.parametrize("name", UNREPEATING)
@pytest.mark.parametrize(
    ("candidates", "q", "text"),
    [
        (listed(3), 4, "3 different rows"),
        (torch.tensor([[0.0, 0.5], [-0.0, 0.5]]), 2, "1 different"),
    ],
)
def test_lists_that_are_too_short(name: str, candidates, q: int, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        small(name).propose(history(), SPACE, q=q, candidates=candidates)


def test_a_recipe_that_may_repeat_needs_one_row() -> None:
    recipe, row = small("phased_gp_us"), listed(1)
    x = recipe.propose(history(7), SPACE, q=8, X_pending=None, candidates=row)
    assert torch.equal(x, row.expand(8, -1))


def test_a_row_is_pending_in_all_of_its_columns() -> None:
    listed = torch.tensor([[0.0, 1.0], [1.0, 2.0]])
    values, pending = torch.tensor([2.0, 1.0]), torch.tensor([[0.0, 3.0]])
    assert torch.equal(best_row(listed, values, pending), listed[:1])


def test_rows_off_by_rounding_are_moved_to_what_they_mean() -> None:
    unit = torch.tensor([[0.0, 0.0], [1.0, 3.0]], dtype=torch.double)
    space = SearchSpace(unit, unit[:, :1], discrete={1: (0.0, 1.0, 3.0)})
    listed = torch.tensor([[1.0 + 2e-16, 1.0 - 2e-16], [-1e-17, 3.0]]).double()
    found = check_candidates(listed, space)
    assert found.tolist() == [[1.0, 1.0], [0.0, 3.0]]


@pytest.mark.parametrize("name", ["wdrbo", "drbo_mmd", "drbo_kde", "wdrbo_exact"])
def test_the_best_of_many_is_found_by_the_ranking(name: str) -> None:
    known, X = history(100), listed(150)
    recipe = make_recipe(name, surrogate="botorch")
    assert isinstance(recipe, ModelBasedRecipe)
    model = recipe.fitted(known, SPACE, uses_contexts=True)
    acqf = recipe.exploiting(recipe.state_of(model, known, SPACE, 0))
    values = score(acqf, X)
    assert values.argmax() >= 5  # not among the few
    torch.testing.assert_close(best_of_many(acqf, X), X[values.argmax()])
    few = X[:5]
    torch.testing.assert_close(best_of_many(acqf, few), few[values[:5].argmax()])
    looked_at: list[int] = []
    forward = acqf.forward
    acqf.forward = lambda X: (looked_at.append(len(X)), forward(X))[1]  # pyright: ignore
    best_of_many(acqf, X)
    assert sum(looked_at) == 16
