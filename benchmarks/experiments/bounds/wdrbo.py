"""WDRBO beside its Theorems 4 and 5, in the general setting.

The optimiser is told a law of the context and a radius that reaches the true one. What
the theorems say of a round is computed from the kernel's algebra, not by the library's
posterior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import torch
from gpytorch.kernels import RBFKernel
from matplotlib.figure import Figure
from scipy.stats import wasserstein_distance
from torch import Tensor

from benchmarks.experiments.bounds.theorems import regret_bound, round_regret_bound
from benchmarks.experiments.decisions import decisions
from benchmarks.experiments.misspecified import LENGTHSCALE, NOISE, NORM, NUM_INITIAL
from benchmarks.problems import MisspecifiedFunction
from benchmarks.run.pictures import Panel, panel_figure
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import Row, RunKey, runs_of
from botorch_drbo.confidence import (
    abbasi_yadkori_width,
    confidence_width,
    maximum_information_gain,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import FixedHyperparameters

DELTA = 0.1
THEOREMS = "theorems.csv"
RATIO = 1.0  # lambda: Lemma 3 asks for at most 1, the sum in Theorem 5 for at least 1
SIDE = 51  # decisions, and contexts
REFERENCE = (0.5, 0.1)  # mean and standard deviation, as in Figure 1
TRUE_LAWS: Mapping[str, tuple[float, float]] = {
    "the reference is true": REFERENCE,
    "wrong reference": (0.6, 0.2),
}
_WIDTH = {
    "norm_bound": NORM,
    "delta": DELTA,
    "noise_std": NOISE,
    "noise_ratio": RATIO,
}


@dataclass(frozen=True)
class Task:
    """One run.

    Args:
        case: One of ``TRUE_LAWS``.
        seed: Picks the function, the contexts, the noise and the first decisions.
        rounds: How many decisions, the first ones not counted.
    """

    case: str
    seed: int
    rounds: int
    resumable: ClassVar[bool] = True

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(self.case, "wdrbo", self.seed)

    def header(self) -> dict[str, Any]:
        """Its name, and the probability."""
        return {"experiment": "bounds", "delta": DELTA, **self.key._asdict()}

    def function(self) -> MisspecifiedFunction:
        """A function of the kernel's space, of one decision and one context."""
        return MisspecifiedFunction(
            seed=self.seed,
            misspecification=0.0,
            norm=NORM,
            lengthscale=LENGTHSCALE,
            d_x=1,
            d_c=1,
        )

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """The decisions that are not made yet, with the terms of Theorem 4."""
        function, side = self.function(), line()
        reference, truth = law(REFERENCE), law(TRUE_LAWS[self.case])
        radius = distance(reference, truth)
        values = function.represented(side.unsqueeze(1), side) @ truth  # SIDE
        best = side[values.argmax()]
        recipe = make_recipe(
            "wdrbo",
            reference=ContextSet(side, reference),
            radius=radius,
            hyperparameters=FixedHyperparameters(LENGTHSCALE, NOISE**2),
            beta=ConfidenceWidth(NORM, DELTA, noise_std=NOISE, noise_ratio=RATIO),
        )
        space = SearchSpace(function.bounds, function.context_bounds)
        X, C, Y = (torch.empty(0, 1, dtype=torch.double) for _ in range(3))

        def learn(step: int, position: int) -> None:
            nonlocal X, C, Y
            # A number of its own for each step: the same in a longer run.
            own = torch.Generator().manual_seed(
                100_000 * (self.seed + 1) + NUM_INITIAL + step
            )
            x = side[position].reshape(1, 1)
            c = side[torch.multinomial(truth, 1, generator=own)]
            noise = torch.randn(1, 1, generator=own, dtype=torch.double)
            y = function.represented(x, c).reshape(1, 1) + NOISE * noise
            X, C, Y = torch.cat([X, x]), torch.cat([C, c]), torch.cat([Y, y])

        def choose(step: int) -> int:
            chosen = recipe.propose(
                History(X=X, C=C, Y=Y, contexts=C),
                space,
                q=1,
                seed=100_000 * self.seed + step,
                candidates=side,
            )
            return int((side == chosen).all(-1).int().argmax())

        first = torch.Generator().manual_seed(self.seed)
        for step, position in enumerate(
            torch.randint(SIDE, (NUM_INITIAL,), generator=first).tolist()
        ):
            learn(step - NUM_INITIAL, position)
        for row in decisions(done, self.rounds, choose=choose, learn=learn):
            bound = UpperBound.of(torch.cat([X, C], dim=-1), Y)
            x = side[row["position"]]
            yield row | {
                "regret": (values.max() - values[row["position"]]).item(),
                "mean_width": (bound.width * (bound.deviation(x) @ truth)).item(),
                "lipschitz": bound.slope(best),
                "radius": radius,
            }


