"""Linear scores over the simplex and a Euclidean ball: a primal-dual active-set method.

With the atoms that carry mass known (the active set), the answer has a closed form. The
method guesses them, drops all atoms of negative weight, takes in all of negative
multiplier, and starts over: block principal pivoting, the primal-dual active-set
strategy of [Hintermuller2002activeset]_. It ends at the exact answer or not at all: the
caller has to check.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_drbo.ambiguity._interior_point import dot, length

MAX_PIVOTS = 20
MAX_EXCHANGES = 40  # the same where a round exchanges one atom: those are more rounds
_WEIGHT_TOLERANCE = 1e-14  # below minus this, a weight is negative
_MULTIPLIER_TOLERANCE = 1e-13  # the same of a multiplier; the scores' range is one
_DENSE_SHARE = 0.75  # share of the atoms from which on a submatrix does not pay


@dataclass(frozen=True)
class Kernel:
    """A kernel matrix on differences of distributions, which sum to zero."""

    # ``n x r``, orthogonal columns whose sums are zero.
    factor: Tensor
    # ``n x r``, the transposed pseudo-inverse of ``factor``.
    white: Tensor
    # ``factor factor'``, plus a multiple of the matrix of ones.
    matrix: Tensor
    # ``white white'`` if that has correct digits, else None.
    inverse: Tensor | None


@dataclass
class Pivoted:
    """The ends of all rows, exact where ``settled``."""

    # Weights, ``b x n``, perhaps below zero by rounding.
    q: Tensor
    # The dual point, ``b x r``; its length is the multiplier.
    u: Tensor
    # ``dq / d radius``, ``b x n``.
    direction: Tensor
    # Whether the last closed form confirmed its own guess, ``b``.
    settled: Tensor


def pivot(
    f: Tensor,
    p: Tensor,
    radius: Tensor,
    active: Tensor,
    kernel: Kernel,
    *,
    one_by_one: bool = False,
) -> Pivoted:
    """Find ``min { q.f : q in the simplex, |factor' (q - p)| <= radius }``.

    Shapes: ``f``: ``b x n``, ``p``: ``b x n``, ``radius``: ``b x 1``, ``active``: ``b x
    n``.
    """
    factor = kernel.factor
    # What a row is left with that never settles; the caller looks at `settled`.
    q, u = p.clone(), torch.zeros_like(p @ factor)
    found = Pivoted(q, u, torch.zeros_like(p), torch.zeros_like(active[:, 0]))
    # Rows leave the batch as they settle: their numbers in the whole of it.
    rows = torch.arange(len(f), device=f.device)
    for _ in range(MAX_EXCHANGES if one_by_one else MAX_PIVOTS):
        # Minimum on the active set: q = projection - t * ascent for t > 0, where
        # |factor' (q - p)| = radius.
        mask = active.to(f)
        num_active = mask.sum(-1, keepdim=True)
        projection, ascent = _projection_and_ascent(f, p, active, kernel)
        # One atom alone cannot move: what is left of the difference is rounding.
        ascent = torch.where(num_active > 1, ascent, 0.0)
        y, slope = (projection - p) @ factor, ascent @ factor
        # y belongs to a projection, so it is orthogonal to the slope, and the path
        # meets the ball where |y|^2 + t^2 |slope|^2 = radius^2. The product of
        # difference and sum keeps the digits that a difference of squares would lose.
        size = dot(slope, slope).clamp_min(torch.finfo(f.dtype).tiny)
        t = ((radius - length(y)) * (radius + length(y)) / size).clamp_min(0).sqrt()
        q, y = projection - t * ascent, y - t * slope
        # Stationarity, times t: t f + F y is one number on the active atoms, the
        # multiplier of the sum, and z above it on the others.
        z = t * f + y @ factor.mT  # t times the multipliers, but for an offset
        z = z - dot(z, mask) / num_active
        # Next active set: active atoms with q >= 0 (primal feasibility), and inactive
        # ones with a multiplier z < 0 (no dual feasibility).
        next_active = torch.where(
            active, q > -_WEIGHT_TOLERANCE, z < -_MULTIPLIER_TOLERANCE * t
        )
        # Then t > 0: at t = 0 the multipliers would say that no point of the simplex
        # is nearer to p than the projection; but p is.
        if one_by_one:
            next_active = _single_exchange(active, next_active, q, z)
        settled = (next_active == active).all(-1)
        done = settled.nonzero().squeeze(-1)  # one read, where each mask is one
        if len(done):
            found.q[rows[done]] = q[done]
            found.u[rows[done]] = (y / t)[done]
            found.direction[rows[done]] = (-radius / (t * size) * ascent)[done]
            found.settled[rows[done]] = True
        # A guess without atoms has no closed form.
        rest = (
            (~settled & next_active.any(-1) & q.isfinite().all(-1))
            .nonzero()
            .squeeze(-1)
        )
        if not len(rest):
            break
        active = next_active
        if len(rest) < len(rows):
            f, p, radius, rows, active = (
                part[rest] for part in (f, p, radius, rows, active)
            )
    return found


def _single_exchange(
    active: Tensor, next_active: Tensor, q: Tensor, z: Tensor
) -> Tensor:
    """Drop the atom of lowest weight, or take in the one of lowest multiplier."""
    # Atoms of negative weight go first; only where there is none may one come in.
    drops = (active & ~next_active).any(-1, keepdim=True)
    candidates = torch.where(active == drops, torch.where(drops, q, z), torch.inf)
    worst = candidates.argmin(-1, keepdim=True)
    selected = torch.zeros_like(active).scatter(-1, worst, True)
    return torch.where(selected, next_active, active)


def _projection_and_ascent(
    f: Tensor, p: Tensor, active: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    """Projection of ``p`` on the active atoms, and steepest ascent along them."""
    # The smaller one of two equivalent systems is solved: that of the active atoms, or
    # by the inverse (a Schur complement) that of the inactive ones.
    num_active = active.sum(-1)
    if kernel.inverse is not None:
        num_inactive = int((active.shape[-1] - num_active).max())
        if num_inactive < int(num_active.max()):
            return _by_inactive(
                f, p, ~active, num_inactive, kernel.white, kernel.inverse
            )
    return _by_active(f, p, active, int(num_active.max()), kernel.matrix)


def _by_active(
    f: Tensor, p: Tensor, active: Tensor, size: int, matrix: Tensor
) -> tuple[Tensor, Tensor]:
    # K_AA x = [K p, 1, f]_A; a multiple of K_AA^-1 1 then fixes the sum of the weights.
    index, mask, block = _block(matrix, active, size)
    right = torch.stack([p @ matrix, torch.ones_like(f), f], dim=-1)
    if index is not None:
        right = right.gather(-2, index[..., None].expand(-1, -1, 3))
    kernel_solve, ones_solve, scores_solve = _solve(
        block, right * mask[..., None]
    ).unbind(-1)
    unit_mass = ones_solve / ones_solve.sum(-1, keepdim=True)
    # The sum of the weights is one for the projection, and zero for the ascent.
    projection = kernel_solve + (1 - kernel_solve.sum(-1, keepdim=True)) * unit_mass
    ascent = scores_solve - scores_solve.sum(-1, keepdim=True) * unit_mass
    return _scattered(projection, index, f), _scattered(ascent, index, f)


def _by_inactive(
    f: Tensor, p: Tensor, inactive: Tensor, size: int, white: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor]:
    # W W' = K^-1 among vectors of sum zero. With no inactive atom K^-1 f is all.
    whitened = f @ white
    ascent = whitened @ white.mT
    if not size:
        return p, ascent
    # Range-space form, cheaper for few inactive atoms: the multipliers of q_I = 0 solve
    # (K^-1)_II m = [p, K^-1 f]_I.
    index, mask, block = _block(inverse, inactive, size)
    right = torch.stack([p, ascent], dim=-1)
    if index is not None:
        right = right.gather(-2, index[..., None].expand(-1, -1, 2))
    weight_multipliers, ascent_multipliers = _solve(
        block, right * mask[..., None]
    ).unbind(-1)
    # What is taken off are columns of K^-1, and W' 1 = 0: no sum changes.
    projection = p - (_scattered(weight_multipliers, index, f) @ white) @ white.mT
    ascent = (whitened - _scattered(ascent_multipliers, index, f) @ white) @ white.mT
    return projection.masked_fill(inactive, 0.0), ascent.masked_fill(inactive, 0.0)


def _block(
    matrix: Tensor, chosen: Tensor, size: int
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The rows and columns of the chosen atoms, the identity where a row has fewer."""
    if size > _DENSE_SHARE * chosen.shape[-1]:
        # Nearly all atoms: to gather them costs more than the zeros of a mask.
        index, mask = None, chosen.to(matrix)
        block = matrix * mask[:, :, None]
    else:
        # The chosen atoms first. Rows with fewer are filled up, and masked.
        index = chosen.to(torch.uint8).argsort(dim=-1, descending=True)[:, :size]
        mask = chosen.gather(-1, index).to(matrix)
        block = matrix[index[:, :, None], index[:, None, :]].mul_(mask[:, :, None])
    # Ones on the diagonal where there is no atom: the block stays regular, and a masked
    # right side makes the solution zero there.
    block.mul_(mask[:, None, :]).diagonal(dim1=-2, dim2=-1).add_(1 - mask)
    return index, mask, block


def _solve(block: Tensor, right: Tensor) -> Tensor:
    # The matrix is symmetric, and its transpose has the layout that LAPACK wants.
    cholesky = torch.linalg.cholesky_ex(block.mT).L
    half = torch.linalg.solve_triangular(cholesky, right, upper=False)
    return torch.linalg.solve_triangular(cholesky.mT, half, upper=True)


def _scattered(part: Tensor, index: Tensor | None, like: Tensor) -> Tensor:
    if index is None:
        return part
    return torch.zeros_like(like).scatter(-1, index, part)
