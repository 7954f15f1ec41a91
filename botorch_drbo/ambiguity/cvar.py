"""Conditional value at risk, and the two ends: no ambiguity, every distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity.base import AmbiguitySet, Few
from botorch_drbo.ambiguity.numerics import check_distributions, ranked
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp


_TOLERANCE = 1e-13  # of probability: a radius this near a breakpoint lies on it
_FEW = 96  # contexts to rank by


class ConditionalValueAtRisk(AmbiguitySet):
    r"""Conditional value at risk: the mean of the worst ``1 - alpha`` of the scores.

    .. math:: q_i \le \frac{p_i}{1 - \alpha} = (1 + \epsilon)\, p_i,
        \qquad \epsilon = \frac{\alpha}{1 - \alpha}

    ``alpha`` is BoTorch's level: 0 gives the expectation, and towards 1 the value tends
    to the minimum over the atoms with positive weight. The adversary fills the lowest
    scores up to their caps. The atom on the boundary is split; BoTorch's ``CVaR`` over
    samples counts it fully and therefore differs.

    The ``radius`` is ``epsilon``, the largest relative increase of a weight. As for
    every other set, ``v`` is convex in the radius, and ``distance`` has its units; in
    ``alpha``, ``v`` need not be convex. The multiplier and the sensitivity are
    derivatives in the radius; for derivatives in the level, ``dv/d alpha = dv/d radius
    / (1 - alpha)^2``, the same at ``alpha = 0``.

    .. math::
        v = \max_t\ t - (1 + \epsilon) \sum_i p_i (t - f_i)_+, \qquad
        \delta = -\sum_i p_i (t^* - f_i)_+,

    with ``t*``, the value at risk, the score of the boundary atom.

    Args:
        alpha: The level, in [0, 1).

    Raises:
        InputDataError: The level is outside [0, 1).

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import ConditionalValueAtRisk
        >>> f, p = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([0.25, 0.5, 0.25])
        >>> robust = ConditionalValueAtRisk(alpha=0.5).worst_case(f, p)
        >>> robust.value, robust.weights
        (tensor(0.5000), tensor([0.5000, 0.5000, 0.0000]))

    [RockafellarUryasev2000]_ for the dual.
    """

    knows_positions: ClassVar[bool] = False
    holds_reference = True
    keeps_support: ClassVar[bool] = True

    def __init__(self, alpha: float) -> None:
        alpha = float(alpha)
        if not (math.isfinite(alpha) and 0.0 <= alpha < 1.0):
            raise InputDataError(
                f"`alpha` must lie in [0, 1), got {alpha}: the radius is "
                "alpha / (1 - alpha). FullSimplex() gives the worst case."
            )
        super().__init__(alpha / (1.0 - alpha))

    @property
    def alpha(self) -> Tensor:
        """The level, a scalar tensor."""
        return self.radius / (1.0 + self.radius)

    def _printed(self, name: str) -> float:
        """The level in as few digits as make the radius."""
        level = self.alpha.item()
        short = float(f"{level:.15g}")
        return short if short / (1.0 - short) == self.radius else level

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""From one sort."""
        f = values - values.amin(-1, keepdim=True)  # a large offset would cost digits
        # Fractional knapsack: fill the lowest scores up to their caps (1 + radius) p.
        ordered, order = ranked(f)
        p = weights.gather(-1, order)
        growth = 1.0 + radius
        total = p.sum(-1, keepdim=True)  # one, up to the rounding of the user's dtype
        filled = (growth * p).cumsum(-1)
        room = (total - pad(filled[..., :-1], (1, 0))).clamp_min(0.0)
        q = torch.minimum(growth * p, room)

        # The boundary atom, whose score is the value at risk: the first one with which
        # the caps reach one. A growing radius takes from it. On a breakpoint it is the
        # last full atom.
        last = f.shape[-1] - 1
        full = (filled < total * (1.0 - _TOLERANCE)).sum(-1, keepdim=True)
        boundary = full.clamp_max(last)
        risk = ordered.gather(-1, boundary)
        below = torch.arange(last + 1, device=f.device) < boundary
        grows = torch.where(below, p, torch.zeros_like(p))
        multiplier = (grows * (risk - ordered)).sum(-1)
        direction = grows.scatter(-1, boundary, -grows.sum(-1, keepdim=True))

        # On a breakpoint every t up to the next score with weight is optimal. The upper
        # end makes dv/dp = f at radius 0, also for atoms of weight zero.
        next_atom = (filled <= total * (1.0 + _TOLERANCE)).sum(-1, keepdim=True)
        level = ordered.gather(-1, next_atom.clamp_max(last))
        zeros = torch.zeros_like(f)
        return Solution(
            zeros.scatter(-1, order, q),
            multiplier,
            lambda: growth * (f - level).clamp_max(0.0),
            zeros.scatter(-1, order, direction),
        )

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        # A product of two parameters is against the rules; one with a variable is not.
        growth = cp.Variable()
        return [growth == 1 + radius, q <= growth * p]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The largest relative increase of a weight, ``max q_i / p_i - 1``.

        The smallest level whose set contains ``q`` is ``distance / (1 + distance)``.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``; infinite where ``q`` has mass and ``p`` has none.
        """
        p, q = check_distributions(p, q)
        ratio = torch.where(q > 0, q / p, 0.0)
        return (ratio.amax(-1) - 1.0).clamp_min(0.0)


class NoAmbiguity(AmbiguitySet):
    r"""The reference distribution alone: the plain expectation.

    .. math:: v = p^\top f

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import NoAmbiguity
        >>> values, weights = torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5])
        >>> NoAmbiguity().worst_case(values, weights).value
        tensor(2.)
    """

    knows_positions: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    holds_reference = True
    keeps_support: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(radius=0.0)

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The expectation, with gradients of every order.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``.
        """
        self._check(values, weights)
        return torch.linalg.vecdot(values, weights.to(values))

    def few(self, weights: Tensor, share: float = 1.0) -> Few | None:
        r"""Ninety-six contexts of equal weight, drawn systematically.

        Args:
            weights: Reference weights, ``n``.
            share: Of the usual number of contexts.

        Returns:
            The contexts; None where not twice as many have weight.
        """
        held, num = weights.nonzero().squeeze(-1), int(share * _FEW)
        if len(held) <= 2 * num:
            return None
        shares = weights.new_full((num,), 1.0 / num)
        reached = weights[held].cumsum(0)
        levels = (shares.cumsum(0) - 0.5 * shares) * reached[-1]
        places = torch.searchsorted(reached, levels).clamp_max(len(held) - 1)
        return Few(held[places], shares, self)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The reference itself."""
        zeros = torch.zeros_like(values)
        return Solution(weights, zeros[..., 0], lambda: values, zeros)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        return [q == p]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Zero if the two are equal, else infinite.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        p, q = check_distributions(p, q)
        same = torch.isclose(p, q, rtol=0.0, atol=1e-12).all(-1)
        return torch.where(same, 0.0, torch.inf).to(p)


class FullSimplex(AmbiguitySet):
    r"""All distributions on the list: the worst case is the worst context.

    .. math:: v = \min_i f_i

    Atoms of reference weight zero count too; contexts that are not on the list never
    do. This is robust optimisation (RO), and over an interval of contexts StableOpt
    [Bogunovic2018stableopt]_.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FullSimplex
        >>> values, weights = torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5])
        >>> FullSimplex().worst_case(values, weights).value
        tensor(1.)
    """

    knows_positions: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    holds_reference = True

    def __init__(self) -> None:
        super().__init__(radius=1.0)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The lowest score."""
        zeros = torch.zeros_like(values)
        worst = values.argmin(-1, keepdim=True)
        vertex = zeros.scatter(-1, worst, 1.0)
        return Solution(vertex, zeros[..., 0], lambda: zeros, zeros)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        return []

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""Zero if the two are equal, else one.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        p, q = check_distributions(p, q)
        return (~torch.isclose(p, q, rtol=0.0, atol=1e-12).all(-1)).to(p)
