"""The worst-case value of one decision, radius by radius."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.sizing import check_has_radius
from botorch_drbo.posterior.mixture import GaussianMixture

_BISECTIONS = 40  # to 1e-12 of the largest radius
_ROUNDING = 1e-9  # of the range of the values: a smaller difference is none


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustnessProfile:
    r"""What a decision is still worth if the contexts shift, radius by radius.

    Attributes:
        radii: How far the distribution may shift, ``k``, ascending.
        values: The worst-case value of the decision at each, ``k``.
        expected_value: The value without a shift.
        other_values: Those of another decision, ``k``; None if none was given.
        falls_behind: The radius from which the other decision has the better worst
            case; None if it has not, up to the largest radius.
        target: A value that the decision should reach, or None.
        falls_below: The radius from which the worst case misses the target; None if it
            does not, up to the largest radius.
        belief: What the model believes of the worst case at each radius, a mixture of
            ``k`` numbers, not widened; None of values without a model.
    """

    radii: Tensor
    values: Tensor
    expected_value: float
    other_values: Tensor | None = None
    falls_behind: float | None = None
    target: float | None = None
    falls_below: float | None = None
    belief: GaussianMixture | None = None


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
        limit = check_finite(torch.tensor(float(target)).double(), "target").item()
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
    """Return radii, ``k``, as float64, if they ascend from zero or above.

    Raises:
        BotorchTensorDimensionError: Not a vector, or empty.
        InputDataError: Not finite, negative, or not ascending.
    """
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
