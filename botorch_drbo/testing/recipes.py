"""Contract tests for recipes, policies and adversaries."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries import ADVERSARIES, Adversary, FittedRound
from botorch_drbo.codec import decode, encode
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies import Policy
from botorch_drbo.posterior.exact import with_inducing_points
from botorch_drbo.problem import ConstraintData, History, SearchSpace
from botorch_drbo.recipes import Recipe, RobustRecipe, make_recipe, recipe_from_dict
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate import (
    SURROGATES,
    EnsembleOf,
    FixedHyperparameters,
    ModelData,
)
from botorch_drbo.testing.parametrize import run_for_each

PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-2)
SMALL: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 4}
"""Known hyper-parameters and a short search: what is tested is not how good it is."""


def small_problem(**kinds: Any) -> tuple[History, SearchSpace]:
    r"""Eight trials, and one context whose outcome is still out.

    One decision in [-1, 3]; contexts in [10, 12] x [0, 2].

    Args:
        kinds: Options of ``SearchSpace``.

    Returns:
        The data and the space.
    """
    bounds = torch.tensor([[-1.0], [3.0]], dtype=torch.double)
    context_bounds = torch.tensor([[10.0, 0.0], [12.0, 2.0]], dtype=torch.double)
    space = SearchSpace(bounds, context_bounds, **kinds)
    unit = sobol(9, 3, seed=3)
    X = (-1.0 + 4.0 * unit[:8, :1]).double()
    contexts = context_bounds[0] + 2.0 * unit[:, 1:].double()
    contexts = space.with_known(space.snap_contexts(contexts))
    C = contexts[:8]
    Y = -(X - 1.0).square() - (X - 1.0) * (C - context_bounds[0]).sum(-1, keepdim=True)
    return History(X=X, C=C, Y=Y, contexts=contexts), space


def nothing_fitted(
    policy: Policy, prior: FixedHyperparameters = PRIOR
) -> dict[str, Any]:
    """Options of a recipe with which no hyper-parameters are fitted."""
    if not policy.needs_ensemble:
        return {"hyperparameters": prior}
    other = replace(prior, lengthscale=0.6)
    return {"surrogate": EnsembleOf([prior, other])}


def state_against(
    adversary: Adversary,
    *,
    seed: int = 0,
    joint: bool = True,
    prior: FixedHyperparameters = PRIOR,
    **kinds: Any,
) -> FittedRound:
    """The round of ``small_problem``, as an adversary sees it."""
    history, space = small_problem(**kinds)
    recipe = RobustRecipe(adversary=adversary, hyperparameters=prior)
    model = recipe.fitted(history, space, uses_contexts=joint)
    return recipe.state_of(model, history, space, seed)


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


def check_recommendation(best: Recommendation, space: SearchSpace) -> None:
    """Assert that a recommendation is well formed."""
    check_proposal(best.x.unsqueeze(0), 1, space)
    n = best.context_set.num_points
    assert best.worst_case_weights.shape == (n,)
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
        recipe = case.recipe
        check_proposal(recipe.propose(history, space), 1, space)
        check_recommendation(recipe.recommend(history, space), space)

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
        gaps = torch.cdist(torch.cat([x, pending]) / 4.0, torch.cat([x, pending]) / 4.0)
        gaps.fill_diagonal_(1.0)
        assert gaps.min() > 9e-3
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
        x = single_case.recipe.propose(history, space, q=4)
        gaps = torch.cdist(x / 4.0, x / 4.0).fill_diagonal_(1.0)
        assert gaps.min() > 9e-3

    def test_decisions_in_parallel_are_no_replicates(
        self, apart_case: RecipeCase
    ) -> None:
        """The same where there is hardly a bonus left."""
        # Smooth, seen 40 times and nearly certain: there is hardly a bonus left.
        history, space = problem(t=40, d_x=1)
        x = apart_case.recipe.propose(history, space, q=4, seed=2)
        check_proposal(x, 4, space)
        gaps = torch.cdist(x / 4.0, x / 4.0).fill_diagonal_(1.0)
        assert gaps.min() > 9e-3  # of a side

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
            side = (free[0, 0] - 1.0).sign()  # it is infeasible, half of the box is not
            room = side * (1.0 - history.X[:, :1])
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
FEWER = {"num_contexts": 16, "num_outside": 8, "num_features": 32, "num_paths": 4}
Part = TypeVar("Part", Adversary, Policy)


def smaller(part: Part) -> Part:
    """The same part with fewer contexts, features and paths."""
    names = {field.name for field in fields(part)}
    return replace(part, **{key: n for key, n in FEWER.items() if key in names})


def _all_adversaries() -> dict[str, Adversary]:
    return {name: smaller(adversary) for name, adversary in ADVERSARIES.items()}


@dataclass(frozen=True)
class PolicyCase:
    r"""One policy of a contract.

    Args:
        name: Its name in messages of failing tests.
        policy: The policy, with few features and paths so that tests are fast.
        adversaries: The names of the adversaries to test it with; by default all
            registered ones.
        refuses: The names of the adversaries that it does not support.
        draws: Whether it draws something new for each decision, so that a pending
            decision need not lower the value beside it.

    Example:
        >>> from botorch_drbo.testing import PolicyCase
        >>> from botorch_drbo.policies.bounds import ConfidenceBound
        >>> case = PolicyCase("careful", ConfidenceBound(beta=1.0))
        >>> case.against("empirical").options["beta"]
        1.0
    """

    name: str
    policy: Policy
    adversaries: Mapping[str, Adversary] = field(default_factory=_all_adversaries)
    refuses: Collection[str] = ()
    draws: bool = False

    def against(self, adversary: str) -> RobustRecipe:
        r"""The recipe of the policy and an adversary, with a short search.

        Args:
            adversary: A name in ``adversaries``.
        """
        return RobustRecipe(
            adversary=self.adversaries[adversary],
            policy=self.policy,
            **nothing_fitted(self.policy),
            **SMALL,
        )

    @property
    def taken(self) -> list[str]:
        """The names of the adversaries that it takes."""
        return [name for name in self.adversaries if name not in self.refuses]


@dataclass(frozen=True)
class _Pair:
    case: PolicyCase
    adversary: str

    @property
    def name(self) -> str:
        return f"{self.adversary}-{self.case.name}"

    @property
    def recipe(self) -> RobustRecipe:
        return self.case.against(self.adversary)


class PolicyContract:
    r"""The tests of a policy: subclass it, and list yours in ``cases``.

    Decisions inside the bounds, the same from the same seed, of a list where there is
    one; recommendations whose worst case is no better than the expectation; pending
    decisions, storing, refusals in words, options that are explained.

    Example:
        >>> from botorch_drbo.testing import PolicyCase, PolicyContract
        >>> from botorch_drbo.policies.bounds import ConfidenceBound
        >>> class TestMyPolicies(PolicyContract):
        ...     cases = [PolicyCase("confidence_bound", ConfidenceBound())]
    """

    cases: ClassVar[Sequence[PolicyCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case, and for each adversary that it takes.

        Args:
            metafunc: A test of the contract.
        """
        cases = self.cases
        run_for_each(
            metafunc,
            case=cases,
            pair=[_Pair(case, name) for case in cases for name in case.taken],
            refused=[_Pair(case, name) for case in cases for name in case.refuses],
        )

    def test_decisions_lie_inside_and_follow_the_seed(self, pair: _Pair) -> None:
        """And are different ones; with a list, of that list."""
        history, space = small_problem()
        recipe = pair.recipe
        x = recipe.propose(history, space, q=2, seed=3)
        assert x.shape == (2, 1) and x.dtype == torch.double and not x.requires_grad
        assert (x >= space.bounds[0]).all() and (x <= space.bounds[1]).all()
        assert (x[0] - x[1]).abs() > 9e-3 * 4.0
        assert torch.equal(x, recipe.propose(history, space, q=2, seed=3))
        listed = torch.tensor([[-0.5], [0.5], [2.0]], dtype=torch.double)
        chosen = recipe.propose(history, space, candidates=listed)
        assert chosen.item() in listed.flatten().tolist()

    def test_recommendations_promise_a_worst_case(self, pair: _Pair) -> None:
        """No better than the expectation, with its weights on the simplex."""
        history, space = small_problem()
        best = pair.recipe.recommend(history, space)
        assert space.bounds[0] <= best.x <= space.bounds[1]
        assert best.worst_case_value <= best.expected_value + 1e-5
        weights = best.worst_case_weights
        assert weights.min() >= 0
        assert weights.sum().item() == pytest.approx(1.0, abs=1e-5)

    def test_a_product_is_stored_and_restored(self, pair: _Pair) -> None:
        """Through JSON."""
        adversary, policy = pair.case.adversaries[pair.adversary], pair.case.policy
        recipe = make_recipe(
            adversary=adversary, policy=policy, **nothing_fitted(policy)
        )
        assert isinstance(recipe, RobustRecipe)
        assert type(recipe.adversary) is type(adversary)
        assert type(recipe.policy) is type(policy)
        stored = json.loads(json.dumps(recipe.to_dict(), allow_nan=False))
        assert recipe_from_dict(stored).to_dict() == recipe.to_dict()

    def test_a_pair_that_makes_no_sense_is_refused(self, refused: _Pair) -> None:
        """When it is made, in words that name the adversary."""
        adversary = refused.case.adversaries[refused.adversary]
        with pytest.raises(UnsupportedError, match=type(adversary).__name__):
            make_recipe(adversary=adversary, policy=refused.case.policy)

    def test_it_is_stored_and_restored(self, case: PolicyCase) -> None:
        """The policy alone."""
        stored = encode(case.policy, "policy")
        text = json.dumps(stored, allow_nan=False)
        again = decode(json.loads(text), Policy, "policy")
        assert type(again) is type(case.policy)
        assert encode(again, "policy") == stored

    def test_pending_decisions_have_a_say(self, case: PolicyCase) -> None:
        """The best decision has a lower value once it is pending."""
        history, space = small_problem()
        recipe = case.against(case.taken[0])
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        state = recipe.state_of(model, history, space, 0)
        x = torch.linspace(-1.0, 3.0, 41, dtype=torch.double).reshape(-1, 1, 1)
        free = recipe.exploring(state, None)(x)
        with_pending = recipe.exploring(state, x[free.argmax()])(x)
        assert free.shape == with_pending.shape == (41,)
        if case.draws:
            assert not torch.allclose(free, with_pending)
        else:
            assert with_pending[free.argmax()] < free.max() - 1e-3

    def test_pending_decisions_may_come_later_if_it_says_so(
        self, case: PolicyCase
    ) -> None:
        """By ``set_X_pending``, with the same values."""
        if not case.policy.conditions_in_place:
            return
        history, space = small_problem()
        recipe = case.against(case.taken[0])
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        state = recipe.state_of(model, history, space, 0)
        x = torch.linspace(-1.0, 3.0, 9, dtype=torch.double).reshape(-1, 1, 1)
        acqf = recipe.exploring(state, None)
        acqf(x)
        for pending in (x[2], x[:5, 0]):
            acqf.set_X_pending(pending)
            at_once = recipe.exploring(state, pending)
            torch.testing.assert_close(acqf(x), at_once(x), rtol=1e-6, atol=1e-8)

    def test_exploiting_does_not_explore(self, case: PolicyCase) -> None:
        """Of the posterior mean: more doubt about it leaves the objective as it is."""
        history, space = small_problem()
        values = []
        for scale in (1.0, 9.0):  # of both variances: the same mean, 3 times sigma
            noise = scale * PRIOR.noise_variance
            prior = replace(PRIOR, noise_variance=noise, outputscale=scale)
            recipe = case.against(case.taken[0]).with_options(
                **nothing_fitted(case.policy, prior)
            )
            model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
            state = recipe.state_of(model, history, space, 0)
            x = torch.linspace(-0.9, 2.9, 5, dtype=torch.double).reshape(-1, 1, 1)
            values.append(recipe.exploiting(state)(x))
        torch.testing.assert_close(*values, rtol=1e-6, atol=1e-8)

    def test_it_needs_an_ensemble_if_it_says_so(self, case: PolicyCase) -> None:
        """One model is refused then, and taken otherwise."""
        recipe = case.against(case.taken[0])
        history, space = small_problem()
        one = ModelData(
            space.model_inputs(history.X, history.C)
            if recipe.uses_contexts
            else history.X,
            history.Y,
            space.model_bounds if recipe.uses_contexts else space.bounds,
        )
        state = recipe.state_of(PRIOR.fit(one), history, space, 0)
        try:
            recipe.exploring(state, None)
            takes_one = True
        except UnsupportedError:
            takes_one = False
        assert case.policy.needs_ensemble != takes_one, "needs_ensemble"
        name = case.policy.default_surrogate
        if name is not None:
            made = SURROGATES[name]
            assert made.is_ensemble or not case.policy.needs_ensemble, "needs_ensemble"

    def test_it_maximises_the_worst_case_if_it_says_so(self, pair: _Pair) -> None:
        """What is exploited is then the worst case of the posterior mean."""
        policy, recipe = pair.case.policy, pair.recipe
        history, space = small_problem()
        x = torch.linspace(-0.9, 2.9, 9, dtype=torch.double).reshape(-1, 1, 1)
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        found = recipe.exploiting(recipe.state_of(model, history, space, 0))(x)
        model = recipe.fitted(history, space, uses_contexts=True)
        searched = recipe.adversary.search_problem(
            recipe.state_of(model, history, space, 0)
        )
        worst = DistributionallyRobustUCB(
            model,
            0.0,
            searched.contexts,
            UncertaintyObjective(searched.ambiguity_set),
            outside_contexts=searched.outside,
        )(x)
        same = bool(((found - worst).abs() <= 1e-6).all())
        assert policy.maximises_worst_case == same, "maximises_worst_case"

    def test_it_ranks_by_moments_if_it_says_so(self, case: PolicyCase) -> None:
        """Then inducing points at nearly all rows give nearly the same values."""
        if not case.policy.ranks_by_moments:
            return
        history, space = small_problem()
        recipe = case.against(case.taken[0])
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        x = torch.linspace(-0.9, 2.9, 9, dtype=torch.double).reshape(-1, 1, 1)
        few = with_inducing_points(model, history.t - 1)
        exact, again, nearly = (
            recipe.exploring(recipe.state_of(one, history, space, seed), None)(x)
            for one, seed in ((model, 0), (model, 1), (few, 0))
        )
        torch.testing.assert_close(exact, again, msg="ranks_by_moments")  # no draws
        alike = torch.corrcoef(torch.stack([exact, nearly]))[0, 1]
        assert alike > 0.99, "ranks_by_moments"

    def test_categories_have_no_order(self, case: PolicyCase) -> None:
        """What depends on how they are numbered says so in ``context_order``."""
        if case.policy.context_order is not None or not case.policy.uses_contexts:
            return
        history, space = small_problem(context_categories={1: 3})
        x = torch.linspace(-0.9, 2.9, 9, dtype=torch.double).reshape(-1, 1, 1)
        feared = [n for n, a in case.adversaries.items() if not a.believes_reference]
        taken = [n for n in case.taken if n in feared] or case.taken
        recipe, values = case.against(taken[0]), []
        for shift in (0.0, 1.0):  # 0, 1, 2, or the same under the numbers 1, 2, 0
            C, contexts = history.C.clone(), history.contexts.clone()
            for rows in (C, contexts):
                rows[:, 1] = (rows[:, 1] + shift) % 3.0
            renamed = replace(history, C=C, contexts=contexts)
            model = recipe.fitted(renamed, space, uses_contexts=True)
            state = recipe.state_of(model, renamed, space, 0)
            values.append(recipe.exploiting(state)(x))
        torch.testing.assert_close(*values, msg="context_order")
        if recipe.adversary.believes_reference:
            return
        # Of an outcome that the category alone decides, another one is a worst case.
        Y = history.C[:, 1:].square()
        prior = replace(PRIOR, lengthscale=(1e3, 1e3, 0.4))
        recipe = recipe.with_options(**nothing_fitted(case.policy, prior))
        history = replace(history, Y=Y)
        model = recipe.fitted(history, space, uses_contexts=True)
        state = recipe.state_of(model, history, space, 0)
        expected = DistributionallyRobustUCB(
            model, 0.0, state.contexts(), UncertaintyObjective.so()
        )
        assert (recipe.exploiting(state)(x) < expected(x) - 1e-3).all(), "context_order"

    def test_every_option_is_explained(self, case: PolicyCase) -> None:
        """In the docstring of the class: they are options of recipes."""
        documented = " ".join(kind.__doc__ or "" for kind in type(case.policy).__mro__)
        for option in fields(case.policy):
            assert f"{option.name}: " in documented, (
                f"{type(case.policy).__name__} does not say what `{option.name}` is: "
                f"write `{option.name}: ...` below `Args:` in its docstring."
            )


