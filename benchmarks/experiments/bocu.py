"""The experiments of the BOCU paper: Thompson sampling and its rivals, finite choices.

Four functions on 1,024 decisions and 64 contexts, a reference distribution that is not
the truth, and regret of the general objective under the reference (Figure 2). All
methods of a seed meet the same contexts, noise and initial data. Thompson sampling for
one objective is judged by the others as well (Figure 3).
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch
from matplotlib.figure import Figure
from rich.console import Console
from torch import Tensor

from benchmarks.experiments.decisions import decisions
from benchmarks.problems import BOCUProblem
from benchmarks.run.config import check_counts
from benchmarks.run.display import report_failures, run_with_lines, show
from benchmarks.run.pictures import Panel, panel_figure
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import Row, RunKey, collect_runs, load, runs_of
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    MaximumMeanDiscrepancy,
    TotalVariation,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.surrogate import FixedHyperparameters

BETA = 2.0  # as in the paper's experiments: 1.414 standard deviations
METHODS = ("ts_bocu", "ucb_bocu_1", "ucb_bocu_2", "ucb_so", "ucb_ro", "random")
PROBLEMS = ("gp_prior_2_2", "hartmann_2_1", "plant_growth", "covid_testing")
CROSSED = "ts_bocu"  # the method that is judged by objectives that it did not aim at
_WITHOUT_OBJECTIVE = ("ucb_so", "ucb_ro", "random")


@dataclass(frozen=True)
class Setting:
    """An objective and the distance that its ambiguity set is made of.

    Args:
        objective: A key of ``OBJECTIVES``.
        distance: A key of ``DISTANCES``.
    """

    objective: str
    distance: str

    def __str__(self) -> str:
        """The name in tables."""
        return f"{self.objective.upper()}, {self.distance.upper()}"

    def ambiguity_set(self, problem: BOCUProblem) -> AmbiguitySet:
        """The smallest ball around the reference that has the truth."""
        point = DISTANCES[self.distance](problem)
        return point.with_radius(problem.radius(point.distance))

    def build(self, problem: BOCUProblem) -> UncertaintyObjective:
        """The objective by which decisions are judged."""
        return OBJECTIVES[self.objective](self.ambiguity_set(problem))

    def options(self, problem: BOCUProblem) -> dict[str, Any]:
        """The same objective, as options of a recipe."""
        objective = self.build(problem)
        return {
            "ambiguity_set": objective.ambiguity_set,
            "value_weight": objective.value_weight,
            "sensitivity_weight": objective.sensitivity_weight,
        }


DISTANCES = {
    "tv": lambda problem: TotalVariation(0.0),
    "mmd": lambda problem: MaximumMeanDiscrepancy(0.0, problem.kernel_matrix),
}
OBJECTIVES = {
    "dro": UncertaintyObjective.dro,
    "wcs": UncertaintyObjective.wcs,
    "gen": UncertaintyObjective.gen,
}
SETTINGS = tuple(Setting(o, d) for d in DISTANCES for o in OBJECTIVES)


@dataclass(frozen=True)
class Task:
    """One run: decisions that are made once, and may be judged in several settings.

    Args:
        problem: One of ``PROBLEMS``.
        method: The recipe.
        setting: What it aims at; None for a recipe that knows no objective.
        seed: Picks the sample, the contexts, the noise and the initial data.
        rounds: How many decisions, those of the initial data not counted.
    """

    problem: str
    method: str
    setting: Setting | None
    seed: int
    rounds: int
    resumable: ClassVar[bool] = True

    @classmethod
    def of(
        cls, problem: str, method: str, setting: Setting, seed: int, rounds: int
    ) -> Task:
        """The run whose decisions are those of a method in a setting."""
        if method in _WITHOUT_OBJECTIVE:
            return cls(problem, method, None, seed, rounds)
        if method == "ucb_bocu_1" and setting.objective == "dro":
            # Without a sensitivity both versions are the bound of the worst case.
            return cls(problem, "ucb_bocu_2", setting, seed, rounds)
        return cls(problem, method, setting, seed, rounds)

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        aim = "" if self.setting is None else f", {self.setting}"
        return RunKey(self.problem, self.method + aim, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name; a longer run begins as a shorter one."""
        return {"experiment": "bocu", **self.key._asdict()}

    def algorithm(self, problem: BOCUProblem) -> Recipe:
        """The recipe, with the prior that the function is a sample of."""
        options: dict[str, Any] = {
            "reference": problem.context_set,
            "hyperparameters": FixedHyperparameters(
                lengthscale=0.1, noise_variance=problem.noise_std**2
            ),
        }
        if self.method.startswith("ucb"):
            options["beta"] = BETA
        if self.setting is not None:
            options |= self.setting.options(problem)
        return make_recipe(self.method, **options)

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """The decisions that are not made yet."""
        problem = make_problem(self.problem, self.seed)
        function, candidates = problem.function, problem.candidates
        space = SearchSpace(function.bounds, function.context_bounds)
        data = problem.initial()
        contexts = problem.sample_contexts(self.rounds)
        algorithm = self.algorithm(problem)

        def choose(step: int) -> int:
            X, C, Y = data
            x = algorithm.propose(
                History(X=X, C=C, Y=Y, contexts=C),
                space,
                seed=100_000 * self.seed + step,
                candidates=candidates,
            )
            return int((candidates == x).all(-1).nonzero()[0])

        def learn(step: int, position: int) -> None:
            nonlocal data
            chosen, c = torch.tensor([position]), contexts[step : step + 1]
            y = problem.observe(chosen, c, step=step)
            X, C, Y = data
            data = (
                torch.cat([X, candidates[chosen]]),
                torch.cat([C, c]),
                torch.cat([Y, y]),
            )

        return decisions(done, self.rounds, choose=choose, learn=learn)


