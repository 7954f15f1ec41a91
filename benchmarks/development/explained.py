"""How much of what it has not seen a model explains: what is said, and what is true."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.console import Console

from benchmarks.development.coverage import share
from benchmarks.development.explained_data import NUM_CONTEXTS, SIZES, data_set
from benchmarks.run.engine import one_thread
from benchmarks.run.markdown import markdown_table
from benchmarks.run.parallel import in_parallel
from benchmarks.run.provenance import commit
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.surrogate.cross_validation import leave_one_out
from botorch_drbo.surrogate.fit import fit_outcomes

SEEDS = (1000, 1001)
"""The final ones: see explained.md. Tune on others."""
MEAN, SIZE, MOST = 0.05, 0.15, 0.30
"""What the difference of said and true may be: see explained.md."""


def said_and_true(name: str, num_rows: int, seed: int) -> dict[str, Any]:
    """What the check of a default model says of its share, and what is true."""
    data = data_set(name, num_rows, seed)
    told, space = data.told, data.space
    recipe = make_recipe("wdrbo_exact")
    assert isinstance(recipe, ModelBasedRecipe)
    surrogate = recipe.judging_surrogate()
    with one_thread():
        model = fit_outcomes(told, space, surrogate, uses_contexts=True)
        check = ModelCheck.of(model, surrogate, told, space, ContextSet(told.C))
    with one_thread(), torch.no_grad():
        members = [joint_moments(each, data.inputs)[0] for each in members_of(model)]
        alone = leave_one_out(model)
    missed = (data.outcomes - torch.stack(members).mean(0)).square().mean()
    y = told.Y.flatten()
    others = (y - y.mean()) * len(y) / (len(y) - 1)
    closed = (y - alone.in_units(alone.predicted.mean)).square().sum()
    low, high = check.explained_interval
    return {
        "data": name,
        "rows": num_rows,
        "seed": seed,
        "true": 1.0 - (missed / data.outcomes.var(correction=0)).item(),
        "said": check.explained,
        "low": low,
        "high": high,
        "closed form": 1.0 - (closed / others.square().sum()).item(),
    }


def explained_report(table: Any, seeds: Iterable[int]) -> str:
    """The report as Markdown, of the rows of ``said_and_true``."""
    held = (table["low"] <= table["true"]) & (table["true"] <= table["high"])
    tables = table["data"].isin(list(NUM_CONTEXTS))
    parts = {"all": table.index >= 0, "tables": tables, "functions": ~tables}
    parts |= {"at most 30 rows": table["rows"] <= 30, "more": table["rows"] > 30}
    summary = []
    for part, rows in parts.items():
        if not rows.any():
            continue
        for what in ("said", "closed form"):
            gap = table.loc[rows, what] - table.loc[rows, "true"]
            summary.append(
                [
                    f"{part}, {'by folds' if what == 'said' else what}",
                    str(len(gap)),
                    f"{gap.mean():+.3f}",
                    f"{gap.abs().mean():.3f}",
                    f"{gap.max():+.2f}",
                    str((gap > MOST).sum()),
                    share(held[rows]) if what == "said" else "",
                ]
            )
    gap, numbers = table["said"] - table["true"], " ".join(map(str, seeds))
    criteria = {
        f"mean within ±{MEAN}": abs(gap.mean()) <= MEAN,
        f"mean size at most {SIZE}": gap.abs().mean() <= SIZE,
        f"none above +{MOST}": gap.max() <= MOST,
    }
    verdicts = "; ".join(
        f"{words}: {'yes' if met else '**no**'}" for words, met in criteria.items()
    )
    head = ["data sets", "number", "mean", "mean size", "largest"]
    head += [f"above +{MOST}", "90% intervals that hold"]
    each = [
        [row.data, f"{row.rows}", f"{row.seed}"]
        + [f"{value:.2f}" for value in (row.true, row.said, row.low, row.high)]
        + [f"{row[-1]:.2f}"]
        for row in table.itertuples(index=False)
    ]
    columns = ["data", "rows", "seed", "true", "said", "low", "high", "closed form"]
    return (
        "\n\n".join(
            [
                "# How much a model explains: said and true",
                f"`python -m benchmarks explained --seeds {numbers}`, "
                f"commit {commit()}. Criterion and definitions: "
                "`benchmarks/development/explained.md`.",
                f"{verdicts}.",
                "## What is said less what is true",
                "\n".join(markdown_table(head, summary)),
                "## Each data set",
                "\n".join(markdown_table(columns, each)),
            ]
        )
        + "\n"
    )


def measure_explained(out: Path, *, seeds: Iterable[int], workers: int) -> int:
    """Measure all data sets of these seeds, print the report, write it to ``out``.

    Args:
        out: The report file.
        seeds: Each of ``SIZES`` is made with each.
        workers: Processes, each on one thread.

    Returns:
        The exit status.
    """
    console, seeds = Console(), list(seeds)
    work = {
        (name, rows, seed): partial(said_and_true, name, rows, seed)
        for name, rows in SIZES
        for seed in seeds
    }
    found = dict(in_parallel(work, workers=workers))
    for error in found.values():
        if isinstance(error, BaseException):
            raise error
    table = pd.DataFrame([found[what] for what in work])
    text = explained_report(table, seeds)
    out.write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    return 0
