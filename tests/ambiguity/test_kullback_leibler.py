"""The Kullback-Leibler ball against convex programming and its own dual."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
import torch

from botorch_drbo.ambiguity import KullbackLeibler, TotalVariation
from tests.ambiguity.reference import instances, needs_reference


def entropy(q, p, radius):
    on, off = np.flatnonzero(p > 0), np.flatnonzero(p == 0)
    rows = [cp.sum(cp.rel_entr(q[on], p[on])) <= radius]
    return rows + ([q[off] == 0] if len(off) else [])


@pytest.mark.parametrize("n, radius", [(1, 0.3), (7, 0.05), (7, 0.5), (40, 2.0)])
def test_equals_clarabel(n, radius, kind, make_instance, agrees_with_clarabel):
    f, p = make_instance(kind, n)
    values = KullbackLeibler(radius).worst_case(f, p).value
    agrees_with_clarabel(values, f, p, radius, entropy)


@needs_reference
def test_reference_instances():
    for i in instances("kl"):
        robust = KullbackLeibler(i["eps"]).worst_case(i["f"], i["p"])
        assert robust.value.item() == pytest.approx(i["value"], rel=1e-9, abs=1e-9)
        if i["multiplier"] is not None:
            expected = pytest.approx(i["multiplier"], rel=1e-6, abs=1e-7)
            assert robust.multiplier.item() == expected
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-7)


def gap_to_the_dual(f, p, radius, robust):
    """``q . f`` less the dual at the multiplier, relative to the range."""
    f = f - f.amin(-1, keepdim=True)
    span = f.amax(-1)
    f = f / span[:, None]
    lam = robust.multiplier / span
    # lam log E exp(-f / lam), around the mean: no cancellation when lam is large
    mean = (p * f).sum(-1)
    lift = torch.where(p > 0, -(f - mean[:, None]) / lam[:, None], -torch.inf)
    top = lift.amax(-1, keepdim=True).clamp_min(0)
    large = top.squeeze(-1) + ((lift - top).exp() * p).sum(-1).log()
    small = torch.log1p((p * (torch.expm1(lift) - lift)).nansum(-1))
    logs = torch.where(top.squeeze(-1) < 1e-2, small, large)
    dual = mean - lam * logs - lam * radius
    return (robust.weights * f).sum(-1) - dual


@pytest.mark.parametrize("radius", [1e-12, 1e-8, 1e-4, 0.1, 2.0])
@pytest.mark.parametrize("kind", ["plain", "ties", "skewed", "huge", "tiny", "offset"])
@pytest.mark.parametrize("n", [9, 1024])
def test_attains_its_dual(n, radius, kind, make_instance):
    f, p = make_instance(kind, n)
    robust = KullbackLeibler(radius).worst_case(f, p)
    distance = KullbackLeibler(0.0).distance(p, robust.weights)
    inside = robust.multiplier > 0
    torch.testing.assert_close(
        distance[inside],
        torch.full_like(distance[inside], radius),
        atol=1e-14,
        rtol=1e-7,
    )
    gap = gap_to_the_dual(f, p, radius, robust)[inside]
    assert (gap.abs() <= 1e-9).all()


@pytest.mark.parametrize("radius", [1e-3, 0.4, 0.51, 0.52, 1.0, 1.2039, 1.2])
@pytest.mark.parametrize("near", [1e-3, 1e-8, 1e-14])
def test_scores_in_clusters(radius, near):
    """Between clusters the divergence hardly depends on the temperature."""
    f = torch.tensor([[0.0, near, 1.0, 1.0 - near]], dtype=torch.double)
    p = torch.tensor([[0.3, 0.3, 0.2, 0.2]], dtype=torch.double)
    robust = KullbackLeibler(radius).worst_case(f, p)
    distance = KullbackLeibler(0.0).distance(p, robust.weights)
    assert distance.item() == pytest.approx(radius, rel=1e-9)
    assert abs(gap_to_the_dual(f, p, radius, robust).item()) <= 1e-12


def test_a_tiny_mass_at_the_minimum():
    f = torch.tensor([[0.0, 0.9, 1.0]], dtype=torch.double)
    p = torch.tensor([[1e-100, 0.5, 0.5]], dtype=torch.double)
    for radius in (1e-3, 1.0, 100.0, 230.0, 231.0):
        robust = KullbackLeibler(radius).worst_case(f, p)
        if radius < -math.log(1e-100):
            assert abs(gap_to_the_dual(f, p, radius, robust).item()) <= 1e-10
        else:
            assert robust.value.item() == 0.0


def test_two_atoms_by_hand():
    f = torch.tensor([0.0, 2.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    for share in (0.6, 0.9, 0.999):
        radius = share * math.log(2 * share) + (1 - share) * math.log(2 - 2 * share)
        robust = KullbackLeibler(radius).worst_case(f, p)
        assert robust.value.item() == pytest.approx(2 * (1 - share))
        temperature = 2 / math.log(share / (1 - share))
        assert robust.multiplier.item() == pytest.approx(temperature)


@pytest.mark.parametrize("share", [1e-9, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_saturates_at_minus_log_of_the_mass_at_the_minimum(share):
    f = torch.tensor([2.0, 0.0, 0.0, 1.0], dtype=torch.double)
    rest = (1 - share) / 2
    p = torch.tensor([rest, share / 4, 3 * share / 4, rest], dtype=torch.double)
    robust = KullbackLeibler(-math.log1p(-2 * rest)).worst_case(f, p)
    assert robust.value.item() == pytest.approx(0.0, abs=1e-12)
    assert robust.multiplier.item() == 0.0
    torch.testing.assert_close(
        robust.weights, torch.tensor([0, 0.25, 0.75, 0], dtype=torch.double)
    )
    before = KullbackLeibler(-0.999 * math.log1p(-2 * rest)).worst_case(f, p)
    assert before.multiplier.item() > 0.01


@pytest.mark.parametrize("radius", [1e-3, 0.3])
def test_one_sided_derivative_at_weight_zero(radius):
    f = torch.tensor([9.0, 1.0, 0.0, -1.0, 4.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.7, 0.3, 0.0, 0.0], dtype=torch.double, requires_grad=True)
    ambiguity = KullbackLeibler(radius)
    (slope,) = torch.autograd.grad(ambiguity.worst_case(f, p).value, p)
    base, h = ambiguity.worst_case(f, p).value, 1e-8
    for i in range(5):
        step = torch.zeros(5, dtype=torch.double)
        step[i] += h
        step[1] -= h
        found = (ambiguity.worst_case(f, p + step).value - base) / h
        assert found.item() == pytest.approx((slope[i] - slope[1]).item(), rel=1e-3)


@pytest.mark.parametrize("radius", [1e-30, 1e-80])
def test_a_radius_below_rounding(radius):
    f = torch.randn(3, 9, dtype=torch.double)
    p = torch.softmax(torch.randn(9, dtype=torch.double), -1)
    robust = KullbackLeibler(radius).worst_case(f, p)
    torch.testing.assert_close(robust.value, f @ p, rtol=1e-14, atol=1e-14)
    spread = (p * (f - (f @ p)[:, None]).square()).sum(-1).sqrt()
    expected = spread / (2 * max(radius, 1e-60)) ** 0.5
    torch.testing.assert_close(robust.multiplier, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("radius", [1e-4, 0.01, 0.3, 1.5])
def test_pinsker(radius, kind, make_instance):
    f, p = make_instance(kind, 12)
    entropic = KullbackLeibler(radius).worst_case(f, p)
    wider = TotalVariation((2 * radius) ** 0.5)
    assert (wider.distance(p, entropic.weights) <= wider.radius + 1e-12).all()
    slack = 1e-12 * f.abs().amax(-1)
    assert (wider.worst_case(f, p).value <= entropic.value + slack).all()


def test_distance():
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.double)
    q = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], dtype=torch.double)
    distance = KullbackLeibler(0.1).distance(p, q)
    assert distance.tolist() == pytest.approx([math.log(2), 0.0, math.inf])
