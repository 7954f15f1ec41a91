"""How the next decision is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo._validation import check_options
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.codec.tags import storable
from botorch_drbo.policies.exploration import ConfidenceWidth


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Policy(ABC):
    r"""How the next decision is found: an acquisition function for any adversary.

    Its dataclass fields are options of every recipe that uses it.
    """

    uses_contexts: ClassVar[bool] = True
    """Whether it takes a model of ``[x, c]``; otherwise one of ``x`` alone."""
    context_order: ClassVar[str | None] = None
    """What needs contexts that are numbers, in words; None if categories will do."""
    needs_ensemble: ClassVar[bool] = False
    """Whether outcomes have to be modelled by several models side by side."""
    default_surrogate: ClassVar[str | None] = None
    """How outcomes are modelled if nothing else is said; None for the recipe's."""

    def __post_init__(self) -> None:
        """Check the options by their declarations."""
        check_options(self)

    def check(self, adversary: Adversary) -> None:
        r"""Raise if the policy does not support an adversary.

        Args:
            adversary: That of the recipe.

        Raises:
            InputDataError: Incompatible options.
            UnsupportedError: An adversary that the policy does not support.
        """
        return

    @property
    def ranks_by_moments(self) -> bool:
        """Whether a model of inducing points ranks decisions nearly as its model does.

        True if ``exploring`` uses only means and deviations, neither sample paths nor
        quantities that need every row: of a confidence bound unless its width is found
        from every row.
        """
        beta = getattr(self, "beta", None)
        return not (beta is None or isinstance(beta, ConfidenceWidth))

    @property
    def maximises_worst_case(self) -> bool:
        """Whether a recommendation is the decision with the best worst case.

        If so, it is searched on the contexts of the reported worst case, and
        ``exploiting`` is only used for the search. The contract tests find where it is
        wrong.
        """
        return False

    @abstractmethod
    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""Build the acquisition function that finds the next decision.

        Args:
            state: The round.
            adversary: The adversary whose worst case is used.
            X_pending: Pending decisions, ``m x d_x``; within a batch also those that
                come before.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""Build the objective of the posterior mean, for recommendations.

        Args:
            state: The round.
            adversary: The adversary whose worst case is used.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """
