"""Two searches over posterior sample paths, for any set around any contexts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    RobustThompsonSampling,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.randomness import derive_seed
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective


@dataclass(frozen=True, kw_only=True, eq=False)
class PathSearch(ModelBasedAlgorithm):
    r"""Search with sample paths of the posterior in place of a confidence bound.

    A recipe of this kind says what its contexts and its ambiguity set are, in
    ``robust_set``; that is all. There is no ``beta`` to choose. The recommendation is
    best for the worst case of the posterior mean.
    """

    @property
    def maximises_its_worst_case(self) -> bool:
        """Of the posterior mean, in which there are no paths."""
        return True

    def robust_objective(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, Objective]:
        r"""The contexts, and what collapses the values there to one per decision.

        By default the worst case over ``robust_set``.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution and the objective.
        """
        contexts, ambiguity = self.robust_set(model, history, space, seed=seed)
        return contexts, UncertaintyObjective(ambiguity)

    @abstractmethod
    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""A function of sample paths; see ``ModelBasedAlgorithm``."""

    def exploiting(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        contexts, objective = self.robust_objective(model, history, space, seed=seed)
        return DistributionallyRobustUCB(model, 0.0, contexts, objective)


@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonSearch(PathSearch):
    r"""The decision whose robust value is best on one sample path.

    Each decision has a path of its own: a batch of ``q``, or one asked while others are
    pending, follows independent guesses.

    Args:
        num_features: Random Fourier features of a path.
    """

    num_features: int = 1024

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_count(self.num_features, "num_features")

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The objective of a path that no other decision of the seed has."""
        contexts, objective = self.robust_objective(model, history, space, seed=seed)
        # Within a batch each decision sees those before it as pending.
        number = 0 if X_pending is None else len(X_pending)
        return RobustThompsonSampling(
            model,
            contexts,
            objective,
            num_features=self.num_features,
            seed=derive_seed(seed, number),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ImprovementSearch(PathSearch):
    r"""The decision whose robust value is expected to improve most on those tried.

    A bound ``mu + w sigma`` is flat in the context far from data: a decision that was
    never tried pays nothing for robustness, and so the worst case of a bound rewards
    ignorance. A sample path is as steep there as anywhere; see
    ``qLogDistributionallyRobustNoisyExpectedImprovement``.

    Args:
        num_paths: The sample paths over which the improvement is averaged.
        num_features: Random Fourier features of each path.
    """

    num_paths: int = 64
    num_features: int = 128

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_count(self.num_paths, "num_paths")
        check_count(self.num_features, "num_features")

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The expected improvement on the decisions tried and those pending."""
        contexts, objective = self.robust_objective(model, history, space, seed=seed)
        return qLogDistributionallyRobustNoisyExpectedImprovement(
            model,
            history.X if history.baseline is None else history.baseline,
            contexts,
            objective,
            num_paths=self.num_paths,
            num_features=self.num_features,
            seed=seed,
            X_pending=X_pending,
        )
