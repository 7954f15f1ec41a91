"""A trial: a decision, the context that it met, and the outcome."""

from __future__ import annotations

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
