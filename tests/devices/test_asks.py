"""A whole run on each device: asks, fits, recommendations."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo import RobustOptimizer
from tests.devices.places import on_each_place
from tests.products import FEW, each_recipe

pytestmark = pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def a_run(name, bounds):
    """A design and a round with a model; the next decision, the recommendation."""
    few = FEW.get(name, {})
    opt = RobustOptimizer(
        name,
        bounds,
        bounds,
        seed=1,
        num_initial=3,
        **({"num_restarts": 1, "raw_samples": 8, "max_iterations": 4} | few),
    )
    generator = torch.Generator().manual_seed(0)
    for num in (3, 1):
        x = opt.ask(num)
        c = torch.rand(num, 1, generator=generator, dtype=torch.double).to(x.device)
        opt.tell(x, c, 1.0 - (x - c).square())
    best = opt.recommend()
    return opt.ask(), best


@pytest.mark.slow
@on_each_place
@pytest.mark.parametrize("name", each_recipe())
def test_a_run_stays_on_its_device_and_is_the_same(name, place):
    expected_next, expected = a_run(name, UNIT)
    with place.running():
        found_next, found = a_run(name, place.there(UNIT))
    for a, b in ((found_next, expected_next), (found.x, expected.x)):
        place.assert_equal(a, b, rtol=1e-6, atol=1e-6)
    # Of contexts with equal scores either may get the mass: the value is compared.
    assert found.worst_case_weights.device.type == place.device.type
    assert found.worst_case_weights.sum().item() == pytest.approx(1.0)
    assert found.worst_case_value == pytest.approx(expected.worst_case_value, abs=1e-6)
