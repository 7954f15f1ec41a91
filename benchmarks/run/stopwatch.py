"""The time of one ``ask``, divided into the fit, the inner problem and the rest.

The library keeps no clock, so the two are timed from outside: the fits of the models,
and the forward passes of objectives and of the search for ``L(x)`` (with the slopes
that it asks for, without backward passes). All else is the optimisation of the
acquisition function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from botorch_drbo.lipschitz.sampled import LipschitzConstant
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.recipes import fitted_state

FITS = ("fit_outcomes", "fit_constraints")
INNER = (LipschitzConstant, UncertaintyObjective, RobustSatisficing)


class Stopwatch:
    """Seconds by part, since it was made or last read."""

    def __init__(self) -> None:
        self._seconds = {"fit": 0.0, "inner": 0.0}

    def read(self) -> dict[str, float]:
        """The seconds of each part; then all begin at zero."""
        seconds = self._seconds
        self._seconds = dict.fromkeys(seconds, 0.0)
        return seconds

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted as that part."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._seconds[part] += time.perf_counter() - start

        return timed


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time the parts of whatever runs inside."""
    watch = Stopwatch()
    with ExitStack() as stack:
        for name in FITS:
            fit = watch.timed("fit", getattr(fitted_state, name))
            stack.enter_context(patch.object(fitted_state, name, fit))
        for solver in INNER:
            inner = watch.timed("inner", solver.forward)
            stack.enter_context(patch.object(solver, "forward", inner))
        yield watch
