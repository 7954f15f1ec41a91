"""Plays the rows of the experiment on scopes, block by block."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.price.play import collected, place
from benchmarks.experiments.scope.cases import CASES, EXPERIMENT, OUTCOME, ListedWorld
from benchmarks.experiments.scope.report import make_report
from benchmarks.run.engine import one_thread
from benchmarks.run.parallel import in_parallel
from benchmarks.run.provenance import commit
from benchmarks.study.judge import keep
from botorch_drbo import NamedOptimizer
from botorch_drbo.ambiguity import ConditionalValueAtRisk
from botorch_drbo.sampling import derive_seed

SEEDS = range(1, 13)
PLATE, CHECKPOINTS = 12, (24, 36, 48)
_EACH = 4  # contexts of a panel
# The algorithm; how contexts are taken; of how many contexts the scope is, 0 for all.
ROWS: Mapping[str, tuple[str, str, int]] = {
    "random": ("erbo", "random", 0),
    "one context": ("ei_integral", "chosen", 1),
    "panel": ("ei_integral", "four", _EACH),
    "chance": ("erbo", "chance", 0),
    "erbo": ("erbo", "chosen", 0),
    "integral": ("ei_integral", "chosen", 0),
    "integral, four each": ("ei_integral", "four", 0),
}
CVAR = "integral, CVaR within 10%"


def of_row(world: ListedWorld, row: str, seed: int) -> list[dict[str, Any]]:
    """One run: what is recommended at each checkpoint, judged."""
    algorithm, way, few = ROWS[row]
    n, m = world.outcomes.shape
    draw = np.random.default_rng(derive_seed(EXPERIMENT + seed, 1, 0))
    noise = draw.normal(size=(2 * max(CHECKPOINTS), PLATE))
    served = draw.permutation(m)[: few or m]
    scope = world.contexts.iloc[served]
    wells = draw.permutation(n * m)[: max(CHECKPOINTS)]
    met = draw.integers(m, size=max(CHECKPOINTS))
    if few:
        first = (
            draw.permutation(n)[: PLATE // few].repeat(few),
            np.tile(served, PLATE // few),
        )
    else:
        first = np.divmod(wells[:PLATE], m)
    trials = world.trials(*first, noise[0])
    found = []
    for step in range(1, max(CHECKPOINTS) // PLATE + 1):
        opt = NamedOptimizer.from_dataframe(
            trials,
            decisions=world.chosen,
            contexts=world.met,
            outcome=OUTCOME,
            algorithm=algorithm,
            scope=scope,
            seed=seed,
        )
        told = len(trials)
        if told in CHECKPOINTS:
            best = opt.recommend(candidates=world.decisions)
            found.append({"row": row, "told": told, **judged(world, best.x)})
            if row == "integral":
                best = opt.recommend(
                    candidates=world.decisions,
                    against=ConditionalValueAtRisk(0.8),
                    give_up=0.1,
                )
                found.append({"row": CVAR, "told": told, **judged(world, best.x)})
        if told == max(CHECKPOINTS):
            break
        now = slice(told, told + PLATE)
        if way == "random":
            pairs = np.divmod(wells[now], m)
        elif way == "chance":
            x = opt.ask(PLATE, candidates=world.decisions)
            pairs = positions(world.decisions, x), met[now]
        else:
            x, c = opt.ask(
                PLATE,
                choose_context=True,
                candidates=world.decisions,
                contexts_per_decision=_EACH if way == "four" else 1,
            )
            pairs = positions(world.decisions, x), positions(world.contexts, c)
        new = world.trials(*pairs, noise[step])
        trials = pd.concat([trials, new], ignore_index=True)
    return found


def positions(frame: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """The positions of rows in a table, of numbers by the nearest."""
    if all(frame.dtypes.map(pd.api.types.is_numeric_dtype)):
        apart = np.abs(rows.to_numpy()[:, None] - frame.to_numpy()).max(-1)
        return apart.argmin(-1)
    index = pd.MultiIndex.from_frame(frame)
    return index.get_indexer(pd.MultiIndex.from_frame(rows.loc[:, list(frame)]))


def judged(world: ListedWorld, x: pd.DataFrame) -> dict[str, float]:
    """Mean, worst fifth and hardest third of a decision, by the truth."""
    (position,) = positions(world.decisions, x)
    values, m = world.outcomes[position], world.outcomes.shape[1]
    hard = world.outcomes.mean(0).argsort()[: ceil(m / 3)]
    return {
        "mean": float(values.mean()),
        "worst_fifth": float(np.sort(values)[: ceil(m / 5)].mean()),
        "hardest_third": float(values[hard].mean()),
    }


def _block(case: str, seed: int, work: Path) -> None:
    about = {"case": case, "seed": seed, "commit": commit()}
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = CASES[case](seed)
        rows = [found for row in ROWS for found in of_row(world, row, seed)]
    keep([{**about, **row} for row in rows], place(work, "scope", case, seed))


def play(*, work: Path, out: Path, workers: int, report_only: bool) -> int:
    """Play what is not there yet, seed by seed, then judge all that is.

    Args:
        work: The folder of this machine, with a file for each block.
        out: The folder of the table and the report.
        workers: Processes, each on one thread.
        report_only: Play nothing, and report on the table that is there.

    Returns:
        The exit status: 1 if a block failed.
    """
    failed = 0
    if not report_only:
        todo = {
            (case, seed): partial(_block, case, seed, work)
            for seed in SEEDS
            for case in CASES
            if not place(work, "scope", case, seed).exists()
        }
        for key, outcome in in_parallel(todo, workers=workers):
            failed += isinstance(outcome, BaseException)
            print(*key, outcome or "", flush=True)
        table = pd.DataFrame(collected(work)).round(2)
        table.to_csv(out / "scope.csv", index=False)
    page = make_report(pd.read_csv(out / "scope.csv"))
    (out / "README.md").write_text(page, encoding="utf-8")
    return 1 if failed else 0
