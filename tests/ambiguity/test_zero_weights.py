"""Contexts without reference weight that get no mass are left out of long lists."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    SolverStatus,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.ambiguity.solution import Solution, in_float64

SETS = [
    TotalVariation(0.3),
    TotalVariation(0.3, floor=-1.0),
    TotalVariation(2.0),
    ChiSquared(0.3),
    ChiSquared(50.0),
    ModifiedChiSquared(0.3),
    KullbackLeibler(0.2),
    ConditionalValueAtRisk(0.7),
    NoAmbiguity(),
]
NAMES = [repr(ball) for ball in SETS]
N, HELD = 1200, 30


def problem(seed: int, rows: int = 3) -> tuple[Tensor, Tensor]:
    """Scores ``rows x n``; weights of their own for each row, zero for most."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, N, generator=generator, dtype=torch.double)
    weights = torch.zeros(rows, N, dtype=torch.double)
    places = torch.randperm(N, generator=generator)[:HELD]
    weights[:, places] = torch.rand(rows, HELD, generator=generator).double()
    weights[0, places[: HELD // 2]] = 0.0
    return values, weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ball", SETS, ids=NAMES)
def test_the_worst_case_is_that_of_the_whole_list(
    ball: AmbiguitySet, seed: int
) -> None:
    values, weights = problem(seed)
    values.requires_grad_()
    found = ball.worst_case(values, weights)
    atoms = ball._with_outside(values.detach(), weights)
    whole = in_float64(ball.solve, *atoms, ball.radius)
    exact = (whole.weights * atoms[0]).sum(-1)
    torch.testing.assert_close(found.value.detach(), exact, rtol=0, atol=1e-12)
    assert found.status is SolverStatus.EXACT and found.weights.shape == values.shape
    expected = whole.weights[..., :N]
    torch.testing.assert_close(found.weights, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.multiplier, whole.multiplier)
    (slopes,) = torch.autograd.grad(found.value.sum(), values)
    torch.testing.assert_close(slopes, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("ball", SETS, ids=NAMES)
def test_what_is_solved_is_short(ball: AmbiguitySet) -> None:
    lengths, solve = [], ball.solve

    def spied(values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        lengths.append(values.shape[-1])
        return solve(values, weights, radius)

    values, weights = problem(0)
    in_float64(ball._of_needed(spied), values, weights, ball.radius)
    assert len(lengths) == 1 and HELD <= lengths[0] <= HELD + 1


@pytest.mark.parametrize(
    "ball", SETS[:1] + SETS[3:4] + SETS[5:8], ids=lambda b: repr(b)
)
def test_the_worst_case_is_that_of_cvxpy(ball: AmbiguitySet) -> None:
    values, weights = problem(7, rows=1)
    found = ball.worst_case(values, weights).value
    expected = ball.worst_case(values, weights, "cvxpylayers").value
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("ball", SETS[:-1], ids=NAMES[:-1])
def test_sensitivities_and_gradients_in_the_weights_are_those_of_the_whole_list(
    ball: AmbiguitySet,
) -> None:
    values, weights = problem(11)
    weights.requires_grad_()
    both = ball.worst_case_and_sensitivity(values, weights)
    (slopes,) = torch.autograd.grad(both[0].value.sum(), weights)
    with patch.object(type(ball), "_of_needed", lambda self, solve: solve):
        whole = ball.worst_case_and_sensitivity(values, weights)
        (expected,) = torch.autograd.grad(whole[0].value.sum(), weights)
    torch.testing.assert_close(both[1], whole[1], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(slopes, expected, rtol=0, atol=1e-12)


def test_a_set_that_knows_positions_keeps_its_list() -> None:
    """Of a kernel or a metric all contexts matter."""
    matrix = torch.eye(4).double()
    for ball in (MaximumMeanDiscrepancy(0.3, matrix), Wasserstein(0.3, 1.0 - matrix)):
        assert ball._of_needed(ball.solve) == ball.solve
