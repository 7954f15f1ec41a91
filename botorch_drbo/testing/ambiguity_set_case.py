"""One ambiguity set for the contract tests, and random problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet


class Tolerances(TypedDict):
    """How near two numbers have to be."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class AmbiguitySetCase:
    r"""One ambiguity set for the contract tests, and its properties.

    Args:
        name: Its name in messages of failing tests.
        make: From a radius and a number of contexts to the set. A radius that is none
            (negative, NaN, infinite) is passed on to its constructor.
        has_radius: Whether ``make`` uses the radius.
        saturates: Whether some finite radius covers the simplex.
        feasible: Whether the returned weights lie in the set; not for approximations.
        precision: Of the value, relative to the scores.
        exact: Whether it is solved to rounding; else by a convex solver, to its
            tolerance.
        linear: Whether ``value`` is linear in the scores: it has second derivatives.
        function: The argument of the constructor that is a function of the user's, and
            cannot be stored; None if there is none.

    Example:
        >>> from botorch_drbo.testing import AmbiguitySetCase
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> case = AmbiguitySetCase("l1", lambda radius, n: TotalVariation(radius))
        >>> case.make(0.2, 5).radius
        tensor(0.2000, dtype=torch.float64)
    """

    name: str
    make: Callable[[float, int], AmbiguitySet]
    has_radius: bool = True
    saturates: bool = True
    feasible: bool = True
    precision: float = 1e-9
    exact: bool = True
    linear: bool = False
    function: str | None = None

    @property
    def error(self) -> float:
        """Of values, weights and distances, for scores and radii of about one."""
        return 1e-10 if self.exact else 1e-7

    @property
    def step(self) -> float:
        """Of finite differences: the larger the error, the larger the step."""
        return 1e-6 if self.exact else 1e-3

    def close(self, rtol: float = 1e-7, atol: float = 1e-7) -> Tolerances:
        r"""The tolerances of a derivative, which an inexact solver may exceed.

        Args:
            rtol: The relative one of an exact solver.
            atol: The absolute one of an exact solver.

        Returns:
            Both by name.
        """
        least = 0.0 if self.exact else 1e-3
        return {"rtol": max(rtol, least), "atol": max(atol, least)}


def instance(
    seed: int, n: int, zeros: bool = False, ties: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Four random problems.

    Args:
        seed: Decides them.
        n: The number of contexts.
        zeros: Whether some reference weights are zero.
        ties: Whether scores are whole numbers.

    Returns:
        Scores and reference weights, both ``4 x n``.
    """
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(4, n, generator=generator, dtype=torch.double)
    weights = torch.rand(4, n, generator=generator, dtype=torch.double) + 1e-3
    if ties:
        values = values.round()
    if zeros and n > 1:
        weights[:, :: 2 if n > 2 else n] = 0.0
    return values, weights / weights.sum(-1, keepdim=True)
