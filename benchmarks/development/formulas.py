r"""Closed-form functions of the development set that the library does not have."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Distribution

from benchmarks.problems.reservoir import Reservoir
from botorch_drbo.test_functions.base import burr_law, normal_law
from botorch_drbo.test_functions.closed_form import Problem, unit_bounds

_CENTRE = (0.3, 0.55, 0.7)  # of the bowl
_PULL = 0.3  # by which a context moves it
_SPILL = 4.0  # the damage of each unit of water that finds no room
_RESERVOIR = Reservoir(flood_share=0.1)


def shifted(u: Tensor) -> Tensor:
    """The unit interval as [-2, 3.12]: the optimum at zero is not in the middle."""
    return 5.12 * u - 2.0


def rastrigin(x: Tensor, c: Tensor) -> Tensor:
    r"""The negated Rastrigin function on a part of its box, five ripples a column.

    .. math:: f = -\sum_i \big( 10 + z_i^2 - 10 \cos 2 \pi z_i \big),
        \quad z = 5.12\,[x, c] - 2
    """
    z = shifted(torch.cat([x, c], dim=-1))
    return -(10.0 + z.square() - 10.0 * (2 * math.pi * z).cos()).sum(-1)


def drop_wave(x: Tensor, c: Tensor) -> Tensor:
    r"""The drop-wave function on a part of its box.

    .. math:: f = \frac{1 + \cos(12 \|z\|)}{\|z\|^2 / 2 + 2}, \quad z = 5.12\,[x, c] - 2
    """
    squared = shifted(torch.cat([x, c], dim=-1)).square().sum(-1)
    # A root has no slope at zero; the cosine of it is flat there.
    radius = squared.clamp_min(1e-300).sqrt()
    return (1.0 + (12.0 * radius).cos()) / (0.5 * squared + 2.0)


def priced_newsvendor(x: Tensor, c: Tensor) -> Tensor:
    r"""The profit of an order ``q`` at a price ``p`` that moves the demand ``D``.

    .. math:: f = p \min(q, D) + \max(0, q - D) - 3 q, \quad q = x_1, \quad
        p = 4 + 8 x_2, \quad D = c \, (1.5 - x_2)

    (cost 3, salvage value 1).
    """
    order, markup = x.unbind(-1)
    demand = c.squeeze(-1) * (1.5 - markup)
    sold = torch.minimum(order, demand)
    return (4.0 + 8.0 * markup) * sold + (order - sold) - 3.0 * order


def bowl(x: Tensor, c: Tensor) -> Tensor:
    r"""One wide bowl, whose lowest point the context moves.

    .. math:: f = -\sum_j \big( x_j - m_j - .3 (c - .5) \big)^2,
        \quad m = (.3, .55, .7)
    """
    pull = _PULL * (c - 0.5)  # N x 1
    return -(x - x.new_tensor(_CENTRE) - pull).square().sum(-1)


def damaged_reservoir(x: Tensor, c: Tensor) -> Tensor:
    r"""The benchmarks' reservoir, where what finds no room does damage.

    .. math:: f = .8 x_1 + .6 x_2 + .3 (.5 - c) - 4 \max(0, -g(x, c)), \quad
        g = 1.05 - .5 (x_1^2 + x_2^2) - c
    """
    spill = (-_RESERVOIR.constraints(x, c)).clamp_min(0.0).squeeze(-1)
    return _RESERVOIR.evaluate(x, c) - _SPILL * spill


def _problem(
    name: str,
    formula: Callable[[Tensor, Tensor], Tensor],
    d_x: int,
    law: Distribution,
) -> Problem:
    """On unit cubes, with one context."""
    return Problem(name, formula, unit_bounds(d_x), unit_bounds(1), law)


PROBLEMS = {
    problem.name: problem
    for problem in (
        _problem("rastrigin_2_1", rastrigin, 2, normal_law(0.5, 0.2, 1)),
        _problem("drop_wave_1_1", drop_wave, 1, normal_law(0.5, 0.2, 1)),
        # The demand at price 8 is that of the library's newsvendor.
        _problem("newsvendor_2_1", priced_newsvendor, 2, burr_law(2.0, 20.0)),
        _problem("reservoir_2_1", damaged_reservoir, 2, _RESERVOIR.context_law),
        _problem("bowl_3_1", bowl, 3, normal_law(0.5, 0.2, 1)),
    )
}