KNOWN = torch.tensor([10.5, math.nan], dtype=torch.double)
REFERENCE = ContextSet(
    torch.tensor([[10.0, 0.5], [11.5, 2.0], [11.0, 1.0]], dtype=torch.double),
    torch.tensor([0.5, 0.3, 0.2], dtype=torch.double),
)
FREQUENCIES = torch.tensor([[1.0, 2.0], [-1.0, 0.3], [3.0, -2.0]], dtype=torch.double)
KINDS: dict[str, dict[str, Any]] = {
    "boxes": {},
    "known": {"known_context": KNOWN},
    "integers": {"context_discrete": {1: (0.0, 1.0, 2.0)}},
}


@dataclass(frozen=True)
class AdversaryCase:
    r"""One adversary for the contract tests, and its properties.

    Args:
        name: Its name in messages of failing tests.
        adversary: The adversary, with few contexts so that tests are fast.
        draws: Whether its contexts depend on the seed.
        known_within: How far its contexts may lie from a known value, as those drawn
            from a density do.

    Example:
        >>> from botorch_drbo.testing import AdversaryCase
        >>> from botorch_drbo.adversaries.wasserstein import WassersteinBall
        >>> AdversaryCase("ball", WassersteinBall(num_candidates=16), draws=True).name
        'ball'
    """

    name: str
    adversary: Adversary
    draws: bool = False
    known_within: float = 0.0


