"""The calibration of models: predictions and intervals against the true values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.development.compare import METHOD, asks
from benchmarks.development.coverage import by_case, interval_cells
from benchmarks.development.learn import CHECKPOINTS
from benchmarks.development.promises import KeptPromises
from benchmarks.development.report import calibration_cells
from benchmarks.development.store import Table, task_of
from benchmarks.development.surrogates import CANDIDATES
from benchmarks.experiments.small_tables import write_study
from benchmarks.run.config import ConfigError
from benchmarks.run.display import run_all
from benchmarks.run.markdown import markdown_table
from benchmarks.run.storage import Row
from benchmarks.study.cases import HALVES

REPORT, TABLE = "calibration.md", "promises.parquet"


def calibrate(
    *,
    work: Path,
    out: Path,
    halves: Sequence[str],
    seeds: int,
    first_seed: int,
    workers: int,
) -> int:
    """Look at the runs of the development set: how well was known what followed?

    Args:
        work: The folder of this machine.
        out: The folder of the committed runs, and of table and report.
        halves: Of ``HALVES``.
        seeds: Promises are looked at of the seeds below this; predictions of all.
        first_seed: The first of these.
        workers: Processes, each on one thread.

    Returns:
        The exit status.

    Raises:
        ConfigError: There are no runs, or promises failed.
    """
    rows = [
        row
        for row in Table(out).rows()
        if row["half"] in halves and row["method"] == METHOD
    ]
    if not rows:
        raise ConfigError(
            f"There are no runs in {out}: `python -m benchmarks development` first."
        )
    kept, console = KeptPromises(work), Console()
    looked_at = [row for row in rows if first_seed <= row["seed"] < seeds]
    looked_at.sort(key=lambda row: row["seed"])
    run_all(
        {
            str(task_of(row).key): partial(kept.make, row)
            for row in looked_at
            if row["told"] and not kept.find(row)
        },
        workers,
        console,
    )
    found = pd.DataFrame([asdict(p) for row in looked_at for p in kept.find(row)])
    if len(found):
        found.to_parquet(out / TABLE, index=False, compression="zstd")
        write_study(out)
    text = calibration_report(rows, found)
    (out / REPORT).write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    return 0


def calibration_report(rows: Sequence[Row], promises: pd.DataFrame) -> str:
    """The report as Markdown.

    Args:
        rows: Runs, as ``Runs.collect`` gives them.
        promises: A row for each ``Kept``; perhaps none.
    """
    asked = asks(rows)
    parts = ["# What models know of what they do not know", _EXPLANATION]
    for told in CHECKPOINTS:
        here: Any = asked[asked["told"] == told]
        if here.empty:
            continue
        parts += [f"## {told} outcomes", _predicted(here)]
        if len(promises) and told in set(promises["told"]):
            parts += _promised(promises, told)
    if len(promises):
        columns = [(s, p) for s in _present(promises) for p in ("expected", "worst")]
        parts += ["## Inside, case by case, all numbers of outcomes together"]
        parts += [by_case(promises, "found", columns)]
    return "\n\n".join(parts) + "\n"


_EXPLANATION = """`python -m benchmarks calibration`, of the runs of `erbo` of
`python -m benchmarks development`.

*Outcomes*: each decision that was asked is followed by an outcome, predicted, noise
included, by the model that asked; a table has those that were asked with fewer outcomes
than its title says and no fewer than the table before. *Beyond 1* and *beyond 2*: how
many lay beyond one and two predicted standard deviations (of a Gaussian 31.7% and
4.6%).

*Promises*: intervals of 90% after decisions that `erbo` chose itself, of what `erbo`
then recommends for the expectation, and of what `wdrbo_exact` recommends for the worst
case from the same rows. *Inside*: how many held the expectation of the true function
under the distribution that they are about (the contexts seen; the worst distribution
found), ± a standard error; *as the model says*: the same of intervals that are not
widened.
*Inside, true law*: the expectation under the true law; the lowest expectation over the
whole ball around the contexts seen, by brute force. *Width* (the median) and *optimism*
(the mean of the value printed less the true one, ± a standard error) are shares of the
function's own 10 to 90% spread of outcomes."""


def _predicted(asked: pd.DataFrame) -> str:
    rows = []
    for name in _present(asked):
        said: Any = asked[asked["surrogate"] == name]
        rows.append([name, str(len(said)), *calibration_cells(said)])
    head = ["surrogate", "outcomes", "beyond 1", "beyond 2", "NLPD"]
    return "\n".join(markdown_table(head, rows))


def _promised(promises: pd.DataFrame, told: int) -> list[str]:
    of_told: Any = promises[promises["told"] == told]
    groups = {f"half {half}": (half,) for half in HALVES} | {"both halves": HALVES}
    parts = []
    for name, halves in groups.items():
        here: Any = of_told[of_told["half"].isin(halves)]
        if set(here["half"]) != set(halves):
            continue
        rows = [
            [surrogate, promised, str(len(own)), *promise_cells(own)]
            for surrogate in _present(here)
            for promised in ("expected", "worst")
            for own in [_of(here, surrogate, promised)]
        ]
        head = ["surrogate", "promise", "data sets", "inside", "width", "optimism"]
        head += ["as the model says", "its width", "inside, true law"]
        head += ["optimism, true law"]
        table = "\n".join(markdown_table(head, rows))
        parts += [f"### Promises after {told} outcomes, {name}", table]
    return parts


def promise_cells(promises: pd.DataFrame) -> list[str]:
    """Those of ``interval_cells``; coverage and optimism against the true law."""
    of_true = interval_cells(promises, "true")
    return [*interval_cells(promises, "found"), of_true[0], of_true[2]]


def _of(table: Any, surrogate: str, promised: str) -> Any:
    return table[(table["surrogate"] == surrogate) & (table["promised"] == promised)]


def _present(table: pd.DataFrame) -> list[str]:
    there = set(table["surrogate"])
    return [name for name in CANDIDATES if name in there]
