r"""The optimum of an expected value over a box, by multi-start search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from botorch_drbo.sampling import sobol_in_box

_SHRINK = 0.1  # each round searches a box this much smaller around the best point
_NUM_POLISHED = 3  # rivals that the screening contexts may have put in a wrong order


@dataclass(frozen=True)
class Optimum:
    r"""The best expected value and a decision that attains it.

    Args:
        value: The expected value, higher is better.
        decision: The ``d_x`` coordinates of the decision.
    """

    value: float
    decision: tuple[float, ...]


class HasExpectedValue(Protocol):
    """What the search needs to know of a test function."""

    bounds: Tensor
    """Bounds of the decision, ``2 x d_x``."""

    def expected_value(self, X: Tensor, num: int) -> Tensor:
        """The expected outcomes of ``... x d_x`` decisions at ``num`` contexts."""
        ...


def find_optimum(
    function: HasExpectedValue,
    *,
    num_contexts: int = 2**13,
    num_screening: int = 2**10,
    num_raw: int = 1024,
    num_starts: int = 8,
    num_rounds: int = 3,
    seed: int = 0,
) -> Optimum:
    r"""Maximise :math:`E_c f(x, c)` over the decisions of a test function.

    Each round scores Sobol points of a box and of its faces and edges on a small set of
    contexts, climbs from the best of them with L-BFGS-B, and shrinks the box around the
    best point found.
    At the end the best few points climb on the full set of contexts. The search is
    a heuristic: it does not certify a global optimum.

    Args:
        function: The test function.
        num_contexts: Quasi-Monte Carlo contexts of the final values.
        num_screening: Contexts of the search.
        num_raw: Sobol points of each round, and as many that are pushed outwards.
        num_starts: Climbs of each round.
        num_rounds: Rounds; the last searches a box of relative side 0.1^(rounds-1).
        seed: Seed of the Sobol points.

    Returns:
        The best value at ``num_contexts`` contexts, and its decision.
    """
    bounds = function.bounds.to("cpu", torch.double)
    num_screening = min(num_screening, num_contexts)
    box = bounds
    found = bounds.mean(0, keepdim=True)  # many test functions are symmetric there
    for number in range(num_rounds):
        raw = sobol_in_box(num_raw, box, seed + number)  # num_raw x d_x
        points = torch.cat([found, raw, _on_faces(raw, box)])
        with torch.no_grad():
            values = function.expected_value(points, num=num_screening)
        starts = points[values.topk(min(num_starts, len(points))).indices]
        climbed = torch.stack(
            [_climb(function, start, box, num_screening) for start in starts]
        )
        with torch.no_grad():
            values = function.expected_value(climbed, num=num_screening)
        found = climbed[values.topk(min(_NUM_POLISHED, len(climbed))).indices]
        side = _SHRINK ** (number + 1) * (bounds[1] - bounds[0])
        box = torch.stack([found[0] - side / 2, found[0] + side / 2])
        box = box.clamp(bounds[0], bounds[1])
    polished = torch.stack(
        [_climb(function, point, bounds, num_contexts) for point in found]
    )
    with torch.no_grad():
        values = function.expected_value(polished, num=num_contexts)
    best = int(values.argmax())
    return Optimum(float(values[best]), tuple(polished[best].tolist()))


def _on_faces(points: Tensor, box: Tensor) -> Tensor:
    """Stretch points to twice the box and back: half of each column is at a bound."""
    middle = box.mean(0)
    return (middle + 2 * (points - middle)).clamp(box[0], box[1])


def _climb(
    function: HasExpectedValue, start: Tensor, box: Tensor, num_contexts: int
) -> Tensor:
    """Return the end of an L-BFGS-B ascent from ``start`` (``d_x``) inside ``box``."""
    result = minimize(
        _negated(function, num_contexts),
        start.numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(box[0].tolist(), box[1].tolist(), strict=True)),
        options={"ftol": 1e-13, "gtol": 1e-9, "maxiter": 200},
    )
    # A line search can end above its start on a kinked function: keep the better one.
    end = torch.as_tensor(result.x, dtype=start.dtype)
    with torch.no_grad():
        pair = torch.stack([start, end])
        return pair[function.expected_value(pair, num=num_contexts).argmax()]


def _negated(
    function: HasExpectedValue, num_contexts: int
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    def negated(x: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.as_tensor(x, dtype=torch.double).requires_grad_(True)
        value = function.expected_value(point, num=num_contexts)
        (gradient,) = torch.autograd.grad(value, point)
        return -value.item(), -gradient.numpy()

    return negated
