"""The mean of a tangent and a chord, against both computed by other means."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from botorch.exceptions.errors import InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    TotalVariation,
    Wasserstein,
)

N = 9
POINTS = torch.linspace(0, 1, N, dtype=torch.double)[:, None]
COST = (POINTS - POINTS.mT).abs()
KERNEL = torch.exp(-COST / 0.3)
BALLS = {
    "tv": lambda radius: TotalVariation(radius),
    "mmd": lambda radius: MaximumMeanDiscrepancy(radius, KERNEL),
    "wasserstein": lambda radius: Wasserstein(radius, COST),
}


@pytest.fixture(params=BALLS)
def ball(request):
    return BALLS[request.param]


def instance(zeros: bool) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    f = torch.randn(6, N, generator=generator, dtype=torch.double)
    p = torch.rand(6, N, generator=generator, dtype=torch.double) + 0.1
    if zeros:
        p[:, ::3] = 0.0
    return f, p / p.sum(-1, keepdim=True)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.1, 0.4, 1.0, 3.0])
def test_value_is_the_mean_of_the_two_lines(ball, radius, zeros):
    """The tangent by finite differences of the exact value, the chord by `distance`."""
    f, p = instance(zeros)
    mean, low = (p * f).sum(-1), f.amin(-1)
    h = 1e-5
    slope = (mean - ball(h).worst_case(f, p).value) / h
    if ball is BALLS["mmd"] and zeros:  # weights may become negative
        inverse, one = KERNEL.inverse(), torch.ones(N, dtype=torch.double)
        cross = (f @ inverse @ one).square() / (one @ inverse @ one)
        free = ((f @ inverse * f).sum(-1) - cross).sqrt()
        assert (free >= slope - 1e-4).all() and (free > slope + 0.1).any()
        slope = free
    vertex = torch.zeros_like(f).scatter(-1, f.argmin(-1, keepdim=True), 1.0)
    away = ball(0.0).distance(p, vertex)
    tangent = torch.maximum(mean - radius * slope, low)
    chord = torch.maximum(mean - radius / away * (mean - low), low)
    found = MinimaxApproximation(ball(radius)).worst_case(f, p)
    expected = 0.5 * (tangent + chord)
    torch.testing.assert_close(found.value, expected, rtol=1e-5, atol=1e-6)
    exact = ball(radius).worst_case(f, p).value
    assert (tangent <= exact + 1e-6).all() and (exact <= chord + 1e-6).all()


@given(seed=st.integers(0, 2**16), radius=st.floats(0.0, 2.0))
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("name", BALLS)
def test_the_order_of_tied_atoms_does_not_matter(name, seed, radius):
    """Nor where they lie: the chord goes to the nearest of the tied minima."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(N, 1, generator=generator, dtype=torch.double)
    p = torch.rand(N, generator=generator, dtype=torch.double)
    f = torch.randint(0, 3, (N,), generator=generator).double()
    f[-2:] = 0.0
    p = p / p.sum()
    order = torch.randperm(N, generator=generator)
    found, away = [], []
    for at in (torch.arange(N), order):
        cost = (points[at] - points[at].mT).abs()
        ball = {
            "tv": TotalVariation(radius),
            "mmd": MaximumMeanDiscrepancy(radius, torch.exp(-cost / 0.3)),
            "wasserstein": Wasserstein(radius, cost),
        }[name]
        found.append(MinimaxApproximation(ball).worst_case(f[at], p[at]))
        vertices = torch.eye(N, dtype=torch.double)[f[at] == f.min()]
        away.append(ball.distance(p[at], vertices).amin())
    close = {"rtol": 1e-6, "atol": 1e-6}
    torch.testing.assert_close(found[0].value, found[1].value, **close)
    torch.testing.assert_close(found[0].multiplier, found[1].multiplier, **close)
    torch.testing.assert_close(away[0], away[1])
    if radius >= away[0]:  # the chord has arrived, and so has the tangent below it
        assert found[0].value.item() == pytest.approx(f.min().item(), abs=1e-9)


