"""Fragility against the dual of each set, a grid of radii, and its definition."""

from __future__ import annotations

import cvxpy as cp
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import RobustSatisficing

N = 8
POINTS = torch.linspace(0, 1, N, dtype=torch.double)[:, None]
COST = (POINTS - POINTS.mT).abs()
KERNEL = torch.exp(-COST / 0.3)
SETS = {
    "tv": TotalVariation(0.0),
    "cvar": ConditionalValueAtRisk(0.0),
    "kl": KullbackLeibler(0.0),
    "modified_chi_squared": ModifiedChiSquared(0.0),
    "chi_squared": ChiSquared(0.0),
    "mmd": MaximumMeanDiscrepancy(0.0, KERNEL),
    "wasserstein": Wasserstein(0.0, COST),
}
every = pytest.mark.parametrize("name", SETS)


def instance(rows: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    f = torch.randn(rows, N, generator=generator, dtype=torch.double)
    p = torch.rand(rows, N, generator=generator, dtype=torch.double) + 0.1
    return f, p / p.sum(-1, keepdim=True)


def between(f: Tensor, p: Tensor, share: float) -> float:
    """A target between the highest minimum and the lowest mean of the rows."""
    low, high = f.amin(-1).max(), (f * p).sum(-1).min()
    assert low < high
    return (low + share * (high - low)).item()


def penalised(name: str, f: Tensor, p: Tensor, lam: Tensor) -> Tensor:
    """``min_q q.f + lam d(p, q)``, in closed form."""
    low = f.amin(-1, keepdim=True)
    if name == "tv":
        return (p * torch.minimum(f, low + 2 * lam)).sum(-1)
    if name == "wasserstein":
        return (p * (f[:, None, :] + lam[..., None] * COST).amin(-1)).sum(-1)
    return -(lam * (p.log() - f / lam).logsumexp(-1, keepdim=True)).squeeze(-1)


@pytest.mark.parametrize("name", ["tv", "wasserstein", "kl"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_against_the_penalised_problem(name, share):
    """-k is the smallest price of distance at which the target is reached."""
    f, p = instance()
    target = between(f, p, share)
    low, high = torch.zeros(5, 1).double() + 1e-9, torch.full((5, 1), 1e6).double()
    for _ in range(200):
        middle = (low * high).sqrt()
        reached = penalised(name, f, p, middle)[:, None] >= target
        low, high = (
            torch.where(reached, low, middle),
            torch.where(reached, middle, high),
        )
    found = RobustSatisficing(SETS[name], target)(f, p)
    torch.testing.assert_close(found, -high.squeeze(-1), rtol=1e-7, atol=1e-9)


def test_mmd_against_cvxpy():
    """The smallest norm of a witness that lifts every score to the target."""
    f, p = instance(3)
    target = between(f, p, 0.5)
    factor = torch.linalg.cholesky(KERNEL).numpy()
    expected = []
    for row, weights in zip(f.numpy(), p.numpy(), strict=True):
        u = cp.Variable(N)
        lifted = row + factor @ u - weights @ factor @ u
        problem = cp.Problem(cp.Minimize(cp.norm(u)), [lifted >= target])
        expected.append(-problem.solve(solver=cp.CLARABEL))
    found = RobustSatisficing(SETS["mmd"], target)(f, p)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=1e-7)


@every
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_definition_on_a_grid_of_radii(name, share):
    """The line from the target lies below v everywhere and touches it somewhere."""
    f, p = instance()
    target = between(f, p, share)
    k = RobustSatisficing(SETS[name], target)(f, p)
    radii = torch.logspace(-4, 3, 2000, dtype=torch.double)
    v = SETS[name].worst_case(f[:, None], p[:, None], radius=radii.expand(5, -1)).value
    above = v - (target + k[:, None] * radii)
    assert (above >= -1e-7).all()
    assert ((above / radii).amin(-1) < 1e-2 * (1 + k.abs())).all()
    assert (k < 0).all()


@every
def test_a_target_below_all_scores_is_safe(name):
    f, p = instance()
    k = RobustSatisficing(SETS[name], f.min().item() - 0.5)(f, p)
    assert (k == 0).all()


@every
def test_a_target_above_the_mean_is_missed_at_once(name):
    f, p = instance()
    target = (f * p).sum(-1).max().item() + 0.1
    assert (RobustSatisficing(SETS[name], target)(f, p) == -torch.inf).all()
    first = SETS[name].with_radius(0.01)
    k = RobustSatisficing(first, target)(f, p)
    here = first.worst_case(f, p).value
    torch.testing.assert_close(k, (here - target) / 0.01)


@every
def test_the_smallest_shift_does_not_matter_where_the_critical_one_is_larger(name):
    f, p = instance()
    target = between(f, p, 0.4)
    torch.testing.assert_close(
        RobustSatisficing(SETS[name].with_radius(1e-6), target)(f, p),
        RobustSatisficing(SETS[name], target)(f, p),
        rtol=1e-7,
        atol=1e-9,
    )


@every
def test_gradients(name):
    f, p = instance(1)
    objective = RobustSatisficing(SETS[name], between(f, p, 0.9))
    f.requires_grad_()
    assert torch.autograd.gradcheck(lambda f: objective(f, p), f, atol=1e-4, rtol=1e-3)


def test_a_mean_on_the_target_has_the_sensitivity_at_zero():
    f = torch.tensor([0.0, 4.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    k = RobustSatisficing(TotalVariation(0.0), 2.0)(f, p)
    torch.testing.assert_close(k, TotalVariation(0.0).sensitivity(f, p))


@pytest.mark.parametrize("name", ["kl", "modified_chi_squared", "chi_squared"])
def test_a_mean_on_the_target_falls_at_once_where_the_sensitivity_is_infinite(name):
    """v = target - sqrt(radius variance) and so on: no finite slope lies below it."""
    f = torch.tensor([[0.0, 4.0], [1.0, 9.0]], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    k = RobustSatisficing(SETS[name], 2.0)(f, p)
    assert k[0] == -torch.inf and -torch.inf < k[1] < 0


@every
@pytest.mark.parametrize("scale, shift", [(2.0**-27, 0.0), (2.0**27, 0.0), (1.0, 1e6)])
def test_units_of_the_scores_scale_the_fragility(name, scale, shift):
    f, p = instance()
    f = (f + shift) - shift  # as they are after rounding
    target = between(f, p, 0.5)
    moved = RobustSatisficing(SETS[name], scale * (target + shift))
    k = RobustSatisficing(SETS[name], (target + shift) - shift)(f, p)
    found = moved(scale * (f + shift), p) / scale
    # What is left of a shortfall has the rounding error of the shift.
    torch.testing.assert_close(found, k, rtol=1e-7, atol=1e-14 * shift)


def test_shapes_and_dtype():
    f, p = instance(6)
    objective = RobustSatisficing(SETS["tv"], between(f, p, 0.4))
    k = objective(f, p)
    deep = objective(f.reshape(2, 3, N), p.reshape(2, 3, N))
    torch.testing.assert_close(deep, k.reshape(2, 3))
    single = objective(f.float(), p.float())
    assert single.dtype == torch.float
    torch.testing.assert_close(single.double(), k, rtol=1e-4, atol=1e-4)
    assert objective(f[0], p[0]).shape == ()


@pytest.mark.parametrize("target", [float("nan"), float("inf")])
def test_bad_target(target):
    with pytest.raises(InputDataError, match="target"):
        RobustSatisficing(SETS["tv"], target)


@every
def test_float32_weights_of_any_rounding(name):
    """Their sum is one to the rounding of float32, not to that of float64."""
    for n in (3, 7):
        f = torch.randn(n, generator=torch.Generator().manual_seed(1))
        p = torch.full((n,), 1 / n)
        assert p.double().sum() != 1.0
        ambiguity = SETS[name]
        if name in ("mmd", "wasserstein"):
            kind = type(ambiguity)
            ambiguity = kind(0.0, (KERNEL if name == "mmd" else COST)[:n, :n])
        target = 0.5 * (f.mean() + f.min()).item()
        k = RobustSatisficing(ambiguity, target)(f, p)
        exact = torch.full((n,), 1 / n, dtype=torch.double)
        expected = RobustSatisficing(ambiguity, target)(f.double(), exact)
        torch.testing.assert_close(k.double(), expected, rtol=1e-3, atol=1e-5)


@every
@pytest.mark.filterwarnings("ignore:MaximumMeanDiscrepancy of radius")  # and it warns
def test_a_score_that_is_not_a_number_is_no_promise(name):
    f, p = instance(2)
    f[0, 3] = torch.nan
    k = RobustSatisficing(SETS[name], -9.0)(f, p)
    assert k[0].isnan() and k[1] == 0.0


@every
def test_a_row_that_misses_at_once_leaves_the_gradients_of_others_alone(name):
    f, p = instance(2)
    target = between(f[:1], p[:1], 0.5)
    f[1] = target - 1.0
    f.requires_grad_()
    k = RobustSatisficing(SETS[name], target)(f, p)
    assert k[0].isfinite() and k[1] == -torch.inf
    (gradient,) = torch.autograd.grad(k[0], f, retain_graph=True)
    assert gradient.isfinite().all() and (gradient[0] != 0).any()
    (gradient,) = torch.autograd.grad(k.sum(), f)
    assert (gradient[1] == 0).all()  # no slope to climb, but no NaN either


def test_shifts_may_be_large():
    """A cost in small units: the critical shift has no unit of its own."""
    f, p = instance()
    target = between(f, p, 0.5)
    k = RobustSatisficing(Wasserstein(0.0, 1e6 * COST), target)(f, p)
    expected = RobustSatisficing(Wasserstein(0.0, COST), target)(f, p)
    torch.testing.assert_close(1e6 * k, expected)


def test_a_search_cut_short_warns_and_overstates(monkeypatch):
    f, p = instance()
    target = between(f, p, 0.5)
    expected = RobustSatisficing(SETS["kl"], target)(f, p)
    monkeypatch.setattr("botorch_drbo.objectives.satisficing._MAX_STEPS", 3)
    with pytest.warns(BotorchWarning, match="RobustSatisficing over KullbackLeibler"):
        k = RobustSatisficing(SETS["kl"], target)(f, p)
    assert (k >= expected - 1e-9).all() and (k > expected + 1e-6).any()
