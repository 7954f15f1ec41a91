"""The uncertainty of the values that a recommendation reports, and their print."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast, final

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import shown
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.adversaries.base import with_unlisted
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import (
    GaussianMixture,
    joined,
    joint_samples,
    posterior_of_expectation,
    thinned,
)

_Made = TypeVar("_Made")
_Changed = TypeVar("_Changed")


@final
class Later(Generic[_Made]):
    """A value that is made when it is first read, and kept."""

    def __init__(self, make: Callable[[], _Made]) -> None:
        self._make: Callable[[], _Made] | None = make
        self._made: _Made | None = None

    @classmethod
    def of(cls, value: _Made) -> Later[_Made]:
        """A value that is there."""
        return cls(lambda: value)

    @property
    def value(self) -> _Made:
        """The value."""
        if self._make is not None:
            # What makes it is let go: it holds models.
            self._made, self._make = self._make(), None
        return cast(_Made, self._made)

    def then(self, change: Callable[[_Made], _Changed]) -> Later[_Changed]:
        """What a function makes of the value, when that is read."""
        return Later(lambda: change(self.value))

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles hold the value."""
        return Later.of, (self.value,)


def widened(factor: float) -> str:
    """By what intervals are stretched, in words; nothing if by less than a percent."""
    if factor < 1.01:
        return ""
    return f"widened {factor:.{2 if factor >= 1.1 else 3}g} times"


def share_words(share: float) -> str:
    """A share in percent, of which the first and last thousandth are not told apart."""
    if 0.0 < share < 1e-3 or 0.999 < share < 1.0:
        return "under 0.1%" if share < 0.5 else "over 99.9%"
    return f"{100 * share:.3g}%"


def interval_words(belief: GaussianMixture, level: float) -> str:
    """Both ends, to two significant digits of the width."""
    low, high = belief.interval(level)
    width = high - low
    if not width > 0.0:
        return f"{shown(low)} to {shown(high)}"
    digits = 1 - math.floor(math.log10(width))
    ends = [round(end, digits) + 0.0 for end in (low, high)]  # no minus zero
    if digits > _MOST_ZEROS:
        return " to ".join(map(shown, ends))
    return " to ".join(f"{end:.{max(digits, 0)}f}" for end in ends)


_MOST_ZEROS = 6  # behind the point, before a power of ten is easier to read
LEVEL = 0.9
"""Of the intervals that are shown where no other is asked for."""
_NUM_DRAWS = 256  # of the outcomes over contexts, of all models of an ensemble
_MOST_LISTED = 1024  # contexts of a joint posterior, if the adversary has no others
_MOST_SEEN, _MOST_OTHERS = 256, 128  # of a box: with weight, and without


@final
@dataclass(frozen=True, eq=False)
class Promise:
    r"""The distributions of the two values of a recommendation, by the model.

    Both are from the model's joint posterior over contexts: see
    ``posterior_of_expectation`` and ``posterior_of_worst_case``. If cross-validation
    shows that the model is overconfident, both are widened around their mean: see
    ``overconfidence``. They do not account for errors in the distributions of the
    context, nor for the selection of the decision by its predicted value.

    Attributes:
        expected: The value under the reference distribution.
        worst_case: The worst case over the set, whichever distribution is worst.
        widening: The factor by which both were widened; None if it is unknown because
            the model cannot be checked.
    """

    expected: GaussianMixture
    worst_case: GaussianMixture
    widening: float | None

    @classmethod
    def of(
        cls,
        model: Model,
        x: Tensor,
        problem: WorstCaseProblem,
        worst: ContextSet,
        widening: float | None,
        *,
        seed: int,
    ) -> Promise:
        r"""Compute them from a model.

        Args:
            model: Of ``[x, c]``, fitted.
            x: The decision, ``d_x``.
            problem: The reference, and the set around it.
            worst: The worst distribution found for the posterior mean.
            widening: The factor by which to widen; None if unknown.
            seed: Decides the contexts that fill a box.
        """
        reference = problem.contexts
        expected = posterior_of_expectation(
            model, x, reference.points, reference.weights
        )
        worst_case = expected
        if not problem.is_reference_alone:
            worst_case = posterior_of_worst_case(model, x, problem, worst, seed=seed)
        factor = 1.0 if widening is None else widening
        return cls(expected.widened(factor), worst_case.widened(factor), widening)

    def mirrored(self) -> Promise:
        """The same of minus the outcome."""
        expected, worst_case = self.expected.mirrored(), self.worst_case.mirrored()
        return Promise(expected, worst_case, self.widening)

    def words(self) -> str:
        """The source of the intervals, in words."""
        if self.widening is None:
            return "by the model, unchecked"
        stretched = widened(self.widening)
        return f"by the model, {stretched}" if stretched else "by the model"


def posterior_of_worst_case(
    model: Model,
    x: Tensor,
    problem: WorstCaseProblem,
    found: ContextSet,
    radii: Tensor | None = None,
    *,
    seed: int,
) -> GaussianMixture:
    r"""What is believed of the worst case of a decision, at several radii.

    .. math:: \min_{q \in \mathcal{Q}} \sum_i q_i f(x, c_i), \qquad
        f(x, \cdot) \sim \text{the joint posterior over contexts}

    Each of 256 functions that may be true has a worst distribution of its own, so the
    mean of these is below the worst case of the mean. Of a box, contexts that fill it
    stand for all: at most 128 beside those with weight, of which at most 256 are taken.
    """
    num = -(-_NUM_DRAWS // len(members_of(model)))
    if problem.family is not None:
        points, family = problem.family.thinned(problem.contexts.points, _MOST_LISTED)
        values = joint_samples(model, joined(x, points), num).double()
        worst = family.expectations(values).amin(-1)
        return GaussianMixture(worst, torch.zeros_like(worst))
    contexts = _listed(problem, found, seed)
    values = joint_samples(model, joined(x, contexts.points), num).double()
    ball, weights = problem.ball(contexts.points), contexts.weights.double()
    if radii is None:
        worst = ball.worst_case(values, weights).value
        return GaussianMixture(worst, torch.zeros_like(worst))
    columns = [
        ball.worst_case(values, weights, radius=radius.expand(len(values))).value
        for radius in radii.to(values)
    ]
    worst = torch.stack(columns, dim=-1)
    return GaussianMixture(worst, torch.zeros_like(worst))


def _listed(problem: WorstCaseProblem, found: ContextSet, seed: int) -> ContextSet:
    """The contexts on which worst cases are drawn."""
    given = problem.contexts
    if problem.box is None and given.num_points <= _MOST_LISTED:
        return given
    full, _ = problem.on_a_full_list(seed)
    held = full.weights > 0.0
    points, weights = thinned(full.points[held], full.weights[held], _MOST_SEEN)
    others = full.points[~held]
    others = others[:: -(-len(others) // _MOST_OTHERS) or 1]
    seen = with_unlisted(ContextSet(points, weights), others)
    # A worst distribution leaves most of the weight of many contexts where it is: those
    # that have the most are where the rest has gone.
    most = min(_MOST_SEEN + _MOST_OTHERS, found.num_points)
    worst = found.weights.topk(most).indices.sort().values
    worst = worst[found.weights[worst] > 0.0]
    return with_unlisted(seen, found.points[worst])
