"""Linear scores over the simplex and a Euclidean ball: a batched interior-point method.

The method is the primal-dual one of cone programming: Nesterov-Todd scaling and
Mehrotra's predictor and corrector. It works in the space of the factor's columns, so a
step costs ``n r^2 + r^3`` for a factor of rank ``r``, and never ``n^3``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

MAX_STEPS = 60
_EARLY = 1e-8  # gap after which the polish is tried; the range of the scores is one
_TOLERANCE = 1e-12  # gap after which nothing is
_LEAVING = 0.2  # share of closed rows that is worth taking out
_NEARLY = 1e-8  # below it, a gap that no longer halves has met rounding
_PATIENCE = 3  # steps without a halved gap
_SHARED_ELEMENTS = 2**22  # 32 MiB for the products of the factor's columns
_ROUNDS = 3  # polishes with corrected atoms; the last after the path's true end
_STIFFNESS = 1e7  # largest weight of an atom in the last linear system
_REPAIRS = 5  # solves of that system, with one factor
_FEW_ROWS = 8  # for fewer rows it does not pay to form the products


@dataclass
class _Iterate:
    """The state of the open rows, and the best certified point of each."""

    row: Tensor  # b: the row of the whole problem
    f: Tensor  # b x n
    p: Tensor  # b x n
    q: Tensor  # b x n, primal, > 0
    y: Tensor  # b x r, primal, |y| < 1; in the end factor' (q - p)
    u: Tensor  # b x r, dual
    kappa: Tensor  # b x 1, dual, > |u|
    nu: Tensor  # b x 1, dual
    gap: Tensor  # b, the smallest so far
    best_q: Tensor
    best_z: Tensor
    best_u: Tensor
    waited: Tensor  # b, steps since the gap last halved

    def take(self, rows: Tensor) -> _Iterate:
        return _Iterate(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Optimum:
    """The ends of all rows: ``q`` and ``u`` bound the value from above and below.

    Attributes:
        q: A point of the simplex, ``b x n``, perhaps a little outside the ball.
        u: The dual point, ``b x r``; its length is the multiplier.
        direction: ``dq / d radius``, ``b x n``.
    """

    q: Tensor
    u: Tensor
    direction: Tensor


class _NormalMatrix:
    """``A' diag(D) A`` for ``A = [factor, -1]`` and each row of weights ``D``."""

    def __init__(self, factor: Tensor, num_rows: int) -> None:
        n, rank = factor.shape
        self.columns = torch.cat([factor, -factor.new_ones(n, 1)], dim=-1)
        self.shape = (-1, rank + 1, rank + 1)
        self.products = None
        if num_rows > _FEW_ROWS and n * (rank + 1) ** 2 <= _SHARED_ELEMENTS:
            # All rows share the factor, so one matrix product serves the batch.
            pairs = self.columns[:, :, None] * self.columns[:, None, :]
            self.products = pairs.reshape(n, -1)

    def __call__(self, weights: Tensor) -> Tensor:  # b x n -> b x (r+1) x (r+1)
        if self.products is not None:
            return (weights @ self.products).view(self.shape)
        scaled = weights.sqrt()[..., None] * self.columns
        return scaled.mT @ scaled


def _factorise(matrix: Tensor) -> Tensor:
    # The matrix is symmetric, and its transpose has the layout that LAPACK wants.
    return torch.linalg.cholesky_ex(matrix.mT).L


def _solve(cholesky: Tensor, right: Tensor) -> Tensor:  # b x r -> b x r
    # Half the time of `cholesky_solve`, which copies the matrices.
    half = torch.linalg.solve_triangular(cholesky, right[..., None], upper=False)
    return torch.linalg.solve_triangular(cholesky.mT, half, upper=True).squeeze(-1)


