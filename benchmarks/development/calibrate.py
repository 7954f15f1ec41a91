"""Whether models know what they do not know: predictions and promises against truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.development.compare import asks
from benchmarks.development.learn import CHECKPOINTS, Row
from benchmarks.development.promises import KeptPromises
from benchmarks.development.report import calibration_cells
from benchmarks.development.store import Runs, task_of
from benchmarks.development.surrogates import CANDIDATES
from benchmarks.run.config import ConfigError
from benchmarks.run.display import run_all
from benchmarks.run.markdown import markdown_table

REPORT, TABLE = "calibration.md", "promises.parquet"


def calibrate(
    *, work: Path, out: Path, halves: Sequence[str], seeds: int, workers: int
) -> int:
    """Look at the runs of the development set: how well was known what followed?

    Args:
        work: The folder of this machine.
        out: The folder of the committed runs, and of table and report.
        halves: Of ``HALVES``.
        seeds: Of how many seeds the promises are looked at; predictions of all.
        workers: Processes, each on one thread.

    Returns:
        The exit status.

    Raises:
        ConfigError: There are no runs, or promises failed.
    """
    rows = [row for row in Runs(work, out).collect() if row["half"] in halves]
    if not rows:
        raise ConfigError(
            f"There are no runs in {out}: `python -m benchmarks development` first."
        )
    kept, console = KeptPromises(work), Console()
    looked_at = [row for row in rows if row["seed"] < seeds]
    run_all(
        {
            str(task_of(row)): partial(kept.make, row)
            for row in looked_at
            if row["told"] and not kept.find(row)
        },
        workers,
        console,
    )
    found = pd.DataFrame([asdict(p) for row in looked_at for p in kept.find(row)])
    if len(found):
        found.to_parquet(out / TABLE, index=False, compression="zstd")
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
            of_told: Any = promises[promises["told"] == told]
            parts += [f"### Promises after {told} outcomes", _promised(of_told)]
    return "\n\n".join(parts) + "\n"


_EXPLANATION = """`python -m benchmarks calibration`, of the runs of
`python -m benchmarks development`.

*Outcomes*: each decision that was asked is followed by an outcome, predicted, noise
included, by the model that asked; a table has those that were asked with fewer outcomes
than its title says and no fewer than the table before. *Beyond 1* and *beyond 2*: how
many lay beyond one and two predicted standard deviations (of a Gaussian 31.7% and
4.6%).

*Promises*: intervals of 90%, of what `erbo` recommends for the expectation, of what
`wdrbo_exact` recommends for the worst case. *Inside, stated*: how often they held the
expectation of the true function under the distribution that they are about (the
contexts seen; the worst distribution found); *inside, true*: the expectation under the
true law; the lowest expectation over the whole ball around the contexts seen, by brute
force. *Width* (the median) and *optimism* (the mean of the value printed less the true
one) are shares of the function's own 10 to 90% spread of outcomes."""


def _predicted(asked: pd.DataFrame) -> str:
    rows = []
    for name in _present(asked):
        said: Any = asked[asked["surrogate"] == name]
        rows.append([name, str(len(said)), *calibration_cells(said)])
    head = ["surrogate", "outcomes", "beyond 1", "beyond 2", "NLPD"]
    return "\n".join(markdown_table(head, rows))


def _promised(promises: pd.DataFrame) -> str:
    head = ["surrogate"]
    for word in ("expectation", "worst case"):
        head += [f"{word}: promises", "inside, stated", "inside, true"]
        head += ["width", "optimism"]
    rows = []
    for name in _present(promises):
        own: Any = promises[promises["surrogate"] == name]
        cells = [name]
        for promised in ("expected", "worst"):
            cells += promise_cells(own[own["promised"] == promised])
        rows.append(cells)
    return "\n".join(markdown_table(head, rows))


def promise_cells(promises: pd.DataFrame) -> list[str]:
    """How many, coverage of both truths, median width and mean optimism."""
    low, high = promises["low"], promises["high"]
    inside = [
        f"{100 * ((low <= promises[truth]) & (promises[truth] <= high)).mean():.0f}%"
        for truth in ("found", "true")
    ]
    width: Any = (high - low) / promises["spread"]
    optimism: Any = (promises["mean"] - promises["true"]) / promises["spread"]
    return [
        str(len(promises)),
        *inside,
        f"{width.median():.2f}",
        f"{optimism.mean():+.2f}",
    ]


def _present(table: pd.DataFrame) -> list[str]:
    there = set(table["surrogate"])
    return [name for name in CANDIDATES if name in there]