def make_problem(name: str, seed: int) -> BOCUProblem:
    """The paper's setting; of "gp_prior_2_2" the seed picks the sample, too."""
    return BOCUProblem.preset(name, seed, decisions="grid")


def tasks_of(
    problems: Sequence[str],
    settings: Sequence[Setting],
    seeds: int,
    rounds: int,
    methods: Sequence[str] = METHODS,
) -> list[Task]:
    """All runs, each once; seed by seed, so that a killed benchmark has whole seeds."""
    tasks = [
        Task.of(problem, method, setting, seed, rounds)
        for seed in range(seeds)
        for problem in problems
        for setting in settings
        for method in methods
    ]
    return list(dict.fromkeys(tasks))


def run_bocu(
    out: Path,
    *,
    seeds: int,
    iterations: int,
    problems: Sequence[str] = PROBLEMS,
    distances: Sequence[str],
    objectives: Sequence[str],
    methods: Sequence[str] = METHODS,
    workers: int = 1,
) -> int:
    """Run what is not there yet, then report on the settings of each problem.

    A setting is reported for the seeds that all of ``methods`` have finished. Each
    problem has a folder of its own in ``out``.

    Returns:
        The exit status: 1 if a run failed.

    Raises:
        ConfigError: A count that is not positive.
    """
    check_counts(seeds=seeds, iterations=iterations)
    console = Console()
    settings = [Setting(o, d) for d in distances for o in objectives]
    tasks = tasks_of(problems, settings, seeds, iterations, methods)
    failures = run_with_lines(tasks, out, workers=workers, console=console)
    rows, _ = load(collect_runs({t.key: t.rounds for t in tasks}, out, {}))
    for problem, own in rows.groupby("problem", sort=False):
        page = out / str(problem) / "table.md"
        show(report(str(problem), own, settings, methods), page, console)
    return report_failures(failures)


@dataclass(frozen=True)
class Curves:
    """What one method did in one setting.

    Args:
        regret: Of each decision, ``seeds x iterations``.
        seconds: The median time of a decision.
    """

    regret: Tensor
    seconds: float


Found = Mapping[Setting, Mapping[str, Curves]]


