"""Contract tests for ambiguity sets."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypedDict

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet, SolverStatus
from botorch_drbo.codec import decode, encode
from botorch_drbo.testing.fixtures import run_for_each


class Tolerances(TypedDict):
    """How near two numbers have to be."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class AmbiguitySetCase:
    r"""One ambiguity set for the contract tests, and its properties.

    Args:
        name: Its name in messages of failing tests.
        make: From a radius and a number of contexts to the set. A radius that is none
            (negative, NaN, infinite) is passed on to its constructor.
        has_radius: Whether ``make`` uses the radius.
        saturates: Whether some finite radius covers the simplex.
        feasible: Whether the returned weights lie in the set; not for approximations.
        precision: Of the value, relative to the scores.
        exact: Whether it is solved to rounding; else by a convex solver, to its
            tolerance.
        linear: Whether ``value`` is linear in the scores: it has second derivatives.
        function: The argument of the constructor that is a function of the user's, and
            cannot be stored; None if there is none.

    Example:
        >>> from botorch_drbo.testing import AmbiguitySetCase
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> case = AmbiguitySetCase("l1", lambda radius, n: TotalVariation(radius))
        >>> case.make(0.2, 5).radius
        tensor(0.2000, dtype=torch.float64)
    """

    name: str
    make: Callable[[float, int], AmbiguitySet]
    has_radius: bool = True
    saturates: bool = True
    feasible: bool = True
    precision: float = 1e-9
    exact: bool = True
    linear: bool = False
    function: str | None = None

    @property
    def error(self) -> float:
        """Of values, weights and distances, for scores and radii of about one."""
        return 1e-10 if self.exact else 1e-7

    @property
    def step(self) -> float:
        """Of finite differences: the larger the error, the larger the step."""
        return 1e-6 if self.exact else 1e-3

    def instance(
        self, radius: float, seed: int, n: int, zeros: bool = False, ties: bool = False
    ) -> tuple[AmbiguitySet, Tensor, Tensor]:
        """A set for n contexts, with scores and weights of them."""
        return self.make(radius, n), *instance(seed, n, zeros, ties)

    def close(self, rtol: float = 1e-7, atol: float = 1e-7) -> Tolerances:
        r"""The tolerances of a derivative, which an inexact solver may exceed.

        Args:
            rtol: The relative one of an exact solver.
            atol: The absolute one of an exact solver.

        Returns:
            Both by name.
        """
        least = 0.0 if self.exact else 1e-3
        return {"rtol": max(rtol, least), "atol": max(atol, least)}


def instance(
    seed: int, n: int, zeros: bool = False, ties: bool = False
) -> tuple[Tensor, Tensor]:
    """Four random problems.

    Shapes: returns ``4 x n``.
    """
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(4, n, generator=generator, dtype=torch.double)
    weights = torch.rand(4, n, generator=generator, dtype=torch.double) + 1e-3
    if ties:
        values = values.round()
    if zeros and n > 1:
        weights[:, :: 2 if n > 2 else n] = 0.0
    return values, weights / weights.sum(-1, keepdim=True)


_seeds = given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    # Between zero and 1e-12 the slope in the radius of some sets is rounding alone.
    radius=st.just(0.0) | st.floats(1e-12, 2.0),
    zeros=st.booleans(),
    ties=st.booleans(),
)
_few = settings(
    max_examples=40,
    deadline=None,
    # One method runs for each class that has the contract.
    suppress_health_check=[HealthCheck.differing_executors],
)

# Scale and shift of the scores; powers of two, so that nothing is rounded.
_UNITS = [(2.0**-27, 0.0), (2.0**27, 0.0), (3.0, -5.0), (1.0, 1e6), (2.0**-27, 1e6)]


