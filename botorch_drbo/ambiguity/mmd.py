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
_PROVED = 1e-8  # of the range of the scores: within the accuracy of the kernel matrix
_DROPPED = 1e-9  # of the squared radius that the dropped columns may take
_TRIED = 1e-7  # the same, at first
_TRUSTED = 1e-9  # gap above which more columns are kept
_NEAR_ZERO = 1e-6  # of the kernel's largest distance: a radius just above zero
_LINEAR = 1e-4  # the same, where a larger one has the better numbers
_ROUNDED = 1e-6  # gap, relative to what the radius costs, that rounding leaves there
_ENOUGH = 1e-12  # gap of the closed form, below which nothing better is sought
_SCALED = 1e-10  # gap above which a scaled answer is sought again, unscaled
_SETTLED = 1e-11  # gap above which the answer of an active set is sought again
_PLAIN = 1e6  # condition below which the active set is found without a good guess
_INVERTED = 1e6  # condition below which the inverse has digits to spare
_COARSE = 0.5  # share of the columns that give a good guess
_FEW_COLUMNS = 32  # so many cost too little for a guess to save time
_GUESSED = 1e-3  # of the squared radius that the columns dropped for a guess may take
_GUESS = 1e-8  # gap of a guess
_CARRIED = 1e-9  # weight from which on an atom is remembered
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
    well-conditioned matrix). An active-set method finds which weights are zero, from
    the closed form or from a coarse version of what follows. The other rows go to an
    interior-point method on the dual

    .. math:: v = \max_{u \in R^r} \min_i (f + L u)_i - p^\top L u - \epsilon \|u\|

    where ``K = L L'`` has as many columns as the radius can tell from zero: about 20
    for a smooth kernel on a grid of 100. Each answer carries a proof: ``q`` bounds the
    value from above and ``u`` from below.

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
    _last: _Solved | None = None

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
        """Leave the last problems behind: copies and pickles begin without them."""
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
        moved = robust.weights - weights  # n
        anchors = moved.nonzero().mT  # 1 x a
        return Prices((robust.multiplier / distance * moved)[anchors], anchors)

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
        seen = values @ white  # ... x (n - 1)
        slope = torch.linalg.vector_norm(seen, 2, -1, keepdim=True)
        direction = -(seen / torch.where(slope > 0, slope, 1.0)) @ white.mT
        return slope.squeeze(-1), direction

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        super()._check_sizes(num_values, num_weights)
        if num_values != len(self.factor):
            raise BotorchTensorDimensionError(
                f"The kernel matrix has {len(self.factor)} contexts, got {num_values} "
                "scores."
            )

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The worst-case value alone; from the last problems, if they were like these.

        An ascent asks nearly the same again and again. Which atoms carried mass the
        last time is tried first, and proved or given up. So a value may differ from
        that of ``worst_case`` by what that is certain to, 1e-10 of the range of scores.

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
        self._last = _Solved.of(values, solution.weights)
        return solution

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By an active set, else by an interior point."""
        return self._solve_from(values, weights, radius, None)

    def _solve_from(
        self, values: Tensor, weights: Tensor, radius: Tensor, last: _Solved | None
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
                known = last and last.nearest(f[part])
                found = problem.solve(f[part], p[part], radius[part], known)
                q[part], multiplier[part], gradient[part], direction[part] = found[:4]
                gap[part] = found[4]
        proved = bool((gap <= _PROVED).all())
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
class _Solved:
    """Problems with their answers.

    Attributes:
        f: Scores from zero to one, ``b x n``.
        active: Which atoms carried mass, ``b x n``.
    """

    f: Tensor
    active: Tensor

    @classmethod
    def of(cls, values: Tensor, weights: Tensor) -> _Solved:
        """Scores and worst-case weights, ``... x n``."""
        f, _ = _in_unit_range(values.reshape(-1, values.shape[-1]))
        return cls(f, weights.reshape(f.shape) > _CARRIED)

    def nearest(self, f: Tensor) -> Tensor:
        """The atoms of the problem whose scores were nearest, ``b' x n``."""
        return self.active[torch.cdist(f, self.f.to(f)).argmin(-1)]