def collect(
    name: str,
    rows: pd.DataFrame,
    settings: Sequence[Setting],
    methods: Sequence[str] = METHODS,
) -> Found:
    """The regrets in each setting, of the seeds that all its methods have finished."""
    runs, seeds = runs_of(rows), sorted(map(int, rows.seed.unique()))
    found: dict[Setting, dict[str, Curves]] = {}
    for setting in settings:
        keys = {
            seed: {m: Task.of(name, m, setting, seed, 0).key for m in methods}
            for seed in seeds
        }
        whole = [seed for seed in seeds if runs.keys() >= set(keys[seed].values())]
        if not whole:
            continue
        judges = {seed: _regrets(name, seed, setting) for seed in whole}
        found[setting] = {}
        for method in methods:
            played = {seed: runs[keys[seed][method]] for seed in whole}
            found[setting][method] = Curves(
                torch.stack([judges[s][_positions(played[s])] for s in whole]),
                statistics.median(s for run in played.values() for s in run.seconds),
            )
    return found


@cache
def _regrets(name: str, seed: int, setting: Setting) -> Tensor:
    """The regret of each candidate; asked for by several tables."""
    problem = make_problem(name, seed)
    return problem.regret(setting.build(problem))


def _positions(run: pd.DataFrame) -> Tensor:
    return torch.tensor(run.position.to_numpy(), dtype=torch.long)


Crossed = Mapping[str, Mapping[tuple[str, str], Tensor]]
"""Distance -> (aimed at, judged by) -> cumulative regret of each seed."""


def cross(name: str, rows: pd.DataFrame) -> Crossed:
    """Thompson sampling for each objective, judged by each objective (Figure 3).

    Of the distances and seeds for which the runs of all objectives have finished.
    """
    runs = runs_of(rows)
    totals: dict[str, dict[tuple[str, str], list[Tensor]]] = {}
    for distance in DISTANCES:
        for seed in sorted(map(int, rows.seed.unique())):
            keys = {
                aim: Task.of(name, CROSSED, Setting(aim, distance), seed, 0).key
                for aim in OBJECTIVES
            }
            if not runs.keys() >= set(keys.values()):
                continue
            for judge in OBJECTIVES:
                regret = _regrets(name, seed, Setting(judge, distance))
                for aim, key in keys.items():
                    row = totals.setdefault(distance, {}).setdefault((aim, judge), [])
                    row.append(regret[_positions(runs[key])].sum())
    return {
        distance: {pair: torch.stack(rows) for pair, rows in pairs.items()}
        for distance, pairs in totals.items()
    }


_HEAD = (
    "method",
    "cumulative regret",
    "regret, last quarter",
    "last : first",
    "minus first",
    "lower",
    "s/decision",
)


def report(
    problem: str,
    rows: pd.DataFrame,
    settings: Sequence[Setting],
    methods: Sequence[str],
) -> Report:
    """The tables and curves of one problem."""
    found, iterations = collect(problem, rows, settings, methods), rows.iteration.max()
    about = (
        f"`python -m benchmarks bocu --problems {problem} --iterations "
        f"{iterations + 1}`; seeds and settings are those below. 1,024 decisions, 64 "
        "contexts, a known prior of lengthscale .1, 5 initial points, noise .01, beta "
        f"{BETA:g} of the bounds; the radius is the distance from the reference to the "
        "truth."
    )
    reading = (
        "Mean ± standard error over seeds; lower is better. *Last : first* is the mean "
        "regret of the last quarter of the decisions by that of the first: below one, "
        "cumulative regret bends; one is linear. *Minus first* is the cumulative "
        "regret less that of the first method, paired by seed, and in how many seeds "
        "it is lower. Under DRO both versions of UCB-BOCU are one, and are run once."
    )
    tables = [setting_table(setting, curves) for setting, curves in found.items()]
    crossed = [_crossed_table(*each) for each in cross(problem, rows).items()]
    return Report(
        f"BOCU on {problem}",
        [about, reading, *tables, *crossed],
        figures={"regret.png": figure(found)},
        texts={
            "iterations.csv": iterations_csv(found),
            "seeds.csv": seeds_csv(problem, rows, settings, methods),
        },
    )


