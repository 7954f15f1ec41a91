"""The result of a worst-case problem: of a solver, and of a set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from torch import Tensor


class SolverStatus(Enum):
    """How accurate a worst-case value is."""

    EXACT = "exact"
    """A closed form, or a solver that ended with a proof."""
    LOWER_BOUND = "lower bound"
    """The solver stopped early: the value is a certified lower bound."""


@dataclass(frozen=True)
class RobustValue:
    r"""The answer to one batch of worst-case problems.

    Attributes:
        value: The worst-case expectation ``v``, shape ``...``; differentiable once in
            the scores, the reference weights and the radius.
        weights: A worst-case distribution ``q*``, shape ``... x n``; detached.
        multiplier: ``-dv/d radius`` from the right, shape ``...``; detached.
        status: Whether the value is exact or a certified lower bound.
    """

    value: Tensor
    weights: Tensor
    multiplier: Tensor
    status: SolverStatus


@dataclass(frozen=True)
class Solution:
    r"""The result of ``AmbiguitySet.solve``: detached float64 tensors.

    .. math:: v(\epsilon) = \min_q q^\top f = q^{*\top} f

    Only ``weights`` and ``multiplier`` are required. Without a ``direction`` the
    gradient of the sensitivity uses a forward difference of ``q*``; without a
    ``reference_gradient`` a gradient in the reference weights raises an error (no
    recipe and no acquisition function needs it).

    Attributes:
        weights: The worst-case distribution ``q*``, ``... x n``; it sums to one.
        multiplier: ``-dv/d radius`` from the right, ``...``, in units of the scores by
            units of the radius. Not negative; zero where a larger radius changes
            nothing, infinite where the slope is.
        reference_gradient: Finds ``dv/dp`` up to an additive constant, ``... x n``; it
            is called only if that gradient is needed. None if it is not known.
        direction: ``dq*/d radius`` from the right, ``... x n``; None for a difference.
        gap: How far ``q* . f`` may lie above the exact value, ``...``; None for not at
            all. What is returned is the lower end, and the user is warned.
        infeasibility: How far the exact value may lie above ``q* . f``, because ``q*``
            is not quite feasible, ``...``; None for not at all.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import Solution
        >>> Solution(torch.tensor([0.75, 0.25]), torch.tensor(4.0)).weights
        tensor([0.7500, 0.2500])
    """

    weights: Tensor
    multiplier: Tensor
    reference_gradient: Callable[[], Tensor] | None = None
    direction: Tensor | None = None
    gap: Tensor | None = None
    infeasibility: Tensor | None = None

    def times(self, unit: Tensor) -> Solution:
        """The solution for scores that are ``unit`` times as large, one per row."""
        gradient, gap, left = self.reference_gradient, self.gap, self.infeasibility
        return replace(
            self,
            multiplier=unit * self.multiplier,
            reference_gradient=gradient and (lambda: unit.unsqueeze(-1) * gradient()),
            gap=None if gap is None else unit * gap,
            infeasibility=None if left is None else unit * left,
        )
