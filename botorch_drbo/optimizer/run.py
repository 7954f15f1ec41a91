"""The record of a run: each event is checked and written before it takes effect."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import IntEnum
from typing import Any

import torch
from botorch.exceptions.errors import BotorchError, InputDataError
from torch import Tensor

from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.events import (
    Ask,
    Tell,
    Withdraw,
    compare_bounds,
    read_event,
    write_event,
)
from botorch_drbo.optimizer.journal import (
    Journal,
    compare_environment,
    environment,
    read_state,
)
from botorch_drbo.optimizer.ledger import Change, Ledger
from botorch_drbo.problem import History, Round
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.options import NO_FUNCTIONS, OwnFunctions
from botorch_drbo.sampling import derive_seed
from botorch_drbo.space import Space


class Purpose(IntEnum):
    """What a derived seed is for."""

    DESIGN = 0
    PROPOSAL = 1
    RECOMMENDATION = 2


class Run:
    """What was asked, told and withdrawn; in a journal too, if there is one."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.ledger = Ledger(configuration.space)
        self.journal: Journal | None = None
        self.lost: Counter[int] = Counter()
        """How many calls of `run` each trial has ended whose worker died each time."""
        self._fitted: tuple[History, FittedState] | None = None

    def state(self, purpose: Purpose) -> FittedState:
        """The state of the run; what is fitted to it is kept until more is told."""
        told, configuration = self.ledger.history, self.configuration
        if self._fitted is None or self._fitted[0] is not told:
            maximised = configuration.outcome.turned(told, "Y")
            self._fitted = told, FittedState(maximised, configuration.space)
        return replace(self._fitted[1], seed=self.seed(purpose))

    def seed(self, purpose: Purpose) -> int:
        """What decides the random draws of the next ask, or of a recommendation."""
        num_asks = self.ledger.standing.num_asks
        return derive_seed(self.configuration.seed, purpose, num_asks)

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
        """A run rebuilt from its stored configuration and events, without a journal."""
        try:
            run = cls(Configuration.from_dict(config, device, named, functions))
        except BotorchError as error:
            raise InputDataError(
                f"The configuration in {source} cannot be used: {error}"
            ) from error
        for number, record in enumerate(events, start=1):
            try:
                event = read_event(record, number)
                if isinstance(event, Ask):
                    if not isinstance(event.this_round, Round):
                        raise InputDataError(
                            f"`this_round` is a {type(event.this_round).__name__}."
                        )
                    known = event.this_round.within(run.configuration.space)
                    event = replace(event, this_round=known)
                run.accept(run.ledger.change(event.within(run.configuration)))
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
        """Check an event, write it down, and let it count: all or nothing."""
        self.accept(self.change(event))

    def change(self, event: Ask | Tell | Withdraw) -> Change:
        """What an event would change, checked; nothing is recorded."""
        if isinstance(event, Tell):
            outcomes = self.ledger.standing.outcomes
            return self.ledger.change(event.within(self.configuration, outcomes))
        return self.ledger.change(event.within(self.configuration))

    def accept(self, change: Change) -> None:
        """First on the disk, then in memory, both or neither."""
        if self.journal is not None and change.event is not None:
            self.journal.append(write_event(change.event, self.ledger.num_events + 1))
        self.ledger.accept(change)


def begun(configuration: Configuration, journal: str | os.PathLike[str] | None) -> Run:
    """A new run, in a new journal if there is a path."""
    run = Run(configuration)
    write_journal(run, journal)
    return run


def write_journal(run: Run, path: str | os.PathLike[str] | None) -> None:
    """Write a run down up to here, and from here on; nothing without a path."""
    if path is not None:
        config = run.configuration.to_dict()
        run.journal = Journal.create(path, config, environment(), run.events)


def of_state(
    state: Mapping[str, object],
    *,
    has_names: bool,
    journal: str | os.PathLike[str] | None,
    space: Space | None = None,
    functions: OwnFunctions = NO_FUNCTIONS,
    device: torch.device | str = "cpu",
) -> Run:
    """The run of a state; see ``RobustOptimizer.from_state_dict``."""
    config, written_under, events = read_state(state)
    run = Run.replayed(
        config, events, device, "the state", named=space, functions=functions
    )
    _check_names(run, has_names, "the state", "from_state_dict(state)")
    compare_environment(written_under, "the state")
    write_journal(run, journal)
    return run


def resumed(
    path: str | os.PathLike[str],
    *,
    has_names: bool,
    bounds: Tensor | None = None,
    context_bounds: Tensor | None = None,
    space: Space | None = None,
    functions: OwnFunctions = NO_FUNCTIONS,
    device: torch.device | str = "cpu",
) -> Run:
    """The run of a journal; see ``RobustOptimizer.resume``."""
    journal, header, events = Journal.open(path)
    with ExitStack() as on_failure:
        on_failure.callback(journal.close)
        name = f"the journal {journal.path}"
        run = Run.replayed(
            header["config"],
            events,
            device,
            name,
            in_lines=True,
            named=space,
            functions=functions,
        )
        _check_names(run, has_names, name, "resume(path)")
        configuration = run.configuration
        compare_bounds(bounds, configuration.space.bounds, "bounds", name)
        compare_bounds(
            context_bounds, configuration.context_bounds, "context_bounds", name
        )
        compare_environment(header.get("environment"), name)
        journal.repair()
        run.journal = journal
        on_failure.pop_all()
    return run


def _check_names(run: Run, has_names: bool, source: str, call: str) -> None:
    """Raise if the run belongs to the other class of optimizer."""
    if (run.configuration.named is not None) is has_names:
        return
    kind, other = "no named variables", "RobustOptimizer"
    if not has_names:
        kind, other = "named variables", "NamedOptimizer"
    raise InputDataError(f"The run in {source} has {kind}: `{other}.{call}` goes on.")