def line() -> Tensor:
    """The decisions, and the contexts: ``SIDE x 1``."""
    return torch.linspace(0.0, 1.0, SIDE, dtype=torch.double).unsqueeze(-1)


def law(moments: tuple[float, float]) -> Tensor:
    """A normal law on the contexts of ``line``: weights, ``SIDE``."""
    mean, std = moments
    return torch.softmax(-0.5 * ((line().squeeze(-1) - mean) / std).square(), 0)


def distance(p: Tensor, q: Tensor) -> float:
    """The type-1 Wasserstein distance of two laws on the contexts of ``line``."""
    side = line().squeeze(-1).numpy()
    return float(wasserstein_distance(side, side, p.numpy(), q.numpy()))


class UpperBound(NamedTuple):
    """mu + width sigma after some data, from the algebra of the kernel.

    Args:
        Z: Inputs, ``t x 2``.
        inverse: Of ``K + lambda``, ``t x t``.
        weights: ``inverse @ y``, ``t``.
        width: Of Lemma 1, in units of the posterior's deviation.
    """

    Z: Tensor
    inverse: Tensor
    weights: Tensor
    width: float

    @classmethod
    def of(cls, Z: Tensor, Y: Tensor) -> UpperBound:
        """After the outcomes ``Y`` (``t x 1``) of the inputs ``Z``."""
        identity = torch.eye(len(Z), dtype=torch.double)
        inner = _kernel(Z, Z) + RATIO * identity
        gain = 0.5 * torch.logdet(inner / RATIO).item()
        inverse = torch.linalg.inv(inner)
        width = confidence_width(gain, **_WIDTH)
        return cls(Z, inverse, inverse @ Y.squeeze(-1), width)

    def value(self, x: Tensor, contexts: Tensor) -> Tensor:
        """The upper bound at one decision (``1``) and contexts (``n x 1``), ``n``."""
        row = _kernel(_joint(x, contexts), self.Z)
        return row @ self.weights + self.width * self._deviation(row)

    def deviation(self, x: Tensor) -> Tensor:
        """The posterior's, at one decision and the contexts of ``line``, ``SIDE``."""
        return self._deviation(_kernel(_joint(x, line()), self.Z))

    def slope(self, x: Tensor, size: int = 2001) -> float:
        """The largest slope in the context at one decision, on a fine grid."""
        contexts = torch.linspace(0.0, 1.0, size, dtype=torch.double).unsqueeze(-1)
        contexts.requires_grad_()
        (slopes,) = torch.autograd.grad(self.value(x, contexts).sum(), contexts)
        return slopes.abs().max().item()

    def _deviation(self, row: Tensor) -> Tensor:
        return (1 - (row @ self.inverse * row).sum(-1)).sqrt()


def _joint(x: Tensor, contexts: Tensor) -> Tensor:
    return torch.cat([x.expand(len(contexts), 1), contexts], dim=-1)


def _kernel(A: Tensor, B: Tensor) -> Tensor:
    gaps = (A.unsqueeze(-2) - B) / LENGTHSCALE
    return (-0.5 * gaps.square().sum(-1)).exp()


def tasks(seed: int, rounds: int) -> list[Task]:
    """The runs of a seed."""
    return [Task(case, seed, rounds) for case in TRUE_LAWS]


class Found(NamedTuple):
    """The regrets and bounds of a case, ``seeds x rounds``."""

    regret: Tensor
    theorem_4: Tensor
    theorem_5: Tensor
    shift: Tensor  # 2 eps L, the part of both bounds that does not shrink


def found(rows: pd.DataFrame) -> dict[str, Found]:
    """Measured regret and both theorems, case by case."""
    runs, seeds = runs_of(rows), sorted(rows["seed"].unique())
    by_case = {}
    for case in TRUE_LAWS:
        tables = [runs[Task(case, int(seed), 0).key] for seed in seeds]
        regret, width, slope, radius = (
            torch.stack([torch.tensor(table[name].to_numpy()) for table in tables])
            for name in ("regret", "mean_width", "lipschitz", "radius")
        )
        sums = [theorem_5(*each) for each in zip(radius, slope, strict=True)]
        by_case[case] = Found(
            regret,
            round_regret_bound(width, radius, slope),
            torch.stack(sums),
            2 * radius * slope,
        )
    return by_case


