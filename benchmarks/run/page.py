"""The report on benchmarks: ``table.md``, ``regret.png`` and ``ranks.png``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from benchmarks.run.config import ConfigError
from benchmarks.run.pictures import png, rank_figure, regret_figure
from benchmarks.run.report import LAST, Row, summarise, title_of, warning_notes
from benchmarks.run.statistics import Ranks, rank
from benchmarks.run.storage import load

SUMMARY = "table.md"


def write_report(results: Sequence[Path], out: Path, *, baseline: str = "") -> Path:
    """Write the report on all results into one folder.

    Args:
        results: Results folders, or their Parquet files.
        out: Where the files go.
        baseline: The algorithm that the others are compared with; that of the first
            config if empty.

    Returns:
        The Markdown file; the pictures are beside it.

    Raises:
        ConfigError: There are no results, one problem stands in two of them, or no
            algorithm is called as the baseline.
    """
    loaded = [load(path) for path in results]
    rows = pd.concat([frame for frame, _ in loaded], ignore_index=True)
    abouts = [about for _, about in loaded]
    recommended = pd.DataFrame([r for about in abouts for r in about["recommended"]])
    baseline = baseline or abouts[0]["config"]["baseline"]
    labels = list(rows.algorithm.unique())
    if baseline not in labels:
        raise ConfigError(f"The baseline {baseline!r} is not among {labels}.")
    config_of, rankings = _config_of(loaded), _rankings(rows)
    context = {
        "title": ", ".join(dict.fromkeys(title_of(a["config"]) for a in abouts)),
        "command": "python -m benchmarks report " + " ".join(map(_shown, results)),
        "baseline": baseline,
        "last": LAST,
        "smallest_p": _smallest_p(rows),
        "tables": [
            _table(group, recommended, baseline, config_of[str(problem)])
            for problem, group in rows.groupby("problem", sort=False)
        ],
        "rankings": rankings,
        "provenance": _provenance(abouts),
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    out.mkdir(parents=True, exist_ok=True)
    text = environment.get_template(f"{SUMMARY}.j2").render(context)
    (out / SUMMARY).write_text(text, encoding="utf-8")
    (out / "regret.png").write_bytes(png(regret_figure(rows)))
    if rankings:
        (out / "ranks.png").write_bytes(png(rank_figure(rankings[0]["ranks"])))
    return out / SUMMARY


def _shown(path: Path) -> str:
    """A path as another machine can read it: from here, or else its last name."""
    place, here = path.resolve(), Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else place.name


def final_scores(rows: pd.DataFrame, field: str) -> pd.DataFrame:
    """``problems x algorithms``: mean over seeds of the regret at the end.

    Only the algorithms that have played on every problem.

    Args:
        rows: All rounds.
        field: ``sum`` for the cumulative regret, ``min`` for the simple regret.
    """
    final = rows.groupby(["problem", "algorithm", "seed"], sort=False).regret.agg(field)
    means = final.groupby(["problem", "algorithm"], sort=False).mean()
    return means.unstack("algorithm").dropna(axis="columns")


def _table(
    rows: pd.DataFrame,
    recommended: pd.DataFrame,
    baseline: str,
    config: Mapping[str, Any],
) -> dict[str, Any]:
    summary = summarise(rows, recommended, baseline)
    return {
        "title": title_of(config, rows.problem.iloc[0]),
        "cells": [_cells(row) for row in summary],
        "notes": warning_notes(summary, config["iterations"]),
    }


def _cells(row: Row) -> list[str]:
    return [
        row.label,
        str(row.seeds),
        str(row.cumulative),
        str(row.simple),
        str(row.recommended),
        str(row.last),
        "" if row.difference is None else str(row.difference),
        "" if row.wins is None else f"{row.wins} of {row.pairs}",
        "" if row.p_value is None else f"{row.p_value:.2g}",
        f"{row.fit:.2g}",
        f"{row.acquisition:.2g}",
        f"{row.inner:.2g}",
    ]


def _rankings(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Ranks by cumulative and by simple regret, where there is something to rank."""
    rankings = []
    for field, name in (("sum", "cumulative"), ("min", "simple")):
        scores = final_scores(rows, field)
        if min(scores.shape) < 2:
            continue
        ranks = rank(scores)
        left_out = sorted(set(rows.algorithm) - set(scores.columns))
        rankings.append(
            {
                "title": f"Ranks by {name} regret, {len(scores)} problems",
                "verdict": _verdict(ranks, left_out),
                "ranks": ranks,
            }
        )
    return rankings


def _verdict(ranks: Ranks, left_out: Sequence[str]) -> str:
    text = (
        f"Ranks differ at the 5% level if they are {ranks.critical_difference:.2f} "
        "apart (Nemenyi)"
    )
    if ranks.p_value is not None:
        text += f"; that all methods are alike has p = {ranks.p_value:.2g} (Friedman)"
    if left_out:
        text += f". Not on all problems, so not ranked: {', '.join(left_out)}"
    return text + "."


def _smallest_p(rows: pd.DataFrame) -> str:
    """What cannot be found with so few seeds."""
    seeds = int(rows.groupby("problem").seed.nunique().min())
    least = min(1.0, 2 * 0.5**seeds)
    return f"before which {seeds} pairs cannot give less than {least:.2g}"


def _config_of(
    loaded: Sequence[tuple[pd.DataFrame, Mapping[str, Any]]],
) -> dict[str, Mapping[str, Any]]:
    """Problem -> the config that it was run with."""
    configs: dict[str, Mapping[str, Any]] = {}
    for rows, about in loaded:
        for problem in rows.problem.unique():
            if problem in configs:
                raise ConfigError(
                    f"{problem!r} is in the results of {configs[problem]['name']} and "
                    f"of {about['config']['name']}: their rounds cannot be joined. "
                    "Report on them one by one, or give one a `label`."
                )
            configs[problem] = about["config"]
    return configs


def _provenance(abouts: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for about in abouts:
        versions = "; ".join(
            ", ".join(f"{name} {version}" for name, version in each.items())
            for each in about["versions"]
        )
        commits = ", ".join(filter(None, about["commit"])) or "not known"
        machines = "; ".join(about["machine"])
        lines.append(
            f"{about['config']['name']}: {versions}; commit {commits}; {machines}."
        )
    return list(dict.fromkeys(lines))
