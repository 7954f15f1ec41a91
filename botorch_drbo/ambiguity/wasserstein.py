"""The type-1 Wasserstein ball on a finite set of contexts, by cutting planes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity._transport import (
    Bracket,
    Ground,
    are_few,
    assignment_at_infinity,
    assignment_at_zero,
    cheapest_target,
    farthest_points,
    largest_slope,
    mixed_plan,
    moved,
)
from botorch_drbo.ambiguity.base import AmbiguitySet, Few, Prices
from botorch_drbo.ambiguity.numerics import check_distributions
from botorch_drbo.ambiguity.solution import RobustValue, Solution, in_float64

if TYPE_CHECKING:
    import cvxpy as cp

_MAX_STEPS = 200
_FEW_ATOMS, _FEW_OTHERS = 48, 24  # contexts to rank by
_SHORT = 240  # others: fewer cost next to nothing
_UNIT_MASS = 1e6  # for HiGHS, whose tolerances are absolute and at least 1e-10


class Wasserstein(AmbiguitySet):
    r"""All distributions within a Wasserstein distance of the reference.

    .. math::
        W_1(p, q) = \min_{\pi \ge 0} \Big\{ \sum_{ij} \pi_{ij} C_{ij} :
            \pi 1 = p,\ \pi^\top 1 = q \Big\} \le \epsilon

    The radius has the units of the cost. The value is the one-dimensional dual

    .. math::
        v = \max_{\lambda \ge 0}
            -\lambda \epsilon + \sum_i p_i \min_j (f_j + \lambda C_{ij}),

    concave and piecewise linear in ``lambda``. It is maximised by the
    cutting-plane method of [Kelley1960cuttingplane]_. In one dimension two cuts are
    enough, one on either side of the maximum: each step goes to their intersection,
    until it lies on the graph. The two assignments, mixed so that they cost exactly
    ``epsilon``, then form a worst-case plan, and primal and dual values agree. Once
    both cuts assign an atom to the same candidate, that assignment is final, so about 3
    or 4 passes over all pairs of atoms and candidates are needed.

    With a cost ``n x m`` the mass moves from the ``n`` reference atoms to ``m``
    candidates, and the scores belong to the candidates. Candidates should contain the
    atoms: the radius must be at least the cost of the cheapest plan. If they begin with
    the atoms, there may be a weight for each of the ``m``, those after the atoms zero:
    contexts without reference weight send no mass, so they need no row. No work is done
    for atoms without weight either.

    Without a cost, Euclidean distances between the contexts are used, and the radius
    has the units of the contexts. Acquisition functions and the adversary
    ``ambiguity_set`` compute them from their own contexts; elsewhere call ``at``.

    Args:
        radius: The average cost of transport that is allowed.
        cost: The ground metric, ``n x n`` (zero diagonal) or ``n x m``; None for the
            distances of the contexts.

    Raises:
        InputDataError: A negative or non-finite entry, a non-zero diagonal, or a
            radius below the cost of the cheapest plan (checked per problem).
        BotorchTensorDimensionError: The cost is not a matrix.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import Wasserstein
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> ball = Wasserstein(radius=0.25, cost=torch.cdist(points, points))
        >>> robust = ball.worst_case(torch.tensor([0.0, 4.0]), torch.tensor([0.5, 0.5]))
        >>> robust.value, robust.weights  # a quarter of the mass moves a distance of 1
        (tensor(1.), tensor([0.7500, 0.2500]))
        >>> Wasserstein(radius=0.25).at(3 * points).cost
        tensor([[0., 3.],
                [3., 0.]], dtype=torch.float64)

    The ball of [Micheli2025wdrbo]_, whose Lipschitz penalty bounds ``v`` from below.
    """

    cost: Tensor | None

    def __init__(self, radius: float | Tensor, cost: Tensor | None = None) -> None:
        super().__init__(radius)
        self._known: tuple[Tensor, int, Ground] | None = None
        if cost is None:
            self.register_buffer("cost", None)
            return
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
                    f"{cost.diagonal().max().item()}: staying costs nothing. Give "
                    "torch.cdist compute_mode='donot_use_mm_for_euclid_dist'."
                )
            cost.fill_diagonal_(0.0)
        self.register_buffer("cost", cost)

    @property
    def holds_reference(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the candidates begin with the atoms, so that all mass may stay."""
        if self.cost is None:
            return True
        atoms, candidates = self.cost.shape
        return atoms <= candidates and not self.cost.diagonal().any()

    @property
    def diameter(self) -> float | None:
        """The largest cost; None without a cost."""
        return None if self.cost is None else self.cost.max().item()

    def at(self, points: Tensor) -> Wasserstein:
        r"""The set with Euclidean distances as its cost, unless it has a cost.

        .. math:: C_{ij} = \| c_i - c_j \|_2

        Args:
            points: The contexts, ``n x d_c``, in their own units.

        Returns:
            This set if it has a cost; else one with the distances.
        """
        if self.cost is not None:
            return self
        points = points.detach().double()
        mode = "donot_use_mm_for_euclid_dist"
        twin = copy.deepcopy(self)
        twin.cost = torch.cdist(points, points, compute_mode=mode)
        return twin

    @property
    def _ground(self) -> Tensor:
        """The cost, where one is needed."""
        if self.cost is None:
            raise InputDataError(
                "Wasserstein(radius) without a `cost` has no distances here. Give it a "
                "`cost`, or take `.at(points)`, the ball on these contexts. An "
                "acquisition function does so with its own contexts."
            )
        return self.cost

    def _from_mass(self, p: Tensor) -> tuple[Tensor, Ground]:
        """Weights and the ground of the atoms that have weight in any row.

        Shapes: ``p``: ``b x n``, returns ``b x k`` and ``k x m``.
        """
        ground = self._known_ground(p)
        p = p[:, : len(ground.cost)]  # others have no weight
        sources = p.any(0).nonzero().squeeze(-1)
        if len(sources) in (0, len(ground.cost)):  # none where there is no row at all
            return p, ground
        return p[:, sources], ground.of_atoms(sources)

    def _known_ground(self, p: Tensor) -> Ground:
        """What the cost says of all scores, found once; dtype and device of ``p``."""
        cost = self._ground  # it may have become float32
        if cost.is_inference():  # changes of such a tensor are not counted
            return Ground.of(cost.to(p))
        known = self._known
        same = known and known[0] is cost and known[1] == cost._version
        if known is None or not same or known[2].cost.device != p.device:
            self._known = known = cost, cost._version, Ground.of(cost.to(p))
        return known[2]

    def prices(self, robust: RobustValue, weights: Tensor) -> Prices:
        r"""One row for each atom: the multiplier times the cost of going there.

        Args:
            robust: The worst case on the list, one row.
            weights: The reference weights, ``n``.

        Returns:
            The prices.
        """
        if robust.multiplier == 0:  # the radius is more than the adversary can use
            return Prices.none(weights)
        atoms = weights.nonzero()  # K x 1
        return Prices(robust.multiplier * torch.ones_like(weights[atoms]), atoms)

    def few(self, weights: Tensor, share: float = 1.0) -> Few | None:
        r"""Forty-eight contexts with mass and 24 others, each far from the rest.

        Those with mass are farthest points [Gonzalez1985clustering]_, and weights move
        to the nearest of them. If that moves the reference by the radius or more there
        are twice as many, and so on.

        Args:
            weights: Reference weights, ``n``.
            share: Of the usual number of contexts.

        Returns:
            The contexts; None where the list is short, or where it would take more than
            half of it.
        """
        held = weights.nonzero().squeeze(-1)
        others = (weights == 0).nonzero().squeeze(-1)
        num, num_others = int(share * _FEW_ATOMS), int(share * _FEW_OTHERS)
        if len(held) <= 2 * num and len(others) <= share * _SHORT:
            return None
        cost, mass = self._ground.double(), weights[held].double()
        mass = mass / mass.sum()
        while True:
            apart = torch.full_like(mass, torch.inf)
            chosen = farthest_points(lambda i: cost[held[i], held], apart, num)
            atoms = held[chosen]
            away, nearest = cost[held.unsqueeze(-1), atoms].min(-1)
            moved = (mass * away).sum().item()
            if moved < self.radius or not moved:
                break
            num = min(2 * num, len(held))
            if 2 * (num + num_others) > len(weights):
                return None
        seen = cost[atoms.unsqueeze(-1), others]  # k x m
        # Others have no row. Their distances are at least the largest difference of
        # those from an atom (Kuratowski's embedding).
        far = farthest_points(
            lambda j: (seen - seen[:, j : j + 1]).abs().amax(0),
            seen.amin(0),
            num_others,
        )
        places = torch.cat([atoms, others[far]])
        shares = torch.zeros_like(places, dtype=mass.dtype).index_add(0, nearest, mass)
        ball = Wasserstein(self.radius, cost[atoms.unsqueeze(-1), places])
        return Few(places, shares, ball)

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""A lower bound in closed form: the better of two points of the dual.

        .. math:: \max\Big( \min_j f_j,\ \sum_i p_i f_i - \epsilon S \Big), \qquad
            S = \max_{i,\, j} \frac{f_i - f_j}{C_{ij}}

        for a cost of zero to stay. At ``lambda = 0`` all mass moves to the lowest
        score; at ``lambda = S``, the steepest slope away from an atom with mass, none
        of it moves. Any ``lambda`` bounds the value from below. On a line ``S`` is the
        steepest slope of neighbours, with mass or not, which is no smaller.

        Args:
            values: Scores, ``... x m``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            Lower bounds of the value, ``...``, without a gradient.
        """
        self._check(values, weights)
        return in_float64(self._bound, values, weights, self.radius).to(values)

    def _bound(self, values: Tensor, weights: Tensor, radius: Tensor) -> Tensor:
        low = values.amin(-1, keepdim=True)
        f = (values - low).reshape(-1, values.shape[-1])
        p, ground = self._from_mass(weights.reshape(-1, weights.shape[-1]))
        line = ground.line
        # Weak duality: at lambda = slope all atoms stay, which is worth p.f less slope
        # times what the radius leaves over; at lambda = 0 the value is the lowest
        # score.
        if line is not None and line.holds_atoms:
            scores, slope = line.descent(f)
            value, plan_cost = (p * scores).sum(-1), torch.zeros_like(slope)
        else:
            stay = assignment_at_infinity(f, ground)
            value, plan_cost = stay.cut(p)
            slope = largest_slope(f, ground.cost, stay, p > 0)
        found = value - slope * (radius.reshape(-1) - plan_cost)
        return low.squeeze(-1) + found.clamp_min(0.0).reshape(values.shape[:-1])

    def _check(self, values: Tensor, weights: Tensor) -> None:
        super()._check(values, weights)
        self._check_rows(weights)

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        atoms, candidates = self._ground.shape
        fits = num_weights == atoms or (
            num_weights == candidates and self.holds_reference
        )
        if num_values != candidates or not fits:
            raise BotorchTensorDimensionError(
                f"The cost is {(atoms, candidates)} (atoms x candidates): it needs "
                f"{atoms} weights and {candidates} scores, got "
                f"{num_weights} weights and {num_values} scores."
            )

    def _check_rows(self, weights: Tensor) -> None:
        """Raise if a context has weight, but the cost no row for it."""
        atoms = len(self._ground)
        if weights.shape[-1] > atoms and weights[..., atoms:].any():
            raise InputDataError(
                f"The cost has rows for the first {atoms} contexts only, and others "
                "have reference weight: no mass can move from there. Give `cost` a row "
                "for each context that has weight."
            )

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By supporting lines of the dual."""
        batch, n, atoms = values.shape[:-1], weights.shape[-1], len(self._ground)
        # Only differences of scores matter; a large offset would cost digits.
        shifted = values - values.amin(-1, keepdim=True)
        f = shifted.reshape(-1, values.shape[-1])
        q, multiplier, direction, gap = (
            found.reshape((*batch, *found.shape[1:]))
            for found in self._solve_rows(f, weights.reshape(-1, n), radius.reshape(-1))
        )

        def gradient() -> Tensor:
            return self._transformed_scores(f, multiplier.reshape(-1)).reshape(
                *batch, atoms
            )

        span = values.amax(-1) - values.amin(-1)
        proved = bool((gap <= 1e-10 * span).all())
        return Solution(
            weights=q,
            multiplier=multiplier,
            # What mass would cost to move that is where no row begins, is not known.
            reference_gradient=gradient if n == atoms else None,
            direction=direction,
            gap=None if proved else gap,
        )

    def _transformed_scores(self, f: Tensor, lam: Tensor) -> Tensor:
        """The c-transform ``min_j f_j + lambda C_ij`` of every atom, ``b x n``."""
        cost = self._ground.to(f)
        row, atom = (
            torch.ones_like(f[:, :1]).expand(-1, len(cost)).nonzero(as_tuple=True)
        )
        target = cheapest_target(f, cost, lam[row], row, atom)
        return (f[row, target] + lam[row] * cost[atom, target]).reshape(-1, len(cost))

    def _solve_rows(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        p, ground = self._from_mass(p)
        cost = ground.cost
        # A radius within rounding of a plan's cost counts as that cost.
        limit = radius + 1e-13 * ground.farthest.max()
        # Kelley's cutting planes in one dimension: the concave dual lies below every
        # cut, one on either side of its maximum is kept, and they cross at the next
        # point.
        low, high = assignment_at_zero(f, cost), assignment_at_infinity(f, ground)
        cuts = Bracket.of(low, high, p)
        cost_low, cost_high = cuts.slope
        empty = cost_high > limit
        if empty.any():
            raise InputDataError(
                f"The Wasserstein ball of radius {radius[empty][0].item()} is empty: "
                f"the cheapest plan costs {cost_high[empty][0].item()}. Let candidates "
                "contain the reference atoms, or enlarge the radius."
            )
        # Where the dearest plan costs no more than the radius, the multiplier is zero.
        saturated, least = cost_low <= limit, 1e-14 * f.amax(-1)
        few, is_open = are_few(f, cost), ~saturated
        rows = torch.arange(len(f), device=f.device)
        here = cuts.rows(rows)
        problem = f, p, p > 0, limit, least
        for _ in range(_MAX_STEPS):
            # An atom with the same target in both cuts keeps it in between, where its
            # concave term is linear. So atoms settle, and ever fewer are evaluated.
            moving = (here.target[0] != here.target[1]) & problem[2]
            is_open = is_open & moving.any(-1)
            # Of few pairs those of rows that are done are evaluated as well.
            if not bool(is_open.any() if few else is_open.all()):
                cuts.put(rows, here)
                kept = is_open.nonzero().squeeze(-1)
                rows, here, moving = rows[kept], here.rows(kept), moving[kept]
                problem = tuple(part[kept] for part in problem)
                is_open = is_open[kept]
            if not len(rows):
                break
            scores, mass, _, most, least = problem  # of these rows
            # Maximum of the model: value + lambda * cost is the same for both cuts.
            (low_value, high_value), (low_slope, high_slope) = here.value, here.slope
            slope_gap = (low_slope - high_slope).clamp_min(torch.finfo(f.dtype).tiny)
            crossing = ((high_value - low_value) / slope_gap).clamp_min(0.0)
            # New cut at lambda: every atom goes to argmin_j f_j + lambda C_ij.
            plan = moved(here.target[0], scores, cost, crossing, moving, ground.line)
            value, slope = plan.cut(mass)
            # Upper bound: the mixture of both plans is feasible, and worth the model's
            # maximum. Lower bound: the dual at lambda. The gap is their difference.
            above = (high_value - value) + crossing * (high_slope - slope)
            found = torch.stack([crossing, above])
            here = here._replace(crossing=torch.where(is_open, found, here.crossing))
            # A cut below the crossing has a slope between the two, but for rounding;
            # else the crossing is the maximum. It replaces the cut on its side.
            between = (slope < low_slope) & (slope > high_slope)
            is_open = is_open & between & (above > least)
            is_high = slope <= most
            sides = is_open & torch.stack([~is_high, is_high])
            here = here.with_cut(sides, plan.target, value, slope)
        cuts.put(rows, here)  # where the steps did not do
        q, direction = mixed_plan(p, radius, saturated, cuts, f.shape[-1])
        lam, gap = cuts.crossing
        return q, lam, direction, gap

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        cost = self._ground.detach().cpu().numpy()
        plan = cp.Variable(cost.shape, nonneg=True)
        return [
            p[: len(cost)] == cp.sum(plan, axis=1),
            q == cp.sum(plan, axis=0),
            cp.sum(cp.multiply(cost, plan)) <= radius,
        ]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The optimal transport cost, by linear programming (HiGHS), row by row.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x m``.

        Returns:
            The distances, ``...``, to rounding, relative to the largest cost; on the
            CPU, without gradients.

        Raises:
            InputDataError: Negative, not finite, or zero-sum weights.
            RuntimeError: HiGHS found no optimum.
        """
        p, q = check_distributions(p, q)
        self._check_sizes(q.shape[-1], p.shape[-1])
        self._check_rows(p)
        batch = torch.broadcast_shapes(p.shape[:-1], q.shape[:-1])
        cost = self._ground.detach().double().cpu().numpy()
        sources, targets = (
            x.expand(*batch, -1).reshape(-1, x.shape[-1]).detach().cpu().numpy()
            for x in (p, q)
        )
        pairs = zip(sources, targets, strict=True)
        found = [_transport(source, target, cost) for source, target in pairs]
        return torch.tensor(found, dtype=torch.double).reshape(batch)


def _transport(p: np.ndarray, q: np.ndarray, cost: np.ndarray) -> float:
    """The cost of the cheapest plan from ``p``, ``n``, to ``q``, ``m``."""
    sources = p.nonzero()[0]
    p, cost = p[sources], cost[sources]
    n, m = cost.shape
    largest = cost.max() or 1.0
    masses = kron(eye_array(n), np.ones((1, m))), kron(np.ones((1, n)), eye_array(m))
    # One of the n + m equalities follows from the others, and would contradict them by
    # rounding. That of the largest weight is left out: rounding matters least there.
    kept = np.arange(n + m) != n + q.argmax()
    solved = linprog(
        cost.ravel() / largest,
        A_eq=csr_array(vstack(masses))[kept],
        b_eq=_UNIT_MASS * np.concatenate([p, q])[kept],
        method="highs",
        options=dict.fromkeys(
            ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10
        ),
    )
    if solved.status != 0:
        raise RuntimeError(f"No distance: HiGHS ended with {solved.message!r}.")
    return solved.fun * largest / _UNIT_MASS
