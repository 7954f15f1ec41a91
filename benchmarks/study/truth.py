"""What is true of a case, known everywhere: scales of losses, best decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from benchmarks.study.cases import Case
from botorch_drbo.sampling import sobol, sobol_in_box

_NUM_GUESSES = 2**9  # decisions of a Sobol set, for the mean of a blind guess
_NUM_LEADERS = 4
_NUM_NEAR = 32  # points around each leader
_ROUNDS = 7
_SHRINK = 0.4

Truth = TypeVar("Truth")


def truths(
    cases: Mapping[str, Case], known: Callable[[Case, int], Truth]
) -> Callable[[str, int], Truth]:
    """What is true of a case under a seed, kept while the process lives.

    Args:
        cases: The cases of a study.
        known: What is true of one under a seed.

    Returns:
        From name and seed; a function that is not random is the same under all seeds.
    """
    of_function = cache(lambda name, seed: known(cases[name], seed))
    return lambda name, seed: of_function(name, seed if cases[name].random else 0)


@dataclass(frozen=True)
class Scale:
    """From values to losses: 0 for the best fixed decision, 100 for a blind guess.

    Args:
        best: The value of the best decision.
        guess: The mean value of random decisions.
    """

    best: float
    guess: float

    def loss(self, value: float) -> float:
        """The loss of a value, in percent.

        Example:
            >>> Scale(best=2.0, guess=-2.0).loss(1.0)
            25.0
        """
        return 100.0 * (self.best - value) / (self.best - self.guess)


def best_decision(
    value: Callable[[Tensor], Tensor], bounds: Tensor, starts: Tensor
) -> tuple[float, float]:
    """The largest value over a box and the mean of a blind guess: ``search_best``."""
    return search_best(value, bounds, starts)[1:]


def search_best(
    value: Callable[[Tensor], Tensor], bounds: Tensor, starts: Tensor
) -> tuple[Tensor, float, float]:
    """The best decision of a box, its value, and the mean value of a blind guess.

    A search in ever smaller boxes around the best few points: values of a worst case
    have kinks, which stop a line search.

    Args:
        value: Decisions ``M x d_x`` to values ``M``.
        bounds: The box, ``2 x d_x``.
        starts: Decisions to look at as well, ``k x d_x``.

    Returns:
        The best decision found, ``d_x``, its value, and the mean over a Sobol set.
    """
    side = bounds[1] - bounds[0]
    guesses = sobol_in_box(_NUM_GUESSES, bounds, 0)
    values = value(guesses)
    mean = values.mean().item()
    points, values = torch.cat([guesses, starts]), torch.cat([values, value(starts)])
    width = 0.5
    for number in range(_ROUNDS):
        top = values.topk(_NUM_LEADERS).indices
        points, values = points[top], values[top]
        width *= _SHRINK
        near = sobol(_NUM_LEADERS * _NUM_NEAR, bounds.shape[-1], number + 1) - 0.5
        near = near.reshape(_NUM_LEADERS, _NUM_NEAR, -1) * width * side
        fresh = (points.unsqueeze(1) + near).flatten(0, 1).clamp(bounds[0], bounds[1])
        points = torch.cat([points, fresh])
        values = torch.cat([values, value(fresh)])
    best = values.argmax()
    return points[best], values[best].item(), mean
