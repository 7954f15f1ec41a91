"""An optimistic worst-case sensitivity: the finite difference of two bounds."""

from __future__ import annotations

from typing import Unpack

from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_positive
from botorch_drbo.acquisition.base import RobustAcquisitionFunction
from botorch_drbo.acquisition.inputs import check_objective
from botorch_drbo.acquisition.options import ConfidenceBoundOptions
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective


class FiniteDifferenceUCB(RobustAcquisitionFunction):
    r"""An upper confidence bound of the general objective, by a finite difference.

    .. math::
        \alpha(x) = a\, v(u; \epsilon)
            + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}, \qquad
        u, l = \mu \pm \sqrt\beta\, \sigma

    ``v`` is the worst-case expectation of the scores over the ball of a radius, ``u``
    and ``l`` are the confidence bounds at each context (with ``misspecification`` the
    enlarged ones). For every ``h``, the second term bounds the difference quotient of
    any function between ``l`` and ``u``. The bound is loose: ``u - l`` is divided by a
    small ``h``, so the second term is nearly ``2 sqrt(beta) / h`` times a mean standard
    deviation until little is left to explore. ``DistributionallyRobustUCB`` with the
    same objective uses the exact sensitivity of ``u`` instead, which is not a bound.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: The ambiguity set and the weights ``a`` and ``b``.
        step: ``h``, in units of the radius.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.options.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta, a step that is not positive, a wrong
            context set or objective.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an ambiguity set of other contexts.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import FiniteDifferenceUCB
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = FiniteDifferenceUCB(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     beta=4.0,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.gen(TotalVariation(0.5)),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    UCB-BOCU-1 of [Tay2024bocu]_, Appendix C.2.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: UncertaintyObjective,
        *,
        step: float = 1e-3,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(
            model,
            beta,
            context_set,
            **options,
        )
        if not isinstance(objective, UncertaintyObjective):
            raise InputDataError(
                "`objective` must be an UncertaintyObjective, got "
                f"{type(objective).__name__}: the difference is taken in the radius of "
                "its ambiguity set. Use DistributionallyRobustUCB for others."
            )
        self.objective = check_objective(objective, context_set)
        self.step = check_positive(step, "step")

    def values(self, X: Tensor) -> Tensor:
        r"""The upper bound of the objective with its finite difference."""
        moments, bound = self._view.at(X).moments(), self._bound
        lower, upper = bound.lower(*moments), bound(*moments)  # b (x S) x n
        weights = self.context_set.weights.to(X)
        ball = self.objective.ambiguity_set
        value = ball.value(upper, weights)  # b (x S)
        result = self.objective.value_weight * value
        if self.objective.sensitivity_weight == 0.0:
            return result
        wider = ball.worst_case(upper, weights, radius=ball.radius + self.step).value
        pessimistic = ball.value(lower, weights)
        slope = (wider - pessimistic) / self.step
        return result + self.objective.sensitivity_weight * slope
