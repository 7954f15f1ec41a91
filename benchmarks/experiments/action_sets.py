"""Regret balancing in its own setting: a new set of decisions in each round.

The third paper's contextual bandit (its section on regret balancing) has no experiments
either. In each round twenty decisions are drawn and one is taken; regret is counted
against the best of the round (21). The function is one that the kernel can represent
but for an error of at most epsilon. All methods of a seed meet the same function, the
same action sets and the same noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from benchmarks.experiments.decisions import decisions
from benchmarks.experiments.misspecified import BALANCING as OF_A_FIXED_LIST
from benchmarks.experiments.misspecified import (
    EPSILONS,
    KINDS,
    collect,
    figure,
    tables,
)
from benchmarks.problems import ActionSetBandit, MisspecifiedFunction
from benchmarks.problems.misspecified import Perturbation
from benchmarks.run.report import Report, Table
from benchmarks.run.storage import Row, RunKey, runs_of
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.regret_balancing import RegretBalancing
from botorch_drbo.surrogate import FixedHyperparameters

# One decision variable and a smooth kernel: its information gain is small enough that
# the paper has more than one guess after some hundred rounds.
NORM, LENGTHSCALE, NOISE = 2.0, 0.3, 0.6
BETA = 4.0  # two standard deviations
NUM_DESIGN = 4  # random actions in the first rounds
BALANCING: Mapping[str, Mapping[str, Any]] = {
    **OF_A_FIXED_LIST,
    "regret_balancing, lambda 1": {"noise_ratio": 1.0},
}
METHODS = ("gp_ucb", "ec_gp_ucb", *BALANCING, "random")


@dataclass(frozen=True)
class Task:
    """One run.

    Args:
        method: One of ``METHODS``.
        kind: Of the perturbation.
        epsilon: Its size.
        seed: Picks the function, the action sets and the noise.
        rounds: How many rounds, those of the design not counted.
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
            method = "gp_ucb" if method == "ec_gp_ucb" else method
        return cls(method, kind, epsilon, seed, rounds)

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(f"{self.kind} {self.epsilon:g}", self.method, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name; balancing depends on the number of rounds."""
        about = {"experiment": "action_sets", **self.key._asdict()}
        told = self.method in BALANCING
        return about | ({"rounds": self.rounds} if told else {})

    @cached_property
    def bandit(self) -> ActionSetBandit:
        """What is played."""
        function = MisspecifiedFunction(
            self.kind,
            self.seed,
            misspecification=self.epsilon,
            norm=NORM,
            lengthscale=LENGTHSCALE,
            d_x=1,
        )
        return ActionSetBandit(function, noise=NOISE)

    @cached_property
    def actions(self) -> Tensor:
        """What is on offer, design first, ``T x 20 x 1``."""
        return self.bandit.actions(NUM_DESIGN + self.rounds, self.seed)

    @cached_property
    def space(self) -> SearchSpace:
        """The boxes."""
        function = self.bandit.function
        return SearchSpace(function.bounds, function.context_bounds)

    def recipe(self) -> Any:
        """The algorithm, with the true kernel and noise."""
        options: dict[str, Any] = {
            "hyperparameters": FixedHyperparameters(LENGTHSCALE, NOISE**2 / 3)
        }
        if self.method in {"gp_ucb", "ec_gp_ucb"}:
            known = self.epsilon if self.method == "ec_gp_ucb" else 0.0
            return make_recipe(
                "ec_gp_ucb", beta=BETA, misspecification=known, **options
            )
        if self.method in BALANCING:
            return RegretBalancing(
                beta=BETA,
                horizon=self.rounds,
                num_design=NUM_DESIGN,
                reward_range=self.bandit.reward_range(),
                **BALANCING[self.method],
                **options,
            )
        return make_recipe(self.method)

    def history(self, positions: Sequence[int]) -> History:
        """The decisions of the design and those taken, with their outcomes."""
        taken = [0] * NUM_DESIGN + list(positions)
        X = self.actions[range(len(taken)), taken]
        # The noise of a round is its own, whatever is decided.
        noise = torch.Generator().manual_seed(1_000_000 + self.seed)
        Y = self.bandit.observe(X, generator=noise).unsqueeze(-1)
        C = torch.full((len(X), 1), 0.5, dtype=torch.double)
        return History(X=X, C=C, Y=Y, contexts=C)

    def regret(self, positions: Sequence[int]) -> Tensor:
        """The contextual regret (21) of each decision, ``T``, not cumulated."""
        offered = self.actions[NUM_DESIGN:][: len(positions)]
        values = self.bandit.function.expected_value(offered)  # T x 20
        return values.amax(-1) - values[range(len(positions)), list(positions)]

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """The decisions that are not made yet."""
        taken: list[int] = []
        recipe = self.recipe()

        def choose(step: int) -> int:
            offered = self.actions[NUM_DESIGN + step]
            row = recipe.propose(
                self.history(taken),
                self.space,
                seed=100_000 * self.seed + step,
                candidates=offered,
            )
            return int((offered == row).all(-1).int().argmax())

        def learn(step: int, position: int) -> None:
            taken.append(position)

        for row in decisions(done, self.rounds, choose=choose, learn=learn):
            regret = self.regret([*taken, row["position"]])[-1]
            yield row | {"regret": regret.item()}


def tasks(seed: int, rounds: int) -> list[Task]:
    """The runs of a seed."""
    return [
        Task.of(method, kind, epsilon, seed, rounds)
        for kind in KINDS
        for epsilon in EPSILONS
        for method in METHODS
    ]


def report(rows: pd.DataFrame) -> Report:
    """The contextual regret, and which guess plays."""
    seeds, rounds = rows.seed.nunique(), int(rows.iteration.max()) + 1
    task = partial(Task.of, rounds=rounds)
    found = collect(rows, METHODS, lambda *run: task(*run).key)
    text = (
        f"`python -m benchmarks action_sets --seeds {seeds} --iterations {rounds}`. "
        f"Functions of norm {NORM:g} of one decision, lengthscale {LENGTHSCALE:g}, "
        "plus an error of at most epsilon; 20 decisions are drawn a round; the noise "
        f"is uniform within {NOISE:g}; kernel and noise are known; beta {BETA:g}. "
        "*ec_gp_ucb* knows epsilon; without an error it is gp_ucb. *regret_balancing* "
        "has the guesses of the paper, or those of the second table; with lambda 1 it "
        "computes as if the noise variance were that of the function, not "
        f"{NOISE**2 / 3:g} of it. Contextual regret "
        "(21) and, behind the bar, the mean regret of the last quarter of the rounds: "
        f"mean ± standard error over {seeds} seeds, lower is better."
    )
    title = (
        "**Which guess plays.** On the scale of the rewards, with its share of the "
        "plays and the seeds in which it was eliminated."
    )
    runs = runs_of(rows)
    head = ["guesses", "error", *(f"epsilon {e:g}" for e in EPSILONS)]
    cells = []
    for method in BALANCING:
        for kind in KINDS:
            of_error = [
                [task(method, kind, e, int(s)) for s in rows.seed.unique()]
                for e in EPSILONS
            ]
            label = method.partition(", ")[2] or "the paper's"
            cells.append([label, kind, *(_plays(tasks, runs) for tasks in of_error)])
    plays = Table(head, cells, title, left=len(head))
    return Report(
        "When the model is wrong, and each round offers other decisions",
        [text, *tables(found), plays],
        {"regret.png": figure(found)},
    )


def _plays(tasks: Sequence[Task], runs: Mapping[RunKey, pd.DataFrame]) -> str:
    """The guesses of one method on one function, over the seeds."""
    plays: Counter[float] = Counter()
    gone: Counter[float] = Counter()
    for task in tasks:
        history = task.history(runs[task.key].position.tolist())
        state = task.recipe().state(history, task.space)
        for guess, number, after in zip(
            state.misspecifications,
            state.num_plays,
            state.eliminated_after,
            strict=True,
        ):
            plays[guess] += number
            gone[guess] += after is not None
    total = sum(task.rounds for task in tasks)
    return ", ".join(
        f"{guess:.2g}: {100 * number / total:.0f}%"
        + (f" (out {gone[guess]})" if gone[guess] else "")
        for guess, number in plays.items()
    )
