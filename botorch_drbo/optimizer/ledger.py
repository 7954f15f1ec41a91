"""Who asked for what, and what became of it: the bookkeeping of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import rounding
from botorch_drbo.algorithms import ConstraintData, History, SearchSpace
from botorch_drbo.optimizer.dtypes import stored_dtype
from botorch_drbo.optimizer.matching import Told, match
from botorch_drbo.optimizer.trials import Trial


@dataclass(frozen=True, eq=False)
class Ledger:
    """The state of a run. Nothing in it changes: each event makes a new ledger.

    Attributes:
        space: The boxes of decisions and contexts.
        trials: All trials, the one with number ``k`` in place ``k``.
        seen: The numbers of the trials whose context the world has shown, as they
            became known.
        complete: The numbers of the trials with an outcome, as they were told.
        num_asks: How often ``ask`` was called.
        num_asked: How many decisions it returned.
        events: Every event so far, in JSON types.
    """

    space: SearchSpace
    trials: tuple[Trial, ...] = ()
    seen: tuple[int, ...] = ()
    complete: tuple[int, ...] = ()
    num_asks: int = 0
    num_asked: int = 0
    events: tuple[dict[str, Any], ...] = ()

    @cached_property
    def history(self) -> History:
        """The trials with an outcome, and all contexts; in the user's sign."""
        like, space = self.space.bounds, self.space
        complete = [self.trials[k] for k in self.complete]
        return History(
            X=_rows([t.x for t in complete], like, space.d_x),
            C=_rows([t.c for t in complete], like, space.d_c),
            Y=like.new_tensor([t.y for t in complete]).unsqueeze(-1),
            contexts=_rows([self.trials[k].c for k in self.seen], like, space.d_c),
            Yvar=_column([t.y_variance for t in complete], like),
            constraints=self._constraints(),
        )

    def _constraints(self) -> ConstraintData | None:
        """The trials whose constraints were measured, by number; None if none was."""
        measured = _measured(self.trials)
        if not measured:
            return None
        like, space = self.space.bounds, self.space
        return ConstraintData(
            X=_rows([t.x for t in measured], like, space.d_x),
            C=_rows([t.c for t in measured], like, space.d_c),
            G=like.new_tensor([t.constraints for t in measured]),
        )

    @cached_property
    def X_pending(self) -> Tensor:
        """The pending decisions, oldest first, ``m x d_x``."""
        pending = [t.x for t in self.trials if t.status == "pending"]
        return _rows(pending, self.space.bounds, self.space.d_x)

    def after(self, event: dict[str, Any]) -> Ledger:
        """The ledger after an event that has been checked."""
        if event["event"] == "withdraw":
            ledger = self._withdrawn(event["trial"])
        elif event["event"] == "ask":
            rows = {
                name: None if event.get(name) is None else self._tensor(event[name])
                for name in ("actions", "chosen_contexts")
            }
            ledger = self._asked(
                self._tensor(event["x"]),
                self._eps(event, "x"),
                known=self._known(event.get("context")),
                chosen=rows["chosen_contexts"],
                actions=rows["actions"],
            )
        else:
            told = Told(
                x=self._tensor(event["x"]),
                c=self._tensor(event["c"]),
                x_eps=self._eps(event, "x"),
                c_eps=self._eps(event, "c"),
                closes_pending=event["closes_pending"],
            )
            failed = event["event"] == "fail"
            y = None if failed else event["y"]
            ledger = self._told(
                told,
                y,
                event.get("y_variance"),
                event.get("constraints"),
                failed=failed,
            )
        return replace(ledger, events=(*self.events, event))

    def _asked(
        self,
        x: Tensor,
        x_eps: float,
        *,
        known: Tensor | None,
        chosen: Tensor | None,
        actions: Tensor | None,
    ) -> Ledger:
        first = len(self.trials)
        trials = (
            Trial(
                number=first + i,
                x=row,
                asked=row,
                known_context=known,
                chosen_context=None if chosen is None else chosen[i],
                actions=actions,
                x_eps=x_eps,
            )
            for i, row in enumerate(x)
        )
        return replace(
            self,
            trials=(*self.trials, *trials),
            num_asks=self.num_asks + 1,
            num_asked=self.num_asked + len(x),
        )

    def _told(
        self,
        told: Told,
        y: Sequence[float] | None,
        y_variance: Sequence[float] | None,
        constraints: Sequence[Sequence[float]] | None,
        *,
        failed: bool,
    ) -> Ledger:
        has_outcome = y is not None
        matches = match(self.trials, told, self.space, completes=has_outcome or failed)
        trials, seen, complete = list(self.trials), [*self.seen], [*self.complete]
        for i, found in enumerate(matches):
            x, c = told.x[i], told.c[i]
            if found.number is None:
                trial = Trial(number=len(trials), x=x, x_eps=told.x_eps)
                trials.append(trial)
            else:
                trial = trials[found.number]
                if not found.equal:
                    x_eps = max(trial.x_eps, told.x_eps)
                    x = self._action(x, x_eps, trial)
                    trial = replace(trial, x=x, x_eps=x_eps)
            if trial.c is None:
                trial = replace(trial, c=c, c_eps=told.c_eps)
                if trial.chosen_context is None:  # else the world had no say
                    seen.append(trial.number)
            if y is not None:
                variance = None if y_variance is None else y_variance[i]
                trial = replace(trial, y=y[i], y_variance=variance)
                complete.append(trial.number)
            if constraints is not None:
                trial = replace(trial, constraints=tuple(constraints[i]))
            status = "complete" if has_outcome else "failed" if failed else "pending"
            trials[trial.number] = replace(trial, status=status)
        _check_all_or_none([trials[k].y_variance for k in complete])
        _check_one_number(trials)
        return replace(
            self, trials=tuple(trials), seen=tuple(seen), complete=tuple(complete)
        )

    def _action(self, x: Tensor, eps: float, trial: Trial) -> Tensor:
        """The action that was executed in place of the asked one, ``d_x``."""
        if trial.actions is None:
            return x
        gap = (trial.actions - x).abs()  # m x d_x
        same = (gap <= rounding(self.space.bounds, eps)).all(-1)
        if not same.any():
            raise InputDataError(
                f"`x` {x.tolist()} is none of the {len(trial.actions)} actions of its "
                f"round, in which {trial.x.tolist()} was asked. Tell one of them, or "
                "pass `closes_pending=False` for data from elsewhere."
            )
        side = self.space.bounds[1] - self.space.bounds[0]
        return trial.actions[(gap / side).norm(dim=-1).argmin()]

    def _withdrawn(self, number: int) -> Ledger:
        if number >= len(self.trials):
            raise InputDataError(
                f"There is no trial {number}: the run has {len(self.trials)}, counted "
                "from 0. `trials` lists them."
            )
        trial = self.trials[number]
        if trial.status == "withdrawn":
            raise InputDataError(f"Trial {number} has been withdrawn already.")
        if trial.asked is not None and trial.c is not None:
            trial = replace(
                trial,
                x=trial.asked,
                c=None,
                y=None,
                y_variance=None,
                constraints=None,
                status="pending",
            )
        else:
            trial = replace(trial, status="withdrawn")
        return replace(
            self,
            trials=(*self.trials[:number], trial, *self.trials[number + 1 :]),
            seen=tuple(k for k in self.seen if k != number),
            complete=tuple(k for k in self.complete if k != number),
        )

    def _known(self, context: list[Any] | None) -> Tensor | None:
        """A context that is known in part; JSON has null in place of NaN."""
        if context is None:
            return None
        return self._tensor(
            [torch.nan if value is None else value for value in context]
        )

    def _tensor(self, values: list[Any]) -> Tensor:
        return self.space.bounds.new_tensor(values)

    def _eps(self, event: dict[str, Any], name: str) -> float:
        """The rounding of the coarser of the dtypes of a value and of the run."""
        run = self.space.bounds.dtype
        return max(torch.finfo(t).eps for t in (run, stored_dtype(event, name, run)))


