"""Policies of Thompson sampling and of expected improvement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_drbo._validation import check_count, option
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LogExpectedImprovementOfExpectation,
    RobustThompsonSampling,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies.base import ObjectivePolicy, Policy
from botorch_drbo.sampling import derive_seed


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Thompson(ObjectivePolicy):
    r"""The decision whose objective is best on one posterior sample path.

    .. math:: x = \arg\max_x g\big( f(x, c_1), \dots, f(x, c_n) \big), \qquad
        f \sim \text{posterior}

    Each decision has a path of its own: a batch of ``q``, or one asked while others are
    pending, follows independent guesses.

    Args:
        num_features: Random Fourier features of a path.

    Raises:
        InputDataError: An option outside its range.

    [Tay2024bocu]_, Algorithm 1.
    """

    num_features: int = option(1024, check_count)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The objective of a path that no other decision of the seed has."""
        problem = adversary.search_problem(state)
        # Within a batch each decision sees those before it as pending.
        return RobustThompsonSampling(
            state.model,
            problem.listed(),
            self.objective_over(problem),
            num_features=self.num_features,
            seed=derive_seed(state.seed, 0 if X_pending is None else len(X_pending)),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedImprovement(ObjectivePolicy):
    r"""The decision whose objective is expected to improve most on those tried.

    .. math:: \max_x E_f\Big[ \Big( g_f(x) - \max_{s \le t} g_f(x_s) \Big)_+ \Big],
        \qquad g_f(x) = g\big( f(x, c_1), \dots, f(x, c_n) \big)

    over posterior sample paths ``f``.

    *Why not a confidence bound.* Far from data a Gaussian process is flat in the
    context, and so is ``mu + w sigma``. A decision that was never tried therefore
    loses almost nothing in the worst case, while one that is known to be good loses the
    full amount, so the penalty of ``wdrbo`` and the ball of ``wdrbo_exact`` act as a
    second exploration bonus. Sample paths are as steep far from data as near them, and
    their expected improvement has no such bonus.

    Args:
        num_paths: The sample paths over which the improvement is averaged.
        num_features: Random Fourier features of each path.

    Raises:
        InputDataError: An option outside its range.
    """

    conditions_in_place: ClassVar[bool] = True

    num_paths: int = option(64, check_count)
    num_features: int = option(128, check_count)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The expected improvement on the decisions tried and those pending."""
        history, problem = state.history, adversary.search_problem(state)
        return qLogDistributionallyRobustNoisyExpectedImprovement(
            state.model,
            history.X if history.baseline is None else history.baseline,
            problem.listed(),
            self.objective_over(problem),
            num_paths=self.num_paths,
            num_features=self.num_features,
            seed=state.seed,
            X_pending=X_pending,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class IntegralImprovement(Policy):
    r"""The decision whose expectation is expected to improve most, without samples.

    .. math:: \max_x E\Big[ \Big( g(x) - \max_{s \le t} E[g(x_s)] \Big)_+ \Big],
        \qquad g(x) = \sum_i p_i f(x, c_i)

    ``g`` is Gaussian, so its expected improvement is a formula; its variance is that of
    the joint posterior over the contexts. Unlike ``expected_improvement`` it takes no
    worst case, which is not Gaussian: its adversary believes the reference. The bar is
    one number, the largest posterior mean of ``g`` among the decisions tried.

    The recommendation has the largest posterior mean of ``g``.

    Raises:
        UnsupportedError: An adversary that may choose among distributions.

    [Williams2000integrated]_, as ``LogExpectedImprovementOfExpectation``.
    """

    conditions_in_place: ClassVar[bool] = True

    def check(self, adversary: Adversary) -> None:
        r"""The worst case over a set is no integral."""
        if not adversary.believes_reference:
            raise UnsupportedError(
                "The policy `ei_integral` improves the expectation under one "
                f"distribution, got the adversary {type(adversary).__name__}. Take the "
                "adversary `empirical` or `kernel_density`, or the policy "
                "`expected_improvement`, which takes any."
            )

    @property
    def maximises_worst_case(self) -> bool:
        """The worst case of one distribution is its expectation."""
        return True

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The expected improvement on the decisions tried."""
        self.check(adversary)
        history = state.history
        return LogExpectedImprovementOfExpectation(
            state.model,
            history.X if history.baseline is None else history.baseline,
            adversary.search_problem(state).contexts,
            X_pending=X_pending,
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The expectation of the posterior mean."""
        self.check(adversary)
        return DistributionallyRobustUCB(
            state.model,
            0.0,
            adversary.search_problem(state).contexts,
            UncertaintyObjective.so(),
        )
