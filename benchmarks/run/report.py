"""Reads the runs of a benchmark; writes a table, numbers and a picture to commit."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib import pyplot as plt
from rich import box
from rich.table import Table
from torch import Tensor

from benchmarks.run.config import BenchmarkConfig, ConfigError
from benchmarks.run.storage import Record, load_runs
from botorch_drbo.plotting import plot_regret

LAST = 10  # iterations over which the last instantaneous regret is averaged

Runs = Mapping[str, Mapping[int, Sequence[Record]]]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error; the error of one seed is not known."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        """The error to two digits, the mean to as many decimals."""
        if self.error is None or self.error == 0:
            return f"{self.mean:.4g}"
        decimals = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.mean:.{decimals}f} ± {self.error:.{decimals}f}"


@dataclass(frozen=True)
class Row:
    """The line of one algorithm.

    Args:
        label: The algorithm.
        seeds: How many finished runs it has.
        cumulative: Cumulative expected regret after the last iteration.
        last: Mean instantaneous expected regret of the last 10 iterations.
        difference: Cumulative regret minus the baseline's, paired by seed, over the
            seeds that both have finished; None for the baseline.
        wins: In how many of the paired seeds its cumulative regret is below the
            baseline's; None for the baseline.
        pairs: How many seeds are paired; None for the baseline.
        seconds: Median seconds of one ``ask``.
        warned: How many calls of ``ask`` raised a warning.
    """

    label: str
    seeds: int
    cumulative: Estimate
    last: Estimate
    difference: Estimate | None
    wins: int | None
    pairs: int | None
    seconds: float | None
    warned: int


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error (sample standard deviation by the root of the count)."""
    if len(values) == 1:
        return Estimate(values[0], None)
    return Estimate(
        statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5
    )


def summarise(runs: Runs, baseline: str) -> list[Row]:
    """One row per algorithm that has a finished run, in the order of ``runs``."""
    base = {seed: r[-1].cumulative for seed, r in runs[baseline].items()}
    rows = []
    for label, by_seed in runs.items():
        if not by_seed:
            continue
        final = {seed: records[-1].cumulative for seed, records in by_seed.items()}
        last = [
            statistics.fmean(r.regret for r in records[-LAST:])
            for records in by_seed.values()
        ]
        paired = [final[seed] - base[seed] for seed in final if seed in base]
        compare = label != baseline and len(paired) > 0
        seconds = [
            r.seconds
            for records in by_seed.values()
            for r in records
            if r.seconds is not None
        ]
        rows.append(
            Row(
                label=label,
                seeds=len(by_seed),
                cumulative=estimate(list(final.values())),
                last=estimate(last),
                difference=estimate(paired) if compare else None,
                wins=sum(d < 0 for d in paired) if compare else None,
                pairs=len(paired) if compare else None,
                seconds=statistics.median(seconds) if seconds else None,
                warned=sum(bool(r.warnings) for rs in by_seed.values() for r in rs),
            )
        )
    return rows


def warning_notes(runs: Runs) -> list[str]:
    """One line per algorithm whose ``ask`` warned: how often, with which text."""
    notes = []
    for label, by_seed in runs.items():
        warned = [r.warnings for rs in by_seed.values() for r in rs if r.warnings]
        if warned:
            texts = Counter(text for each in warned for text in each)
            asks = sum(len(records) for records in by_seed.values())
            notes.append(
                f"{label}: {len(warned)} of {asks} asks warned, mostly "
                f"{texts.most_common(1)[0][0]!r}"
            )
    return notes


def curves(runs: Runs, field: str) -> dict[str, Tensor]:
    """Label -> ``seeds x iterations`` of the field ``regret`` or ``cumulative``."""
    return {
        label: torch.tensor(
            [[getattr(r, field) for r in records] for records in by_seed.values()],
            dtype=torch.double,
        )
        for label, by_seed in runs.items()
        if by_seed
    }


