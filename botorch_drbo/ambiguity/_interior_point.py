"""Linear scores over the simplex and a Euclidean ball: a primal-dual interior point.

A batched interior-point method of cone programming, for the second-order cone program
``min { q.f : q in the simplex, |factor' (q - p)| <= radius }``: Nesterov-Todd scaling
[NesterovTodd1997]_ and Mehrotra's predictor and corrector [Mehrotra1992]_. It works in
the space of the factor's columns, so a step costs ``n r^2 + r^3`` for a factor of rank
``r``, and never ``n^3``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

MAX_STEPS = 60
EARLY = 1e-8  # duality gap after which the polish is tried; the scores' range is one
TOLERANCE = 1e-12  # duality gap of a solved row
_MIN_CLOSED_SHARE = 0.2  # share of finished rows that is worth taking out of the batch
_NEAR_OPTIMAL = 1e-8  # below it, a gap that no longer halves is rounding
_PATIENCE = 3  # steps without a halved gap
_SHARED_ELEMENTS = 2**22  # 32 MiB for the products of the factor's columns
_MAX_POLISHES = 3  # with corrected active sets; the last after more steps of the path
_STIFFNESS = 1e7  # largest weight of an atom in the polish's linear system
_REFINEMENTS = 5  # steps of iterative refinement of that system, with one factor
_FEW_ROWS = 8  # for fewer rows it does not pay to form the products


@dataclass
class _Iterate:
    """The state of the open rows, and the best certified point of each."""

    row: Tensor  # b: the row of the whole problem
    f: Tensor  # b x n
    p: Tensor  # b x n
    radius: Tensor  # b x 1, > 0
    q: Tensor  # b x n, primal, > 0
    y: Tensor  # b x r, primal, |y| < 1; in the end factor' (q - p) / radius
    u: Tensor  # b x r, dual, times the radius
    kappa: Tensor  # b x 1, dual, > |u|
    nu: Tensor  # b x 1, dual
    gap: Tensor  # b, the smallest so far
    best_q: Tensor
    best_u: Tensor
    best_nu: Tensor
    mean_difference: Tensor  # b x r, factor' (q - p) / radius
    z: Tensor  # b x n, dual, > 0
    stalled: Tensor  # b, steps since the gap last halved

    def take(self, rows: Tensor) -> _Iterate:
        return _Iterate(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Optimum:
    """The ends of all rows: ``q`` and ``u`` bound the value from above and below."""

    # A point of the simplex, ``b x n``, perhaps a little outside the ball.
    q: Tensor
    # The dual point, ``b x r``; its length is the multiplier.
    u: Tensor
    # ``dq / d radius``, ``b x n``.
    direction: Tensor


class _NormalMatrix:
    """``A' diag(D) A`` for ``A = [factor, -1]`` and each row of weights ``D``.

    The matrices and their factors are written into the same memory at every step: to
    get memory of this size anew takes as long as to factorise.
    """

    def __init__(self, factor: Tensor, num_rows: int) -> None:
        n, rank = factor.shape
        self.columns = torch.cat([factor, -factor.new_ones(n, 1)], dim=-1)
        # The dual matrix is a sum over atoms of outer products of these columns.
        self.products = None
        if num_rows > _FEW_ROWS and n * (rank + 1) ** 2 <= _SHARED_ELEMENTS:
            # All rows share the factor, so one matrix product serves the batch.
            pairs = self.columns[:, :, None] * self.columns[:, None, :]
            self.products = pairs.reshape(n, -1)
        self.matrix = factor.new_empty(num_rows, rank + 1, rank + 1)
        self.root = torch.empty_like(self.matrix)
        self.info = torch.empty(num_rows, dtype=torch.int32, device=factor.device)

    def __call__(self, weights: Tensor) -> Tensor:  # b x n -> b x (r+1) x (r+1)
        matrix = self.matrix[: len(weights)]
        if self.products is not None:
            torch.mm(weights, self.products, out=matrix.flatten(1))
        else:
            # As a square: symmetric to the last bit, whatever the weights.
            scaled = weights.sqrt()[..., None] * self.columns
            torch.bmm(scaled.mT, scaled, out=matrix)
        return matrix

    def factorise(self, matrix: Tensor) -> Tensor:
        num = len(matrix)
        # It is symmetric, and its transpose has the layout that LAPACK wants.
        out = self.root[:num].mT, self.info[:num]
        return torch.linalg.cholesky_ex(matrix.mT, out=out).L


def _solve(cholesky: Tensor, right: Tensor) -> Tensor:  # b x r -> b x r
    # Half the time of `cholesky_solve`, which copies the matrices.
    half = torch.linalg.solve_triangular(cholesky, right[..., None], upper=False)
    return torch.linalg.solve_triangular(cholesky.mT, half, upper=True).squeeze(-1)


def minimise(
    f: Tensor,
    p: Tensor,
    factor: Tensor,
    radius: Tensor,
    early: float = EARLY,
    tolerance: float = TOLERANCE,
) -> Optimum:
    """Solve ``min { q.f : q in the simplex, |factor' (q - p)| <= radius }``.

    With ``u`` in ``R^r`` the dual is ``max_u min_i (f + L u)_i - p' L u - radius |u|``.
    Both sides are followed along the central path; any ``q`` of the simplex and any
    ``u`` bound the value (weak duality), and each row keeps the pair with the smallest
    duality gap.

    Shapes: ``f``: ``b x n``, ``p``: ``b x n``, ``factor``: ``n x r``, ``radius``: ``b x
    1``.
    """
    normal = _NormalMatrix(factor, len(f))
    # Start: equal weights; y at most half way to the border of its cone; no multiplier
    # of the ball. Scores are at least zero, so nu = -1/2 makes every slack z positive,
    # and kappa the complementarity of the cone equal to the mean one of an atom.
    q = torch.full_like(p, 1 / p.shape[-1])
    mean_difference = (q - p) @ factor / radius
    u, nu = torch.zeros_like(mean_difference), torch.full_like(p[:, :1], -0.5)
    z = f - nu
    state = _Iterate(
        row=torch.arange(len(f), device=f.device),
        f=f,
        p=p,
        radius=radius,
        q=q,
        y=mean_difference * (0.5 / length(mean_difference)).clamp_max(1.0),
        u=u,
        kappa=z.mean(-1, keepdim=True) / p.shape[-1],
        nu=nu,
        gap=torch.full_like(p[:, 0], torch.inf),
        best_q=q,
        best_u=u,
        best_nu=nu,
        mean_difference=mean_difference,
        z=z,
        stalled=torch.zeros_like(p[:, 0]),
    )
    # Most rows are solved by the polish, long before the path ends.
    state = _follow(state, factor, normal, early)
    q, u, direction, gap, active = _polish(state, factor, normal)
    # Then with the active set that the last polish corrected.
    for step in range(_MAX_POLISHES):
        unsolved = (gap > tolerance).nonzero().squeeze(-1)
        if not len(unsolved):
            break
        # A wrong guess of the active set is corrected by one round of exchanges ...
        subset, active_set = state.take(unsolved), active[unsolved]
        # ... and in the end by a better point of the path.
        if step == _MAX_POLISHES - 1:
            subset, active_set = _follow(subset, factor, normal, tolerance), None
        found = _polish(subset, factor, normal, active_set)
        active[unsolved] = found[-1]
        # Each answer carries its proof: the one with the smaller gap stays.
        better = found[3] <= gap[unsolved]
        for whole, new in zip((q, u, direction, gap), found[:4], strict=True):
            whole[unsolved[better]] = new[better]
    return Optimum(q, u / radius, direction)


def _follow(
    state: _Iterate, factor: Tensor, normal: _NormalMatrix, tolerance: float
) -> _Iterate:
    """Follow the central path until each row's gap is small or no longer falls."""
    done: list[_Iterate] = []
    state.stalled = torch.zeros_like(state.stalled)
    for _ in range(MAX_STEPS):
        finite = _step(state, factor, normal)
        _certify(state, factor)
        # A row is done where its gap is small, where the step failed, or where a gap
        # that is small already does not halve any more: that is rounding.
        closed = (state.gap <= tolerance) | ~finite
        closed |= (state.gap <= _NEAR_OPTIMAL) & (state.stalled >= _PATIENCE)
        num_closed, num_rows = int(closed.sum()), len(closed)
        if num_closed == num_rows:
            break
        if num_closed > _MIN_CLOSED_SHARE * num_rows:  # copies have a price, too
            done.append(state.take(closed))
            state = state.take(~closed)
    done.append(state)
    state = _Iterate(
        *(torch.cat([getattr(s, f.name) for s in done]) for f in fields(_Iterate))
    )
    return state.take(torch.argsort(state.row))


def lower_bound(
    f: Tensor, p: Tensor, u: Tensor, factor: Tensor, radius: Tensor
) -> Tensor:
    """The dual value ``b x 1`` of any ``u``, ``b x r``: never above the exact value."""
    # Lagrange's dual: over the simplex q.(f + F u) is least at one atom, and over the
    # ball u.(F'(q - p)) at -radius |u|. Weak duality needs no more.
    shift = u @ factor.mT
    return (f + shift).amin(-1, keepdim=True) - dot(p, shift) - radius * length(u)


def _certify(state: _Iterate, factor: Tensor) -> None:
    """Bound the value from both sides and keep the better pair."""
    f, p, q, u = state.f, state.p, state.q, state.u
    difference = q - p
    state.mean_difference = difference @ factor / state.radius
    # Primal: q pulled back into the ball. Dual: the value at u.
    share = (1 / length(state.mean_difference)).clamp_max(1.0)
    shift = (u / state.radius) @ factor.mT
    score = f + shift
    state.z = (score - state.nu).clamp_min_(torch.finfo(f.dtype).tiny)
    lower = score.amin(-1, keepdim=True) - dot(p, shift) - length(u)
    gap = (dot(f, p) + share * dot(f, difference) - lower).squeeze(-1)
    # Near the optimum an iterate may be worse than the last one.
    better = gap < state.gap
    state.stalled = torch.where(gap < 0.5 * state.gap, 0.0, state.stalled + 1)
    state.gap = torch.where(better, gap, state.gap)
    keep = better[:, None]
    state.best_q = torch.where(keep, q, state.best_q)
    state.best_u = torch.where(keep, u, state.best_u)
    state.best_nu = torch.where(keep, state.nu, state.best_nu)


def _step(state: _Iterate, factor: Tensor, normal: _NormalMatrix) -> Tensor:
    """Take one predictor-corrector step; returns where it was finite, ``b``."""
    q, y, u, z = state.q, state.y, state.u, state.z
    kappa, nu, radius = state.kappa, state.nu, state.radius
    rank = factor.shape[-1]
    primal_residual = y - state.mean_difference  # zero after the first full step
    # The scaling of the orthant, D = diag(q / z).
    weights = q / z
    # What is done to both sides alike is done at once: 2 x b x ...
    cone, tip = torch.stack([y, u]), torch.stack([torch.ones_like(kappa), kappa])
    size = length(cone)
    margin = (tip - size) * (tip + size)
    orthant = torch.stack([q, z])

    # Nesterov-Todd scaling W of the cones of (1, y) and (kappa, -u): W is `scale`
    # times the hyperbolic reflection of the unit point (v0, v).
    # Distances to the border of the cone, in its own (hyperbolic) metric.
    root_primal, root_dual = margin.sqrt()
    root = root_primal * root_dual
    product = kappa - dot(y, u)
    v = y / root_primal + u / root_dual
    v = v / (2 + 2 * product / root).sqrt()
    v0_squared = 1 + dot(v, v)
    v0 = v0_squared.sqrt()
    scale2 = root_primal / root_dual
    scale = scale2.sqrt()

    # Schur complement A' diag(q / z) A + W^2, with A = [factor, -1]. The first entry of
    # the primal cone stays 1, so kappa is eliminated: a rank-one correction.
    h0 = scale2 * (2 * v0_squared - 1)
    h = (2 * scale2 * v0) * v
    matrix = normal(weights)  # for u / radius, so that all rows share the factor
    rank_one = (2 * scale2 / (2 * v0_squared - 1)).sqrt() * radius * v
    _add_outer(matrix, rank_one, -1.0)
    matrix.diagonal(dim1=-2, dim2=-1)[:, :rank] += scale2 * radius * radius
    cholesky = normal.factorise(matrix)

    def newton(c: Tensor, r0: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        # Eliminated in turn: dz = F du - dnu; dq = c / z - D dz, from the orthant;
        # dkappa and dy, from the cone. What is left are du / radius and dnu, in the
        # Schur complement that is factored above, once for both right sides.
        cz = c / z
        right = cz @ factor - radius * (primal_residual + r - h * (r0 / h0))
        right = torch.cat([right, -cz.sum(-1, keepdim=True)], dim=-1)
        found = _solve(cholesky, right)
        du, dnu = found[:, :rank], found[:, rank:]
        dz = du @ factor.mT - dnu
        du = radius * du
        dkappa = (r0 + dot(h, du)) / h0
        dy = r - h * dkappa + scale2 * (du + 2 * v * dot(v, du))
        return torch.addcmul(cz, weights, dz, value=-1), dy, du, dnu, dz, dkappa

    def step_lengths(
        dq: Tensor, dy: Tensor, du: Tensor, dz: Tensor, dkappa: Tensor
    ) -> Tensor:
        """Ratio test: the largest primal and dual steps, at most one."""
        direction = torch.stack([dy, du])
        tip_direction = torch.stack([torch.zeros_like(dkappa), dkappa])
        step = _to_cone(tip, cone, margin, tip_direction, direction)
        # q + a dq >= 0 up to a = -1 / min(dq / q), and so for z.
        decrease = (torch.stack([dq, dz]) / orthant).amin(-1, keepdim=True)
        return torch.minimum(step, -1 / decrease.clamp_max(-1.0))  # at most one

    # Predictor (affine scaling): the Newton step for a complementarity of zero.
    qz = q * z
    dq, dy, du, _, dz, dkappa = newton(-qz, -torch.ones_like(kappa), -y)
    a, b = step_lengths(dq, dy, du, dz, dkappa)
    mu = qz.sum(-1, keepdim=True) + product
    second_order = dq * dz
    affine_gap = dot(q + a * dq, z + b * dz) + kappa + b * dkappa
    affine_gap = affine_gap - dot(y + a * dy, u + b * du)
    # Mehrotra's rule: sigma = (mu_affine / mu)^3, the target is sigma mu / degree.
    centring = mu * (affine_gap / mu).clamp(0.0, 1.0) ** 3 / (q.shape[-1] + 1)

    # Corrector: towards the central path, with the predictor's second-order terms. In
    # the cone these are Jordan products of scaled variables: the point is
    # lam = W (kappa, -u) = W^-1 (1, y), its steps are s = W^-1 (0, dy) and w.
    inner = dot(v, u)
    lam0 = scale * (v0 * kappa - inner)
    lam = scale * (v * (kappa - inner / (1 + v0)) - u)
    inner = dot(v, dy)
    s0, s = -inner / scale, (dy + v * (inner / (1 + v0))) / scale
    inner = dot(v, du)
    w0 = scale * (v0 * dkappa - inner)
    w = scale * (v * (dkappa - inner / (1 + v0)) - du)
    c0 = centring - lam0 * lam0 - dot(lam, lam) - s0 * w0 - dot(s, w)
    c = -2 * lam0 * lam - s0 * w - w0 * s
    x0 = (lam0 * c0 - dot(lam, c)) / root
    x = (c - lam * x0) / lam0
    inner = dot(v, x)
    r0, r = scale * (v0 * x0 + inner), scale * (x + v * (x0 + inner / (1 + v0)))
    dq, dy, du, dnu, dz, dkappa = newton(centring - qz - second_order, r0, r)
    a, b = step_lengths(dq, dy, du, dz, dkappa)
    # Fraction to the boundary: smaller where the step was cut short.
    damping = 0.9 + 0.09 * torch.minimum(a, b)
    a, b = damping * a, damping * b
    # Rounding lets the sum drift from one.
    q = q + a * dq
    state.q = q / q.sum(-1, keepdim=True)
    state.y, state.u = y + a * dy, u + b * du
    state.nu, state.kappa = nu + b * dnu, kappa + b * dkappa
    # One look for three: a sum is not finite if one of its terms is not.
    return (state.q.sum(-1) + state.u.sum(-1) + state.kappa.squeeze(-1)).isfinite()


def _polish(
    state: _Iterate,
    factor: Tensor,
    normal: _NormalMatrix,
    active: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Newton's method on the active atoms; then their derivative in the radius.

    The interior-point method ends where its matrix is too ill-conditioned to go on.
    Here the weights of that matrix are bounded, and the error of the bound is removed
    by iterative refinement with exact residuals. A row that gets worse keeps its old
    point.
    """
    f, p, q, u, radius = state.f, state.p, state.best_q, state.best_u, state.radius
    rank, tiny = factor.shape[-1], torch.finfo(f.dtype).tiny

    def mean_difference(x: Tensor) -> Tensor:
        return x @ factor / radius

    def shift(u: Tensor) -> Tensor:
        return (u / radius) @ factor.mT

    z = (f + shift(u) - state.best_nu).clamp_min(tiny)
    # Strict complementarity: q > z, with q in units of the largest weight change.
    if active is None:
        active = q > z * (q - p).abs().amax(-1, keepdim=True)
    # At the optimum F'(q - p) / radius = u / |u|, whose derivative in u is curvature (I
    # - unit unit').
    curvature = 1 / length(u).clamp_min(tiny)
    unit = u * curvature
    # Atoms that are not active have no part in the system. An active one has a slack of
    # zero in the end: a spring that is stiff, but for the sake of the factor not rigid.
    ratio = torch.where(active, (q / z).clamp_max(_STIFFNESS), 0.0)
    matrix = normal(ratio)
    _add_outer(matrix, curvature.sqrt() * radius * unit, -1.0)
    matrix.diagonal(dim1=-2, dim2=-1)[:, :rank] += curvature * radius * radius
    cholesky = normal.factorise(matrix)

    def solve(
        first: Tensor, second: Tensor, third: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Newton's system of (dq, du, dnu), with dq eliminated by its diagonal.
        weighted = ratio * first
        right = torch.cat(
            [
                weighted @ factor - radius * second,
                third - weighted.sum(-1, keepdim=True),
            ],
            dim=-1,
        )
        found = _solve(cholesky, right)
        du, dnu = found[:, :rank], found[:, rank:]
        return weighted - ratio * (du @ factor.mT - dnu), radius * du, dnu

    def gap(q: Tensor, u: Tensor) -> Tensor:
        share = (1 / length(mean_difference(q - p))).clamp_max(1.0)
        upper = dot(f, p + share * (q - p))
        return (upper - lower_bound(f, p, u / radius, factor, radius)).squeeze(-1)

    # Start of the refinement: the path's point on the active atoms, and the multiplier
    # of the sum that belongs to it.
    new_q = torch.where(active, q, 0.0)
    new_u = u
    nu = dot(f + shift(u), new_q)
    for _ in range(_REFINEMENTS):
        # Residuals of stationarity, of the cone and of the sum; one factor does for all
        # steps, as in iterative refinement.
        dq, du, dnu = solve(
            nu - f - shift(new_u),
            new_u / length(new_u).clamp_min(tiny) - mean_difference(new_q - p),
            1 - new_q.sum(-1, keepdim=True),
        )
        new_q, new_u, nu = new_q + dq, new_u + du, nu + dnu
    # Exchange: negative weights leave the active set, negative multipliers enter it.
    negative, violated = new_q < 0, shift(new_u) + f < nu
    new_active = (active & ~negative) | (~active & violated)
    new_q = new_q.clamp_min(0.0)
    new_q = new_q / new_q.sum(-1, keepdim=True)
    new_gap, old_gap = gap(new_q, new_u), gap(q, u)
    # With a wrong active set the point is worse; also NaN is not better.
    better = (new_gap <= old_gap)[:, None]
    q, u = torch.where(better, new_q, q), torch.where(better, new_u, u)

    # Sensitivity in the radius: the same KKT system, differentiated.
    dq, du, dnu = torch.zeros_like(q), torch.zeros_like(u), torch.zeros_like(nu)
    for _ in range(_REFINEMENTS):
        correction = solve(
            dnu - shift(du),
            unit + curvature * (du - unit * dot(unit, du)) - mean_difference(dq),
            -dq.sum(-1, keepdim=True),
        )
        dq, du, dnu = dq + correction[0], du + correction[1], dnu + correction[2]
    dq = dq - q * dq.sum(-1, keepdim=True)  # scores may have a large offset
    gap_left = torch.where(better.squeeze(-1), new_gap, old_gap)  # the new may be NaN
    return q, u, dq, gap_left, new_active


def dot(a: Tensor, b: Tensor) -> Tensor:
    """``a'b`` of each row, ``... x 1``."""
    return (a * b).sum(-1, keepdim=True)


def length(a: Tensor) -> Tensor:
    """``|a|`` of each row, ``... x 1``."""
    return torch.linalg.vector_norm(a, 2, -1, keepdim=True)


def _add_outer(matrix: Tensor, v: Tensor, sign: float) -> None:
    """Add ``sign * v v'`` in place; the matrix has one row more than ``v``."""
    v = torch.nn.functional.pad(v, (0, 1))
    matrix.baddbmm_(v[:, :, None], v[:, None, :], alpha=sign)


def _to_cone(
    tip: Tensor, point: Tensor, margin: Tensor, tip_step: Tensor, step: Tensor
) -> Tensor:
    """The step at which ``|a + step * d| = a0 + step * d0``."""
    # (a0 + s d0)^2 - |a + s d|^2 = margin + 2 s linear + s^2 square. Its smallest
    # positive root, in the form in which nothing cancels.
    square = tip_step * tip_step - dot(step, step)
    linear = tip * tip_step - dot(point, step)
    root = (linear * linear - square * margin).clamp_min_(0.0).sqrt_()
    denominator = root - linear
    return torch.where(denominator > 0, margin / denominator, torch.inf)