def minimise(f: Tensor, p: Tensor, factor: Tensor) -> Optimum:
    r"""Solve ``min { q.f : q in the simplex, |factor' (q - p)| <= 1 }`` for each row.

    With ``u`` in ``R^r`` the dual is ``max_u min_i (f + L u)_i - p' L u - |u|``. Both
    sides are followed along the central path; any ``q`` of the simplex and any ``u``
    bound the value, and each row keeps the pair with the smallest gap.

    Args:
        f: Scores, ``b x n``, each row with minimum zero and maximum one.
        p: Reference weights, ``b x n``, each row sums to one.
        factor: ``n x r`` with ``r >= 1``, shared by the rows.

    Returns:
        The best pair of each row. Nothing is promised about its gap: the caller bounds
        the value with it.
    """
    normal = _NormalMatrix(factor, len(f))
    start = torch.full_like(p, 1 / p.shape[-1])
    y = (start - p) @ factor
    y = y * (0.5 / _length(y)).clamp_max(1.0)  # not yet factor' (q - p)
    u, nu = torch.zeros_like(y), torch.full_like(p[:, :1], -0.5)
    z = f - nu
    kappa = (start * z).mean(-1, keepdim=True)
    gap = torch.full_like(p[:, 0], torch.inf)
    rows = torch.arange(len(f), device=f.device)
    state = _Iterate(
        rows, f, p, start, y, u, kappa, nu, gap, start, z, u, torch.zeros_like(gap)
    )
    # Most rows are finished by the polish, long before the path ends.
    state = _follow(state, factor, normal, _EARLY)
    q, u, direction, gap, active = _polish(state, factor, normal)
    for step in range(_ROUNDS):
        weak = (gap > _TOLERANCE).nonzero().squeeze(-1)
        if not len(weak):
            break
        part, guess = state.take(weak), active[weak]
        if step == _ROUNDS - 1:
            part, guess = _follow(part, factor, normal, _TOLERANCE), None
        found = _polish(part, factor, normal, guess)
        active[weak] = found[-1]
        better = found[3] <= gap[weak]
        for whole, new in zip((q, u, direction, gap), found[:4], strict=True):
            whole[weak[better]] = new[better]
    return Optimum(q, u, direction)


def _follow(
    state: _Iterate, factor: Tensor, normal: _NormalMatrix, tolerance: float
) -> _Iterate:
    """Follow the central path until each row's gap is small or no longer falls."""
    done: list[_Iterate] = []
    state.waited = torch.zeros_like(state.waited)
    for _ in range(MAX_STEPS):
        finite = _step(state, factor, normal)
        _certify(state, factor)
        closed = (state.gap <= tolerance) | ~finite
        closed |= (state.gap <= _NEARLY) & (state.waited >= _PATIENCE)
        num_closed, num_rows = int(closed.sum()), len(closed)
        if num_closed == num_rows:
            break
        if num_closed > _LEAVING * num_rows:  # to copy the others has a price, too
            done.append(state.take(closed))
            state = state.take(~closed)
    done.append(state)
    state = _Iterate(
        *(torch.cat([getattr(s, f.name) for s in done]) for f in fields(_Iterate))
    )
    return state.take(torch.argsort(state.row))


def lower_bound(
    f: Tensor, p: Tensor, u: Tensor, factor: Tensor, radius: float | Tensor = 1.0
) -> Tensor:
    """The dual value ``b`` of any ``u``, ``b x r``: never above the exact value."""
    moved = u @ factor.mT
    length = torch.linalg.vector_norm(u, 2, -1)
    return (f + moved).amin(-1) - (p * moved).sum(-1) - radius * length


def _certify(state: _Iterate, factor: Tensor) -> None:
    """Bound the value from both sides and keep the better pair."""
    d = state.q - state.p
    share = (1 / _length(d @ factor)).clamp_max(1.0)  # pulled back into the ball
    upper = (state.f * (state.p + share * d)).sum(-1)
    gap = upper - lower_bound(state.f, state.p, state.u, factor)
    better = gap < state.gap
    state.waited = torch.where(gap < 0.5 * state.gap, 0.0, state.waited + 1)
    state.gap = torch.where(better, gap, state.gap)
    keep = better[:, None]
    state.best_q = torch.where(keep, state.q, state.best_q)
    state.best_z = torch.where(keep, _slack(state, factor), state.best_z)
    state.best_u = torch.where(keep, state.u, state.best_u)


def _slack(state: _Iterate, factor: Tensor) -> Tensor:
    z = state.f + state.u @ factor.mT - state.nu
    return z.clamp_min(torch.finfo(z.dtype).tiny)


