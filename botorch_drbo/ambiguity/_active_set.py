"""Linear scores over the simplex and a Euclidean ball: an exact active-set method.

If the atoms that carry mass are known, the answer has a closed form. The method guesses
them, drops atoms whose weight comes out negative, takes in atoms whose multiplier does,
and starts over. It ends at the exact answer or not at all: the caller has to check.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_PIVOTS = 20
_WEIGHT = 1e-14  # below minus this, a weight is negative
_SLACK = 1e-13  # the same of a multiplier; the range of the scores is one
_WHOLE = 0.75  # share of the atoms from which on picking them out does not pay


@dataclass(frozen=True)
class Kernel:
    """A kernel matrix on differences of distributions, which sum to zero.

    Attributes:
        factor: ``n x r``, orthogonal columns whose sums are zero.
        white: ``n x r``, the transposed pseudo-inverse of ``factor``.
        matrix: ``factor factor'``, plus a multiple of the matrix of ones.
        inverse: ``white white'`` if that has correct digits, else None.
    """

    factor: Tensor
    white: Tensor
    matrix: Tensor
    inverse: Tensor | None


@dataclass
class Pivoted:
    """The ends of all rows, exact where ``settled``.

    Attributes:
        q: Weights, ``b x n``, perhaps below zero by rounding.
        u: The dual point, ``b x r``; its length is the multiplier.
        direction: ``dq / d radius``, ``b x n``.
        settled: Whether the last closed form confirmed its own guess, ``b``.
    """

    q: Tensor
    u: Tensor
    direction: Tensor
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

    Args:
        f: Scores, ``b x n``, each row with minimum zero and maximum one.
        p: Reference weights, ``b x n``, each row sums to one.
        radius: Positive, ``b x 1``.
        active: A guess of the atoms that carry mass, ``b x n``.
        kernel: The kernel of all rows.
        one_by_one: Whether a round drops or takes in one atom and not all. For few
            atoms that are nearly the right ones, however alike the kernel finds them.
    """
    factor = kernel.factor
    q, u = p.clone(), torch.zeros_like(p @ factor)
    found = Pivoted(q, u, torch.zeros_like(p), torch.zeros_like(active[:, 0]))
    rows = torch.arange(len(f), device=f.device)
    for _ in range(MAX_PIVOTS):
        # q = still - t * moving for t > 0; both parts are zero off the active atoms.
        mass = active.to(f)
        num_active = mass.sum(-1, keepdim=True)
        still, moving = _parts(f, p, active, kernel)
        # One atom alone cannot move: what is left of the difference is rounding.
        moving = torch.where(num_active > 1, moving, 0.0)
        y, slope = (still - p) @ factor, moving @ factor
        size = _dot(slope, slope).clamp_min(torch.finfo(f.dtype).tiny)
        t = ((radius - _length(y)) * (radius + _length(y)) / size).clamp_min(0).sqrt()
        q, y = still - t * moving, y - t * slope
        z = t * f + y @ factor.mT  # t times the multipliers, but for an offset
        z = z - _dot(z, mass) / num_active
        good = torch.where(active, q > -_WEIGHT, z < -_SLACK * t)
        # Then t > 0: at t = 0 the multipliers would say that no point of the simplex
        # is nearer to p than ``still``; but p is, and from there the radius is free.
        if one_by_one:
            good = _worst_exchanged(active, good, q, z)
        settled = (good == active).all(-1)
        found.q[rows[settled]] = q[settled]
        found.u[rows[settled]] = (y / t)[settled]
        found.direction[rows[settled]] = (-radius / (t * size) * moving)[settled]
        found.settled[rows[settled]] = True
        # A guess without atoms has no closed form.
        go = (~settled & good.any(-1) & q.isfinite().all(-1)).nonzero().squeeze(-1)
        if not len(go):
            break
        f, p, radius, rows = f[go], p[go], radius[go], rows[go]
        active = good[go]
    return found


def _worst_exchanged(active: Tensor, good: Tensor, q: Tensor, z: Tensor) -> Tensor:
    """Drop the atom of lowest weight, or take in the one of lowest multiplier."""
    leaves = (active & ~good).any(-1, keepdim=True)
    candidates = torch.where(active == leaves, torch.where(leaves, q, z), torch.inf)
    worst = candidates.argmin(-1, keepdim=True)
    chosen = torch.zeros_like(active).scatter(-1, worst, True)
    return torch.where(chosen, good, active)


def _parts(
    f: Tensor, p: Tensor, active: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    """Nearest point to ``p`` on the active atoms, and steepest ascent along them."""
    num_active = active.sum(-1)
    if kernel.inverse is not None:
        num_idle = int((active.shape[-1] - num_active).max())
        if num_idle < int(num_active.max()):
            return _by_idle(f, p, ~active, num_idle, kernel.white, kernel.inverse)
    return _by_active(f, p, active, int(num_active.max()), kernel.matrix)


def _by_active(
    f: Tensor, p: Tensor, active: Tensor, size: int, matrix: Tensor
) -> tuple[Tensor, Tensor]:
    pick, on, block = _block(matrix, active, size)
    right = torch.stack([p @ matrix, torch.ones_like(f), f], dim=-1)
    if pick is not None:
        right = right.gather(-2, pick[..., None].expand(-1, -1, 3))
    near, ones, steep = _solve(block, right * on[..., None]).unbind(-1)
    per = ones / ones.sum(-1, keepdim=True)
    still = near + (1 - near.sum(-1, keepdim=True)) * per
    moving = steep - steep.sum(-1, keepdim=True) * per
    return _spread(still, pick, f), _spread(moving, pick, f)


def _by_idle(
    f: Tensor, p: Tensor, idle: Tensor, size: int, white: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor]:
    seen = f @ white
    moving = seen @ white.mT
    if not size:
        return p, moving
    pick, on, block = _block(inverse, idle, size)
    right = torch.stack([p, moving], dim=-1)
    if pick is not None:
        right = right.gather(-2, pick[..., None].expand(-1, -1, 2))
    push, pull = _solve(block, right * on[..., None]).unbind(-1)
    still = p - (_spread(push, pick, f) @ white) @ white.mT
    moving = (seen - _spread(pull, pick, f) @ white) @ white.mT
    return still.masked_fill(idle, 0.0), moving.masked_fill(idle, 0.0)


def _block(
    matrix: Tensor, chosen: Tensor, size: int
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The rows and columns of the chosen atoms, the identity where a row has fewer."""
    if size > _WHOLE * chosen.shape[-1]:
        pick, on = None, chosen.to(matrix)
        block = matrix * on[:, :, None]
    else:
        pick = chosen.to(torch.uint8).argsort(dim=-1, descending=True)[:, :size]
        on = chosen.gather(-1, pick).to(matrix)
        block = matrix[pick[:, :, None], pick[:, None, :]].mul_(on[:, :, None])
    block.mul_(on[:, None, :]).diagonal(dim1=-2, dim2=-1).add_(1 - on)
    return pick, on, block


def _solve(block: Tensor, right: Tensor) -> Tensor:
    # The matrix is symmetric, and its transpose has the layout that LAPACK wants.
    cholesky = torch.linalg.cholesky_ex(block.mT).L
    half = torch.linalg.solve_triangular(cholesky, right, upper=False)
    return torch.linalg.solve_triangular(cholesky.mT, half, upper=True)


def _spread(part: Tensor, pick: Tensor | None, like: Tensor) -> Tensor:
    if pick is None:
        return part
    return torch.zeros_like(like).scatter(-1, pick, part)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _length(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, 2, -1, keepdim=True)
