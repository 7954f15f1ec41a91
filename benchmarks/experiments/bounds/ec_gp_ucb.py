"""EC-GP-UCB beside its Theorem 1.

EC-GP-UCB with the width of its theory plays on functions of known norm and known error,
with the true kernel and noise: all that Theorem 1 of the third paper asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from gpytorch.kernels import RBFKernel
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.experiments import misspecified
from benchmarks.experiments.bounds.theorems import misspecified_regret_bound
from benchmarks.experiments.misspecified import (
    LENGTHSCALE,
    NOISE,
    NORM,
    NUM_INITIAL,
    grid,
)
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import RunKey, runs_of
from botorch_drbo.confidence import confidence_width, maximum_information_gain
from botorch_drbo.plotting import plot_regret
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.surrogate import FixedHyperparameters

DELTA = 0.1
EPSILONS = (0.0, 0.1)
_RATIO = NOISE**2  # lambda: the kernel is one at its top


@dataclass(frozen=True)
class Task(misspecified.Task):
    """One run of EC-GP-UCB with the width of Lemma 1."""

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(f"waves {self.epsilon:g}", self.method, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name, and the width."""
        return {"experiment": "bounds", "delta": DELTA, **self.key._asdict()}

    def options(self, values: Tensor) -> tuple[str, dict[str, Any]]:
        """The recipe and its options."""
        return "ec_gp_ucb", {
            "hyperparameters": FixedHyperparameters(LENGTHSCALE, NOISE**2),
            "beta": ConfidenceWidth(norm_bound=NORM, delta=DELTA),
            "misspecification": self.epsilon,
        }


def tasks(seed: int, rounds: int) -> list[Task]:
    """The runs of a seed."""
    return [Task("ec_gp_ucb", "waves", epsilon, seed, rounds) for epsilon in EPSILONS]


def theorem(epsilon: float, rounds: int) -> Tensor:
    """Theorem 1, (39), against the best of the true function, after each round.

    The largest information gain is the greedy one over ``1 - 1/e``: an upper bound.
    The first, random decisions count as rounds that it bounds too.
    """
    kernel = RBFKernel().double()
    kernel.initialize(lengthscale=LENGTHSCALE)
    total = rounds + NUM_INITIAL
    with torch.no_grad():
        gains = maximum_information_gain(kernel, grid(), total, _RATIO).gains
    gains = (gains / (1 - torch.exp(torch.tensor(-1.0))))[NUM_INITIAL:]
    horizons = torch.arange(NUM_INITIAL + 1, total + 1, dtype=torch.double)
    width = partial(
        confidence_width,
        norm_bound=NORM,
        delta=DELTA,
        noise_std=NOISE,
        noise_ratio=_RATIO,
    )
    widths = torch.tensor([width(gain) for gain in gains.tolist()])
    bound = misspecified_regret_bound(horizons, gains, widths, epsilon, _RATIO)
    return bound + 2 * epsilon * horizons


def report(rows: pd.DataFrame) -> Report:
    """How far the bound is above the regret, and a picture."""
    runs, seeds = runs_of(rows), sorted(rows.seed.unique())
    rounds = int(rows.iteration.max()) + 1
    measured: dict[float, Tensor] = {}
    cells = []
    for epsilon in EPSILONS:
        played = [Task("ec_gp_ucb", "waves", epsilon, int(s), rounds) for s in seeds]
        found = [torch.tensor(runs[t.key].regret.to_numpy()) for t in played]
        regret = measured[epsilon] = torch.stack(found).cumsum(-1)
        last = regret[:, -1]
        worst = [_range(task) * rounds for task in played]
        bound = theorem(epsilon, rounds)[-1].item()
        cells.append(
            [
                f"{epsilon:g}",
                str(estimate(last.tolist())),
                f"{sum(worst) / len(worst):.0f}",
                f"{bound:.0f}",
                f"{bound / last.mean().item():.0f}",
            ]
        )
    head = ["epsilon", "measured", "at most (the range, each round)", "Theorem 1"]
    text = (
        "EC-GP-UCB with the width of Lemma 1 on functions of norm "
        f"{NORM:g} plus waves of size epsilon, in two dimensions; kernel and noise are "
        f"known; probability 1 - {DELTA:g}. Cumulative regret after {rounds} rounds: "
        f"mean ± standard error over {len(seeds)} seeds; Theorem 1 with its constants "
        "(39). The largest information gain is bounded by the greedy one over 1 - 1/e."
    )
    table = Table([*head, "Theorem 1 / measured"], cells)
    figures = {"bounds.png": figure(measured)}
    return Report("EC-GP-UCB", ["## EC-GP-UCB", text, table], figures)


def _range(task: Task) -> float:
    values = task.function().expected_value(grid())
    return (values.max() - values.min()).item()


def figure(measured: Mapping[float, Tensor]) -> Figure:
    """Both on one scale; the scale is logarithmic, the bound is so far above.

    Args:
        measured: Size of the error -> cumulative regret, ``seeds x rounds``.
    """
    figure, axes = plt.subplots(
        1, len(measured), figsize=(9.6, 3.8), layout="constrained", squeeze=False
    )
    for ax, (epsilon, regret) in zip(axes.flat, measured.items(), strict=True):
        bound = theorem(epsilon, regret.shape[-1])
        curves = {"measured": regret, "Theorem 1 (39)": bound.unsqueeze(0)}
        plot_regret(curves, ax, ylabel="cumulative regret")
        ax.set_yscale("log")
        ax.set_title(f"EC-GP-UCB, waves of {epsilon:g}")
    return figure
