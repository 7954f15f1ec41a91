"""Weighting by feasibility: order, units, the product formula, and a known optimum."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    UpperConfidenceBound,
)
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    FeasibilityWeighted,
    OverJointInputs,
    RobustFeasibility,
)
from botorch_drbo.ambiguity import NoAmbiguity, TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import known_model, uniform

UNIT_SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
X = uniform(9, 1, 2, seed=6)
CONTEXTS = ContextSet(uniform(7, 1, seed=4))
BALL = TotalVariation(0.3)


def outcome(scale: float = 1.0, shift: float = 0.0) -> SingleTaskGP:
    Z = uniform(12, 3, seed=3)
    Y = (5 * Z[:, :1]).sin() - 1.5 + Z[:, 1:2] * Z[:, 2:]  # mostly negative
    return known_model(Z, scale * Y + shift, noise=1e-2)


def feasibility(ball=BALL) -> RobustFeasibility:
    Z = uniform(12, 3, seed=8)
    return RobustFeasibility(
        known_model(Z, 1.1 - Z[:, :1] - Z[:, 2:], noise=1e-2), CONTEXTS, ball
    )


def ucb(model: SingleTaskGP | None = None, beta: float = 2.25, **options):
    model = outcome() if model is None else model
    objective = UncertaintyObjective(BALL)
    return DistributionallyRobustUCB(model, beta, CONTEXTS, objective, **options)


class Constant(AcquisitionFunction):
    """A value that does not depend on the decision."""

    def __init__(self, value: float) -> None:
        super().__init__(outcome())
        self.value = value

    def forward(self, X: Tensor) -> Tensor:
        return X.new_full(X.shape[:-2], self.value)


def test_above_the_reference_it_is_the_logarithm_of_probability_times_gain() -> None:
    acqf = FeasibilityWeighted(ucb(), feasibility(), reference=-3.0)
    expected = feasibility().probability(X.squeeze(-2)) * (ucb()(X) + 3.0)
    assert (ucb()(X) < 0).any()  # where a product with the value would mislead
    assert torch.allclose(acqf(X).exp(), expected, rtol=1e-6)


def test_a_logarithm_takes_the_logarithm_of_the_probability() -> None:
    Z = uniform(9, 2, seed=1)
    base = LogExpectedImprovement(known_model(Z, Z.sum(-1, True)), best_f=1.0)
    acqf = FeasibilityWeighted(base, feasibility())
    assert torch.allclose(acqf(X), base(X) + feasibility()(X))


@pytest.mark.parametrize("value", [-5.0, -1e-9, 0.0, 2.0])
@pytest.mark.parametrize("reference", [-1.0, 0.0, 1.0])
def test_of_equal_values_the_more_feasible_is_better(
    value: float, reference: float
) -> None:
    """Also where the value is negative, or below the reference."""
    acqf = FeasibilityWeighted(Constant(value), feasibility(), reference=reference)
    values, log = acqf(X), feasibility()(X)
    assert torch.equal(values.argsort(), log.argsort())
    assert torch.allclose(values - values[0], log - log[0])


def test_with_a_level_what_falls_short_of_it_counts_less() -> None:
    level = 0.6
    acqf = FeasibilityWeighted(ucb(), feasibility(), reference=-3.0, level=level)
    share = (feasibility().probability(X.squeeze(-2)) / level).clamp_max(1.0)
    assert (share < 1).any() and (share == 1).any()
    assert torch.allclose(acqf(X).exp(), share**20 * (ucb()(X) + 3.0), rtol=1e-6)


def test_of_equally_feasible_decisions_the_better_one_is() -> None:
    Z = uniform(12, 3, seed=8)
    always = known_model(Z, 50.0 + Z[:, :1], noise=1e-2)
    sure = RobustFeasibility(always, CONTEXTS, BALL)
    assert torch.allclose(sure(X), torch.zeros(len(X)).double())
    base = ucb()(X)
    for reference in (-3.0, base.median().item(), 5.0):
        acqf = FeasibilityWeighted(ucb(), sure, reference=reference)
        assert torch.equal(acqf(X).argsort(), base.argsort())


def test_units_of_the_outcome_do_not_matter() -> None:
    own = FeasibilityWeighted(ucb(), feasibility(), reference=-1.0)(X)
    for scale, shift in ((1e6, 4e6), (1e-6, -2.0)):
        other = FeasibilityWeighted(
            ucb(outcome(scale, shift)), feasibility(), reference=shift - scale
        )(X)
        assert torch.allclose(other - math.log(scale), own, atol=1e-4)


def test_gradients_against_finite_differences() -> None:
    acqf = FeasibilityWeighted(ucb(), feasibility(), reference=-1.2)
    x = X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(acqf(x).sum(), x)
    for column in range(2):
        step = torch.zeros(2, dtype=torch.double)
        step[column] = 1e-6
        with torch.no_grad():
            rise = (acqf(X + step) - acqf(X - step)) / 2e-6
        assert torch.allclose(slope[:, 0, column], rise, rtol=1e-3, atol=1e-4)


def test_a_chance_constraint_in_optimize_acqf() -> None:
    """Against the best of a dense grid of decisions that reach the level."""
    side = torch.linspace(0, 1, 101).double()
    grid = torch.cartesian_prod(side, side)
    base, level, feasible = ucb(beta=0.0), 0.8, feasibility()
    with torch.no_grad():
        values, probability = base(grid.unsqueeze(-2)), feasible.probability(grid)
    best = values[probability >= level].max()
    assert best < values.max() - 0.05  # the constraint binds
    starts = grid[probability >= level][::150].reshape(-1, 1, 2)
    x, _ = optimize_acqf(
        base,
        UNIT_SQUARE,
        q=1,
        num_restarts=len(starts),
        batch_initial_conditions=starts,
        nonlinear_inequality_constraints=[
            (lambda x: feasible.probability(x) - level, True)
        ],
        options={"batch_limit": 1},
    )
    assert feasible.probability(x) >= level - 1e-6
    assert base(x.unsqueeze(-2)) > best - 2e-3


def test_the_ambiguity_makes_decisions_more_careful() -> None:
    """The wider the set, the smaller the probability of any decision."""
    found = [
        feasibility(ball).probability(X.squeeze(-2))
        for ball in (NoAmbiguity(), TotalVariation(0.1), TotalVariation(0.6))
    ]
    assert (found[0] >= found[1]).all() and (found[1] >= found[2]).all()
    assert (found[0] > found[2] + 0.05).any()


def test_the_ranking_orders_like_the_values() -> None:
    acqf = FeasibilityWeighted(ucb(), feasibility(), reference=-1.0)
    assert torch.equal(acqf.ranking(X).argsort(), acqf(X).argsort())
    assert not acqf.ranking(X.clone().requires_grad_()).requires_grad


def test_pending_decisions_belong_to_what_is_weighted() -> None:
    pending = uniform(2, 2, seed=9)
    base = ucb(X_pending=pending)
    acqf = FeasibilityWeighted(base, feasibility(), reference=-3.0)
    assert torch.equal(acqf.X_pending, pending)
    expected = feasibility().probability(X.squeeze(-2)) * (base(X) + 3.0)
    assert torch.allclose(acqf(X).exp(), expected, rtol=1e-6)
    acqf.set_X_pending(None)
    assert base.X_pending is None and acqf.X_pending is None
    assert torch.allclose(
        acqf(X), FeasibilityWeighted(ucb(), feasibility(), reference=-3.0)(X)
    )


def test_in_optimize_acqf_and_over_joint_inputs() -> None:
    acqf = FeasibilityWeighted(ucb(), feasibility(), reference=-1.0)
    options = {"num_restarts": 2, "raw_samples": 16, "options": {"seed": 0}}
    x, _ = optimize_acqf(acqf, UNIT_SQUARE, q=2, sequential=True, **options)
    assert x.shape == (2, 2) and not torch.equal(x[0], x[1])
    joint = OverJointInputs(acqf)
    Z = torch.cat([X, uniform(9, 1, 1)], dim=-1)
    assert torch.equal(joint(Z), acqf(X)) and joint._log


def test_a_function_of_botorch_over_decisions_alone() -> None:
    Z = uniform(9, 2, seed=1)
    base = UpperConfidenceBound(known_model(Z, Z.sum(-1, True) - 3.0), beta=1.0)
    acqf = FeasibilityWeighted(base, feasibility(), reference=-4.0)
    expected = feasibility().probability(X.squeeze(-2)) * (base(X) + 4.0)
    assert torch.allclose(acqf(X).exp(), expected, rtol=1e-6)


def test_bad_input() -> None:
    with pytest.raises(InputDataError, match="AcquisitionFunction, got int"):
        FeasibilityWeighted(3, feasibility(), reference=0.0)
    with pytest.raises(InputDataError, match="RobustFeasibility, got"):
        FeasibilityWeighted(ucb(), BALL, reference=0.0)
    with pytest.raises(InputDataError, match=r"may be negative.*`reference`"):
        FeasibilityWeighted(ucb(), feasibility())
    with pytest.raises(InputDataError, match="NaN"):
        FeasibilityWeighted(ucb(), feasibility(), reference=math.nan)
    with pytest.raises(InputDataError, match="need no `reference`"):
        FeasibilityWeighted(feasibility(), feasibility(), reference=0.0)
    for level in (0.0, 1.5, "high"):
        with pytest.raises(InputDataError, match="level"):
            FeasibilityWeighted(ucb(), feasibility(), reference=0.0, level=level)
    with pytest.raises(UnsupportedError, match="sequential=True"):
        FeasibilityWeighted(ucb(), feasibility(), reference=0.0)(uniform(3, 2, 2))
