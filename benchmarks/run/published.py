"""The published values of a method's authors beside those measured here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.run.report import Table, estimate

PUBLISHED = Path(__file__).parents[1] / "published"


def published_table(
    rows: pd.DataFrame, problem: str, config: Mapping[str, Any]
) -> Table | None:
    """Mean expected values of decisions, theirs and ours, by part of the run.

    Values and not regrets: the optimum that an author takes may be wrong.

    Args:
        rows: All rounds on the problem.
        problem: Its label.
        config: Of the benchmark. ``published/NAME.csv`` has the columns problem,
            algorithm, seed, first, last (decisions counted from one, the initial ones
            included) and value.

    Returns:
        A line for each algorithm, theirs empty where they have none, and the parts of
        the run that were played whole; None if nothing is published or no part whole.
    """
    file = PUBLISHED / f"{config['name']}.csv"
    if not file.exists():
        return None
    theirs = pd.read_csv(file)
    theirs = theirs[theirs["problem"] == problem]
    decision = rows["iteration"] + config["initial"] + 1
    parts = [
        (first, last)
        for first, last in sorted(
            set(zip(theirs["first"], theirs["last"], strict=True))
        )
        if last <= decision.max()
    ]
    if not parts:
        return None
    values = {key: [*v] for key, v in theirs.groupby(["algorithm", "first"])["value"]}
    lines = []
    for label, own in rows.groupby("algorithm", sort=False):
        line = [str(label)]
        for first, last in parts:
            inside = own[decision[own.index].between(first, last)]
            means = inside.groupby("seed").expected.mean()
            known = values.get((label, first))
            line += [str(estimate(known)) if known else "", str(estimate([*means]))]
        lines.append(line)
    head = ["algorithm"]
    for first, last in parts:
        head += [f"decisions {first} to {last}, theirs", "ours"]
    return Table(head, lines, f"Mean value of the decisions, as `{file.name}` has it:")
