"""The two chi-squared balls: Pearson's in closed form, Neyman's by one root."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity._scores import scaled_scores
from botorch_drbo.ambiguity.base import AmbiguitySet, Solution, check_distributions

_TOLERANCE = 1e-13  # relative: a radius this near to saturation is there


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

    def __init__(self, radius: float | Tensor) -> None:
        r"""Set the radius.

        Args:
            radius: The largest chi-squared divergence, a scalar ``>= 0``.

        Raises:
            InputDataError: The radius is negative, NaN or infinite.
        """
        super().__init__(radius)

    def _solve(self, values: Tensor, weights: Tensor) -> Solution:
        supported = weights > 0
        low = torch.where(supported, values, torch.inf).amin(-1, keepdim=True)
        f, span = scaled_scores(values, low)
        ranked, order = torch.where(supported, f, torch.inf).sort(dim=-1, stable=True)
        has_mass = ranked < torch.inf
        ranked = torch.where(has_mass, ranked, 0.0)
        p = weights.gather(-1, order)
        p = p / p.sum(-1, keepdim=True)

        # Mass, mean and spread of every prefix. Each spread is a sum of what the next
        # score adds to it (Welford): no difference of large numbers.
        mass = p.cumsum(-1)
        rest = pad(p.flip(-1).cumsum(-1).flip(-1)[..., 1:], (0, 1))  # 1 - mass
        mean = (p * ranked).cumsum(-1) / mass
        step = pad(ranked[..., 1:] - mean[..., :-1], (1, 0))  # to the prefix before
        share = pad(mass[..., :-1], (1, 0)) / mass
        variance = (p * share * step.square()).cumsum(-1) / mass
        # (1 + radius) mass - 1: negative where the prefix alone would be too far off
        spare = self.radius.to(f) * mass - rest
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
        # With a zero in the denominator: -inf, 0 or inf, as the score is.
        slope = torch.where((f - mean) < spread, p * (mean - f), 0.0)
        direction = slope / (2 * (spare * variance).sqrt())
        direction = torch.where((slope == 0) | flat, 0.0, direction)
        gradient = torch.where(self.radius.to(f) <= 0, f, (away - bends) / mass)
        multiplier = (mass * spread * span / 2).squeeze(-1)
        return Solution(q, multiplier, span * gradient, direction)

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
