"""The steps of EDRBO's fit against those that torch and BoTorch take."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from botorch.optim.core import torch_minimize
from botorch.optim.stopping import ExpMAStoppingCriterion
from torch.optim import AdamW
from torch.optim.lr_scheduler import CyclicLR

from botorch_drbo.surrogate.edrbo_kernel import _adamw


def by_torch(target: torch.Tensor, first: torch.Tensor, least: float) -> np.ndarray:
    x = torch.nn.Parameter(first.clone())

    def closure():
        x.grad = 2 * (x.detach() - target)
        return (x.detach() - target).square().sum(), [x.grad]

    torch_minimize(
        closure,
        {"x": x},
        {"x": (least, None)},
        optimizer=partial(AdamW, lr=1e-2),
        scheduler=partial(
            CyclicLR, base_lr=1e-4, max_lr=1e-2, step_size_up=10, step_size_down=20
        ),
        step_limit=110,
        stopping_criterion=ExpMAStoppingCriterion(),
    )
    return x.detach().numpy()


@pytest.mark.parametrize(
    "distance", [3.0, 0.02, 0.0], ids=["all steps", "stops early", "at the minimum"]
)
@pytest.mark.parametrize("least", [-10.0, 0.95])
def test_steps_are_those_of_torch(distance, least):
    first = torch.tensor([1.0, 2.0, 1.5], dtype=torch.double)
    target = first + distance * torch.tensor([1.0, -1.0, -0.5], dtype=torch.double)

    def loss(steps):
        difference = steps - target.numpy()
        return float(difference @ difference), 2 * difference

    found = _adamw(loss, first.numpy().copy(), np.full(3, least))
    np.testing.assert_allclose(found, by_torch(target, first, least), rtol=1e-13)


def test_ends_where_the_moving_average_does():
    """Of a loss that does not fall, after the 11 values that an average takes."""
    looked = []

    def flat(steps):
        looked.append(steps)
        return 1.0, np.zeros(2)

    _adamw(flat, np.ones(2), np.zeros(2))
    assert len(looked) == 11
