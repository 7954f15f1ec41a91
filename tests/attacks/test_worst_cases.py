"""Attacks on the exact solvers: random, degenerate, tiny and huge problems.

60 for each set; ``make attacks`` runs 20,000, and the summary says how many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from tests.attacks import certificates
from tests.attacks.counted import count, num_cases

SETS = (
    "no_ambiguity",
    "full_simplex",
    "cvar",
    "total_variation",
    "wasserstein",
    "kullback_leibler",
    "modified_chi_squared",
    "chi_squared",
    "mmd",
)
NUM = num_cases(60, 2_230)  # of each of nine sets: 20,070


@dataclass(frozen=True)
class Problem:
    """One row of scores in [0, 1] before scale and shift, and what is around it."""

    f: np.ndarray
    p: np.ndarray
    radius: float
    points: np.ndarray
    exponent: int
    shift: float

    @property
    def scale(self) -> float:
        return 10.0**self.exponent

    def scores(self) -> Tensor:
        return torch.from_numpy(self.scale * (self.f + self.shift))

    def weights(self) -> Tensor:
        return torch.from_numpy(self.p)

    @property
    def cost(self) -> np.ndarray:
        return np.abs(self.points[:, None] - self.points[None, :])

    @property
    def kernel(self) -> np.ndarray:
        return np.exp(-(self.cost**2) / 0.18)


@st.composite
def problems(draw) -> Problem:
    n = draw(st.integers(1, 8))
    seed = draw(st.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["plain", "ties", "constant", "one far", "whole"]))
    f = chance.random(n)
    if kind == "ties":
        f = np.round(2 * f) / 2
    elif kind == "constant":
        f = np.full(n, f[0])
    elif kind == "one far":
        f[0] = draw(st.sampled_from([-1e3, 1e3]))
    elif kind == "whole":
        f = np.floor(4 * f)
    p = chance.random(n) ** draw(st.sampled_from([1, 4, 12])) + 1e-9
    if draw(st.booleans()) and n > 1:
        p[chance.random(n) < 0.4] = 0.0
        p[draw(st.integers(0, n - 1))] = 1.0
    radius = draw(st.just(0.0) | st.floats(1e-6, 3.0) | st.just(1e3))
    return Problem(
        f=f,
        p=p / p.sum(),
        radius=radius,
        points=np.sort(chance.random(n)),
        exponent=draw(st.integers(-8, 8)),
        shift=draw(st.sampled_from([0.0, 0.0, 1.0, -3.0, 100.0])),
    )


def ambiguity_set(name: str, problem: Problem):
    """The set, on the contexts of the problem."""
    match name:
        case "no_ambiguity":
            return NoAmbiguity()
        case "full_simplex":
            return FullSimplex()
        case "cvar":
            return ConditionalValueAtRisk(problem.radius / (1 + problem.radius))
        case "wasserstein":
            return Wasserstein(problem.radius, torch.from_numpy(problem.cost))
        case "mmd":
            return MaximumMeanDiscrepancy(
                problem.radius, torch.from_numpy(problem.kernel)
            )
    plain = {
        "total_variation": TotalVariation,
        "kullback_leibler": KullbackLeibler,
        "modified_chi_squared": ModifiedChiSquared,
        "chi_squared": ChiSquared,
    }
    return plain[name](problem.radius)


def spread(problem: Problem) -> float:
    """The size of what may be wrong: scores, and their rounding beside the shift."""
    f = problem.f + problem.shift
    return problem.scale * (np.ptp(f) + 1e-6 * np.abs(f).max())


def check_value(name: str, problem: Problem) -> None:
    """Feasible, attained, and no distribution of the set is worse."""
    f, p, radius = problem.scores().numpy(), problem.p, problem.radius
    robust = ambiguity_set(name, problem).worst_case(
        problem.scores(), problem.weights()
    )
    value, q = robust.value.item(), robust.weights.numpy()
    multiplier = robust.multiplier.item()
    error = 1e-8 * spread(problem)
    assert (q >= 0).all() and abs(q.sum() - 1) < 1e-9
    assert abs(q @ f - value) <= error
    unit = problem.scale
    at_reference = radius == 0 and name != "full_simplex"
    match "no_ambiguity" if at_reference else name:
        case "no_ambiguity":
            expected = p @ f
        case "full_simplex":
            expected = f.min()
        case "cvar":
            expected = unit * certificates.conditional_value_at_risk(
                f / unit, p, radius
            )
        case "total_variation":
            expected = unit * certificates.total_variation(f / unit, p, radius)
        case "wasserstein":
            expected = unit * certificates.wasserstein(
                f / unit, p, radius, problem.cost
            )
        case "kullback_leibler":
            expected = certificates.kullback_leibler_dual(f, p, radius, multiplier)
        case "modified_chi_squared":
            expected = certificates.modified_chi_squared_dual(f, p, radius, multiplier)
        case "mmd":
            expected = certificates.kernel_dual(
                f, p, radius, multiplier, q, problem.kernel
            )
        case "chi_squared":
            expected = certificates.chi_squared(f, p, radius)
    assert abs(value - expected) <= 1e-6 * spread(problem)
    if name in certificates.DISTANCES:
        found = certificates.DISTANCES[name](p, q)
        assert found <= radius * (1 + 1e-6) + 1e-9
    if name == "mmd":
        assert (q - p) @ problem.kernel @ (q - p) <= radius**2 * (1 + 1e-6) + 1e-12


def check_symmetries(name: str, problem: Problem) -> None:
    """Order, other units, a batch, float32, and an atom that is listed twice."""
    f, p = problem.scores(), problem.weights()
    made = ambiguity_set(name, problem)
    value = made.value(f, p).item()
    error = 1e-7 * spread(problem)

    # In another order.
    order = np.random.default_rng(len(f)).permutation(len(f))
    permuted = Problem(
        problem.f[order],
        problem.p[order],
        problem.radius,
        problem.points[order],
        problem.exponent,
        problem.shift,
    )
    other = ambiguity_set(name, permuted)
    assert abs(other.value(permuted.scores(), permuted.weights()) - value) <= error

    # In other units: twice the scores, plus one spread.
    moved = made.value(2 * f + spread(problem), p).item()
    assert abs(moved - (2 * value + spread(problem))) <= 4 * error

    # In a batch with its mirror image.
    both = made.value(torch.stack([f, f.flip(0), f]).reshape(3, 1, -1), p)
    assert both.shape == (3, 1)
    assert abs(both[0, 0].item() - value) <= error
    assert abs(both[2, 0].item() - value) <= error

    # In float32.
    rounded = made.value(f.float(), p)
    assert rounded.dtype == torch.float32
    assert abs(rounded.item() - value) <= 1e-4 * (
        spread(problem) + f.abs().max().item()
    )

    # A context twice, with half of its weight each, is the context once.
    if name not in ("mmd",):  # a kernel matrix that is singular: `test_mmd.py`
        twice = Problem(
            np.append(problem.f, problem.f[0]),
            np.append(problem.p, problem.p[0] / 2),
            problem.radius,
            np.append(problem.points, problem.points[0]),
            problem.exponent,
            problem.shift,
        )
        twice.p[0] /= 2
        again = ambiguity_set(name, twice).value(twice.scores(), twice.weights())
        assert abs(again.item() - value) <= 10 * error


NOT_CHECKED = [HealthCheck.too_slow, HealthCheck.differing_executors]


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=NUM, deadline=None, suppress_health_check=NOT_CHECKED)
@given(problem=problems())
def test_a_worst_case_is_proved(name, problem):
    count(f"worst case, {name}")
    check_value(name, problem)
    check_symmetries(name, problem)
