"""The contracts that third parties run: each finds what is wrong with a member."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    KullbackLeibler,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.posterior import (
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
    marginal_posterior,
)
from botorch_drbo.posterior.view import Integral
from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.test_functions.base import Optimum, uniform_law
from botorch_drbo.testing import (
    AmbiguitySetCase,
    AmbiguitySetContract,
)
from tests.contracts.functions import RobustTestFunctionCase, RobustTestFunctionContract
from tests.contracts.view_case import PosteriorViewCase
from tests.contracts.views import PosteriorViewContract
from tests.models import make_inputs, make_model

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
POSITIONS = torch.linspace(0.0, 1.0, 6, dtype=torch.double).square()
LINE = (POSITIONS - POSITIONS[:, None]).abs()


class Tent(RobustTestFunction):
    """Right, unless a fault is switched on; the best decision is 0.3."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(
            "tent",
            bounds=UNIT,
            context_bounds=UNIT,
            context_law=uniform_law(UNIT),
            noise_std=0.1,
            optimum=Optimum(value=0.5, decision=(0.3,)),
        )
        self.fault = fault

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        value = c.squeeze(-1) - (x - 0.3).abs().squeeze(-1)
        if self.fault == "rows":
            value = value - value.mean()
        if self.fault == "dtype":
            value = value.double()
        return value.detach() if self.fault == "gradient" else value

    def sample_contexts(self, num: int, seed: int) -> Tensor:
        if self.fault == "seed":
            return torch.rand(num, 1, dtype=torch.double)
        drawn = super().sample_contexts(num, seed)
        return drawn / 2 if self.fault == "law" else drawn

    @property
    def optimal_value(self) -> float:
        return super().optimal_value - (0.1 if self.fault == "optimum" else 0.0)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("rows", "rows_are_independent"),
        ("dtype", "float32_follows_the_decision"),
        ("gradient", "expected_value_is_differentiable"),
        ("seed", "contexts_are_paired_and_independent_of_the_optimiser"),
        ("law", "drawn_contexts_follow_the_true_law"),
        ("optimum", "no_random_decision_beats_the_optimum"),
    ],
)
def test_a_wrong_test_function_is_found(fault: str, test: str) -> None:
    run = getattr(RobustTestFunctionContract(), f"test_{test}")
    run(RobustTestFunctionCase("right", Tent))
    with pytest.raises((AssertionError, RuntimeError)):
        run(RobustTestFunctionCase("wrong", lambda: Tent(fault)))


@pytest.mark.parametrize(
    ("right", "variable"),
    [
        (TotalVariation, "keeps_support"),
        (TotalVariation, "has_radius"),
        (TotalVariation, "finite_at_zero"),
        (KullbackLeibler, "finite_at_zero"),
        (KullbackLeibler, "reaches_unseen"),
        (lambda radius: Wasserstein(radius, LINE), "knows_positions"),
    ],
)
def test_a_wrong_class_variable_of_an_ambiguity_set_is_found(
    right: Callable[[float], AmbiguitySet],
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = AmbiguitySetCase("set", lambda radius, n: right(radius))
    run = AmbiguitySetContract().test_its_class_variables_say_what_it_does
    run(case)
    kind = type(right(0.1))
    monkeypatch.setattr(kind, variable, not getattr(kind, variable))
    with pytest.raises(AssertionError, match=variable):
        run(case)


class WrongMoments(LocalMoments):
    def __init__(self, right: LocalMoments, fault: str) -> None:
        super().__init__(right.X, torch.double)
        self.right, self.fault = right, fault

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        mean, variance = self.right.moments(part)
        if self.fault == "noise":
            return mean, variance + 1e-2
        if self.fault == "gradient":
            return mean.detach() + 0 * variance, variance
        return mean, variance

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        found = self.right.slopes(contexts)
        if self.fault == "own" and isinstance(contexts, Tensor):
            found = self.right.slopes(contexts.flip(1))
        if self.fault == "slope":
            return found._replace(variance_slope=2 * found.variance_slope)
        return found


class WrongView(View):
    method = "wrong"

    def __init__(self, right: View, fault: str) -> None:
        super().__init__(right.contexts)
        self.right, self.fault = right, fault

    def at(self, X: Tensor) -> LocalMoments:
        if self.fault == "decisions":
            X = X.mean(0, keepdim=True).expand_as(X) if X.ndim == 2 else X
        return WrongMoments(self.right.at(X), self.fault)


class IndependentErrors(Integral):
    """The right mean, and a variance without the covariances of contexts."""

    def __init__(self, right: Integral, view: View, weights: Tensor) -> None:
        super().__init__(right.dtype, right.memory_budget)
        self.right, self.view, self.weights = right, view, weights

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        variances = self.view.at(X).moments()[1]
        return self.right(X)[0], variances @ self.weights.square()

    def _bytes_per_row(self) -> int:
        return 8


class WrongPosterior(MarginalPosterior):
    """Another's, unless a fault is switched on."""

    def __init__(self, right: MarginalPosterior, fault: str = "") -> None:
        super().__init__(right.model, right.context_indices, right.memory_budget)
        self.right, self.fault = right, fault

    @property
    def dtype(self) -> torch.dtype:
        return self.right.dtype

    def _over(self, contexts: Tensor) -> View:
        return WrongView(self.right.over(contexts), self.fault)

    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> MarginalPosterior:
        return WrongPosterior(self.right.hallucinating(pending, noise), self.fault)

    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        right = self.right.integral(contexts, weights)
        if self.fault != "independent":
            return right
        return IndependentErrors(right, self.over(contexts), weights)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("noise", "moments_are_those_of_the_model"),
        ("decisions", "moments_are_those_of_the_model"),
        ("slope", "slopes_at_the_views_contexts"),
        ("own", "slopes_at_contexts_of_each_decisions_own"),
        ("gradient", "gradients_of_moments"),
        ("independent", "integrals_agree_with_the_moments"),
    ],
)
def test_a_wrong_posterior_is_found(fault: str, test: str) -> None:
    X, contexts = make_inputs()

    def case(fault: str) -> PosteriorViewCase:
        return PosteriorViewCase(
            fault,
            make_model,
            lambda model, budget: WrongPosterior(
                marginal_posterior(model, [2], method="exact"), fault
            ),
            X=X,
            contexts=contexts,
        )

    run = getattr(PosteriorViewContract(), f"test_{test}")
    run(case(""))
    with pytest.raises((AssertionError, RuntimeError)):
        run(case(fault))
