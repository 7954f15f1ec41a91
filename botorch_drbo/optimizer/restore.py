"""Runs that go on: from a journal, or from a state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.optimizer.checks import compare_bounds
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.environment import compare_environment, environment
from botorch_drbo.optimizer.journal import Journal
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.state import read_state
from botorch_drbo.recipes.own_functions import NO_FUNCTIONS, OwnFunctions
from botorch_drbo.space import Space


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
    """The run of a state; see ``RobustOptimizer.from_state_dict``.

    Args:
        state: The state.
        has_names: Whether the variables should have names.
        journal: A new file for the run, or None.
        space: The run's space, for one whose constraints are functions.
        functions: Functions of the user\'s own that the run had.
        device: Where to compute.
    """
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
    """The run of a journal; see ``RobustOptimizer.resume``.

    Args:
        path: The journal.
        has_names: Whether the variables should have names.
        bounds: If given, they must be the journal's.
        context_bounds: The same for the contexts.
        space: The run's space, for one whose constraints are functions.
        functions: Functions of the user\'s own that the run had.
        device: Where to compute.
    """
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
