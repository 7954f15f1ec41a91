"""The kernel ball against cvxpy, closed forms, certificates and reference instances."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.ambiguity import MaximumMeanDiscrepancy, SolverStatus
from botorch_drbo.ambiguity import _active_set as active_set
from botorch_drbo.ambiguity import _interior_point as interior_point
from tests.ambiguity.reference import instances, needs_reference

KERNELS = ["se_0.1", "se_0.2", "se_0.5", "matern12"]


def grid(n: int, d: int) -> Tensor:
    axis = torch.linspace(0, 1, round(n ** (1 / d)), dtype=torch.double)
    return torch.cartesian_prod(*[axis] * d).reshape(-1, d)


def kernel(name: str, points: Tensor) -> Tensor:
    """No jitter: these are as ill-conditioned as users' kernels are."""
    apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    if name == "matern12":
        return torch.exp(-apart / 0.2)
    return torch.exp(-0.5 * (apart / float(name[3:])).square())


def instance(points: Tensor, rough: bool, zeros: bool = False, rows: int = 3):
    generator = torch.Generator().manual_seed(len(points))
    n, d = points.shape
    if rough:
        f = torch.randn(rows, n, generator=generator, dtype=torch.double)
    else:
        wave = 5 * torch.randn(rows, d, 3, generator=generator, dtype=torch.double)
        phase = 6 * torch.rand(rows, 1, 3, generator=generator, dtype=torch.double)
        f = torch.sin(points @ wave + phase).sum(-1)
    p = torch.rand(rows, n, generator=generator, dtype=torch.double)
    if zeros:
        p[:, ::2] = 0
    return f, p / p.sum(-1, keepdim=True)


def by_cvxpy(f: Tensor, p: Tensor, matrix: Tensor, radius: float) -> float:
    """The primal cone program, in any root of the kernel matrix."""
    eigenvalues, vectors = np.linalg.eigh(matrix.numpy())
    root = np.sqrt(np.clip(eigenvalues, 0, None))[:, None] * vectors.T
    span = float(f.max() - f.min()) or 1.0
    q = cp.Variable(len(f), nonneg=True)
    away = cp.norm(root @ (q - p.numpy()) / radius)
    problem = cp.Problem(
        cp.Minimize(((f - f.min()) / span).numpy() @ q), [cp.sum(q) == 1, away <= 1]
    )
    tight = {f"tol_{name}": 1e-11 for name in ("gap_abs", "gap_rel", "feas")}
    problem.solve(solver=cp.CLARABEL, **tight)
    return float(f.min()) + span * float(problem.value)


def proof(f: Tensor, p: Tensor, ball: MaximumMeanDiscrepancy, matrix: Tensor):
    """The answer, its distance from p and its gap to the dual value it comes with.

    ``dv/dp`` is ``-g`` for a function ``g`` of the kernel's space whose norm is the
    multiplier: ``min(f + g) - p.g - radius * norm`` bounds the value from below.
    """
    p = p.clone().requires_grad_()
    robust = ball.worst_case(f, p)
    (gradient,) = torch.autograd.grad(robust.value.sum(), p)
    p = p.detach()
    # No function of that norm may separate two contexts by more than their distance.
    apart = matrix.diagonal()[:, None] + matrix.diagonal() - 2 * matrix
    bound = robust.multiplier[:, None, None] * apart.clamp_min(0).sqrt()
    assert ((gradient[:, :, None] - gradient[:, None, :]).abs() <= bound + 1e-6).all()
    lower = (f - gradient).amin(-1) + (p * gradient).sum(-1)
    lower = lower - ball.radius * robust.multiplier
    d = robust.weights - p
    distance = (d * (d @ matrix)).sum(-1).clamp_min(0).sqrt()
    return robust, distance, robust.value.detach() - lower