class _Problem:
    """One kernel, for scores from zero to one and a radius per row, ``b x 1``."""

    def __init__(self, factor: Tensor, spectrum: Tensor) -> None:
        self.factor, self.spectrum = factor, spectrum
        self.white = factor / spectrum  # eigenvectors over singular values
        self.largest = factor.square().sum(-1).max().sqrt()

    def saturated(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
        """Where the nearest point mass of score zero is in the ball, and that mass."""
        moved = p @ self.factor  # b x r
        squared = self.factor.square().sum(-1) - 2 * moved @ self.factor.mT
        nearest = torch.where(f == 0, squared, torch.inf).argmin(-1, keepdim=True)
        vertex = torch.zeros_like(p).scatter(-1, nearest, 1.0)
        return (self._distance(vertex - p) <= radius).squeeze(-1), vertex

    def solve(
        self, f: Tensor, p: Tensor, radius: Tensor, known: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Weights, multiplier, reference gradient, direction and gap of each row.

        Whatever atoms are ``known`` to carry mass in a problem like this one is tried
        first, and proved or given up: it saves time and changes no more than rounding.
        """
        *found, free = self._linear(f, p, radius)
        open_ = (found[-1] > _ENOUGH).squeeze(-1)
        if not open_.any():
            return tuple(found)

        def improve(rows: Tensor, parts: tuple[Tensor, ...]) -> None:
            better = ~(parts[-1] > found[-1][rows])
            for whole, part in zip(found, parts, strict=True):
                whole[rows] = torch.where(better, part, whole[rows])

        near_zero = (radius < _NEAR_ZERO * self.largest).squeeze(-1)
        rows = (open_ & ~near_zero).nonzero().squeeze(-1)
        condition = (self.spectrum[0] / self.spectrum[-1]).item()
        if len(rows) and known is not None:
            at = f[rows], p[rows], radius[rows], known[rows]
            improve(rows, self._pivot(*at, self._kernel(condition), one_by_one=True))
            rows = rows[(found[-1][rows] > _SETTLED).squeeze(-1)]
        if len(rows):
            half = max(1, int(_COARSE * len(self.factor)))
            kept = self._kept(radius[rows], _TRIED)
            # None: the closed form of the beginning is the guess.
            guesses: list[int | None] = [None] if condition < _PLAIN else []
            if kept > max(half, _FEW_COLUMNS):
                guesses.append(min(half, self._kept(radius[rows], _GUESSED)))
            for rank in guesses:
                kernel = self._kernel(condition)
                at = f[rows], p[rows], radius[rows]
                guess = self._guess(*at, rank) if rank else free[rows]
                improve(rows, self._pivot(*at, guess, kernel))
                rows = rows[(found[-1][rows] > _SETTLED).squeeze(-1)]
                if not len(rows):
                    break
        rows = (open_ & near_zero).nonzero().squeeze(-1)
        if len(rows) and condition < _PLAIN:
            at = f[rows], p[rows], radius[rows]
            parts = self._pivot_near_zero(*at, self._kernel(condition))
            improve(rows, parts)
            near_zero[rows] = parts[-1].squeeze(-1) == torch.inf  # not settled
        open_ = open_ & ((found[-1] > _SETTLED).squeeze(-1) | near_zero)
        rows = open_.nonzero().squeeze(-1)
        if len(rows):
            improve(rows, self._interior(f[rows], p[rows], radius[rows]))
        return tuple(found)

    def _kernel(self, condition: float) -> Kernel:
        # A constant changes nothing between distributions, but makes it regular.
        matrix = self.factor @ self.factor.mT + self.spectrum[0] / len(self.factor)
        inverse = self.white @ self.white.mT if condition < _INVERTED else None
        return Kernel(self.factor, self.white, matrix, inverse)

    def _linear(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        """The closed form without ``q >= 0``; its gap is infinite where it fails.

        And which weights came out positive.
        """
        seen = f @ self.white  # b x r
        slope = torch.linalg.vector_norm(seen, 2, -1, keepdim=True)
        direction = -(seen / slope) @ self.white.mT
        q = p + radius * direction
        positive = q > 0
        # At radius zero no weight is negative yet, but those at zero may be leaving.
        fails = ((q < 0) | ((p == 0) & (direction < 0))).any(-1, keepdim=True)
        u = -slope * (seen / slope)
        q, gap = self._certify(f, p, q, u, radius)
        gap = torch.where(fails | gap.isnan(), torch.inf, gap)
        return q, slope, -(u @ self.factor.mT), direction, gap, positive

    def _guess(self, f: Tensor, p: Tensor, radius: Tensor, rank: int) -> Tensor:
        """The atoms that carry mass if all but the largest columns are left out."""
        factor = self.factor[:, :rank]
        best = minimise(f, p, factor, radius, _GUESS, _GUESS)
        score = f + best.u @ factor.mT
        slack = score - (best.q * score).sum(-1, keepdim=True)
        return best.q > slack.clamp_min(_ENOUGH)

    def _pivot(
        self,
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        guess: Tensor,
        kernel: Kernel,
        *,
        one_by_one: bool = False,
    ) -> tuple[Tensor, ...]:
        """The active-set method; the gap is infinite where it gave up."""
        best = pivot(f, p, radius, guess, kernel, one_by_one=one_by_one)
        multiplier = torch.linalg.vector_norm(best.u, 2, -1, keepdim=True)
        q = best.q.clamp_min(0.0)
        q, gap = self._certify(f, p, q / q.sum(-1, keepdim=True), best.u, radius)
        gap = torch.where(best.settled[:, None], gap, torch.inf)
        return q, multiplier, -(best.u @ self.factor.mT), best.direction, gap

    def _pivot_near_zero(
        self, f: Tensor, p: Tensor, radius: Tensor, kernel: Kernel
    ) -> tuple[Tensor, ...]:
        """The same, where few atoms but those of the reference carry mass.

        Solved at a larger radius and scaled. As long as all atoms of the reference keep
        some mass, ``q - p`` is linear in the radius from there down to zero.
        """
        larger = radius.clamp_min(_LINEAR * self.largest)
        best = pivot(f, p, larger, p > 0, kernel)
        multiplier = torch.linalg.vector_norm(best.u, 2, -1, keepdim=True)
        q, gap = self._certify(f, p, best.q, best.u, larger)
        linear = ((best.q > 0) | (p == 0)).all(-1) & best.settled
        sound = linear[:, None] & (gap <= _ROUNDED * larger * multiplier)
        q, gap = self._certify(f, p, p + radius / larger * (q - p), best.u, radius)
        gap = torch.where(radius == 0, 0.0, gap)  # q is p there, by definition
        gradient = torch.where(radius == 0, f, -(best.u @ self.factor.mT))
        gap = torch.where(sound & (gap <= _SCALED), gap, torch.inf)
        return q.clamp_min(0.0), multiplier, gradient, best.direction, gap

    def _interior(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        nearly_zero = _NEAR_ZERO * self.largest
        larger = radius.clamp_min(nearly_zero)
        found = self._solve_at(f, p, radius, larger, _TRIED)
        if self._kept(larger, _TRIED) < self._kept(larger, _DROPPED):
            self._refine(found[-1] > _TRUSTED, found, f, p, radius, larger)
        # Just above zero, not every atom may afford what was scaled.
        unsound = (radius > 0) & (radius < nearly_zero) & (found[-1] > _SCALED)
        self._refine(unsound, found, f, p, radius, radius)
        return found

    def _refine(
        self,
        which: Tensor,
        found: tuple[Tensor, ...],
        f: Tensor,
        p: Tensor,
        radius: Tensor,
        larger: Tensor,
    ) -> None:
        """Solve some rows once more, with all the columns that matter."""
        rows = which.squeeze(-1).nonzero().squeeze(-1)
        if len(rows):
            parts = self._solve_at(
                f[rows], p[rows], radius[rows], larger[rows], _DROPPED
            )
            for whole, part in zip(found, parts, strict=True):
                whole[rows] = part

    def _kept(self, radius: Tensor, dropped: float) -> int:
        """The columns that the smallest radius can tell from zero."""
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
        factor = self.factor[:, : self._kept(larger, dropped)]
        best = minimise(f, p, factor, larger, EARLY, TOLERANCE)
        u = best.u
        gradient = -(u @ factor.mT)
        multiplier = torch.linalg.vector_norm(u, 2, -1, keepdim=True)
        # The derivative of q.f is minus the multiplier, exactly: settle the scale.
        descent = (best.direction * f).sum(-1, keepdim=True)
        sound = (descent < 0) & descent.isfinite()
        direction = best.direction * torch.where(sound, -multiplier / descent, 0.0)
        direction = torch.where(sound, direction, 0.0)
        q = p + (radius / larger) * (best.q - p)
        q, gap = self._certify(f, p, q, u, radius)
        # By definition q is p at zero, where only the slope was asked.
        zero = radius == 0
        q, gap = torch.where(zero, p, q), torch.where(zero, 0.0, gap)
        return q, multiplier, torch.where(zero, f, gradient), direction, gap

    def _certify(
        self, f: Tensor, p: Tensor, q: Tensor, u: Tensor, radius: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pull ``q`` into the ball; how far its value is above the bound of ``u``."""
        distance = self._distance(q - p)
        share = torch.where(distance > radius, radius / distance, 1.0)
        q = p + share * (q - p)
        factor = self.factor[:, : u.shape[-1]]
        gap = (q * f).sum(-1, keepdim=True) - lower_bound(f, p, u, factor, radius)
        return q, gap.clamp_min(0.0)

    def _distance(self, difference: Tensor) -> Tensor:
        moved = difference @ self.factor
        return torch.linalg.vector_norm(moved, 2, -1, keepdim=True)


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
