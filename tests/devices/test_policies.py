"""The acquisition function of every policy against every adversary, on each device."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.policies import POLICIES
from botorch_drbo.testing.acquisition import contexts, gp, made, rows
from botorch_drbo.testing.fixtures import small_problem
from tests.acquisition.test_contract import TestOurFunctions as Functions
from tests.devices.places import on_each_place
from tests.policies.test_contract import TAKEN, case

# BoTorch's copies of state: torch warns of "meta", the label of the pretended device.
pytestmark = pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")


def value_and_gradient(acquisition, X):
    X = X.clone().requires_grad_()
    value = acquisition(X)
    return [value, *torch.autograd.grad(value.sum(), X)]


def assert_the_same(place, found, expected):
    for a, b in zip(found, expected, strict=True):
        place.assert_equal(a, b, rtol=1e-6, atol=1e-8)


def check_reads(place, device, function, X):
    """None grows with the decisions, and each is listed."""
    few_decisions, many_decisions = place.there(X), place.there(X.repeat(4, 1, 1))
    function(few_decisions)  # what is made at the first call is made once
    device.reads.clear()
    function(few_decisions)
    few = device.reads.copy()
    device.reads.clear()
    function(many_decisions)
    assert place.unlisted(device.reads) == set()
    # A loop over cutting planes may go round once more by rounding.
    assert sum(device.reads.values()) <= sum(few.values()) + 2


def pairs() -> list:
    """Every pair; those in which no part occurs for the first time are slow."""
    seen: set[str] = set()
    found = []
    for pair in TAKEN:
        marks = pytest.mark.slow if seen.issuperset(pair) else ()
        seen.update(pair)
        found.append(pytest.param(*pair, marks=marks))
    return found


@on_each_place
@pytest.mark.parametrize(("adversary", "policy"), pairs())
def test_a_policy_stays_on_its_device(adversary, policy, place):
    recipe = case(policy, POLICIES[policy]).against(adversary)
    X = torch.linspace(-0.9, 2.9, 5, dtype=torch.double).reshape(-1, 1, 1)

    def functions(history, space):
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        state = recipe.state_of(model, history, space, 0)
        return recipe.exploring(state, None), recipe.exploiting(state)

    expected = [value_and_gradient(f, X) for f in functions(*small_problem())]
    with place.running() as device:
        moved = functions(*place.there(small_problem()))
        for f, right in zip(moved, expected, strict=True):
            assert_the_same(place, value_and_gradient(f, place.there(X)), right)
            check_reads(place, device, lambda x, f=f: value_and_gradient(f, x), X)


@on_each_place
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("function", Functions.cases, ids=lambda case: case.name)
def test_an_acquisition_function_stays_on_its_device(function, pending, place):
    options = {"X_pending": rows(2).squeeze(-2)} if pending else {}
    acquisition = made(function, gp(), **options)
    expected = value_and_gradient(acquisition, rows())
    with place.running() as device:
        model, context_set, options, X = map(
            place.there, (gp(), contexts(), options, rows())
        )
        built = made(function, model, context_set=context_set, **options)
        assert_the_same(place, value_and_gradient(built, X), expected)
        check_reads(place, device, lambda x: value_and_gradient(built, x), rows())


@on_each_place
@pytest.mark.parametrize("function", Functions.cases, ids=lambda case: case.name)
def test_to_moves_a_function_that_was_used(function, place):
    acquisition = made(function, gp())
    expected = value_and_gradient(acquisition, rows())
    with place.running():
        moved = acquisition.to(place.device)
        assert_the_same(place, value_and_gradient(moved, place.there(rows())), expected)
