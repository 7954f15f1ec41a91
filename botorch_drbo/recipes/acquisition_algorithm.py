"""Recipes that are one acquisition function, with ``beta`` and without."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.exploration import ConfidenceWidth, check_beta, current_bound
from botorch_drbo.recipes.model_based import ModelBasedAlgorithm
from botorch_drbo.schedules import Schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class AcquisitionAlgorithm(ModelBasedAlgorithm):
    r"""One acquisition function for both: with ``beta`` to explore, with 0 to judge.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.

    Raises:
        InputDataError: An option outside its range.
        UnsupportedError: A ``model`` with a width of the recipe's own.
    """

    beta: Schedule | ConfidenceWidth | float = 2.25

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_beta(self.beta)
        if self.model is not None and getattr(self.beta, "data_free", False):
            raise UnsupportedError(
                "`beta` with `data_free=True` takes no `model`: the largest "
                "information gain is that of the recipe's own kernel and inputs. Leave "
                "`data_free` out: then the width is that of the model's data."
            )

    @abstractmethod
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
        r"""Build the acquisition function.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            beta: The exploration of this round; 0 asks for the posterior mean.
            X_pending: Pending decisions, ``m x d_x``.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The acquisition function with the ``beta`` of this round."""
        model, beta = current_bound(self.beta, model, history)
        return self.acquisition(
            model, history, space, beta=beta, X_pending=X_pending, seed=seed
        )

    def exploiting(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> AcquisitionFunction:
        r"""The acquisition function with ``beta`` zero."""
        return self.acquisition(
            model, history, space, beta=0.0, X_pending=None, seed=seed
        )
