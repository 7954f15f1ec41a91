"""A finite family: the worst case is the least of a few expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.numerics import check_distributions, check_simplex
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp


_EQUAL = 1e-13  # of the largest score


class FiniteFamily(AmbiguitySet):
    r"""A few distributions that were named, and no other: a finite ambiguity set.

    .. math:: v = \min_k \sum_i Q_{ki}\, f_i

    The least of ``K`` expectations, found by looking at each. It does not depend on the
    reference weights, and is the same for all mixtures of the ``K`` distributions.

    Args:
        distributions: ``Q``, ``K x n``: each row is a distribution on the contexts.

    Raises:
        InputDataError: Rows that are not on the simplex.
        BotorchTensorDimensionError: Not a matrix with a row.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FiniteFamily
        >>> family = FiniteFamily(torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
        >>> values, weights = torch.tensor([4.0, 2.0, 1.0]), torch.full((3,), 1 / 3)
        >>> family.worst_case(values, weights).value
        tensor(1.5000)
    """

    has_radius: ClassVar[bool] = False
    distributions: Tensor

    def __init__(self, distributions: Tensor) -> None:
        super().__init__(radius=1.0)
        if distributions.ndim != 2 or not distributions.numel():
            raise BotorchTensorDimensionError(
                "`distributions` must be `K x n`, a row for each distribution, got "
                f"shape {tuple(distributions.shape)}."
            )
        check_simplex(distributions)
        self.register_buffer("distributions", distributions.detach().clone())

    def expectations(self, values: Tensor) -> Tensor:
        r"""The expectation under each distribution.

        Args:
            values: Scores, ``... x n``.

        Returns:
            ``... x K``, differentiable.
        """
        return values @ self.distributions.to(values).mT

    def thinned(self, points: Tensor, most: int) -> tuple[Tensor, FiniteFamily]:
        r"""The same on fewer contexts, where there are many.

        Each distribution is represented by contexts of equal weight, drawn from it
        systematically.

        Args:
            points: The contexts, ``n x d_c``.
            most: How many of them may stay.

        Returns:
            At most so many contexts, and the family on them.
        """
        if len(points) <= most:
            return points, self
        each = max(1, most // len(self.distributions))
        steps = (torch.arange(each).to(self.distributions) + 0.5) / each
        sums = self.distributions.cumsum(-1)  # K x n
        places = torch.searchsorted(sums, steps * sums[:, -1:]).clamp_max(
            len(points) - 1
        )
        blocks = torch.eye(len(places)).to(sums).repeat_interleave(each, dim=-1) / each
        return points[places.flatten()], FiniteFamily(blocks)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The distribution with the least expectation."""
        each = self.distributions.to(values)
        expected = self.expectations(values)
        # Of equal ones the first, whatever rounding makes of them.
        least = expected <= expected.amin(-1, keepdim=True) + _EQUAL
        worst = each[least.int().argmax(-1)]
        zeros = torch.zeros_like(values)
        return Solution(worst, zeros[..., 0], lambda: zeros, zeros)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""Mixtures of the family, whose least expectation is that of a member."""
        import cvxpy as cp

        share = cp.Variable(len(self.distributions), nonneg=True)
        each = self.distributions.double().mT.cpu().numpy()
        return [cp.Zero(cp.sum(share) - 1.0), cp.Zero(q - each @ share)]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Zero if ``q`` is one of the family, else infinite.

        Args:
            p: Reference weights, ``... x n``, which do not matter.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        p, q = check_distributions(p, q)
        gaps = (q.unsqueeze(-2) - self.distributions.to(q)).abs().amax(-1)
        return torch.where((gaps <= 1e-9).any(-1), 0.0, torch.inf).to(p)

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        super()._check_sizes(num_values, num_weights)
        if num_values != self.distributions.shape[-1]:
            raise BotorchTensorDimensionError(
                f"The distributions of this FiniteFamily are on "
                f"{self.distributions.shape[-1]} contexts, got {num_values} scores."
            )
