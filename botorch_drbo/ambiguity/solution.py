"""What a worst-case problem is answered with: inside by a solver, outside by a set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from torch import Tensor


class SolverStatus(Enum):
    """How far a returned worst-case value can be trusted."""

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
    """What a solver finds, all detached float64; ``AmbiguitySet`` adds the gradients.

    Attributes:
        weights: The worst-case distribution ``q*``, ``... x n``.
        multiplier: ``-dv/d radius`` from the right, ``...``.
        reference_gradient: Finds ``dv/dp`` up to an additive constant, ``... x n``; it
            is asked only where somebody wants that gradient.
        direction: ``dq*/d radius`` from the right, ``... x n``.
        gap: How far ``q* . f`` may lie above the exact value, ``...``; None for not at
            all. What is returned is the lower end, and the user is warned.
        infeasibility: How far the exact value may lie above ``q* . f``, because ``q*``
            is not quite feasible, ``...``; None for not at all.
    """

    weights: Tensor
    multiplier: Tensor
    reference_gradient: Callable[[], Tensor]
    direction: Tensor
    gap: Tensor | None = None
    infeasibility: Tensor | None = None
