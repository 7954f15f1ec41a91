"""The experiments of the BOCU paper: Thompson sampling and its rivals, finite choices.

Four functions on 1,024 decisions and 64 contexts, a reference distribution that is not
the truth, and regret of the general objective under the reference (Figure 2). All
methods of a seed meet the same contexts, noise and initial data. Thompson sampling for
one objective is judged by the others as well (Figure 3).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib import pyplot as plt
from rich.console import Console
from torch import Tensor

from benchmarks.experiments.decisions import (
    Decision,
    read_decisions,
    run_all,
    run_decisions,
)
from benchmarks.problems import BOCUProblem
from benchmarks.run.config import ConfigError
from benchmarks.run.markdown import markdown_table
from benchmarks.run.report import estimate
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    MaximumMeanDiscrepancy,
    TotalVariation,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.plotting import plot_regret
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
    """

    problem: str
    method: str
    setting: Setting | None
    seed: int

    @classmethod
    def of(cls, problem: str, method: str, setting: Setting, seed: int) -> Task:
        """The run whose decisions are those of a method in a setting."""
        if method in _WITHOUT_OBJECTIVE:
            return cls(problem, method, None, seed)
        if method == "ucb_bocu_1" and setting.objective == "dro":
            # Without a sensitivity both versions are the bound of the worst case.
            return cls(problem, "ucb_bocu_2", setting, seed)
        return cls(problem, method, setting, seed)

    def file(self, out: Path) -> Path:
        """Where its decisions are kept."""
        parts = [self.method]
        if self.setting is not None:
            parts += [self.setting.objective, self.setting.distance]
        name = f"{'_'.join(parts)}_seed_{self.seed:04d}.csv"
        return out / self.problem / "runs" / name

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


def make_problem(name: str, seed: int) -> BOCUProblem:
    """The paper's setting; of "gp_prior_2_2" the seed picks the sample, too."""
    return BOCUProblem.preset(name, seed, decisions="grid")