@pytest.mark.parametrize("radius", [0.05, 0.3])
def test_gradient_in_the_weights_with_tied_minima(ball, radius):
    f, p = instance(zeros=False)
    f = f.round()
    assert ((f == f.amin(-1, keepdim=True)).sum(-1) > 1).any()
    approximation = MinimaxApproximation(ball(radius))
    assert torch.autograd.gradcheck(
        lambda p: approximation.worst_case(f, p / p.sum(-1, keepdim=True)).value,
        p.requires_grad_(),
        rtol=1e-3,
        atol=1e-5,
    )


def test_rows_do_not_see_each_other(ball):
    """One row saturates, one is at a tangent, one at neither: each as if alone."""
    f, p = instance(zeros=True)
    radii = torch.tensor([0.0, 0.01, 0.1, 0.4, 1.0, 9.0], dtype=torch.double)
    approximation = MinimaxApproximation(ball(0.1))
    together = approximation.worst_case(f, p, radius=radii).value
    alone = [
        approximation.worst_case(a, b, radius=r).value
        for a, b, r in zip(f, p, radii, strict=True)
    ]
    torch.testing.assert_close(together, torch.stack(alone))


def test_point_mass_at_the_minimum(ball):
    f = torch.arange(N, dtype=torch.double)
    p = torch.eye(N, dtype=torch.double)[0]
    found = MinimaxApproximation(ball(0.3)).worst_case(f, p)
    assert found.value == 0.0 and found.multiplier == 0.0


