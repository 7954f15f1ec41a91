"""A class variable that is wrong is found by the contract of its class.

Others rely on them: ``reaches_unseen`` that is wrong makes a promise too good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from botorch.exceptions.errors import BotorchError

from botorch_drbo.adversaries import Adversary
from botorch_drbo.adversaries.empirical import (
    Empirical,
    EveryDistribution,
    StandardDeviationBox,
)
from botorch_drbo.adversaries.kernels import (
    KernelDensity,
    KernelDensityBall,
    MinimaxMMDBall,
    MMDBall,
)
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    TotalVariation,
)
from botorch_drbo.policies import Policy
from botorch_drbo.policies.bounds import (
    ConfidenceBound,
    DecisionBound,
    DisagreementPenalty,
    LipschitzPenalty,
)
from botorch_drbo.policies.sampled import IntegralImprovement, Thompson
from botorch_drbo.recipes import make_recipe
from botorch_drbo.testing import (
    AdversaryCase,
    AdversaryContract,
    AmbiguitySetCase,
    AmbiguitySetContract,
    PolicyCase,
    PolicyContract,
    RecipeCase,
    RecipeContract,
)
from botorch_drbo.testing.fixtures import PRIOR, SMALL
from botorch_drbo.testing.policies import _Pair, smaller


def kernel_ball(radius: float, n: int) -> AmbiguitySet:
    points = torch.linspace(0.0, 1.0, n, dtype=torch.double)
    matrix = torch.exp(-12.5 * (points - points[:, None]).square())
    return MaximumMeanDiscrepancy(radius, matrix)


@dataclass(frozen=True)
class Flip:
    """One variable of one member, and a value that is wrong."""

    name: str
    member: object
    wrong: object

    def __str__(self) -> str:
        kind = getattr(self.member, "__name__", type(self.member).__name__)
        return f"{kind}-{self.name}"


SETS = [
    Flip("keeps_support", lambda radius, n: KullbackLeibler(radius), False),
    Flip("keeps_support", lambda radius, n: TotalVariation(radius), True),
    Flip("knows_positions", lambda radius, n: TotalVariation(radius), True),
    Flip("knows_positions", kernel_ball, False),
    Flip("finite_at_zero", lambda radius, n: KullbackLeibler(radius), True),
    Flip("finite_at_zero", lambda radius, n: TotalVariation(radius), False),
    Flip("reaches_unseen", lambda radius, n: TotalVariation(radius), False),
    Flip("reaches_unseen", lambda radius, n: ChiSquared(radius), False),
    Flip("reaches_unseen", lambda radius, n: KullbackLeibler(radius), True),
    Flip("has_radius", lambda radius, n: TotalVariation(radius), False),
    Flip("has_radius", lambda radius, n: FullSimplex(), True),
]


@pytest.mark.parametrize("flip", SETS, ids=str)
def test_a_wrong_variable_of_a_set_is_found(
    flip: Flip, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: Callable[[float, int], AmbiguitySet] = flip.member  # pyright: ignore
    case = AmbiguitySetCase("it", make, has_radius=make(0.1, 6).has_radius)
    check = AmbiguitySetContract().test_its_class_variables_say_what_it_does
    check(case)
    monkeypatch.setattr(type(make(0.1, 6)), flip.name, flip.wrong)
    with pytest.raises(AssertionError, match=flip.name):
        check(case)


BALL = WassersteinBall(num_candidates=16)
GRID = MMDBall(num_contexts=25)
ADVERSARIES = [
    Flip("believes_reference", Empirical(), False),
    Flip("believes_reference", KernelDensity(num_contexts=25), False),
    Flip("believes_reference", EveryDistribution(), True),
    Flip("approximates", BALL, True),
    Flip("approximates", KernelDensityBall(num_contexts=25, num_outside=16), True),
    Flip("approximates", MinimaxMMDBall(num_contexts=25), False),
    Flip("uses_model_kernel", GRID, False),
    Flip("uses_model_kernel", BALL, True),
    Flip("radius_unit", BALL, ""),
    Flip("context_order", KernelDensity(num_contexts=25), None),
    Flip("context_order", KernelDensityBall(num_contexts=25, num_outside=16), None),
    Flip("context_order", StandardDeviationBox(num_contexts=25), None),
]


@pytest.mark.parametrize("flip", ADVERSARIES, ids=str)
def test_a_wrong_variable_of_an_adversary_is_found(
    flip: Flip, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(flip.member, Adversary)
    case, contract = AdversaryCase("it", flip.member), AdversaryContract()
    check = contract.test_its_class_variables_say_what_it_does
    if flip.name == "context_order":
        check = contract.test_categories_have_no_order
    check(case)
    monkeypatch.setattr(type(flip.member), flip.name, flip.wrong)
    with pytest.raises(AssertionError, match=flip.name):
        check(case)


PATHS = smaller(Thompson())
POLICIES = [
    Flip("uses_contexts", ConfidenceBound(), False),
    Flip("uses_contexts", DecisionBound(), True),
    Flip("needs_ensemble", DisagreementPenalty(), False),
    Flip("needs_ensemble", ConfidenceBound(), True),
    Flip("default_surrogate", DisagreementPenalty(), "matern"),
    Flip("context_order", LipschitzPenalty(), None),
    Flip("maximises_worst_case", ConfidenceBound(), False),
    Flip("maximises_worst_case", IntegralImprovement(), False),
    Flip("maximises_worst_case", LipschitzPenalty(), True),
    Flip("maximises_worst_case", DecisionBound(), True),
    Flip("ranks_by_moments", PATHS, True),
]
TAKES: dict[type[Policy], str] = {LipschitzPenalty: "wasserstein"}


@pytest.mark.parametrize("flip", POLICIES, ids=str)
def test_a_wrong_variable_of_a_policy_is_found(
    flip: Flip, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(flip.member, Policy)
    taken = TAKES.get(type(flip.member), "empirical")
    whole = PolicyCase("it", flip.member)
    case = PolicyCase("it", flip.member, {taken: whole.adversaries[taken]})
    contract = PolicyContract()

    def check() -> None:
        contract.test_it_needs_an_ensemble_if_it_says_so(case)
        contract.test_it_maximises_the_worst_case_if_it_says_so(_Pair(case, taken))
        contract.test_it_ranks_by_moments_if_it_says_so(case)
        contract.test_categories_have_no_order(case)

    check()
    monkeypatch.setattr(type(flip.member), flip.name, flip.wrong)
    # An assertion of the contract, or an error on the way to it.
    with pytest.raises((AssertionError, BotorchError, RuntimeError)):
        check()


def test_a_recipe_that_uses_contexts_and_denies_it_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = make_recipe("erbo", hyperparameters=PRIOR, **SMALL)
    monkeypatch.setattr(type(recipe), "uses_contexts", False)
    with pytest.raises((AssertionError, BotorchError, RuntimeError)):
        RecipeContract().test_its_class_variables_say_what_it_does(
            RecipeCase("it", recipe)
        )
