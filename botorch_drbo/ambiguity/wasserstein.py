"""The type-1 Wasserstein ball on a finite set of contexts, solved exactly."""

from __future__ import annotations

import math

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy.optimize import linprog
from scipy.sparse import eye_array, kron, vstack
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity.base import (
    AmbiguitySet,
    Solution,
    check_distributions,
)

_MAX_STEPS = 200
_CHUNK_ELEMENTS = 2**22  # 32 MiB of float64 per temporary of size rows x n x m


class Wasserstein(AmbiguitySet):
    r"""All distributions that moving the reference a little, on average, can reach.

    .. math::
        W_1(p, q) = \min_{\pi \ge 0} \Big\{ \sum_{ij} \pi_{ij} C_{ij} :
            \pi 1 = p,\ \pi^\top 1 = q \Big\} \le \epsilon

    The radius has the units of the cost. The value is the one-dimensional dual

    .. math::
        v = \max_{\lambda \ge 0}
            -\lambda \epsilon + \sum_i p_i \min_j (f_j + \lambda C_{ij}),

    concave and piecewise linear in ``lambda``. The solver keeps one supporting line on
    either side of the maximum, and steps to their crossing until it lies on the graph:
    then the two assignments, mixed so that they cost exactly ``epsilon``, are a
    worst-case plan, and primal and dual agree.

    With a cost ``n x m`` the mass moves from the ``n`` reference atoms to ``m``
    candidates, and the scores belong to the candidates. Candidates should contain the
    atoms: the radius must be at least the cost of the cheapest plan.

    Args:
        radius: The average cost of transport that is allowed.
        cost: The ground metric, ``n x n`` (zero diagonal) or ``n x m``.

    Example:
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> ball = Wasserstein(radius=0.25, cost=torch.cdist(points, points))
        >>> robust = ball.worst_case(torch.tensor([0.0, 4.0]), torch.tensor([0.5, 0.5]))
        >>> robust.value, robust.weights  # a quarter of the mass moves a distance of 1
        (tensor(1.), tensor([0.7500, 0.2500]))

    The ball of [Micheli2025wdrbo]_, whose Lipschitz penalty bounds ``v`` from below.
    """

    cost: Tensor

    def __init__(self, radius: float | Tensor, cost: Tensor) -> None:
        r"""Check the ground metric.

        Args:
            radius: The average cost of transport that is allowed, a scalar ``>= 0``.
            cost: ``n x n`` with zero diagonal, or ``n x m``; not negative.

        Raises:
            InputDataError: A negative or non-finite entry, a non-zero diagonal, or a
                radius below the cost of the cheapest plan (checked per problem).
            BotorchTensorDimensionError: The cost is not a matrix.
        """
        super().__init__(radius)
        check_finite(cost, "cost")
        if cost.ndim != 2 or 0 in cost.shape:
            raise BotorchTensorDimensionError(
                f"`cost` must be an `n x n` or `n x m` matrix, got {tuple(cost.shape)}."
            )
        if (cost < 0).any():
            raise InputDataError(
                f"`cost` must not be negative, got a minimum of {cost.min().item()}."
            )
        cost = cost.detach().double().clone()
        if cost.shape[0] == cost.shape[1]:
            # torch.cdist leaves rounding errors there, unless told otherwise.
            if (cost.diagonal() > 1e-6 * cost.max()).any():
                raise InputDataError(
                    "A square `cost` must have a zero diagonal, got a largest entry of "
                    f"{cost.diagonal().max().item()}: staying costs nothing."
                )
            cost.fill_diagonal_(0.0)
        self.register_buffer("cost", cost)

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        if (num_weights, num_values) != tuple(self.cost.shape):
            raise BotorchTensorDimensionError(
                f"The cost is {tuple(self.cost.shape)} (atoms x candidates): it needs "
                f"{self.cost.shape[0]} weights and {self.cost.shape[1]} scores, got "
                f"{num_weights} weights and {num_values} scores."
            )

    def _solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        batch, n = values.shape[:-1], weights.shape[-1]
        # Only differences of scores matter; a large offset would cost digits.
        shifted = values - values.amin(-1, keepdim=True)
        f = shifted.reshape(-1, values.shape[-1])
        p, r = weights.reshape(-1, n), radius.reshape(-1)
        rows = max(1, _CHUNK_ELEMENTS // self.cost.numel())
        chunks = [
            self._solve_rows(*parts)
            for parts in zip(f.split(rows), p.split(rows), r.split(rows), strict=True)
        ]
        q, multiplier, gradient, direction, gap = (
            torch.cat(parts).reshape((*batch, *parts[0].shape[1:]))
            for parts in zip(*chunks, strict=True)
        )
        span = values.amax(-1) - values.amin(-1)
        proved = bool((gap <= 1e-10 * span).all())
        return Solution(q, multiplier, gradient, direction, None if proved else gap)

    def _solve_rows(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        cost = self.cost.to(f.device)
        tolerance = 1e-13 * cost.max()

        def line(assignment: Tensor) -> tuple[Tensor, Tensor]:  # b x n -> value, cost
            paid = torch.gather(
                cost.expand(len(f), -1, -1), -1, assignment[..., None]
            ).squeeze(-1)
            return (p * f.gather(-1, assignment)).sum(-1), (p * paid).sum(-1)

        # lambda = 0: everything moves to the cheapest of the lowest scores.
        lowest = f == f.amin(-1, keepdim=True)  # b x m
        low = torch.where(lowest[:, None, :], cost, torch.inf).argmin(-1)  # b x n
        value_low, cost_low = line(low)
        saturated = cost_low <= radius + tolerance
        # lambda = infinity: everything stays as near as it can, at its lowest score.
        nearest = cost <= cost.amin(-1, keepdim=True)  # n x m
        high = torch.where(nearest, f[:, None, :], torch.inf).argmin(-1)  # b x n
        value_high, cost_high = line(high)
        empty = cost_high > radius + tolerance
        if empty.any():
            raise InputDataError(
                f"The Wasserstein ball of radius {radius[empty][0].item()} is empty: "
                f"the cheapest plan costs {cost_high[empty][0].item()}. Let candidates "
                "contain the reference atoms, or enlarge the radius."
            )
        gap = torch.zeros_like(value_low)
        lam = torch.zeros_like(value_low)
        for step in range(_MAX_STEPS):
            # The two lines cross where value + lambda * cost is the same for both.
            width = (cost_low - cost_high).clamp_min(torch.finfo(f.dtype).tiny)
            lam = ((value_high - value_low) / width).clamp_min(0.0)
            lam = torch.where(saturated, torch.zeros_like(lam), lam)
            moved = f[:, None, :] + lam[:, None, None] * cost  # b x n x m
            best, assignment = moved.min(-1)
            crossing = (p * best).sum(-1)
            # Both plans mixed are feasible and worth the height of the crossing.
            gap = value_high + lam * cost_high - crossing
            gap = torch.where(saturated, torch.zeros_like(gap), gap)
            scale = f.abs().amax(-1)
            open_rows = gap > 1e-14 * scale
            if step % 4 == 3 and not bool(open_rows.any()):
                break
            value, paid = line(assignment)
            goes_low = (paid > radius + tolerance) & open_rows & (paid < cost_low)
            goes_high = (paid <= radius + tolerance) & open_rows & (paid > cost_high)
            low = torch.where(goes_low[:, None], assignment, low)
            value_low = torch.where(goes_low, value, value_low)
            cost_low = torch.where(goes_low, paid, cost_low)
            high = torch.where(goes_high[:, None], assignment, high)
            value_high = torch.where(goes_high, value, value_high)
            cost_high = torch.where(goes_high, paid, cost_high)
        return self._plan(
            f, p, radius, low, high, cost_low, cost_high, lam, saturated, gap
        )

    def _plan(
        self,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        low: Tensor,
        high: Tensor,
        cost_low: Tensor,
        cost_high: Tensor,
        lam: Tensor,
        saturated: Tensor,
        gap: Tensor,
    ) -> tuple[Tensor, ...]:
        zeros = torch.zeros_like(f)
        q_low = zeros.scatter_add(-1, low, p)
        q_high = zeros.scatter_add(-1, high, p)
        width = (cost_low - cost_high).clamp_min(torch.finfo(f.dtype).tiny)
        share = ((radius - cost_high) / width).clamp(0.0, 1.0)
        share = torch.where(saturated, torch.ones_like(share), share)[:, None]
        q = share * q_low + (1 - share) * q_high
        direction = torch.where(
            saturated[:, None], zeros, (q_low - q_high) / width[:, None]
        )
        cost = self.cost.to(f.device)
        gradient = (f[:, None, :] + lam[:, None, None] * cost).amin(-1)
        return q, lam, gradient, direction, gap

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The optimal transport cost, by linear programming (HiGHS), row by row.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x m``.

        Returns:
            The distances, ``...``; on the CPU, without gradients.
        """
        p, q = check_distributions(p, q)
        self._check_sizes(q.shape[-1], p.shape[-1])
        batch = torch.broadcast_shapes(p.shape[:-1], q.shape[:-1])
        n, m = self.cost.shape
        rows = vstack(
            [
                kron(eye_array(n), np.ones((1, m))),
                kron(np.ones((1, n)), eye_array(m)),
            ]
        )
        cost = self.cost.detach().cpu().numpy().ravel()
        marginals = (
            torch.cat([p.expand(*batch, n), q.expand(*batch, m)], dim=-1).detach().cpu()
        )
        found = [
            linprog(cost, A_eq=rows, b_eq=b.numpy(), method="highs").fun
            for b in marginals.reshape(math.prod(batch), n + m)
        ]
        return torch.tensor(found, dtype=torch.double).reshape(batch)
