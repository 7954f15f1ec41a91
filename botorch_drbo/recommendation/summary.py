"""A recommendation as a few lines of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.problem.history import Held
from botorch_drbo.recommendation.moved_contexts import MovedContext, moved_words
from botorch_drbo.recommendation.numbers import shown
from botorch_drbo.recommendation.promise import LEVEL, Promise
from botorch_drbo.recommendation.stability import Stability

_NUM_CONTEXTS = 3
_WIDTH = 20  # of the names of the lines, at least


def summary(
    decision: Mapping[str, object],
    outcome: str,
    expected: float,
    worst_case: float,
    contexts: Sequence[Mapping[str, object]],
    before: Sequence[float],
    after: Sequence[float],
    *,
    exact: bool,
    searched: str = "",
    known: str = "",
    feasibility: float | None = None,
    feasible: bool | None = None,
    held: Held | None = None,
    promise: Promise | None = None,
    level: float = LEVEL,
    stability: Stability[Any] | None = None,
    rival: Mapping[str, object] | None = None,
    beyond: str = "",
    moved: Sequence[MovedContext] = (),
) -> str:
    """The decision, its values, and the contexts that gain most in the worst case.

    Args:
        decision: Its values by name.
        outcome: The name of the outcome.
        expected: Its expectation.
        worst_case: The same under the worst distribution.
        contexts: ``n`` different contexts, by name.
        before: Their weights in the reference, ``n``.
        after: Their weights in the worst case, ``n``.
        exact: Whether the solver of the worst case has converged.
        searched: Over which distributions the worst case was searched.
        known: How far the model can be believed.
        feasibility: The worst probability of meeting the outcome constraints, if any.
        feasible: Whether it is enough.
        held: In how many trials told the constraints held.
        promise: What the model believes of both values.
        level: Of the intervals of them that are shown.
        stability: How far the contexts may shift before another decision is better.
        rival: The values of that decision by name; None if there is none.
        beyond: How far the worst distribution leaves the contexts seen.
        moved: The context columns that the decisions predict.
    """
    gains = [b - a for a, b in zip(before, after, strict=True)]
    order = sorted(range(len(gains)), key=lambda i: -gains[i])
    hurt = [
        f"{row_words(contexts[i])}: weight {after[i]:.3f}, {before[i]:.3f} in the "
        "reference"
        for i in order[:_NUM_CONTEXTS]
        if gains[i] > 1e-6
    ]
    note = "" if exact else " (a bound: the solver did not converge)"
    if promise is None:
        of_expected, of_worst = " (no interval: the recipe states none)", ""
    else:
        share = f"{100 * level:.3g}%"
        within = f"{share}: {interval_words(promise.expected, level)}"
        of_expected = f" ({within}, {promise.words()})"
        of_worst = f" ({share}: {interval_words(promise.worst_case, level)})"
    rows = {
        "decision": [row_words(decision)],
        "model": [known] if known else [],
        f"expected {outcome}": [f"{shown(expected)}{of_expected}"],
        f"worst-case {outcome}": [f"{shown(worst_case)}{of_worst}{note}"],
        "searched": [searched] if searched else [],
        "feasible": _feasible(feasibility, feasible, held),
        "answer holds": [stability.words(row_words(rival or {}))] if stability else [],
        "compared with": [stability.compared] if stability else [],
        "contexts that hurt": hurt or ["none: the worst case is the reference"],
        "beyond those seen": [beyond] if beyond else [],
        "contexts moved": [moved_words(moved)] if moved else [],
    }
    rows = {name: texts for name, texts in rows.items() if texts}
    width = max(_WIDTH, *(len(name) + 2 for name in rows))
    lines = [f"{name:<{width}}" + texts[0] for name, texts in rows.items()]
    return "\n".join([*lines, *(" " * width + text for text in hurt[1:])])


def _feasible(
    probability: float | None, enough: bool | None, held: Held | None
) -> list[str]:
    if probability is None:
        return []
    # A probability that is rounded to one would read as certainty.
    size = f"{probability:.3f}" if probability < 0.9995 else "above 0.999"
    shortage = "" if enough else ", TOO LITTLE: nothing better was found"
    measured = "" if held is None else f"; {held.words()}"
    return [f"with probability {size}{shortage}{measured}"]


def interval_words(belief: GaussianMixture, level: float) -> str:
    """Both ends, to two significant digits of the width."""
    low, high = belief.interval(level)
    width = high - low
    if not width > 0.0:
        return f"{shown(low)} to {shown(high)}"
    digits = 1 - math.floor(math.log10(width))
    ends = [round(end, digits) + 0.0 for end in (low, high)]  # no minus zero
    return " to ".join(f"{end:.{max(digits, 0)}f}" for end in ends)


def row_words(values: Mapping[str, object]) -> str:
    """Values by name, as reports show them."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())
