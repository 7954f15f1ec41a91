"""The ledger: what each event changes, and which trial a told row belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import rounding
from botorch_drbo.optimizer.events import Ask, CheckedTell, Event, Withdraw
from botorch_drbo.optimizer.trials import Standing, Trial
from botorch_drbo.problem import ConstraintData, History, SearchSpace


def match(
    trials: Sequence[Trial], tell: CheckedTell, space: SearchSpace
) -> list[int | None]:
    """Find the trial, if any, that each told row belongs to.

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


@dataclass(frozen=True, eq=False)
class Change:
    """What an event changes."""

    # The event; None for trials that were there from the start.
    event: Event | None
    # What the trials have become that it is about, in the order of its rows.
    trials: tuple[Trial, ...]
    # How many asks there were in it.
    num_asks: int = 0
    # How many decisions these returned.
    num_asked: int = 0


class Ledger:
    """The state of a run: all changes so far, folded.

    An event costs what it changes, however long the run is. ``change`` says what an
    event would change, or refuses it, and alters nothing; ``accept`` makes it count by
    a single step, which no interrupt can fall into.
    """

    def __init__(
        self, space: SearchSpace, trials: Sequence[Trial] = (), num_asked: int = 0
    ) -> None:
        self.space = space
        self._changes = [Change(None, tuple(trials), num_asked, num_asked)]
        self._standing = Standing()
        self._folded: int | None = 0
        self._history: tuple[int, History] | None = None

    @property
    def num_events(self) -> int:
        """How many events there were."""
        return len(self._changes) - 1

    @property
    def events(self) -> list[Event]:
        """Every event so far."""
        return [c.event for c in self._changes if c.event is not None]

    @property
    def standing(self) -> Standing:
        """Where the run stands after all changes."""
        # An interrupt may have left a change half applied: then all are applied again.
        folded, self._folded = self._folded, None
        if folded is None:
            folded, self._standing = 0, Standing()
        for index in range(folded, len(self._changes)):
            change = self._changes[index]
            self._standing.take(change.trials, change.num_asks, change.num_asked)
        self._folded = len(self._changes)
        return self._standing

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials, the one with number ``k`` in place ``k``."""
        return self.standing.trials

    @property
    def pending(self) -> list[Trial]:
        """The pending trials, oldest first."""
        return [t for t in self.standing.open_trials() if t.status == "pending"]

    @property
    def failed(self) -> list[Trial]:
        """The trials that will never have an outcome, by number."""
        now = self.standing
        return [now.trials[k] for k in sorted(now.failed)]

    @property
    def history(self) -> History:
        """The trials with an outcome, and all contexts; in the user's sign."""
        # The same object until something is told or withdrawn: asks change nothing.
        known, told = self._history, len(self._changes) - self.standing.num_asks
        if known is None or known[0] != told:
            known = self._history = told, self._build_history()
        return known[1]

    def _build_history(self) -> History:
        like, space, now = self.space.bounds, self.space, self.standing
        complete = [now.trials[k] for k in now.complete]
        return History(
            X=_rows([t.x for t in complete], like, space.d_x),
            C=_rows([t.c for t in complete], like, space.d_c),
            Y=like.new_tensor([t.y for t in complete]).unsqueeze(-1),
            contexts=_rows([now.trials[k].c for k in now.seen], like, space.d_c),
            Yvar=_column([t.y_variance for t in complete], like),
            constraints=self._constraints(),
        )

    def _constraints(self) -> ConstraintData | None:
        """The trials whose constraints were measured, by number; None if none was."""
        now = self.standing
        measured = [now.trials[k] for k in sorted(now.measured)]
        if not measured:
            return None
        like, space = self.space.bounds, self.space
        return ConstraintData(
            X=_rows([t.x for t in measured], like, space.d_x),
            C=_rows([t.c for t in measured], like, space.d_c),
            G=like.new_tensor([t.constraints for t in measured]),
        )

    @property
    def X_pending(self) -> Tensor:
        """The pending decisions, oldest first, ``m x d_x``."""
        return _rows([t.x for t in self.pending], self.space.bounds, self.space.d_x)

    def accept(self, change: Change) -> None:
        """Let a change count that ``change`` has returned just now."""
        self._changes.append(change)

    def change(self, event: Event) -> Change:
        """What an event changes that has been checked."""
        if isinstance(event, Withdraw):
            return Change(event, (self._withdrawn(event.trial),))
        if isinstance(event, Ask):
            return Change(event, self._ask_changes(event), 1, len(event.x))
        return Change(event, self._tell_changes(event))

    def _ask_changes(self, event: Ask) -> tuple[Trial, ...]:
        first, chosen = len(self.trials), event.chosen_contexts
        return tuple(
            Trial(
                number=first + i,
                x=row,
                asked=row,
                known_context=event.this_round.known_context,
                has_forecast=event.this_round.context_set is not None,
                chosen_context=None if chosen is None else chosen[i],
                actions=event.actions,
            )
            for i, row in enumerate(event.x)
        )

    def _tell_changes(self, event: CheckedTell) -> tuple[Trial, ...]:
        now, y = self.standing, event.y
        over = y is not None or event.failed
        matches = match(now.open_trials(), event, self.space)
        status = "pending" if not over else "failed" if event.failed else "complete"
        trials: list[Trial] = []
        num_trials = len(now.trials)
        for i, number in enumerate(matches):
            x = event.x[i]
            if number is None:
                trial = Trial(number=num_trials, x=x)
                num_trials += 1
            else:
                trial = now.trials[number]
                x = _unrounded(self._action(x, trial), trial.x)
                trial = replace(trial, x=x)
            if trial.c is None and event.c is not None:
                trial = replace(trial, c=event.c[i])
            trial = replace(trial, status=status, error=event.error)
            if y is not None:
                trial = replace(trial, y=y[i].item(), y_variance=None)
            if event.y_variance is not None:
                trial = replace(trial, y_variance=event.y_variance[i].item())
            if event.constraints is not None:
                values = tuple(event.constraints[i].tolist())
                trial = replace(trial, constraints=values)
            trials.append(trial)
        if y is not None:
            known = 0 if event.y_variance is None else len(trials)
            _check_all_or_none(
                now.num_variances + known, len(now.complete) + len(trials)
            )
        _check_one_number(now, trials)
        return tuple(trials)

    def _action(self, x: Tensor, trial: Trial) -> Tensor:
        """The action that was executed in place of the asked one, ``d_x``."""
        if trial.actions is None:
            return x
        gap = (trial.actions - x).abs()  # m x d_x
        if not (gap <= decision_slack(self.space)).all(-1).any():
            raise InputDataError(
                f"`x` {x.tolist()} is none of the {len(trial.actions)} actions of its "
                f"round, in which {trial.x.tolist()} was asked. Tell one of them, or "
                "pass `closes_pending=False` for data from elsewhere."
            )
        side = self.space.bounds[1] - self.space.bounds[0]
        return trial.actions[(gap / side).norm(dim=-1).argmin()]

    def _withdrawn(self, number: int) -> Trial:
        trials = self.trials
        if number >= len(trials):
            raise InputDataError(
                f"There is no trial {number}: the run has {len(trials)}, counted "
                "from 0. `trials` lists them."
            )
        trial = trials[number]
        if trial.status == "withdrawn":
            raise InputDataError(f"Trial {number} has been withdrawn already.")
        never_told = trial.status == "pending" and trial.c is None
        if trial.asked is None or never_told:
            return replace(trial, status="withdrawn")
        return replace(
            trial,
            x=trial.asked,
            c=None,
            y=None,
            y_variance=None,
            constraints=None,
            status="pending",
            error=None,
        )


