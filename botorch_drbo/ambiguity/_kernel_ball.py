"""Linear scores over the simplex and the ball of a kernel: one problem, its methods.

``min { q.f : q in the simplex, |L'(q - p)| <= radius }`` with ``K = L L'``. In turn the
minimum without ``q >= 0`` in closed form, the active set of a coarse problem or of the
last call, and an interior point. A row is done where its duality gap proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo.ambiguity._active_set import Kernel, pivot
from botorch_drbo.ambiguity._interior_point import (
    EARLY,
    TOLERANCE,
    length,
    lower_bound,
    minimise,
)

_DROPPED = 1e-9  # of the squared radius that the dropped columns may take
_FIRST_DROPPED = 1e-7  # the same, in the first solve
_FIRST_GAP = 1e-9  # duality gap of the first solve above which there is a second
_NEAR_ZERO = 1e-6  # of the kernel's largest distance: a radius just above zero
_LARGER_RADIUS = 1e-4  # the same, of the radius at which that is solved instead
_ROUNDING_GAP = (
    1e-6  # gap, relative to what the radius costs, that rounding leaves there
)
_CLOSED_FORM_GAP = 1e-12  # duality gaps up to which the answer of a method is kept
_SCALED_GAP = 1e-10
_ACTIVE_SET_GAP = 1e-11
_WELL_CONDITIONED = (
    1e6  # condition number up to which the active set needs no good guess
)
_INVERTIBLE = 1e6  # condition number up to which the inverse is accurate
_COARSE = 0.5  # share of the columns in the coarse problem
_FEW_COLUMNS = 32  # for fewer columns the coarse problem saves no time
_COARSE_DROPPED = 1e-3  # as _DROPPED, of the coarse problem
_COARSE_GAP = 1e-8  # duality gap of the coarse problem
_KEPT = 512  # problems whose active sets are remembered
_ACTIVE_WEIGHT = 1e-9  # weight from which on an atom is in the active set


@dataclass(frozen=True)
class WarmStart:
    """Active sets of problems that were solved, by their scores."""

    # Scores from zero to one, ``b x n``.
    f: Tensor
    # The atoms that carried mass, ``b x n``.
    active: Tensor

    @classmethod
    def of(cls, values: Tensor, weights: Tensor) -> WarmStart:
        """Scores and worst-case weights, ``... x n``."""
        f, _ = in_unit_range(values.reshape(-1, values.shape[-1]))
        return cls(f, weights.reshape(f.shape) > _ACTIVE_WEIGHT)

    def after(self, earlier: WarmStart | None) -> WarmStart:
        """These and the problems before them, the newest first, as many as are kept."""
        if earlier is None:
            return self
        pairs = (self.f, earlier.f), (self.active, earlier.active)
        return WarmStart(*(torch.cat([a, b.to(a)])[:_KEPT] for a, b in pairs))

    def nearest(self, f: Tensor) -> Tensor:
        """The active set of the problem with the nearest scores, ``b' x n``."""
        # The set may have been moved to another device since the last call.
        active = self.active.to(f.device)
        return active[torch.cdist(f, self.f.to(f)).argmin(-1)]


class Answers(NamedTuple):
    """What a method finds for each row."""

    # Weights, ``b x n``.
    q: Tensor
    # Of the radius, ``b x 1``.
    multiplier: Tensor
    # In the reference weights, ``b x n``.
    gradient: Tensor
    # The derivative of ``q`` in the radius, ``b x n``.
    direction: Tensor
    # What is proved, ``b x 1``: infinite where the method failed.
    gap: Tensor

    def open_above(self, tolerance: float) -> Tensor:
        """Rows whose gap is larger, ``b``."""
        return (self.gap > tolerance).squeeze(-1)

    def put(self, rows: Tensor, other: Answers) -> None:
        """Write over some of the rows."""
        for whole, part in zip(self, other, strict=True):
            whole[rows] = part

    def improve(self, rows: Tensor, other: Answers) -> None:
        """Write over those of some rows whose gap is not smaller, or NaN."""
        better = ~(other.gap > self.gap[rows])
        for whole, part in zip(self, other, strict=True):
            whole[rows] = torch.where(better, part, whole[rows])


