"""Blocks of a case and a seed: who learns, what each rule decides, how it is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from benchmarks.experiments.price.cases import CASES, seed_of
from benchmarks.experiments.price.report import make_report
from benchmarks.experiments.price.rules import (
    EFFORT,
    EXPECTED,
    RULES,
    WITHIN,
    decisions,
)
from benchmarks.experiments.price.truth import truth_of
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import commit
from benchmarks.study.cases import check_names
from benchmarks.study.judge import collected, keep, num_failed, place
from botorch_drbo import RobustOptimizer
from botorch_drbo.optimizer.run import Purpose
from botorch_drbo.recipes import make_recipe

KEY, OF = ["part", "case", "seed", "told"], ": "
MEASURES = ("loss", "floor", "worst_regret", "mean_regret", "regret")
CHECKPOINTS = (15, 30)
SEEDS = range(1, 21)
MORE_SEEDS = range(1, 26)  # of the fifth claim
FEW_SEEDS = range(1, 11)  # of learning robustly
KNOWN = ("queue", "field", "dose", "battery", "reaction", "turbine")
_NUM_KNOWN = 8  # contexts of today, for each block
Found = list[dict[str, Any]]


def learnt(
    case: str, seed: int, algorithm: str, **options: Any
) -> Iterator[RobustOptimizer]:
    """A run of its own, at each checkpoint; all methods meet the same contexts."""
    about = CASES[case]
    space = about.space
    opt = RobustOptimizer(
        algorithm,
        space.bounds,
        space.context_bounds,
        seed=seed_of(case, seed, 1),
        **EFFORT,
        **options,
    )
    opt._run.configuration.space = space  # the category of a context
    contexts = about.contexts(max(CHECKPOINTS), seed_of(case, seed, 2))
    draw = torch.Generator().manual_seed(seed_of(case, seed, 3))
    noise = about.noise * torch.randn(len(contexts), generator=draw).double()
    for t, c in enumerate(contexts):
        x = opt.ask()
        opt.tell(x, c, about.formula(x, c.unsqueeze(0)) + noise[t])
        if t + 1 in CHECKPOINTS:
            yield opt


def of_rules(case: str, seed: int) -> Found:
    """Every rule from the outcomes of ``erbo``, and what to do in contexts known."""
    truth, rows = truth_of(case), []
    for opt in learnt(case, seed, "erbo"):
        told = len(opt.history.Y)
        for rule, x in decisions(opt, truth.case).items():
            rows.append({"told": told, "rule": rule, **_row(case, x)})
    return rows


def of_known(case: str, seed: int) -> Found:
    """Regret in contexts that are known, of a policy and of fixed decisions."""
    truth = truth_of(case)
    *_, opt = learnt(case, seed, "erbo")
    C = truth.case.contexts(_NUM_KNOWN, seed_of(case, seed, 4))
    best, history = truth.best_given(C), opt.history
    alone = RobustOptimizer(
        "gp_ucb", truth.space.bounds, truth.space.context_bounds, **EFFORT
    )
    alone.tell(history.X, history.C, history.Y)
    fixed, plain = opt.recommend().x, alone.recommend().x
    made = {
        "policy": opt.policy(C),
        "fixed decision": fixed.expand(len(C), -1),
        "model of the decision alone": plain.expand(len(C), -1),
    }
    rows = []
    for rule, X in made.items():
        values = truth.case.formula(X, C)
        regret = 100.0 * float((best - values).mean()) / truth.gain
        rows.append({"told": len(history.Y), "rule": rule, "regret": regret})
    return rows


def of_one_model(case: str, seed: int) -> Found:
    """``erbo`` with one model of BoTorch, and with the default, at the end."""
    rows = []
    for surrogate in ("botorch", "ensemble"):
        *_, opt = learnt(case, seed, "erbo", surrogate=surrogate)
        x = opt._run.configuration.algorithm.decided_by(*_judging(opt))
        rows.append({"told": len(opt.history.Y), "rule": surrogate, **_row(case, x)})
    return rows


def of_robust_learner(case: str, seed: int) -> Found:
    """``wdrbo_exact`` learns by itself, and the winning rules decide."""
    rows = []
    for opt in learnt(case, seed, "wdrbo_exact", radius="sd"):
        model, state = _judging(opt)
        for rule in (EXPECTED, WITHIN):
            recipe = make_recipe("erbo").with_options(**EFFORT, **RULES[rule])
            x = recipe.decided_by(model, state)
            rows.append({"told": len(opt.history.Y), "rule": rule, **_row(case, x)})
    return rows


PARTS: Mapping[str, tuple[Any, range, tuple[str, ...]]] = {
    "rules": (of_rules, SEEDS, tuple(CASES)),
    "robust_learner": (of_robust_learner, FEW_SEEDS, tuple(CASES)),
    "one_model": (of_one_model, MORE_SEEDS, tuple(CASES)),
    "known": (of_known, SEEDS, KNOWN),
}
"""What is played: each part for all of its seeds and cases."""


def _judging(opt: RobustOptimizer) -> tuple[Any, Any]:
    state = opt._run.state(Purpose.RECOMMENDATION)
    return opt._run.configuration.algorithm.judging_model(state), state


def _row(case: str, x: Tensor) -> dict[str, Any]:
    return {"x": x.tolist(), **truth_of(case).judged(x)}


def tasks(parts: list[str], work: Path) -> dict[tuple[str, str, int], Any]:
    """Blocks that are not there yet, seed by seed, so that a part is even."""
    todo = {}
    for part in parts:
        make, seeds, cases = PARTS[part]
        for seed in seeds:
            for case in cases:
                path = place(work, part, case, seed)
                if not path.exists():
                    todo[part, case, seed] = partial(
                        _block, make, part, case, seed, work
                    )
    return todo


def _block(make: Any, part: str, case: str, seed: int, work: Path) -> None:
    with one_thread():
        rows = make(case, seed)
    about = {"part": part, "case": case, "seed": seed, "commit": commit()}
    keep([{**about, **row} for row in rows], place(work, part, case, seed))


def write_tables(rows: Found, out: Path) -> None:
    """A csv for each part: a line for each block, the measures of its rules beside."""
    frame = pd.DataFrame(rows)
    for part, found in frame.groupby("part"):
        found = found.dropna(axis=1, how="all")
        measures = [m for m in MEASURES if m in found]
        table = found.pivot_table(measures, [*KEY, "commit"], "rule")
        table.columns = [f"{measure}{OF}{rule}" for measure, rule in table.columns]
        table.round(2).reset_index().to_csv(out / f"{part}.csv", index=False)


def read_tables(out: Path) -> pd.DataFrame:
    """A line for each rule of each block again."""
    frames = []
    for path in sorted(out.glob("*.csv")):
        table = pd.read_csv(path).set_index([*KEY, "commit"])
        table.columns = pd.MultiIndex.from_tuples(
            [tuple(str(name).split(OF)) for name in table.columns],
            names=["measure", "rule"],
        )
        frames.append(table.stack("rule", future_stack=True).reset_index())
    return pd.concat(frames, ignore_index=True)


def play(
    parts: list[str], *, work: Path, out: Path, workers: int, report_only: bool
) -> int:
    """Play what is not there yet, then judge all that is.

    Args:
        parts: Of ``PARTS``; all if empty.
        work: The folder of this machine, with a file for each block.
        out: The folder of the table and the report.
        workers: Processes, each on one thread.
        report_only: Play nothing, and report on the table that is there.

    Returns:
        The exit status: 1 if a block failed.
    """
    check_names("The experiment has the parts and knows", (parts, tuple(PARTS)))
    failed = 0
    if not report_only:
        todo = tasks(parts or list(PARTS), work)
        failed = num_failed(todo, workers)
        write_tables(collected(work), out)
    page = make_report(read_tables(out))
    (out / "README.md").write_text(page, encoding="utf-8")
    return 1 if failed else 0