def run_task(task: Task, out: Path, iterations: int) -> int:
    """Run, extend or skip one run, on one thread.

    Returns:
        How many decisions were made now.
    """
    if len(load(task, out)) >= iterations:
        return 0
    problem = make_problem(task.problem, task.seed)
    function, candidates = problem.function, problem.candidates
    space = SearchSpace(function.bounds, function.context_bounds)
    data = problem.initial()
    contexts = problem.sample_contexts(iterations)
    algorithm = task.algorithm(problem)

    def choose(step: int) -> int:
        X, C, Y = data
        x = algorithm.propose(
            History(X=X, C=C, Y=Y, contexts=C),
            space,
            seed=100_000 * task.seed + step,
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

    return run_decisions(task.file(out), iterations, choose=choose, learn=learn)


def load(task: Task, out: Path) -> list[Decision]:
    """The decisions on the disk."""
    return read_decisions(task.file(out))


def tasks_of(
    problems: Sequence[str],
    settings: Sequence[Setting],
    seeds: int,
    methods: Sequence[str] = METHODS,
) -> list[Task]:
    """All runs, each once; seed by seed, so that a killed benchmark has whole seeds."""
    tasks = [
        Task.of(problem, method, setting, seed)
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
    """Run what is not there yet, then report on all settings of each problem.

    A setting is reported for the seeds that all of ``methods`` have finished. Each
    problem has a folder of its own in ``out``.

    Returns:
        The exit status, 0.

    Raises:
        ConfigError: A count that is not positive.
    """
    for name, count in (("seeds", seeds), ("iterations", iterations)):
        if count < 1:
            raise ConfigError(f"`{name}` must be at least 1, got {count}.")
    console = Console()
    settings = [Setting(o, d) for d in distances for o in objectives]
    tasks = tasks_of(problems, settings, seeds, methods)
    work = {
        f"{t.problem} {t.file(out).stem}": partial(run_task, t, out, iterations)
        for t in tasks
    }
    run_all(work, workers, console)
    for problem in problems:
        found = collect(out, problem, seeds, iterations, methods)
        crossed = cross(out, problem, seeds, iterations)
        table = report(problem, found, crossed, iterations)
        folder = out / problem
        (folder / "table.md").write_text(table, encoding="utf-8")
        curves = iterations_csv(found)
        (folder / "iterations.csv").write_text(curves, encoding="utf-8")
        draw(found, folder / "regret.png")
        console.print(table, markup=False, soft_wrap=True)
    return 0


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
    out: Path,
    name: str,
    seeds: int,
    iterations: int,
    methods: Sequence[str] = METHODS,
) -> Found:
    """The regrets in each setting, of the seeds that all its methods have finished."""
    rows: dict[Setting, dict[str, list[Tensor]]] = {}
    seconds: dict[Setting, dict[str, list[float]]] = {}
    for seed in range(seeds):
        problem = make_problem(name, seed)
        for setting in SETTINGS:
            runs = {m: load(Task.of(name, m, setting, seed), out) for m in methods}
            if min(map(len, runs.values())) < iterations:
                continue
            regret = problem.regret(setting.build(problem))  # of each candidate
            for method, decisions in runs.items():
                taken = [d.position for d in decisions[:iterations]]
                times = [d.seconds for d in decisions[:iterations]]
                row = rows.setdefault(setting, {}).setdefault(method, [])
                row.append(regret[torch.tensor(taken)])
                seconds.setdefault(setting, {}).setdefault(method, []).extend(times)
    return {
        setting: {
            method: Curves(
                torch.stack(regrets),
                torch.tensor(seconds[setting][method]).median().item(),
            )
            for method, regrets in by_method.items()
        }
        for setting, by_method in rows.items()
    }


Crossed = Mapping[str, Mapping[tuple[str, str], Tensor]]
"""Distance -> (aimed at, judged by) -> cumulative regret of each seed."""


def cross(out: Path, name: str, seeds: int, iterations: int) -> Crossed:
    """Thompson sampling for each objective, judged by each objective (Figure 3).

    Of the distances and seeds for which the runs of all objectives have finished.
    """
    totals: dict[str, dict[tuple[str, str], list[Tensor]]] = {}
    for seed in range(seeds):
        for distance in DISTANCES:
            runs = {
                o: load(Task.of(name, CROSSED, Setting(o, distance), seed), out)
                for o in OBJECTIVES
            }
            if min(map(len, runs.values())) < iterations:
                continue
            problem = make_problem(name, seed)
            for judge in OBJECTIVES:
                regret = problem.regret(Setting(judge, distance).build(problem))
                for aim, decisions in runs.items():
                    taken = [d.position for d in decisions[:iterations]]
                    row = totals.setdefault(distance, {}).setdefault((aim, judge), [])
                    row.append(regret[torch.tensor(taken)].sum())
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


def report(problem: str, found: Found, crossed: Crossed, iterations: int) -> str:
    """The tables, as Markdown."""
    lines = [
        f"# BOCU on {problem}",
        "",
        f"`python -m benchmarks bocu --problems {problem} --iterations {iterations}`; "
        "seeds and settings are those below. 1,024 decisions, 64 contexts, a known "
        "prior of lengthscale .1, 5 initial points, noise .01, beta "
        f"{BETA:g} of the bounds; the radius is the distance from the reference to the "
        "truth.",
        "",
        "Mean ± standard error over seeds; lower is better. *Last : first* is the mean "
        "regret of the last quarter of the decisions by that of the first: below one, "
        "cumulative regret bends; one is linear. *Minus first* is the cumulative "
        "regret less that of the first method, paired by seed, and in how many seeds "
        "it is lower. Under DRO both versions of UCB-BOCU are one, and are run once.",
    ]
    for setting, methods in found.items():
        first = next(iter(methods))
        base = methods[first].regret.sum(-1)
        lines += [
            "",
            f"**{setting}**: {len(base)} seeds, {iterations} decisions",
            "",
        ]
        rows = []
        for method, curves in methods.items():
            total = curves.regret.sum(-1)  # seeds
            last = curves.regret[:, -quarter(iterations) :].mean(-1)
            cells = [
                method,
                _estimate(total),
                _estimate(last),
                f"{last_to_first(curves.regret):.2f}",
                "" if method == first else _estimate(total - base),
                "" if method == first else f"{int((total < base).sum())}",
                f"{curves.seconds:.2g}",
            ]
            rows.append(cells)
        lines += markdown_table(_HEAD, rows)
    for distance, pairs in crossed.items():
        lines += ["", *_crossed_table(distance, pairs)]
    return "\n".join(lines) + "\n"


def _crossed_table(
    distance: str, pairs: Mapping[tuple[str, str], Tensor]
) -> Iterator[str]:
    """Rows aim at an objective, columns judge by one."""
    yield f"**{CROSSED} judged by every objective, {distance.upper()}**"
    yield ""
    yield from markdown_table(
        ["aimed at", *(f"judged by {judge.upper()}" for judge in OBJECTIVES)],
        [
            [aim.upper(), *(_estimate(pairs[aim, judge]) for judge in OBJECTIVES)]
            for aim in OBJECTIVES
        ],
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


def draw(found: Found, path: Path) -> None:
    """Save the cumulative regret, one panel for each setting."""
    columns = min(3, len(found))
    rows = math.ceil(len(found) / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(4.2 * columns, 3.6 * rows),
        layout="constrained",
        squeeze=False,
    )
    for ax in axes.flat[len(found) :]:
        ax.remove()
    for i, (setting, methods) in enumerate(found.items()):
        ax = axes.flat[i]
        cumulative = {m: curves.regret.cumsum(-1) for m, curves in methods.items()}
        plot_regret(cumulative, ax, ylabel="cumulative regret" if i == 0 else "")
        seeds = {len(curves.regret) for curves in methods.values()}
        ax.set_title(f"{setting}: {max(seeds)} seeds")
        if i > 0:
            ax.get_legend().remove()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _estimate(values: Tensor) -> str:
    return str(estimate(values.tolist()))
