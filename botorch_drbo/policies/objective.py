"""The general uncertainty objective, as options of a policy."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import check_nonnegative
from botorch_drbo.adversaries.around_contexts import AroundContexts
from botorch_drbo.adversaries.base import Adversary, SearchProblem
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies.base import Policy
from botorch_drbo.schedules import Schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectivePolicy(Policy):
    r"""A policy for the general objective of the scores over the contexts.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon)

    with ``v`` the worst case over the adversary's set and :math:`\delta` its derivative
    in the radius. DRO is ``(a, b) = (1, 0)``, WCS ``(0, 1)`` with radius 0, mean-risk
    ``(1, b)`` with radius 0, and GEN ``(1, 1)``; see ``UncertaintyObjective``.
    [Tay2024bocu]_, Table 1.

    Args:
        value_weight: ``a``, the weight of the worst-case value.
        sensitivity_weight: ``b``, the weight of the sensitivity to the radius.

    Raises:
        InputDataError: An option outside its range.
    """

    value_weight: float = 1.0
    sensitivity_weight: float = 0.0

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("value_weight", "sensitivity_weight"):
            weight = check_nonnegative(getattr(self, name), name)
            object.__setattr__(self, name, float(weight))  # a tensor cannot be saved
        if self.value_weight == 0.0 and self.sensitivity_weight == 0.0:
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are both zero: nothing is "
                "left to maximise."
            )

    def check(self, adversary: Adversary) -> None:
        r"""Some sets have no finite sensitivity at radius zero."""
        if self.sensitivity_weight == 0.0 or not isinstance(adversary, AroundContexts):
            return
        ball, radius = adversary.ambiguity_set, adversary.radius
        size = ball.radius if radius is None else radius
        if not isinstance(size, Schedule) and float(size) == 0.0:
            UncertaintyObjective.wcs(ball)

    @property
    def maximises_worst_case(self) -> bool:
        """Not where the sensitivity counts too."""
        return (self.value_weight, self.sensitivity_weight) == (1.0, 0.0)

    def objective(self, problem: SearchProblem) -> UncertaintyObjective:
        """The general objective over the set of a search problem."""
        return UncertaintyObjective(
            problem.ambiguity_set, self.value_weight, self.sensitivity_weight
        )
