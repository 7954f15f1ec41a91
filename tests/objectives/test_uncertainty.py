"""The general objective reduces to its special cases."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.ambiguity import (
    ChiSquared,
    FullSimplex,
    KullbackLeibler,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
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
    alone = UncertaintyObjective(ball, 0.0, 3.0)
    torch.testing.assert_close(alone(VALUES, WEIGHTS), 3 * delta)


@pytest.mark.parametrize("kwargs", [{"value_weight": -1.0}, {"sensitivity_weight": -1}])
def test_negative_weights_are_refused(kwargs):
    with pytest.raises(InputDataError, match="weight"):
        UncertaintyObjective(NoAmbiguity(), **kwargs)


def test_something_else_than_a_set_is_refused():
    with pytest.raises(InputDataError, match="AmbiguitySet"):
        UncertaintyObjective(torch.nn.Identity())  # pyright: ignore


def test_table_1_of_the_paper():
    """Each constructor is the formula of its row, computed from its parts."""
    ball = Wasserstein(0.1, COST)
    mean = VALUES @ WEIGHTS
    at_zero = Wasserstein(0.0, COST).sensitivity(VALUES, WEIGHTS)
    rows = {
        "so": (UncertaintyObjective.so(), mean),
        "ro": (UncertaintyObjective.ro(), VALUES.amin(-1)),
        "dro": (
            UncertaintyObjective.dro(ball),
            ball.worst_case(VALUES, WEIGHTS).value,
        ),
        "wcs": (UncertaintyObjective.wcs(ball), at_zero),
        "mean_risk": (UncertaintyObjective.mean_risk(ball, 0.5), mean + 0.5 * at_zero),
        "gen": (
            UncertaintyObjective.gen(ball),
            ball.worst_case(VALUES, WEIGHTS).value + ball.sensitivity(VALUES, WEIGHTS),
        ),
    }
    for name, (objective, expected) in rows.items():
        found = objective(VALUES, WEIGHTS)
        torch.testing.assert_close(found, expected, msg=name)
    assert ball.radius == 0.1  # the constructors leave the set alone


@pytest.mark.parametrize("near,far", [("dro", "so"), ("gen", "mean_risk")])
def test_radius_zero_reduces_to_no_ambiguity(near, far):
    ball = Wasserstein(0.0, COST)
    arguments = {"so": (), "mean_risk": (ball, 1.0)}[far]
    torch.testing.assert_close(
        getattr(UncertaintyObjective, near)(ball)(VALUES, WEIGHTS),
        getattr(UncertaintyObjective, far)(*arguments)(VALUES, WEIGHTS),
    )


def test_a_large_radius_is_robust_optimisation():
    large = UncertaintyObjective.dro(TotalVariation(2.0))
    torch.testing.assert_close(
        large(VALUES, WEIGHTS), UncertaintyObjective.ro()(VALUES, WEIGHTS)
    )


@pytest.mark.parametrize(
    "constructor",
    [
        UncertaintyObjective.wcs,
        lambda s: UncertaintyObjective.mean_risk(s, 1.0),
    ],
)
@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquared, ModifiedChiSquared])
def test_an_infinite_sensitivity_is_refused(constructor, kind):
    with pytest.raises(InputDataError, match=f"{kind.__name__}.*square root"):
        constructor(kind(0.1))


@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquared, ModifiedChiSquared])
def test_an_infinite_sensitivity_at_the_radius_of_the_set_is_refused(kind):
    for constructor in (
        UncertaintyObjective.gen,
        lambda s: UncertaintyObjective(s, 1.0, 0.5),
        lambda s: UncertaintyObjective(s, 0.0, 1.0),
    ):
        with pytest.raises(InputDataError, match=f"{kind.__name__}.*square root"):
            constructor(kind(0.0))
        assert constructor(kind(0.1))(VALUES, WEIGHTS).isfinite().all()
    # What does not ask for the sensitivity may have radius zero.
    expectation = UncertaintyObjective.dro(kind(0.0))(VALUES, WEIGHTS)
    torch.testing.assert_close(expectation, VALUES @ WEIGHTS)


@pytest.mark.parametrize(
    "objective",
    [
        UncertaintyObjective.wcs(TotalVariation(0.3)),
        UncertaintyObjective.gen(TotalVariation(0.3)),
        UncertaintyObjective.gen(KullbackLeibler(0.3)),
        UncertaintyObjective.mean_risk(Wasserstein(0.3, COST), 2.0),
    ],
)
def test_gradients(objective):
    values = VALUES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda f: objective(f, WEIGHTS), values)


def test_a_worst_case_by_the_convex_solver():
    f = torch.tensor([[1.0, 3.0, 4.0]], dtype=torch.double, requires_grad=True)
    p = torch.full((3,), 1 / 3, dtype=torch.double)
    found = []
    for solver in ("exact", "cvxpylayers"):
        value = UncertaintyObjective.dro(TotalVariation(0.4), solver)(f, p)
        found.append((value.detach(), *torch.autograd.grad(value, f)))
    torch.testing.assert_close(found[1], found[0], rtol=0.0, atol=1e-6)
    with pytest.raises(InputDataError, match="A sensitivity has no gradient"):
        UncertaintyObjective(TotalVariation(0.4), 1.0, 1.0, "cvxpylayers")
    with pytest.raises(InputDataError, match="`solver`"):
        UncertaintyObjective(TotalVariation(0.4), solver="gurobi")
