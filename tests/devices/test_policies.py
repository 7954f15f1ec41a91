"""The acquisition function of every policy against every adversary, pretended."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.policies import POLICIES
from botorch_drbo.testing.acquisition_case import contexts, gp, made, rows
from botorch_drbo.testing.rounds import problem
from tests.acquisition.test_contract import TestOurFunctions as Functions
from tests.devices.pretend import ELSEWHERE, here, pretended, there
from tests.devices.reads import READS
from tests.policies.test_contract import TAKEN, case

# BoTorch's copies of state: torch warns of "meta", the label of the pretended device.
pytestmark = pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")


def value_and_gradient(acquisition, X):
    X = X.clone().requires_grad_()
    value = acquisition(X)
    return [value, *torch.autograd.grad(value.sum(), X)]


def assert_the_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.device == ELSEWHERE
        torch.testing.assert_close(here(a.detach()), b.detach(), rtol=1e-6, atol=1e-8)


def check_reads(device, function, X):
    """None grows with the decisions, and each is listed."""
    function(there(X))  # what is made at the first call is made once
    device.reads.clear()
    function(there(X))
    few = device.reads.copy()
    device.reads.clear()
    function(there(X.repeat(4, 1, 1)))
    assert set(device.reads) <= set(READS)
    # A loop over cutting planes may go round once more by rounding.
    assert sum(device.reads.values()) <= sum(few.values()) + 2


@pytest.mark.parametrize(("adversary", "policy"), TAKEN)
def test_a_policy_stays_on_its_device(adversary, policy):
    recipe = case(policy, POLICIES[policy]).against(adversary)
    X = torch.linspace(-0.9, 2.9, 5, dtype=torch.double).reshape(-1, 1, 1)

    def functions(history, space):
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        state = recipe.state_of(model, history, space, 0)
        return recipe.exploring(state, None), recipe.exploiting(state)

    expected = [value_and_gradient(f, X) for f in functions(*problem())]
    with pretended() as device:
        for f, right in zip(functions(*there(problem())), expected, strict=True):
            assert_the_same(value_and_gradient(f, there(X)), right)
            check_reads(device, lambda x, f=f: value_and_gradient(f, x), X)


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("function", Functions.cases, ids=lambda case: case.name)
def test_an_acquisition_function_stays_on_its_device(function, pending):
    options = {"X_pending": rows(2).squeeze(-2)} if pending else {}
    acquisition = made(function, gp(), **options)
    expected = value_and_gradient(acquisition, rows())
    with pretended() as device:
        built = made(
            function, there(gp()), context_set=there(contexts()), **there(options)
        )
        assert_the_same(value_and_gradient(built, there(rows())), expected)
        check_reads(device, lambda x: value_and_gradient(built, x), rows())


@pytest.mark.parametrize("function", Functions.cases, ids=lambda case: case.name)
def test_to_moves_a_function_that_was_used(function):
    acquisition = made(function, gp())
    expected = value_and_gradient(acquisition, rows())
    with pretended():
        moved = acquisition.to(ELSEWHERE)
        assert_the_same(value_and_gradient(moved, there(rows())), expected)