def _step(state: _Iterate, factor: Tensor, normal: _NormalMatrix) -> Tensor:
    """Move each row once; returns where the step was finite, ``b``."""
    q, y, u, kappa = state.q, state.y, state.u, state.kappa
    z = _slack(state, factor)
    rank = factor.shape[-1]
    missing = state.p @ factor + y - q @ factor  # zero after the first full step
    ratio = q / z

    # Nesterov-Todd scaling W of the cones of (1, y) and (kappa, -u): W is `scale`
    # times the hyperbolic reflection of the unit point (v0, v).
    primal, dual = _length(y), _length(u)
    primal, dual = (1 - primal) * (1 + primal), (kappa - dual) * (kappa + dual)
    root = (primal * dual).sqrt()
    half = ((1 + (kappa - _dot(y, u)) / root) / 2).sqrt()
    v = (y / primal.sqrt() + u / dual.sqrt()) / (2 * half)
    v0 = (1 + _dot(v, v)).sqrt()
    scale2 = (primal / dual).sqrt()
    scale = scale2.sqrt()

    def scaled(a0: Tensor, a: Tensor, sign: float = 1.0) -> tuple[Tensor, Tensor]:
        inner = _dot(v, a)
        size = scale if sign > 0 else 1 / scale
        first = size * (v0 * a0 + sign * inner)
        return first, size * (a + v * (sign * a0 + inner / (1 + v0)))

    # With y tied to q the first entry of the primal cone stays 1: kappa is eliminated.
    h0 = scale2 * (2 * v0 * v0 - 1)
    h = (2 * scale2 * v0) * v
    matrix = normal(ratio)
    bend = (2 * scale2 / (2 * v0 * v0 - 1))[..., None] * v[:, :, None]
    matrix[:, :rank, :rank] -= bend * v[:, None, :]
    matrix.diagonal(dim1=-2, dim2=-1)[:, :rank] += scale2
    cholesky = _factorise(matrix)

    def newton(c: Tensor, r0: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        cz = c / z
        right = cz @ factor - missing - r + h * (r0 / h0)
        right = torch.cat([right, -cz.sum(-1, keepdim=True)], dim=-1)
        found = _solve(cholesky, right)
        du, dnu = found[:, :rank], found[:, rank:]
        dz = du @ factor.mT - dnu
        dkappa = (r0 + _dot(h, du)) / h0
        dy = r - h * dkappa + scale2 * (du + 2 * v * _dot(v, du))
        return cz - ratio * dz, dy, du, dnu, dz, dkappa

    def lengths(
        dq: Tensor, dy: Tensor, du: Tensor, dz: Tensor, dkappa: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The largest primal and dual steps, at most one, inside the cones."""
        ahead = torch.minimum(
            _to_zero(q, dq), _to_cone(torch.ones_like(kappa), y, 0 * kappa, dy)
        )
        behind = torch.minimum(_to_zero(z, dz), _to_cone(kappa, u, dkappa, du))
        return ahead.clamp_max(1.0), behind.clamp_max(1.0)

    # Predictor: straight to the optimum.
    qz = q * z
    dq, dy, du, _, dz, dkappa = newton(-qz, -torch.ones_like(kappa), -y)
    a, b = lengths(dq, dy, du, dz, dkappa)
    degree = q.shape[-1] + 1
    mu = (qz.sum(-1, keepdim=True) + kappa - _dot(y, u)) / degree
    reached = _dot(q + a * dq, z + b * dz) + kappa + b * dkappa
    reached = (reached - _dot(y + a * dy, u + b * du)) / degree
    target = mu * (reached / mu).clamp(0.0, 1.0) ** 3

    # Corrector: towards the central path, with the predictor's second-order terms.
    l0, l = scaled(kappa, -u)  # noqa: E741 - lambda, in the literature
    s0, s = scaled(torch.zeros_like(kappa), dy, -1.0)
    w0, w = scaled(dkappa, -du)
    c0 = target - l0 * l0 - _dot(l, l) - s0 * w0 - _dot(s, w)
    c = -2 * l0 * l - s0 * w - w0 * s
    x0 = (l0 * c0 - _dot(l, c)) / root
    r0, r = scaled(x0, (c - l * x0) / l0)
    dq, dy, du, dnu, dz, dkappa = newton(target - qz - dq * dz, r0, r)
    a, b = lengths(dq, dy, du, dz, dkappa)
    # Stay off the boundary: farther, where the step was cut short.
    damping = 0.9 + 0.09 * torch.minimum(a, b)
    a, b = damping * a, damping * b
    finite = (a.isfinite() & b.isfinite()).squeeze(-1)
    finite &= dq.isfinite().all(-1) & du.isfinite().all(-1)
    go = finite[:, None]
    state.q = torch.where(go, q + a * dq, q)
    state.q = state.q / state.q.sum(-1, keepdim=True)
    state.y = torch.where(go, y + a * dy, y)
    state.u = torch.where(go, u + b * du, u)
    state.nu = torch.where(go, state.nu + b * dnu, state.nu)
    state.kappa = torch.where(go, kappa + b * dkappa, kappa)
    return finite


def _polish(
    state: _Iterate,
    factor: Tensor,
    normal: _NormalMatrix,
    active: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Newton's method on the atoms that carry mass; then how they move with the radius.

    The interior-point method ends where its matrix is too ill-conditioned to go on.
    Here the weights of that matrix are bounded, and what the bound spoils is repaired
    by repeated solves with exact residuals. A row that gets worse keeps its old point.
    """
    f, p, q, z, u = state.f, state.p, state.best_q, state.best_z, state.best_u
    rank = factor.shape[-1]
    # At a small radius atoms without mass receive little: measure q by what moves.
    if active is None:
        active = q > z * (q - p).abs().amax(-1, keepdim=True)
    tiny = torch.finfo(u.dtype).tiny
    unit = u / _length(u).clamp_min(tiny)
    bend = 1 / _length(u).clamp_min(tiny)
    ratio = torch.where(active, (q / z).clamp_max(_STIFFNESS), 0.0)
    matrix = normal(ratio)
    matrix[:, :rank, :rank] -= bend[..., None] * unit[:, :, None] * unit[:, None, :]
    matrix.diagonal(dim1=-2, dim2=-1)[:, :rank] += bend
    cholesky = _factorise(matrix)

    def solve(
        first: Tensor, second: Tensor, third: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        moved = ratio * first
        right = torch.cat(
            [moved @ factor - second, third - moved.sum(-1, keepdim=True)], dim=-1
        )
        found = _solve(cholesky, right)
        du, dnu = found[:, :rank], found[:, rank:]
        return moved - ratio * (du @ factor.mT - dnu), du, dnu

    def gap(q: Tensor, u: Tensor) -> Tensor:
        share = (1 / _length((q - p) @ factor)).clamp_max(1.0)
        upper = (f * (p + share * (q - p))).sum(-1)
        return upper - lower_bound(f, p, u, factor)

    new_q = torch.where(active, q, 0.0)
    new_u = u
    nu = ((f + u @ factor.mT) * new_q).sum(-1, keepdim=True)
    for _ in range(_REPAIRS):
        dq, du, dnu = solve(
            nu - f - new_u @ factor.mT,
            new_u / _length(new_u).clamp_min(tiny) - (new_q - p) @ factor,
            1 - new_q.sum(-1, keepdim=True),
        )
        new_q, new_u, nu = new_q + dq, new_u + du, nu + dnu
    leaving, entering = new_q < 0, new_u @ factor.mT + f < nu
    new_active = (active & ~leaving) | (~active & entering)
    new_q = new_q.clamp_min(0.0)
    new_q = new_q / new_q.sum(-1, keepdim=True)
    new_gap, old_gap = gap(new_q, new_u), gap(q, u)
    better = (new_gap <= old_gap)[:, None]
    q, u = torch.where(better, new_q, q), torch.where(better, new_u, u)

    dq, du, dnu = torch.zeros_like(q), torch.zeros_like(u), torch.zeros_like(nu)
    for _ in range(_REPAIRS):
        inner = (unit * du).sum(-1, keepdim=True)
        parts = solve(
            dnu - du @ factor.mT,
            unit + bend * (du - unit * inner) - dq @ factor,
            -dq.sum(-1, keepdim=True),
        )
        dq, du, dnu = dq + parts[0], du + parts[1], dnu + parts[2]
    dq = dq - q * dq.sum(-1, keepdim=True)  # scores may have a large offset
    left = torch.where(better.squeeze(-1), new_gap, old_gap)  # the new may be NaN
    return q, u, dq, left, new_active


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _length(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, 2, -1, keepdim=True)


def _to_zero(a: Tensor, da: Tensor) -> Tensor:
    """The step at which the first entry of ``a + step * da`` vanishes."""
    return 1 / (-da / a).amax(-1, keepdim=True).clamp_min(torch.finfo(a.dtype).tiny)


def _to_cone(a0: Tensor, a: Tensor, d0: Tensor, d: Tensor) -> Tensor:
    """The step at which ``|a + step * d| = a0 + step * d0``."""
    square = d0 * d0 - _dot(d, d)
    linear = a0 * d0 - _dot(a, d)
    length = _length(a)
    constant = (a0 - length) * (a0 + length)
    root = (linear * linear - square * constant).clamp_min(0.0).sqrt()
    below = root - linear
    return torch.where(below > 0, constant / below, torch.inf)
