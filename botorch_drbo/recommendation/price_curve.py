"""The worst case by what of the expectation is given up for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast, final

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.recommendation.best_decision import Decided
from botorch_drbo.recommendation.price import GiveUp, PriceLimit
from botorch_drbo.recommendation.promise import Promise, interval_words, shown
from botorch_drbo.search.candidates import score

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Of what there is to gain; the last decision gives up all that a worst case asks."""
_NOTHING = 1e-6  # of the gain
_Row = TypeVar("_Row")
_Rows = TypeVar("_Rows")


@final
@dataclass(frozen=True, eq=False)
class PriceCurve(Generic[_Row]):
    r"""Decisions from the best expectation to the best worst case, by their price.

    Attributes:
        limits: What each may give up, a share of what there is to gain, ``k``; infinite
            for the last.
        paid: What each gives up, in the unit of the outcome, ``k``, ascending.
        expected: What is expected of each, ``k``.
        worst_cases: Its worst case, ``k``: the more is given up the better.
        beliefs: What the model believes of the worst cases, ``k``.
        decisions: The decisions, ``k x d_x`` or a table.
        gain: What there is to gain by choosing.
        outcome: Its name.
        level: Of the intervals that are shown.
    """

    limits: tuple[float, ...]
    paid: Tensor
    expected: Tensor
    worst_cases: Tensor
    beliefs: GaussianMixture
    decisions: _Row
    gain: float
    outcome: str
    level: float

    @property
    def knee(self) -> int | None:
        r"""The decision after which more is given up for less; None if nothing is.

        The point of the curve that is furthest above the straight line from its first
        to its last point, both axes scaled to one.
        """
        price = self.paid - self.paid[0]
        bought = (self.worst_cases - self.worst_cases[0]).abs()
        if price[-1] <= _NOTHING * self.gain or bought[-1] <= _NOTHING * self.gain:
            return None
        return int((bought / bought[-1] - price / price[-1]).argmax())

    def with_decisions(self, decisions: _Rows) -> PriceCurve[_Rows]:
        """The same with the decisions in other words."""
        return cast("PriceCurve[_Rows]", replace(self, decisions=decisions))

    def mirrored(self) -> PriceCurve[_Row]:
        """The same of minus the outcome."""
        return replace(
            self,
            expected=-self.expected,
            worst_cases=-self.worst_cases,
            beliefs=self.beliefs.mirrored(),
        )

    def __str__(self) -> str:
        """A line for each price."""
        lines = [
            f"given up of the expected {self.outcome}, and the worst case for it "
            f"({100 * self.level:.3g}% intervals)"
        ]
        knee = self.knee
        for i, paid in enumerate(self.paid.tolist()):
            share = f" ({100 * paid / self.gain:.2g}%)" if self.gain > 0.0 else ""
            within = interval_words(self.beliefs[i], self.level)
            worst = f"{shown(self.worst_cases[i].item())} ({within})"
            mark = "  <- the knee: from here on more is paid for less"
            lines.append(f"  {shown(paid)}{share}: {worst}{mark if i == knee else ''}")
        return "\n".join(dict.fromkeys(lines))  # a price that buys nothing is no line


def no_worse(worst: Tensor, paid: Tensor, allowed: Tensor) -> Tensor:
    """For each of ascending limits the best decision found that it allows, ``k``.

    A search that found less than another one is put right. That of its own limit is
    allowed whatever rounding says; of equal ones the first is taken. Shapes: all ``k``.
    """
    own = torch.eye(len(worst), dtype=torch.bool, device=worst.device)
    within = own | (paid <= allowed.unsqueeze(-1))
    best = worst.where(within, -torch.inf).amax(-1, keepdim=True)
    return (within & (worst >= best)).long().argmax(-1)


def price_curve(
    decide: Callable[[GiveUp | None, Tensor | None], Decided],
    problem: WorstCaseProblem,
    model: Model,
    *,
    widening: float | None,
    level: float,
    outcome: str,
    seed: int,
) -> PriceCurve[Tensor]:
    """Decide at each price, from that for nothing to that at any price."""
    limit: PriceLimit | None = None
    found, worst, beliefs = [], [], []
    for give_up in (*SHARES, None):
        one = decide(give_up, None if limit is None else limit.best)
        limit = one.limit or limit
        x, at = one.found.x, one.worst(problem, model, seed=seed)
        promise = Promise.of(model, x, problem, at.distribution, widening, seed=seed)
        found.append(x)
        worst.append(at.robust.value)
        beliefs.append(promise.worst_case)
    if limit is None:
        raise UnsupportedError(
            "No decision meets the outcome constraints with the required probability: "
            "there is nothing to pay a price for yet. Try more decisions first."
        )
    X = torch.stack(found)
    expected = score(limit.expectation, X)
    paid = limit.value - expected
    allowed = torch.tensor([*(s * limit.gain for s in SHARES), math.inf]).to(paid)
    order = no_worse(torch.stack(worst), paid, allowed)
    X, expected, paid = X[order], expected[order], paid[order]
    beliefs = [beliefs[i] for i in order.tolist()]
    return PriceCurve(
        limits=(*SHARES, math.inf),
        # Up to rounding nothing is nothing.
        paid=torch.where(paid > _NOTHING * limit.gain, paid, 0.0),
        expected=expected,
        worst_cases=torch.stack(worst)[order],
        beliefs=GaussianMixture(
            torch.stack([belief.means for belief in beliefs], dim=-1),
            torch.stack([belief.deviations for belief in beliefs], dim=-1),
        ),
        decisions=X,
        gain=limit.gain,
        outcome=outcome,
        level=level,
    )
