"""The l1 ball against convex and linear programming and cases done by hand."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy.optimize import linprog

from botorch_drbo.ambiguity import TotalVariation
from tests.ambiguity.reference import instances, needs_reference


def ball(q, p, radius):
    return [cp.norm1(q - p) <= radius]


def by_proposition_2(f, p, radius, floor) -> float:
    """The two-dimensional dual of DRBO-KDE as a linear program in a, b and s.

    max -radius a - b - p.s with s_i >= max(-a, -b - f_i), -b - floor <= a, a >= 0.
    """
    n = len(f)
    cost = np.concatenate([[radius, 1.0], p])
    eye, one = np.eye(n), np.ones((n, 1))
    rows = np.vstack(
        [
            np.hstack([-one, 0 * one, -eye]),
            np.hstack([0 * one, -one, -eye]),
            np.concatenate([[-1.0, -1.0], np.zeros(n)])[None],
        ]
    )
    limits = np.concatenate([np.zeros(n), f, [floor]])
    bounds = [(0, None), (None, None)] + [(None, None)] * n
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("n, radius", [(1, 0.3), (7, 1e-4), (7, 0.4), (40, 0.3)])
def test_equals_clarabel(n, radius, kind, make_instance, agrees_with_clarabel):
    f, p = make_instance(kind, n)
    values = TotalVariation(radius).worst_case(f, p).value
    agrees_with_clarabel(values, f, p, radius, ball)


@needs_reference
def test_reference_instances():
    for i in instances("tv"):
        robust = TotalVariation(i["eps"]).worst_case(i["f"], i["p"])
        assert robust.value.item() == pytest.approx(i["value"], rel=1e-10, abs=1e-10)
        assert robust.multiplier.item() == pytest.approx(i["multiplier"], abs=1e-9)
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("below", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("radius", [0.0, 0.05, 0.7, 2.0])
@pytest.mark.parametrize("kind", ["plain", "ties", "zeros", "offset"])
def test_the_floor_equals_proposition_2(below, radius, kind, make_instance):
    f, p = make_instance(kind, 12)
    floor = f.amin(-1) - below
    robust = TotalVariation(radius, floor).worst_case(f, p)
    for row in range(3):
        expected = by_proposition_2(
            f[row].numpy(), p[row].numpy(), radius, floor[row].item()
        )
        assert robust.value[row].item() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    outside = 1.0 - robust.weights.sum(-1)
    assert (outside <= radius / 2 + 1e-12).all()
    made = (robust.weights * f).sum(-1) + outside * floor
    torch.testing.assert_close(made, robust.value)
    distance = TotalVariation(radius, floor).distance(p, robust.weights)
    assert (distance <= radius + 1e-12).all()


def test_a_floor_is_an_atom_of_weight_zero():
    f = torch.randn(4, 9, dtype=torch.double, requires_grad=True)
    p = torch.softmax(torch.randn(9, dtype=torch.double), -1)
    floor = torch.tensor([-3.0, 9.0, -4.0, -5.0], dtype=torch.double).requires_grad_()
    fixed = TotalVariation(0.3, floor).worst_case(f, p)
    atoms = torch.cat([f, floor[:, None]], dim=-1)
    reference = torch.cat([p, torch.zeros(1, dtype=torch.double)])
    per_call = TotalVariation(0.3).worst_case(atoms, reference)
    torch.testing.assert_close(per_call.value, fixed.value)
    torch.testing.assert_close(per_call.weights[:, :-1], fixed.weights)
    torch.testing.assert_close(per_call.multiplier, fixed.multiplier)
    (slope,) = torch.autograd.grad(per_call.value.sum(), floor)
    outside = torch.tensor([0.15, 0.0, 0.15, 0.15], dtype=torch.double)
    torch.testing.assert_close(slope, outside)
    sensitivity = TotalVariation(0.3, floor).sensitivity(f, p)
    torch.testing.assert_close(sensitivity, -fixed.multiplier)
    (fixed_slope,) = torch.autograd.grad(fixed.value.sum(), f)
    torch.testing.assert_close(fixed_slope, fixed.weights)


def test_a_scalar_floor_serves_every_row_and_dtype():
    f, p = torch.tensor([[0.0, 4.0], [1.0, 3.0]]), torch.tensor([0.5, 0.5])
    robust = TotalVariation(0.5, floor=-2.0).worst_case(f, p)
    assert robust.value.dtype == torch.float
    assert robust.value.tolist() == [0.5, 0.75]
    assert robust.weights.tolist() == [[0.5, 0.25], [0.5, 0.25]]


@pytest.mark.parametrize(
    "radius, value, multiplier",
    [
        (0.0, 1.5, 1.5),  # uniform: each breakpoint is a multiple of 1/2
        (0.25, 1.125, 1.5),
        (0.5, 0.75, 1.0),  # the highest atom is used up: the next one gives
        (1.0, 0.25, 0.5),
        (1.5, 0.0, 0.0),
        (5.0, 0.0, 0.0),
    ],
)
def test_by_hand_on_and_between_breakpoints(radius, value, multiplier):
    f = torch.tensor([2.0, 0.0, 3.0, 1.0], dtype=torch.double)
    p = torch.full((4,), 0.25, dtype=torch.double)
    robust = TotalVariation(radius).worst_case(f, p)
    assert robust.value.item() == pytest.approx(value)
    assert robust.multiplier.item() == pytest.approx(multiplier)


@pytest.mark.parametrize("n", [10, 1000, 1024])
def test_every_breakpoint_of_a_uniform_reference(n):
    """cumsum of 1/n does not hit k/n exactly; the right derivative must not flip."""
    f = torch.arange(n, dtype=torch.double)
    p = torch.full((n,), 1 / n, dtype=torch.double)
    for k in range(0, n, max(1, n // 20)):
        robust = TotalVariation(2 * k / n).worst_case(f, p)
        assert robust.multiplier.item() == pytest.approx((n - 1 - k) / 2)


def test_weight_zero_gives_nothing_but_may_receive():
    f = torch.tensor([9.0, 1.0, 0.0], dtype=torch.double)
    p = torch.tensor([0.0, 1.0, 0.0], dtype=torch.double)
    robust = TotalVariation(0.5).worst_case(f, p)
    assert robust.value.item() == pytest.approx(0.75)
    assert robust.weights.tolist() == [0.0, 0.75, 0.25]
    at_zero = TotalVariation(0.0).worst_case(f, p)
    assert at_zero.multiplier.item() == 0.5  # not (9 - 0) / 2


@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_one_sided_derivative_at_weight_zero(radius):
    f = torch.tensor([9.0, 1.0, 0.0, -1.0, 4.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.7, 0.3, 0.0, 0.0], dtype=torch.double, requires_grad=True)
    ambiguity = TotalVariation(radius)
    (slope,) = torch.autograd.grad(ambiguity.worst_case(f, p).value, p)
    base, h = ambiguity.worst_case(f, p).value, 1e-7
    for i in range(5):
        step = torch.zeros(5, dtype=torch.double)
        step[i] += h
        step[1] -= h
        found = (ambiguity.worst_case(f, p + step).value - base) / h
        assert found.item() == pytest.approx((slope[i] - slope[1]).item(), abs=1e-6)


def test_ties_are_deterministic():
    f = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.double)
    p = torch.full((4,), 0.25, dtype=torch.double)
    robust = TotalVariation(0.25).worst_case(f, p)
    assert robust.weights.tolist() == [0.125, 0.375, 0.25, 0.25]  # the first of each


def test_bad_floor():
    with pytest.raises(InputDataError, match="floor"):
        TotalVariation(0.1, floor=float("nan"))
    with pytest.raises(BotorchTensorDimensionError):
        TotalVariation(0.1, floor=0.0).worst_case(torch.tensor(1.0), torch.ones(2))


def test_a_radius_past_saturation_does_not_depend_on_the_reference():
    """All mass moves to an atom of weight zero: v is the minimum for every p."""
    f = torch.tensor([0.0, 1.0, 3.0], dtype=torch.double)
    p = torch.tensor([0.0, 0.5, 0.5], dtype=torch.double, requires_grad=True)
    value = TotalVariation(2.5).worst_case(f, p).value
    (slope,) = torch.autograd.grad(value, p)
    assert value == 0.0 and (slope == slope[0]).all()


@pytest.mark.parametrize("weights", [torch.zeros(4), torch.zeros(0)])
def test_the_value_alone_refuses_no_weight(weights):
    values = torch.ones(3, len(weights))
    with pytest.raises((InputDataError, BotorchTensorDimensionError)):
        TotalVariation(0.1).value(values, weights)


def test_weights_changed_behind_autograds_back_are_looked_at_again():
    f, p = torch.tensor([0.0, 1.0, 4.0]).double(), torch.ones(3).double() / 3
    ball = TotalVariation(0.25)
    ball.value(f, p)
    p.data.copy_(torch.tensor([0.25, 0.5, 0.25]))
    assert ball.value(f, p).item() == pytest.approx(1.0)  # an eighth moves
