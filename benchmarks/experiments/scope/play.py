"""Plays the rows of the experiment on scopes, block by block."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.scope.cases import CASES, EXPERIMENT, OUTCOME, ListedWorld
from benchmarks.experiments.scope.report import make_report, report_of_plates
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import commit
from benchmarks.study.judge import collected, keep, num_failed, place
from botorch_drbo import NamedOptimizer
from botorch_drbo.ambiguity import ConditionalValueAtRisk
from botorch_drbo.sampling import derive_seed

_TOLD = 36  # trials from which levels never tried are predicted
EACH = 4  # contexts of a panel
# The algorithm; how contexts are taken; of how many contexts the scope is, 0 for all.
ROWS: Mapping[str, tuple[str, str, int]] = {
    "random": ("erbo", "random", 0),
    "one context": ("ei_integral", "chosen", 1),
    "panel": ("ei_integral", "four", EACH),
    "chance": ("erbo", "chance", 0),
    "erbo": ("erbo", "chosen", 0),
    "integral": ("ei_integral", "chosen", 0),
    "integral, four each": ("ei_integral", "four", 0),
    "own uncertainty": ("erbo", "own uncertainty", 0),
    "erbo, features": ("erbo", "chosen", 0),
}
CVAR = "integral, CVaR within 10%"


@dataclass(frozen=True)
class Study:
    """What is played: which rows on which worlds, in plates of what size."""

    seeds: range
    cases: tuple[str, ...]
    plate: int
    checkpoints: tuple[int, ...]
    rows: tuple[str, ...]

    @property
    def num_trials(self) -> int:
        """How many each run has."""
        return max(self.checkpoints)

    def rows_of(self, world: ListedWorld) -> Iterator[str]:
        """Those that are different from the others in this world."""
        return (r for r in self.rows if world.features or not r.endswith("features"))


STUDIES: Mapping[str, Study] = {
    "trials": Study(
        range(1, 13),
        ("suzuki", "amidation", "additive", "crossed", "field", "tolerance"),
        12,
        (24, 36, 48),
        tuple(ROWS)[:7],
    ),
    "plates": Study(
        range(101, 113),
        ("suzuki", "amidation", "additive", "crossed", "described"),
        8,
        (24, 48),
        ("random", "panel", "chance", "own uncertainty", "erbo", "erbo, features"),
    ),
}


def of_row(
    world: ListedWorld, row: str, seed: int, study: Study
) -> list[dict[str, Any]]:
    """One run: what is recommended at each checkpoint, judged."""
    algorithm, way, few = ROWS[row]
    plate, checkpoints, num_trials = study.plate, study.checkpoints, study.num_trials
    if not row.endswith("features"):
        world = world.without_features()
    draws = draws_of(world, seed, study, few)
    scope = world.contexts.iloc[draws.served]
    trials = world.trials(*draws.first, draws.noise[0])
    found = []
    for step in range(1, num_trials // plate + 1):
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
        if told in checkpoints:
            best = opt.recommend(candidates=world.decisions)
            found.append({"row": row, "told": told, **judged(world, best.x)})
            if row == "integral":
                best = opt.recommend(
                    candidates=world.decisions,
                    against=ConditionalValueAtRisk(0.8),
                    give_up=0.1,
                )
                found.append({"row": CVAR, "told": told, **judged(world, best.x)})
        if told == num_trials:
            break
        now = slice(told, told + plate)
        if way == "random":
            pairs = np.divmod(draws.wells[now], world.outcomes.shape[1])
        elif way == "chance":
            x = opt.ask(plate, candidates=world.decisions)
            pairs = positions(world.decisions, x), draws.met[now]
        elif way == "own uncertainty":
            x = opt.ask(plate, candidates=world.decisions)
            pairs = positions(world.decisions, x), least_known(opt, x, world.contexts)
        else:
            x, c = opt.ask(
                plate,
                choose_context=True,
                candidates=world.decisions,
                contexts_per_decision=EACH if way == "four" else 1,
            )
            pairs = positions(world.decisions, x), positions(world.contexts, c)
        new = world.trials(*pairs, draws.noise[step])
        trials = pd.concat([trials, new], ignore_index=True)
    return found


@dataclass(frozen=True, eq=False)
class Draws:
    """What chance gives to a run, the same for all rows."""

    noise: np.ndarray  # plates x wells
    served: np.ndarray  # contexts of the row's scope
    wells: np.ndarray  # pairs, by their numbers
    met: np.ndarray  # contexts
    first: tuple[np.ndarray, np.ndarray]  # decisions and contexts of the first plate


def draws_of(world: ListedWorld, seed: int, study: Study, few: int) -> Draws:
    """Those of a seed; of ``few`` contexts each decision of the first plate has all."""
    plate, (n, m) = study.plate, world.outcomes.shape
    draw = np.random.default_rng(derive_seed(EXPERIMENT + seed, 1, 0))
    noise = draw.normal(size=(2 * study.num_trials, plate))
    served = draw.permutation(m)[: few or m]
    wells = draw.permutation(n * m)[: study.num_trials]
    met = draw.integers(m, size=study.num_trials)
    if few:
        first = (
            draw.permutation(n)[: plate // few].repeat(few),
            np.tile(served, plate // few),
        )
    else:
        first = np.divmod(wells[:plate], m)
    return Draws(noise, served, wells, met, first)


def of_new_levels(world: ListedWorld, seed: int) -> list[dict[str, Any]]:
    """What `check` says of levels never tried from some of them, and what is true."""
    n, m = world.outcomes.shape
    draw = np.random.default_rng(derive_seed(EXPERIMENT + seed, 2, 0))
    levels = draw.permutation(sorted(set(world.decisions["x1"])))
    new = world.decisions["x1"].isin([*levels[: len(levels) // 3]]).to_numpy()
    rows, columns = np.divmod(draw.permutation(n * m), m)
    told = ~new[rows]
    trials = world.trials(
        rows[told][:_TOLD], columns[told][:_TOLD], draw.normal(size=_TOLD)
    )
    every = world.trials(rows[~told], columns[~told], np.zeros((~told).sum()))
    found, said = [], {}
    plain = world.without_features().chosen
    for knows, chosen in (("features", world.chosen), ("names", plain)):
        opt = NamedOptimizer.from_dataframe(
            trials,
            decisions=chosen,
            contexts=world.met,
            outcome=OUTCOME,
            scope="uniform",
            seed=seed,
        )
        if knows == "features":
            said = {new.column: new for new in opt.check().new_levels}
        share = said["x1"].explained if knows == "features" else said["x1"].without
        x, c = every.filter([*world.chosen]), every.filter([*world.met])
        mean = opt.predict(x, c)["mean"]
        errors = np.square(every[OUTCOME] - mean.to_numpy()).sum()
        apart = np.square(every[OUTCOME] - trials[OUTCOME].mean()).sum()
        about = {"row": f"new levels, {knows}", "told": _TOLD}
        found.append({**about, "said": share, "true": 1.0 - errors / apart})
    return found


def least_known(
    opt: NamedOptimizer, x: pd.DataFrame, contexts: pd.DataFrame
) -> np.ndarray:
    """For each decision by itself the context of which the model knows least."""
    n, m = len(x), len(contexts)
    decisions = x.take(np.arange(n).repeat(m)).reset_index(drop=True)
    every = contexts.take(np.tile(np.arange(m), n)).reset_index(drop=True)
    return opt.predict(decisions, every)["sd"].to_numpy().reshape(n, m).argmax(-1)


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


PAGES: Mapping[str, tuple[str, str, Callable[[pd.DataFrame], str]]] = {
    "trials": ("scope.csv", "README.md", make_report),
    "plates": ("plates.csv", "plates.md", report_of_plates),
}
"""Of each study the table, the page, and what makes the page of the table."""


def _block(name: str, case: str, seed: int, work: Path) -> None:
    study = STUDIES[name]
    about = {"case": case, "seed": seed, "commit": commit()}
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = CASES[case](seed)
        rows = [
            found
            for row in study.rows_of(world)
            for found in of_row(world, row, seed, study)
        ]
        if world.features:
            rows += of_new_levels(world, seed)
    keep([{**about, **row} for row in rows], place(work, name, case, seed))


def play(name: str, *, work: Path, out: Path, workers: int, report_only: bool) -> int:
    """Play what is not there yet, seed by seed, then judge all that is.

    Args:
        name: Of ``STUDIES``.
        work: The folder of this machine, with a file for each block.
        out: The folder of the table and the report.
        workers: Processes, each on one thread.
        report_only: Play nothing, and report on the table that is there.

    Returns:
        The exit status: 1 if a block failed.
    """
    failed, study = 0, STUDIES[name]
    table, page, report = PAGES[name]
    if not report_only:
        todo = {
            (case, seed): partial(_block, name, case, seed, work)
            for seed in study.seeds
            for case in study.cases
            if not place(work, name, case, seed).exists()
        }
        failed = num_failed(todo, workers)
        frame = pd.DataFrame(collected(work, name)).round(2)
        frame.to_csv(out / table, index=False)
    text = report(pd.read_csv(out / table))
    (out / page).write_text(text, encoding="utf-8")
    return 1 if failed else 0
