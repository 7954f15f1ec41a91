"""What every ambiguity set promises; a member passes by being listed once."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    CvxpyAmbiguity,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    SolverStatus,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.codec import decode, encode


@dataclass(frozen=True)
class Member:
    name: str
    make: Callable[[float, int], AmbiguitySet]  # radius, number of contexts
    has_radius: bool = True
    saturates: bool = True  # some finite radius covers the simplex
    feasible: bool = True  # the returned weights lie in the set
    precision: float = 1e-9  # of the value, relative to the scores
    exact: bool = True  # to rounding; else by a convex solver, to its tolerance

    @property
    def error(self) -> float:
        """Of values, weights and distances, for scores and radii of about one."""
        return 1e-10 if self.exact else 1e-7

    @property
    def step(self) -> float:
        """Of finite differences: the larger the error, the larger the step."""
        return 1e-6 if self.exact else 1e-3

    def close(self, rtol: float = 1e-7, atol: float = 1e-7) -> dict[str, float]:
        """These tolerances of a derivative, which an inexact solver may exceed."""
        least = 0.0 if self.exact else 1e-3
        return {"rtol": max(rtol, least), "atol": max(atol, least)}


def line_cost(n: int) -> Tensor:
    points = torch.linspace(0, 1, n, dtype=torch.double)[:, None]
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def box(q, p, radius):
    import cvxpy as cp

    return [cp.norm_inf(q - p) <= radius]


def smooth_kernel(n: int) -> Tensor:
    return torch.exp(-line_cost(n).square() / (2 * 0.2**2))


MEMBERS = [
    Member("no_ambiguity", lambda radius, n: NoAmbiguity(), has_radius=False),
    Member("full_simplex", lambda radius, n: FullSimplex(), has_radius=False),
    # The radius is alpha / (1 - alpha); the absolute value keeps a bad radius bad.
    Member(
        "cvar", lambda radius, n: ConditionalValueAtRisk(radius / (1 + abs(radius)))
    ),
    Member("chi_squared", lambda radius, n: ChiSquared(radius), saturates=False),
    Member("kullback_leibler", lambda radius, n: KullbackLeibler(radius)),
    Member("modified_chi_squared", lambda radius, n: ModifiedChiSquared(radius)),
    Member("total_variation", lambda radius, n: TotalVariation(radius)),
    Member("mmd", lambda radius, n: MaximumMeanDiscrepancy(radius, smooth_kernel(n))),
    Member(
        "minimax_total_variation",
        lambda radius, n: MinimaxApproximation(TotalVariation(radius)),
        feasible=False,
    ),
    Member(
        "minimax_mmd",
        lambda radius, n: MinimaxApproximation(
            MaximumMeanDiscrepancy(radius, smooth_kernel(n))
        ),
        feasible=False,
        precision=1e-6,  # that of the sensitivity at radius zero
    ),
    Member(
        "minimax_wasserstein",
        lambda radius, n: MinimaxApproximation(Wasserstein(radius, line_cost(n))),
        feasible=False,
    ),
    Member("wasserstein", lambda radius, n: Wasserstein(radius, line_cost(n))),
    Member("cvxpy", lambda radius, n: CvxpyAmbiguity(box, radius), exact=False),
]
SIZED = [member for member in MEMBERS if member.has_radius]

every = pytest.mark.parametrize("member", MEMBERS, ids=lambda m: m.name)
sized = pytest.mark.parametrize("member", SIZED, ids=lambda m: m.name)
seeds = given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    radius=st.floats(0.0, 2.0),
    zeros=st.booleans(),
    ties=st.booleans(),
)
few = settings(max_examples=40, deadline=None)


def instance(seed: int, n: int, zeros: bool = False, ties: bool = False):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(4, n, generator=generator, dtype=torch.double)
    weights = torch.rand(4, n, generator=generator, dtype=torch.double) + 1e-3
    if ties:
        values = values.round()
    if zeros and n > 1:
        weights[:, :: 2 if n > 2 else n] = 0.0
    return values, weights / weights.sum(-1, keepdim=True)


@every
@few
@seeds
def test_value_lies_in_between_and_the_weights_attain_it(
    member, seed, n, radius, zeros, ties
):
    """Between the minimum and the mean; feasible weights."""
    values, weights = instance(seed, n, zeros, ties)
    ambiguity = member.make(radius, n)
    robust = ambiguity.worst_case(values, weights)
    assert (robust.value <= (values * weights).sum(-1) + member.error).all()
    assert (robust.value >= values.amin(-1) - member.error).all()
    assert robust.status is SolverStatus.EXACT
    torch.testing.assert_close(robust.weights.sum(-1), torch.ones(4).double())
    torch.testing.assert_close((robust.weights * values).sum(-1), robust.value)
    if not member.feasible:
        return
    assert (robust.weights >= -1e-12).all()
    distance = ambiguity.distance(weights, robust.weights)
    assert (distance <= ambiguity.radius + 100 * member.error).all()


# Scale and shift of the scores; powers of two, so that nothing is rounded.
UNITS = [(2.0**-27, 0.0), (2.0**27, 0.0), (3.0, -5.0), (1.0, 1e6), (2.0**-27, 1e6)]


@every
@few
@seeds
def test_equivariance(member, seed, n, radius, zeros, ties):
    """Other units of the scores change those of the answer, and nothing else."""
    scale, shift = UNITS[seed % len(UNITS)]
    values, weights = instance(seed, n, zeros, ties)
    moved = scale * (values + shift)
    values = moved / scale - shift  # as they are after rounding
    ambiguity = member.make(radius, n)
    plain = ambiguity.worst_case(values, weights)
    found = ambiguity.worst_case(moved, weights)
    assert found.status is plain.status
    close = max(member.precision, 10 * member.error)
    span = (values.amax(-1) - values.amin(-1)).clamp_min(1e-300)
    rounding = 1e-15 * abs(shift)
    error = found.value / scale - shift - plain.value
    assert (error.abs() <= close * span + rounding).all()
    if member.exact:  # else the answer may be another of many
        torch.testing.assert_close(found.weights, plain.weights, rtol=0.0, atol=1e-9)
        slopes = found.multiplier / scale, plain.multiplier
        torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-9)


@sized
@few
@seeds
def test_monotone_and_convex_in_the_radius(member, seed, n, radius, zeros, ties):
    values, weights = instance(seed, n, zeros, ties)
    a, b, c = (
        member.make(r, n).worst_case(values, weights).value
        for r in (radius, radius + 0.1, radius + 0.2)
    )
    assert (a >= b - member.error).all() and (b >= c - member.error).all()
    assert (2 * b <= a + c + 10 * member.error).all()


@sized
def test_limits_of_the_radius(member):
    values, weights = instance(3, 9)
    nothing = member.make(0.0, 9).worst_case(values, weights)
    everything = member.make(1e6, 9).worst_case(values, weights)
    torch.testing.assert_close(nothing.value, (values * weights).sum(-1))
    rounding = None if member.saturates else 1e-5
    torch.testing.assert_close(
        everything.value, values.amin(-1), rtol=rounding, atol=rounding
    )
    assert (
        everything.multiplier <= (0 if member.saturates and member.exact else 1e-10)
    ).all()


@every
def test_first_order_gradients(member):
    values, weights = instance(1, 7)
    ambiguity = member.make(0.13, 7)

    def value(f: Tensor, p: Tensor) -> Tensor:
        # The derivative in p is taken along the simplex.
        return ambiguity.worst_case(f, p / p.sum(-1, keepdim=True)).value

    inputs = (values.requires_grad_(), weights.requires_grad_())
    eps = member.step
    assert torch.autograd.gradcheck(value, inputs, eps=eps, **member.close(1e-3, 1e-5))
    assert torch.autograd.gradcheck(
        lambda f: ambiguity.sensitivity(f, weights),
        values,
        eps=eps,
        **member.close(1e-3, 1e-5),
    )


@sized
def test_gradient_in_the_radius_is_minus_the_multiplier(member):
    values, weights = instance(2, 8)
    ambiguity = member.make(0.13, 8)
    ambiguity.radius.requires_grad_()
    robust = ambiguity.worst_case(values, weights)
    (gradient,) = torch.autograd.grad(robust.value.sum(), ambiguity.radius)
    torch.testing.assert_close(gradient, -robust.multiplier.sum())
    h = member.step
    up = member.make(0.13 + h, 8).worst_case(values, weights).value
    down = member.make(0.13 - h, 8).worst_case(values, weights).value
    slope = (up - down) / (2 * h)
    torch.testing.assert_close(slope, -robust.multiplier, **member.close(1e-5, 1e-6))
    torch.testing.assert_close(
        ambiguity.sensitivity(values, weights), -robust.multiplier, **member.close()
    )


@every
def test_value_and_sensitivity_together_are_what_they_are_alone(member):
    values, weights = instance(2, 8)
    values.requires_grad_()
    ambiguity = member.make(0.13, 8)
    robust, sensitivity = ambiguity.worst_case_and_sensitivity(values, weights)
    alone = ambiguity.worst_case(values, weights)
    torch.testing.assert_close(robust.value, alone.value, **member.close())
    torch.testing.assert_close(robust.weights, alone.weights, **member.close())
    slope = ambiguity.sensitivity(values, weights)
    torch.testing.assert_close(sensitivity, slope, **member.close())
    (gradient,) = torch.autograd.grad((robust.value + sensitivity).sum(), values)
    (expected,) = torch.autograd.grad((alone.value + slope).sum(), values)
    torch.testing.assert_close(gradient, expected, **member.close())


@every
@pytest.mark.parametrize("weights", ["any", "equal", "equal and zero"])
@pytest.mark.parametrize("radius", [0.0, 0.13, 0.6])
def test_the_value_alone_is_that_of_the_worst_case(member, weights, radius):
    values, p = instance(3, 8)
    if weights != "any":
        p = torch.ones(8, dtype=torch.double)
        p[[2, 5]] = float(weights == "equal")
        p = p / p.sum()
    values.requires_grad_()
    ambiguity = member.make(radius, 8)
    found = ambiguity.value(values, p)
    expected = ambiguity.worst_case(values, p).value
    torch.testing.assert_close(found, expected, **member.close())
    torch.testing.assert_close(
        *(
            torch.autograd.grad(value.sum(), values, retain_graph=True)[0]
            for value in (found, expected)
        ),
        **member.close(),
    )


@every
def test_a_second_derivative_is_an_error_not_zero(member):
    values, weights = instance(1, 7)
    values.requires_grad_()
    value = member.make(0.2, 7).worst_case(values, weights).value.square().sum()
    (gradient,) = torch.autograd.grad(value, values, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


@every
@pytest.mark.parametrize("method", ["worst_case", "value", "sensitivity"])
@pytest.mark.parametrize("equal", [False, True])
def test_a_second_derivative_of_a_sum_is_an_error_too(member, method, equal):
    """Its incoming gradient is a constant, and none in the scores."""
    values, weights = instance(1, 7)
    if equal:
        weights = torch.full((7,), 1 / 7, dtype=torch.double)
    ambiguity = member.make(0.2, 7)
    if method == "value" and isinstance(ambiguity, NoAmbiguity):
        return  # linear: its derivatives are right to any order

    def total(f: Tensor) -> Tensor:
        found = getattr(ambiguity, method)(f, weights)
        return (found.value if method == "worst_case" else found).sum()

    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.functional.hessian(total, values)
    values.requires_grad_()
    (gradient,) = torch.autograd.grad(total(values), values, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        (gradient.square().sum() + values.sum()).backward()


@every
def test_shapes_and_dtype(member):
    values, weights = instance(1, 6)
    ambiguity = member.make(0.2, 6)
    batched = ambiguity.worst_case(values, weights).value
    shared = ambiguity.worst_case(values, weights[0]).value
    torch.testing.assert_close(shared[0], batched[0])
    one = ambiguity.worst_case(values[2], weights[2])
    assert one.value.shape == () and one.weights.shape == (6,)
    torch.testing.assert_close(one.value, batched[2])
    deep = ambiguity.worst_case(values.reshape(2, 2, 6), weights.reshape(2, 2, 6))
    torch.testing.assert_close(deep.value.flatten(), batched)
    single = ambiguity.worst_case(values.float(), weights.float())
    assert single.value.dtype == single.weights.dtype == torch.float
    torch.testing.assert_close(single.value.double(), batched, rtol=1e-5, atol=1e-6)


@every
def test_a_set_may_be_moved_to_float32(member):
    values, weights = instance(1, 6)
    ambiguity = member.make(0.2, 6)
    expected = ambiguity.worst_case(values, weights).value
    found = ambiguity.float().worst_case(values.float(), weights.float()).value
    assert found.dtype == torch.float
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


@every
def test_constant_scores_have_no_worst_case(member):
    _, weights = instance(1, 6)
    values = torch.full((4, 6), -50.0, dtype=torch.double)
    robust = member.make(0.2, 6).worst_case(values, weights)
    torch.testing.assert_close(robust.value, values[:, 0])
    assert (robust.multiplier == 0).all()


@every
def test_bad_input(member):
    ambiguity = member.make(0.2, 6)
    with pytest.raises(BotorchTensorDimensionError):
        ambiguity.worst_case(torch.zeros(4, 6), torch.ones(5))
    with pytest.raises(BotorchTensorDimensionError):
        ambiguity.worst_case(torch.tensor(1.0), torch.ones(6))
    with pytest.raises(BotorchTensorDimensionError, match="contexts"):
        ambiguity.worst_case(torch.zeros(4, 0), torch.zeros(0))
    with pytest.raises(InputDataError):
        ambiguity.distance(torch.ones(6), -torch.ones(6))
    p = torch.full((6,), 1 / 6)
    off = [2 * p, p - torch.eye(6)[0], torch.full((6,), torch.nan)]
    off.append(torch.stack([p, 1.01 * p]))
    for weights in off:
        for method in (ambiguity.worst_case, ambiguity.sensitivity):
            with pytest.raises(InputDataError, match="simplex"):
                method(torch.zeros(2, 6), weights)
    with pytest.raises(InputDataError, match="radius"):
        ambiguity.worst_case(torch.zeros(2, 6), p, radius=torch.tensor([0.1, -0.1]))
    with pytest.raises(BotorchTensorDimensionError, match="broadcast"):
        ambiguity.worst_case(torch.zeros(2, 6), p, radius=torch.full((3,), 0.1))
    with pytest.raises(BotorchTensorDimensionError, match="broadcast"):
        ambiguity.worst_case(torch.zeros(2, 6), p.expand(3, 6))


@every
def test_weights_changed_in_place_are_looked_at_again(member):
    weights = torch.full((6,), 1 / 6)
    ambiguity = member.make(0.2, 6)
    ambiguity.worst_case(torch.zeros(6), weights)
    ambiguity.value(torch.zeros(6), weights)
    weights.mul_(2)
    for method in (ambiguity.worst_case, ambiguity.value):
        with pytest.raises(InputDataError, match="simplex"):
            method(torch.zeros(6), weights)


def test_inference_weights_changed_in_place_are_looked_at_again():
    with torch.inference_mode():
        weights = torch.full((6,), 1 / 6)
        FullSimplex().worst_case(torch.zeros(6), weights)
        TotalVariation(0.1).value(torch.zeros(6), weights)
        weights.mul_(2)
        with pytest.raises(InputDataError, match="simplex"):
            FullSimplex().worst_case(torch.zeros(6), weights)
        with pytest.raises(InputDataError, match="simplex"):
            TotalVariation(0.1).value(torch.zeros(6), weights)


@every
def test_weights_rounded_to_float32_are_weights(member):
    """Like those of a float32 context set under a float64 model."""
    values, _ = instance(1, 7)
    exact = torch.full((7,), 1 / 7, dtype=torch.double)
    rounded = exact.float().double()
    assert rounded.sum() != 1.0
    ambiguity = member.make(0.2, 7)
    found = ambiguity.worst_case(values + 1e6, rounded)
    # Else the offset would count as often as the weights' sum says.
    expected = ambiguity.worst_case(values, exact).value + 1e6
    torch.testing.assert_close(found.value, expected, rtol=0.0, atol=1e-5)


@sized
def test_one_radius_per_row(member):
    values, weights = instance(4, 7)
    ambiguity = member.make(0.13, 7)
    radii = torch.tensor([0.0, 0.02, 0.13, 9.0], dtype=torch.double)
    together = ambiguity.worst_case(values, weights, radius=radii)
    for row, radius in enumerate(radii):
        alone = ambiguity.with_radius(radius).worst_case(values[row], weights[row])
        torch.testing.assert_close(together.value[row], alone.value)
        torch.testing.assert_close(together.multiplier[row], alone.multiplier)
    radii[0] = 0.3
    radii.requires_grad_()
    together = ambiguity.worst_case(values, weights, radius=radii)
    (slope,) = torch.autograd.grad(together.value.sum(), radii)
    torch.testing.assert_close(slope, -together.multiplier)
    # One problem at many radii: the curve v(radius).
    curve = ambiguity.worst_case(values[0], weights[0], radius=radii)
    assert curve.value.shape == (4,) and curve.weights.shape == (4, 7)


@sized
@pytest.mark.parametrize("radius", [-1.0, float("nan"), float("inf")])
def test_bad_radius(member, radius):
    with pytest.raises(InputDataError, match="radius"):
        member.make(radius, 6)


@sized
def test_radius_is_a_buffer(member):
    assert "radius" in member.make(0.2, 6).state_dict()


@sized
def test_with_radius_is_a_copy(member):
    ambiguity = member.make(0.2, 6)
    assert ambiguity.with_radius(0.5).radius == 0.5
    torch.testing.assert_close(ambiguity.radius, torch.tensor(0.2).double())
    with pytest.raises(InputDataError, match="radius"):
        ambiguity.with_radius(-0.5)
    del ambiguity.radius
    ambiguity.radius = torch.nn.Parameter(torch.tensor(0.2))
    assert ambiguity.with_radius(0.5).radius == 0.5


@every
def test_survives_copies_and_json(member):
    values, weights = instance(5, 6)
    ambiguity = member.make(0.2, 6)
    value = ambiguity.worst_case(values, weights).value
    copies = [copy.deepcopy(ambiguity), pickle.loads(pickle.dumps(ambiguity))]
    if isinstance(ambiguity, CvxpyAmbiguity):  # holds a Python function
        with pytest.raises(InputDataError, match="problem_builder"):
            encode(ambiguity)
    else:
        data = json.loads(json.dumps(encode(ambiguity)))
        copies.append(decode(data, AmbiguitySet))
    for twin in copies:
        assert torch.equal(twin.worst_case(values, weights).value, value)
