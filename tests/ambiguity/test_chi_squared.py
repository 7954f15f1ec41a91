"""The chi-squared balls against convex programming and cases done by hand."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

from botorch_drbo.ambiguity import ChiSquared, KullbackLeibler, ModifiedChiSquared
from tests.ambiguity.reference import instances, needs_reference


def pearson(q, p, radius):
    on = np.flatnonzero(p > 0)
    off = np.flatnonzero(p == 0)
    step = cp.Variable(len(on))  # of size one, whatever the radius
    rows = [q[on] == p[on] + cp.multiply(np.sqrt(radius * p[on]), step)]
    rows += [cp.norm(step) <= 1]
    return rows + ([q[off] == 0] if len(off) else [])


@pytest.mark.parametrize("n, radius", [(1, 0.3), (7, 1e-3), (7, 0.5), (40, 3.0)])
def test_modified_equals_clarabel(n, radius, kind, make_instance, agrees_with_clarabel):
    f, p = make_instance(kind, n)
    values = ModifiedChiSquared(radius).worst_case(f, p).value
    agrees_with_clarabel(values, f, p, radius, pearson)


@needs_reference
def test_modified_reference_instances():
    for i in instances("modified_chi_squared"):
        robust = ModifiedChiSquared(i["eps"]).worst_case(i["f"], i["p"])
        assert robust.value.item() == pytest.approx(i["value"], rel=1e-9, abs=1e-9)
        if i["multiplier"] is not None:
            expected = pytest.approx(i["multiplier"], rel=1e-6, abs=1e-7)
            assert robust.multiplier.item() == expected
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-7)


def optimality_of_modified(f, p, radius, robust) -> None:
    """Weak duality: v = max over lam, nu of a concave function that q attains.

    nu - lam sum p_i (((1 + (nu - f_i) / (2 lam))_+)^2 - 1) - lam radius
    """
    lam = robust.multiplier
    low = f.amin(-1)
    f = f - low[:, None]
    value = (robust.weights * f).sum(-1)
    # nu from any atom that has mass: q_i = p_i (1 + (nu - f_i) / (2 lam))
    atom = robust.weights.argmax(-1, keepdim=True)
    ratio = (robust.weights / p).gather(-1, atom).squeeze(-1)
    nu = f.gather(-1, atom).squeeze(-1) + 2 * lam * (ratio - 1)
    lift = (1 + (nu[:, None] - f) / (2 * lam[:, None])).clamp_min(0)
    dual = nu - lam * ((p * (lift.square() - 1)).sum(-1) + radius)
    gap = (value - dual) / f.amax(-1)
    assert (gap.abs() <= 1e-8).all()
    distance = ModifiedChiSquared(0.0).distance(p, robust.weights)
    torch.testing.assert_close(distance, torch.full_like(distance, radius))


@pytest.mark.parametrize("radius", [1e-12, 1e-8, 1e-4, 0.1, 10.0])
@pytest.mark.parametrize("kind", ["plain", "ties", "skewed", "huge", "tiny", "offset"])
def test_modified_attains_its_dual_at_1024_atoms(radius, kind, make_instance):
    f, p = make_instance(kind, 1024)
    robust = ModifiedChiSquared(radius).worst_case(f, p)
    optimality_of_modified(f, p, radius, robust)


def test_modified_by_hand():
    f = torch.tensor([0.0, 1.0, 5.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.25, 0.25], dtype=torch.double)
    mean, variance = 1.5, 0.25 + 6.25 - 2.25
    robust = ModifiedChiSquared(0.04).worst_case(f, p)  # everything has mass
    assert robust.value.item() == pytest.approx(mean - 0.2 * variance**0.5)
    assert robust.multiplier.item() == pytest.approx(variance**0.5 / 0.4)
    # Without the last atom: P = 3/4, m = 1/3, V = 2/9, (1 + radius) P - 1 = 1/8.
    robust = ModifiedChiSquared(0.5).worst_case(f, p)
    assert robust.value.item() == pytest.approx(1 / 3 - (2 / 9 / 8) ** 0.5)
    assert robust.weights[2].item() == 0.0


@pytest.mark.parametrize("share", [0.5, 0.3, 0.1, 1 / 3, 0.7])
def test_modified_saturates_at_the_odds_of_the_minimum(share):
    f = torch.tensor([2.0, 0.0, 1.0], dtype=torch.double)
    p = torch.tensor([(1 - share) / 2, share, (1 - share) / 2], dtype=torch.double)
    at = (1 - share) / share
    robust = ModifiedChiSquared(at).worst_case(f, p)
    assert robust.value.item() == pytest.approx(0.0, abs=1e-12)
    assert robust.multiplier.item() == 0.0
    assert ModifiedChiSquared(0.999 * at).worst_case(f, p).multiplier > 0.4 * share
    # Two atoms at the minimum share the mass as the reference does.
    f[2] = 0.0
    robust = ModifiedChiSquared(at).worst_case(f, p)
    assert (robust.weights[1] / robust.weights[2]).item() == pytest.approx(
        share / ((1 - share) / 2)
    )


@pytest.mark.parametrize(
    "ambiguity", [ModifiedChiSquared(0.0), ChiSquared(0.0), KullbackLeibler(0.0)]
)
def test_radius_zero_is_the_mean_with_infinite_sensitivity(ambiguity):
    f = torch.tensor([[1.0, 2.0, 3.0], [4.0, 4.0, 9.0]], dtype=torch.double)
    p = torch.tensor([0.25, 0.5, 0.25], dtype=torch.double)
    p = torch.stack([p, torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)])
    f.requires_grad_()
    p.requires_grad_()
    robust = ambiguity.worst_case(f, p)
    assert robust.value.tolist() == [2.0, 4.0]
    torch.testing.assert_close(robust.weights, p)
    assert robust.multiplier.tolist() == [torch.inf, 0.0]
    assert ambiguity.sensitivity(f, p).tolist() == [-torch.inf, 0.0]
    slopes = torch.autograd.grad(robust.value.sum(), (f, p))
    torch.testing.assert_close(slopes[0], p)
    differences = slopes[1][0] - slopes[1][0, 0]
    torch.testing.assert_close(differences, f[0] - f[0, 0])


@pytest.mark.parametrize("make", [ModifiedChiSquared, ChiSquared])
@pytest.mark.parametrize("radius", [1e-3, 0.3])
def test_one_sided_derivative_at_weight_zero(make, radius):
    f = torch.tensor([9.0, 1.0, 0.0, -1.0, 4.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.7, 0.3, 0.0, 0.0], dtype=torch.double, requires_grad=True)
    ambiguity = make(radius)
    (slope,) = torch.autograd.grad(ambiguity.worst_case(f, p).value, p)
    base, h = ambiguity.worst_case(f, p).value, 1e-8
    for i in range(5):
        step = torch.zeros(5, dtype=torch.double)
        step[i] += h
        step[1] -= h
        found = (ambiguity.worst_case(f, p + step).value - base) / h
        assert found.item() == pytest.approx((slope[i] - slope[1]).item(), rel=1e-3)


@pytest.mark.parametrize("radius", [1e3, 1e9])
def test_modified_sums_to_one_where_few_weights_dominate(radius):
    """Worst cases on two scores whose weights are many digits apart."""
    f = torch.tensor([0.0, 0.7, 0.9], dtype=torch.double)
    tiny = torch.logspace(-25, -3, 45, dtype=torch.double)
    for small in (1e-5, 1e-8):
        second = torch.full_like(tiny, small)
        p = torch.stack([tiny, second, 1 - tiny - second], -1)
        q = ModifiedChiSquared(radius).worst_case(f, p).weights
        torch.testing.assert_close(q.sum(-1), torch.ones(45).double())
        # The divergence is the radius, or all mass is at the minimum.
        distance = ModifiedChiSquared(0.0).distance(p, q)
        saturated = (1 - p[:, 0]) / p[:, 0] <= radius
        torch.testing.assert_close(
            distance[~saturated] / radius, 1 + 0 * tiny[~saturated]
        )
        assert (q[saturated, 0] == 1).all()


def test_distance():
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)
    q = torch.tensor([[0.75, 0.25, 0.0], [0.5, 0.25, 0.25]], dtype=torch.double)
    assert ModifiedChiSquared(0.1).distance(p, q).tolist() == [0.25, torch.inf]
    assert ChiSquared(0.1).distance(q, p).tolist() == [0.25, torch.inf]
    mass_from_nothing = ChiSquared(0.1).distance(p, q[1]).item()
    assert mass_from_nothing == pytest.approx(0.25 + 0.25)


def neyman(q, p, radius):
    """Sum of p_i^2 / q_i - 1, as a sum of cone constraints."""
    on = np.flatnonzero(p > 0)
    parts = [cp.quad_over_lin(p[i], q[i]) for i in on]
    return [cp.sum(cp.hstack(parts)) <= 1 + radius]


@pytest.mark.parametrize("n, radius", [(1, 0.3), (7, 1e-3), (7, 0.5), (15, 20.0)])
def test_neyman_equals_clarabel(n, radius, kind, make_instance, agrees_with_clarabel):
    f, p = make_instance(kind, n, rows=2)
    values = ChiSquared(radius).worst_case(f, p).value
    agrees_with_clarabel(values, f, p, radius, neyman)


@pytest.mark.parametrize("radius", [1e-12, 1e-8, 1e-4, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("n", [9, 1024])
def test_neyman_attains_its_dual(n, radius, kind, make_instance):
    """Weak duality for any eta below the scores and any lam:

    eta - lam (1 + radius) + 2 sqrt(lam) sum p_i sqrt(f_i - eta) <= v
    """
    f, p = make_instance(kind, n)
    robust = ChiSquared(radius).worst_case(f, p)
    span = (f.amax(-1) - f.amin(-1)).clamp_min(1e-300)
    f = (f - f.amin(-1, keepdim=True)) / span[:, None]
    lam = robust.multiplier / span
    # From q_i = p_i sqrt(lam / y_i) at the atom of largest q_i among those with weight
    seen = torch.where(p > 0, robust.weights, 0.0)
    atom = seen.argmax(-1, keepdim=True)
    y = lam * (p / robust.weights).gather(-1, atom).squeeze(-1).square()
    w = (y - f.gather(-1, atom).squeeze(-1)).clamp_min(0.0)[:, None]
    # 2 sqrt(lam) B - w - lam (1 + radius), with lam (1 + radius) = sqrt(lam) B - slack
    lift = f / ((f + w).sqrt() + w.sqrt()).clamp_min(1e-300)
    b = w.sqrt().squeeze(-1) + (p * lift).sum(-1)
    dual = 2 * lam.sqrt() * b - w.squeeze(-1) - lam * (1 + radius)
    value = (robust.weights * f).sum(-1)
    # Terms of size w cancel in the dual; nothing cancels in the value.
    rounding = 1e-14 * (1 + w.squeeze(-1))
    assert ((value - dual).abs() <= 1e-9 + rounding).all()
    distance = ChiSquared(0.0).distance(p, robust.weights)
    assert (distance <= radius * (1 + 1e-8) + 1e-15).all()


def test_neyman_mass_from_nothing_by_hand():
    """Support at 1 and 4, and the minimum 0 with weight zero: A B = 9 / 8 at w = 0."""
    f = torch.tensor([1.0, 4.0, 0.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)
    inside = ChiSquared(0.12).worst_case(f, p)
    assert inside.weights[2].item() == 0.0
    robust = ChiSquared(0.5).worst_case(f, p)
    assert robust.value.item() == pytest.approx(1.5**2 / 1.5)
    assert robust.multiplier.item() == pytest.approx((1.5 / 1.5) ** 2)
    expected = torch.tensor([0.5, 0.25, 0.25], dtype=torch.double)
    torch.testing.assert_close(robust.weights, expected)
    sensitivity = ChiSquared(0.5).sensitivity(f, p)
    assert sensitivity.item() == pytest.approx(-robust.multiplier.item())
    # A point mass at 1 loses 1 / (1 + radius) at once, with a finite sensitivity.
    p = torch.tensor([1.0, 0.0, 0.0], dtype=torch.double)
    at_zero = ChiSquared(0.0).worst_case(f, p)
    assert (at_zero.value.item(), at_zero.multiplier.item()) == (1.0, 1.0)
    assert ChiSquared(1.0).worst_case(f, p).value.item() == pytest.approx(0.5)


def test_modified_with_next_to_no_mass_at_the_minimum():
    """The minimum gets at most p + sqrt(radius p); all above the next may move to it.

    The standard deviation of the scores with mass is below the rounding error of
    their mean.
    """
    f = torch.tensor([1.0, 1.0, 2.0256312456311053, 0.0, 1.0000070462100814]).double()
    p = torch.tensor([0.508318, 0.481592, 0.007134, 7.8e-25, 0.002956]).double()
    p = p / p.sum()
    robust = ModifiedChiSquared(8.0).worst_case(f, p)
    torch.testing.assert_close(robust.weights.sum(), torch.ones(()).double())
    assert 1 - 3e-12 <= robust.value <= 1 + 1e-9


def test_neyman_just_before_a_score_of_weight_zero_gets_mass():
    """There ``w`` is as small as what the radius lacks: v is v(1/8) plus its tangent.

    The case by hand above: from the radius 1/8 on, v = 1.5^2 / (1 + radius).
    """
    f = torch.tensor([1.0, 4.0, 0.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)
    for lacks in (1e-7, 1e-8, 1e-9, 1e-10):
        robust = ChiSquared(0.125 - lacks).worst_case(f, p)
        expected = 2.0 + (1.5 / 1.125) ** 2 * lacks
        assert robust.value.item() == pytest.approx(expected, rel=0, abs=1e-13)


@pytest.mark.parametrize("make", [ModifiedChiSquared, ChiSquared])
def test_slopes_of_an_infinite_sensitivity(make):
    """At radius zero the bonus of a higher score is infinite, its sign that of the
    slope of the standard deviation; none where that has none, and never NaN."""
    f = torch.tensor([[1.0, 2.0, 3.0, 9.0], [5.0, 5.0, 5.0, 7.0]], dtype=torch.double)
    p = torch.tensor([0.25, 0.5, 0.25, 0.0], dtype=torch.double)
    f.requires_grad_()
    (slope,) = torch.autograd.grad(make(0.0).sensitivity(f, p)[0], f)
    assert not slope.isnan().any() and (slope[1] == 0).all()
    if make is ChiSquared:
        assert slope[0].tolist() == [torch.inf, 0.0, -torch.inf, 0.0]


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-13])
def test_modified_where_the_radius_just_pays_for_the_lowest_scores(gap):
    """With radius = odds of the k lowest scores, that part of p is in the ball.

    So v lies within their range. What is left to spread vanishes there, and its
    rounding error must not give other scores mass.
    """
    generator = torch.Generator().manual_seed(3)
    for n, k in ((3, 2), (5, 2), (9, 4)):
        p = torch.rand(200, n, generator=generator, dtype=torch.double) ** 9
        p = p / p.sum(-1, keepdim=True)
        low = gap * torch.rand(200, k, generator=generator, dtype=torch.double)
        high = 1 + torch.rand(200, n - k, generator=generator, dtype=torch.double)
        f = torch.cat([low, high], -1)
        odds = p[:, k:].sum(-1) / p[:, :k].sum(-1)
        robust = ModifiedChiSquared(0.0).worst_case(f, p, radius=odds)
        q = robust.weights
        torch.testing.assert_close(q.sum(-1), torch.ones(200).double())
        assert (q >= 0).all()
        assert (robust.value >= low.amin(-1)).all()
        assert (robust.value <= low.amax(-1) + 1e-9).all()
        distance = ModifiedChiSquared(0.0).distance(p, q)
        assert (distance <= odds * (1 + 1e-9) + 1e-13).all()