Stage = tuple[Callable[[Tensor], Tensor], bool]
"""From rows to guesses of their active sets, and whether atoms go one by one."""


class KernelBallProblem:
    """One kernel, for scores from zero to one and a radius per row, ``b x 1``."""

    def __init__(self, factor: Tensor, spectrum: Tensor) -> None:
        self.factor, self.spectrum = factor, spectrum
        self.white = factor / spectrum  # eigenvectors over singular values
        self.largest = factor.square().sum(-1).max().sqrt()

    def saturated(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """Where the nearest point mass of score zero is in the ball, and that mass."""
        # |L'(e_i - p)|^2 = K_ii - 2 (K p)_i + p'K p: the last term is the same for all.
        mean = p @ self.factor  # b x r
        squared = self.factor.square().sum(-1) - 2 * mean @ self.factor.mT
        nearest = torch.where(f == 0, squared, torch.inf).argmin(-1, keepdim=True)
        vertex = torch.zeros_like(p).scatter(-1, nearest, 1.0)
        return (self._distance(vertex - p) <= radius).squeeze(-1), vertex

    def solve(
        self, f: Tensor, p: Tensor, radius: Tensor, warm_start: Tensor | None
    ) -> Answers:
        """Each row by the cheapest method that proves its answer.

        The active set of a similar problem (``warm_start``) is tried first, and kept if
        its gap is small: it saves time and changes no more than rounding.
        """
        problem = f, p, radius
        # Every answer is certified by its own duality gap, so the order of the methods
        # is a matter of time alone: the cheaper first, and each on what is left open.
        found, free = self._closed_form(*problem)
        unsolved = found.open_above(_CLOSED_FORM_GAP)
        if not unsolved.any():
            return found
        # Away from radius zero: the active-set method, warm-started where a similar
        # problem was solved before; then from guesses.
        is_near_zero = (radius < _NEAR_ZERO * self.largest).squeeze(-1)
        rows = (unsolved & ~is_near_zero).nonzero().squeeze(-1)
        stages: list[Stage] = []
        if warm_start is not None:
            stages = [(lambda rows: warm_start[rows], True)]
        rows = self._run(stages, rows, problem, found)
        if len(rows):
            self._run(self._guesses(problem, rows, free), rows, problem, found)
        # Just above radius zero: the active-set method at a larger radius, scaled.
        # There q - p is not far from the rounding of the weights themselves.
        rows = (unsolved & is_near_zero).nonzero().squeeze(-1)
        if len(rows) and self.condition < _WELL_CONDITIONED:
            near = self._active_set_near_zero(f[rows], p[rows], radius[rows])
            found.improve(rows, near)
            is_near_zero[rows] = near.gap.squeeze(-1) == torch.inf  # not settled
        # The interior-point method for the rest.
        unsolved = unsolved & (found.open_above(_ACTIVE_SET_GAP) | is_near_zero)
        rows = unsolved.nonzero().squeeze(-1)
        if len(rows):
            found.improve(rows, self._interior_point(f[rows], p[rows], radius[rows]))
        return found

    def _guesses(
        self, problem: tuple[Tensor, Tensor, Tensor], rows: Tensor, free: Tensor
    ) -> list[Stage]:
        """Guesses: the active set of the closed form, and that of a coarse problem."""
        # Far from singular, any guess leads to the optimum in a few exchanges.
        stages: list[Stage] = []
        if self.condition < _WELL_CONDITIONED:
            stages.append((lambda rows: free[rows], False))
        # A problem of the leading columns costs far less, and its active set is nearly
        # the right one.
        radius, half = problem[2][rows], max(1, int(_COARSE * len(self.factor)))
        if self._num_columns(radius, _FIRST_DROPPED) > max(half, _FEW_COLUMNS):
            rank = min(half, self._num_columns(radius, _COARSE_DROPPED))
            coarse = partial(self._coarse_active_set, *problem, rank)
            stages.append((coarse, False))
        return stages

    def _run(
        self,
        stages: list[Stage],
        rows: Tensor,
        problem: tuple[Tensor, Tensor, Tensor],
        found: Answers,
    ) -> Tensor:
        """Active sets from one guess after the other; the rows that are left open."""
        f, p, radius = problem
        for guess, one_by_one in stages:
            if not len(rows):
                break
            parts = f[rows], p[rows], radius[rows], guess(rows)
            found.improve(rows, self._active_set(*parts, one_by_one))
            rows = rows[found.open_above(_ACTIVE_SET_GAP)[rows]]
        return rows

    @cached_property
    def condition(self) -> float:
        """The condition number of the kernel among vectors of sum zero."""
        return (self.spectrum[0] / self.spectrum[-1]).item()

    @cached_property
    def _kernel(self) -> Kernel:
        # d' 1 1' d = 0 for d = q - p: a multiple of 1 1' makes the matrix regular.
        matrix = self.factor @ self.factor.mT + self.spectrum[0] / len(self.factor)
        inverse = self.white @ self.white.mT if self.condition < _INVERTIBLE else None
        return Kernel(self.factor, self.white, matrix, inverse)

    def _closed_form(
        self, f: Tensor, p: Tensor, radius: Tensor
    ) -> tuple[Answers, Tensor]:
        """The minimum without ``q >= 0``, ``q = p - radius K^+ f / |L^+ f|``.

        Its gap is infinite where a weight is negative. Also which weights are positive.
        """
        # Cauchy-Schwarz: f.d is least, among |L'd| <= 1, at -K^+ f / |L^+ f|.
        whitened = f @ self.white  # b x r
        slope = length(whitened)
        direction = -(whitened / slope) @ self.white.mT
        q = p + radius * direction
        positive = q > 0
        # At radius zero no weight is negative yet, but those at zero may be leaving.
        infeasible = ((q < 0) | ((p == 0) & (direction < 0))).any(-1, keepdim=True)
        # A slope of zero makes the gap NaN: then nothing is proved.
        u = -slope * (whitened / slope)
        q, gap = self._certify(f, p, q, u, radius)
        gap = torch.where(infeasible | gap.isnan(), torch.inf, gap)
        return Answers(q, slope, -(u @ self.factor.mT), direction, gap), positive

    def _coarse_active_set(
        self, f: Tensor, p: Tensor, radius: Tensor, rank: int, rows: Tensor
    ) -> Tensor:
        """The active set of the low-rank problem with the largest columns only."""
        f, p, radius, factor = f[rows], p[rows], radius[rows], self.factor[:, :rank]
        best = minimise(f, p, factor, radius, _COARSE_GAP, _COARSE_GAP)
        # Strict complementarity: the weight against the slack of its multiplier.
        score = f + best.u @ factor.mT
        slack = score - (best.q * score).sum(-1, keepdim=True)
        return best.q > slack.clamp_min(_CLOSED_FORM_GAP)

    def _active_set(
        self,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        guess: Tensor,
        one_by_one: bool,
    ) -> Answers:
        """The active-set method; the gap is infinite where it did not converge."""
        best = pivot(f, p, radius, guess, self._kernel, one_by_one=one_by_one)
        # Active weights may be below zero by the tolerance of the method.
        q = best.q.clamp_min(0.0)
        q, gap = self._certify(f, p, q / q.sum(-1, keepdim=True), best.u, radius)
        gap = torch.where(best.settled[:, None], gap, torch.inf)
        gradient = -(best.u @ self.factor.mT)
        return Answers(q, length(best.u), gradient, best.direction, gap)

    def _active_set_near_zero(self, f: Tensor, p: Tensor, radius: Tensor) -> Answers:
        """The active-set method just above radius zero, from the support of ``p``.

        It is solved at a larger radius and scaled: as long as all atoms of the
        reference keep some mass, ``q - p`` is linear in the radius down to zero.
        """
        # Every atom with weight is active there, so that is the first guess.
        larger = radius.clamp_min(_LARGER_RADIUS * self.largest)
        found = pivot(f, p, larger, p > 0, self._kernel)
        multiplier = length(found.u)
        q, gap = self._certify(f, p, found.q, found.u, larger)
        # Down to zero no active weight changes its sign: the path is a line.
        linear = ((found.q > 0) | (p == 0)).all(-1) & found.settled
        valid = linear[:, None] & (gap <= _ROUNDING_GAP * larger * multiplier)
        q, gap = self._certify(f, p, p + radius / larger * (q - p), found.u, radius)
        gap = torch.where(radius == 0, 0.0, gap)  # q is p there, by definition
        gradient = torch.where(radius == 0, f, -(found.u @ self.factor.mT))
        gap = torch.where(valid & (gap <= _SCALED_GAP), gap, torch.inf)
        return Answers(q.clamp_min(0.0), multiplier, gradient, found.direction, gap)

    def _interior_point(self, f: Tensor, p: Tensor, radius: Tensor) -> Answers:
        nearly_zero = _NEAR_ZERO * self.largest
        larger = radius.clamp_min(nearly_zero)
        # First with few columns, r: that does for most rows, and a step costs n r^2.
        found = self._solve_at(f, p, radius, larger, _FIRST_DROPPED)
        if self._num_columns(larger, _FIRST_DROPPED) < self._num_columns(
            larger, _DROPPED
        ):
            self._refine(found.gap > _FIRST_GAP, found, f, p, radius, larger)
        # Just above zero the scaled weights may be infeasible.
        unsolved = (radius > 0) & (radius < nearly_zero) & (found.gap > _SCALED_GAP)
        self._refine(unsolved, found, f, p, radius, radius)
        return found

    def _refine(
        self,
        mask: Tensor,
        found: Answers,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        larger: Tensor,
    ) -> None:
        """Solve some rows once more, with all the columns that matter."""
        rows = mask.squeeze(-1).nonzero().squeeze(-1)
        if len(rows):
            parts = f[rows], p[rows], radius[rows], larger[rows]
            found.put(rows, self._solve_at(*parts, _DROPPED))

    def _num_columns(self, radius: Tensor, dropped: float) -> int:
        """The rank: columns that the smallest radius can tell from zero."""
        # |q - p|^2 <= 2: columns of eigenvalues up to this one are worth no more than
        # `dropped` of the squared radius.
        smallest = 0.5 * dropped * radius.min().square()
        return max(1, int((self.spectrum > smallest).sum()))

    def _solve_at(
        self,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        larger: Tensor,
        dropped: float,
    ) -> Answers:
        """Solve at a radius that is not smaller; scale what is found to ours.

        Just above zero ``q - p`` is linear in the radius, and a radius that is not too
        small has the better numbers. The gap tells where that is wrong.
        """
        # Columns that the radius cannot tell from zero are left out: the lower bound
        # stays one, and what they cost the upper bound is in the gap.
        factor = self.factor[:, : self._num_columns(larger, dropped)]
        optimum = minimise(f, p, factor, larger, EARLY, TOLERANCE)
        u = optimum.u
        gradient, multiplier = -(u @ factor.mT), length(u)
        # Rescale to f.dq/d(radius) = -multiplier, the envelope theorem.
        descent = (optimum.direction * f).sum(-1, keepdim=True)
        valid = (descent < 0) & descent.isfinite()
        direction = optimum.direction * torch.where(valid, -multiplier / descent, 0.0)
        direction = torch.where(valid, direction, 0.0)
        q = p + (radius / larger) * (optimum.q - p)
        q, gap = self._certify(f, p, q, u, radius)
        # By definition q is p at zero, where only the slope was asked.
        zero = radius == 0
        q, gap = torch.where(zero, p, q), torch.where(zero, 0.0, gap)
        gradient = torch.where(zero, f, gradient)
        return Answers(q, multiplier, gradient, direction, gap)

    def _certify(
        self, f: Tensor, p: Tensor, q: Tensor, u: Tensor, radius: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pull ``q`` into the ball; its duality gap with ``u``."""
        # Primal: on the segment to p, which is in the ball. Dual: any u. Their gap
        # bounds the error of the value, whatever method found them.
        distance = self._distance(q - p)
        share = torch.where(distance > radius, radius / distance, 1.0)
        q = p + share * (q - p)
        factor = self.factor[:, : u.shape[-1]]
        gap = (q * f).sum(-1, keepdim=True) - lower_bound(f, p, u, factor, radius)
        return q, gap.clamp_min(0.0)

    def _distance(self, difference: Tensor) -> Tensor:
        return length(difference @ self.factor)


def in_unit_range(values: Tensor) -> tuple[Tensor, Tensor]:
    """Scores ``b x n`` from zero to one, and their range, ``b x 1``.

    Only differences of scores matter; a large offset would cost digits.
    """
    f = values - values.amin(-1, keepdim=True)
    span = f.amax(-1, keepdim=True)
    return f / torch.where(span > 0, span, 1.0), span


_LARGEST_RANK = 0.25  # share of the columns from which on all of them are taken
_ROUNDING = 4.0  # of the unit roundoff: a remaining diagonal that is rounding
_BACKWARD = 16.0  # of the unit roundoff and the matrix: as good as `eigh`
_FAR_BELOW = 1e-7  # of the jitter, that rounding may have


class CentredKernel(Module):
    r"""``K + jitter I``, seen by vectors ``d`` that sum to zero.

    .. math:: d^\top (K + j I) d = \|F^\top d\|^2 + \text{rest} \|d\|^2, \qquad
        F = V \,\mathrm{diag}(\sqrt{s})

    with orthonormal eigenvectors ``V``, ``n x r``, that sum to zero. Either these are
    all, ``r = n - 1``, the jitter is in the eigenvalues ``s``, and the rest is zero. Or
    they are those of the smooth part ``K`` alone, which has few: then the rest is the
    jitter, and products cost ``n r`` in place of ``n^2``.
    """

    # ``F``, ``n x r``.
    factor: Tensor
    # ``s``, ``r``, falling.
    spectrum: Tensor

    def __init__(self, factor: Tensor, spectrum: Tensor, rest: float) -> None:
        super().__init__()
        self.rest = rest
        self.register_buffer("factor", factor)
        self.register_buffer("spectrum", spectrum)

    @classmethod
    def of_all_columns(cls, matrix: Tensor) -> CentredKernel:
        """All eigenvectors of a symmetric matrix, the jitter included."""
        # Vectors of sum zero see K as B'K B, with B an orthonormal basis of them.
        basis = _basis(matrix)
        inner = basis.mT @ matrix @ basis
        spectrum, vectors = torch.linalg.eigh(0.5 * (inner + inner.mT))
        spectrum = spectrum.flip(-1).clamp_min(0.0)
        # What is below rounding counts as rounding: no column vanishes, and one over an
        # eigenvalue is finite.
        if len(spectrum):
            spectrum = spectrum.clamp_min(torch.finfo(spectrum.dtype).eps * spectrum[0])
        return cls((basis @ vectors.flip(-1)) * spectrum.sqrt(), spectrum, 0.0)

    @classmethod
    def of_few_columns(cls, matrix: Tensor, jitter: float) -> CentredKernel | None:
        """The eigenvectors of ``matrix`` alone, or None if it takes many.

        What is left out of the matrix is computed: in norm it is a rounding error of
        the matrix, and far below the jitter. So the matrix is also positive
        semi-definite up to that error.
        """
        # Kernels of smooth functions on many contexts have few eigenvalues that are not
        # rounding, and the jitter makes up for the others.
        columns = _partial_cholesky(matrix, int(_LARGEST_RANK * len(matrix)))
        if columns is None:
            return None
        # A posteriori: what the columns miss must be far below the jitter.
        left_out = torch.addmm(matrix, columns, columns.mT, alpha=-1.0)
        rounding = _BACKWARD * torch.finfo(matrix.dtype).eps
        rounding = rounding * torch.linalg.matrix_norm(matrix).item()
        if not (left_out.norm().item() <= rounding <= _FAR_BELOW * jitter):
            return None
        # Vectors of sum zero see centred columns: a mean makes no difference.
        vectors, roots, _ = torch.linalg.svd(
            columns - columns.mean(0), full_matrices=False
        )
        # Without the columns whose sum is as uncertain as they are small.
        kept = roots.square() > rounding
        factor = (vectors * roots)[:, kept]
        return cls(factor, roots[kept].square(), jitter)

    @property
    def vectors(self) -> Tensor:
        """``V``, ``n x r``; a column without an eigenvalue is zero."""
        roots = self.spectrum.sqrt()
        return self.factor / torch.where(roots > 0, roots, torch.inf)

    def slope(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """``max { -f'd : 1'd = 0, d'(K + jI)d <= 1 }``, ``... x 1``, and that ``d``."""
        vectors = self.vectors.to(f)
        eigenvalues = self.spectrum.to(f) + self.rest
        eigenvalues = torch.where(eigenvalues > 0, eigenvalues, torch.inf)
        centred = f - f.mean(-1, keepdim=True)
        # |(K + jI)^-1/2 f| in the eigenvectors: a sum of squares over eigenvalues.
        inside = centred @ vectors  # ... x r
        slope = torch.linalg.vector_norm(inside / eigenvalues.sqrt(), 2, -1, True)
        raised = (inside / eigenvalues) @ vectors.mT
        if self.rest:
            # What the columns do not reach. It is divided by little: a difference of
            # squares would be rounding only.
            outside = centred - inside @ vectors.mT
            norm = torch.linalg.vector_norm(outside, 2, -1, True)
            slope = torch.hypot(slope, norm / self.rest**0.5)
            raised = raised + outside / self.rest
        return slope, -raised / torch.where(slope > 0, slope, 1.0)

    def squared_distances(self, p: Tensor) -> Tensor:
        """``d'(K + jI)d`` of ``d = p - e_i``, ``... x n``, up to a number per row."""
        factor = self.factor.to(p)
        squares = factor.square().sum(-1) - 2 * (p @ factor) @ factor.mT
        return squares - 2 * self.rest * p if self.rest else squares

    def distance(self, difference: Tensor) -> Tensor:
        """``sqrt(d'(K + jI)d)``, ``... x 1``, of ``d``, ``... x n``, that sum to zero.

        The norm of a product loses half as many digits as the root of a square.
        """
        factor = self.factor.to(difference)
        norm = torch.linalg.vector_norm(difference @ factor, 2, -1, True)
        if self.rest:
            own = torch.linalg.vector_norm(difference, 2, -1, True)
            norm = torch.hypot(norm, self.rest**0.5 * own)
        return norm

    def product(self, difference: Tensor) -> Tensor:
        """``(K + jI) d`` up to a number per row, of ``d``, ``... x n``."""
        factor = self.factor.to(difference)
        product = (difference @ factor) @ factor.mT
        return product + self.rest * difference if self.rest else product


def _partial_cholesky(matrix: Tensor, most: int) -> Tensor | None:
    """``B`` with ``B B' = matrix`` up to rounding, ``n x r``; None if ``r > most``.

    Diagonal pivots: the columns are those of the largest diagonal that remains.
    """
    # Harbrecht, Peters and Schneider (2012): of a positive matrix the largest entry
    # that remains is on the diagonal, so that alone has to be updated.
    remaining = matrix.diagonal().clone()
    tolerance = _ROUNDING * torch.finfo(matrix.dtype).eps * remaining.max()
    columns = matrix.new_zeros(len(matrix), most)
    for k in range(most):
        pivot = int(remaining.argmax())
        largest = remaining[pivot]
        if largest <= tolerance:
            return columns[:, :k]
        # One column of what is left; its square root is the next one of the factor.
        column = matrix[:, pivot] - columns[:, :k] @ columns[pivot, :k]
        columns[:, k] = column / largest.sqrt()
        remaining = remaining - columns[:, k].square()
    return None


def _basis(matrix: Tensor) -> Tensor:
    """An orthonormal basis ``n x (n - 1)`` of the vectors that sum to zero."""
    n = len(matrix)
    # Householder's reflection of the first axis onto the direction of ones.
    normal = torch.full_like(matrix[0], n**-0.5)
    normal[0] += 1.0
    eye = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    return (eye - 2 * torch.outer(normal, normal) / normal.square().sum())[:, 1:]