class AmbiguitySetContract:
    r"""The tests of an ambiguity set: subclass it, and list your sets in ``cases``.

    Weights on the simplex and inside the set, the value equal to their expectation,
    convex and non-increasing in the radius, the limits at radius zero and at a large
    radius, other units of the scores, gradients, dtypes, batches, bad input, storing.

    Example:
        >>> from botorch_drbo.testing import AmbiguitySetCase, AmbiguitySetContract
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> class TestMySets(AmbiguitySetContract):
        ...     cases = [
        ...         AmbiguitySetCase("kl", lambda radius, n: KullbackLeibler(radius))
        ...     ]
    """

    cases: ClassVar[Sequence[AmbiguitySetCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """
        sized = [case for case in self.cases if case.has_radius]
        run_for_each(metafunc, case=self.cases, sized_case=sized)

    def test_its_class_variables_say_what_it_does(self, case: AmbiguitySetCase) -> None:
        """Others rely on them: a wrong one gives wrong worst cases, or refusals."""
        ambiguity, values, weights = case.instance(0.4, 3, 6, zeros=True)
        assert ambiguity.has_radius == case.has_radius, "has_radius"
        empty = weights == 0.0
        there = values.where(~empty, values.amin(-1, keepdim=True) - 1.0)
        gained = ambiguity.worst_case(there, weights).weights[empty]
        spreads = bool((gained > 1e-3).any())
        assert ambiguity.keeps_support == (gained <= case.error).all(), "keeps_support"
        equal, order = torch.full_like(weights, 1 / 6), [3, 0, 5, 1, 4, 2]
        found = ambiguity.worst_case(values, equal).value
        other = ambiguity.worst_case(values[:, order], equal).value
        in_any_order = bool(((other - found).abs() <= 10 * case.error).all())
        # Of a cvxpy program and of an approximation the class does not know: it may.
        general = case.function is not None or ambiguity.original() is not ambiguity
        if not general or not ambiguity.knows_positions:
            assert ambiguity.knows_positions != in_any_order, "knows_positions"
        # Mass that goes anywhere for its score alone also goes beyond the list.
        if not general or ambiguity.reaches_unseen:
            beyond = spreads and in_any_order and ambiguity.has_radius
            assert ambiguity.reaches_unseen == beyond, "reaches_unseen"
        if not (ambiguity.has_radius and case.exact):
            return
        full = (weights + 0.1) / (weights + 0.1).sum(-1, keepdim=True)
        start, near, far = (
            case.make(radius, 6).worst_case(values, full).value
            for radius in (0.0, 1e-8, 1e-4)
        )
        grows = bool(((start - near) / 1e-8 > 10.0 * (start - far) / 1e-4).any())
        assert grows != ambiguity.finite_at_zero, "finite_at_zero"

    @_few
    @_seeds
    def test_value_lies_in_between_and_the_weights_attain_it(
        self,
        case: AmbiguitySetCase,
        seed: int,
        n: int,
        radius: float,
        zeros: bool,
        ties: bool,
    ) -> None:
        """Between the minimum and the mean; feasible weights."""
        ambiguity, values, weights = case.instance(radius, seed, n, zeros, ties)
        robust = ambiguity.worst_case(values, weights)
        if ambiguity.holds_reference or case.function is not None:
            assert (robust.value <= (values * weights).sum(-1) + case.error).all()
        assert (robust.value >= values.amin(-1) - case.error).all()
        assert robust.status is SolverStatus.EXACT
        torch.testing.assert_close(robust.weights.sum(-1), torch.ones(4).double())
        torch.testing.assert_close((robust.weights * values).sum(-1), robust.value)
        if not case.feasible:
            return
        assert (robust.weights >= -1e-12).all()
        distance = ambiguity.distance(weights, robust.weights)
        assert (distance <= ambiguity.radius + 100 * case.error).all()

    @_few
    @_seeds
    def test_equivariance(
        self,
        case: AmbiguitySetCase,
        seed: int,
        n: int,
        radius: float,
        zeros: bool,
        ties: bool,
    ) -> None:
        """Other units of the scores change those of the answer, and nothing else."""
        scale, shift = _UNITS[seed % len(_UNITS)]
        values, weights = instance(seed, n, zeros, ties)
        moved = scale * (values + shift)
        values = moved / scale - shift  # as they are after rounding
        ambiguity = case.make(radius, n)
        plain = ambiguity.worst_case(values, weights)
        found = ambiguity.worst_case(moved, weights)
        assert found.status is plain.status
        close = max(case.precision, 10 * case.error)
        span = (values.amax(-1) - values.amin(-1)).clamp_min(1e-300)
        rounding = 1e-15 * abs(shift)
        error = found.value / scale - shift - plain.value
        assert (error.abs() <= close * span + rounding).all()
        if case.exact:  # else the answer may be another of many
            torch.testing.assert_close(
                found.weights, plain.weights, rtol=0.0, atol=1e-9
            )
            slopes = found.multiplier / scale, plain.multiplier
            torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-9)

    @_few
    @_seeds
    def test_monotone_and_convex_in_the_radius(
        self,
        sized_case: AmbiguitySetCase,
        seed: int,
        n: int,
        radius: float,
        zeros: bool,
        ties: bool,
    ) -> None:
        """A larger set is no better, and the gain shrinks."""
        values, weights = instance(seed, n, zeros, ties)
        a, b, c = (
            sized_case.make(r, n).worst_case(values, weights).value
            for r in (radius, radius + 0.1, radius + 0.2)
        )
        assert (a >= b - sized_case.error).all() and (b >= c - sized_case.error).all()
        assert (2 * b <= a + c + 10 * sized_case.error).all()

    def test_limits_of_the_radius(self, sized_case: AmbiguitySetCase) -> None:
        """The expectation at zero, the lowest score at a large radius."""
        values, weights = instance(3, 9)
        nothing = sized_case.make(0.0, 9).worst_case(values, weights)
        everything = sized_case.make(1e6, 9).worst_case(values, weights)
        torch.testing.assert_close(nothing.value, (values * weights).sum(-1))
        rounding = None if sized_case.saturates else 1e-5
        torch.testing.assert_close(
            everything.value, values.amin(-1), rtol=rounding, atol=rounding
        )
        assert (
            everything.multiplier
            <= (0 if sized_case.saturates and sized_case.exact else 1e-10)
        ).all()

    def test_first_order_gradients(self, case: AmbiguitySetCase) -> None:
        """Gradients of value and sensitivity are finite differences."""
        ambiguity, values, weights = case.instance(0.13, 1, 7)
        radius = torch.full((4, 1), 0.13, dtype=torch.double)
        optional = ambiguity.solve(values, weights, radius).reference_gradient

        weights.requires_grad_(optional is not None)
        inputs = (values.requires_grad_(), weights)
        options = {"eps": case.step, **case.close(1e-3, 1e-5)}
        # The derivative in p is taken along the simplex.
        assert torch.autograd.gradcheck(
            lambda f, p: ambiguity.worst_case(f, p / p.sum(-1, keepdim=True)).value,
            inputs,
            **options,
        )
        assert torch.autograd.gradcheck(
            lambda f: ambiguity.sensitivity(f, weights), values, **options
        )

    def test_gradient_in_the_radius_is_minus_the_multiplier(
        self, sized_case: AmbiguitySetCase
    ) -> None:
        """And both are a difference."""
        ambiguity, values, weights = sized_case.instance(0.13, 2, 8)
        ambiguity.radius.requires_grad_()
        robust = ambiguity.worst_case(values, weights)
        (gradient,) = torch.autograd.grad(robust.value.sum(), ambiguity.radius)
        torch.testing.assert_close(gradient, -robust.multiplier.sum())
        h = sized_case.step
        up = sized_case.make(0.13 + h, 8).worst_case(values, weights).value
        down = sized_case.make(0.13 - h, 8).worst_case(values, weights).value
        slope = (up - down) / (2 * h)
        torch.testing.assert_close(
            slope, -robust.multiplier, **sized_case.close(1e-5, 1e-6)
        )
        torch.testing.assert_close(
            ambiguity.sensitivity(values, weights),
            -robust.multiplier,
            **sized_case.close(),
        )

    def test_value_and_sensitivity_together_are_what_they_are_alone(
        self, case: AmbiguitySetCase
    ) -> None:
        """Asked in one call."""
        values, weights = instance(2, 8)
        values.requires_grad_()
        ambiguity = case.make(0.13, 8)
        robust, sensitivity = ambiguity.worst_case_and_sensitivity(values, weights)
        alone = ambiguity.worst_case(values, weights)
        torch.testing.assert_close(robust.value, alone.value, **case.close())
        torch.testing.assert_close(robust.weights, alone.weights, **case.close())
        slope = ambiguity.sensitivity(values, weights)
        torch.testing.assert_close(sensitivity, slope, **case.close())
        (gradient,) = torch.autograd.grad((robust.value + sensitivity).sum(), values)
        (expected,) = torch.autograd.grad((alone.value + slope).sum(), values)
        torch.testing.assert_close(gradient, expected, **case.close())

    @pytest.mark.parametrize("weights", ["any", "equal", "equal and zero"])
    @pytest.mark.parametrize("radius", [0.0, 0.13, 0.6])
    def test_the_value_alone_is_that_of_the_worst_case(
        self, case: AmbiguitySetCase, weights: str, radius: float
    ) -> None:
        """And so is its gradient."""
        values, p = instance(3, 8)
        if weights != "any":
            p = torch.ones(8, dtype=torch.double)
            p[[2, 5]] = float(weights == "equal")
            p = p / p.sum()
        values.requires_grad_()
        ambiguity = case.make(radius, 8)
        found = ambiguity.value(values, p)
        expected = ambiguity.worst_case(values, p).value
        torch.testing.assert_close(found, expected, **case.close())
        torch.testing.assert_close(
            *(
                torch.autograd.grad(value.sum(), values, retain_graph=True)[0]
                for value in (found, expected)
            ),
            **case.close(),
        )

    def test_a_second_derivative_is_an_error_not_zero(
        self, case: AmbiguitySetCase
    ) -> None:
        """Gradients exist to first order."""
        values, weights = instance(1, 7)
        values.requires_grad_()
        value = case.make(0.2, 7).worst_case(values, weights).value.square().sum()
        (gradient,) = torch.autograd.grad(value, values, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            gradient.square().sum().backward()

    @pytest.mark.parametrize("method", ["worst_case", "value", "sensitivity"])
    @pytest.mark.parametrize("equal", [False, True])
    def test_a_second_derivative_of_a_sum_is_an_error_too(
        self, case: AmbiguitySetCase, method: str, equal: bool
    ) -> None:
        """Its incoming gradient is a constant, and none in the scores."""
        values, weights = instance(1, 7)
        if equal:
            weights = torch.full((7,), 1 / 7, dtype=torch.double)
        ambiguity = case.make(0.2, 7)
        if method == "value" and case.linear:
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

    def test_shapes_and_dtype(self, case: AmbiguitySetCase) -> None:
        """Any batch, shared weights, one row, float32."""
        ambiguity, values, weights = case.instance(0.2, 1, 6)
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

    def test_a_set_may_be_moved_to_float32(self, case: AmbiguitySetCase) -> None:
        """Its numbers are rounded, and no more."""
        ambiguity, values, weights = case.instance(0.2, 1, 6)
        expected = ambiguity.worst_case(values, weights).value
        found = ambiguity.float().worst_case(values.float(), weights.float()).value
        assert found.dtype == torch.float
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)

    def test_constant_scores_have_no_worst_case(self, case: AmbiguitySetCase) -> None:
        """The constant, whatever the set."""
        _, weights = instance(1, 6)
        values = torch.full((4, 6), -50.0, dtype=torch.double)
        robust = case.make(0.2, 6).worst_case(values, weights)
        torch.testing.assert_close(robust.value, values[:, 0])
        assert (robust.multiplier == 0).all()

    def test_bad_input(self, case: AmbiguitySetCase) -> None:
        """Wrong shapes, weights off the simplex, bad radii."""
        ambiguity = case.make(0.2, 6)
        p, scores = torch.full((6,), 1 / 6), torch.zeros(2, 6)
        for values, weights, radius, message in (
            (scores, torch.ones(5), None, ""),
            (torch.tensor(1.0), torch.ones(6), None, ""),
            (torch.zeros(4, 0), torch.zeros(0), None, "contexts"),
            (scores, p, torch.full((3,), 0.1), "broadcast"),
            (scores, p.expand(3, 6), None, "broadcast"),
        ):
            with pytest.raises(BotorchTensorDimensionError, match=message):
                ambiguity.worst_case(values, weights, radius=radius)
        with pytest.raises(InputDataError):
            ambiguity.distance(torch.ones(6), -torch.ones(6))
        nan = torch.full((6,), torch.nan)
        for weights in (2 * p, p - torch.eye(6)[0], nan, torch.stack([p, 1.01 * p])):
            for method in (ambiguity.worst_case, ambiguity.sensitivity):
                with pytest.raises(InputDataError, match="simplex"):
                    method(scores, weights)
        with pytest.raises(InputDataError, match="radius"):
            ambiguity.worst_case(scores, p, radius=torch.tensor([0.1, -0.1]))

    def test_weights_changed_in_place_are_looked_at_again(
        self, case: AmbiguitySetCase
    ) -> None:
        """No check is remembered too long."""
        weights = torch.full((6,), 1 / 6)
        ambiguity = case.make(0.2, 6)
        ambiguity.worst_case(torch.zeros(6), weights)
        ambiguity.value(torch.zeros(6), weights)
        weights.mul_(2)
        for method in (ambiguity.worst_case, ambiguity.value):
            with pytest.raises(InputDataError, match="simplex"):
                method(torch.zeros(6), weights)

    def test_weights_rounded_to_float32_are_weights(
        self, case: AmbiguitySetCase
    ) -> None:
        """Like those of a float32 context set under a float64 model."""
        values, _ = instance(1, 7)
        exact = torch.full((7,), 1 / 7, dtype=torch.double)
        rounded = exact.float().double()
        assert rounded.sum() != 1.0
        ambiguity = case.make(0.2, 7)
        found = ambiguity.worst_case(values + 1e6, rounded)
        # Else the offset would count as often as the weights' sum says.
        expected = ambiguity.worst_case(values, exact).value + 1e6
        torch.testing.assert_close(found.value, expected, rtol=0.0, atol=1e-5)

    def test_one_radius_per_row(self, sized_case: AmbiguitySetCase) -> None:
        """A radius for each row, and a curve over radii."""
        ambiguity, values, weights = sized_case.instance(0.13, 4, 7)
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

    @pytest.mark.parametrize("radius", [-1.0, float("nan"), float("inf")])
    def test_bad_radius(self, sized_case: AmbiguitySetCase, radius: float) -> None:
        """Refused by the constructor."""
        with pytest.raises(InputDataError, match="radius"):
            sized_case.make(radius, 6)

    def test_radius_is_a_buffer(self, sized_case: AmbiguitySetCase) -> None:
        """It moves with the module."""
        assert "radius" in sized_case.make(0.2, 6).state_dict()

    def test_with_radius_is_a_copy(self, sized_case: AmbiguitySetCase) -> None:
        """The set itself keeps its radius."""
        ambiguity = sized_case.make(0.2, 6)
        assert ambiguity.with_radius(0.5).radius == 0.5
        torch.testing.assert_close(ambiguity.radius, torch.tensor(0.2).double())
        with pytest.raises(InputDataError, match="radius"):
            ambiguity.with_radius(-0.5)
        del ambiguity.radius
        ambiguity.radius = torch.nn.Parameter(torch.tensor(0.2))
        assert ambiguity.with_radius(0.5).radius == 0.5

    def test_survives_copies_and_json(self, case: AmbiguitySetCase) -> None:
        """Copy, pickle and codec give the same values."""
        ambiguity, values, weights = case.instance(0.2, 5, 6)
        value = ambiguity.worst_case(values, weights).value
        copies = [copy.deepcopy(ambiguity), pickle.loads(pickle.dumps(ambiguity))]
        if case.function is not None:
            with pytest.raises(InputDataError, match=case.function):
                encode(ambiguity)
        else:
            data = json.loads(json.dumps(encode(ambiguity)))
            copies.append(decode(data, AmbiguitySet))
        for twin in copies:
            assert torch.equal(twin.worst_case(values, weights).value, value)
