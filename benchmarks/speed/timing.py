"""Timing in turns, as ratios, after the values have been compared.

A busy machine slows whatever runs at the moment. What is compared therefore takes
turns, repeat by repeat; each repeat gives a ratio, and the median ratio counts.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

TOLERANCE = 1e-6
"""How far results may differ, relative to the entry or to the largest entry."""
_AT_LEAST = 0.02  # seconds of one timing: shorter calls are repeated within it
_LONG = 1.0  # seconds of a first call that are hardly spent on building caches
_BUDGET = 20.0  # seconds for the repeats of one race, beyond which there are three


def alternate(
    functions: Sequence[Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] | None = None,
) -> list[list[float]]:
    """Seconds of each function, ``repeats`` times, taking turns."""
    clock = clock or time.perf_counter
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = clock()
            function()
            record.append(clock() - start)
    return times


def race(
    sides: Mapping[str, Callable[[], Tensor]],
    repeats: int,
    *,
    unlike: Collection[str] = (),
    clock: Callable[[], float] | None = None,
) -> dict[str, list[float]]:
    """Seconds of one call of each side, taking turns.

    First calls, which are not counted, build what the sides keep and tell how long they
    take. From that follow how many calls make one timing of a short side, and whether
    there is time for all repeats; there are never fewer than three, if three are asked
    for.

    Args:
        sides: What is compared, by name.
        repeats: Timings of each side.
        unlike: Sides that compute something else. The others must agree.
        clock: By default of the wall. That of the processor is disturbed less by what
            else a machine does.

    Raises:
        AssertionError: They do not.
    """
    results: list[Tensor] = []
    firsts = [lambda f=function: results.append(f()) for function in sides.values()]
    times = [times[0] for times in alternate(firsts, 1, clock)]
    found = dict(zip(sides, results, strict=True))
    _check_agreement({name: found[name] for name in sides if name not in unlike})
    for i, function in enumerate(sides.values()):
        if times[i] < _LONG:
            times[i] = alternate([function], 1, clock)[0][0]
    turns = [max(1, math.ceil(_AT_LEAST / max(t, 1e-9))) for t in times]
    once = sum(t * n for t, n in zip(times, turns, strict=True))
    repeats = min(repeats, max(3, int(_BUDGET / once)))
    functions = [
        _turns(function, n) for function, n in zip(sides.values(), turns, strict=True)
    ]
    return {
        name: [t / n for t in times]
        for name, times, n in zip(
            sides, alternate(functions, repeats, clock), turns, strict=True
        )
    }


def _check_agreement(found: Mapping[str, Tensor]) -> None:
    for (first, expected), (second, actual) in pairwise(found.items()):
        torch.testing.assert_close(
            actual,
            expected,
            rtol=TOLERANCE,
            atol=TOLERANCE * float(expected.abs().max()),
            msg=lambda text, a=second, b=first: f"{a} against {b}: {text}",
        )


def _turns(function: Callable[[], object], number: int) -> Callable[[], None]:
    def calls() -> None:
        for _ in range(number):
            function()

    return calls


def median_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> float:
    """The median over repeats of the ratio within a repeat."""
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def seconds(times: Sequence[float]) -> str:
    """The median, to be read."""
    return readable(statistics.median(times))


def readable(time: float) -> str:
    """Seconds to three digits, in s, ms or us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= 0.9995 * size:
            return f"{digits(time / size)} {unit}"
    return f"{digits(time / 1e-6)} us"


def digits(number: float) -> str:
    """At least three digits, never in the form 1e+03."""
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"


def value_and_gradient(function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    """Values and the gradient of their sum, ``b x (1 + d_x)``."""
    leaf = X.clone().requires_grad_(True)
    values = function(leaf)
    (gradient,) = torch.autograd.grad(values.sum(), leaf)
    return torch.cat([values.detach().unsqueeze(-1), gradient.squeeze(-2)], dim=-1)


def busy() -> str:
    """A sentence on what else the machine does; call it before the work begins."""
    if not hasattr(os, "getloadavg"):
        return "How busy the machine was is not known."
    load = os.getloadavg()[0]
    return f"The load average when the run began was {load:.1f}" + (
        ": **the machine was busy, times are too long**." if load > 1 else "."
    )
