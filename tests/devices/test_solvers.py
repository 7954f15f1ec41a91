"""Worst cases of every ambiguity set and every objective on each device."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from botorch_drbo.ambiguity import MaximumMeanDiscrepancy
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.testing.ambiguity_sets import instance
from tests.ambiguity.test_contract import MEMBERS, smooth_kernel
from tests.devices.places import on_each_place

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


def assert_there_and_equal(place, found, expected):
    for a, b in zip(found, expected, strict=True):
        place.assert_equal(a, b, rtol=1e-7, atol=1e-9)


def reads_of(place, ambiguity_set, values, weights, times) -> Counter[str]:
    with place.running() as device:
        v = place.there(values.repeat(times, 1))
        w = place.there(weights.repeat(times, 1))
        device.reads.clear()
        answers(place.there(ambiguity_set), v, w)
        return device.reads


@on_each_place
@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
def test_a_set_stays_on_its_device_and_reads_no_more_for_more_rows(case, place):
    values, weights = instance(3, N)
    ambiguity_set = case.make(0.2, N)
    expected = answers(case.make(0.2, N), values, weights)
    with place.running():
        moved = (place.there(x) for x in (ambiguity_set, values, weights))
        found = answers(*moved)
    assert_there_and_equal(place, found, expected)
    once = reads_of(place, ambiguity_set, values, weights, 1)
    assert place.unlisted(once) == set()
    # The same rows three times: the same loops.
    assert reads_of(place, ambiguity_set, values, weights, 3) == once


@on_each_place
def test_a_set_that_was_used_before_it_was_moved(place):
    # The warm start of the last call stayed where it was.
    values, weights = instance(3, N)
    ambiguity_set = MaximumMeanDiscrepancy(0.2, smooth_kernel(N))
    expected = ambiguity_set.value(values, weights)
    with place.running():
        moved = ambiguity_set.to(place.device)
        found = moved.value(place.there(values), place.there(weights))
    assert_there_and_equal(place, [found], [expected])


OBJECTIVES = {
    "dro": UncertaintyObjective.dro,
    "satisficing": lambda chosen: RobustSatisficing(chosen, target=0.1),
}


@on_each_place
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
def test_an_objective_stays_on_its_device(name, case, place):
    values, weights = instance(3, N)
    objective = OBJECTIVES[name](case.make(0.2, N))
    expected = objective(values, weights)
    with place.running() as device:
        moved, v, w = (place.there(x) for x in (objective, values, weights))
        device.reads.clear()
        found = moved(v, w)
    assert_there_and_equal(place, [found], [expected])
    assert place.unlisted(device.reads) == set()
