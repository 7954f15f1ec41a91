"""One run: random decisions at first, then those of a recipe, and what is told."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from benchmarks.run.storage import Row
from benchmarks.run.world import World
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe


def play(
    recipe: Recipe,
    space: SearchSpace,
    world: World,
    done: Sequence[Row],
    rounds: int,
    *,
    seed_of: Callable[[int], int | None],
    after: Callable[[Row, History], Mapping[str, Any]],
    first: Callable[[int], Tensor] | None = None,
    drift: Tensor | None = None,
) -> Iterator[Row]:
    """A row for each outcome that is not there yet.

    Args:
        recipe: Who decides.
        space: What it is told of the function.
        world: What happens.
        done: The rows of the outcomes that are there.
        rounds: How many outcomes there shall be.
        seed_of: The seed of the recipe in a step; None for a random decision.
        after: What else a row has: given it and all that is told by then.
        first: The random decisions; None for those of the world.
        drift: How far the context of each step is moved, ``rounds x d_c``.
    """
    rows, box = list(done), space.context_bounds
    first = world.initial_decision if first is None else first
    for step in range(len(done), rounds):
        seconds, seed, c = 0.0, seed_of(step), world.context(step)
        if drift is not None:
            c = (c + drift[step]).clamp(box[0], box[1])
        with quiet():
            if seed is None:
                x = first(step)
            else:
                start = time.process_time()
                x = recipe.propose(history_of(rows), space, seed=seed)
                seconds = time.process_time() - start
            row: Row = {
                "iteration": step,
                "x": x.flatten().tolist(),
                "c": c.flatten().tolist(),
                "y": world.outcome(step, x, c).item(),
                "seconds": seconds,
            }
            rows.append(row)
            row.update(after(row, history_of(rows)))
        yield row


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of line searches that stop at a kink."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def history_of(rows: Sequence[Row]) -> History:
    """What was told."""
    X, C, Y = (
        torch.tensor([row[name] for row in rows], dtype=torch.double)
        for name in ("x", "c", "y")
    )
    return History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C)