def _rows(rows: Sequence[Tensor | None], like: Tensor, num_columns: int) -> Tensor:
    known = [row for row in rows if row is not None]
    return torch.stack(known) if known else like.new_empty(0, num_columns)


def _column(values: Sequence[float | None], like: Tensor) -> Tensor | None:
    """All numbers, ``t x 1``, or None if none is known."""
    known = [value for value in values if value is not None]
    return like.new_tensor(known).unsqueeze(-1) if known else None


def _measured(trials: Sequence[Trial]) -> list[Trial]:
    """Those whose constraints are known, and stand."""
    return [t for t in trials if t.constraints is not None and t.status != "withdrawn"]


def _check_one_number(trials: Sequence[Trial]) -> None:
    numbers = {len(t.constraints or ()) for t in _measured(trials)}
    if len(numbers) > 1:
        raise InputDataError(
            f"`constraints` would have {sorted(numbers)} numbers in different trials: "
            "each constraint has one in every trial that was measured. Tell them all, "
            "always in the same order."
        )


def _check_all_or_none(variances: Sequence[float | None]) -> None:
    known = sum(variance is not None for variance in variances)
    if 0 < known < len(variances):
        raise InputDataError(
            f"`y_variance` would be known of {known} outcomes and not of the other "
            f"{len(variances) - known}. A model either knows the noise of every "
            "outcome or learns one size of it for all: tell `y_variance` with each "
            "outcome, or with none."
        )
