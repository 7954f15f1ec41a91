"""Runs on a finite list of decisions, which can be resumed after any round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.run.storage import Row


def decisions(
    done: Sequence[Row],
    rounds: int,
    *,
    choose: Callable[[int], int],
    learn: Callable[[int, int], None],
) -> Iterator[Row]:
    """Make the decisions of a run that are not made yet.

    Args:
        done: The rows of those that are.
        rounds: How many it shall have.
        choose: The position of the decision of a step.
        learn: Makes the outcome of a step known, given its position; called for the
            decisions that are made, too.

    Yields:
        ``iteration``, ``position`` among the candidates, and the ``seconds`` it took to
        choose it.
    """
    for step in range(rounds):
        if step < len(done):
            position = done[step]["position"]
        else:
            start = time.perf_counter()
            position = choose(step)
            seconds = time.perf_counter() - start
            yield {"iteration": step, "position": position, "seconds": seconds}
        learn(step, position)
