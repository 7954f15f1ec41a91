"""A trial: a decision, the context that it met, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Status = Literal["pending", "complete", "failed", "withdrawn"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    r"""A decision, and what became of it.

    Attributes:
        number: Counts from 0: a decision gets its number when it is asked, data from
            elsewhere when they are told. ``RobustOptimizer.withdraw`` takes it.
        x: The decision: executed if that is known, else asked, ``d_x``.
        c: The context that occurred, ``d_c``; None until it is told.
        y: The outcome, in your sign; None until it is told.
        y_variance: The variance of the noise in it; None if it was not told.
        constraints: What was measured of each outcome constraint; None if nothing was.
        status: "pending" (the outcome is out), "complete", "failed" (the outcome will
            never come) or "withdrawn".
        asked: The decision that ``ask`` proposed, ``d_x``; None for data from
            elsewhere.
        known_context: What was known of the context before the decision, ``d_c``, NaN
            where nothing was; None if nothing was at all.
        chosen_context: The context that ``ask(choose_context=True)`` chose for a
            laboratory, ``d_c``; None where the world decides.
        actions: The round's set, of which the executed decision must be a row,
            ``m x d_x``; None for the whole box.
        error: Why a failed trial has failed, for example a traceback; None if that was
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
    chosen_context: Tensor | None = None
    actions: Tensor | None = None
    error: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may still be told of: pending, or asked and taken back."""
        return self.status == "pending" or (
            self.status == "withdrawn" and self.asked is not None
        )
