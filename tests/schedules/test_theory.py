"""The radius by the spread."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from scipy import stats
from scipy.integrate import quad

from botorch_drbo.codec import decode, encode
from botorch_drbo.schedules import (
    Constant,
    InverseSquareRoot,
    SpreadRadius,
    WassersteinConfidenceRadius,
)
from botorch_drbo.schedules.radii import Rule, as_rule


def test_json_round_trip() -> None:
    rule = SpreadRadius()
    assert decode(json.loads(json.dumps(encode(rule))), Rule) == rule


def test_spread_radius_by_numpy() -> None:
    contexts = torch.rand(7, 3, generator=torch.Generator().manual_seed(0)).double()
    trace = np.trace(np.cov(contexts.numpy().T))
    want = 1.25 * math.sqrt(trace / 7)
    assert SpreadRadius().of(contexts) == pytest.approx(want, rel=1e-12)
    assert SpreadRadius(0.5).of(contexts) == pytest.approx(0.4 * want, rel=1e-12)
    assert type(SpreadRadius().of(contexts.float())) is float


def test_one_context_counts_as_the_widest_law_in_the_box() -> None:
    one = torch.full((1, 4), 0.3)
    corners = torch.tensor([[0.0] * 4, [1.0] * 4]).double()  # half of the mass on each
    widest = corners.var(0, correction=0).sum().item()
    assert SpreadRadius().of(one) == pytest.approx(1.25 * math.sqrt(widest))


def test_wider_bounds_leave_the_radius_as_it_is_in_units_of_the_context() -> None:
    contexts = torch.rand(9, 1, generator=torch.Generator().manual_seed(1)).double()
    narrow, wide = SpreadRadius().of(contexts), SpreadRadius().of(contexts / 10 + 0.4)
    assert narrow * 1.0 == pytest.approx(wide * 10.0)


def test_mean_wasserstein_distance_of_a_normal_sample() -> None:
    """The limit by quadrature, and measured: 1.25 to 1.29 standard deviations."""
    cdf = stats.norm.cdf
    integral = quad(lambda z: math.sqrt(cdf(z) * cdf(-z)), -12, 12)[0]
    assert math.sqrt(2 / math.pi) * integral == pytest.approx(1.29, abs=0.01)
    rng, t = np.random.default_rng(0), 40
    truth = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    distances = [
        stats.wasserstein_distance(rng.standard_normal(t), truth) for _ in range(300)
    ]
    assert 1.2 < math.sqrt(t) * np.mean(distances) < 1.35


def test_mean_wasserstein_distance_of_a_uniform_sample() -> None:
    integral = math.pi / 8  # of sqrt(u (1 - u))
    assert math.sqrt(2 / math.pi * 12) * integral == pytest.approx(1.09, abs=0.01)


def test_one_lipschitz_function_is_covered_in_nine_cases_of_ten() -> None:
    assert stats.norm.sf(1.25) == pytest.approx(0.106, abs=1e-3)
    rng, t = np.random.default_rng(1), 50
    samples = torch.tensor(rng.random((2000, t, 2)))
    along = samples @ torch.tensor([0.6, 0.8]).double()  # Lipschitz constant one
    radii = torch.tensor([SpreadRadius().of(sample) for sample in samples])
    failures = (along.mean(-1) - 0.5 * 1.4 > radii).double().mean().item()
    assert 0.001 < failures < 0.106


def test_rules_numbers_and_schedules_are_all_radii() -> None:
    contexts = torch.tensor([[0.1], [0.9], [0.3], [0.5]]).double()
    assert as_rule(0.2, "radius") == Constant(0.2)
    assert as_rule(InverseSquareRoot(0.3)).of(contexts) == 0.15
    rule = WassersteinConfidenceRadius(1, 1.0)
    assert as_rule(rule).of(contexts) == rule(4)
    with pytest.raises(InputDataError, match="`radius` must be a number, got str"):
        as_rule("wide", "radius")  # pyright: ignore[reportArgumentType]
