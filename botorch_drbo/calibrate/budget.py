"""A radius from a budget, and the worst case of a decision, radius by radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_finite,
    check_positive,
    nonnegative_number,
)
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.base import check_has_radius
from botorch_drbo.posterior.mixture import GaussianMixture


def from_budget(
    expected_value: Callable[[float], float],
    max_radius: float,
    *,
    share: float = 0.03,
    budget: float | None = None,
    num_radii: int = 8,
    tolerance: float = 0.01,
) -> float:
    r"""A radius from a budget: the largest whose robust decision costs no more.

    .. math:: \epsilon = \max \{ r : | E(x_s) - E(x_0) | \le b
        \text{ for all } s \le r \}, \qquad
        x_s = \arg\max_x \min_{d(p, q) \le s} q^\top f(x)

    with ``E`` the expected value under the reference. The decision is optimised again
    at each radius that is tried: ``num_radii`` equal steps up to the first one that
    costs more, then bisection. At radius zero the decision is the best by the expected
    value, so any difference is a cost, whether high or low outcomes are good.

    *Guarantee.* The decision at the returned radius stays within the budget according
    to the model; the true cost depends on how good the model is. The cost usually grows
    with the radius, but not always: a larger radius may be cheap again, and a radius
    between those tried may be expensive. Nothing is implied about the shifts that will
    happen: the budget fixes the price, not the protection.

    Args:
        expected_value: From a radius to the expected value of the decision that is
            optimal for it: ``choice_from`` for listed decisions, or anything that
            optimises.
        max_radius: The largest radius to try.
        share: The budget as a share of the expected value at radius zero. If the
            outcome has no natural zero (a profit before fixed costs), a share means
            little: give ``budget`` instead.
        budget: The budget in units of the outcome, in place of ``share``.
        num_radii: How many steps upwards.
        tolerance: How near to the limit, as a share of ``max_radius``.

    Returns:
        The radius, at most ``max_radius``.

    Raises:
        InputDataError: An argument outside its range, expected values that are not
            finite, or a share of zero.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.calibrate import choice_from, from_budget
        >>> f = torch.tensor([[10.0, 0.0], [6.0, 3.0]])  # bold and safe
        >>> p = torch.tensor([0.5, 0.5])
        >>> choose = choice_from(f, p, TotalVariation(0.0))
        >>> [choose(radius) for radius in (0.0, 0.2)]
        [5.0, 4.5]
        >>> round(from_budget(choose, 2.0, share=0.03), 1)  # the safe one costs 10 %
        0.1
        >>> from_budget(choose, 2.0, share=0.2)
        2.0
    """
    for name, number in {"max_radius": max_radius, "tolerance": tolerance}.items():
        check_positive(number, name)
    name, number = ("share", share) if budget is None else ("budget", budget)
    nonnegative_number(number, name)
    check_count(num_radii, "num_radii")
    best = _finite(expected_value, 0.0)
    if budget is None and best == 0.0:
        raise InputDataError(
            "The expected value at radius zero is 0, and a share of it nothing. Pass "
            "`budget`, in the units of the outcome."
        )
    allowed = share * abs(best) if budget is None else budget

    def within(radius: float) -> bool:
        return abs(_finite(expected_value, radius) - best) <= allowed

    low = 0.0
    for step in range(1, num_radii + 1):
        high = max_radius * step / num_radii
        if not within(high):
            break
        low = high
    else:
        return max_radius
    while high - low > tolerance * max_radius:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def choice_from(
    values: Tensor, weights: Tensor, ambiguity_set: AmbiguitySet
) -> Callable[[float], float]:
    r"""The expected value of the most robust of listed decisions, for each radius.

    Args:
        values: Outcomes of ``m`` decisions in ``n`` contexts, ``m x n``: for example a
            model's posterior mean.
        weights: Reference weights, ``n``.
        ambiguity_set: The set, on these contexts if it knows them. Its own radius is
            ignored.

    Returns:
        A function of the radius, for ``from_budget``.

    Raises:
        InputDataError: A set without a radius, or values that are not finite.
        BotorchTensorDimensionError: Shapes that do not match.
    """
    check_has_radius(ambiguity_set)
    if check_finite(values, "values").ndim != 2:
        raise BotorchTensorDimensionError(
            "`values` must be `m x n`, decisions by contexts, got shape "
            f"{tuple(values.shape)}."
        )
    expected = ambiguity_set.with_radius(0.0).value  # checks that the shapes fit
    expected(values, weights)

    def expected_value(radius: float) -> float:
        robust = ambiguity_set.with_radius(radius).value(values, weights)  # m
        chosen = values[robust.argmax()]
        return (chosen * weights.to(chosen)).sum().item()

    return expected_value


def _finite(expected_value: Callable[[float], float], radius: float) -> float:
    found = float(expected_value(radius))
    if not math.isfinite(found):
        raise InputDataError(
            f"`expected_value` must be finite, got {found} at the radius {radius}."
        )
    return found


_BISECTIONS = 40  # to 1e-12 of the largest radius
_ROUNDING = 1e-9  # of the range of the values: a smaller difference is none


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustnessProfile:
    """What a decision is still worth if the contexts shift, radius by radius."""

    # How far the distribution may shift, ``k``, ascending.
    radii: Tensor
    # The worst-case value of the decision at each, ``k``.
    values: Tensor
    # The value without a shift.
    expected_value: float
    # Those of another decision, ``k``; None if none was given.
    other_values: Tensor | None = None
    # The radius from which the other decision has the better worst case; None if it has
    # not, up to the largest radius.
    falls_behind: float | None = None
    # A value that the decision should reach, or None.
    target: float | None = None
    # The radius from which the worst case misses the target; None if it does not, up to
    # the largest radius.
    falls_below: float | None = None
    # What the model believes of the worst case at each radius, a mixture of ``k``
    # numbers, not widened; None of values without a model.
    belief: GaussianMixture | None = None
    # What a radius is measured in, in words; empty where that is not known.
    unit: str = ""


def robustness_profile(
    values: Tensor,
    weights: Tensor,
    ambiguity_set: AmbiguitySet,
    radii: Tensor,
    *,
    other_values: Tensor | None = None,
    target: float | None = None,
) -> RobustnessProfile:
    r"""The worst-case value of a decision against the radius.

    .. math:: v(r) = \min \{ q^\top f : d(p, q) \le r \}

    It is convex, starts at the expected value and never increases; higher is better.
    Two radii are found by bisection between zero and the largest radius: the one at
    which the value falls behind another decision (the first crossing between two
    neighbouring radii; two such curves may cross more than once), and the one at which
    it falls below a target.

    Args:
        values: The decision's outcome in each context, ``n``: for example a model's
            posterior mean.
        weights: Reference weights, ``n``.
        ambiguity_set: The set, on these contexts if it knows them. Its own radius is
            ignored.
        radii: Where to evaluate, ``k``, ascending.
        other_values: The outcomes of another decision, ``n``.
        target: A value that the decision should reach.

    Returns:
        The profile.

    Raises:
        InputDataError: A set without a radius, radii that do not ascend from zero or
            above, or numbers that are not finite.
        BotorchTensorDimensionError: Shapes that do not match.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.calibrate import robustness_profile
        >>> bold, safe = torch.tensor([10.0, 0.0]), torch.tensor([6.0, 3.0])
        >>> profile = robustness_profile(
        ...     bold,
        ...     torch.tensor([0.5, 0.5]),
        ...     TotalVariation(0.0),
        ...     torch.tensor([0.0, 0.5, 1.0]),
        ...     other_values=safe,
        ...     target=4.0,
        ... )
        >>> profile.values.tolist()
        [5.0, 2.5, 0.0]
        >>> round(profile.falls_below, 6), round(profile.falls_behind, 6)
        (0.2, 0.142857)
    """
    check_has_radius(ambiguity_set)
    radii = check_radii(radii)
    for name, scores in {"values": values, "other_values": other_values}.items():
        if scores is not None and check_finite(scores, name).ndim != 1:
            raise BotorchTensorDimensionError(
                f"`{name}` must have one number per context, got shape "
                f"{tuple(scores.shape)}."
            )
    own = _curve(ambiguity_set, values, weights)
    worst = own(radii)
    expected = (values.double() * weights.double()).sum().item()
    steps = torch.cat([radii.new_zeros(1), radii])  # radius zero counts too
    limit = falls_below = None
    if target is not None:
        limit = check_finite(
            torch.tensor(float(target), dtype=torch.double), "target"
        ).item()
        falls_below = _first_loss(lambda r: own(r) - target, steps, 0.0)
    other_worst = falls_behind = None
    if other_values is not None:
        other = _curve(ambiguity_set, other_values, weights)
        other_worst = other(radii)
        both = torch.cat([values, other_values]).double()
        slack = _ROUNDING * (both.max() - both.min()).item()
        falls_behind = _first_loss(lambda r: own(r) - other(r), steps, slack)
    return RobustnessProfile(
        radii=radii,
        values=worst,
        expected_value=expected,
        other_values=other_worst,
        falls_behind=falls_behind,
        target=limit,
        falls_below=falls_below,
    )


def check_radii(radii: Tensor) -> Tensor:
    """Return radii, ``k``, as float64, if they ascend from zero or above."""
    check_finite(radii, "radii")
    if radii.ndim != 1 or not len(radii):
        raise BotorchTensorDimensionError(
            f"`radii` must be a vector of radii, got shape {tuple(radii.shape)}."
        )
    if radii[0] < 0 or (radii.diff() <= 0).any():
        raise InputDataError(
            f"`radii` must ascend from zero or above, got {radii.tolist()}."
        )
    return radii.detach().double()


def _curve(
    ambiguity_set: AmbiguitySet, values: Tensor, weights: Tensor
) -> Callable[[Tensor], Tensor]:
    """Worst-case values ``k`` at radii ``k``."""
    scores, weights = values.detach().double(), weights.detach().double()

    def worst(radii: Tensor) -> Tensor:
        rows = scores.expand(len(radii), -1)
        return ambiguity_set.worst_case(rows, weights, radius=radii).value

    return worst


def _first_loss(
    gain: Callable[[Tensor], Tensor], steps: Tensor, slack: float
) -> float | None:
    """The radius at which a gain first falls below minus the slack, or None."""
    lost = (gain(steps) < -slack).nonzero()
    if not len(lost):
        return None
    first = int(lost[0])
    if first == 0:
        return 0.0
    low, high = steps[first - 1], steps[first]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (
            (low, middle)
            if gain(middle.unsqueeze(0)).item() < -slack
            else (middle, high)
        )
    return high.item()
