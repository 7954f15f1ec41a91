"""Every set over scores of every size: numbers, on the simplex, in the ball."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    KullbackLeibler,
    ModifiedChiSquared,
    SolverStatus,
)
from botorch_drbo.testing import AmbiguitySetCase
from tests.ambiguity.test_contract import MEMBERS

EPS = 2.0**-52
sizes = st.one_of(
    st.just(0.0),
    st.floats(-300, 300).map(lambda exponent: 10.0**exponent),
    st.floats(-320, -308).map(lambda exponent: 10.0**exponent),  # subnormal
    st.sampled_from([1.0, 1e-170, 1e-16, 5e-324, 1e300]),
)
score = st.builds(lambda size, sign: size * sign, sizes, st.sampled_from([-1, 1]))
apart = st.lists(score, min_size=2, max_size=6)
nearly_equal = st.builds(
    lambda base, steps: [base * (1 + step * EPS) for step in steps],
    score,
    st.lists(st.integers(0, 3), min_size=2, max_size=6),
)
near_zero = st.builds(  # one of ordinary size, the others next to nothing
    lambda scores, size: [size, *(1e-150 * s for s in scores)],
    st.lists(st.floats(-1, 1), min_size=1, max_size=5),
    st.sampled_from([1.0, -1.0, 1e150]),
)
wild_scores = st.one_of(apart, nearly_equal, near_zero)
shares = st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.5, 1e-8]), min_size=6, max_size=6)
radii = st.sampled_from([0.0, 1e-6, 0.1, 0.3, 0.5, 1.0, 2.0])


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(scores=wild_scores, shares=shares, radius=radii)
@example(scores=[1.0, 1e-170, 0.0], shares=[1.0] * 6, radius=2.0)
def test_wild_scores(
    case: AmbiguitySetCase, scores: list[float], shares: list[float], radius: float
) -> None:
    """The weights lie where they must, the value is theirs, and units do not matter."""
    if not case.exact and hash((*scores, *shares)) % 8:
        return  # a convex solver takes milliseconds
    f = torch.tensor(scores, dtype=torch.double)
    shares = shares[: len(scores)]
    p = torch.tensor(shares if any(shares) else [1.0] * len(shares)).double()
    p = p / p.sum()
    ambiguity = case.make(radius, len(f))
    size = f.abs().max().item()
    slack = 1e-7 if not case.exact else 1e-9 if case.feasible else 1e-5
    robust = ambiguity.worst_case(f, p)
    q, value = robust.weights, robust.value.item()
    assert torch.isfinite(q).all() and math.isfinite(value), robust
    if case.exact:
        assert robust.status is SolverStatus.EXACT
    # Lines in the radius are no distributions, and carry the rounding of slopes.
    assert q.sum().item() == pytest.approx(1.0, abs=1e-9 if case.feasible else 1e-8)
    if case.feasible:
        assert (q >= -1e-12).all(), q
        distance = ambiguity.distance(p, q).item()
        assert distance <= ambiguity.radius.item() + 100 * case.error, (q, distance)
    slack = slack * size + 10 * 5e-324  # rounding of subnormal numbers
    assert value >= f.min().item() - slack
    if ambiguity.holds_reference or case.function is not None:
        assert value <= (f * p).sum().item() + slack
    assert ambiguity.lower_bound(f, p).item() <= value + slack
    assert not robust.multiplier.isnan() and robust.multiplier >= 0.0
    assert not ambiguity.sensitivity(f, p).isnan()
    if not _twice_as_large_is_a_number(f):
        return
    for power in (1, 7, -9):
        other = ambiguity.worst_case(f * 2.0**power, p)
        torch.testing.assert_close(other.weights, q, rtol=0.0, atol=1e-9)
        expected = value * 2.0**power
        assert other.value.item() == pytest.approx(expected, rel=1e-9, abs=1e-9 * size)


def _twice_as_large_is_a_number(f: Tensor) -> bool:
    smallest = f[f != 0].abs()
    return bool((smallest < 1e290).all() and (smallest > 1e-290).all())


def test_a_score_next_to_nothing_is_not_divided_by_its_square() -> None:
    """Half of each: on the brink of having no room, and the ball of radius 1/2."""
    thirds = torch.full((3,), 1 / 3, dtype=torch.double)
    f = torch.tensor([1.0, 1e-170, 0.0], dtype=torch.double)
    for radius, expected in ((2.0, [0.0, 0.5, 0.5]), (0.5, [0.0, 0.5, 0.5])):
        robust = ModifiedChiSquared(radius).worst_case(f, thirds)
        assert robust.value.item() == pytest.approx(0.0, abs=1e-60)
        torch.testing.assert_close(robust.weights, torch.tensor(expected).double())


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
@pytest.mark.parametrize("tiny", [1e-170, 1e-300, 1e-310, 5e-324])
def test_a_weight_next_to_nothing(case: AmbiguitySetCase, tiny: float) -> None:
    """The lowest score has it: whatever that is worth, all stays a number."""
    f = torch.tensor([0.0, 1.0, 2.0], dtype=torch.double)
    for shares in ([tiny, 1.0, 0.0], [tiny, 1.0, tiny], [1.0, tiny, 0.0]):
        p = torch.tensor(shares, dtype=torch.double)
        for radius in (1e-6, 0.3, 2.0):
            ambiguity = case.make(radius, 3)
            robust = ambiguity.worst_case(f, p)
            assert torch.isfinite(robust.weights).all(), robust
            assert robust.weights.sum().item() == pytest.approx(1.0, abs=1e-6)
            expected = (f * p).sum().item()
            if ambiguity.holds_reference:
                assert robust.value.item() <= expected + 1e-6
            assert not robust.multiplier.isnan()


@pytest.mark.parametrize("ball", [ModifiedChiSquared, ChiSquared, KullbackLeibler])
def test_distances_of_weights_next_to_nothing(ball: type[AmbiguitySet]) -> None:
    """Neither an overflow nor an underflow is taken for a distance."""
    p = torch.tensor([1.0, 1e-312], dtype=torch.double)
    q = torch.tensor([1.0, 0.0], dtype=torch.double)
    away = torch.tensor([0.999, 0.001], dtype=torch.double)
    known = ball(1.0)
    assert not known.distance(p, q).isnan() and not known.distance(q, p).isnan()
    if ball is KullbackLeibler:
        by_hand = 0.999 * math.log(0.999) + 0.001 * (312 * math.log(10) - math.log(1e3))
        assert known.distance(p, away).item() == pytest.approx(by_hand, rel=1e-9)
