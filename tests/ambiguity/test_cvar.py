"""Conditional value at risk against convex programming and cases done by hand."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.ambiguity import ConditionalValueAtRisk
from tests.ambiguity.reference import instances, needs_reference


def capped(q, p, alpha):
    return [(1 - alpha) * q <= p]


@pytest.mark.parametrize("n, alpha", [(1, 0.3), (7, 1e-4), (7, 0.6), (40, 0.95)])
def test_equals_clarabel(n, alpha, kind, make_instance, agrees_with_clarabel):
    f, p = make_instance(kind, n)
    values = ConditionalValueAtRisk(alpha).worst_case(f, p).value
    agrees_with_clarabel(values, f, p, alpha, capped)


@needs_reference
def test_reference_instances():
    """Their alpha is the tail, one minus ours, and their multiplier belongs to it."""
    for i in instances("cvar"):
        tail = i["alpha"]
        robust = ConditionalValueAtRisk(1 - tail).worst_case(i["f"], i["p"])
        assert robust.value.item() == pytest.approx(i["value"], rel=1e-10, abs=1e-10)
        if i["multiplier_is_two_sided"]:
            in_tail = -robust.multiplier.item() / tail**2  # radius = 1 / tail - 1
            assert in_tail == pytest.approx(i["multiplier"], rel=1e-8, abs=1e-8)
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "alpha, value, multiplier",
    [
        (0.0, 1.5, 1.5),  # the highest score minus the mean
        (0.2, 1.125, 1.5),
        (0.25, 1.0, 0.75),  # the highest atom is out: the next one gives
        (0.5, 0.5, 0.25),
        (0.75, 0.0, 0.0),
        (0.999999, 0.0, 0.0),
    ],
)
def test_by_hand_on_and_between_breakpoints(alpha, value, multiplier):
    f = torch.tensor([2.0, 0.0, 3.0, 1.0], dtype=torch.double)
    p = torch.full((4,), 0.25, dtype=torch.double)
    robust = ConditionalValueAtRisk(alpha).worst_case(f, p)
    assert robust.value.item() == pytest.approx(value)
    assert robust.multiplier.item() == pytest.approx(multiplier)


@pytest.mark.parametrize("n", [10, 1000, 1024])
def test_every_breakpoint_of_a_uniform_reference(n):
    f = torch.arange(n, dtype=torch.double)
    p = torch.full((n,), 1 / n, dtype=torch.double)
    for k in range(0, n, max(1, n // 20)):  # k atoms are out
        robust = ConditionalValueAtRisk(k / n).worst_case(f, p)
        left = n - k
        assert robust.value.item() == pytest.approx((left - 1) / 2)
        # the sum over the rest of (top - f) / n
        expected = left * (left - 1) / 2 / n
        assert robust.multiplier.item() == pytest.approx(expected)


def test_the_level_tends_to_the_minimum_of_the_support():
    f = torch.tensor([-5.0, 2.0, 1.0, 3.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.5, 1e-9, 0.5 - 1e-9], dtype=torch.double)
    for alpha in (1 - 1e-12, 1 - 2**-53):
        robust = ConditionalValueAtRisk(alpha).worst_case(f, p)
        assert robust.value.item() == 1.0
        assert robust.weights.tolist() == [0.0, 0.0, 1.0, 0.0]
        assert robust.multiplier.item() == 0.0


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_one_sided_derivative_at_weight_zero(alpha):
    f = torch.tensor([9.0, 1.0, 0.0, -1.0, 4.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.7, 0.3, 0.0, 0.0], dtype=torch.double, requires_grad=True)
    ambiguity = ConditionalValueAtRisk(alpha)
    (slope,) = torch.autograd.grad(ambiguity.worst_case(f, p).value, p)
    base, h = ambiguity.worst_case(f, p).value, 1e-7
    for i in range(5):
        step = torch.zeros(5, dtype=torch.double)
        step[i] += h
        step[1] -= h
        found = (ambiguity.worst_case(f, p + step).value - base) / h
        assert found.item() == pytest.approx((slope[i] - slope[1]).item(), abs=1e-6)


def test_alpha_radius_and_distance():
    assert ConditionalValueAtRisk(0.75).radius.item() == pytest.approx(3.0)
    assert ConditionalValueAtRisk(0.75).alpha.item() == pytest.approx(0.75)
    p = torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.double)
    q = torch.tensor([0.25, 0.75, 0.0, 0.0], dtype=torch.double)
    outside = torch.tensor([0.5, 0.25, 0.0, 0.25], dtype=torch.double)
    distance = ConditionalValueAtRisk(0.0).distance(p, torch.stack([p, q, outside]))
    assert distance.tolist() == [0.0, 2.0, torch.inf]  # level 2 / 3 reaches q


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
def test_bad_alpha(alpha):
    with pytest.raises(InputDataError, match="alpha"):
        ConditionalValueAtRisk(alpha)
