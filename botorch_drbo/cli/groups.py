"""Suggestions for many problems in one file, one in each group of its rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
import typer
from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.description import check_column
from botorch_drbo.cli.digits import as_values, in_digits
from botorch_drbo.cli.problem import Problem
from botorch_drbo.cli.terminal import answer, say, show
from botorch_drbo.execution.attempt import Outcome, Raised
from botorch_drbo.execution.engine import Executor
from botorch_drbo.execution.parallel import in_parallel
from botorch_drbo.optimizer.groups import check_group, check_outcomes, reason
from botorch_drbo.optimizer.progress import shown_progress
from botorch_drbo.space import Space

_FAILED = 1  # the exit status if a group has


def check_workers(group: str | None, workers: int | None, dask: str | None) -> None:
    """Raise if the options of workers contradict each other or lack --group.

    Raises:
        InputDataError: They are given twice, or without groups.
    """
    if workers is not None and dask is not None:
        raise InputDataError("Got --workers and --dask. Leave one out.")
    if group is None and (workers is not None or dask is not None):
        name = "--workers" if dask is None else "--dask"
        raise InputDataError(
            f"{name} needs --group with the column that names the groups."
        )


@dataclass(frozen=True)
class Suggested:
    """What was found for the groups of a file.

    Attributes:
        rows: The new rows, group by group, in words.
        failures: The groups without, and why.
        group: The name of the column.
        space: The variables.
    """

    rows: list[dict[str, str]]
    failures: Mapping[str, str]
    group: str
    space: Space

    def write(self, file: CsvFile | None, *, as_json: bool) -> None:
        """Append the rows to a file, if there is one, and say all of it.

        Raises:
            InputDataError: The file is not as it was read.
            typer.Exit: A group has failed.
        """
        if file is not None:
            file.append(self.rows)
        appended_to = None if file is None else str(file.path)
        decisions = self.space.decisions
        suggested = [
            {
                self.group: row[self.group],
                **as_values({name: row[name] for name in decisions}, decisions),
            }
            for row in self.rows
        ]
        document = {
            "suggested": suggested,
            "failures": self.failures,
            "appended_to": appended_to,
        }

        def tell() -> None:
            title = "Suggested" if appended_to is None else f"Appended to {appended_to}"
            if self.rows:
                show(self.rows, title)

        answer(document, as_json=as_json, text=tell)
        if self.failures:
            say(f"No decision for {len(self.failures)} groups:", "red", error=True)
            for name, why in self.failures.items():
                say(f"{name}: {why}", error=True)
            raise typer.Exit(_FAILED)


def suggested_by_group(
    problem: Problem,
    group: str,
    q: int,
    this_round: Mapping[str, Any],
    workers: int | None,
    dask: str | None,
) -> Suggested:
    """The next decisions of each group of a file.

    Args:
        problem: The file and what its columns are.
        group: The column with the groups.
        q: How many decisions for each.
        this_round: What is known of the round.
        workers: Processes of this machine, or None.
        dask: The address of a scheduler, or None.

    Raises:
        InputDataError: The column is no column of groups, or no scheduler answers.
    """
    file, space = problem.file, problem.space
    check_column(group, file)
    measured = (space.outcome, problem.description.status, *problem.limits)
    check_group(group, (*space.decisions, *space.contexts, *measured), "--group")
    words = file.column(group)
    lines: dict[str, list[tuple[int, list[str]]]] = {}
    for number, cells in file.lines:
        if not words[number]:
            raise InputDataError(
                f"{file.path}, line {number}, column `{group}`: is empty. Say to which "
                "group the row belongs."
            )
        lines.setdefault(words[number], []).append((number, cells))
    if not lines:
        raise InputDataError(f"{file.path} has no rows, so there are no groups.")
    empty = replace(problem, file=replace(file, lines=[], content=b""))
    work = _Work(empty, q, this_round, one_thread=(workers or 1) > 1)
    outcomes: dict[str, Outcome] = {}
    with ExitStack() as stack:
        executor, parallel = None, workers or 1
        if dask is not None:
            executor, parallel = _client(dask, stack)
        progress = stack.enter_context(
            shown_progress(sys.stderr.isatty(), len(lines), "groups")
        )
        for name, outcome in in_parallel(
            work, lines, parallel=parallel, executor=executor
        ):
            outcomes[name] = outcome
            progress.advance(failed=isinstance(outcome, Raised))
    rows: list[dict[str, str]] = []
    failures: dict[str, str] = {}
    for name in lines:
        outcome = outcomes[name]
        if isinstance(outcome, Raised):
            failures[name] = reason(outcome)
        else:
            found: Any = outcome.value
            rows += [{group: name, **row} for row in found]
    return Suggested(rows, failures, group, space)


def _client(address: str, stack: ExitStack) -> tuple[Executor, int]:
    """A client of a dask scheduler, closed with the stack, and how many calls at once.

    Raises:
        InputDataError: There is no dask, or none answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InputDataError("--dask needs dask: `pip install distributed`.") from error
    try:
        client = stack.enter_context(Client(address, timeout=10))
    except (OSError, ValueError) as error:
        raise InputDataError(
            f"No dask scheduler answers at {address!r}: {error}. Start `dask "
            "scheduler` and `dask worker`."
        ) from error
    threads = cast(dict[str, int], client.nthreads())
    return client, max(1, sum(threads.values()))


@dataclass(frozen=True)
class _Work:
    """What is done with the rows of a group, in whichever process.

    Attributes:
        problem: The problem without a row.
        q: How many decisions are asked.
        this_round: What is known of the round.
        one_thread: Whether it shares the machine with others like it.
    """

    problem: Problem
    q: int
    this_round: Mapping[str, Any]
    one_thread: bool

    def __call__(self, lines: Sequence[tuple[int, list[str]]]) -> list[dict[str, str]]:
        """The new rows."""
        if self.one_thread:
            torch.set_num_threads(1)
        file = replace(self.problem.file, lines=list(lines))
        problem = replace(self.problem, file=file)
        opt = problem.optimizer()
        check_outcomes(opt, len(lines))
        pending = opt.pending
        x = opt.ask(self.q, **self.this_round)
        return in_digits(x, pending, file, problem.space)