def theorems(rows: pd.DataFrame) -> str:
    """The measured regret and both theorems, a line for each case and seed."""
    table = pd.concat(
        pd.DataFrame(
            {
                "case": case,
                "rounds": each.regret.shape[-1],
                "above_4": (each.regret > each.theorem_4).sum(-1),
                "last": each.regret[:, -1],
                "theorem_4": each.theorem_4[:, -1],
                "regret": each.regret.sum(-1),
                "theorem_5": each.theorem_5[:, -1],
                "above_5": (each.regret.cumsum(-1) > each.theorem_5).sum(-1),
            }
        )
        for case, each in found(rows).items()
    )
    return table.to_csv(index=False, float_format="%.7g")


def theorem_5(radius: Tensor, slope: Tensor) -> Tensor:
    """The bound of the cumulative regret after each round.

    Args:
        radius: Of each round, ``rounds``.
        slope: Of the upper bound at the best decision.
    """
    gains = largest_gains(len(radius))
    width = [abbasi_yadkori_width(gain, **_WIDTH) for gain in gains.tolist()]
    return regret_bound(torch.tensor(width), gains, radius, slope, delta=DELTA)


@cache
def largest_gains(rounds: int) -> Tensor:
    """An upper bound of the largest information gain after each round.

    It is the greedy one over ``1 - 1/e``, of this round's outcome, those before it and
    the first ones: at least as large as that of the theorem, which ends before the
    round.
    """
    kernel = RBFKernel().double()
    kernel.initialize(lengthscale=LENGTHSCALE)
    side = line().squeeze(-1)
    with torch.no_grad():
        points = torch.cartesian_prod(side, side)
        found = maximum_information_gain(kernel, points, rounds + NUM_INITIAL, RATIO)
    return found.gains[NUM_INITIAL:] / (1 - math.exp(-1))


def report(rows: pd.DataFrame) -> Report:
    """How often the bound of a round is broken, and how far both are above."""
    by_case = found(rows)
    cells = []
    for case, (regret, fourth, fifth, shift) in by_case.items():
        last = slice(-max(1, regret.shape[-1] // 4), None)
        cells.append(
            [
                case,
                f"{distance(law(REFERENCE), law(TRUE_LAWS[case])):.3f}",
                f"{(regret > fourth).sum()} of {regret.numel()}",
                str(estimate(regret[:, last].mean(-1).tolist())),
                str(estimate(fourth[:, last].mean(-1).tolist())),
                str(estimate(shift[:, last].mean(-1).tolist())),
                str(estimate(regret.sum(-1).tolist())),
                str(estimate(fifth[:, -1].tolist())),
            ]
        )
    head = [
        "case",
        "radius",
        "rounds above Theorem 4",
        "regret of a round, last quarter",
        "Theorem 4",
        "of it the shift",
        "cumulative regret",
        "Theorem 5",
    ]
    seeds = rows["seed"].nunique()
    text = (
        "WDRBO with the width of its eq. 7 on functions of norm "
        f"{NORM:g} of one decision and one context; the reference is N(.5, .1), the "
        "wrong one's truth N(.6, .2), and the radius is their Wasserstein distance "
        f"(lambda {RATIO:g}, for which the conditions of all its lemmas hold; kernel "
        f"and noise {NOISE:g} are known; probability 1 - {DELTA:g}, for Theorem 5 1 - "
        f"{2 * DELTA:g}). Theorem 4 bounds the regret of each round by twice the mean "
        "width plus twice the radius times the slope at the best decision. In Theorem "
        "5 the information gain, that of the width too, is bounded by the greedy one "
        "over 1 - 1/e and counts the four first outcomes and this round's: the paper's "
        f"bound is at most this one. Mean ± standard error over {seeds} seeds."
    )
    picture = {"wdrbo.png": figure(by_case)}
    return Report("WDRBO", ["## WDRBO", text, Table(head, cells)], picture)


def figure(by_case: Mapping[str, Found]) -> Figure:
    """The regret of each round and the cumulative one, each below its bound."""
    panels = []
    for case, (regret, fourth, fifth, _) in by_case.items():
        for theorem, ylabel, curve, bound in (
            ("Theorem 4", "regret of each decision", regret, fourth),
            ("Theorem 5", "cumulative regret", regret.cumsum(-1), fifth),
        ):
            curves = {"measured": curve, "bound": bound}
            panels.append(Panel(f"{case}: {theorem}", ylabel, curves))
    drawn = panel_figure(panels, 2)
    for ax in drawn.axes:
        ax.set_yscale("log")
    return drawn
