"""The maximum-mean-discrepancy ball: distributions that a kernel cannot tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity._active_set import Kernel, pivot
from botorch_drbo.ambiguity._interior_point import (
    EARLY,
    TOLERANCE,
    lower_bound,
    minimise,
)
from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.simplex import check_distributions
from botorch_drbo.ambiguity.solution import RobustValue, Solution
from botorch_drbo.ambiguity.unseen import Prices

if TYPE_CHECKING:
    import cvxpy as cp

_SYMMETRY = 1e-10  # relative to the largest entry
_NEGATIVE = 1e-10  # relative to the largest eigenvalue
_EXACT_GAP = 1e-8  # of the scores' range: within the accuracy of the kernel matrix
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
_ACTIVE_WEIGHT = 1e-9  # weight from which on an atom is in the active set
_CHUNK_ELEMENTS = 2**21  # 16 MiB of float64 per temporary


class MaximumMeanDiscrepancy(AmbiguitySet):
    r"""All distributions whose kernel mean is near the reference's.

    .. math:: d(p, q) = \sqrt{(p - q)^\top K (p - q)} \le \epsilon

    The radius has the units of the square root of the kernel matrix: with a kernel
    of variance one, no two distributions are farther apart than ``sqrt(2)``. Mass may
    move onto atoms of reference weight zero.

    Each row is solved by the first of these that succeeds. A point mass on the lowest
    score that lies in the ball is the answer. If the closed form without ``q >= 0``
    happens to have no negative weight, it is the answer (small radius,
    well-conditioned matrix). A primal-dual active-set method
    [Hintermuller2002activeset]_ finds which weights are zero, from the closed form or
    from a low-rank version of what follows. The other rows go to a primal-dual
    interior-point method ([NesterovTodd1997]_, [Mehrotra1992]_), with the dual

    .. math:: v = \max_{u \in R^r} \min_i (f + L u)_i - p^\top L u - \epsilon \|u\|

    where ``K = L L'`` has as many columns as the radius can tell from zero: about 20
    for a smooth kernel on a grid of 100. Each answer carries a certificate, its duality
    gap: ``q`` bounds the value from above and ``u`` from below.

    Eigenvalues below ``2e-16`` of the largest are rounding errors of ``K``, and are
    raised to it. So at radius zero ``q`` is ``p`` even if ``K`` is singular, and for a
    radius below ``1e-7`` a nearly singular matrix says little: use a kernel matrix with
    more jitter there.

    Args:
        radius: The largest distance, a scalar ``>= 0``.
        kernel_matrix: The kernel between the contexts, ``n x n``.

    Raises:
        InputDataError: Not finite, not symmetric, or with a negative eigenvalue.
        BotorchTensorDimensionError: Not a square matrix.

    Example:
        >>> points = torch.tensor([[0.0], [0.5], [1.0]])
        >>> kernel_matrix = torch.exp(-torch.cdist(points, points).square())
        >>> ball = MaximumMeanDiscrepancy(radius=0.1, kernel_matrix=kernel_matrix)
        >>> weights = torch.full((3,), 1 / 3)
        >>> ball.worst_case(torch.tensor([0.0, 1.0, 4.0]), weights).value
        tensor(1.2131)

    The ball of [Kirschner2020drbo]_ and [Tay2022minimax]_.
    """

    holds_reference = True
    kernel_matrix: Tensor
    factor: Tensor
    spectrum: Tensor
    _last: _WarmStart | None = None

    def __init__(self, radius: float | Tensor, kernel_matrix: Tensor) -> None:
        super().__init__(radius)
        check_finite(kernel_matrix, "kernel_matrix")
        shape = tuple(kernel_matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise BotorchTensorDimensionError(
                f"`kernel_matrix` must be an `n x n` matrix, got shape {shape}."
            )
        matrix = kernel_matrix.detach().double()
        lopsided = (matrix - matrix.mT).abs().max()
        if lopsided > _SYMMETRY * matrix.abs().max():
            raise InputDataError(
                "`kernel_matrix` must be symmetric, got entries that differ by "
                f"{lopsided.item():.3g}. Use `0.5 * (K + K.mT)` if that is rounding."
            )
        matrix = 0.5 * (matrix + matrix.mT)
        eigenvalues = torch.linalg.eigvalsh(matrix)
        if eigenvalues[0] < -_NEGATIVE * eigenvalues[-1].clamp_min(0.0):
            raise InputDataError(
                "`kernel_matrix` must be positive semi-definite, got a smallest "
                f"eigenvalue of {eigenvalues[0].item():.3g} and a largest of "
                f"{eigenvalues[-1].item():.3g}. Add jitter to its diagonal."
            )
        # p - q sums to zero, so only the part of K that is orthogonal to 1 matters.
        spectrum, vectors = torch.linalg.eigh(_without_ones(matrix))
        spectrum = spectrum.flip(-1).clamp_min(0.0)
        if len(spectrum):
            spectrum = spectrum.clamp_min(torch.finfo(spectrum.dtype).eps * spectrum[0])
        basis = _basis(matrix) @ vectors.flip(-1)
        self.register_buffer("kernel_matrix", matrix)
        self.register_buffer("spectrum", spectrum)  # n - 1, falling
        self.register_buffer("factor", basis * spectrum.sqrt())  # n x (n - 1)

    def __getstate__(self) -> dict[str, Any]:
        """Without the warm start: copies and pickles begin without it."""
        return {k: v for k, v in self.__dict__.items() if k != "_last"}

    @property
    def diameter(self) -> float:
        """That of two atoms: the distance is a norm of ``p - q``."""
        return torch.cdist(self.factor, self.factor).max().item()

    def prices(self, robust: RobustValue, weights: Tensor) -> Prices:
        r"""One row: the multiplier times the slope of the distance, where mass arrives.

        .. math:: a(c) = \frac{\lambda}{d(p, q)} \sum_j (q_j - p_j) k(c_j, c)

        Args:
            robust: The worst case on the list, one row.
            weights: The reference weights, ``n``.

        Returns:
            The prices.
        """
        distance = self.distance(weights, robust.weights)
        if robust.multiplier == 0 or distance == 0:
            return Prices.none(weights)
        difference = robust.weights - weights  # n
        anchors = difference.nonzero().mT  # 1 x a
        return Prices((robust.multiplier / distance * difference)[anchors], anchors)

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""A lower bound in closed form: the best of a few points of the dual.

        .. math:: \min_i (f + L u)_i - p^\top L u - \epsilon \|u\|, \qquad
            u = 0 \text{ or } -L_k^+ f, \quad k = 1, 2, 4, \dots, n - 1

        with ``L_k`` the ``k`` largest columns of ``L``. Each point bounds the value
        from below. The last is the minimum without ``q >= 0``, which for a smooth
        kernel and large radii lies far below the value; the first is the lowest score.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            Lower bounds of the value, ``...``, without a gradient.
        """
        self._check(values, weights)
        return self._solution(self._bound, values, weights, self.radius).to(values)

    def _bound(self, values: Tensor, weights: Tensor, radius: Tensor) -> Tensor:
        low = values.amin(-1, keepdim=True)
        f, factor = values - low, self.factor.to(values)
        u = -f @ (factor / self.spectrum.to(values))  # ... x (n - 1)
        best = torch.zeros_like(low)
        count, rank = 1, factor.shape[-1]
        while count < 2 * rank:
            point, columns = u[..., :count], factor[:, :count]
            found = lower_bound(f, weights, point, columns, radius)
            best = torch.maximum(best, found)
            count *= 2
        return (low + best).squeeze(-1)

    def free_slope(self, values: Tensor) -> tuple[Tensor, Tensor]:
        r"""How fast the value falls in the radius if weights may become negative.

        .. math:: S = \max \{ -f^\top d : 1^\top d = 0,\ d^\top K d \le 1 \}

        Args:
            values: Scores, ``... x n``.

        Returns:
            The slope ``...``, and the direction ``d`` in which it is met, ``... x n``.
        """
        white = (self.factor / self.spectrum).to(values)
        whitened = values @ white  # ... x (n - 1)
        slope = torch.linalg.vector_norm(whitened, 2, -1, keepdim=True)
        direction = -(whitened / torch.where(slope > 0, slope, 1.0)) @ white.mT
        return slope.squeeze(-1), direction

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        super()._check_sizes(num_values, num_weights)
        if num_values != len(self.factor):
            raise BotorchTensorDimensionError(
                f"The kernel matrix has {len(self.factor)} contexts, got {num_values} "
                "scores."
            )

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The worst-case value alone, warm-started from the last call.

        An ascent solves nearly the same problem again and again: the active set of the
        last one is the warm start. So a value may differ from that of ``worst_case`` by
        its accuracy, 1e-10 of the range of scores.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``, with the gradients of ``worst_case``.
        """
        self._check(values, weights)
        solution = self._solution(self._solve_again, values, weights, self.radius)
        robust = self._robust_value(solution, values, values, weights, self.radius)
        return robust.value

    def _solve_again(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        solution = self._solve_from(values, weights, radius, self._last)
        self._last = _WarmStart.of(values, solution.weights)
        return solution

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By an active set, else by an interior point."""
        return self._solve_from(values, weights, radius, None)

    def _solve_from(
        self, values: Tensor, weights: Tensor, radius: Tensor, last: _WarmStart | None
    ) -> Solution:
        batch, n = values.shape[:-1], values.shape[-1]
        f, span = _in_unit_range(values.reshape(-1, n))
        p = weights.reshape(-1, n)
        p = p / p.sum(-1, keepdim=True)
        q, gradient, direction = p.clone(), torch.zeros_like(p), torch.zeros_like(p)
        multiplier, gap = torch.zeros_like(span), torch.zeros_like(span)
        flat = span.squeeze(-1) == 0
        radius = radius.reshape(-1, 1)
        problem = _Problem(self.factor.to(f), self.spectrum.to(f))
        settled, vertex = problem.saturated(f, p, radius)
        q = torch.where((settled & ~flat)[:, None], vertex, q)
        rows = (~settled & ~flat).nonzero().squeeze(-1)
        num_chunks = -(-len(rows) * n * n // _CHUNK_ELEMENTS)
        for part in rows.tensor_split(max(1, num_chunks)):
            if len(part):
                start = last and last.nearest(f[part])
                found = problem.solve(f[part], p[part], radius[part], start)
                q[part], multiplier[part], gradient[part], direction[part] = found[:4]
                gap[part] = found[4]
        proved = bool((gap <= _EXACT_GAP).all())
        gap = (span * gap).reshape(batch)
        return Solution(
            weights=q.reshape(*batch, n),
            multiplier=(span * multiplier).reshape(batch),
            reference_gradient=lambda: (span * gradient).reshape(*batch, n),
            direction=direction.reshape(*batch, n),
            gap=None if proved else gap,
        )

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        factor = self.factor.detach().cpu().numpy()
        return [cp.norm(factor.T @ (q - p)) <= radius]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The distance of the kernel means, ``sqrt((p - q)' K (p - q))``.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``, in float64.
        """
        p, q = check_distributions(p, q)
        self._check_sizes(q.shape[-1], p.shape[-1])
        # The norm of a product loses half as many digits as the root of a square.
        return torch.linalg.vector_norm((p - q) @ self.factor.to(p), 2, -1)


@dataclass(frozen=True)
class _WarmStart:
    """Active sets of problems that were solved, by their scores.

    Attributes:
        f: Scores from zero to one, ``b x n``.
        active: The atoms that carried mass, ``b x n``.
    """

    f: Tensor
    active: Tensor

    @classmethod
    def of(cls, values: Tensor, weights: Tensor) -> _WarmStart:
        """Scores and worst-case weights, ``... x n``."""
        f, _ = _in_unit_range(values.reshape(-1, values.shape[-1]))
        return cls(f, weights.reshape(f.shape) > _ACTIVE_WEIGHT)

    def nearest(self, f: Tensor) -> Tensor:
        """The active set of the problem with the nearest scores, ``b' x n``."""
        return self.active[torch.cdist(f, self.f.to(f)).argmin(-1)]


class _Problem:
    """One kernel, for scores from zero to one and a radius per row, ``b x 1``."""

    def __init__(self, factor: Tensor, spectrum: Tensor) -> None:
        self.factor, self.spectrum = factor, spectrum
        self.white = factor / spectrum  # eigenvectors over singular values
        self.largest = factor.square().sum(-1).max().sqrt()

    def saturated(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """Where the nearest point mass of score zero is in the ball, and that mass."""
        mean = p @ self.factor  # b x r
        squared = self.factor.square().sum(-1) - 2 * mean @ self.factor.mT
        nearest = torch.where(f == 0, squared, torch.inf).argmin(-1, keepdim=True)
        vertex = torch.zeros_like(p).scatter(-1, nearest, 1.0)
        return (self._distance(vertex - p) <= radius).squeeze(-1), vertex

    def solve(
        self, f: Tensor, p: Tensor, radius: Tensor, warm_start: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Weights, multiplier, reference gradient, direction and gap of each row.

        The active set of a similar problem (``warm_start``) is tried first, and kept if
        its gap is small: it saves time and changes no more than rounding.
        """
        *found, free = self._closed_form(f, p, radius)
        unsolved = (found[-1] > _CLOSED_FORM_GAP).squeeze(-1)
        if not unsolved.any():
            return tuple(found)

        def improve(rows: Tensor, parts: tuple[Tensor, ...]) -> None:
            better = ~(parts[-1] > found[-1][rows])
            for whole, part in zip(found, parts, strict=True):
                whole[rows] = torch.where(better, part, whole[rows])

        # Active-set method, warm-started where a similar problem was solved before.
        is_near_zero = (radius < _NEAR_ZERO * self.largest).squeeze(-1)
        rows = (unsolved & ~is_near_zero).nonzero().squeeze(-1)
        condition = (self.spectrum[0] / self.spectrum[-1]).item()
        if len(rows) and warm_start is not None:
            problem = f[rows], p[rows], radius[rows], warm_start[rows]
            improve(
                rows,
                self._active_set(*problem, self._kernel(condition), one_by_one=True),
            )
            rows = rows[(found[-1][rows] > _ACTIVE_SET_GAP).squeeze(-1)]
        # Then from the closed form's positive weights, and from a low-rank problem.
        if len(rows):
            half = max(1, int(_COARSE * len(self.factor)))
            num_columns = self._num_columns(radius[rows], _FIRST_DROPPED)
            # None: the closed form of the beginning is the guess.
            guesses: list[int | None] = [None] if condition < _WELL_CONDITIONED else []
            if num_columns > max(half, _FEW_COLUMNS):
                guesses.append(
                    min(half, self._num_columns(radius[rows], _COARSE_DROPPED))
                )
            for rank in guesses:
                kernel = self._kernel(condition)
                problem = f[rows], p[rows], radius[rows]
                guess = self._coarse_active_set(*problem, rank) if rank else free[rows]
                improve(rows, self._active_set(*problem, guess, kernel))
                rows = rows[(found[-1][rows] > _ACTIVE_SET_GAP).squeeze(-1)]
                if not len(rows):
                    break
        # Just above radius zero: the active-set method at a larger radius, scaled.
        rows = (unsolved & is_near_zero).nonzero().squeeze(-1)
        if len(rows) and condition < _WELL_CONDITIONED:
            problem = f[rows], p[rows], radius[rows]
            parts = self._active_set_near_zero(*problem, self._kernel(condition))
            improve(rows, parts)
            is_near_zero[rows] = parts[-1].squeeze(-1) == torch.inf  # not settled
        # The interior-point method for the rest.
        unsolved = unsolved & ((found[-1] > _ACTIVE_SET_GAP).squeeze(-1) | is_near_zero)
        rows = unsolved.nonzero().squeeze(-1)
        if len(rows):
            improve(rows, self._interior_point(f[rows], p[rows], radius[rows]))
        return tuple(found)

    def _kernel(self, condition: float) -> Kernel:
        # d' 1 1' d = 0 for d = q - p: a multiple of 1 1' makes the matrix regular.
        matrix = self.factor @ self.factor.mT + self.spectrum[0] / len(self.factor)
        inverse = self.white @ self.white.mT if condition < _INVERTIBLE else None
        return Kernel(self.factor, self.white, matrix, inverse)

    def _closed_form(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        """The minimum without ``q >= 0``, ``q = p - radius K^+ f / |L^+ f|``.

        Its gap is infinite where a weight is negative. Also which weights are positive.
        """
        whitened = f @ self.white  # b x r
        slope = torch.linalg.vector_norm(whitened, 2, -1, keepdim=True)
        direction = -(whitened / slope) @ self.white.mT
        q = p + radius * direction
        positive = q > 0
        # At radius zero no weight is negative yet, but those at zero may be leaving.
        infeasible = ((q < 0) | ((p == 0) & (direction < 0))).any(-1, keepdim=True)
        u = -slope * (whitened / slope)
        q, gap = self._certify(f, p, q, u, radius)
        gap = torch.where(infeasible | gap.isnan(), torch.inf, gap)
        return q, slope, -(u @ self.factor.mT), direction, gap, positive

    def _coarse_active_set(
        self, f: Tensor, p: Tensor, radius: Tensor, rank: int
    ) -> Tensor:
        """The active set of the low-rank problem with the largest columns only."""
        factor = self.factor[:, :rank]
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
        kernel: Kernel,
        *,
        one_by_one: bool = False,
    ) -> tuple[Tensor, ...]:
        """The active-set method; the gap is infinite where it did not converge."""
        best = pivot(f, p, radius, guess, kernel, one_by_one=one_by_one)
        multiplier = torch.linalg.vector_norm(best.u, 2, -1, keepdim=True)
        q = best.q.clamp_min(0.0)
        q, gap = self._certify(f, p, q / q.sum(-1, keepdim=True), best.u, radius)
        gap = torch.where(best.settled[:, None], gap, torch.inf)
        return q, multiplier, -(best.u @ self.factor.mT), best.direction, gap

    def _active_set_near_zero(
        self, f: Tensor, p: Tensor, radius: Tensor, kernel: Kernel
    ) -> tuple[Tensor, ...]:
        """The active-set method just above radius zero, from the support of ``p``.

        It is solved at a larger radius and scaled: as long as all atoms of the
        reference keep some mass, ``q - p`` is linear in the radius down to zero.
        """
        larger = radius.clamp_min(_LARGER_RADIUS * self.largest)
        found = pivot(f, p, larger, p > 0, kernel)
        multiplier = torch.linalg.vector_norm(found.u, 2, -1, keepdim=True)
        q, gap = self._certify(f, p, found.q, found.u, larger)
        linear = ((found.q > 0) | (p == 0)).all(-1) & found.settled
        valid = linear[:, None] & (gap <= _ROUNDING_GAP * larger * multiplier)
        q, gap = self._certify(f, p, p + radius / larger * (q - p), found.u, radius)
        gap = torch.where(radius == 0, 0.0, gap)  # q is p there, by definition
        gradient = torch.where(radius == 0, f, -(found.u @ self.factor.mT))
        gap = torch.where(valid & (gap <= _SCALED_GAP), gap, torch.inf)
        return q.clamp_min(0.0), multiplier, gradient, found.direction, gap

    def _interior_point(
        self, f: Tensor, p: Tensor, radius: Tensor
    ) -> tuple[Tensor, ...]:
        nearly_zero = _NEAR_ZERO * self.largest
        larger = radius.clamp_min(nearly_zero)
        found = self._solve_at(f, p, radius, larger, _FIRST_DROPPED)
        if self._num_columns(larger, _FIRST_DROPPED) < self._num_columns(
            larger, _DROPPED
        ):
            self._refine(found[-1] > _FIRST_GAP, found, f, p, radius, larger)
        # Just above zero the scaled weights may be infeasible.
        unsolved = (radius > 0) & (radius < nearly_zero) & (found[-1] > _SCALED_GAP)
        self._refine(unsolved, found, f, p, radius, radius)
        return found

    def _refine(
        self,
        mask: Tensor,
        found: tuple[Tensor, ...],
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        larger: Tensor,
    ) -> None:
        """Solve some rows once more, with all the columns that matter."""
        rows = mask.squeeze(-1).nonzero().squeeze(-1)
        if len(rows):
            parts = self._solve_at(
                f[rows], p[rows], radius[rows], larger[rows], _DROPPED
            )
            for whole, part in zip(found, parts, strict=True):
                whole[rows] = part

    def _num_columns(self, radius: Tensor, dropped: float) -> int:
        """The rank: columns that the smallest radius can tell from zero."""
        smallest = 0.5 * dropped * radius.min().square()
        return max(1, int((self.spectrum > smallest).sum()))

    def _solve_at(
        self,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        larger: Tensor,
        dropped: float,
    ) -> tuple[Tensor, ...]:
        """Solve at a radius that is not smaller; scale what is found to ours.

        Just above zero ``q - p`` is linear in the radius, and a radius that is not too
        small has the better numbers. The gap tells where that is wrong.
        """
        # Columns that the radius cannot tell from zero are left out: the lower bound
        # stays one, and what they cost the upper bound is in the gap.
        factor = self.factor[:, : self._num_columns(larger, dropped)]
        optimum = minimise(f, p, factor, larger, EARLY, TOLERANCE)
        u = optimum.u
        gradient = -(u @ factor.mT)
        multiplier = torch.linalg.vector_norm(u, 2, -1, keepdim=True)
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
        return q, multiplier, torch.where(zero, f, gradient), direction, gap

    def _certify(
        self, f: Tensor, p: Tensor, q: Tensor, u: Tensor, radius: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pull ``q`` into the ball; its duality gap with ``u``."""
        distance = self._distance(q - p)
        share = torch.where(distance > radius, radius / distance, 1.0)
        q = p + share * (q - p)
        factor = self.factor[:, : u.shape[-1]]
        gap = (q * f).sum(-1, keepdim=True) - lower_bound(f, p, u, factor, radius)
        return q, gap.clamp_min(0.0)

    def _distance(self, difference: Tensor) -> Tensor:
        mean_difference = difference @ self.factor
        return torch.linalg.vector_norm(mean_difference, 2, -1, keepdim=True)


def _in_unit_range(values: Tensor) -> tuple[Tensor, Tensor]:
    """Scores ``b x n`` from zero to one, and their range, ``b x 1``.

    Only differences of scores matter; a large offset would cost digits.
    """
    f = values - values.amin(-1, keepdim=True)
    span = f.amax(-1, keepdim=True)
    return f / torch.where(span > 0, span, 1.0), span


def _basis(matrix: Tensor) -> Tensor:
    """An orthonormal basis ``n x (n - 1)`` of the vectors that sum to zero."""
    n = len(matrix)
    # Householder's reflection of the first axis onto the direction of ones.
    normal = torch.full_like(matrix[0], n**-0.5)
    normal[0] += 1.0
    eye = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    return (eye - 2 * torch.outer(normal, normal) / normal.square().sum())[:, 1:]


def _without_ones(matrix: Tensor) -> Tensor:
    basis = _basis(matrix)
    inner = basis.mT @ matrix @ basis
    return 0.5 * (inner + inner.mT)
