"""The two ends of the scale: no ambiguity at all, and every distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.simplex import check_distributions
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp


class NoAmbiguity(AmbiguitySet):
    r"""The reference distribution alone: the plain expectation.

    .. math:: v = p^\top f

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import NoAmbiguity
        >>> values, weights = torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5])
        >>> NoAmbiguity().worst_case(values, weights).value
        tensor(2.)
    """

    knows_positions: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    holds_reference = True
    keeps_support: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(radius=0.0)

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The expectation, with gradients of every order.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``.
        """
        self._check(values, weights)
        return torch.linalg.vecdot(values, weights.to(values))

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The reference itself."""
        zeros = torch.zeros_like(values)
        return Solution(weights, zeros[..., 0], lambda: values, zeros)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        return [q == p]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Zero if the two are equal, else infinite.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        p, q = check_distributions(p, q)
        same = torch.isclose(p, q, rtol=0.0, atol=1e-12).all(-1)
        return torch.where(same, 0.0, torch.inf).to(p)


class FullSimplex(AmbiguitySet):
    r"""All distributions on the list: the worst case is the worst context.

    .. math:: v = \min_i f_i

    Atoms of reference weight zero count too; contexts that are not on the list never
    do. This is robust optimisation (RO), and over an interval of contexts StableOpt
    [Bogunovic2018stableopt]_.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FullSimplex
        >>> values, weights = torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5])
        >>> FullSimplex().worst_case(values, weights).value
        tensor(1.)
    """

    knows_positions: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    holds_reference = True

    def __init__(self) -> None:
        super().__init__(radius=1.0)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The lowest score."""
        zeros = torch.zeros_like(values)
        worst = values.argmin(-1, keepdim=True)
        vertex = zeros.scatter(-1, worst, 1.0)
        return Solution(vertex, zeros[..., 0], lambda: zeros, zeros)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        return []

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Zero if the two are equal, else one.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        p, q = check_distributions(p, q)
        return (~torch.isclose(p, q, rtol=0.0, atol=1e-12).all(-1)).to(p)
