"""Seeds of all that is drawn: exact, and alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch import distributions as td

from botorch_drbo.contexts import ContextSet
from tests.contexts.laws import QUANTILE_LAWS, SAMPLED_LAWS
from tests.contexts.observed import observations

SEEDED: list[Callable[[int | None], ContextSet]] = [
    lambda seed: ContextSet.kernel_density(observations(5, 2), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(QUANTILE_LAWS[1](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(QUANTILE_LAWS[-1](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(SAMPLED_LAWS[0](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(SAMPLED_LAWS[2](), 32, seed=seed),
]


@pytest.mark.parametrize("make", SEEDED)
def test_a_seed_reproduces_exactly_and_leaves_the_global_generator_alone(make):
    torch.manual_seed(11)
    state = torch.get_rng_state()
    first = make(7)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(make(7).points, first.points)
    assert not torch.equal(make(8).points, first.points)


@pytest.mark.parametrize("make", SEEDED)
def test_without_a_seed_the_global_generator_decides(make):
    torch.manual_seed(11)
    first, second = make(None), make(None)
    assert not torch.equal(first.points, second.points)
    torch.manual_seed(11)
    assert torch.equal(make(None).points, first.points)


def test_the_global_generator_is_restored_when_sampling_fails():
    class Broken(td.Distribution):
        def sample(self, sample_shape=()) -> Tensor:
            torch.rand(1)
            raise RuntimeError("no sample today")

    torch.manual_seed(11)
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="no sample today"):
        ContextSet.from_distribution(Broken(validate_args=False), 4, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
