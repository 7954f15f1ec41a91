"""Worst cases of every ambiguity set and every objective on the pretended device."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from botorch_drbo.ambiguity import MaximumMeanDiscrepancy
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.testing.ambiguity_set_case import instance
from tests.ambiguity.test_contract import MEMBERS, smooth_kernel
from tests.devices.pretend import ELSEWHERE, here, pretended, there
from tests.devices.reads import READS

N = 9


def answers(ambiguity_set, values, weights):
    """Everything that is asked of a set."""
    values = values.clone().requires_grad_()
    robust = ambiguity_set.worst_case(values, weights)
    value = ambiguity_set.value(values, weights)
    (gradient,) = torch.autograd.grad(value.sum(), values)
    return [
        robust.value,
        robust.weights,
        robust.multiplier,
        value,
        gradient,
        ambiguity_set.lower_bound(values, weights),
        ambiguity_set.sensitivity(values, weights),
    ]


def assert_elsewhere_and_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.device == ELSEWHERE
        torch.testing.assert_close(
            here(a.detach()), b.detach(), rtol=1e-7, atol=1e-9, equal_nan=True
        )


def reads_of(ambiguity_set, values, weights, times) -> Counter[str]:
    with pretended() as device:
        v, w = there(values.repeat(times, 1)), there(weights.repeat(times, 1))
        answers(there(ambiguity_set), v, w)
        return device.reads


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
def test_a_set_stays_on_its_device_and_reads_no_more_for_more_rows(case):
    values, weights = instance(3, N)
    ambiguity_set = case.make(0.2, N)
    expected = answers(case.make(0.2, N), values, weights)
    with pretended() as device:
        found = answers(there(ambiguity_set), there(values), there(weights))
    assert_elsewhere_and_equal(found, expected)
    assert set(device.reads) <= set(READS)
    # The same rows three times: the same loops.
    assert reads_of(ambiguity_set, values, weights, 3) == device.reads


def test_a_set_that_was_used_before_it_was_moved():
    # The warm start of the last call stayed where it was.
    values, weights = instance(3, N)
    ambiguity_set = MaximumMeanDiscrepancy(0.2, smooth_kernel(N))
    expected = ambiguity_set.value(values, weights)
    with pretended():
        moved = ambiguity_set.to(ELSEWHERE)
        found = moved.value(there(values), there(weights))
    assert_elsewhere_and_equal([found], [expected])


OBJECTIVES = {
    "dro": UncertaintyObjective.dro,
    "satisficing": lambda chosen: RobustSatisficing(chosen, target=0.1),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
def test_an_objective_stays_on_its_device(name, case):
    values, weights = instance(3, N)
    objective = OBJECTIVES[name](case.make(0.2, N))
    expected = objective(values, weights)
    with pretended() as device:
        found = there(objective)(there(values), there(weights))
    assert_elsewhere_and_equal([found], [expected])
    assert set(device.reads) <= set(READS)
