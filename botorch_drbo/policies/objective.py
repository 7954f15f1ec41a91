"""The general uncertainty objective, as options of a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import check_nonnegative
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries.around_contexts import AroundContexts
from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.policies.base import Policy

ObjectiveMaker = Callable[[AmbiguitySet], Objective]
"""From the ambiguity set of a round to the objective of its scores."""


def check_objective_maker(objective: object) -> None:
    r"""Raise unless this is a function from a set to an objective, or None.

    Args:
        objective: What the user gave.

    Raises:
        InputDataError: It is not, or it is an objective.
    """
    if objective is None:
        return
    if isinstance(objective, Objective) or not callable(objective):
        raise InputDataError(
            "`objective` must be a function from an ambiguity set to an Objective, "
            f"got {type(objective).__name__}: the set is built anew in each "
            "round. For example `partial(RobustSatisficing, target=5.0)`."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectivePolicy(Policy):
    r"""A policy for the general objective of the scores over the contexts.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon)

    with ``v`` the worst case over the adversary's set and :math:`\delta` its derivative
    in the radius. DRO is ``(a, b) = (1, 0)``, WCS ``(0, 1)`` with radius 0, mean-risk
    ``(1, b)`` with radius 0, and GEN ``(1, 1)``; see ``UncertaintyObjective``.
    [Tay2024bocu]_, Table 1.

    With ``objective`` it is any other one. The search and the choice of a recommended
    decision follow it; the worst case that a recommendation states stays that of the
    adversary's set.

    Args:
        value_weight: ``a``, the weight of the worst-case value.
        sensitivity_weight: ``b``, the weight of the sensitivity to the radius.
        objective: From the ambiguity set of a round to the ``Objective`` that takes the
            place of ``g``, for example ``partial(RobustSatisficing, target=5.0)``. Its
            scores are in the units of y, and higher is better (with
            ``maximize=False`` they are those of ``-y``). A journal
            stores the name of a function, so that ``resume`` and ``from_state_dict``
            want it again; an object of a ``storable`` class that can be called is
            stored as it is. None for ``g``.

    Raises:
        InputDataError: An option outside its range, or an ``objective`` beside weights.
    """

    value_weight: float = 1.0
    sensitivity_weight: float = 0.0
    objective: ObjectiveMaker | None = None

    def __post_init__(self) -> None:
        """Check that the weights leave something to maximise, and the objective."""
        super().__post_init__()
        for name in ("value_weight", "sensitivity_weight"):
            weight = check_nonnegative(getattr(self, name), name)
            object.__setattr__(self, name, float(weight))  # a tensor cannot be saved
        if self.value_weight == 0.0 and self.sensitivity_weight == 0.0:
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are both zero: nothing is "
                "left to maximise."
            )
        if self.objective is None:
            return
        check_objective_maker(self.objective)
        if (self.value_weight, self.sensitivity_weight) != (1.0, 0.0):
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are those of the general "
                "objective, and `objective` takes its place. Leave one or the other "
                "out."
            )

    def check(self, adversary: Adversary) -> None:
        r"""Some sets have no finite sensitivity at radius zero."""
        if self.sensitivity_weight == 0.0 or not isinstance(adversary, AroundContexts):
            return
        if adversary.fixed_radius == 0.0:
            UncertaintyObjective.wcs(adversary.ambiguity_set)

    @property
    def maximises_worst_case(self) -> bool:
        """Not where the sensitivity counts too, nor with another objective."""
        weights = self.value_weight, self.sensitivity_weight
        return self.objective is None and weights == (1.0, 0.0)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        problem = adversary.search_problem(state)
        return DistributionallyRobustUCB(
            state.model, 0.0, problem.listed(), self.objective_over(problem)
        )

    def general_objective(self, problem: SearchProblem) -> UncertaintyObjective:
        """That of both weights."""
        return UncertaintyObjective(
            problem.ambiguity_set, self.value_weight, self.sensitivity_weight
        )

    def objective_over(self, problem: SearchProblem) -> Objective:
        """The objective over the set of a search problem.

        Raises:
            InputDataError: The function ``objective`` returned something else.
        """
        if self.objective is None:
            return self.general_objective(problem)
        made = self.objective(problem.ambiguity_set)
        if not isinstance(made, Objective):
            raise InputDataError(
                "The function `objective` must return an Objective, got "
                f"{type(made).__name__}."
            )
        return made
