"""The two chi-squared balls: Pearson's in closed form, Neyman's by one root."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity._ranking import ranked
from botorch_drbo.ambiguity._roots import increasing_root
from botorch_drbo.ambiguity._scores import scaled_scores
from botorch_drbo.ambiguity.base import AmbiguitySet, Solution, check_distributions

if TYPE_CHECKING:
    import cvxpy as cp

_TOLERANCE = 1e-13  # relative: a radius this near to saturation is there
_TINY = 1e-60  # radii below it are solved as if they were it: v differs by 1e-30


class ModifiedChiSquared(AmbiguitySet):
    r"""All distributions whose density ratio to the reference varies little.

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

    Which scores these are comes from one sort. While all have mass,
    ``v = mean - sqrt(radius * variance)``. At the radius zero the sensitivity is
    therefore ``-inf``, and the multiplier ``inf``, unless all scores with weight are
    equal; in the square root of the radius it would be minus the standard deviation.

    Args:
        radius: The largest chi-squared divergence.

    Example:
        >>> f, p = torch.tensor([0.0, 2.0]), torch.tensor([0.5, 0.5])
        >>> robust = ModifiedChiSquared(radius=0.25).worst_case(f, p)
        >>> robust.value, robust.weights  # mean 1, standard deviation 1
        (tensor(0.5000), tensor([0.7500, 0.2500]))

    Called modified chi-squared in [Tay2022minimax]_, with half of our radius.
    """

    _keeps_support: ClassVar[bool] = True

    def __init__(self, radius: float | Tensor) -> None:
        r"""Set the radius.

        Args:
            radius: The largest chi-squared divergence, a scalar ``>= 0``.

        Raises:
            InputDataError: The radius is negative, NaN or infinite.
        """
        super().__init__(radius)

    def _solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        supported = weights > 0
        low = torch.where(supported, values, torch.inf).amin(-1, keepdim=True)
        f, span = scaled_scores(values, low)
        ordered, order = ranked(torch.where(supported, f, torch.inf))
        has_mass = ordered < torch.inf
        ordered = torch.where(has_mass, ordered, 0.0)
        p = weights.gather(-1, order)
        p = p / p.sum(-1, keepdim=True)

        # Mass, mean and spread of every prefix. Each spread is a sum of what the next
        # score adds to it (Welford): no difference of large numbers.
        mass = p.cumsum(-1)
        rest = pad(p.flip(-1).cumsum(-1).flip(-1)[..., 1:], (0, 1))  # 1 - mass
        mean = (p * ordered).cumsum(-1) / mass
        step = pad(ordered[..., 1:] - mean[..., :-1], (1, 0))  # to the prefix before
        share = pad(mass[..., :-1], (1, 0)) / mass
        variance = (p * share * step.square()).cumsum(-1) / mass
        # (1 + radius) mass - 1: negative where the prefix alone would be too far off
        spare = radius * mass - rest
        gap = step[..., 1:]
        joins = variance[..., :-1] > spare.clamp_min(0.0)[..., :-1] * gap.square()
        # Just saturated counts as saturated: the right derivative is zero there.
        joins = joins | (spare < -_TOLERANCE * rest)[..., :-1] | (gap <= 0)
        joins = joins & has_mass[..., 1:]
        active = joins.long().cumprod(-1).sum(-1, keepdim=True)

        mass, mean, variance, spare = (
            a.gather(-1, active) for a in (mass, mean, variance, spare)
        )
        spare = spare.clamp_min(0.0)
        spread = (variance / spare).sqrt()  # d; infinite at radius zero
        flat = variance <= 0  # the minimum, or scores that are all equal
        spread = torch.where(flat, 0.0, spread)
        away = torch.minimum(f - mean, spread)
        bends = away.square() / (2 * spread)  # 0 where the spread is infinite
        bends = torch.where(away == 0, 0.0, bends)

        ratio = 1.0 - away / torch.where(flat, 1.0, spread)
        ratio = torch.where(flat, (f <= 0).to(f), ratio)
        p = torch.where(supported, weights, 0.0)
        p = p / p.sum(-1, keepdim=True)
        q = p * ratio / mass
        # The spread may be so small that rounding errors of the mean count against it.
        q = q / q.sum(-1, keepdim=True)
        # With a zero in the denominator: -inf, 0 or inf, as the score is.
        slope = torch.where((f - mean) < spread, p * (mean - f), 0.0)
        direction = slope / (2 * (spare * variance).sqrt())
        direction = torch.where((slope == 0) | flat, 0.0, direction)
        gradient = torch.where(radius <= 0, f, (away - bends) / mass)
        multiplier = (mass * spread * span / 2).squeeze(-1)
        return Solution(q, multiplier, span * gradient, direction)

    def _constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
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
        parts = torch.where(p == q, 0.0, (q - p).square() / p)
        return parts.sum(-1)


class ChiSquared(AmbiguitySet):
    r"""All distributions near the reference in Neyman's chi-squared divergence.

    .. math:: \sum_i \frac{(q_i - p_i)^2}{q_i} = \sum_i \frac{p_i^2}{q_i} - 1
        \le \epsilon

    There is no factor 1/2. Atoms with weight keep some mass at every radius, so that
    the minimum is approached and never reached. Atoms of reference weight zero may get
    mass, but only those at the lowest score do. With ``w > 0`` below the minimum,

    .. math::
        q_i = \frac{p_i}{A \sqrt{y_i}}, \qquad y_i = f_i - \min_j f_j + w, \qquad
        A = \sum_i \frac{p_i}{\sqrt{y_i}}, \quad B = \sum_i p_i \sqrt{y_i}, \qquad
        A B = 1 + \epsilon, \qquad \delta = -\frac{1}{A^2}.

    ``w`` is found by a safeguarded Newton method. Should ``A B`` be at most
    ``1 + radius`` at ``w = 0``, which takes a lowest score of weight zero, the rest of
    the mass goes there, and ``v = min f + B^2 / (1 + radius)``.

    For small radii ``v = mean - sqrt(radius variance)``. At the radius zero the
    sensitivity is therefore ``-inf``, and the multiplier ``inf``, unless all scores
    with weight are equal.

    Args:
        radius: The largest divergence.

    Example:
        >>> f, p = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])
        >>> radius = ChiSquared(0.0).distance(p, torch.tensor([0.75, 0.25]))
        >>> ChiSquared(radius).worst_case(f, p).weights
        tensor([0.7500, 0.2500])

    The dual is that of a phi-divergence [BenTal2013]_.
    """

    def __init__(self, radius: float | Tensor) -> None:
        r"""Set the radius.

        Args:
            radius: The largest divergence, a scalar ``>= 0``.

        Raises:
            InputDataError: The radius is negative, NaN or infinite.
        """
        super().__init__(radius)

    def _solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        p = weights / weights.sum(-1, keepdim=True)
        low, worst = values.min(-1, keepdim=True)
        f, span = scaled_scores(values, low)  # in [0, 1]
        aim = radius.clamp_min(_TINY)
        on = p > 0
        mean = (p * f).sum(-1, keepdim=True)
        variance = (p * (f - mean).square()).sum(-1, keepdim=True)
        least = torch.where(on, f, torch.inf).amin(-1, keepdim=True)
        flat = torch.where(on, f, -torch.inf).amax(-1, keepdim=True) <= least

        # Can some mass go to a lowest score of weight zero?
        roots = f.sqrt()
        inverse = torch.where(on & (f > 0), p / roots, 0.0).sum(-1, keepdim=True)
        length = (p * roots).sum(-1, keepdim=True)
        base = torch.where(f <= 0, p, 0.0).sum(-1, keepdim=True)
        outside = (base <= 0) & ((inverse * length <= 1 + radius) | flat)
        still = flat & ~outside
        start = (radius <= 0) & ~outside

        # Kantorovich: A B - 1 <= 1 / (16 w^2) for scores in [0, 1].
        upper = -0.5 * (16 * aim).log()
        at_base = 2 * (base * length / (1 + aim)).clamp_min(1e-150).log()
        first = torch.where(on & (f > 0), f, 1.0).amin(-1, keepdim=True)
        lower = torch.where(base > 0, at_base, (1e-20 * first).clamp_min(1e-300).log())
        lower = torch.minimum(lower, upper)
        guess = 0.5 * (variance / (4 * aim)).log()
        skip = flat | outside

        def function(x: Tensor) -> tuple[Tensor, Tensor]:
            w = x.exp()
            height, excess = self._excess(f, p, w)
            q = p / (height * (1 + excess))
            center = (q * f).sum(-1, keepdim=True)
            bend = (q * (f - center).square() / (f + w)).sum(-1, keepdim=True)
            slope = -0.5 * (1 + excess) * w * bend / (center + w).square()
            error = (aim / excess).log()  # increasing in x
            return error, error * excess / slope

        x = increasing_root(function, lower, torch.where(skip, lower, upper), guess)
        w = torch.where(outside, 0.0, x.exp())
        height, excess = self._excess(f, p, w)
        inner = p / (height * (1 + excess))
        # With mass outside: q = p B / ((1 + radius) sqrt(f)), and the rest at the worst
        beyond = torch.where(on & (f > 0), p * length / ((1 + radius) * roots), 0.0)
        left = (1 - beyond.sum(-1, keepdim=True)).clamp_min(0.0)
        q = torch.where(outside, beyond.scatter_add(-1, worst, left), inner)
        q = torch.where(still | start, p, q)

        scale = w.sqrt() + (p * self._lift(f, w)).sum(-1, keepdim=True)  # B
        root = torch.where(outside, length / (1 + radius), scale / (1 + excess))
        multiplier = root.square()  # lambda

        # dq/dw is proportional to q (r - E r); its size follows from the multiplier.
        r = torch.where(w > 0, f / (f + w), 0.0)
        r = r - (q * r).sum(-1, keepdim=True)
        tilt = q * (f - (q * f).sum(-1, keepdim=True))
        size = (tilt * r).sum(-1, keepdim=True)
        direction = -(q * r) * (multiplier / torch.where(size > 0, size, 1.0))
        beyond = -beyond / (1 + radius)
        beyond = beyond.scatter_add(-1, worst, -beyond.sum(-1, keepdim=True))
        direction = torch.where(outside, beyond, direction)
        direction = torch.where(start, -torch.sign(tilt) * torch.inf, direction)
        direction = torch.where(still | (start & (tilt == 0)), 0.0, direction)
        multiplier = torch.where(start, torch.inf, multiplier)
        multiplier = torch.where(still, 0.0, multiplier)

        # 2 sqrt(lambda y) up to a constant; f itself at radius zero.
        gradient = 2 * root * self._lift(f, w)
        gradient = torch.where(radius <= 0, f, gradient)
        return Solution(q, (span * multiplier).squeeze(-1), span * gradient, direction)

    @staticmethod
    def _lift(f: Tensor, w: Tensor) -> Tensor:
        """``sqrt(f + w) - sqrt(w)`` without cancellation."""
        below = (f + w).sqrt() + w.sqrt()
        return torch.where(below > 0, f / below, 0.0)

    @classmethod
    def _excess(cls, f: Tensor, p: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """``1 + z = sqrt(y) / B``, and ``A B - 1 = E z^2 / (1 + z)``."""
        lift = cls._lift(f, w)
        mean = (p * lift).sum(-1, keepdim=True)
        scale = w.sqrt() + mean
        z = (lift - mean) / scale
        height = (f + w).sqrt() / scale
        height = torch.where(p > 0, height, 1.0)
        parts = torch.where(p > 0, p * z.square() / height, 0.0)
        return height, parts.sum(-1, keepdim=True)

    def _constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
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
        parts = torch.where(p == q, 0.0, (q - p).square() / q)
        return parts.sum(-1)