def _unrounded(executed: Tensor, asked: Tensor) -> Tensor:
    """What was told, ``d_x``; what was asked where that was told rounded to float32."""
    return torch.where(executed.float() == asked.float(), asked, executed)


def _rows(rows: Sequence[Tensor | None], like: Tensor, num_columns: int) -> Tensor:
    known = [row for row in rows if row is not None]
    return torch.stack(known) if known else like.new_empty(0, num_columns)


def _column(values: Sequence[float | None], like: Tensor) -> Tensor | None:
    """All numbers, ``t x 1``, or None if none is known."""
    known = [value for value in values if value is not None]
    return like.new_tensor(known).unsqueeze(-1) if known else None


def _check_one_number(now: Standing, trials: Sequence[Trial]) -> None:
    """Every trial that was measured has the same number of constraints."""
    new = {len(t.constraints) for t in trials if t.constraints is not None}
    numbers = new | now.constraint_numbers if new else set()
    if len(numbers) > 1:
        raise InputDataError(
            f"`constraints` would have {sorted(numbers)} numbers in different trials: "
            "each constraint has one in every trial that was measured. Tell them all, "
            "always in the same order."
        )


def _check_all_or_none(known: int, num: int) -> None:
    if 0 < known < num:
        raise InputDataError(
            f"`y_variance` would be known of {known} outcomes and not of the other "
            f"{num - known}. A model either knows the noise of every outcome or learns "
            "one size of it for all: tell `y_variance` with each outcome, or with none."
        )
