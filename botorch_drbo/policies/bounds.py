"""Policies that maximise a confidence bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_positive, nonnegative_number, option
from botorch_drbo.acquisition import (
    DisagreementPenalizedUCB,
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    ShareAboveUCB,
)
from botorch_drbo.acquisition.penalized import PenaltyOver, check_penalty
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.policies.base import (
    ConfidenceWidth,
    ObjectivePolicy,
    Policy,
    check_beta,
    current_bound,
)
from botorch_drbo.schedules import Schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConfidenceBound(ObjectivePolicy):
    r"""Maximise the worst case of an optimistic outcome.

    .. math:: \max_x\, g\big( u(x, c_1), \dots, u(x, c_n) \big), \qquad
        u = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big) \sigma

    The recommendation is best for the same objective of the posterior mean. A share
    above a threshold is that of ``ShareAboveUCB``.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound.

    Raises:
        InputDataError: An option outside its range.
    """

    bounds_shares: ClassVar[bool] = True
    conditions_in_place: ClassVar[bool] = True

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, nonnegative_number)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The objective of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        return self._bound(
            model, beta, self.misspecification, state, adversary, X_pending
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        return self._bound(state.model, 0.0, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        misspecification: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> DistributionallyRobustUCB | ShareAboveUCB:
        problem = adversary.search_problem(state)
        if self.named is not None and self.named.tau is not None:
            return ShareAboveUCB(
                model,
                beta,
                problem.contexts,
                threshold=self.named.tau,
                misspecification=misspecification,
                X_pending=X_pending,
            )
        return DistributionallyRobustUCB(
            model,
            beta,
            problem.contexts,
            self.objective_over(problem),
            outside_contexts=problem.outside,
            misspecification=misspecification,
            X_pending=X_pending,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DecisionBound(Policy):
    r"""The upper confidence bound of a model of ``x``, which treats the context as
    noise.

    .. math:: \mu(x) + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)
        \sigma(x)

    Pending decisions are hallucinated [Desautels2014bucb]_: the model is conditioned on
    its own mean there, which leaves the mean as it is and shrinks the variance.
    ``t`` and :math:`\lambda` are the model's; see ``EnlargedConfidenceUCB``.

    The values of a recommendation come from a second model, of ``[x, c]``, under the
    recipe's adversary, so that they compare with those of the other recipes.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound. If the model's
            noise is small, the bound is wide.

    Raises:
        InputDataError: An option outside its range.

    [Srinivas2010gpucb]_, [Bogunovic2021misspecified]_.
    """

    uses_contexts: ClassVar[bool] = False
    conditions_in_place: ClassVar[bool] = True

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, nonnegative_number)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The confidence bound of the model of ``x``."""
        model, beta = current_bound(self.beta, state.model, state.history)
        # Not BoTorch's class, which raises variances to 1e-12 in units of y.
        return EnlargedConfidenceUCB(
            model, beta, self.misspecification, X_pending=X_pending
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The posterior mean of the model of ``x``."""
        return EnlargedConfidenceUCB(state.model, 0.0, 0.0)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LipschitzPenalty(Policy):
    r"""The expectation of an optimistic outcome, less a Lipschitz penalty.

    .. math:: \sum_i p_i \, u(x, c_i) - \epsilon_s L(x), \qquad
        L(x) = \max_c \| \partial_c\, u(x, c) \|_2, \qquad
        u = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big) \sigma

    A lower bound of the worst case over the Wasserstein ball of radius
    :math:`\epsilon_s`, which is its adversary, in units of the context box scaled to
    ``[0, 1]^d_c``, or in a radius by column. A recommendation maximises the penalised
    expectation of the posterior mean, and is judged by the ball itself.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound. The penalty is
            taken of the enlarged bound, which is steeper.

    Raises:
        InputDataError: An option outside its range.
        UnsupportedError: Another adversary than a Wasserstein ball.

    [Micheli2025wdrbo]_, eq. 13.
    """

    bounds_worst_case: ClassVar[bool] = True

    context_order: ClassVar[str | None] = "it penalises the slope in the context"
    conditions_in_place: ClassVar[bool] = True

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, nonnegative_number)

    def check(self, adversary: Adversary) -> None:
        r"""The penalty bounds the worst case over one kind of ball."""
        if not isinstance(adversary, WassersteinBall):
            raise UnsupportedError(
                "The policy `lipschitz_penalty` bounds the worst case over a "
                f"Wasserstein ball, got the adversary {type(adversary).__name__}. Take "
                "the adversary `wasserstein`, or the policy `confidence_bound`, which "
                "takes any."
            )
        if adversary.num_candidates:
            raise InputDataError(
                "`num_candidates` is no use to the policy `lipschitz_penalty`, which "
                f"moves no mass, got {adversary.num_candidates}. Leave it out, or take "
                "the policy `confidence_bound`."
            )

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The penalised expectation of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        return self._bound(
            model, beta, self.misspecification, state, adversary, X_pending
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The penalised expectation of the posterior mean."""
        return self._bound(state.model, 0.0, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        misspecification: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> LipschitzPenalizedUCB:
        self.check(adversary)
        assert isinstance(adversary, WassersteinBall)
        return LipschitzPenalizedUCB(
            model,
            beta,
            state.contexts(),
            state.radius(adversary.radius),
            state.space.context_bounds,
            context_radii=state.column_radii(adversary.radius),
            misspecification=misspecification,
            X_pending=X_pending,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DisagreementPenalty(ObjectivePolicy):
    r"""Maximise the worst case of an optimistic outcome where the models agree.

    .. math:: \frac1S \sum_m g\big( u_m(x, c_1), \dots, u_m(x, c_n) \big)
        - \kappa\, \epsilon(x), \qquad
        \epsilon(x) = \max_m \sqrt{ (\bar\mu_m - \bar\mu)^2
            + (\bar\sigma_m - \bar\sigma)^2 }

    over the ``S`` models of an ensemble, with :math:`\bar\mu_m(x)` and
    :math:`\bar\sigma_m(x)` the averages over the contexts of mean and deviation of one
    model, in the units of the outcome, and :math:`\bar\mu`, :math:`\bar\sigma` their
    means over the models. See ``DisagreementPenalizedUCB``. The recommendation
    maximises the objective of the posterior mean, without a penalty.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        penalty: :math:`\kappa`, the weight of the disagreement.
        penalty_over: "decision" for one penalty per decision; "batch" for the largest
            among all decisions that the optimiser evaluates together, an error in the
            public code.

    Raises:
        InputDataError: An option outside its range.

    [Ramazyan2026edrbo]_.
    """

    needs_ensemble: ClassVar[bool] = True
    conditions_in_place: ClassVar[bool] = True
    default_surrogate: ClassVar[str | None] = "kernels"

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    penalty: float = 1.41
    penalty_over: PenaltyOver = "decision"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_penalty(self.penalty, self.penalty_over)
        object.__setattr__(self, "penalty", float(self.penalty))

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The penalised objective of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        problem = adversary.search_problem(state)
        return DisagreementPenalizedUCB(
            model,
            beta,
            problem.listed(),
            self.objective_over(problem),
            penalty=self.penalty,
            penalty_over=self.penalty_over,
            X_pending=X_pending,
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteDifference(ObjectivePolicy):
    r"""Maximise an upper bound of the general objective.

    .. math:: a\, v(u; \epsilon) + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}

    with ``u`` and ``l`` the upper and lower confidence bounds at each context and a
    small ``h``; see ``FiniteDifferenceUCB``.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        step: ``h``, in units of the radius.

    Raises:
        InputDataError: An option outside its range.

    [Tay2024bocu]_, Appendix C.2, version 1.
    """

    conditions_in_place: ClassVar[bool] = True

    beta: Schedule | ConfidenceWidth | float = option(2.0, check_beta)
    step: float = option(1e-3, check_positive)

    def __post_init__(self) -> None:
        """Check beta, the step, and that there is no objective."""
        super().__post_init__()
        if self.objective is not None:
            raise InputDataError(
                "The finite difference is one of the general objective and takes no "
                "`objective`. Take another policy, for example `confidence_bound`."
            )

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The value of the upper bound, and the difference of both bounds."""
        model, beta = current_bound(self.beta, state.model, state.history)
        return self._bound(model, beta, state, adversary, X_pending)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The same of the posterior mean."""
        return self._bound(state.model, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> FiniteDifferenceUCB:
        problem = adversary.search_problem(state)
        return FiniteDifferenceUCB(
            model,
            beta,
            problem.listed(),
            self.general_objective(problem),
            step=self.step,
            X_pending=X_pending,
        )