def test_at_the_radius_that_reaches_the_minimum_nothing_falls_any_more():
    """Both lines have a kink there; the derivatives are the right ones."""
    f = torch.tensor([0.0, 1.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    approximation = MinimaxApproximation(TotalVariation(1.0))
    found = approximation.worst_case(f, p)
    assert found.value == 0.0 and found.multiplier == 0.0
    assert approximation.sensitivity(f, p) == 0.0


@pytest.mark.parametrize("n", [N, 5])
def test_costs_from_atoms_to_candidates(n):
    """Not symmetric, or not square: atoms are rows, candidates columns."""
    generator = torch.Generator().manual_seed(2)
    cost = torch.rand(n, N, generator=generator, dtype=torch.double) + 0.1
    cost.fill_diagonal_(0.0)
    f, p = instance(zeros=True)
    p = p[:, :n] / p[:, :n].sum(-1, keepdim=True)
    ball = Wasserstein(0.05, cost)
    worst = f.argmin(-1)
    mean, low = (p * f[:, :n]).sum(-1), f.amin(-1)
    steepest = ((f[:, :n, None] - f[:, None, :]) / cost).nan_to_num(-1.0)
    slope = torch.where(p > 0, steepest.amax(-1), 0.0).amax(-1)
    away = (p * cost[:, worst].mT).sum(-1)
    tangent = torch.maximum(mean - 0.05 * slope, low)
    chord = torch.maximum(mean - 0.05 / away * (mean - low), low)
    found = MinimaxApproximation(ball).worst_case(f, p).value
    torch.testing.assert_close(found, 0.5 * (tangent + chord))


def test_floor():
    f, p = instance(zeros=False)
    found = MinimaxApproximation(TotalVariation(0.2, floor=-9.0)).worst_case(f, p)
    mean = (p * f).sum(-1)
    tangent = mean - 0.1 * (f.amax(-1) + 9.0)
    chord = mean - 0.1 * (mean + 9.0)
    torch.testing.assert_close(found.value, 0.5 * (tangent + chord))


@pytest.mark.parametrize(
    "other",
    [
        KullbackLeibler(0.1),
        ModifiedChiSquared(0.1),
        ChiSquared(0.1),
        ConditionalValueAtRisk(0.1),
        MinimaxApproximation(TotalVariation(0.1)),
    ],
    ids=lambda s: type(s).__name__,
)
def test_others_are_refused(other):
    with pytest.raises(InputDataError, match=type(other).__name__):
        MinimaxApproximation(other)


def refined_inverse(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``matrix^-1 right`` in extended precision: residuals in long doubles."""
    wide, factor = matrix.astype(np.longdouble), scipy.linalg.cho_factor(matrix)
    found = np.zeros_like(right, dtype=np.longdouble)
    for _ in range(8):
        residual = right - wide @ found
        found = found + scipy.linalg.cho_solve(factor, residual.astype(np.double))
    return found


@pytest.mark.parametrize("jitter", [1e-3, 1e-5])
@pytest.mark.parametrize("n", [12, 160])
def test_the_slope_of_a_jitter_apart_is_that_of_the_matrix_with_it(n, jitter):
    """Few columns of a smooth kernel (160 contexts), and all of them (12).

    Scores in the columns' span and across it, against extended precision.
    """
    points = torch.linspace(0, 1, n, dtype=torch.double)
    kernel = torch.exp(-(points[:, None] - points).square() / (2 * 0.2**2))
    ball = MaximumMeanDiscrepancy(0.1, kernel, jitter=jitter)
    assert (ball.centred.rest == jitter) == (n == 160)
    generator = torch.Generator().manual_seed(3)
    rough = torch.randn(2, n, generator=generator, dtype=torch.double)
    f = torch.cat([(5 * points).sin()[None], 7.0 + rough[:1], 1e-3 * rough[1:]])
    f[2] += points.square()
    found, direction = ball.free_slope(f)

    right = np.stack([*f.numpy(), np.ones(n)]).T  # n x 4
    raised = refined_inverse(kernel.numpy() + jitter * np.eye(n), right)
    mean = raised[:, :3].sum(0) / raised[:, 3].sum()
    raised = raised[:, :3] - mean * raised[:, 3:]  # K^-1 (f - mean), sums to zero
    slope = np.sqrt((right[:, :3] * raised).sum(0))
    np.testing.assert_allclose(found.numpy(), slope.astype(float), rtol=1e-9)
    expected = -(raised / slope).T.astype(float)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(direction.numpy(), expected, atol=1e-7 * scale, rtol=0)


def test_a_jitter_apart_gives_the_lines_of_the_matrix_with_it():
    """Values, multipliers, weights and gradients, with few columns and with all."""
    n = 120
    points = torch.linspace(0, 1, n, dtype=torch.double)
    kernel = torch.exp(-(points[:, None] - points).square() / (2 * 0.3**2))
    apart = MinimaxApproximation(MaximumMeanDiscrepancy(0.3, kernel, jitter=1e-3))
    inside = kernel + 1e-3 * torch.eye(n, dtype=torch.double)
    together = MinimaxApproximation(MaximumMeanDiscrepancy(0.3, inside))
    generator = torch.Generator().manual_seed(4)
    f = torch.randn(5, 6, generator=generator, dtype=torch.double)
    f = f @ torch.stack([(k * points).cos() for k in range(1, 7)])
    p = torch.rand(n, generator=generator, dtype=torch.double)
    p[20:] = 0.0
    p = (p / p.sum()).requires_grad_()
    radii = torch.tensor([0.0, 0.05, 0.3, 0.8, 3.0], dtype=torch.double)
    results = [s.worst_case(f, p, radius=radii) for s in (apart, together)]
    one, other = results
    for found, expected in (
        (one.value, other.value),
        (one.multiplier, other.multiplier),
        (one.weights, other.weights),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    slopes = [torch.autograd.grad(r.value.sum(), p)[0] for r in results]
    found, expected = (each - each.mean() for each in slopes)  # up to a constant
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    vertices = torch.eye(n, dtype=torch.double)
    torch.testing.assert_close(
        apart.distance(p.detach(), vertices), together.distance(p.detach(), vertices)
    )
    found, expected = (
        s.original().worst_case(f[2], p.detach()).value for s in (apart, together)
    )
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-8)


def test_a_negative_eigenvalue_is_seen_with_few_columns_too():
    points = torch.linspace(0, 1, 80, dtype=torch.double)
    kernel = torch.exp(-(points[:, None] - points).square() / (2 * 0.3**2))
    wrong = kernel - 1e-3 * torch.eye(80, dtype=torch.double)
    with pytest.raises(InputDataError, match="semi-definite"):
        MaximumMeanDiscrepancy(0.1, wrong, jitter=1e-3)
    with pytest.raises(InputDataError, match="jitter"):
        MaximumMeanDiscrepancy(0.1, kernel, jitter=-1e-3)
