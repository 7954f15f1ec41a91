"""What a plate costs beside one decision of the same table."""

from __future__ import annotations

import time

from benchmarks.run.engine import one_thread
from benchmarks.speed.iterations import make_history
from botorch_drbo.recipes import make_recipe


def plate_over_one(q: int, *, recipe: str = "wdrbo_exact", t: int = 40) -> float:
    """CPU seconds of ``ask(q)`` over those of ``ask(1)``, in turn, one thread."""
    history, space = make_history(t, 0)
    made = make_recipe(recipe)
    made.propose(history, space, seed=0)  # what is done once in a process
    found = []
    with one_thread():
        for number in (1, q):
            start = time.process_time()
            made.propose(history, space, q=number, seed=0)
            found.append(time.process_time() - start)
    return found[1] / found[0]
