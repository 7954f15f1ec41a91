"""Ascents begin on the hills of an acquisition function."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.algorithms.starts import hilltops
from botorch_drbo.sampling import sobol


class Landscape(AcquisitionFunction):
    def __init__(self, height: Callable[[Tensor], Tensor]) -> None:
        Z = torch.rand(3, 2, dtype=torch.double)
        super().__init__(SingleTaskGP(Z, Z[:, :1]))
        self.height = height

    def forward(self, X: Tensor) -> Tensor:
        return self.height(X.squeeze(-2))


def hill(X: Tensor, centre: float, width: float) -> Tensor:
    return (-((X - centre) / width).square().sum(-1)).exp()


def test_a_narrow_hill_beside_a_broad_one_gets_its_start() -> None:
    # By chance, the higher the likelier, the broad hill would get nearly all.
    two = Landscape(lambda X: hill(X, 0.3, 0.3) + 0.8 * hill(X, 0.8, 0.06))
    for seed in range(20):
        starts = hilltops(two, sobol(512, 2, seed), 4).squeeze(-2)
        gaps = torch.cdist(starts, torch.tensor([[0.3, 0.3], [0.8, 0.8]]).double())
        assert (gaps.amin(0) < 0.1).all(), seed


def test_one_hill_gets_few_starts_and_the_best_comes_first() -> None:
    one = Landscape(lambda X: hill(X, 0.6, 0.5))
    starts = hilltops(one, sobol(512, 3, 0), 10)
    assert 1 <= len(starts) <= 3
    assert starts.shape[1:] == (1, 3)
    values = one(starts)
    assert (values.diff() <= 0).all()
    assert values[0] > 0.95


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("num_samples", [1, 2, 5, 64])
def test_a_plain_has_starts_too(num_samples: int) -> None:
    flat = Landscape(lambda X: torch.zeros_like(X[:, 0]))
    starts = hilltops(flat, sobol(num_samples, 2, 0), 4)
    assert len(starts) == min(4, num_samples)


def test_points_decide_the_dtype() -> None:
    one = Landscape(lambda X: hill(X, 0.6, 0.5))
    assert hilltops(one, sobol(64, 2, 0).float(), 4).dtype == torch.float32
