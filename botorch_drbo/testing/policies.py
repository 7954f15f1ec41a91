"""Contract tests for policies."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import pytest
import torch
from botorch.exceptions.errors import (
    UnsupportedError,
)

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries import ADVERSARIES, Adversary, FittedRound
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies import Policy
from botorch_drbo.posterior.exact import with_inducing_points
from botorch_drbo.recipes import RobustRecipe, make_recipe, recipe_from_dict
from botorch_drbo.surrogate import (
    SURROGATES,
    ModelData,
)
from botorch_drbo.testing.fixtures import (
    PRIOR,
    SMALL,
    Part,
    check_options_explained,
    fitted_round,
    nothing_fitted,
    restored,
    run_for_each,
    small_problem,
)

FEWER = {"num_contexts": 16, "num_outside": 8, "num_features": 32, "num_paths": 4}
X = torch.linspace(-0.9, 2.9, 9, dtype=torch.double).reshape(-1, 1, 1)


def smaller(part: Part) -> Part:
    """The same part with fewer contexts, features and paths."""
    names = {field.name for field in fields(part)}
    return replace(part, **{key: n for key, n in FEWER.items() if key in names})


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
    adversaries: Mapping[str, Adversary] = field(
        default_factory=lambda: {name: smaller(a) for name, a in ADVERSARIES.items()}
    )
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

    def fitted(self) -> tuple[RobustRecipe, FittedRound]:
        """The recipe against the first of these, and its round of ``small_problem``."""
        recipe = self.against(self.taken[0])
        return recipe, fitted_round(recipe, *small_problem())


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
        restored(case.policy, Policy)

    def test_pending_decisions_have_a_say(self, case: PolicyCase) -> None:
        """The best decision has a lower value once it is pending."""
        recipe, state = case.fitted()
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
        recipe, state = case.fitted()
        acqf = recipe.exploring(state, None)
        acqf(X)
        for pending in (X[2], X[:5, 0]):
            acqf.set_X_pending(pending)
            at_once = recipe.exploring(state, pending)
            torch.testing.assert_close(acqf(X), at_once(X), rtol=1e-6, atol=1e-8)

    def test_exploiting_does_not_explore(self, case: PolicyCase) -> None:
        """Of the posterior mean: more doubt about it leaves the objective as it is."""
        values = []
        for scale in (1.0, 9.0):  # of both variances: the same mean, 3 times sigma
            noise = scale * PRIOR.noise_variance
            prior = replace(PRIOR, noise_variance=noise, outputscale=scale)
            recipe = case.against(case.taken[0]).with_options(
                **nothing_fitted(case.policy, prior)
            )
            values.append(recipe.exploiting(fitted_round(recipe, *small_problem()))(X))
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
        if name is not None and case.policy.needs_ensemble:
            assert SURROGATES[name].is_ensemble, "needs_ensemble"

    def test_it_maximises_the_worst_case_if_it_says_so(self, pair: _Pair) -> None:
        """What is exploited is then the worst case of the posterior mean."""
        policy, recipe = pair.case.policy, pair.recipe
        found = recipe.exploiting(fitted_round(recipe, *small_problem()))(X)
        joint = fitted_round(recipe, *small_problem(), uses_contexts=True)
        searched = recipe.adversary.search_problem(joint)
        worst = DistributionallyRobustUCB(
            joint.model,
            0.0,
            searched.contexts,
            UncertaintyObjective(searched.ambiguity_set),
            outside_contexts=searched.outside,
        )(X)
        same = bool(((found - worst).abs() <= 1e-6).all())
        assert policy.maximises_worst_case == same, "maximises_worst_case"

    def test_it_ranks_by_moments_if_it_says_so(self, case: PolicyCase) -> None:
        """Then inducing points at nearly all rows give nearly the same values."""
        if not case.policy.ranks_by_moments:
            return
        recipe, state = case.fitted()
        few = with_inducing_points(state.model, state.history.t - 1)
        exact, again, nearly = (
            recipe.exploring(one, None)(X)
            for one in (state, replace(state, seed=1), replace(state, model=few))
        )
        torch.testing.assert_close(exact, again, msg="ranks_by_moments")  # no draws
        alike = torch.corrcoef(torch.stack([exact, nearly]))[0, 1]
        assert alike > 0.99, "ranks_by_moments"

    def test_categories_have_no_order(self, case: PolicyCase) -> None:
        """What depends on how they are numbered says so in ``context_order``."""
        if case.policy.context_order is not None or not case.policy.uses_contexts:
            return
        history, space = small_problem(context_categories={1: 3})
        feared = [n for n, a in case.adversaries.items() if not a.believes_reference]
        taken = [n for n in case.taken if n in feared] or case.taken
        recipe, values = case.against(taken[0]), []
        for shift in (0.0, 1.0):  # 0, 1, 2, or the same under the numbers 1, 2, 0
            C, contexts = history.C.clone(), history.contexts.clone()
            for rows in (C, contexts):
                rows[:, 1] = (rows[:, 1] + shift) % 3.0
            renamed = replace(history, C=C, contexts=contexts)
            state = fitted_round(recipe, renamed, space)
            values.append(recipe.exploiting(state)(X))
        torch.testing.assert_close(*values, msg="context_order")
        if recipe.adversary.believes_reference:
            return
        # Of an outcome that the category alone decides, another one is a worst case.
        prior = replace(PRIOR, lengthscale=(1e3, 1e3, 0.4))
        recipe = recipe.with_options(**nothing_fitted(case.policy, prior))
        history = replace(history, Y=history.C[:, 1:].square())
        state = fitted_round(recipe, history, space)
        expected = DistributionallyRobustUCB(
            state.model, 0.0, state.contexts(), UncertaintyObjective.so()
        )
        assert (recipe.exploiting(state)(X) < expected(X) - 1e-3).all(), "context_order"

    def test_every_option_is_explained(self, case: PolicyCase) -> None:
        """In the docstring of the class: they are options of recipes."""
        check_options_explained(case.policy)
