"""The general objective reduces to its special cases."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.ambiguity import FullSimplex, NoAmbiguity, Wasserstein
from botorch_drbo.objectives import UncertaintyObjective

VALUES = torch.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 9.0]], dtype=torch.double)
WEIGHTS = torch.tensor([0.2, 0.3, 0.5], dtype=torch.double)
COST = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]).double()


def test_expectation_and_worst_case():
    expectation = UncertaintyObjective(NoAmbiguity())(VALUES, WEIGHTS)
    torch.testing.assert_close(expectation, VALUES @ WEIGHTS)
    worst = UncertaintyObjective(FullSimplex())(VALUES, WEIGHTS)
    assert worst.tolist() == [1.0, 3.0]


def test_mean_risk_is_the_mean_plus_the_weighted_sensitivity():
    """By hand at radius 0: the best trade is the steepest drop per unit of cost."""
    steepest = torch.tensor([4.0, 6.0], dtype=torch.double)  # 5 -> 1, and 9 -> 3
    objective = UncertaintyObjective(Wasserstein(0.0, COST), 1.0, 0.5)
    torch.testing.assert_close(
        objective(VALUES, WEIGHTS), VALUES @ WEIGHTS - 0.5 * steepest
    )


def test_weights_scale_their_parts():
    ball = Wasserstein(0.1, COST)
    value = ball.worst_case(VALUES, WEIGHTS).value
    delta = ball.sensitivity(VALUES, WEIGHTS)
    objective = UncertaintyObjective(ball, 2.0, 3.0)
    torch.testing.assert_close(objective(VALUES, WEIGHTS), 2 * value + 3 * delta)


@pytest.mark.parametrize("kwargs", [{"value_weight": -1.0}, {"sensitivity_weight": -1}])
def test_negative_weights_are_refused(kwargs):
    with pytest.raises(InputDataError, match="weight"):
        UncertaintyObjective(NoAmbiguity(), **kwargs)


def test_something_else_than_a_set_is_refused():
    with pytest.raises(InputDataError, match="AmbiguitySet"):
        UncertaintyObjective(torch.nn.Identity())  # pyright: ignore
