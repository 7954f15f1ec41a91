"""The base class of objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo.ambiguity.base import AmbiguitySet, check_ambiguity_set


class Objective(Module, ABC):
    r"""Collapses the scores over contexts to one number; higher is better.

    Args:
        ambiguity_set: Which context distributions are plausible.

    Raises:
        InputDataError: The argument is not an ambiguity set.
    """

    def __init__(self, ambiguity_set: AmbiguitySet) -> None:
        super().__init__()
        self.ambiguity_set = check_ambiguity_set(ambiguity_set)

    @abstractmethod
    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Collapse the scores over contexts.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            The objective, ``...``; differentiable once in ``values``.
        """

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Bound the objective from below, to rank rows by.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            Lower bounds of the objective, ``...``, without a gradient; by default the
            objective itself.
        """
        with torch.no_grad():
            return self(values, weights)

    def upper_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Bound the objective from above, at little cost.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            Upper bounds of the objective, ``...``; by default infinity.
        """
        return torch.full_like(values[..., 0], torch.inf)
