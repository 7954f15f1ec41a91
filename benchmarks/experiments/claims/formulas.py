r"""Problems in which the robust and the plain decision differ."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo.test_functions.base import Optimum, normal_law
from botorch_drbo.test_functions.closed_form import Problem, unit_bounds

_STEPS = 20  # samples of the controller
_LARGEST_ERROR = 2.0  # that counts in a step


def advertised_newsvendor(x: Tensor, c: Tensor) -> Tensor:
    r"""The profit of an order ``q`` where advertising ``a`` raises the demand ``D``.

    .. math:: f = 5 \min(q, D) + .5 \max(0, q - D) - 2.5 q - .3 a, \quad
        q = x_1, \quad a = x_2, \quad D = c \, (.7 + .6 a)
    """
    order, advertising = x.unbind(-1)
    demand = c.squeeze(-1) * (0.7 + 0.6 * advertising)
    sold = torch.minimum(order, demand)
    return 5.0 * sold + 0.5 * (order - sold) - 2.5 * order - 0.3 * advertising


def two_products(x: Tensor, c: Tensor) -> Tensor:
    r"""The profit of two orders, one of them dear.

    .. math:: f = 4 \min(x_1, c_1) + 4 \min(x_2, c_2) - 2 x_1 - 3 x_2
    """
    costs = x.new_tensor([2.0, 3.0])
    return 4.0 * torch.minimum(x, c).sum(-1) - x @ costs


def released_reservoir(x: Tensor, c: Tensor) -> Tensor:
    r"""What is stored is worth something; what finds no room does damage.

    .. math:: f = \sqrt{s} - .35 r - 5 \max(0, s + .7 c - .4 r - 1), \quad
        s = x_1, \quad r = x_2

    ``s`` is the water that is held, ``r`` what is released before the inflow ``c``.
    """
    stored, released = x.unbind(-1)
    spill = (stored + 0.7 * c.squeeze(-1) - 0.4 * released - 1.0).clamp_min(0.0)
    return stored.sqrt() - 0.35 * released - 5.0 * spill


def sampled_controller(x: Tensor, c: Tensor) -> Tensor:
    r"""Minus the mean error of a proportional-derivative controller in 20 samples.

    .. math:: y_{k+1} = y_k + g\, u_k - w, \qquad
        u_k = 2.5 x_1 (1 - y_k) - 1.25 x_2 (y_k - y_{k-1}), \qquad
        f = -\frac1{20} \sum_{k=1}^{20} \min( |1 - y_k|, 2 )

    with :math:`y_0 = y_{-1} = 0`, the plant's gain :math:`g = .4 + 1.2 c_1` and its
    load :math:`w = .6 (.5 + c_2)`; ``y`` is kept in [-4, 6]. A large gain of the
    controller carries a large load, and is unstable with a large gain of the plant.
    """
    proportional, derivative = 2.5 * x[:, 0], 1.25 * x[:, 1]
    gain, load = 0.4 + 1.2 * c[:, 0], 0.6 * (0.5 + c[:, 1])
    output = before = torch.zeros_like(gain)
    total = torch.zeros_like(gain)
    for _ in range(_STEPS):
        control = proportional * (1.0 - output) - derivative * (output - before)
        before, output = output, (output + gain * control - load).clamp(-4.0, 6.0)
        total = total + (1.0 - output).abs().clamp_max(_LARGEST_ERROR)
    return -total / _STEPS


PROBLEMS = {
    "advertised_2_1": Problem(
        "advertised_2_1",
        advertised_newsvendor,
        unit_bounds(2),
        unit_bounds(1),
        normal_law(0.5, 0.12, 1),
        Optimum(1.047672, (0.671795, 1.0)),
    ),
    "two_products_2_2": Problem(
        "two_products_2_2",
        two_products,
        unit_bounds(2),
        unit_bounds(2),
        normal_law(0.5, 0.2, 2),
        Optimum(0.929831, (0.5, 0.365123)),
    ),
    "released_2_1": Problem(
        "released_2_1",
        released_reservoir,
        unit_bounds(2),
        unit_bounds(1),
        normal_law(0.4, 0.15, 1),
        Optimum(0.741536, (0.601210, 0.0)),
    ),
    "controller_2_2": Problem(
        "controller_2_2",
        sampled_controller,
        unit_bounds(2),
        unit_bounds(2),
        normal_law(0.5, 0.15, 2),
        Optimum(-0.446959, (0.579076, 0.0)),
    ),
}