def _cells(rows: Sequence[Row], baseline: str) -> tuple[list[str], list[list[str]]]:
    head = [
        "algorithm",
        "seeds",
        "cumulative regret",
        f"regret, last {LAST}",
        f"minus {baseline}, paired",
        f"below {baseline}",
        "s/ask",
    ]
    body = [
        [
            row.label,
            str(row.seeds),
            str(row.cumulative),
            str(row.last),
            "" if row.difference is None else str(row.difference),
            "" if row.wins is None else f"{row.wins} of {row.pairs}",
            "" if row.seconds is None else f"{row.seconds:.2g}",
        ]
        for row in rows
    ]
    return head, body


def rich_table(config: BenchmarkConfig, rows: Sequence[Row]) -> Table:
    """The table for the terminal."""
    head, body = _cells(rows, config.baseline)
    table = Table(
        title=_title(config),
        caption="mean ± standard error over seeds",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,  # seven columns in 80 characters
        pad_edge=False,
    )
    for i, name in enumerate(head):
        heading = name.replace(" ", "\n")
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    for cells in body:
        table.add_row(*cells)
    return table


def markdown_table(
    config: BenchmarkConfig, rows: Sequence[Row], notes: Sequence[str] = ()
) -> str:
    """The table for the repository."""
    head, body = _cells(rows, config.baseline)
    lines = [
        f"# {_title(config)}",
        "",
        "Mean ± standard error over seeds; lower is better. Contexts, noise and "
        "initial decisions are the same for all algorithms of a seed.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|",
        *("| " + " | ".join(cells) + " |" for cells in body),
    ]
    lines += [f"\n{note}." for note in notes]
    return "\n".join(lines) + "\n"


def write_report(config: BenchmarkConfig, out: Path) -> list[Row]:
    """Write ``table.md``, ``summary.json``, ``iterations.csv`` and ``regret.png`` to
    ``out``.

    Returns:
        The rows of the table.

    Raises:
        ConfigError: No run has finished.
    """
    runs = load_runs(config, out)
    rows = summarise(runs, config.baseline)
    if not rows:
        raise ConfigError(
            f"No run under {out} has finished: there is nothing to report."
        )
    (out / "table.md").write_text(
        markdown_table(config, rows, warning_notes(runs)), encoding="utf-8"
    )
    (out / "summary.json").write_text(
        json.dumps(_summary(config, runs, rows), indent=1) + "\n", encoding="utf-8"
    )
    (out / "iterations.csv").write_text(_iterations_csv(runs), encoding="utf-8")
    draw(config, runs, out / "regret.png")
    return rows


def draw(config: BenchmarkConfig, runs: Runs, path: Path) -> None:
    """Save the regret curves: cumulative on the left, instantaneous on the right."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.2), layout="constrained"
    )
    plot_regret(curves(runs, "cumulative"), left)
    plot_regret(curves(runs, "regret"), right, ylabel="instantaneous expected regret")
    right.get_legend().remove()
    figure.suptitle(f"{_title(config)}: mean and standard error")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _title(config: BenchmarkConfig) -> str:
    name = "" if config.name == config.problem else f"{config.name}: "
    return (
        f"{name}{config.problem}, {len(config.seeds)} seeds, {config.iterations} "
        f"iterations after {config.initial} random decisions"
    )


def _summary(
    config: BenchmarkConfig, runs: Runs, rows: Sequence[Row]
) -> dict[str, Any]:
    return {
        "config": asdict(config),
        "warnings": warning_notes(runs),
        "rows": [asdict(row) for row in rows],
        "final_cumulative_regret": {
            label: {
                str(seed): records[-1].cumulative for seed, records in by_seed.items()
            }
            for label, by_seed in runs.items()
        },
    }


def _iterations_csv(runs: Runs) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "algorithm",
            "iteration",
            "regret",
            "regret_error",
            "cumulative",
            "cumulative_error",
        ]
    )
    regret, cumulative = curves(runs, "regret"), curves(runs, "cumulative")
    for label in regret:
        for i in range(regret[label].shape[1]):
            cells: list[str] = []
            for values in (regret[label], cumulative[label]):
                point = estimate(values[:, i].tolist())
                error = "" if point.error is None else f"{point.error:.6g}"
                cells += [f"{point.mean:.6g}", error]
            writer.writerow([label, i + 1, *cells])
    return text.getvalue()
