"""The cost of a known or unknown model error: the third paper's methods.

The paper has no experiments. Here each method plays on functions that its kernel can
represent but for an error of at most epsilon, on a grid of decisions, with the true
kernel, noise and prior mean. All methods of a seed meet the same function, the same
noise and the same first decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.experiments.decisions import decisions
from benchmarks.problems import MisspecifiedFunction
from benchmarks.problems.misspecified import Perturbation
from benchmarks.run.pictures import Panel, panel_figure
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import Row, RunKey, runs_of
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
OWN_GUESSES = (0.3, 0.1, 0.03, 0.0)  # of the range of the rewards
BALANCING: Mapping[str, Mapping[str, Any]] = {
    "regret_balancing": {},
    "regret_balancing, own guesses": {"misspecifications": OWN_GUESSES},
}
METHODS = ("gp_ucb", *SHARES, "phased_gp_us", *BALANCING, "random")
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
        rounds: How many decisions, the first ones not counted.
    """

    method: str
    kind: Perturbation
    epsilon: float
    seed: int
    rounds: int
    resumable: ClassVar[bool] = True

    @classmethod
    def of(
        cls, method: str, kind: Perturbation, epsilon: float, seed: int, rounds: int
    ) -> Task:
        """The run whose decisions these are; without an error some are the same."""
        if epsilon == 0.0:
            kind = KINDS[0]
            method = "gp_ucb" if method in SHARES else method
        return cls(method, kind, epsilon, seed, rounds)

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(f"{self.kind} {self.epsilon:g}", self.method, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name, and the number of rounds where the recipe is told it."""
        about = {"experiment": "misspecified", **self.key._asdict()}
        told = self.method in BALANCING
        return about | ({"rounds": self.rounds} if told else {})

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

    def options(self, values: Tensor) -> tuple[str, dict[str, Any]]:
        """The recipe and its options, given the function's values on the grid."""
        options: dict[str, Any] = {
            "hyperparameters": FixedHyperparameters(LENGTHSCALE, NOISE**2)
        }
        if self.method == "gp_ucb" or self.method in SHARES:
            # With no error this is `gp_ucb` to the last digit, and faster on a list.
            share = SHARES.get(self.method, 0.0)
            options |= {"beta": BETA, "misspecification": share * self.epsilon}
            return "ec_gp_ucb", options
        if self.method in BALANCING:
            low, high = values.min().item(), values.max().item()
            margin = MARGIN * NOISE
            options |= {
                "beta": BETA,
                "horizon": self.rounds,
                "num_design": NUM_INITIAL,
                "reward_range": (low - margin, high + margin),
            }
            return "regret_balancing", {**options, **BALANCING[self.method]}
        return self.method, options

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """The decisions that are not made yet."""
        function, candidates = self.function(), grid()
        values = function.expected_value(candidates)  # SIDE^2
        generator = torch.Generator().manual_seed(self.seed)
        first = torch.randint(len(candidates), (NUM_INITIAL,), generator=generator)
        noise = NOISE * torch.randn(
            NUM_INITIAL, generator=generator, dtype=torch.double
        )
        X = candidates[first]
        Y = (values[first] + noise).unsqueeze(-1)
        name, options = self.options(values)
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
                    seed=100_000 * self.seed + step,
                    candidates=candidates,
                )
                equal = (candidates == rows.unsqueeze(1)).all(-1)
                queue.extend(equal.int().argmax(-1).tolist())
            return queue.pop(0)

        def learn(step: int, position: int) -> None:
            nonlocal X, Y
            # A number of its own for each step: the same in a longer run.
            own = torch.Generator().manual_seed(100_000 * (self.seed + 1) + step)
            y = values[position] + NOISE * torch.randn((), generator=own)
            X = torch.cat([X, candidates[position].unsqueeze(0)])
            Y = torch.cat([Y, y.reshape(1, 1).to(Y)])

        regret = values.max() - values  # without noise
        for row in decisions(done, self.rounds, choose=choose, learn=learn):
            yield row | {"regret": regret[row["position"]].item()}


