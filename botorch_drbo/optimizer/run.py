"""The record of a run: each event is checked and written before it takes effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from botorch.exceptions.errors import BotorchError, InputDataError

from botorch_drbo._validation import rounding
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.events import Ask, Event, Tell, Withdraw
from botorch_drbo.optimizer.journal import Journal
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.stored_events import read_event, write_event
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.recipes.own_functions import NO_FUNCTIONS, OwnFunctions
from botorch_drbo.space import Space


class Run:
    """What was asked, told and withdrawn; in a journal too, if there is one.

    Args:
        configuration: What the run was made with.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.ledger = Ledger(configuration.space)
        self.journal: Journal | None = None
        self.lost: Counter[int] = Counter()
        """How many calls of `run` each trial has ended whose worker died each time."""

    @classmethod
    def replayed(
        cls,
        config: object,
        events: Sequence[object],
        device: torch.device | str,
        source: str,
        *,
        in_lines: bool = False,
        named: Space | None = None,
        functions: OwnFunctions = NO_FUNCTIONS,
    ) -> Run:
        """A run rebuilt from its stored configuration and events, without a journal.

        Args:
            config: The configuration, anything that JSON can hold.
            events: The events, the same.
            device: Where to compute.
            source: Where they were stored, for the error messages.
            in_lines: Whether each event is a line of a file, the first the second line.
            named: The space of the run, for one whose constraints are functions.
            functions: Functions of the user\'s own that the run had.

        Raises:
            InputDataError: They are damaged.
        """
        try:
            run = cls(Configuration.from_dict(config, device, named, functions))
        except BotorchError as error:
            raise InputDataError(
                f"The configuration in {source} cannot be used: {error}"
            ) from error
        for number, record in enumerate(events, start=1):
            try:
                event, dtypes = read_event(record, number)
                if dtypes and isinstance(event, Tell):
                    event.within(run.configuration)  # else there may be no such rows
                    event = _as_matched_then(event, dtypes, run.ledger)
                run.accept(event.within(run.configuration))
            except BotorchError as error:
                line = f" (line {number + 1})" if in_lines else ""
                raise InputDataError(
                    f"Event {number}{line} of {source} does not fit its configuration: "
                    f"{error} It is damaged, or mixed with another run. Restore it "
                    "from a copy."
                ) from error
        return run

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events in plain JSON types."""
        events = self.ledger.events
        return [write_event(event, n) for n, event in enumerate(events, start=1)]

    def record(self, event: Ask | Tell | Withdraw) -> None:
        """Check an event, write it down, and let it count: all or nothing.

        Raises:
            InputDataError: It does not fit the run, or the journal cannot be written.
            BotorchTensorDimensionError: Shapes that do not match.
            UnsupportedError: The recipe can make nothing of what was told.
        """
        self.accept(self.checked(event))

    def checked(self, event: Ask | Tell | Withdraw) -> Event:
        """The event as the run would keep it; nothing is recorded.

        Raises:
            InputDataError: It does not fit the run.
            BotorchTensorDimensionError: Shapes that do not match.
            UnsupportedError: The recipe can make nothing of what was told.
        """
        if isinstance(event, Tell):
            outcomes = self.ledger.standing.outcomes
            kept: Event = event.within(self.configuration, outcomes)
        else:
            kept = event.within(self.configuration)
        self.ledger.change(kept)
        return kept

    def accept(self, event: Event) -> tuple[Trial, ...]:
        """First on the disk, then in memory, both or neither.

        Args:
            event: An event that is checked.

        Returns:
            What the trials have become that it is about.
        """
        change = self.ledger.change(event)
        if self.journal is not None:
            self.journal.append(write_event(event, self.ledger.num_events + 1))
        self.ledger.accept(change)
        return change.trials


def _as_matched_then(event: Tell, dtypes: dict[str, str], ledger: Ledger) -> Tell:
    """A row that versions 1 and 2 took for a decision, rounded, is that decision.

    They matched up to the rounding of the dtype in which a row was told, also of
    float16 and bfloat16; today such a row is what was executed.
    """
    eps = {name: torch.finfo(getattr(torch, of)).eps for name, of in dtypes.items()}
    if max(eps.values()) <= torch.finfo(torch.float32).eps:
        return event  # as today
    if event.c is None:
        raise InputDataError("A trial without a context has no dtype of one.")
    space, X, C = ledger.space, event.x.clone(), event.c.clone()
    x_slack = rounding(space.bounds.to(X), eps.get("x", 0.0))
    c_slack = rounding(space.context_bounds.to(C), eps.get("c", 0.0))
    trials = ledger.standing.open_trials()
    for x, c in zip(X, C, strict=True):
        gaps = [(x - t.x.to(X)).abs() for t in trials]
        near = [i for i, gap in enumerate(gaps) if (gap <= x_slack).all()]
        if not near:
            continue
        nearest = trials[min(near, key=lambda i: gaps[i].norm().item())]
        for trial in (trials[i] for i in near):
            if trial.c is not None and ((c - trial.c.to(C)).abs() <= c_slack).all():
                nearest = trial
                c.copy_(trial.c)
                break
        x.copy_(nearest.x)
    return replace(event, x=X, c=C)
