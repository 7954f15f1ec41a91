"""Which pending decision a told row belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_drbo._validation import rounding
from botorch_drbo.algorithms import SearchSpace
from botorch_drbo.optimizer.trials import Trial


@dataclass(frozen=True)
class Match:
    """The trial of a told row.

    Attributes:
        number: The trial's number; None if the row is data from elsewhere.
        equal: Whether the row is the trial's decision, up to rounding.
    """

    number: int | None = None
    equal: bool = False


@dataclass(frozen=True, eq=False)
class Told:
    """Rows as they were told.

    Attributes:
        x: The executed decisions, ``m x d_x``.
        c: The contexts, ``m x d_c``.
        x_eps: The rounding of the dtype in which ``x`` was given.
        c_eps: The same for ``c``.
        closes_pending: False for data from elsewhere.
    """

    x: Tensor
    c: Tensor
    x_eps: float
    c_eps: float
    closes_pending: bool


def match(
    trials: Sequence[Trial], told: Told, space: SearchSpace, *, completes: bool
) -> list[Match]:
    r"""Find the trial, if any, that each told row belongs to.

    Each rule serves all rows, in their order, before the next rule serves any:

    1. if the rows complete trials: a pending trial with this decision and context;
    2. a pending decision, its context not told, that equals the row; last those that
       had another context before them, known or chosen;
    3. a decision taken back that equals the row: it was executed after all;
    4. the nearest pending decision whose context is not told.

    Equal is up to rounding of the coarser dtype. Of several equal trials the nearest
    is taken, of several equally near ones the oldest.

    Args:
        trials: Those of the run that are open, by number.
        told: The rows.
        space: The boxes, whose sides are the units of distance.
        completes: Whether the rows bring outcomes, or say that there will be none.

    Returns:
        A match for each row; no trial twice.
    """
    matches = [Match()] * len(told.x)
    if not trials:
        return matches
    x = torch.stack([t.x for t in trials])  # p x d_x
    unknown = torch.full_like(told.c[0], torch.nan)  # nothing equals it
    c = torch.stack([unknown if t.c is None else t.c for t in trials])  # p x d_c
    expected = torch.stack([_expected(t, unknown) for t in trials])  # p x d_c
    x_slack = rounding(space.bounds, _coarser(x, [t.x_eps for t in trials], told.x_eps))
    c_slack = rounding(
        space.context_bounds, _coarser(c, [t.c_eps for t in trials], told.c_eps)
    )
    asked = _mask(x, [t.asked is not None for t in trials])
    pending = _mask(x, [t.status == "pending" for t in trials])
    known = _mask(x, [t.c is not None for t in trials])
    free = torch.ones_like(pending)

    def serve(
        allowed: Tensor, *, equal: bool, context: bool = False, agrees: bool = False
    ) -> None:
        """Give each row without a trial the nearest of those allowed."""
        for i in range(len(matches)):
            if matches[i].number is not None:
                continue
            gap = told.x[i] - x  # p x d_x
            fits = allowed & free
            if equal:
                fits = fits & (gap.abs() <= x_slack).all(-1)
            if context:
                fits = fits & ((told.c[i] - c).abs() <= c_slack).all(-1)
            if agrees:  # no gap to what is not known is too large
                fits = fits & ~((told.c[i] - expected).abs() > c_slack).any(-1)
            if not fits.any():
                continue
            distance = space.gaps(told.x[i], x).norm(dim=-1)
            j = int(torch.where(fits, distance, torch.inf).argmin())
            matches[i] = Match(trials[j].number, equal)
            free[j] = False

    is_open = pending & asked & ~known
    if completes:
        mine = pending & known
        serve(mine if told.closes_pending else mine & ~asked, equal=True, context=True)
    if told.closes_pending:
        serve(is_open, equal=True, agrees=True)
        serve(is_open, equal=True)
        serve(~pending, equal=True)
        serve(is_open, equal=False)
    return matches


def recognised(
    rows: Tensor, pending: Sequence[Trial], space: SearchSpace, eps: float
) -> Tensor:
    """Rows of a list, ``m x d_x``; what equals a pending decision becomes it."""
    for trial in pending:
        slack = rounding(space.bounds, max(eps, trial.x_eps))
        equal = ((rows - trial.x).abs() <= slack).all(-1, keepdim=True)
        rows = torch.where(equal, trial.x, rows)
    return rows


def _expected(trial: Trial, unknown: Tensor) -> Tensor:
    """The context that was known or chosen beforehand, NaN where none was, ``d_c``."""
    if trial.chosen_context is not None:
        return trial.chosen_context
    return unknown if trial.known_context is None else trial.known_context


def _coarser(like: Tensor, eps: list[float], other: float) -> Tensor:
    """The larger of each trial's rounding and the rows', ``p x 1``."""
    return like.new_tensor(eps).clamp_min(other).unsqueeze(-1)


def _mask(like: Tensor, values: list[bool]) -> Tensor:
    return torch.tensor(values, device=like.device)
