"""A radius from a budget: the largest whose cost in expectation is acceptable."""

from __future__ import annotations

import math
from collections.abc import Callable

from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_count, check_finite
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.sizing import check_has_radius


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
        if not (math.isfinite(number) and number > 0):
            raise InputDataError(f"`{name}` must be positive, got {number}.")
    name, number = ("share", share) if budget is None else ("budget", budget)
    if not (math.isfinite(number) and number >= 0):
        raise InputDataError(f"`{name}` must be finite and not negative, got {number}.")
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
