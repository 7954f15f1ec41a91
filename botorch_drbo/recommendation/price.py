"""A limit on the price of robustness: what of the expectation may be given up.

Near its optimum the expectation is flat: a small step away costs little of it and can
buy much against a bad distribution. Among the decisions whose expectation is nearly the
best, the one with the best worst case is therefore nearly free, while a decision that
looks at the worst case alone can cost anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import is_finite_number, is_number
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries import FittedRound, WorstCaseProblem
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.mixture import (
    GaussianMixture,
    joined,
    posterior_of_sums,
    thinned,
)
from botorch_drbo.problem.feasible import feasible, sample, settled
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.promise import (
    Later,
    interval_words,
    share_words,
    shown,
)
from botorch_drbo.recommendation.worst_case import WorstAt
from botorch_drbo.sampling import sobol
from botorch_drbo.search.candidates import score
from botorch_drbo.search.maximise import Effort

if TYPE_CHECKING:
    import pandas as pd

GiveUp: TypeAlias = float | Mapping[str, float]
"""A share of what there is to gain, or an amount by the name of the outcome."""

_AROUND = 256  # decisions around each of the best, at shrinking distances
_SHRINK = 6  # times that a distance is halved
_MOST_CONTEXTS = 1024  # of a joint posterior of two decisions
_LITTLE = 1e-3  # of the gain: what is bought is not worth a number
_BEST = 4  # decisions, around which they are sampled
_Row = TypeVar("_Row", "Tensor", "pd.DataFrame")


def check_give_up(give_up: object, name: str = "give_up") -> None:
    """Refuse what is neither a share nor an amount."""
    if give_up is None or (is_number(give_up) and 0.0 <= give_up <= 1.0):
        return
    amounts = list(give_up.values()) if isinstance(give_up, Mapping) else []
    if len(amounts) == 1 and is_finite_number(amounts[0]) and amounts[0] >= 0.0:
        return
    raise InputDataError(
        f"`{name}` must be a share of what there is to gain between 0 and 1, such as "
        "0.1, or an amount that is not negative by the name of the outcome, such as "
        f"{{'profit': 20}}, got {give_up!r}."
    )


def check_give_up_unit(give_up: GiveUp | None, outcome: str) -> None:
    """Refuse an amount in the unit of another outcome."""
    if isinstance(give_up, Mapping) and outcome not in give_up:
        raise InputDataError(
            f"`give_up` is an amount of `{next(iter(give_up))}`, and the outcome is "
            f"`{outcome}`: write {{{outcome!r}: ...}}."
        )


@dataclass(frozen=True, eq=False)
class PriceLimit:
    r"""Decisions whose expectation lacks no more than a limit to the best.

    .. math:: E(x) \ge \max_{x'} E(x') - \text{limit}, \qquad
        \text{limit} = \eta\, \Big( \max_{x'} E(x') - \overline{E} \Big)

    for a share :math:`\eta` of what there is to gain by choosing, the best expectation
    less the mean over all feasible decisions: no unit and no offset.
    """

    # The expectation under the reference, of decisions ``b x 1 x d_x``.
    expectation: DistributionallyRobustUCB
    # The decision with the best one, ``d_x``, and its value.
    best: Tensor
    value: float
    # What there is to gain, and what may be given up.
    gain: float
    limit: float
    # Decisions within the limit, ``m x d_x``: all that are of a list, or starts.
    rows: Tensor
    # The logarithm of a share that the price is paid for; None for a worst case.
    share: AcquisitionFunction | None = None

    @classmethod
    def of(
        cls,
        state: FittedRound,
        reference: ContextSet,
        best: Tensor,
        give_up: GiveUp,
        candidates: Tensor | None,
        effort: Effort,
        feasible_by: Callable[[Tensor], Tensor] | None = None,
    ) -> PriceLimit:
        """From the best decision, ``d_x``, of a list, ``m x d_x``, or of the space.

        ``feasible_by`` says which decisions meet the constraints by their models.
        """
        space, expectation = state.space, expectation_of(state, reference)
        value = score(expectation, best.unsqueeze(0)).item()
        rows = candidates
        if rows is None:
            rows = sample(space, effort.raw_samples, effort.seed)
        values = score(expectation, rows)
        # What must not be done is no choice: its mean may be above the best that may.
        free = values if feasible_by is None else values[feasible_by(rows)]
        gain = max(value - free.mean().item(), 0.0) if len(free) else 0.0
        amount = (
            next(iter(give_up.values()))
            if isinstance(give_up, Mapping)
            else give_up * gain
        )
        if candidates is None:
            told = state.history.X.unique(dim=0).clamp(*space.bounds)
            told = told[feasible(space, told)]
            top = rows[values.topk(min(_BEST - 1, len(rows))).indices]
            near = _around(torch.cat([best.unsqueeze(0), top]), space, effort.seed)
            rows = torch.cat([best.unsqueeze(0), told, rows, near])
        found = cls(expectation, best, value, gain, float(amount), rows)
        return replace(found, rows=rows[found.allows(rows)])

    @cached_property
    def _unit(self) -> float:
        """Of what is compared with a tolerance."""
        return self.gain if self.gain > 0.0 else 1.0

    def excess(self, X: Tensor) -> Tensor:
        """By how much decisions ``n x d_x`` are within the limit, in gains, ``n``."""
        values = self.expectation(X.unsqueeze(-2))
        return (values - (self.value - self.limit)) / self._unit

    def allows(self, X: Tensor) -> Tensor:
        """Which decisions ``n x d_x`` are within the limit."""
        values = score(self.expectation, X)
        return (values - (self.value - self.limit)) / self._unit >= -1e-9

    def within(self, space: SearchSpace) -> SearchSpace:
        """The space with the limit as one more constraint."""
        constraints = (*space.nonlinear_inequality_constraints, self.excess)
        return replace(space, nonlinear_inequality_constraints=constraints)


def _around(centres: Tensor, space: SearchSpace, seed: int) -> Tensor:
    """Decisions in smaller and smaller boxes around some, ``k x d_x`` to ``m x d_x``.

    What is within a small limit lies there.
    """
    lower, upper = space.bounds
    unit = 2.0 * sobol(_AROUND, space.d_x, seed).to(centres) - 1.0
    half = 0.5 ** torch.arange(1, _SHRINK + 1).to(centres)
    # In runs: every sixth point of a Sobol set would lie on one side of the middle.
    sizes = half.repeat_interleave(-(-_AROUND // _SHRINK))[:_AROUND].unsqueeze(-1)
    near = centres.unsqueeze(1) + sizes * unit * (upper - lower)
    near = settled(space, space.snap(near.flatten(0, 1).clamp(lower, upper)))
    return near[feasible(space, near)]


def expectation_of(
    state: FittedRound, reference: ContextSet
) -> DistributionallyRobustUCB:
    """The expectation of the posterior mean under a distribution."""
    objective = UncertaintyObjective.so()
    return DistributionallyRobustUCB(state.model, 0.0, reference, objective)


@final
@dataclass(frozen=True, eq=False)
class Price(Generic[_Row]):
    r"""What a decision gives up of the expectation, and what it buys for that.

    Attributes:
        paid: How much less is expected than of the best decision; not negative.
        limit: How much could be given up.
        gain: What there is to gain by choosing: the best expectation less the mean over
            all feasible decisions.
        best: The decision with the best expectation.
        best_expected: What is expected of it.
        best_worst_case: Its worst case.
        bought: How much better the worst case of the recommended decision is.
        believed: What the model believes of ``paid``, made when ``belief`` is read.
        of_share: Whether a share is bought and no worst case: ``best_worst_case`` is
            the share then.
    """

    paid: float
    limit: float
    gain: float
    best: _Row
    best_expected: float
    best_worst_case: float
    bought: float
    believed: Later[GaussianMixture]
    of_share: bool = False

    @property
    def belief(self) -> GaussianMixture:
        """What the model believes of ``paid``."""
        return self.believed.value

    def mirrored(self) -> Price[_Row]:
        """The same of minus the outcome."""
        worst = self.best_worst_case if self.of_share else -self.best_worst_case
        return replace(self, best_expected=-self.best_expected, best_worst_case=worst)

    @property
    def is_nothing(self) -> bool:
        """Whether no more is paid than rounding."""
        return self.paid <= 1e-9 * self.gain

    def words(self, best: str, level: float) -> list[str]:
        """Price and purchase in two lines."""
        share = f", {100 * self.paid / self.gain:.2g}%" if self.gain > 0.0 else ""
        if self.is_nothing:
            return [
                f"nothing given up (at most {shown(self.limit)}): it is the decision "
                "with the best expectation"
            ]
        there = shown(self.best_worst_case)
        if self.of_share:
            there = share_words(self.best_worst_case)
        return [
            f"{shown(self.paid)}{share} of what there is to gain, at most "
            f"{shown(self.limit)} ({100 * level:.3g}%: "
            f"{interval_words(self.belief, level)}); {shown(self.best_expected)} is "
            f"expected of {best}",
            f"buys {self.purchase}, {there} there",
        ]

    @property
    def purchase(self) -> str:
        """What is bought, in words."""
        if self.of_share:
            return f"{share_words(self.bought)} of the contexts"
        # The search looks at the mean of the models' worst cases, this at the worst
        # case of their mean: the last digits differ.
        little = abs(self.bought) <= _LITTLE * self.gain
        return f"{'nothing' if little else shown(self.bought)} in the worst case"


def belief_of_loss(
    model: Model, reference: ContextSet, best: Tensor, x: Tensor
) -> GaussianMixture:
    """What is believed of the expectation of one decision less that of another."""
    points, weights = thinned(reference.points, reference.weights, _MOST_CONTEXTS)
    Z = torch.cat([joined(best, points), joined(x, points)])
    return posterior_of_sums(model, Z, torch.cat([weights, -weights]).unsqueeze(0))[0]


def price_of(
    limit: PriceLimit,
    problem: WorstCaseProblem,
    model: Model,
    x: Tensor,
    expected: Tensor,
    worst_value: Tensor,
    believed: Later[GaussianMixture],
    *,
    seed: int,
) -> Price[Tensor]:
    """What a decision ``d_x`` gives up, and what it buys."""
    if limit.share is None:
        there = WorstAt.of(problem, model, limit.best, seed=seed).robust.value
        here = worst_value
    else:
        there, here = score(limit.share, torch.stack([limit.best, x])).exp()
    return Price(
        paid=max(limit.value - expected.item(), 0.0),
        limit=limit.limit,
        gain=limit.gain,
        best=limit.best,
        best_expected=limit.value,
        best_worst_case=there.item(),
        bought=(here - there).item(),
        of_share=limit.share is not None,
        believed=believed,
    )
