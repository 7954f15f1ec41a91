"""The total variation ball: a bounded mass goes from the best scores to the worst."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo import _device
from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.numerics import check_distributions, ranked
from botorch_drbo.ambiguity.solution import Once, Solution

if TYPE_CHECKING:
    import cvxpy as cp


_EQUAL = 1e-13  # of probability: a budget this near a breakpoint lies on it


def support_mask(weights: Tensor) -> np.ndarray | None:
    """Which atoms have weight, ``n``, if all that have any have the same; or None."""
    if weights.ndim != 1:
        return None
    w = weights.numpy(force=True)
    support = w > 0.0
    if not support.any() or not ((w == w.max()) | ~support).all():
        return None
    return support


def equal_weights_value(values: Tensor, support: np.ndarray, budget: float) -> Tensor:
    """Move a mass from the highest scores to the lowest, of equal weights.

    How many of the highest scores lose their mass is known beforehand, so they need
    not be sorted but only told from the others.

    Shapes: ``values``: ``... x n``.
    """
    flat = values.reshape(-1, values.shape[-1])
    found = _EqualWeights.apply(flat, support, budget)
    return found.reshape(values.shape[:-1])


class _EqualWeights(torch.autograd.Function):
    """``equal_weights_value`` of ``b x n`` scores, in NumPy: torch has no partition."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, support: np.ndarray, budget: float) -> Tensor:
        f = values.detach().double().numpy()
        n = int(support.sum())
        share = 1.0 / n
        # Of the n scores so many keep some mass, the highest of them perhaps not all.
        kept = n - math.floor((budget + _EQUAL) * n)
        # The budget goes to the lowest score; the rest is the mean of the n scores of
        # weight without the highest ones. A partition finds these in O(n).
        lowest = f.argmin(-1)
        low = np.take_along_axis(f, lowest[:, None], -1)[:, 0]
        level = np.full_like(low, -math.inf)
        found = budget * low
        if kept > 0:
            # Most often what has no weight comes last, and then this is no copy.
            supported = f[:, :n] if support[:n].all() else f[:, support]
            ordered = np.partition(supported, kept - 1, axis=-1)
            level = ordered[:, kept - 1]
            rest = (1.0 - budget) - share * (kept - 1)
            found += share * ordered[:, : kept - 1].sum(-1) + rest * level
        if ctx.needs_input_grad[0]:
            # q = share below the level, what is left shared out at the level
            q = share * ((f < level[:, None]) & support)
            at = (f == level[:, None]) & support
            left = (1.0 - budget) - q.sum(-1)
            q += at * (left / at.sum(-1).clip(1))[:, None]
            q[np.arange(len(q)), lowest] += budget
            ctx.save_for_backward(values, torch.from_numpy(q).to(values))
        return torch.from_numpy(found).to(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        values, q = ctx.saved_tensors
        with torch.no_grad():
            slope = grad.unsqueeze(-1) * q
        if torch.is_grad_enabled():  # a graph of the gradient was asked for
            slope = Once.apply(slope, grad, values)
        return slope, None, None


_TOLERANCE = 1e-13  # of probability: a radius this near a breakpoint lies on it


class TotalVariation(AmbiguitySet):
    r"""All distributions within a total variation (l1) distance of the reference.

    .. math:: \|p - q\|_1 = \sum_i |p_i - q_i| \le \epsilon

    There is no factor 1/2: the radius 2 covers the simplex. The adversary moves the
    mass ``epsilon / 2`` from the highest scores to the lowest one, which may have
    reference weight zero. With ``k`` the highest score that still has mass,

    .. math::
        v = \max_t \sum_i p_i \min(f_i, t) - \frac{\epsilon}{2} (t - \min_j f_j),
        \qquad t^* = f_k, \qquad \delta = \frac{\min_j f_j - f_k}{2}.

    **Mass outside the support.** If the reference is a sample, the worst score over all
    contexts may be lower than every score in it. There are two ways to let the
    adversary move mass there:

    - per call, and with gradients: append that score to the values, with the reference
      weight zero. The last of the returned weights is the mass there;
    - ``floor``, for a score that is known in advance. It does not belong to a context,
      so the returned weights have no entry for it: they sum to one minus the mass at
      the floor, and ``value = weights . values + (1 - weights.sum()) * floor``.

    A floor above the lowest score is never used.

    Args:
        radius: The largest l1 distance, twice the mass that may move.
        floor: A score that is reachable outside the support, or None.

    Raises:
        InputDataError: A negative or non-finite radius, or a non-finite floor.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> f, p = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([0.25, 0.5, 0.25])
        >>> robust = TotalVariation(radius=0.25).worst_case(f, p)
        >>> robust.value, robust.weights  # an eighth of the mass moves
        (tensor(1.), tensor([0.3750, 0.5000, 0.1250]))
        >>> robust = TotalVariation(radius=0.25, floor=-8.0).worst_case(f, p)
        >>> robust.value, robust.weights  # it moves to the floor
        (tensor(0.), tensor([0.2500, 0.5000, 0.1250]))

    The sort is Lemma A.11 of [Tay2024bocu]_, the sensitivity its A.14 (its A.12 lacks
    the 1/2). With the floor, ``v`` is Proposition 2 of [Huang2024sbokde]_.
    """

    knows_positions: ClassVar[bool] = False
    holds_reference = True
    reaches_unseen: ClassVar[bool] = True
    floor: Tensor | None

    def __init__(
        self, radius: float | Tensor, floor: float | Tensor | None = None
    ) -> None:
        super().__init__(radius)
        if floor is not None:
            if not isinstance(floor, Tensor):
                floor = torch.tensor(float(floor), dtype=torch.double)
            floor = check_finite(floor, "floor").detach().clone()
        self.register_buffer("floor", floor)

    @property
    def diameter(self) -> float:
        """The largest l1 distance of two distributions, 2."""
        return 2.0

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The worst-case value alone; without a sort where weights are equal.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``, with the gradients of ``worst_case``.
        """
        support = self._support(weights)
        if support is None:
            return super().value(values, weights)
        self._check(values, weights)
        atoms, reference = self._with_outside(values, weights)
        if len(reference) > len(support):  # the floor has no weight
            support = (reference > 0.0).numpy()
        budget = min(self.radius.item() / 2.0, 1.0)
        return equal_weights_value(atoms, support, budget)

    def _support(self, weights: Tensor) -> np.ndarray | None:
        """See ``support_mask``; None where a gradient in anything else is wanted."""
        if weights.requires_grad or self.radius.requires_grad:
            return None
        return support_mask(weights) if _device.on_cpu(weights) else None

    def _with_outside(self, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.floor is None:
            return values, weights
        batch = torch.broadcast_shapes(values.shape[:-1], self.floor.shape)
        outside = self.floor.to(values).expand(batch).unsqueeze(-1)
        zero = torch.zeros_like(weights[..., :1])
        return (
            torch.cat([values.expand(*batch, -1), outside], dim=-1),
            torch.cat([weights, zero], dim=-1),
        )

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""From one sort."""
        # An l1 distance of eps lets a mass of eps / 2 move.
        low, worst = values.min(-1, keepdim=True)
        f = values - low  # a large offset would cost digits
        budget = (radius / 2).clamp_max(1.0)
        # Greedy transport: from the highest score down, min(mass, rest of the budget)
        # goes to the lowest score.
        ordered, order = ranked(f, descending=True)
        mass = weights.gather(-1, order)
        cumulative = mass.cumsum(-1)  # the mass at this score or higher
        above = pad(cumulative[..., :-1], (1, 0))
        removed = torch.minimum(mass, (budget - above).clamp_min(0.0))
        q = weights.scatter(-1, order, mass - removed)
        q = q.scatter_add(-1, worst, removed.sum(-1, keepdim=True))

        # The next source: the first score whose mass is not used up. There is none once
        # all mass has moved: then the derivative is zero.
        last = f.shape[-1] - 1
        used = (cumulative <= budget + _TOLERANCE).sum(-1, keepdim=True)
        source = order.gather(-1, used.clamp_max(last))
        level = torch.where(used > last, 0.0, f.gather(-1, source))
        moving = torch.where(level > 0, 0.5, torch.zeros_like(level))
        direction = torch.zeros_like(f).scatter(-1, source, -moving)
        direction = direction.scatter_add(-1, worst, moving)

        # On a breakpoint every t between two scores is optimal. The upper one makes
        # dv/dp = f at radius 0, also for atoms of weight zero.
        first_partial = (cumulative < budget - _TOLERANCE).sum(-1, keepdim=True)
        cut = ordered.gather(-1, first_partial.clamp_max(last))
        gradient = torch.where(used > last, 0.0, torch.minimum(f, cut))
        return Solution(q, level.squeeze(-1) / 2, lambda: gradient, direction)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        return [cp.norm1(q - p) <= radius]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The l1 distance; with a floor, missing mass of ``q`` is at the floor.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        if self.floor is not None:
            outside = (1.0 - q.sum(-1, keepdim=True)).clamp_min(0.0)
            q = torch.cat([q, outside], dim=-1)
            p = torch.cat([p, torch.zeros_like(p[..., :1])], dim=-1)
        p, q = check_distributions(p, q)
        return (p - q).abs().sum(-1)