def wavy_scores(contexts: Tensor) -> Tensor:
    """Scores whose worst contexts lie in different places.

    Shapes: ``contexts``: ``n x 2``, returns ``3 x n``.
    """
    return (FREQUENCIES @ contexts.mT).sin()


def check_contexts(contexts: ContextSet, low: Tensor, high: Tensor) -> None:
    """Assert that this is a distribution on contexts of a box."""
    assert contexts.points.dtype == contexts.weights.dtype == torch.double
    assert contexts.weights.min() >= 0
    assert contexts.weights.sum().item() == pytest.approx(1.0)
    assert (contexts.points >= low).all() and (contexts.points <= high).all()


class AdversaryContract:
    r"""The tests of an adversary: subclass it, and list yours in ``cases``.

    Well-formed contexts and weights for search and recommendation, no worst case above
    the expectation, seeds, references, known values, whole-numbered and categorical
    contexts, storing, options that are explained.

    Example:
        >>> from botorch_drbo.testing import AdversaryCase, AdversaryContract
        >>> from botorch_drbo.adversaries.empirical import Empirical
        >>> class TestMyAdversaries(AdversaryContract):
        ...     cases = [AdversaryCase("empirical", Empirical())]
    """

    cases: ClassVar[Sequence[AdversaryCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """
        run_for_each(metafunc, case=self.cases)

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_searched_is_well_formed(
        self, case: AdversaryCase, kind: str
    ) -> None:
        """Weights on the simplex, contexts inside, known and whole where they are."""
        adversary = case.adversary
        state = state_against(adversary, **KINDS[kind])
        listed = adversary.search_problem(state).listed()
        check_contexts(listed, *state.space.context_bounds)
        if kind == "known":
            away = (listed.points[:, 0] - 10.5).abs().max().item()
            assert away <= case.known_within
        if kind == "integers":
            assert torch.equal(listed.points[:, 1], listed.points[:, 1].round())

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_promised_is_well_formed(
        self, case: AdversaryCase, kind: str
    ) -> None:
        """The same of the worst case that a recommendation states."""
        adversary = case.adversary
        state = state_against(adversary, **KINDS[kind])
        for of_decision in (
            adversary.worst_case_problem(state),
            adversary.chance_constraint_problem(state),
        ):
            low, high = state.space.context_bounds
            check_contexts(of_decision.contexts, low, high)
            if of_decision.box is not None:
                support = state.space.context_support
                assert (of_decision.box[0] >= support[0]).all() and (
                    of_decision.box[1] <= support[1]
                ).all()
            scores = of_decision.contexts.points.sin().sum(-1)
            ball = of_decision.ball(of_decision.contexts.points)
            robust = ball.worst_case(scores, of_decision.contexts.weights)
            assert robust.weights.min() >= -1e-9
            assert robust.weights.sum().item() == pytest.approx(1.0, abs=1e-6)
            expectation = (of_decision.contexts.weights * scores).sum().item()
            assert (
                scores.min().item() - 1e-6 <= robust.value.item() <= expectation + 1e-6
            )

    def test_the_worst_case_of_the_search_is_no_better_than_the_expectation(
        self, case: AdversaryCase
    ) -> None:
        """The reference is plausible."""
        adversary = case.adversary
        found = adversary.search_problem(state_against(adversary))
        scores = found.contexts.points.cos().sum(-1)
        expectation = (found.contexts.weights * scores).sum()
        value = found.ambiguity_set.value(scores, found.contexts.weights)
        assert value <= expectation + 1e-6

    def test_its_class_variables_say_what_it_does(self, case: AdversaryCase) -> None:
        """Others rely on them: a wrong one gives wrong worst cases, or refusals."""
        adversary, state = case.adversary, state_against(case.adversary)
        assert adversary.radius_unit, "radius_unit"
        searched, promised = (
            adversary.search_problem(state),
            adversary.worst_case_problem(state),
        )
        listed = searched.listed()
        scores = wavy_scores(listed.points)  # s x n
        near, ball = searched.ambiguity_set, promised.ball(listed.points)
        if ball.has_radius:  # of a large one each worst case is the lowest score
            near, ball = near.with_radius(0.1), ball.with_radius(0.1)
        exact = ball.worst_case(scores, listed.weights).value
        within = scores[:, : searched.contexts.num_points]
        weights = searched.contexts.weights
        if searched.outside is not None:
            lowest = scores[:, len(weights) :].amin(-1, keepdim=True)
            within = torch.cat([within, lowest], dim=-1)
            weights = torch.cat([weights, weights.new_zeros(1)])
        found = near.value(within, weights)
        same = bool(((found - exact).abs() <= 1e-6).all())
        assert adversary.approximates != same, "approximates"
        alone = bool(((found - within @ weights).abs() <= 1e-9).all())
        assert adversary.believes_reference == alone, "believes_reference"
        others = state_against(adversary, prior=replace(PRIOR, lengthscale=0.9))
        even = torch.full_like(listed.weights, 1.0 / len(listed.weights))
        of_one, of_other = (
            small_problem.ball(listed.points).distance(listed.weights, even)
            for small_problem in (promised, adversary.worst_case_problem(others))
        )
        stays = bool(torch.equal(of_one, of_other))
        assert adversary.uses_model_kernel != stays, "uses_model_kernel"

    def test_categories_have_no_order(self, case: AdversaryCase) -> None:
        """What depends on how they are numbered says so in ``context_order``."""
        adversary = case.adversary
        if adversary.context_order is not None:
            return
        state = state_against(adversary, context_categories={1: 3})
        history = state.history
        # 0, 1, 2 become 1, 2, 0: the same categories under other numbers.
        renamed = history.contexts.clone()
        renamed[:, 1] = (renamed[:, 1] + 1.0) % 3.0
        twin = replace(state, history=replace(history, contexts=renamed))
        moments = []
        for one, shift in ((state, 1.0), (twin, 0.0)):
            contexts = adversary.worst_case_problem(one).contexts
            levels = torch.stack(
                [(contexts.points[:, 1] + shift) % 3.0 == k for k in range(3)]
            ).to(contexts.weights)
            assert (levels.sum(0) == 1.0).all(), "context_order"
            others = torch.stack([contexts.points[:, 0], contexts.points[:, 0] ** 2])
            ones = torch.ones_like(others[:1])
            features = torch.cat([ones, others]) * contexts.weights  # 3 x n
            moments.append(features @ levels.mT)
        torch.testing.assert_close(*moments, msg="context_order")

    def test_a_seed_decides_all_that_is_drawn(self, case: AdversaryCase) -> None:
        """The same seed, the same contexts."""
        adversary = case.adversary
        first, again, other = (
            adversary.search_problem(state_against(adversary, seed=seed)).listed()
            for seed in (3, 3, 4)
        )
        assert torch.equal(first.points, again.points)
        assert torch.equal(first.weights, again.weights)
        if case.draws:
            assert not torch.equal(first.points, other.points)

    def test_a_reference_stands_in_for_the_contexts_seen(
        self, case: AdversaryCase
    ) -> None:
        """With its weights."""
        adversary = case.adversary
        state = replace(state_against(adversary), reference=REFERENCE)
        contexts = adversary.worst_case_problem(state).contexts
        if adversary.uses_model_kernel:  # each atom at its nearest grid point
            assert (contexts.weights > 0).sum() == len(REFERENCE.points)
            return
        if (contexts.weights > 0).sum() != len(REFERENCE.points):  # two moments of it
            assert contexts.mean == pytest.approx(REFERENCE.mean, abs=0.1)
            return
        carried = contexts.weights > 0
        assert torch.equal(contexts.points[carried], REFERENCE.points)
        torch.testing.assert_close(contexts.weights[carried], REFERENCE.weights)

    def test_no_context_and_no_reference(self, case: AdversaryCase) -> None:
        """An error says what to give."""
        adversary = case.adversary
        state = state_against(adversary)
        unseen = replace(
            state, history=replace(state.history, contexts=torch.empty(0, 2))
        )
        for ask in (adversary.search_problem, adversary.worst_case_problem):
            with pytest.raises(InputDataError, match=r"no context yet.*`reference`"):
                ask(unseen)

    def test_it_is_stored_and_restored(self, case: AdversaryCase) -> None:
        """Through JSON, and it asks the same then."""
        adversary = case.adversary
        stored = encode(adversary, "adversary")
        again = decode(json.loads(json.dumps(stored, allow_nan=False)), Adversary, "it")
        assert type(again) is type(adversary)
        assert encode(again, "adversary") == stored
        found, expected = (
            one.search_problem(state_against(one)) for one in (again, adversary)
        )
        assert torch.equal(found.listed().points, expected.listed().points)
        scores = found.contexts.points.cos().sum(-1)
        values = [
            one.ambiguity_set.value(scores, one.contexts.weights)
            for one in (found, expected)
        ]
        assert torch.equal(*values)

    def test_categories_are_taken_or_refused_in_words(
        self, case: AdversaryCase
    ) -> None:
        """Whatever ``context_order`` says."""
        adversary = case.adversary
        history, space = small_problem(context_categories={1: 3})
        recipe = RobustRecipe(adversary=adversary, hyperparameters=PRIOR, **SMALL)
        if adversary.context_order is None:
            assert recipe.propose(history, space).shape == (1, 1)
            return
        with pytest.raises(UnsupportedError, match=adversary.context_order) as caught:
            recipe.propose(history, space)
        assert "wdrbo_exact" in str(caught.value)

    def test_every_option_is_explained(self, case: AdversaryCase) -> None:
        """In the docstring of the class: they are options of recipes."""
        docstring = type(case.adversary).__doc__
        assert docstring
        for option in fields(case.adversary):
            assert f"{option.name}: " in docstring, (
                f"{type(case.adversary).__name__} does not say what `{option.name}` "
                f"is: write `{option.name}: ...` below `Args:` in its docstring."
            )
