"""What an unknown or known error of the model costs: the third paper's methods.

The paper has no experiments. Here each method plays on functions that its kernel can
represent but for an error of at most epsilon, on a grid of decisions, with the true
kernel, noise and prior mean. All methods of a seed meet the same function, the same
noise and the same first decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

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
from benchmarks.problems import MisspecifiedFunction
from benchmarks.problems.misspecified import Perturbation
from benchmarks.run.config import ConfigError
from benchmarks.run.markdown import markdown_table
from benchmarks.run.report import estimate
from botorch_drbo.plotting import plot_regret
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.phased import PhasedUncertaintySampling
from botorch_drbo.surrogate import FixedHyperparameters

SIDE = 25  # decisions along each axis of the grid
NORM, LENGTHSCALE, NOISE = 2.0, 0.2, 0.1
NUM_INITIAL = 4
BETA = 4.0  # two standard deviations
MARGIN = 5.0  # noise deviations that rewards may lie outside the function's range
SHARES = {"ec_gp_ucb, half": 0.5, "ec_gp_ucb": 1.0, "ec_gp_ucb, double": 2.0}
METHODS = ("gp_ucb", *SHARES, "phased_gp_us", "regret_balancing", "random")
EPSILONS = (0.0, 0.1, 0.3)
KINDS: tuple[Perturbation, ...] = get_args(Perturbation)


@dataclass(frozen=True)
class Task:
    """One run.

    Args:
        method: One of ``METHODS``.
        kind: Of the perturbation.
        epsilon: Its size.
        seed: Picks the function, the noise and the first decisions.
    """

    method: str
    kind: Perturbation
    epsilon: float
    seed: int

    @classmethod
    def of(cls, method: str, kind: Perturbation, epsilon: float, seed: int) -> Task:
        """The run whose decisions these are; without an error some are the same."""
        if epsilon == 0.0:
            kind = KINDS[0]
            method = "gp_ucb" if method in SHARES else method
        return cls(method, kind, epsilon, seed)

    def file(self, out: Path) -> Path:
        """Where its decisions are kept."""
        method = self.method.replace(", ", "_")
        name = f"{method}_{self.kind}_{self.epsilon:g}_seed_{self.seed:04d}.csv"
        return out / "runs" / name

    def function(self) -> MisspecifiedFunction:
        """What is played on."""
        return MisspecifiedFunction(
            self.kind,
            self.seed,
            misspecification=self.epsilon,
            norm=NORM,
            lengthscale=LENGTHSCALE,
            noise_std=NOISE,
        )

    def options(self, values: Tensor, iterations: int) -> tuple[str, dict[str, Any]]:
        """The recipe and its options, given the function's values on the grid."""
        options: dict[str, Any] = {
            "hyperparameters": FixedHyperparameters(LENGTHSCALE, NOISE**2)
        }
        if self.method == "gp_ucb" or self.method in SHARES:
            # With no error this is `gp_ucb` to the last digit, and faster on a list.
            share = SHARES.get(self.method, 0.0)
            options |= {"beta": BETA, "misspecification": share * self.epsilon}
            return "ec_gp_ucb", options
        if self.method == "regret_balancing":
            low, high = values.min().item(), values.max().item()
            margin = MARGIN * NOISE
            options |= {
                "beta": BETA,
                "horizon": iterations,
                "num_design": NUM_INITIAL,
                "reward_range": (low - margin, high + margin),
            }
        return self.method, options


def grid() -> Tensor:
    """The decisions, ``SIDE^2 x 2``."""
    side = torch.linspace(0.0, 1.0, SIDE, dtype=torch.double)
    return torch.cartesian_prod(side, side)


def run_task(task: Task, out: Path, iterations: int) -> int:
    """Run, extend or skip one run.

    Returns:
        How many decisions were made now.
    """
    if len(load(task, out)) >= iterations:
        return 0
    function, candidates = task.function(), grid()
    values = function.expected_value(candidates)  # SIDE^2
    generator = torch.Generator().manual_seed(task.seed)
    first = torch.randint(len(candidates), (NUM_INITIAL,), generator=generator)
    noise = NOISE * torch.randn(NUM_INITIAL, generator=generator, dtype=torch.double)
    X = candidates[first]
    Y = (values[first] + noise).unsqueeze(-1)
    name, options = task.options(values, iterations)
    algorithm = make_recipe(name, **options)
    space = SearchSpace(function.bounds, function.context_bounds)
    queue: list[int] = []

    def history() -> History:
        C = torch.full((len(X), 1), 0.5, dtype=torch.double)
        return History(X=X, C=C, Y=Y, contexts=C)

    def choose(step: int) -> int:
        if not queue:
            q = 1
            if isinstance(algorithm, PhasedUncertaintySampling):
                state = algorithm.state(history(), space, candidates=candidates)
                q = state.remaining  # the same decisions as one by one
            rows = algorithm.propose(
                history(),
                space,
                q=q,
                seed=100_000 * task.seed + step,
                candidates=candidates,
            )
            equal = (candidates == rows.unsqueeze(1)).all(-1)
            queue.extend(equal.int().argmax(-1).tolist())
        return queue.pop(0)

    def learn(step: int, position: int) -> None:
        nonlocal X, Y
        # A number of its own for each step: the same in a longer run.
        own = torch.Generator().manual_seed(100_000 * (task.seed + 1) + step)
        y = values[position] + NOISE * torch.randn((), generator=own)
        X = torch.cat([X, candidates[position].unsqueeze(0)])
        Y = torch.cat([Y, y.reshape(1, 1).to(Y)])

    return run_decisions(task.file(out), iterations, choose=choose, learn=learn)


