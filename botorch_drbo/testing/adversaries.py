"""Contract tests for adversaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from botorch.exceptions.errors import (
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo.adversaries import Adversary
from botorch_drbo.contexts import ContextSet
from botorch_drbo.recipes import RobustRecipe
from botorch_drbo.testing.fixtures import (
    PRIOR,
    SMALL,
    check_options_explained,
    restored,
    run_for_each,
    small_problem,
    state_against,
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
        state = state_against(case.adversary, **KINDS[kind])
        listed = case.adversary.search_problem(state).listed()
        check_contexts(listed, *state.space.context_bounds)
        if kind == "known":
            assert (listed.points[:, 0] - 10.5).abs().max().item() <= case.known_within
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
            check_contexts(of_decision.contexts, *state.space.context_bounds)
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
        found = case.adversary.search_problem(state_against(case.adversary))
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
        # Their worst contexts lie in different places.
        scores = (FREQUENCIES @ listed.points.mT).sin()  # s x n
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
            features = torch.cat([torch.ones_like(others[:1]), others])  # 3 x n
            moments.append(features * contexts.weights @ levels.mT)
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
        adversary, state = case.adversary, state_against(case.adversary)
        history = replace(state.history, contexts=torch.empty(0, 2))
        unseen = replace(state, history=history)
        for ask in (adversary.search_problem, adversary.worst_case_problem):
            with pytest.raises(InputDataError, match=r"no context yet.*`reference`"):
                ask(unseen)

    def test_it_is_stored_and_restored(self, case: AdversaryCase) -> None:
        """Through JSON, and it asks the same then."""
        again = restored(case.adversary, Adversary)
        found, expected = (
            one.search_problem(state_against(one)) for one in (again, case.adversary)
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
        check_options_explained(case.adversary)
