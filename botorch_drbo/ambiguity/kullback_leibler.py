"""The Kullback-Leibler ball: exponential weights at the right temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from botorch_drbo.ambiguity._scores import scaled_scores
from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.roots import increasing_root
from botorch_drbo.ambiguity.simplex import check_distributions
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp

_TINY = 1e-60  # radii below it are solved as if they were it: v differs by 1e-30
_TOLERANCE = 1e-14  # relative: a radius this near to saturation is there


class KullbackLeibler(AmbiguitySet):
    r"""All distributions of small relative entropy to the reference.

    .. math:: KL(q \,\|\, p) = \sum_i q_i \log \frac{q_i}{p_i} \le \epsilon

    The radius is in nats; the worst case is the first argument and the reference the
    second. Atoms of reference weight zero receive no mass. The adversary tilts the
    reference:

    .. math::
        q_i \propto p_i e^{-\theta f_i}, \qquad
        v = \max_{\lambda > 0} -\lambda \log \sum_i p_i e^{-f_i / \lambda}
            - \lambda \epsilon, \qquad
        \delta = -\lambda = -1 / \theta.

    The inverse temperature ``theta`` is the root of ``KL = radius``, found by a
    safeguarded Newton method. From the radius ``-log(mass at the minimum)`` on, all
    mass is at the minimum over the atoms with weight.

    For small radii ``v = mean - sqrt(2 radius variance)``. At the radius zero the
    sensitivity is therefore ``-inf``, and the multiplier ``inf``, unless all scores
    with weight are equal; in the square root of the radius it would be minus
    ``sqrt(2)`` standard deviations.

    By Pinsker's inequality the ball lies in the ``TotalVariation`` ball of radius
    ``sqrt(2 radius)``.

    Args:
        radius: The largest divergence, in nats.

    Raises:
        InputDataError: The radius is negative, NaN or infinite.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> f, p = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])
        >>> q = torch.tensor([0.75, 0.25])
        >>> radius = KullbackLeibler(0.0).distance(p, q)
        >>> KullbackLeibler(radius).worst_case(f, p).weights
        tensor([0.7500, 0.2500])

    [HuHong2013]_ for the dual.
    """

    knows_positions: ClassVar[bool] = False
    holds_reference = True
    finite_at_zero: ClassVar[bool] = False
    keeps_support: ClassVar[bool] = True

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By one root."""
        p = weights / weights.sum(-1, keepdim=True)
        low = torch.where(p > 0, values, torch.inf).amin(-1, keepdim=True)
        f, span = scaled_scores(values, low)  # of the atoms with weight, in [0, 1]
        # Mass at the minimum never leaves it: it is what theta to infinity leaves over.
        rest = torch.where(f > 0, p, 0.0)
        at_minimum = torch.where(f <= 0, p, 0.0)
        # The largest divergence, -log(mass at the minimum), precise near zero.
        minimum_mass = at_minimum.sum(-1, keepdim=True)
        rest_mass = rest.sum(-1, keepdim=True)
        max_divergence = torch.where(
            rest_mass < 0.5, -torch.log1p(-rest_mass), -minimum_mass.log()
        )
        # From there on the worst case is all mass at the minimum. Skipped rows get an
        # easy target, so that they do not hold up the others.
        saturated = (radius >= max_divergence * (1 - _TOLERANCE)) | (rest_mass <= 0)

        target = torch.where(saturated, max_divergence / 2, radius.clamp_min(_TINY))
        target = torch.where(rest_mass > 0, target, 1.0)
        theta = self._inverse_temperature(
            f, p, rest, minimum_mass, max_divergence, target, saturated
        )

        # Exponential tilting: q_i = p_i exp(-theta f_i) / Z.
        # For small theta the mean is taken off, for large theta the minimum, which is
        # zero: either way the exponent neither overflows nor cancels.
        mean = (p * f).sum(-1, keepdim=True)
        center = torch.where(theta <= 1, mean, 0.0)
        tilt = (-theta * (f - center)).clamp_max(700.0)
        tilted = torch.where(p > 0, p * tilt.exp(), 0.0)
        total = tilted.sum(-1, keepdim=True)
        at_zero = radius <= 0
        q = tilted / total
        q = torch.where(at_zero, p, q)
        q = torch.where(saturated, at_minimum / minimum_mass, q)
        # dq_i / d radius = -q_i (f_i - E_q f) / (theta Var_q f)
        deviation = f - (q * f).sum(-1, keepdim=True)
        variance = (q * deviation.square()).sum(-1, keepdim=True)
        direction = -q * deviation / torch.where(at_zero, 0.0, theta * variance)
        direction = torch.where(saturated | (q * deviation == 0), 0.0, direction)
        multiplier = torch.where(at_zero, torch.inf, span / theta)
        multiplier = torch.where(saturated, 0.0, multiplier)

        # -lambda exp(-f / lambda) / Z up to a constant; f itself at radius zero.
        gradient = -torch.expm1(tilt - total.log()) / theta
        # Saturated, a first bit of weight below the minimum counts without bound.
        jump = torch.where(f < 0, -torch.inf, 0.0)
        gradient = torch.where(saturated, jump, gradient)
        gradient = torch.where(at_zero, f, gradient)
        return Solution(q, multiplier.squeeze(-1), lambda: span * gradient, direction)

    @staticmethod
    def _inverse_temperature(
        f: Tensor,
        p: Tensor,
        rest: Tensor,
        minimum_mass: Tensor,
        max_divergence: Tensor,
        target: Tensor,
        skip: Tensor,
    ) -> Tensor:
        """Solve ``KL(theta) = target`` for scores in [0, 1]; any number where skipped.

        Two forms of the divergence: around the mean for ``theta <= 1``, where the one
        around the minimum cancels; and the latter elsewhere, where the first overflows.
        And two of Newton's steps: in ``log KL``, nearly linear in ``log theta``, in the
        lower half of its range; in ``log(max_divergence - KL)``, nearly linear in
        ``theta``, in the upper half.
        """
        mean = (p * f).sum(-1, keepdim=True)
        # KL(theta) is theta^2 Var / 2 near zero and max_divergence less an exponential
        # far out: Newton's method on the logarithm of the nearer of the two is nearly
        # linear.
        variance = (p * (f - mean).square()).sum(-1, keepdim=True)
        f = torch.where(p > 0, f, 0.0)
        gap = torch.where(rest > 0, f, torch.inf).amin(-1, keepdim=True)
        gap = gap.clamp(1e-290, 1.0)
        is_lower_half = target <= max_divergence / 2

        def function(x: Tensor) -> tuple[Tensor, Tensor]:
            theta = x.exp()
            small = theta <= 1
            center = torch.where(small, mean, 0.0)
            deviation = f - center
            # Below theta = 1 sums of exp(t) - 1 and exp(t) - 1 - t: the leading terms,
            # which cancel in KL, are left out of them.
            tilt = -theta * deviation
            tilted = torch.where(small, torch.expm1(tilt), tilt.exp())
            mass = torch.where(small, p, rest) * tilted
            first = (mass * deviation).sum(-1, keepdim=True)
            second = (mass * deviation.square()).sum(-1, keepdim=True)
            zeroth = torch.where(
                small,
                (p * _expm2(tilt, tilted)).sum(-1, keepdim=True),
                mass.sum(-1, keepdim=True),
            )
            # Z relative to the center, then mean and variance under q:
            # KL = -theta E_q f - log Z, d KL / d log theta = theta^2 Var_q f.
            total = torch.where(small, 1.0 + zeroth, minimum_mass + zeroth)
            tilted_mean = first / total
            tilted_variance = (second + torch.where(small, variance, 0.0)) / total
            tilted_variance = tilted_variance - tilted_mean.square()
            log_total = torch.where(small, torch.log1p(zeroth), total.log())
            divergence = -theta * tilted_mean - log_total
            slope = theta.square() * tilted_variance
            shortfall = torch.where(
                small,
                max_divergence - divergence,
                torch.log1p(zeroth / minimum_mass) + theta * tilted_mean,
            )
            error = torch.where(
                is_lower_half,
                (divergence / target).log(),
                ((max_divergence - target) / shortfall).log(),
            )
            step = torch.where(
                is_lower_half,
                -error * divergence / slope,
                torch.log1p(-error * shortfall / slope),
            )
            return error, step

        # KL = theta^2 Var / 2, to second order.
        guess = 0.5 * (2 * target / variance).log()
        # Hoeffding: KL <= theta^2 / 8; and exp(-200) of the minimum's mass is nothing.
        lower, upper = 0.5 * (8 * target).log(), ((200 + max_divergence) / gap).log()
        upper = torch.where(skip, lower, upper)
        return increasing_root(function, lower, upper, guess).exp()

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        return [cp.sum(cp.rel_entr(q, p)) <= radius]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The relative entropy ``KL(q || p)``, in nats.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``; infinite where ``q`` has mass and ``p`` has none.
        """
        p, q = check_distributions(p, q)
        parts = torch.where(q > 0, q * (q / p).log(), 0.0)
        return parts.sum(-1).clamp_min(0.0)


def _expm2(x: Tensor, expm1: Tensor) -> Tensor:
    """``exp(x) - 1 - x`` for ``x <= 1``, also where it is tiny, from ``exp(x) - 1``."""
    series = x.square() * (0.5 + x * (1 / 6 + x * (1 / 24 + x / 120)))
    return torch.where(x.abs() < 1e-3, series, expm1 - x)
