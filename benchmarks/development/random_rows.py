"""Intervals of recommendations after random rows, against the true values.

A decision is chosen from a list, and its worst distribution on a list of contexts: the
intervals are looked at, not the search.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from botorch.models.model import Model
from rich.console import Console
from torch import Tensor

from benchmarks.development.cases import CASES, half_of
from benchmarks.development.coverage import by_case, interval_cells
from benchmarks.development.surrogates import options_of
from benchmarks.development.truth import Truth, truth_of
from benchmarks.run.display import run_all
from benchmarks.run.engine import one_thread
from benchmarks.run.markdown import markdown_table
from benchmarks.run.provenance import commit
from benchmarks.run.world import World
from benchmarks.study.judge import keep
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.problem import History
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation.promise import LEVEL, Promise
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate.cross_validation import cross_validated, overconfidence
from botorch_drbo.surrogate.fit import fit_outcomes, joint_data

TOLD = (10, 15, 30)
SURROGATES = ("botorch", "four")
FIRST_SEED = 1000  # and on: of rows that no run has seen
_NUM_DECISIONS = 200  # beside those told
_NUM_ROBUST = 40  # of these, the best by expectation, whose worst cases are compared


@dataclass(frozen=True)
class Interval:
    """One promise after random rows.

    Args:
        half: Of the development set.
        case: A key of ``CASES``.
        surrogate: A key of ``CANDIDATES``.
        seed: Of the rows, and of the function if it is random.
        told: How many outcomes were learnt from.
        promised: "expected", of the decision best by expectation under the contexts
            seen; "worst", under the worst distribution of the decision best by that.
        mean: The value that is printed.
        low: The lower end of its interval of 90%.
        high: The upper end.
        widening: By what it was stretched.
        truth: The true expectation under that distribution.
        spread: From the 10% to the 90% quantile of the function's outcomes.
        commit: Of the code.
    """

    half: str
    case: str
    surrogate: str
    seed: int
    told: int
    promised: str
    mean: float
    low: float
    high: float
    widening: float
    truth: float
    spread: float
    commit: str


def random_history(case: str, truth: Truth, told: int, seed: int) -> History:
    """Random decisions in contexts of the true law, and their outcomes."""
    function = truth.function
    world, (low, high) = (
        World(function, case, FIRST_SEED + seed, salt=""),
        function.bounds,
    )
    rows = []
    for step in range(told):
        c = world.context(step)
        uniforms = (world.initial_decision(step) - low) / (high - low)
        x = CASES[case].decisions(function, uniforms)
        rows.append((x, c, world.outcome(step, x, c)))
    X, C, Y = (torch.cat(column) for column in zip(*rows, strict=True))
    return History(X=X, C=C, Y=Y, contexts=C)


def intervals(case: str, surrogate: str, seed: int, told: int) -> list[Interval]:
    """Both promises of one model, on one thread."""
    truth = truth_of(case, seed)
    function, space = truth.function, CASES[case].space(truth.function)
    history = random_history(case, truth, told, seed)
    low, high = truth.outcomes.quantile(truth.outcomes.new_tensor([0.1, 0.9])).tolist()
    recipe = make_recipe("wdrbo_exact", **options_of(surrogate))
    assert isinstance(recipe, ModelBasedRecipe)
    with one_thread():
        judge = recipe.judging_surrogate()
        model = fit_outcomes(history, space, judge, uses_contexts=True)
        held_out = cross_validated(judge, joint_data(history, space))
        assert held_out is not None
        widening = overconfidence(held_out.standardised)
        state = recipe.state_of(model, history, space, seed)
        problem = recipe.worst_case_problem(state)
        reference = problem.contexts
        listed = CASES[case].decisions(function, sobol(_NUM_DECISIONS, space.d_x, seed))
        X = torch.cat([listed, history.X])
        with torch.no_grad():
            expected = _means(model, X, reference.points) @ reference.weights
            robust = X[expected.topk(_NUM_ROBUST).indices]
            contexts, ball = problem.on_a_full_list(seed)
            cases = ball.worst_case(
                _means(model, robust, contexts.points), contexts.weights
            )
            best = cases.value.argmax()
        worst = ContextSet(contexts.points, cases.weights[best].clamp_min(0.0))
        decisions = {"expected": X[expected.argmax()], "worst": robust[best]}
        found = []
        for promised, x in decisions.items():
            promise = Promise.of(model, x, problem, worst, widening, seed=seed)
            believed = promise.expected
            values = function.table(x.unsqueeze(0), contexts.points)[0]
            true = (contexts.weights @ values).item()
            if promised == "worst":
                believed = promise.worst_case
                true = ball.worst_case(values, contexts.weights).value.item()
            ends = believed.interval(LEVEL)
            found.append(
                Interval(
                    half=half_of(case),
                    case=case,
                    surrogate=surrogate,
                    seed=seed,
                    told=told,
                    promised=promised,
                    mean=believed.mean.item(),
                    low=ends[0],
                    high=ends[1],
                    widening=widening,
                    truth=true,
                    spread=high - low,
                    commit=commit(),
                )
            )
    return found


def _means(model: Model, X: Tensor, C: Tensor) -> Tensor:
    """Of each decision in each context, ``M x n``."""
    Z = torch.cat([X.repeat_interleave(len(C), 0), C.repeat(len(X), 1)], dim=-1)
    return joint_moments(model, Z)[0].reshape(len(X), len(C))


def measure_intervals(
    *, work: Path, out: Path, halves: Sequence[str], seeds: int, workers: int
) -> int:
    """Make what is missing, a file for each, and write ``intervals_A.md`` and so on.

    What the committed tables have is not made again, and stays in them.

    Args:
        work: The folder of this machine.
        out: The folder of table and report.
        halves: Of ``HALVES``.
        seeds: How many: 0, 1, ...
        workers: Processes, each on one thread.

    Returns:
        The exit status.
    """
    console, tables = Console(), {half: _committed(out, half) for half in halves}
    paths = {
        (case, surrogate, seed, told): work
        / "random_rows"
        / "_".join(map(str, (case, surrogate, seed, f"{told}.json")))
        for seed in range(seeds)
        for case in CASES
        for surrogate in SURROGATES
        for told in TOLD
        if half_of(case) in halves
    }
    made = {key for table in tables.values() for key in _keys(table)}
    lacking = {what: path for what, path in paths.items() if what not in made}
    missing = {
        path.stem: partial(_make, path, *what)
        for what, path in lacking.items()
        if not path.exists()
    }
    run_all(missing, workers, console)
    for half, table in tables.items():
        rows = [
            row
            for (case, *_), path in lacking.items()
            if half_of(case) == half
            for row in json.loads(path.read_text(encoding="utf-8"))
        ]
        table = pd.concat([table, pd.DataFrame(rows)]) if rows else table
        table = table.sort_values([*_KEY, "promised"], kind="stable")
        name = f"intervals_{half}"
        table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        text = intervals_report(table)
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        console.print(text, markup=False, soft_wrap=True)
    return 0


_KEY = ["case", "surrogate", "seed", "told"]


def _committed(out: Path, half: str) -> pd.DataFrame:
    """What was measured before, perhaps of other surrogates; empty if nothing was."""
    path = out / f"intervals_{half}.csv"
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=pd.Index(_KEY))


def _keys(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(table[_KEY].itertuples(index=False, name=None))


def _make(path: Path, case: str, surrogate: str, seed: int, told: int) -> int:
    found = [asdict(each) for each in intervals(case, surrogate, seed, told)]
    keep(found, path)
    return len(found)


_EXPLANATION = """`python -m benchmarks calibration --random-rows`: 90% intervals after
random decisions in contexts of the true law.