def grid() -> Tensor:
    """The decisions, ``SIDE^2 x 2``."""
    side = torch.linspace(0.0, 1.0, SIDE, dtype=torch.double)
    return torch.cartesian_prod(side, side)


def tasks(seed: int, rounds: int) -> list[Task]:
    """The runs of a seed."""
    return [
        Task.of(method, kind, epsilon, seed, rounds)
        for kind in KINDS
        for epsilon in EPSILONS
        for method in METHODS
    ]


Found = Mapping[tuple[Perturbation, float], Mapping[str, Tensor]]
"""Kind and size of the error -> method -> regret of each decision, seeds x steps."""


def collect(
    rows: pd.DataFrame,
    methods: Sequence[str],
    key: Callable[[str, Perturbation, float, int], RunKey],
) -> Found:
    """The regrets under the function without noise.

    Args:
        rows: Of all runs.
        methods: In their order.
        key: The run of a method, a kind and size of the error, and a seed.
    """
    runs, seeds = runs_of(rows), sorted(rows.seed.unique())

    def regret(method: str, kind: Perturbation, epsilon: float) -> Tensor:
        found = [runs[key(method, kind, epsilon, s)].regret for s in seeds]
        return torch.stack([torch.tensor(each.to_numpy()) for each in found])

    return {
        (kind, epsilon): {m: regret(m, kind, epsilon) for m in methods}
        for kind in KINDS
        for epsilon in EPSILONS
    }


def report(rows: pd.DataFrame) -> Report:
    """One table for each kind of error."""
    found = collect(rows, METHODS, lambda *run: Task.of(*run, rounds=1).key)
    seeds, iterations = rows.seed.nunique(), rows.iteration.max() + 1
    text = (
        f"`python -m benchmarks misspecified --seeds {seeds} --iterations "
        f"{iterations}`. Functions of norm {NORM:g} in two dimensions, lengthscale "
        f"{LENGTHSCALE:g}, plus an error of at most epsilon; {SIDE} x {SIDE} "
        f"decisions; noise {NOISE:g}; the kernel and the noise are known; beta "
        f"{BETA:g}, for phased_gp_us a width of 3. *ec_gp_ucb* knows epsilon, its "
        "variants believe in half of it or in twice as much; without an error they are "
        "gp_ucb. *regret_balancing* has as many guesses as the paper's formula gives, "
        "which needs a horizon above the square of the information gain for more than "
        "one; *own guesses* are "
        f"{', '.join(f'{guess:g}' for guess in OWN_GUESSES)} of the range of the "
        "rewards. Cumulative regret and, behind the bar, the mean regret of the last "
        f"quarter of the decisions: mean ± standard error over {seeds} seeds, lower "
        "is better."
    )
    figures = {"regret.png": figure(found)}
    return Report("When the model is wrong", [text, *tables(found)], figures)


def tables(found: Found) -> list[Table]:
    """One for each kind of error."""
    return [
        Table(
            ["method", *(f"epsilon {e:g}" for e in EPSILONS)],
            [
                [method, *(_cell(found[kind, e][method]) for e in EPSILONS)]
                for method in found[kind, EPSILONS[0]]
            ],
            f"**{kind}**",
        )
        for kind in KINDS
    ]


def _cell(regret: Tensor) -> str:
    last = regret[:, -max(1, regret.shape[-1] // 4) :].mean(-1)
    return f"{estimate(regret.sum(-1).tolist())} \\| {estimate(last.tolist())}"


def figure(found: Found) -> Figure:
    """The cumulative regret, a row for each kind of error."""
    panels = [
        Panel(
            f"{kind}, epsilon {epsilon:g}",
            "cumulative regret",
            {method: regret.cumsum(-1) for method, regret in by_method.items()},
        )
        for (kind, epsilon), by_method in found.items()
    ]
    return panel_figure(panels, len(EPSILONS))