def setting_table(setting: Setting, methods: Mapping[str, Curves]) -> Table:
    """The methods in one setting, each beside the first."""
    base = next(iter(methods.values())).regret.sum(-1)
    rows = []
    for i, (method, curves) in enumerate(methods.items()):
        total = curves.regret.sum(-1)  # seeds
        last = curves.regret[:, -quarter(curves.regret.shape[-1]) :].mean(-1)
        cells = [
            method,
            _estimate(total),
            _estimate(last),
            f"{last_to_first(curves.regret):.2f}",
            _estimate(total - base) if i else "",
            f"{int((total < base).sum())}" if i else "",
            f"{curves.seconds:.2g}",
        ]
        rows.append(cells)
    seeds, iterations = next(iter(methods.values())).regret.shape
    title = f"**{setting}**: {seeds} seeds, {iterations} decisions"
    return Table(_HEAD, rows, title)


def _crossed_table(distance: str, pairs: Mapping[tuple[str, str], Tensor]) -> Table:
    """Rows aim at an objective, columns judge by one."""
    return Table(
        ["aimed at", *(f"judged by {judge.upper()}" for judge in OBJECTIVES)],
        [
            [aim.upper(), *(_estimate(pairs[aim, judge]) for judge in OBJECTIVES)]
            for aim in OBJECTIVES
        ],
        f"**{CROSSED} judged by every objective, {distance.upper()}**",
    )


def quarter(iterations: int) -> int:
    """How many decisions a quarter has, at least one."""
    return max(1, iterations // 4)


def last_to_first(regret: Tensor) -> float:
    """Mean regret of the last quarter by that of the first, of ``seeds x iterations``.

    A ratio of means over the seeds, not a mean of ratios: one seed that starts well
    would decide that.
    """
    size = quarter(regret.shape[-1])
    return (regret[:, -size:].mean() / regret[:, :size].mean()).item()


def iterations_csv(found: Found) -> str:
    """Mean and standard error of the cumulative regret at each decision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["objective", "distance", "method", "decision", "mean", "error"])
    for setting, methods in found.items():
        for method, curves in methods.items():
            cumulative = curves.regret.cumsum(-1)
            for i in range(cumulative.shape[-1]):
                point = estimate(cumulative[:, i].tolist())
                error = "" if point.error is None else f"{point.error:.5g}"
                about = [setting.objective, setting.distance, method]
                writer.writerow([*about, i + 1, f"{point.mean:.5g}", error])
    return text.getvalue()


def seeds_csv(
    name: str,
    rows: pd.DataFrame,
    settings: Sequence[Setting],
    methods: Sequence[str],
) -> str:
    """Cumulative regret of each seed, and the objective that its decisions aimed at."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["objective", "distance", "method", "aimed_at", "seed", "regret"]
    writer.writerow(head)
    for seed, own in rows.groupby("seed"):
        for setting, curves in collect(name, own, settings, methods).items():
            about = [setting.objective, setting.distance]
            for method, curve in curves.items():
                total = curve.regret.sum().item()
                aim = setting.objective
                writer.writerow([*about, method, aim, seed, f"{total:.8g}"])
        for distance, pairs in cross(name, own).items():
            for (aim, judge), regret in pairs.items():
                if aim != judge:
                    total = regret.sum().item()
                    line = [judge, distance, CROSSED, aim, seed, f"{total:.8g}"]
                    writer.writerow(line)
    return text.getvalue()


def figure(found: Found) -> Figure:
    """The cumulative regret, one panel for each setting."""
    panels = [
        Panel(
            f"{setting}: {len(next(iter(methods.values())).regret)} seeds",
            "cumulative regret",
            {method: curves.regret.cumsum(-1) for method, curves in methods.items()},
        )
        for setting, methods in found.items()
    ]
    return panel_figure(panels, min(3, len(panels)))


def _estimate(values: Tensor) -> str:
    return str(estimate(values.tolist()))
