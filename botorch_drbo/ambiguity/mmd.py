"""The maximum-mean-discrepancy ball: distributions that a kernel cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.ambiguity._interior_point import lower_bound, minimise
from botorch_drbo.ambiguity.base import (
    AmbiguitySet,
    Solution,
    check_distributions,
)

if TYPE_CHECKING:
    import cvxpy as cp

_SYMMETRY = 1e-10  # relative to the largest entry
_NEGATIVE = 1e-10  # relative to the largest eigenvalue
_PROVED = 1e-8  # of the range of the scores: within the accuracy of the kernel matrix
_DROPPED = 1e-9  # of the squared radius that the dropped columns may take
_NEAR_ZERO = 1e-6  # of the kernel's largest distance: a radius just above zero
_ENOUGH = 1e-12  # gap of the closed form, below which nothing better is sought
_SCALED = 1e-10  # gap above which a scaled answer is sought again, unscaled
_CHUNK_ELEMENTS = 2**21  # 16 MiB of float64 per temporary


class MaximumMeanDiscrepancy(AmbiguitySet):
    r"""All distributions whose kernel mean is near the reference's.

    .. math:: d(p, q) = \sqrt{(p - q)^\top K (p - q)} \le \epsilon

    The radius has the units of the square root of the kernel matrix: with a kernel
    of variance one, no two distributions are farther apart than ``sqrt(2)``. Mass may
    move onto atoms of reference weight zero.

    Three cases are solved, in this order. A point mass on the lowest score that lies
    in the ball is the answer. If the closed form without ``q >= 0`` happens to have no
    negative weight, it is the answer (small radius, well-conditioned matrix). The other
    rows go to an interior-point method on the dual

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

    Example:
        >>> points = torch.tensor([[0.0], [0.5], [1.0]])
        >>> kernel_matrix = torch.exp(-torch.cdist(points, points).square())
        >>> ball = MaximumMeanDiscrepancy(radius=0.1, kernel_matrix=kernel_matrix)
        >>> weights = torch.full((3,), 1 / 3)
        >>> ball.worst_case(torch.tensor([0.0, 1.0, 4.0]), weights).value
        tensor(1.2131)

    The ball of [Kirschner2020drbo]_ and [Tay2022minimax]_.
    """

    factor: Tensor
    spectrum: Tensor

    def __init__(self, radius: float | Tensor, kernel_matrix: Tensor) -> None:
        r"""Check and factor the kernel matrix, in float64.

        Args:
            radius: The largest distance, a scalar ``>= 0``.
            kernel_matrix: Symmetric and positive semi-definite, ``n x n``.

        Raises:
            InputDataError: Not finite, not symmetric, or with a negative eigenvalue.
            BotorchTensorDimensionError: Not a square matrix.
        """
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
        self.register_buffer("spectrum", spectrum)  # n - 1, falling
        self.register_buffer("factor", basis * spectrum.sqrt())  # n x (n - 1)

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        super()._check_sizes(num_values, num_weights)
        if num_values != len(self.factor):
            raise BotorchTensorDimensionError(
                f"The kernel matrix has {len(self.factor)} contexts, got {num_values} "
                "scores."
            )

    def _solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        batch, n = values.shape[:-1], values.shape[-1]
        # Only differences of scores matter; a large offset would cost digits.
        f = (values - values.amin(-1, keepdim=True)).reshape(-1, n)
        span = f.amax(-1, keepdim=True)
        f = f / torch.where(span > 0, span, 1.0)
        p = weights.reshape(-1, n)
        p = p / p.sum(-1, keepdim=True)
        q, gradient, direction = p.clone(), torch.zeros_like(p), torch.zeros_like(p)
        multiplier, gap = torch.zeros_like(span), torch.zeros_like(span)
        flat = span.squeeze(-1) == 0
        sizes, which = radius.reshape(-1).unique(return_inverse=True)
        for index, size in enumerate(sizes):
            problem = _Problem(self.factor.to(f), self.spectrum.to(f), size)
            settled, vertex = problem.saturated(f, p)
            mine = (which == index) & ~flat
            q = torch.where((settled & mine)[:, None], vertex, q)
            rows = (~settled & mine).nonzero().squeeze(-1)
            num_chunks = -(-len(rows) * n * n // _CHUNK_ELEMENTS)
            for part in rows.tensor_split(max(1, num_chunks)):
                found = problem.solve(f[part], p[part])
                q[part], multiplier[part], gradient[part], direction[part] = found[:4]
                gap[part] = found[4]
        proved = bool((gap <= _PROVED).all())
        gap = (span * gap).reshape(batch)
        return Solution(
            weights=q.reshape(*batch, n),
            multiplier=(span * multiplier).reshape(batch),
            reference_gradient=(span * gradient).reshape(*batch, n),
            direction=direction.reshape(*batch, n),
            gap=None if proved else gap,
        )

    def _constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
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


class _Problem:
    """One kernel and radius, for scores from zero to one; all answers ``b x ...``."""

    def __init__(self, factor: Tensor, spectrum: Tensor, radius: Tensor) -> None:
        self.factor, self.spectrum, self.radius = factor, spectrum, radius

    def saturated(self, f: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """Where the nearest point mass of score zero is in the ball, and that mass."""
        moved = p @ self.factor  # b x r
        squared = self.factor.square().sum(-1) - 2 * moved @ self.factor.mT
        nearest = torch.where(f == 0, squared, torch.inf).argmin(-1, keepdim=True)
        vertex = torch.zeros_like(p).scatter(-1, nearest, 1.0)
        return self._distance(vertex - p) <= self.radius, vertex

    def solve(self, f: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """Weights, multiplier, reference gradient, direction and gap of each row."""
        found = self._linear(f, p)
        rows = (found[-1].squeeze(-1) > _ENOUGH).nonzero().squeeze(-1)
        if len(rows):
            inner = self._interior(f[rows], p[rows])
            for whole, part in zip(found, inner, strict=True):
                whole[rows] = part
        return found

    def _linear(self, f: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        """The closed form without ``q >= 0``; its gap is infinite where it fails."""
        white = self.factor / self.spectrum  # n x r: eigenvectors over singular values
        seen = f @ white  # b x r
        slope = torch.linalg.vector_norm(seen, 2, -1, keepdim=True)
        direction = -(seen / slope) @ white.mT
        q = p + self.radius * direction
        # At radius zero no weight is negative yet, but those at zero may be leaving.
        fails = ((q < 0) | ((p == 0) & (direction < 0))).any(-1, keepdim=True)
        u = -slope * (seen / slope)
        q, gap = self._certify(f, p, q, u)
        gap = torch.where(fails | gap.isnan(), torch.inf, gap)
        return q, slope, -(u @ self.factor.mT), direction, gap

    def _interior(self, f: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        largest = self.factor.square().sum(-1).max().sqrt()
        nearly_zero = _NEAR_ZERO * largest
        found = self._solve_at(f, p, torch.maximum(self.radius, nearly_zero))
        if 0 < self.radius < nearly_zero:  # not every atom may afford what was scaled
            rows = (found[-1].squeeze(-1) > _SCALED).nonzero().squeeze(-1)
            if len(rows):
                for whole, part in zip(
                    found, self._solve_at(f[rows], p[rows], self.radius), strict=True
                ):
                    whole[rows] = part
        return found

    def _solve_at(self, f: Tensor, p: Tensor, radius: Tensor) -> tuple[Tensor, ...]:
        """Solve at a radius that is not smaller; scale what is found to ours.

        Just above zero ``q - p`` is linear in the radius, and a radius that is not too
        small has the better numbers. The gap tells where that is wrong.
        """
        # Columns that the radius cannot tell from zero are left out: the lower bound
        # stays one, and what they cost the upper bound is in the gap.
        kept = int((self.spectrum > 0.5 * _DROPPED * radius.square()).sum())
        factor = self.factor[:, : max(kept, 1)]
        best = minimise(f, p, factor / radius)
        u = best.u / radius
        gradient = -(u @ factor.mT)
        multiplier = torch.linalg.vector_norm(u, 2, -1, keepdim=True)
        # The derivative of q.f is minus the multiplier, exactly: settle the scale.
        descent = (best.direction * f).sum(-1, keepdim=True)
        sound = (descent < 0) & descent.isfinite()
        direction = best.direction * torch.where(sound, -multiplier / descent, 0.0)
        direction = torch.where(sound, direction, 0.0)
        if self.radius == 0:  # by definition q is p there; only the slope was asked
            return p, multiplier, f, direction, torch.zeros_like(multiplier)
        q = p + (self.radius / radius) * (best.q - p)
        q, gap = self._certify(f, p, q, u)
        return q, multiplier, gradient, direction, gap

    def _certify(
        self, f: Tensor, p: Tensor, q: Tensor, u: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pull ``q`` into the ball; how far its value is above the bound of ``u``."""
        distance = self._distance(q - p)[:, None]
        share = torch.where(distance > self.radius, self.radius / distance, 1.0)
        q = p + share * (q - p)
        factor = self.factor[:, : u.shape[-1]]
        gap = (q * f).sum(-1) - lower_bound(f, p, u, factor, self.radius)
        return q, gap.clamp_min(0.0)[:, None]

    def _distance(self, difference: Tensor) -> Tensor:
        return torch.linalg.vector_norm(difference @ self.factor, 2, -1)


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