def load(task: Task, out: Path) -> list[Decision]:
    """The decisions on the disk."""
    return read_decisions(task.file(out))


def run_misspecified(
    out: Path,
    *,
    seeds: int,
    iterations: int,
    kinds: Sequence[Perturbation] = KINDS,
    workers: int = 1,
) -> int:
    """Run what is not there yet, then report on it.

    Returns:
        The exit status, 0.

    Raises:
        ConfigError: A count that is not positive.
    """
    for name, count in (("seeds", seeds), ("iterations", iterations)):
        if count < 1:
            raise ConfigError(f"`{name}` must be at least 1, got {count}.")
    tasks = [
        Task.of(method, kind, epsilon, seed)
        for seed in range(seeds)
        for kind in kinds
        for epsilon in EPSILONS
        for method in METHODS
    ]
    console = Console()
    work = {t.file(out).stem: partial(run_task, t, out, iterations) for t in tasks}
    run_all(work, workers, console)
    found = collect(out, seeds, iterations, kinds)
    table = report(found, iterations)
    (out / "table.md").write_text(table, encoding="utf-8")
    draw(found, out / "regret.png")
    console.print(table, markup=False, soft_wrap=True)
    return 0


Found = Mapping[tuple[Perturbation, float], Mapping[str, Tensor]]
"""Kind and size of the error -> method -> regret of each decision, seeds x steps."""


def collect(
    out: Path, seeds: int, iterations: int, kinds: Sequence[Perturbation]
) -> Found:
    """The regrets under the function without noise, on the grid."""
    candidates = grid()
    found: dict[tuple[Perturbation, float], dict[str, list[Tensor]]] = {}
    for kind in kinds:
        for epsilon in EPSILONS:
            for seed in range(seeds):
                function = Task.of("random", kind, epsilon, seed).function()
                values = function.expected_value(candidates)
                regret = values.max() - values
                for method in METHODS:
                    decisions = load(Task.of(method, kind, epsilon, seed), out)
                    taken = [d.position for d in decisions[:iterations]]
                    by_method = found.setdefault((kind, epsilon), {})
                    by_method.setdefault(method, []).append(regret[taken])
    return {
        key: {method: torch.stack(rows) for method, rows in by_method.items()}
        for key, by_method in found.items()
    }


def report(found: Found, iterations: int) -> str:
    """One table for each kind of error, as Markdown."""
    seeds = len(next(iter(next(iter(found.values())).values())))
    lines = [
        "# When the model is wrong",
        "",
        f"`python -m benchmarks misspecified --seeds {seeds} --iterations "
        f"{iterations}`. Functions of norm {NORM:g} in two dimensions, lengthscale "
        f"{LENGTHSCALE:g}, plus an error of at most epsilon; {SIDE} x {SIDE} "
        f"decisions; noise {NOISE:g}; the kernel and the noise are known; beta "
        f"{BETA:g}, for phased_gp_us a width of 3. *ec_gp_ucb* knows epsilon, its "
        "variants believe in half of it or in twice as much; without an error they are "
        "gp_ucb. Cumulative regret and, behind the bar, the mean regret of the last "
        f"quarter of the decisions: mean ± standard error over {seeds} seeds, lower "
        "is better.",
    ]
    return "\n".join([*lines, *tables(found)]) + "\n"


def tables(found: Found) -> list[str]:
    """The lines of the tables."""
    lines: list[str] = []
    for kind in _kinds(found):
        lines += [
            "",
            f"**{kind}**",
            "",
            *markdown_table(
                ["method", *(f"epsilon {e:g}" for e in EPSILONS)],
                [
                    [method, *(_cell(found[kind, e][method]) for e in EPSILONS)]
                    for method in found[kind, EPSILONS[0]]
                ],
            ),
        ]
    return lines


def _kinds(found: Found) -> list[Perturbation]:
    kinds: dict[Perturbation, None] = {}
    for kind, _ in found:
        kinds[kind] = None
    return list(kinds)


def _cell(regret: Tensor) -> str:
    last = regret[:, -max(1, regret.shape[-1] // 4) :].mean(-1)
    return f"{estimate(regret.sum(-1).tolist())} \\| {estimate(last.tolist())}"


def draw(found: Found, path: Path) -> None:
    """Save the cumulative regret, a row for each kind of error."""
    kinds = _kinds(found)
    figure, axes = plt.subplots(
        len(kinds),
        len(EPSILONS),
        figsize=(4.2 * len(EPSILONS), 3.6 * len(kinds)),
        layout="constrained",
        squeeze=False,
    )
    for i, kind in enumerate(kinds):
        for j, epsilon in enumerate(EPSILONS):
            ax = cast(Any, axes[i, j])
            cumulative = {m: r.cumsum(-1) for m, r in found[kind, epsilon].items()}
            plot_regret(cumulative, ax, ylabel="" if j else "cumulative regret")
            ax.set_title(f"{kind}, epsilon {epsilon:g}")
            if i or j:
                ax.get_legend().remove()
    figure.savefig(path, dpi=130)
    plt.close(figure)
