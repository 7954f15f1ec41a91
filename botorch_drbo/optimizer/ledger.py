"""Who asked for what, and what became of it: the bookkeeping of an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.algorithms import History, SearchSpace


@dataclass(frozen=True, eq=False)
class Trial:
    """A trial without an outcome.

    Attributes:
        x: The decision: executed if that is known, else asked, ``d_x``.
        c: The context, ``d_c``, once it is known.
        asked: Whether ``ask`` proposed it; else it was told as data from elsewhere.
        actions: The round's set, of which the executed decision must be a row,
            ``m x d_x``; None for the whole box.
    """

    x: Tensor
    c: Tensor | None
    asked: bool
    actions: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Ledger:
    """The state of a run. Nothing in it changes: each event makes a new ledger.

    Attributes:
        space: The boxes of decisions and contexts.
        history: The trials with an outcome, and all contexts; in the user's sign.
        pending: The trials without an outcome, oldest first.
        num_asks: How often ``ask`` was called.
        num_asked: How many decisions it returned.
        events: Every event so far, in JSON types.
    """

    space: SearchSpace
    history: History
    pending: tuple[Trial, ...] = ()
    num_asks: int = 0
    num_asked: int = 0
    events: tuple[dict[str, Any], ...] = ()

    @classmethod
    def empty(cls, space: SearchSpace) -> Ledger:
        """A run before its first event."""
        no_contexts = space.bounds.new_empty(0, space.d_c)
        history = History(
            X=space.bounds.new_empty(0, space.d_x),
            C=no_contexts,
            Y=space.bounds.new_empty(0, 1),
            contexts=no_contexts,
        )
        return cls(space, history)

    @property
    def X_pending(self) -> Tensor:
        """The pending decisions, ``m x d_x``."""
        empty = self.history.X.new_empty(0, self.space.d_x)
        return torch.cat([empty, *(trial.x.unsqueeze(0) for trial in self.pending)])

    def after(self, event: dict[str, Any]) -> Ledger:
        """The ledger after an event that has been checked."""
        like = self.space.bounds
        x = torch.tensor(event["x"], dtype=like.dtype, device=like.device)
        if event["event"] == "ask":
            actions = event.get("actions")
            if actions is not None:
                actions = torch.tensor(actions, dtype=like.dtype, device=like.device)
            ledger = self._asked(x, actions)
        else:
            c = torch.tensor(event["c"], dtype=like.dtype, device=like.device)
            y = event["y"]
            if y is not None:
                y = torch.tensor(y, dtype=like.dtype, device=like.device).unsqueeze(-1)
            ledger = self._told(x, c, y, event["closes_pending"])
        return replace(ledger, events=(*self.events, event))

    def _asked(self, x: Tensor, actions: Tensor | None) -> Ledger:
        trials = (Trial(row, None, asked=True, actions=actions) for row in x)
        return replace(
            self,
            pending=(*self.pending, *trials),
            num_asks=self.num_asks + 1,
            num_asked=self.num_asked + len(x),
        )

    def _told(self, x: Tensor, c: Tensor, y: Tensor | None, closes: bool) -> Ledger:
        matches, completed = self._match(x, c, complete=y is not None, closes=closes)
        for row, j in zip(x, matches, strict=True):
            if j is not None:
                self._check_action(row, self.pending[j])
        new = [i for i in range(len(x)) if i not in completed]
        contexts = torch.cat([self.history.contexts, c[new]])  # each counted once
        history = self.history
        pending: list[Trial | None] = list(self.pending)
        if y is None:
            history = replace(history, contexts=contexts)
            for i, j in enumerate(matches):
                if j is None:
                    pending.append(Trial(x[i], c[i], asked=False))
                else:
                    pending[j] = Trial(x[i], c[i], asked=True)
        else:
            history = History(
                X=torch.cat([history.X, x]),
                C=torch.cat([history.C, c]),
                Y=torch.cat([history.Y, y]),
                contexts=contexts,
            )
            for j in matches:
                if j is not None:
                    pending[j] = None
        still = tuple(trial for trial in pending if trial is not None)
        return replace(self, history=history, pending=still)

    def _match(
        self, x: Tensor, c: Tensor, *, complete: bool, closes: bool
    ) -> tuple[list[int | None], set[int]]:
        """Find the pending trial, if any, that each told row belongs to.

        Exact matches of all rows go before approximate ones of any.

        Returns:
            The index of the trial per row, and the rows that complete a trial whose
            context was known already.
        """
        matches: list[int | None] = [None] * len(x)
        taken: set[int] = set()

        def match(
            row: int, fits: Callable[[Trial], bool], nearest: bool = False
        ) -> bool:
            choices = [
                j
                for j, trial in enumerate(self.pending)
                if j not in taken and fits(trial)
            ]
            if matches[row] is not None or not choices:
                return False
            j = choices[0]
            if nearest:
                j = min(
                    choices, key=lambda k: self._distance(x[row], self.pending[k].x)
                )
            matches[row] = j
            taken.add(j)
            return True

        completed: set[int] = set()
        if complete:
            for i in range(len(x)):
                if match(i, lambda t, i=i: self._completes(t, x[i], c[i], closes)):
                    completed.add(i)
        if closes:
            for i in range(len(x)):
                match(i, lambda t, i=i: _is_open(t) and self._same(t.x, x[i]))
            for i in range(len(x)):
                match(i, _is_open, nearest=True)
        return matches, completed

    def _check_action(self, x: Tensor, trial: Trial) -> None:
        """Refuse an executed decision that was none of the round's actions."""
        if trial.actions is None or any(self._same(x, row) for row in trial.actions):
            return
        raise InputDataError(
            f"`x` {x.tolist()} is none of the {len(trial.actions)} actions of its "
            f"round, in which {trial.x.tolist()} was asked. Tell one of them, or pass "
            "`closes_pending=False` for data from elsewhere."
        )

    def _completes(self, trial: Trial, x: Tensor, c: Tensor, closes: bool) -> bool:
        if trial.c is None or (trial.asked and not closes):
            return False
        side = _sides(self.space.context_bounds)
        same_context = bool(((trial.c - c).abs() <= _tolerance(c) * side).all())
        return same_context and self._same(trial.x, x)

    def _same(self, x: Tensor, other: Tensor) -> bool:
        side = _sides(self.space.bounds)
        return bool(((x - other).abs() <= _tolerance(x) * side).all())

    def _distance(self, x: Tensor, other: Tensor) -> float:
        return ((x - other) / _sides(self.space.bounds)).norm().item()


def _is_open(trial: Trial) -> bool:
    """Asked, and its context not yet told."""
    return trial.asked and trial.c is None


def _sides(bounds: Tensor) -> Tensor:
    return bounds[1] - bounds[0]


def _tolerance(values: Tensor) -> float:
    """What counts as equal, in sides of the box."""
    return max(1e-9, 4 * torch.finfo(values.dtype).eps)
