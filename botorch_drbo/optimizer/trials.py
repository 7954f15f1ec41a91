"""The trials of a run, sorted by what they still lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Status = Literal["pending", "complete", "failed", "withdrawn"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    r"""A decision with its context, outcome and status.

    Attributes:
        number: Counts from 0: a decision gets its number when it is asked, data from
            elsewhere when they are told. ``RobustOptimizer.withdraw`` takes it.
        x: The decision: executed if that is known, else asked, ``d_x``.
        c: The context that occurred, ``d_c``; None until it is told.
        y: The outcome, in your sign; None until it is told.
        y_variance: The variance of the noise in it; None if it was not told.
        constraints: The measured values of the outcome constraints; None if they were
            not measured.
        status: "pending" (no outcome yet), "complete", "failed" (the outcome will never
            come) or "withdrawn".
        asked: The decision that ``ask`` proposed, ``d_x``; None for data from
            elsewhere.
        known_context: The part of the context that was known before the decision,
            ``d_c``, with NaN in unknown columns; None if nothing was known.
        has_forecast: Whether the decision was asked for a distribution of its own.
        chosen_context: The context that ``ask(choose_context=True)`` chose, ``d_c``;
            None if it was not chosen.
        actions: The round's action set, ``m x d_x``, one of whose rows must be
            executed; None for the whole box.
        error: The reason why a trial failed, for example a traceback; None if it was
            not told.
    """

    number: int
    x: Tensor
    c: Tensor | None = None
    y: float | None = None
    y_variance: float | None = None
    constraints: tuple[float, ...] | None = None
    status: Status = "pending"
    asked: Tensor | None = None
    known_context: Tensor | None = None
    has_forecast: bool = False
    chosen_context: Tensor | None = None
    actions: Tensor | None = None
    error: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may still be told: pending, or withdrawn after ``ask``."""
        return self.status == "pending" or (
            self.status == "withdrawn" and self.asked is not None
        )


@dataclass(frozen=True)
class OutcomeRange:
    """How many outcomes there are, and between which they lie."""

    # How many.
    num: int = 0
    # The lowest; infinite if there is none.
    lowest: float = float("inf")
    # The highest; the same with the other sign.
    highest: float = -float("inf")


class Standing:
    """What follows from all trials, kept up with each that changes."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []
        self.seen: dict[int, None] = {}  # in the order of insertion
        self.complete: dict[int, None] = {}
        self.failed: dict[int, None] = {}
        self.measured: dict[int, None] = {}
        self.num_variances = 0
        self.num_asks = 0
        self.num_asked = 0
        self._open: dict[int, None] = {}
        self._sizes: Counter[int] = Counter()
        self._outcomes: OutcomeRange | None = OutcomeRange()

    def take(self, trials: Sequence[Trial], num_asks: int, num_asked: int) -> None:
        """Take what trials have become."""
        for trial in trials:
            if trial.number < len(self.trials):
                self._drop(self.trials[trial.number])
                self.trials[trial.number] = trial
            else:
                self.trials.append(trial)
            self._add(trial)
        self.num_asks += num_asks
        self.num_asked += num_asked

    def open_trials(self) -> list[Trial]:
        """Those that may still be told of, by number."""
        return [self.trials[k] for k in sorted(self._open)]

    @property
    def constraint_numbers(self) -> set[int]:
        """How many constraints were measured in a trial, over all trials."""
        return {size for size, num in self._sizes.items() if num}

    @property
    def outcomes(self) -> OutcomeRange:
        """The range of all outcomes."""
        if self._outcomes is None:  # one was withdrawn
            found = [self.trials[k].y for k in self.complete]
            ys = [y for y in found if y is not None]
            self._outcomes = (
                OutcomeRange(len(ys), min(ys), max(ys)) if ys else OutcomeRange()
            )
        return self._outcomes

    def _add(self, trial: Trial) -> None:
        number, stands = trial.number, trial.status != "withdrawn"
        if stands and trial.c is not None and trial.chosen_context is None:
            # a chosen context tells nothing about the distribution
            self.seen[number] = None
        else:
            self.seen.pop(number, None)
        if trial.is_open:
            self._open[number] = None
        if trial.status == "failed":
            self.failed[number] = None
        if stands and trial.constraints is not None:
            self.measured[number] = None
            self._sizes[len(trial.constraints)] += 1
        if trial.y is None or trial.status != "complete":
            return
        self.complete[number] = None
        self.num_variances += trial.y_variance is not None
        if (known := self._outcomes) is not None:
            self._outcomes = OutcomeRange(
                known.num + 1, min(known.lowest, trial.y), max(known.highest, trial.y)
            )

    def _drop(self, trial: Trial) -> None:
        """Forget a trial, but keep its place among the contexts seen."""
        number = trial.number
        self._open.pop(number, None)
        self.failed.pop(number, None)
        if number in self.measured:
            del self.measured[number]
            self._sizes[len(trial.constraints or ())] -= 1
        if number in self.complete:
            del self.complete[number]
            self.num_variances -= trial.y_variance is not None
            self._outcomes = None
