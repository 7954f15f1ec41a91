"""Which pending decision a told row belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from botorch_drbo._validation import rounding
from botorch_drbo.optimizer.events import CheckedTell
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace


def match(
    trials: Sequence[Trial], tell: CheckedTell, space: SearchSpace
) -> list[int | None]:
    r"""Find the trial, if any, that each told row belongs to.

    Each rule serves all rows, in their order, before the next rule serves any:

    1. if the rows bring outcomes, or say that there will be none: a pending
       trial with this decision and context;
    2. a pending decision, its context not told, that equals the row; last those that
       had another context before them, known or chosen; if no context was seen, then
       one whose context is told;
    3. a decision taken back that equals the row: it was executed after all;
    4. the nearest pending decision whose context is not told.

    Equal is within a millionth of a side, see ``decision_slack``. Of several equal
    trials the nearest is taken, of several equally near ones the oldest.

    Args:
        trials: Those of the run that are open, by number.
        tell: The rows.
        space: The boxes, whose sides are the units of distance.

    Returns:
        The number of a trial for each row, None for data from elsewhere; none twice.
    """
    matches: list[int | None] = [None] * len(tell.x)
    if not trials:
        return matches
    x = torch.stack([t.x for t in trials])  # p x d_x
    unknown = torch.full_like(space.context_bounds[0], torch.nan)  # nothing equals it
    told = unknown.expand(len(tell.x), -1) if tell.c is None else tell.c  # m x d_c
    c = torch.stack([unknown if t.c is None else t.c for t in trials])  # p x d_c
    expected = torch.stack([_expected(t, unknown) for t in trials])  # p x d_c
    x_slack, c_slack = decision_slack(space), context_slack(space)
    asked = _mask(x, [t.asked is not None for t in trials])
    pending = _mask(x, [t.status == "pending" for t in trials])
    known = _mask(x, [t.c is not None for t in trials])
    free = torch.ones_like(pending)

    def serve(
        allowed: Tensor, *, equal: bool, context: bool = False, agrees: bool = False
    ) -> None:
        """Give each row without a trial the nearest of those allowed."""
        for i in range(len(matches)):
            if matches[i] is not None:
                continue
            gap = tell.x[i] - x  # p x d_x
            fits = allowed & free
            if equal:
                fits = fits & (gap.abs() <= x_slack).all(-1)
            if context:
                fits = fits & ((told[i] - c).abs() <= c_slack).all(-1)
            if agrees:  # no gap to what is not known is too large
                fits = fits & ~((told[i] - expected).abs() > c_slack).any(-1)
            if not fits.any():
                continue
            distance = space.gaps(tell.x[i], x).norm(dim=-1)
            j = int(torch.where(fits, distance, torch.inf).argmin())
            matches[i] = trials[j].number
            free[j] = False

    is_open = pending & asked & ~known
    if tell.y is not None or tell.failed:
        with_context = pending & known
        serve(
            with_context if tell.closes_pending else with_context & ~asked,
            equal=True,
            context=True,
        )
    if tell.closes_pending:
        serve(is_open, equal=True, agrees=True)
        serve(is_open, equal=True)
        if tell.c is None:
            serve(pending & known & asked, equal=True)
        serve(~pending, equal=True)
        serve(is_open, equal=False)
    return matches


def decision_slack(space: SearchSpace) -> Tensor:
    """How far told decisions may be from those that they are, for each column, ``d_x``.

    A millionth of a side, or what numbers of the box's size lose in float32; nothing in
    columns that take some values only.
    """
    return _slack(space.bounds, space.values)


def context_slack(space: SearchSpace) -> Tensor:
    """The same for contexts, ``d_c``."""
    return _slack(space.context_bounds, space.context_values)


def _slack(bounds: Tensor, values: Iterable[int]) -> Tensor:
    slack = rounding(bounds, torch.finfo(torch.float32).eps)
    slack = torch.maximum(slack, 1e-6 * (bounds[1] - bounds[0]))
    slack[list(values)] = 0.0
    return slack


def recognised(rows: Tensor, trials: Sequence[Trial], space: SearchSpace) -> Tensor:
    """Rows of a list, ``m x d_x``; what equals a trial's decision becomes it."""
    slack = decision_slack(space)
    for trial in trials:
        equal = ((rows - trial.x).abs() <= slack).all(-1, keepdim=True)
        rows = torch.where(equal, trial.x, rows)
    return rows


def _expected(trial: Trial, unknown: Tensor) -> Tensor:
    """The context that was known or chosen beforehand, NaN where none was, ``d_c``."""
    if trial.chosen_context is not None:
        return trial.chosen_context
    return unknown if trial.known_context is None else trial.known_context


def _mask(like: Tensor, values: list[bool]) -> Tensor:
    return torch.tensor(values, device=like.device)
