"""Balls of divergences: Kullback-Leibler, and the two chi-squared ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.numerics import (
    check_distributions,
    increasing_root,
    lowest_supported,
    may_hold,
    ranked,
    scaled_scores,
)
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp


_TOLERANCE = 1e-13  # relative: a radius this near to saturation is there
_TINY = 1e-60  # radii below it are solved as if they were it: v differs by 1e-30
_STEEP = 1e300  # as good as infinite, and zero times it is zero


class ModifiedChiSquared(AmbiguitySet):
    r"""All distributions near the reference in Pearson's chi-squared divergence.

    .. math:: \chi^2(q, p) = \sum_i \frac{(q_i - p_i)^2}{p_i} \le \epsilon

    There is no factor 1/2; the radius bounds the variance of ``q / p`` under ``p``.
    Atoms of reference weight zero get no mass. The adversary's weights fall linearly
    with the score until they are zero. With ``P``, ``m`` and ``V`` the mass, mean and
    variance of the scores that still have mass,

    .. math::
        v = m - \sqrt{V ((1 + \epsilon) P - 1)}, \qquad
        q_i = \frac{p_i}{P} \Big(1 + \frac{m - f_i}{d}\Big)_+, \qquad
        \delta = -\frac{P d}{2}, \qquad
        d = \sqrt{\frac{V}{(1 + \epsilon) P - 1}}.

    One sort determines these scores. While all have mass, ``v = mean - sqrt(radius *
    variance)``. At the radius zero the sensitivity is therefore ``-inf``, and the
    multiplier ``inf``, unless all scores with weight are equal; in the square root of
    the radius it would be minus the standard deviation.

    Args:
        radius: The largest chi-squared divergence.

    Raises:
        InputDataError: The radius is negative, NaN or infinite.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import ModifiedChiSquared
        >>> f, p = torch.tensor([0.0, 2.0]), torch.tensor([0.5, 0.5])
        >>> robust = ModifiedChiSquared(radius=0.25).worst_case(f, p)
        >>> robust.value, robust.weights  # mean 1, standard deviation 1
        (tensor(0.5000), tensor([0.7500, 0.2500]))

    Called modified chi-squared in [Tay2022minimax]_, with half of our radius.
    """

    knows_positions: ClassVar[bool] = False
    holds_reference = True
    finite_at_zero: ClassVar[bool] = False
    keeps_support: ClassVar[bool] = True

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""From one sort."""
        # By duality q = p (1 - y / d)_+ with y the deviation from a mean: a cut at some
        # score above which there is no mass, whose place the moments below the cut
        # tell.
        low = lowest_supported(values, weights)
        f, span = scaled_scores(values, low)
        p = weights / weights.sum(-1, keepdim=True)
        # Prefix sums over sorted scores have the moments of every possible cut at once.
        ordered, order = ranked(f)
        sorted_p = p.gather(-1, order)
        mass = sorted_p.cumsum(-1)
        rest = pad(sorted_p.flip(-1).cumsum(-1).flip(-1)[..., 1:], (0, 1))  # 1 - mass

        # A score t has mass if and only if Var u > radius (E u)^2, u = (t - f)_+. Both
        # moments are cumulative sums of positive increments: nothing cancels.
        gap = ordered[..., 1:] - ordered[..., :-1]
        increment = gap * mass[..., :-1]
        mean_u = pad(increment, (1, 0)).cumsum(-1)  # E u
        increment = gap * rest[..., :-1] * (mean_u[..., 1:] + mean_u[..., :-1])
        var_u = pad(increment, (1, 0)).cumsum(-1)  # Var u
        # Just saturated counts as saturated: the right derivative is zero there.
        has_mass = var_u >= (radius * (1.0 + _TOLERANCE)) * mean_u.square()
        last = has_mass.sum(-1, keepdim=True) - 1  # scores at the minimum always join

        next_gap = pad(gap, (0, 1), value=torch.inf)
        top, next_gap, mass, rest, mean_u, var_u = (
            a.gather(-1, last) for a in (ordered, next_gap, mass, rest, mean_u, var_u)
        )
        # The last score with mass is known: 1 / d follows from moments about it.
        excess = (radius * mass - rest).clamp_min(0.0)
        mean_gap = mean_u / mass  # from the mean to the last score with mass
        square = mean_u.square()
        variance = (var_u - radius * square).clamp_min(0.0) / mass
        variance = variance + square * excess / mass.square()
        # 1 / d; zero at radius zero, and finite for the smallest of weights
        inverse_d = (excess / variance).clamp_max(_STEEP).sqrt()
        # Whatever the rounding of the excess: the next score has no mass.
        inverse_d = torch.maximum(inverse_d, (next_gap + mean_gap).reciprocal())
        multiplier = 0.5 * span * mass / inverse_d
        flat = variance <= 0.0  # all mass is at the minimum, or nowhere else to go
        any_flat = may_hold(flat)
        if any_flat:
            inverse_d = torch.where(flat, _STEEP * (radius > 0.0).to(f), inverse_d)
            multiplier = torch.where(flat, 0.0, multiplier)
        # f - mean, without cancellation where most of p is at `top`.
        deviation = (f - top).add_(mean_gap)
        # In place: temporaries of this size are most of the time.
        ratio = (deviation * -inverse_d).add_(1.0).clamp_min_(0.0)
        q = p * ratio / mass
        # dv/dp: y - y^2 / (2 d) below the cut and d / 2 above, with y the deviation.
        gradient = torch.minimum(deviation, inverse_d.reciprocal()) * (1.0 + ratio)
        gradient = gradient * (0.5 * span / mass)
        if any_flat:
            # Saturated, a first bit of weight below the minimum counts without bound.
            jump = flat & (f < 0.0) & (radius > 0.0)
            gradient = torch.where(jump, -torch.inf, gradient)
        return Solution(q, multiplier.squeeze(-1), lambda: gradient)

    def solve_with_direction(
        self, values: Tensor, weights: Tensor, radius: Tensor
    ) -> Solution:
        r"""Like ``solve``; the direction follows from the multiplier."""
        found = self.solve(values, weights, radius)
        f, span = scaled_scores(values, lowest_supported(values, weights))
        p = torch.where(found.weights > 0.0, weights, 0.0)
        f = f - torch.where(p > 0.0, f, -torch.inf).amax(-1, keepdim=True)
        deviation = f - (p * f).sum(-1, keepdim=True) / p.sum(-1, keepdim=True)
        # dq / d radius is proportional to p (mean - f); the multiplier says how large.
        tilt = p * deviation
        size = span * (tilt * deviation).sum(-1, keepdim=True)
        multiplier = found.multiplier.unsqueeze(-1)
        unchanged = (tilt == 0.0) | (multiplier <= 0.0)
        direction = torch.where(unchanged, 0.0, -tilt * (multiplier / size))
        return replace(found, direction=direction)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        ratio = cp.Variable(q.size)  # at least q^2 / p: sums to 1 + radius
        return [
            cp.SOC(ratio + p, cp.vstack([2 * q, ratio - p])),
            cp.sum(ratio) <= 1 + radius,
        ]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The chi-squared divergence, with the reference in the denominator.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``; infinite where ``q`` has mass and ``p`` has none.
        """
        p, q = check_distributions(p, q)
        parts = torch.where(p == q, 0.0, (q - p) / p * (q - p))
        return parts.sum(-1)


class ChiSquared(AmbiguitySet):
    r"""All distributions near the reference in Neyman's chi-squared divergence.

    .. math:: \sum_i \frac{(q_i - p_i)^2}{q_i} = \sum_i \frac{p_i^2}{q_i} - 1
        \le \epsilon

    There is no factor 1/2. Atoms with positive weight keep some mass at every radius,
    so the value approaches the minimum score but never reaches it. Of the atoms with
    reference weight zero, only those with the lowest score can receive mass. With ``w >
    0`` below the minimum,

    .. math::
        q_i = \frac{p_i}{A \sqrt{y_i}}, \qquad y_i = f_i - \min_j f_j + w, \qquad
        A = \sum_i \frac{p_i}{\sqrt{y_i}}, \quad B = \sum_i p_i \sqrt{y_i}, \qquad
        A B = 1 + \epsilon, \qquad \delta = -\frac{1}{A^2}.

    ``w`` is found by a safeguarded Newton method. If ``A B`` is at most ``1 + radius``
    at ``w = 0`` (only possible if the lowest score has weight zero), the rest of the
    mass moves there, and ``v = min f + B^2 / (1 + radius)``.

    For small radii ``v = mean - sqrt(radius variance)``. At the radius zero the
    sensitivity is therefore ``-inf``, and the multiplier ``inf``, unless all scores
    with weight are equal.

    Args:
        radius: The largest divergence.

    Raises:
        InputDataError: The radius is negative, NaN or infinite.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import ChiSquared
        >>> f, p = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])
        >>> radius = ChiSquared(0.0).distance(p, torch.tensor([0.75, 0.25]))
        >>> ChiSquared(radius).worst_case(f, p).weights
        tensor([0.7500, 0.2500])

    The dual is that of a phi-divergence [BenTal2013]_.
    """

    knows_positions: ClassVar[bool] = False
    holds_reference = True
    finite_at_zero: ClassVar[bool] = False
    reaches_unseen: ClassVar[bool] = True

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By one root."""
        p = weights / weights.sum(-1, keepdim=True)
        f, span = scaled_scores(values, values.amin(-1, keepdim=True))  # in [0, 1]
        mean = (p * f).sum(-1, keepdim=True)
        base = (p * (f <= 0.0)).sum(-1, keepdim=True)
        # Can some mass go to a lowest score of weight zero?
        is_outside = base < 0  # nowhere, usually
        if may_hold(base <= 0):
            is_outside = self._takes_outside(f, p, radius) & (base <= 0)

        # Stationarity of the dual: q_i is proportional to p_i / sqrt(f_i + w), where
        # the offset w >= 0 is the only unknown.
        w = self._offset(f, p, mean, base, radius.clamp_min(_TINY), is_outside)
        y = f + w
        r = y.rsqrt()
        q = p * r
        root = q.sum(-1, keepdim=True).reciprocal()  # 1 / A, the square root of lambda
        q = q * root
        # 2 sqrt(lambda y) up to a constant
        gradient = f / (y * r + w.sqrt()) * (2.0 * span * root)
        multiplier = root.square()
        # dq / d radius is proportional to dq/dw, and that to q (x - E x); its size
        # follows from f.dq / d radius = -multiplier.
        x = f / y
        tilt = q * (x - (q * x).sum(-1, keepdim=True))
        size = (tilt * (f - (q * f).sum(-1, keepdim=True))).sum(-1, keepdim=True)
        direction = tilt * (-multiplier / torch.where(size > 0, size, 1.0))

        is_constant = (mean <= 0) & ~is_outside  # no score with weight is higher
        at_zero = (radius <= 0) & ~is_outside
        if may_hold(is_constant | at_zero):
            q = torch.where(is_constant | at_zero, p, q)
            multiplier = torch.where(at_zero, torch.inf, multiplier)
            multiplier = torch.where(is_constant, 0.0, multiplier)
            direction = torch.where(
                at_zero, torch.sign(mean - f) * torch.inf, direction
            )
            zero_direction = is_constant | (at_zero & ((p <= 0) | (f == mean)))
            direction = torch.where(zero_direction, 0.0, direction)
            gradient = torch.where(radius <= 0, span * f, gradient)
        if may_hold(is_outside):
            # q = p B / ((1 + radius) sqrt(f)), and the rest at a lowest score
            roots = f.sqrt()
            scale = (p * roots).sum(-1, keepdim=True) / (1 + radius)
            inside_weights = torch.where(p > 0, p * scale / roots, 0.0)
            outside_weight = 1 - inside_weights.sum(-1, keepdim=True)
            lowest = f.argmin(-1, keepdim=True)
            q = torch.where(
                is_outside, inside_weights.scatter_add(-1, lowest, outside_weight), q
            )
            multiplier = torch.where(is_outside, scale.square(), multiplier)
            outside_direction = -inside_weights / (1 + radius)
            outside_direction = outside_direction.scatter_add(
                -1, lowest, -outside_direction.sum(-1, keepdim=True)
            )
            direction = torch.where(is_outside, outside_direction, direction)
            slope = torch.where(radius <= 0, f, 2 * scale * roots)
            gradient = torch.where(is_outside, span * slope, gradient)
        return Solution(q, (span * multiplier).squeeze(-1), lambda: gradient, direction)

    @staticmethod
    def _takes_outside(f: Tensor, p: Tensor, radius: Tensor) -> Tensor:
        """Where ``A B <= 1 + radius`` at ``w = 0``, if no lowest score has weight."""
        has_weight = p > 0
        roots = f.sqrt()
        inverse = torch.where(has_weight, p / roots, 0.0).sum(-1, keepdim=True)
        scale = (p * roots).sum(-1, keepdim=True)
        lowest = torch.where(has_weight, f, torch.inf).amin(-1, keepdim=True)
        highest = torch.where(has_weight, f, -torch.inf).amax(-1, keepdim=True)
        return (inverse * scale <= 1 + radius) | (highest <= lowest)  # equal: A B = 1

    @staticmethod
    def _offset(
        f: Tensor, p: Tensor, mean: Tensor, base: Tensor, target: Tensor, skip: Tensor
    ) -> Tensor:
        """Solve ``A B = 1 + target`` for ``w``; any number where skipped.

        All of it is written in ``sqrt(y) - sqrt(E y)``, which does not cancel where
        ``w`` is large: with ``t`` that difference,
        ``A B - 1 = E[(t - E t)^2 / sqrt(y)] / B``.
        """
        # With A = E (f + w)^-1/2 and B = E (f + w)^1/2 the divergence is A B - 1. All
        # sums are of deviations about (mean + w)^1/2: for small radii A B is one but
        # for rounding.
        deviation = f - mean
        variance = (p * deviation.square()).sum(-1, keepdim=True)

        def function(x: Tensor) -> tuple[Tensor, Tensor]:
            w = x.exp()
            y = f + w
            r = y.rsqrt()
            p_r = p * r
            middle = (mean + w).sqrt()
            t = deviation / (y * r + middle)
            shift = (p * t).sum(-1, keepdim=True)
            scale = middle + shift  # B
            excess = (p_r * (t - shift).square()).sum(-1, keepdim=True) / scale
            # E y under q is B / A; less w, without cancellation:
            center = (mean + shift * (middle + scale) - w * excess) / (1.0 + excess)
            curvature = (p_r * ((f - center) * r).square()).sum(-1, keepdim=True)
            error = (target / excess).log()  # increasing in x
            slope = -0.5 * w * curvature * ((1.0 + excess) / scale).square() / scale
            return error, error * excess / slope

        # Kantorovich: A B - 1 <= 1 / (16 w^2) for scores in [0, 1].
        upper = -0.5 * (16 * target).log()
        # A >= base / sqrt(w) and B >= mean
        lower = 2 * (base * mean / (1 + target)).clamp_min(1e-150).log()
        if may_hold(base <= 0):
            first = torch.where(p > 0, f, 1.0).amin(-1, keepdim=True)
            lowest = (1e-20 * first).clamp_min(1e-300).log()
            lower = torch.where(base > 0, lower, lowest)
        lower = torch.minimum(lower, upper)
        # A B - 1 is about variance / (4 (mean + w)^2) for small radii.
        guess = ((variance / (4 * target)).sqrt() - mean).clamp_min(1e-300).log()
        guess = torch.maximum(guess, lower + 2)
        upper = torch.where(skip | (mean <= 0), lower, upper)
        return increasing_root(function, lower, upper, guess).exp()

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        ratio = cp.Variable(q.size)  # at least p^2 / q: sums to 1 + radius
        return [
            cp.SOC(ratio + q, cp.vstack([2 * p, ratio - q])),
            cp.sum(ratio) <= 1 + radius,
        ]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Neyman's chi-squared divergence, with ``q`` in the denominator.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``; infinite where ``p`` has mass and ``q`` has none.
        """
        p, q = check_distributions(p, q)
        parts = torch.where(p == q, 0.0, (q - p) / q * (q - p))
        return parts.sum(-1)


_KL_TINY = 1e-60  # radii below it are solved as if they were it: v differs by 1e-30
_KL_TOLERANCE = 1e-14  # relative: a radius this near to saturation is there


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
        saturated = (radius >= max_divergence * (1 - _KL_TOLERANCE)) | (rest_mass <= 0)

        target = torch.where(saturated, max_divergence / 2, radius.clamp_min(_KL_TINY))
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
        # Of the roots, whose ratio does not overflow.
        parts = torch.where(q > 0, 2.0 * q * (q.sqrt() / p.sqrt()).log(), 0.0)
        return parts.sum(-1).clamp_min(0.0)


def _expm2(x: Tensor, expm1: Tensor) -> Tensor:
    """``exp(x) - 1 - x`` for ``x <= 1``, also where it is tiny, from ``exp(x) - 1``."""
    series = x.square() * (0.5 + x * (1 / 6 + x * (1 / 24 + x / 120)))
    return torch.where(x.abs() < 1e-3, series, expm1 - x)