*Inside*: how many held the true expectation under the distribution that they are about
(the contexts seen; the worst distribution found), ± a standard error; *as the model
says*: the same of intervals that are not widened. *Width* (the median) and *optimism*
(the mean of the value printed less the true one, ± a standard error) are shares of the
function's own 10 to 90% spread of outcomes."""


def intervals_report(table: pd.DataFrame) -> str:
    """The report as Markdown, of a row for each ``Interval``."""
    parts = ["# Intervals after random rows", _EXPLANATION]
    head = ["surrogate", "outcomes", "promise", "data sets", "inside", "width"]
    head += ["optimism", "as the model says", "its width"]
    for half in sorted(set(table["half"])):
        own: Any = table[table["half"] == half]
        rows = [
            [*map(str, what), str(len(each)), *interval_cells(each, "truth")]
            for what, each in own.groupby(["surrogate", "told", "promised"])
        ]
        parts += [f"## Half {half}", "\n".join(markdown_table(head, rows))]
        usual = own[own["told"].isin(TOLD)]
        columns = [(s, p) for s in SURROGATES for p in ("expected", "worst")]
        outcomes = ", ".join(map(str, TOLD))
        parts += [f"### Inside, case by case, {outcomes} outcomes together"]
        parts += [by_case(usual, "truth", columns)]
    return "\n\n".join(parts) + "\n"
