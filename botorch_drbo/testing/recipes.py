"""Contract tests for recipes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
)
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import ConstraintData, History, SearchSpace
from botorch_drbo.recipes import Recipe, recipe_from_dict
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.testing.fixtures import (
    run_for_each,
)


@dataclass(frozen=True)
class RecipeCase:
    r"""One recipe of a contract.

    Args:
        name: Its name in messages of failing tests.
        recipe: The recipe with a short search, and registered in ``RECIPES`` under its
            name if it is no ``RobustRecipe``.
        apart: Whether decisions of one batch lie apart; not where they are drawn at
            random, or are to be repeated.
        keeps_reference: Whether a recommendation shows the contexts of ``reference``
            as they are given.

    Example:
        >>> from botorch_drbo.testing import RecipeCase
        >>> from botorch_drbo.recipes import make_recipe
        >>> options = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}
        >>> RecipeCase("mine", make_recipe("wdrbo", **options)).recipe.name
        'wdrbo'
    """

    name: str
    recipe: Recipe
    apart: bool = True
    keeps_reference: bool = True


def problem(
    *, t: int = 8, d_x: int = 2, d_c: int = 1, dtype: torch.dtype = torch.double
) -> tuple[History, SearchSpace]:
    r"""A bowl over boxes that are no unit cubes.

    Args:
        t: How many outcomes.
        d_x: Decisions.
        d_c: Contexts.
        dtype: Of all tensors.

    Returns:
        The data and the boxes.
    """
    bounds = torch.stack([torch.full((d_x,), -1.0), torch.full((d_x,), 3.0)]).to(dtype)
    context_bounds = torch.stack([torch.full((d_c,), 10.0), torch.full((d_c,), 12.0)])
    space = SearchSpace(bounds, context_bounds.to(dtype))
    generator = torch.Generator().manual_seed(t + 10 * d_c)
    X = -1.0 + 4.0 * torch.rand(t, d_x, generator=generator, dtype=torch.double)
    C = 10.0 + 2.0 * torch.rand(t, d_c, generator=generator, dtype=torch.double)
    Y = -(X - 1.0).square().sum(-1, keepdim=True) - (C - 11.0).sum(-1, keepdim=True)
    X, C, Y = X.to(dtype), C.to(dtype), Y.to(dtype)
    return History(X=X, C=C, Y=Y, contexts=C), space


def check_proposal(x: Tensor, q: int, space: SearchSpace) -> None:
    """Assert that these are decisions of a space."""
    assert x.shape == (q, space.d_x)
    assert x.dtype == space.bounds.dtype
    assert not x.requires_grad
    assert (x >= space.bounds[0]).all() and (x <= space.bounds[1]).all()


def check_apart(x: Tensor) -> None:
    """No two decisions are within a hundredth of the range."""
    assert torch.cdist(x / 4.0, x / 4.0).fill_diagonal_(1.0).min() > 9e-3


def check_recommendation(best: Recommendation, space: SearchSpace) -> None:
    """Assert that a recommendation is well formed."""
    check_proposal(best.x.unsqueeze(0), 1, space)
    assert best.worst_case_weights.shape == (best.context_set.num_points,)
    assert best.worst_case_weights.min() >= 0
    assert best.worst_case_weights.sum().item() == pytest.approx(1.0, abs=1e-5)
    assert best.worst_case_value <= best.expected_value + 1e-5
    assert all(
        np.isfinite(value)
        for value in (best.objective, best.expected_value, best.worst_case_value)
    )
    assert best.context_set.points.dtype == space.bounds.dtype


class RecipeContract:
    r"""The tests of a recipe: subclass it, and list yours in ``cases``.

    Proposals and recommendations are well formed, a seed decides all that is drawn,
    batches and pending decisions differ, references and contexts without outcome count,
    storing, degenerate data, bad arguments and options.

    Example:
        >>> from botorch_drbo.testing import RecipeCase, RecipeContract
        >>> class TestMyRecipes(RecipeContract):
        ...     cases: list[RecipeCase] = []  # your cases
    """

    cases: ClassVar[Sequence[RecipeCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """
        run_for_each(
            metafunc,
            case=self.cases,
            single_case=[case for case in self.cases if not case.recipe.may_repeat],
            apart_case=[case for case in self.cases if case.apart],
            reference_case=[case for case in self.cases if case.keeps_reference],
        )

    @pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
    @pytest.mark.parametrize(
        "kind",
        [
            {"d_c": 2},
            {"d_x": 1, "dtype": torch.float32},
            {"t": 1, "d_c": 2, "dtype": torch.float32},
        ],
        ids=str,
    )
    def test_proposals_and_recommendations_are_well_formed(
        self, case: RecipeCase, kind: dict[str, Any]
    ) -> None:
        """Shapes, dtype, bounds, weights; also for one outcome and for float32."""
        history, space = problem(**kind)
        check_proposal(case.recipe.propose(history, space), 1, space)
        check_recommendation(case.recipe.recommend(history, space), space)

    def test_seed_decides_everything_and_nothing_leaks(self, case: RecipeCase) -> None:
        """Nor does the caller's random state change."""
        history, space = problem()
        recipe = case.recipe
        torch_state = torch.random.get_rng_state()
        numpy_state = pickle.dumps(np.random.get_state())
        first = recipe.propose(history, space, q=2, seed=3)
        torch.random.manual_seed(99)
        assert torch.equal(first, recipe.propose(history, space, q=2, seed=3))
        torch.random.set_rng_state(torch_state)
        check_proposal(first, 2, space)
        best = recipe.recommend(history, space, seed=3)
        check_recommendation(best, space)
        assert torch.equal(torch.random.get_rng_state(), torch_state)
        assert pickle.dumps(np.random.get_state()) == numpy_state
        again = recipe.recommend(history, space, seed=3)
        assert torch.equal(best.x, again.x)
        assert best.worst_case_value == again.worst_case_value

    def test_q_and_pending_decisions_are_all_different(self, case: RecipeCase) -> None:
        """And no pending ones is the same as an empty tensor of them."""
        history, space = problem()
        recipe = case.recipe
        alone = recipe.propose(history, space, seed=1)
        # The decision that it would propose is pending, and another one.
        pending = torch.cat([alone, history.X[:1]])
        x = recipe.propose(history, space, q=3, X_pending=pending, seed=1)
        check_proposal(x, 3, space)
        check_apart(torch.cat([x, pending]))
        empty = recipe.propose(history, space, X_pending=history.X[:0], seed=1)
        assert torch.equal(empty, alone)

    def test_an_optimum_in_a_corner_is_not_asked_twice(
        self, single_case: RecipeCase
    ) -> None:
        """A batch has different decisions, however certain the best is."""
        # Steep and nearly certain: knowing that a decision is pending hardly moves the
        # maximum of the acquisition function, which sits in the corner of the box.
        _, space = problem(d_x=1)
        X = torch.linspace(-1.0, 3.0, 12, dtype=torch.double).unsqueeze(-1)
        C = torch.linspace(10.0, 12.0, 12, dtype=torch.double).unsqueeze(-1).flip(0)
        history = History(X=X, C=C, Y=100.0 * X, contexts=C)
        check_apart(single_case.recipe.propose(history, space, q=4))

    def test_decisions_in_parallel_are_no_replicates(
        self, apart_case: RecipeCase
    ) -> None:
        """The same where there is hardly a bonus left."""
        # Smooth, seen 40 times and nearly certain: there is hardly a bonus left.
        history, space = problem(t=40, d_x=1)
        x = apart_case.recipe.propose(history, space, q=4, seed=2)
        check_proposal(x, 4, space)
        check_apart(x)  # of a side

    @pytest.mark.parametrize(
        ("reference", "error"),
        [
            (ContextSet(torch.eye(4)[:, :2]), BotorchTensorDimensionError),
            (ContextSet(torch.eye(4)[:, :1]), InputDataError),  # outside [10, 12]
        ],
        ids=["columns", "outside"],
    )
    def test_reference_that_does_not_fit(
        self, case: RecipeCase, reference: ContextSet, error: type[Exception]
    ) -> None:
        """Columns, bounds."""
        history, space = problem()
        with pytest.raises(error, match="context_bounds"):
            case.recipe.with_options(reference=reference).recommend(history, space)

    def test_contexts_without_outcome_count(self, case: RecipeCase) -> None:
        """They belong to the distribution."""
        history, space = problem()
        late = torch.tensor([[11.9], [11.95], [11.99]], dtype=torch.double)
        more = History(
            X=history.X,
            C=history.C,
            Y=history.Y,
            contexts=torch.cat([history.contexts, late]),
        )
        before = case.recipe.recommend(history, space).context_set
        after = case.recipe.recommend(more, space).context_set
        assert after.mean.item() > before.mean.item()

    def test_constant_outcomes_and_repeated_trials(self, case: RecipeCase) -> None:
        """Nothing to learn is no error."""
        history, space = problem()
        same = torch.ones(6, 1, dtype=torch.double)
        X, C = history.X[:1].repeat(6, 1), history.C[:1].repeat(6, 1)
        x = case.recipe.propose(History(X=X, C=C, Y=same, contexts=C), space)
        check_proposal(x, 1, space)

    def test_survives_json(self, case: RecipeCase) -> None:
        """And proposes the same then."""
        history, space = problem()
        recipe = case.recipe.with_options(
            reference=ContextSet(10.0 + torch.rand(3, 1).double())
        )
        stored = json.loads(json.dumps(recipe.to_dict(), allow_nan=False))
        again = recipe_from_dict(stored)
        assert type(again) is type(recipe)
        assert again.to_dict() == recipe.to_dict()
        assert torch.equal(
            recipe.propose(history, space), again.propose(history, space)
        )

    def test_no_data(self, case: RecipeCase) -> None:
        """An error says so, unless the recipe needs none."""
        history, space = problem()
        nothing = History(
            X=history.X[:0], C=history.C[:0], Y=history.Y[:0], contexts=history.C[:0]
        )
        recipe = case.recipe
        if recipe.needs_data:
            with pytest.raises(InputDataError, match="num_initial"):
                recipe.propose(nothing, space)
        else:
            check_proposal(recipe.propose(nothing, space), 1, space)
        with pytest.raises(InputDataError, match="no outcome"):
            recipe.recommend(nothing, space)

    @pytest.mark.parametrize("q", [0, -1, 1.0, True, "1"])
    def test_bad_q(self, case: RecipeCase, q: object) -> None:
        """A positive integer it must be."""
        history, space = problem()
        options: dict[str, Any] = {"q": q}
        with pytest.raises(InputDataError, match="`q`"):
            case.recipe.propose(history, space, **options)

    def test_its_class_variables_say_what_it_does(self, case: RecipeCase) -> None:
        """Others rely on them: a constraint that is ignored would be a broken promise.

        ``needs_data`` has a test of its own.
        """
        history, space = problem()
        recipe = case.recipe
        if recipe.takes_constraints:
            free = recipe.propose(history, space)
            # It is infeasible, half of the box is not.
            room = (free[0, 0] - 1.0).sign() * (1.0 - history.X[:, :1])
            data = ConstraintData(X=history.X, C=history.C, G=room)
            limited = replace(history, constraints=data)
            best = recipe.recommend(limited, space)
            assert best.feasibility is not None, "takes_constraints"
            if recipe.needs_data:  # else it looks at nothing that was measured
                kept = recipe.propose(limited, space)
                assert not torch.equal(kept, free), "takes_constraints"
        if not recipe.uses_contexts:
            elsewhere = replace(history, contexts=torch.full_like(history.C, 11.9))
            first, other = (recipe.propose(h, space) for h in (history, elsewhere))
            assert torch.equal(first, other), "uses_contexts"

    def test_history_of_another_space(self, case: RecipeCase) -> None:
        """Refused."""
        history, _ = problem(d_c=1)
        _, space = problem(d_c=2)
        with pytest.raises(BotorchTensorDimensionError, match="context columns"):
            case.recipe.propose(history, space)

    @pytest.mark.parametrize(
        "options",
        [
            {"num_restarts": 0},
            {"raw_samples": 2.5},
            {"num_restarts": 20, "raw_samples": 10},
            {"reference": torch.eye(3)[:, :1]},
        ],
        ids=str,
    )
    def test_bad_options(self, case: RecipeCase, options: dict[str, Any]) -> None:
        """Each error names the option."""
        with pytest.raises(InputDataError, match=next(iter(options))):
            case.recipe.with_options(**options)

    def test_reference_is_used(self, reference_case: RecipeCase) -> None:
        """With its contexts and its weights, whatever its dtype."""
        history, space = problem(d_c=2)
        points = 10.5 + torch.tensor(
            [[0.1, 0.9], [0.4, 0.2], [0.8, 0.7], [0.3, 0.5], [0.6, 0.05]]
        )
        reference = ContextSet(points, torch.arange(1.0, 6.0))  # float32
        recipe = reference_case.recipe.with_options(reference=reference)
        check_proposal(recipe.propose(history, space), 1, space)
        best = recipe.recommend(history, space)
        carried = best.context_set.weights > 0  # some recipes list more, without mass
        assert torch.equal(best.context_set.points[carried], points.double())
        weights = best.context_set.weights[carried].float()
        torch.testing.assert_close(weights, reference.weights)


# Fewer of everything than by default, so that a test takes no time.
