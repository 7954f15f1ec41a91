"""Recipes that are an ambiguity set on a list of contexts; any set as an option."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.worst_case import Judge
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.ambiguity.base import check_ambiguity_set
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.schedules import Schedule, as_schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustSetAlgorithm(AcquisitionAlgorithm):
    r"""Maximise the worst confidence bound over an ambiguity set on a list of contexts.

    A recipe of this kind says what its contexts and its ambiguity set are, in
    ``robust_set``; that is all.
    """

    @property
    def maximises_its_worst_case(self) -> bool:
        """It is what the recipe is."""
        return True

    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The worst expected upper confidence bound over ``robust_set``."""
        contexts, ambiguity = self.robust_set(model, history, space, seed=seed)
        return DistributionallyRobustUCB(
            model, beta, contexts, UncertaintyObjective(ambiguity), X_pending=X_pending
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AmbiguityOptions(ModelBasedAlgorithm):
    r"""Any ambiguity set around the contexts seen, with a radius that may change.

    Args:
        ambiguity_set: The set; a copy is made for each radius. One that knows its
            contexts (the kernel matrix of ``MaximumMeanDiscrepancy``, the cost of
            ``Wasserstein``, most descriptions in cvxpy) needs a ``reference`` on those
            contexts.
        radius: A number, or a schedule in the number of contexts seen; None for the
            radius of the set.
        contexts_complete: Whether the contexts of the ``reference``, or else those
            seen, are all that there are. Otherwise a set that lets mass go anywhere
            (``TotalVariation``, ``ChiSquared``) has the whole box of contexts in reach:
            in the search a list that fills it, in the worst case of a recommendation
            every context. Contexts of which each column takes some values only
            (integers, ordinals, categories) are listed by the space itself.

    Raises:
        InputDataError: An option outside its range.
    """

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | None = None
    contexts_complete: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_ambiguity_set(self.ambiguity_set)
        if not isinstance(self.contexts_complete, bool):
            raise InputDataError(
                "`contexts_complete` must be True or False, got "
                f"{self.contexts_complete!r}."
            )
        if self.radius is not None:
            as_schedule(self.radius, "radius")

    @property
    def fixed_radius(self) -> float | None:
        """The radius if it is a number: by default that of the set."""
        own = self.ambiguity_set.radius.item()
        return own if self.radius is None else super().fixed_radius

    def diameter(self, space: SearchSpace) -> float | None:
        r"""That of the set."""
        return self.ambiguity_set.diameter

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The contexts seen, or the reference, others in reach, and the set."""
        judge = self.judge(model, history, space, seed=seed)
        contexts, _ = judge.on_a_full_list(seed)
        return contexts, self.sized_set(history, space)

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The same set, with the box in reach unless the contexts are complete."""
        return self.judge_of(self.sized_set(history, space), history, space)

    def judge_of(
        self, ambiguity: AmbiguitySet, history: History, space: SearchSpace
    ) -> Judge:
        r"""Another set around the same contexts, and the same contexts in reach."""
        contexts, complete = self.data_contexts(history, space), self.contexts_complete
        return Judge.of(contexts, ambiguity, space, contexts_complete=complete)

    def sized_set(self, history: History, space: SearchSpace) -> AmbiguitySet:
        """The set with the radius of this round."""
        if self.radius is None:
            return copy.deepcopy(self.ambiguity_set)  # one round knows of no other
        radius = self.radius_of(self.radius, history, space)
        return self.ambiguity_set.with_radius(radius)
