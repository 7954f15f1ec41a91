"""Recipes that are an ambiguity set on a list of contexts; any set as an option."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.ambiguity.base import check_ambiguity_set
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.recipes.model_based import ModelBasedAlgorithm
from botorch_drbo.schedules import Schedule, as_schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustSetAlgorithm(AcquisitionAlgorithm):
    r"""Maximise the worst confidence bound over an ambiguity set on a list of contexts.

    A recipe of this kind says what its contexts and its ambiguity set are, in
    ``robust_set``; that is all.
    """

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

    Raises:
        InputDataError: An option outside its range.
    """

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_ambiguity_set(self.ambiguity_set)
        if self.radius is not None:
            as_schedule(self.radius, "radius")

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The contexts seen, or the reference, and the set."""
        return self.data_contexts(history, space), self.sized_set(history, space)

    def sized_set(self, history: History, space: SearchSpace) -> AmbiguitySet:
        """The set with the radius of this round."""
        if self.radius is None:
            return copy.deepcopy(self.ambiguity_set)  # one round knows of no other
        radius = self.radius_of(self.radius, history, space)
        return self.ambiguity_set.with_radius(radius)
