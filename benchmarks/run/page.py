"""The report on benchmarks: ``table.md``, ``regret.png`` and ``ranks.png``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.run.config import ConfigError
from benchmarks.run.pictures import rank_figure, regret_figure
from benchmarks.run.published import published_table
from benchmarks.run.report import Report, Table
from benchmarks.run.statistics import Ranks, rank
from benchmarks.run.storage import load
from benchmarks.run.summary import (
    LAST,
    Row,
    search_of,
    summarise,
    title_of,
    warning_notes,
)

SUMMARY = "table.md"


def write_report(results: Sequence[Path], out: Path, *, baseline: str = "") -> Path:
    """Write the report on all results into one folder.

    Returns:
        The Markdown file; the pictures are beside it.
    """
    return make_report(results, baseline=baseline).write(out / SUMMARY)


def make_report(results: Sequence[Path], *, baseline: str = "") -> Report:
    """The report on all results.

    Args:
        results: Results folders, or their Parquet files.
        baseline: The algorithm that the others are compared with; that of the first
            config if empty.

    Raises:
        ConfigError: There are no results, one problem stands in two of them, or no
            algorithm is called as the baseline.
    """
    loaded = [load(path) for path in results]
    rows = pd.concat([frame for frame, _ in loaded], ignore_index=True)
    abouts = [about for _, about in loaded]
    baseline = baseline or abouts[0]["config"]["baseline"]
    labels = list(rows.algorithm.unique())
    if baseline not in labels:
        raise ConfigError(f"The baseline {baseline!r} is not among {labels}.")
    config_of = _config_of(loaded)
    blocks: list[str | Table] = [
        "`python -m benchmarks report " + " ".join(map(_shown, results)) + "`",
        _explanation(rows, baseline),
    ]
    for problem, group in rows.groupby("problem", sort=False):
        config = config_of[str(problem)]
        summary = summarise(group, baseline)
        title = f"**{title_of(config, problem)}**"
        blocks.append(Table(_head(baseline), list(map(_cells, summary)), title))
        published = published_table(group, str(problem), config)
        blocks += [published] if published is not None else []
        blocks += [f"{n}." for n in warning_notes(summary, config["iterations"])]
    figures = {"regret.png": regret_figure(rows)}
    unranked = {label for a in abouts for label in a["config"].get("unranked", ())}
    ranked: Any = rows[~rows.algorithm.isin(unranked)]
    for field, name in (("sum", "cumulative"), ("min", "simple")):
        scores = final_scores(ranked, field)
        if min(scores.shape) < 2:  # nothing to rank
            continue
        ranks = rank(scores)
        left_out = sorted(set(labels) - unranked - set(scores.columns))
        blocks.append(_ranking(name, ranks, left_out))
        if "ranks.png" not in figures:
            figures["ranks.png"] = rank_figure(ranks)
    configs = [about["config"] for about in abouts]
    heads = ["; ".join(filter(None, (title_of(c), search_of(c)))) for c in configs]
    title = ", ".join(dict.fromkeys(heads))
    return Report(title, [*blocks, "\n".join(_provenance(abouts))], figures)


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


def _explanation(rows: pd.DataFrame, baseline: str) -> str:
    return (
        "Mean ± standard error over seeds; a lower regret and a higher reward are "
        "better. Contexts, noise and initial decisions are the same for all algorithms "
        "of a seed. *Cumulative reward* is the sum of the outcomes seen, by which "
        "SBO-KDE judges the complicated Hartmann function. *Simple regret* "
        "is the least regret of a decision so far, *recommended* the regret of the "
        "decision that is recommended at the end. "
        f"*Minus {baseline}* is paired by seed; *p* is Wilcoxon's test of these "
        "differences with Holm's correction for the algorithms of the table "
        f"({_smallest_p(rows)}). Seconds are means of one `ask`; *inner* is the worst "
        "case or L(x) without its backward pass, *acquisition* all else."
    )


def _head(baseline: str) -> list[str]:
    return [
        "algorithm",
        "seeds",
        "cumulative regret",
        "cumulative reward",
        "simple regret",
        "recommended",
        f"regret, last {LAST}",
        f"minus {baseline}",
        "lower in",
        "p",
        "fit, s",
        "acquisition, s",
        "inner, s",
    ]


def _cells(row: Row) -> list[str]:
    return [
        row.label,
        str(row.seeds),
        str(row.cumulative),
        str(row.reward),
        str(row.simple),
        "" if row.recommended is None else str(row.recommended),
        str(row.last),
        "" if row.difference is None else str(row.difference),
        "" if row.wins is None else f"{row.wins} of {row.pairs}",
        "" if row.p_value is None else f"{row.p_value:.2g}",
        f"{row.fit:.2g}",
        f"{row.acquisition:.2g}",
        f"{row.inner:.2g}",
    ]


def _ranking(name: str, ranks: Ranks, left_out: Sequence[str]) -> str:
    """One paragraph: the mean ranks, and which of them differ."""
    means = ", ".join(f"{label} {value:.2f}" for label, value in ranks.mean.items())
    text = (
        f"**Ranks by {name} regret, {ranks.problems} problems**: mean ranks {means}. "
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
        if "load" in about:  # since format 3
            machines += f"; load up to {about['load']:.1f} a core"
        lines.append(
            f"{about['config']['name']}: {versions}; commit {commits}; {machines}."
        )
    return list(dict.fromkeys(lines))
