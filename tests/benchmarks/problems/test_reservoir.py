"""The robustly feasible set in closed form, against linear programs and a search."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from scipy.optimize import minimize

from benchmarks.problems import Reservoir

FUNCTION = Reservoir()


@pytest.mark.parametrize("radius", [0.0, 0.2, 0.7])
def test_the_robust_probability_is_that_of_a_linear_program(radius: float) -> None:
    n = 400
    points = np.append((np.arange(n) + 0.5) / n, 1.0)
    p = np.append(np.full(n, 1 / n), 0.0)  # the uniform law, and the box's end
    decisions = np.array([[0.1, 0.2], [0.4, 0.3], [0.7, 0.2], [0.6, 0.8], [1.0, 1.0]])
    found = FUNCTION.feasibility(torch.from_numpy(decisions), radius)
    for x, probability in zip(decisions, found.tolist(), strict=True):
        met = (1.05 - 0.5 * x @ x - points >= 0).astype(float)
        q = cp.Variable(n + 1, nonneg=True)
        problem = cp.Problem(
            cp.Minimize(met @ q), [cp.sum(q) == 1, cp.norm1(q - p) <= radius]
        )
        assert problem.solve(solver=cp.CLARABEL) == pytest.approx(probability, abs=3e-3)


@pytest.mark.parametrize(("level", "radius"), [(0.8, 0.2), (0.5, 0.0), (0.1, 0.0)])
def test_no_feasible_decision_is_better_than_the_constrained_optimum(
    level: float, radius: float
) -> None:
    best = FUNCTION.constrained_optimum(level, radius)
    x = torch.tensor([best.decision], dtype=torch.double)
    assert FUNCTION.feasibility(x, radius).item() >= level - 1e-9
    assert FUNCTION.expected_value(x).item() == pytest.approx(best.value, abs=1e-4)
    result = minimize(
        lambda z: -(0.8 * z[0] + 0.6 * z[1]),
        [0.2, 0.2],
        bounds=[(0, 1), (0, 1)],
        constraints={
            "type": "ineq",
            "fun": lambda z: 2.1 - z @ z - 2 * (level + radius / 2),
        },
        method="SLSQP",
    )
    assert np.allclose(result.x, best.decision, atol=1e-4)
    side = torch.linspace(0, 1, 201).double()
    grid = torch.cartesian_prod(side, side)
    feasible = grid[FUNCTION.feasibility(grid, radius) >= level]
    assert FUNCTION.expected_value(feasible, num=64).max() <= best.value + 1e-2


def test_the_constraint_and_its_true_probability() -> None:
    x, c = torch.tensor([[0.5, 0.5]]).double(), torch.tensor([[0.2], [0.8]]).double()
    assert torch.allclose(
        FUNCTION.constraints(x, c), torch.tensor([[0.6], [0.0]]).double(), atol=1e-6
    )
    shown = FUNCTION.sample_contexts(20_000, seed=0)
    # The mean inflow of nine tenths of 1/2 and one tenth of .95.
    assert FUNCTION.optimal_value == pytest.approx(1.4 + 0.3 * (0.5 - 0.545))
    met = (FUNCTION.constraints(x, shown) >= 0).double().mean().item()
    assert met == pytest.approx(0.9 * 0.8, abs=0.01)  # of the law with floods
    calm = Reservoir(flood_share=0.0).sample_contexts(20_000, seed=0)
    assert (calm <= 0.8).double().mean().item() == pytest.approx(0.8, abs=0.01)


def test_a_level_that_needs_certainty_leaves_the_inner_disc() -> None:
    best = FUNCTION.constrained_optimum(0.99, 0.2)
    assert np.hypot(*best.decision) == pytest.approx(0.1**0.5)
    x = torch.tensor([best.decision], dtype=torch.double)
    assert FUNCTION.feasibility(0.999 * x, 0.2).item() == 1.0


def test_bad_input() -> None:
    with pytest.raises(InputDataError, match="flood_share"):
        Reservoir(flood_share=-0.1)
    with pytest.raises(InputDataError, match=r"1.5"):
        Reservoir(flood_share=1.5)