@needs_reference
def test_reference_instances():
    for i in instances("mmd"):
        ball = MaximumMeanDiscrepancy(i["eps"], i["M"])
        robust = ball.worst_case(i["f"], i["p"])
        assert abs(robust.value - i["value"]) <= 1e-11 * (1 + abs(i["value"]))
        assert abs(robust.multiplier - i["multiplier"]) <= 1e-8 * (1 + i["multiplier"])
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("radius", [1e-3, 0.02, 0.4])
@pytest.mark.parametrize("rough", [True, False])
def test_equals_cvxpy(name, d, radius, rough):
    points = grid(36, d)
    matrix = kernel(name, points)
    f, p = instance(points, rough, zeros=rough, rows=1)
    robust = MaximumMeanDiscrepancy(radius, matrix).worst_case(f, p)
    expected = by_cvxpy(f[0], p[0], matrix, radius)
    span = (f.max() - f.min()).item()
    assert robust.status is SolverStatus.EXACT
    assert abs(robust.value.item() - expected) <= 1e-7 * span


@pytest.mark.parametrize("kind", ["ties", "zeros", "huge", "tiny", "offset", "skew"])
@pytest.mark.parametrize("radius", [0.01, 0.3])
def test_equals_cvxpy_on_awkward_scores(kind, radius):
    points = grid(20, 1)
    matrix = kernel("se_0.2", points)
    f, p = instance(points, True, zeros=kind == "zeros", rows=1)
    if kind == "ties":
        f = f.round()
    if kind == "skew":
        p = torch.softmax(8 * p * 20, -1)
    f = {"huge": 1e6, "tiny": 1e-6}.get(kind, 1.0) * f + 1e8 * (kind == "offset")
    robust = MaximumMeanDiscrepancy(radius, matrix).worst_case(f, p)
    expected = by_cvxpy(f[0], p[0], matrix, radius)
    span = (f.max() - f.min()).item()
    assert abs(robust.value.item() - expected) <= 1e-7 * span + 1e-15 * abs(expected)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("radius", [1e-3, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("zeros", [True, False])
def test_answers_carry_their_proof(name, d, radius, zeros):
    """n = 100, singular in floating point: feasible, and equal to a dual value."""
    points = grid(100, d)
    matrix = kernel(name, points)
    for rough in (True, False):
        f, p = instance(points, rough, zeros, rows=6)
        ball = MaximumMeanDiscrepancy(radius, matrix)
        robust, distance, gap = proof(f, p, ball, matrix)
        assert robust.status is SolverStatus.EXACT
        assert (robust.weights >= 0).all()
        assert (gap.abs() <= 1e-8 * (f.amax(-1) - f.amin(-1))).all()
        assert (distance <= radius + 1e-9).all()
        assert (ball.distance(p, robust.weights) <= radius * (1 + 1e-12)).all()


def test_a_thousand_contexts():
    points = grid(1024, 1)
    matrix = kernel("se_0.2", points)
    f, p = instance(points, rough=False, rows=4)
    ball = MaximumMeanDiscrepancy(0.1, matrix)
    robust, distance, gap = proof(f, p, ball, matrix)
    assert robust.status is SolverStatus.EXACT
    assert (gap.abs() <= 1e-8).all() and (distance <= 0.1 + 1e-9).all()


@pytest.mark.parametrize("radius", [0.0, 1e-12, 1e-6, 1e-3])
def test_closed_form_of_small_radii(radius):
    """Until a weight reaches zero, v = p.f - eps sqrt(f' Pi f)."""
    points = grid(12, 1)
    matrix = kernel("matern12", points)
    f, p = instance(points, rough=True)
    inverse = torch.linalg.inv(matrix)
    ones = inverse.sum(-1)
    projected = inverse - torch.outer(ones, ones) / ones.sum()
    slope = ((f @ projected) * f).sum(-1).sqrt()
    robust = MaximumMeanDiscrepancy(radius, matrix).worst_case(f, p)
    torch.testing.assert_close(
        robust.value, (p * f).sum(-1) - radius * slope, rtol=1e-13, atol=1e-13
    )
    torch.testing.assert_close(robust.multiplier, slope, rtol=1e-10, atol=0)
    expected = p - radius * (f @ projected) / slope[:, None]
    torch.testing.assert_close(robust.weights, expected, rtol=0, atol=1e-12)


def test_multiplier_at_radius_zero_with_zero_weights():
    """Atoms without mass can only receive: the slope is that of a cone program."""
    points = grid(12, 1)
    matrix = kernel("matern12", points)
    f, p = instance(points, rough=True, zeros=True)
    at_zero = MaximumMeanDiscrepancy(0.0, matrix).worst_case(f, p)
    torch.testing.assert_close(at_zero.weights, p)
    torch.testing.assert_close(at_zero.value, (p * f).sum(-1))
    h = 1e-4
    above = [by_cvxpy(*row, matrix, h) for row in zip(f, p, strict=True)]
    slope = (at_zero.value - torch.tensor(above, dtype=torch.double)) / h
    torch.testing.assert_close(at_zero.multiplier, slope, rtol=1e-5, atol=0)


@pytest.mark.parametrize("radius", [1e-6, 1e-3, 0.1, 0.35])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("name", ["se_0.2", "matern12"])
def test_sensitivity_is_the_slope(name, radius, zeros):
    points = grid(16, 1)
    matrix = kernel(name, points) + 1e-6 * torch.eye(16, dtype=torch.double)
    f, p = instance(points, rough=True, zeros=zeros)
    h = (1e-2 if radius < 1e-5 else 1e-4) * radius  # v is linear near zero
    up, here, down = (
        MaximumMeanDiscrepancy(radius + step, matrix).worst_case(f, p)
        for step in (h, 0.0, -h)
    )
    ball = MaximumMeanDiscrepancy(radius, matrix)
    slope = -here.multiplier
    torch.testing.assert_close(ball.sensitivity(f, p), slope, rtol=1e-9, atol=1e-9)
    noise = 1e-15 / h
    found = (up.value - down.value) / (2 * h)
    torch.testing.assert_close(found, slope, rtol=1e-4, atol=noise + 1e-6)
    moved = (up.weights - down.weights) / (2 * h)
    size = torch.full((len(f), 1), radius, dtype=torch.double)
    direction = ball.solve(f, p, size).direction
    # Near zero the value has its twelve digits, but q - p only three of its own.
    noise = 1e-4 + 5e-9 / radius
    torch.testing.assert_close(moved, direction, rtol=1e-3, atol=noise)


def test_saturation():
    """Once the point mass on the lowest score is in the ball, the radius is idle."""
    points = grid(15, 1)
    matrix = kernel("se_0.2", points)
    f, p = instance(points, rough=True, rows=1)
    vertex = torch.zeros_like(p).scatter(-1, f.argmin(-1, keepdim=True), 1.0)
    needed = MaximumMeanDiscrepancy(0.0, matrix).distance(p, vertex)
    d = vertex - p
    torch.testing.assert_close(needed, (d * (d @ matrix)).sum(-1).sqrt())
    below, at, above = (
        MaximumMeanDiscrepancy(needed.item() + step, matrix).worst_case(f, p)
        for step in (-1e-4, 1e-15, 1e-4)
    )
    assert below.value > f.min() and below.multiplier > 0
    for robust in (at, above):
        assert robust.value == f.min() and robust.multiplier == 0
        torch.testing.assert_close(robust.weights, vertex)


def test_two_lowest_scores_may_share_the_mass():
    """Neither point mass is in the ball, but a mixture of both is."""
    matrix = torch.eye(3, dtype=torch.double)
    f = torch.tensor([0.0, 0.0, 1.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)
    p = 0.9 * p + 0.1 * torch.tensor([0.0, 0.0, 1.0], dtype=torch.double)
    robust = MaximumMeanDiscrepancy(0.3, matrix).worst_case(f, p)
    assert robust.value.item() == pytest.approx(0.0, abs=1e-9)
    assert robust.multiplier.item() == pytest.approx(0.0, abs=1e-6)


def test_rows_do_not_know_of_each_other():
    points = grid(30, 1)
    ball = MaximumMeanDiscrepancy(0.1, kernel("se_0.1", points))
    f, p = instance(points, rough=True, rows=12)
    f[3] = 1.0  # nothing to solve
    f[4] = 1e-3 * f[4]
    together = ball.worst_case(f, p)
    for row in range(12):
        alone = ball.worst_case(f[row], p[row])
        torch.testing.assert_close(alone.value, together.value[row], rtol=0, atol=1e-11)


def test_permutation_of_contexts():
    points = grid(16, 2)
    matrix = kernel("se_0.5", points)
    f, p = instance(points, rough=True)
    order = torch.randperm(16)
    plain = MaximumMeanDiscrepancy(0.1, matrix).worst_case(f, p)
    moved = MaximumMeanDiscrepancy(0.1, matrix[order][:, order]).worst_case(
        f[:, order], p[:, order]
    )
    torch.testing.assert_close(moved.value, plain.value, rtol=0, atol=1e-9)


def test_one_context_and_a_kernel_that_sees_nothing():
    one = torch.ones(1, 1, dtype=torch.double)
    for radius in (0.0, 0.3):
        ball = MaximumMeanDiscrepancy(radius, one)
        assert ball.worst_case(3 * one[0], one[0]).value == 3.0
    f = torch.tensor([1.0, 3.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    constant = torch.ones(2, 2, dtype=torch.double)
    assert MaximumMeanDiscrepancy(0.1, constant).worst_case(f, p).value == 1.0


def test_duplicate_contexts_exchange_their_mass_freely():
    points = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.double)
    matrix = kernel("se_0.5", points)
    f = torch.tensor([1.0, 3.0, 2.0], dtype=torch.double)
    p = torch.tensor([0.4, 0.4, 0.2], dtype=torch.double)
    robust = MaximumMeanDiscrepancy(1e-3, matrix).worst_case(f, p)
    expected = by_cvxpy(f, p, matrix, 1e-3)
    assert robust.value.item() == pytest.approx(expected, abs=1e-7)
    assert expected < 1.2


def test_an_offset_of_the_scores_changes_nothing():
    points = grid(25, 1)
    ball = MaximumMeanDiscrepancy(0.1, kernel("se_0.2", points))
    f, p = instance(points, rough=False)
    moved = ball.worst_case(f + 1e8, p)
    plain = ball.worst_case((f + 1e8) - 1e8, p)
    torch.testing.assert_close(moved.weights, plain.weights)
    torch.testing.assert_close(moved.multiplier, plain.multiplier)


@pytest.mark.parametrize("name", ["se_0.2", "matern12"])
def test_a_radius_per_row_is_that_radius(name):
    """All at once or each by itself: zero, nearly zero, usual and idle radii."""
    radii = torch.tensor([0.0, 1e-8, 1e-3, 0.1, 9.0], dtype=torch.double)
    points = grid(49, 1)
    matrix = kernel(name, points)
    f, p = instance(points, rough=True, zeros=True, rows=5)
    ball = MaximumMeanDiscrepancy(0.1, matrix)
    together = ball.solve(f, p, radii[:, None])
    span = f.amax(-1) - f.amin(-1)
    for row, radius in enumerate(radii.tolist()):
        at = slice(row, row + 1)
        alone = ball.solve(f[at], p[at], radii[at, None])
        assert (ball.distance(p[at], together.weights[at]) <= radius + 1e-13).all()
        moved = (together.weights[at] - alone.weights) @ f[row]
        assert abs(moved.item()) <= 1e-9 * span[row]
        multiplier = together.multiplier[at]
        torch.testing.assert_close(multiplier, alone.multiplier, rtol=1e-6, atol=0)
    assert (together.multiplier > 0).tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("name", ["se_0.2", "matern12"])
@pytest.mark.parametrize("rough", [True, False])
def test_the_active_set_method_agrees_with_the_other(name, rough, monkeypatch):
    points = grid(49, 2)
    ball = MaximumMeanDiscrepancy(0.1, kernel(name, points))
    f, p = instance(points, rough, rows=20)
    fast = ball.worst_case(f, p)
    monkeypatch.setattr(active_set, "MAX_PIVOTS", 0)
    slow = ball.worst_case(f, p)
    torch.testing.assert_close(fast.value, slow.value, rtol=0, atol=1e-8)
    torch.testing.assert_close(fast.multiplier, slow.multiplier, rtol=1e-4, atol=0)


@pytest.mark.parametrize("inverted", [True, False])
def test_the_active_set_method_meets_the_conditions_of_optimality(inverted):
    points = grid(40, 1)
    matrix = kernel("matern12", points)
    f, p = instance(points, rough=True, zeros=True, rows=20)
    f = f - f.amin(-1, keepdim=True)
    f = f / f.amax(-1, keepdim=True)
    # Any root will do whose columns sum to zero.
    centring = torch.eye(40, dtype=torch.double) - 1 / 40
    spectrum, vectors = torch.linalg.eigh(centring @ matrix @ centring)
    factor = (vectors * spectrum.clamp_min(0).sqrt())[:, 1:]
    white = factor / spectrum[1:]
    known = active_set.Kernel(
        factor, white, matrix, white @ white.mT if inverted else None
    )
    radius = torch.full((20, 1), 0.1, dtype=torch.double)
    found = active_set.pivot(f, p, radius, p > 0, known)
    assert found.settled.all()
    slack = f + found.u @ factor.mT
    slack = slack - slack.amin(-1, keepdim=True)
    d = found.q - p
    assert (found.q >= -1e-13).all() and (slack * found.q).abs().max() <= 1e-12
    one = torch.ones(20, dtype=torch.double)
    torch.testing.assert_close(found.q.sum(-1), one)
    torch.testing.assert_close((d * (d @ matrix)).sum(-1).sqrt(), 0.1 * one)
    along = torch.nn.functional.normalize(d @ factor, dim=-1)
    torch.testing.assert_close(torch.nn.functional.normalize(found.u, dim=-1), along)
    slope = (found.direction * f).sum(-1)
    torch.testing.assert_close(slope, -found.u.norm(dim=-1))
    h = 1e-6
    moved = active_set.pivot(f, p, radius + h, found.q > 1e-12, known).q - found.q
    torch.testing.assert_close(moved / h, found.direction, rtol=1e-4, atol=1e-4)


def test_an_unfinished_solver_returns_a_lower_bound(monkeypatch):
    points = grid(40, 1)
    ball = MaximumMeanDiscrepancy(0.1, kernel("se_0.2", points))
    f, p = instance(points, rough=True)
    exact = ball.worst_case(f, p).value
    monkeypatch.setattr(interior_point, "MAX_STEPS", 2)
    monkeypatch.setattr(active_set, "MAX_PIVOTS", 0)  # it needs no good guess here
    with pytest.warns(BotorchWarning, match="lower bound"):
        rough = ball.worst_case(f, p)
    assert rough.status is SolverStatus.LOWER_BOUND
    assert (rough.value <= exact + 1e-9).all()
    assert (ball.distance(p, rough.weights) <= 0.1 + 1e-9).all()


@pytest.mark.filterwarnings("ignore:MaximumMeanDiscrepancy of radius")
def test_what_is_called_exact_is_exact_to_a_hundred_millionth(monkeypatch):
    """Stopped early, some rows are nearly there: that is a bound, and said to be."""
    points = grid(40, 1)
    matrix = kernel("se_0.2", points)
    ball = MaximumMeanDiscrepancy(0.1, matrix)
    f, p = instance(points, rough=True, rows=6)
    exact = [by_cvxpy(*row, matrix, 0.1) for row in zip(f, p, strict=True)]
    monkeypatch.setattr(active_set, "MAX_PIVOTS", 0)
    monkeypatch.setattr(interior_point, "MAX_STEPS", 2)
    nearly = 0
    for row, expected in enumerate(exact):
        robust = ball.worst_case(f[row], p[row])
        span = (f[row].max() - f[row].min()).item()
        error = ((robust.weights @ f[row]).item() - expected) / span
        nearly += 1e-6 < error < 1e-4
        assert robust.value.item() <= expected + 2e-8 * span
        assert robust.status is SolverStatus.LOWER_BOUND or error <= 2e-8
    assert nearly  # else this proves nothing


@pytest.mark.parametrize("radius", [0.0, 1e-12])
def test_a_singular_kernel_matrix_moves_no_mass_for_free(radius):
    """Two contexts that the kernel takes for one: at radius zero q is p even so."""
    points = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.double)
    f = torch.tensor([3.0, 1.0, 2.0], dtype=torch.double)
    p = torch.tensor([1.0, 0.0, 0.0], dtype=torch.double)
    ball = MaximumMeanDiscrepancy(radius, kernel("se_0.5", points))
    robust = ball.worst_case(f, p)
    assert robust.value.item() == pytest.approx(3.0, abs=1e-3)
    assert ball.distance(p, robust.weights) <= radius
    if not radius:
        assert torch.equal(robust.weights, p)
    nearest = torch.tensor([0.0, 1.0, 0.0], dtype=torch.double)
    assert 1e-9 < ball.distance(p, nearest) < 1e-7  # as far as digits can tell


def test_distance():
    points = grid(8, 1)
    matrix = kernel("se_0.5", points)
    p, q = torch.softmax(torch.randn(2, 5, 8, dtype=torch.double), -1)
    found = MaximumMeanDiscrepancy(0.1, matrix).distance(p, q)
    d = p - q
    torch.testing.assert_close(found, (d * (d @ matrix)).sum(-1).sqrt())
    pair = torch.eye(2, dtype=torch.double)
    ball = MaximumMeanDiscrepancy(0.1, pair)
    assert ball.distance(pair[0], pair[1]).item() == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    "matrix, error, text",
    [
        (torch.tensor([[1.0, 0.5], [0.4, 1.0]]), InputDataError, "symmetric"),
        (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), InputDataError, "semi-definite"),
        (-torch.eye(3), InputDataError, "semi-definite"),
        (torch.full((2, 2), torch.nan), InputDataError, "NaN"),
        (torch.ones(2, 3), BotorchTensorDimensionError, "n x n"),
        (torch.ones(3), BotorchTensorDimensionError, "n x n"),
        (torch.ones(0, 0), BotorchTensorDimensionError, "n x n"),
    ],
)
def test_bad_kernel_matrix(matrix, error, text):
    with pytest.raises(error, match=text):
        MaximumMeanDiscrepancy(0.1, matrix)


def test_sizes_that_do_not_fit_the_kernel_matrix():
    ball = MaximumMeanDiscrepancy(0.1, torch.eye(3))
    with pytest.raises(BotorchTensorDimensionError, match="3 contexts"):
        ball.worst_case(torch.zeros(4), torch.ones(4))


def test_problems_of_earlier_calls_are_warm_starts_too(monkeypatch):
    """Ascents end one by one: all of them again must not begin from the last alone."""
    points = grid(100, 1)
    ball = MaximumMeanDiscrepancy(0.3, kernel("se_0.2", points))
    f, p = instance(points, rough=False, rows=8)
    first = ball.value(f, p)
    ball.value(f[7:] + 0.01 * f[6:7], p[7:])
    rounds = 0
    projection = active_set._projection_and_ascent

    def counted(*arguments):
        nonlocal rounds
        rounds += 1
        return projection(*arguments)

    monkeypatch.setattr(active_set, "_projection_and_ascent", counted)
    again = ball.value(f, p)
    assert rounds == 1
    torch.testing.assert_close(again, first, rtol=0, atol=1e-9)


def test_a_distant_warm_start_needs_no_interior_point(monkeypatch):
    """Of few atoms that lie far from the guess each needs rounds of its own."""
    points = grid(200, 1)
    ball = MaximumMeanDiscrepancy(0.1, kernel("se_0.5", points))
    shifts = torch.linspace(0.0, 0.35, 2, dtype=torch.double)[:, None]
    f = torch.cos(6 * (points.mT - shifts)) + (points.mT - shifts).square()
    p = torch.full_like(f[0], 1 / 200)
    ball.value(f[:1], p)
    expected = ball.worst_case(f[1:], p).value
    monkeypatch.setattr(interior_point, "MAX_STEPS", 0)
    torch.testing.assert_close(ball.value(f[1:], p), expected, rtol=0, atol=1e-9)
