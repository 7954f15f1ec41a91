"""Robust satisficing: reach a target, with the smallest shortfall under a shift."""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import finite_number
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.objectives.uncertainty import Objective

_GROWTH = 8.0
_MAX_RADIUS = 1e12  # a target that is safe up to here is safe
_MAX_STEPS = 100
_TOLERANCE = 1e-10  # of the fragility, relative
_POOR = 1e-6  # a relative gap that the user hears of


class RobustSatisficing(Objective):
    r"""How slowly the expectation falls below a target as the distribution shifts.

    .. math:: k = \max \{ k \le 0 : v(\epsilon) \ge \tau + k\, \epsilon
        \text{ for all } \epsilon \ge \epsilon_0 \}

    ``-k`` is the fragility: the worst shortfall against the target ``tau`` per unit of
    shift. The target replaces the radius. Zero means that every distribution in the set
    meets the target.

    ``epsilon_0`` is the radius of the set, the smallest shift that counts. In the
    literature ``epsilon_0 = 0``, and ``k = -inf`` for a decision whose mean misses the
    target, which gives no gradient. With a small positive radius such a decision has a
    large finite fragility, and the value of a decision that meets the target does not
    change as long as its critical shift is at least that radius.

    Since ``v`` is convex, the critical shift is where its tangent passes through the
    target at zero. It is enclosed between two supporting lines, whose crossing is tried
    next, with bisections in between; the crossing also bounds ``k`` from below.

    Args:
        ambiguity_set: Measures the shift; its radius is ``epsilon_0``.
        target: ``tau``, in the units of the scores.

    Raises:
        InputDataError: A target that is not a finite number, or something that is
            no ambiguity set.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import RobustSatisficing
        >>> f, p = torch.tensor([0.0, 4.0]), torch.tensor([0.5, 0.5])
        >>> RobustSatisficing(TotalVariation(0.0), target=1.0)(f, p)
        tensor(-1.)

    The idea is that of [Long2023satisficing]_; [Saday2023robos]_ brought it to Bayesian
    optimisation.
    """

    def __init__(self, ambiguity_set: AmbiguitySet, target: float) -> None:
        super().__init__(ambiguity_set)
        self.target = finite_number(target, "target")

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The slope ``k`` of each row of scores.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            ``k``, ``...``, zero or negative; differentiable once in ``values``.
        """
        with torch.no_grad():
            shift = self._critical_shift(values, weights)
        finite = (shift > 0) & (shift < torch.inf)
        safe = torch.where(finite, shift, 1.0)
        value = self.ambiguity_set.worst_case(values, weights, radius=safe).value
        slope = (value - self.target) / safe.to(value)
        # The target is never missed, unless a score is NaN.
        slope = torch.where((shift == torch.inf) & ~value.isnan(), 0.0, slope)
        if (shift <= 0).any():  # it is missed without any shift, or just met
            with torch.no_grad():
                here = self.ambiguity_set.worst_case(values, weights).value
                at_once = self.ambiguity_set.sensitivity(values, weights)
                at_once = torch.where(here < self.target, -torch.inf, at_once)
            slope = torch.where(shift <= 0, at_once, slope)
            met = (shift <= 0) & at_once.isfinite()
            # The other rows must not see these gradients: 0 times infinite ones is NaN.
            seen = torch.where(met.unsqueeze(-1), values, values.detach())
            slope = torch.where(
                met, self.ambiguity_set.sensitivity(seen, weights), slope
            )
        return slope

    def _critical_shift(self, values: Tensor, weights: Tensor) -> Tensor:
        """The shift at which the shortfall per unit is largest; inf if there is none.

        All in float64, like the solvers: the answer is a radius.
        """
        values, weights = values.detach().double(), weights.detach().double()
        weights = weights / weights.sum(-1, keepdim=True)  # up to float32's rounding

        def line(radius: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """The value at a radius, and intercept and slope of its supporting line."""
            robust = self.ambiguity_set.worst_case(values, weights, radius=radius)
            rise = torch.where(radius > 0, robust.multiplier * radius, 0.0)
            return robust.value, robust.value + rise, -robust.multiplier

        batch = torch.broadcast_shapes(values.shape[:-1], weights.shape[:-1])
        low = self.ambiguity_set.radius.to(values).expand(batch)
        value, low_start, low_slope = line(low)
        early = low_start <= self.target  # the ratio rises from here on
        best = torch.where(low > 0, (value - self.target) / low, -torch.inf)
        shift = low
        # A radius beyond the critical one.
        high = torch.maximum(_GROWTH * low, torch.ones_like(low))
        while True:
            high_value, high_start, high_slope = line(high)
            beyond = (high_start <= self.target) | early
            idle = (high_slope == 0) | (high >= _MAX_RADIUS)
            if bool((beyond | idle).all()):
                break
            high = torch.where(beyond | idle, high, _GROWTH * high)
        shift = torch.where(early, low, torch.where(beyond, high, torch.inf))
        best = torch.where(early, best, (high_value - self.target) / high)
        gap = torch.zeros_like(low)
        for step in range(_MAX_STEPS):
            crossing = (low_start - high_start) / (high_slope - low_slope)
            inside = (crossing > low) & (crossing < high)
            height = low_start + low_slope * crossing
            bound = (height - self.target) / crossing
            gap = torch.where(inside, (best - bound).clamp_min(0.0), torch.inf)
            narrow = high - low <= 4 * torch.finfo(low.dtype).eps * high
            done = early | ~beyond | narrow | (gap <= _TOLERANCE * best.abs())
            if bool(done.all()):
                break
            middle = torch.where(low > 0, (low * high).sqrt(), high / _GROWTH**2)
            tried = torch.where(inside & (step % 3 < 2), crossing, middle)
            tried = torch.where(done, shift.clamp_max(_MAX_RADIUS), tried)
            value, start, slope = line(tried)
            ratio = (value - self.target) / tried
            better = ~done & (ratio < best)
            best, shift = (
                torch.where(better, ratio, best),
                torch.where(better, tried, shift),
            )
            up = ~done & (start > self.target)
            down = ~done & ~up
            low, low_start, low_slope = (
                torch.where(up, a, b)
                for a, b in ((tried, low), (start, low_start), (slope, low_slope))
            )
            high, high_start, high_slope = (
                torch.where(down, a, b)
                for a, b in ((tried, high), (start, high_start), (slope, high_slope))
            )
        poor = beyond & ~early & (gap > _POOR * best.abs()) & (gap < torch.inf)
        if bool(poor.any()):
            warnings.warn(
                f"RobustSatisficing over {type(self.ambiguity_set).__name__}: the "
                f"fragility of {int(poor.sum())} rows is {gap[poor].max().item():.3g} "
                "above its lower bound.",
                BotorchWarning,
                stacklevel=3,
            )
        return shift
