"""Ascents begin on the hills of an acquisition function."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.sampling import sobol
from botorch_drbo.search.starts import _saddles, hills, hilltops


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
@pytest.mark.parametrize("level", [0.0, -torch.inf])
def test_a_plain_has_a_start_too(num_samples: int, level: float) -> None:
    flat = Landscape(lambda X: torch.full_like(X[:, 0], level))
    assert 1 <= len(hilltops(flat, sobol(num_samples, 2, 0), 4)) <= 4


def test_a_ridge_does_not_take_all_starts() -> None:
    """Along the second variable every other sample of the ridge is a hilltop."""

    def height(X: Tensor) -> Tensor:
        ridge = (-((X[:, 0] - 0.3) / 0.05).square()).exp()
        return ridge + 1.2 * hill(X[:, [0, 2]], 0.85, 0.05)

    for seed in range(10):
        starts = hilltops(Landscape(height), sobol(1024, 3, seed), 5).squeeze(-2)
        near = torch.full((3,), 0.85).double()
        assert (starts - near)[:, [0, 2]].norm(dim=-1).min() < 0.15, seed


def test_a_moat_is_no_hill() -> None:
    def height(X: Tensor) -> Tensor:
        high = hill(X, 0.3, 0.3) + 0.8 * hill(X, 0.8, 0.06)
        return torch.where(high > 0.3, high, -torch.inf)

    starts = hilltops(Landscape(height), sobol(1024, 2, 0), 2).squeeze(-2)
    assert starts.flatten().tolist() == pytest.approx([0.3] * 2 + [0.8] * 2, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.double, torch.float])
@pytest.mark.parametrize("num", [1, 3])
def test_the_best_hill_is_a_finite_point(num: int, dtype: torch.dtype) -> None:
    """Also where they are as low as the moat: one alone, or several of one height."""
    unit = sobol(64, 3, 0).to(dtype)
    for finite in ([40], [10, 50], [10, 20, 50]):
        for height in (-2.0, 0.0, 3.0):
            values = torch.full((64,), -torch.inf, dtype=dtype)
            values[finite] = height
            best = hills(unit, values, num).tolist()[0]
            assert best in finite, height


def test_saddles_by_all_paths() -> None:
    """A saddle is the best lowest point of all ways to higher ground."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        n = 30
        height = torch.rand(n, generator=generator).tolist()
        gaps = torch.rand(n, n, generator=generator)
        linked = (gaps < 0.06) | (gaps.T < 0.06)
        lowest = [
            [
                min(height[i], height[j]) if i == j or linked[i, j] else -1.0
                for j in range(n)
            ]
            for i in range(n)
        ]
        for k in range(n):  # Floyd and Warshall, for the widest way
            for i in range(n):
                for j in range(n):
                    way = min(lowest[i][k], lowest[k][j])
                    lowest[i][j] = max(lowest[i][j], way)
        near = [[j for j in range(n) if linked[i, j] and j != i] for i in range(n)]
        expected = {}
        for i in range(n):
            if all(height[j] < height[i] for j in near[i]):
                higher = [lowest[i][j] for j in range(n) if height[j] > height[i]]
                reached = max(higher, default=-1.0)
                expected[i] = reached if reached >= 0 else min(height)
        assert _saddles(height, near) == expected


def test_points_decide_the_dtype() -> None:
    one = Landscape(lambda X: hill(X, 0.6, 0.5))
    assert hilltops(one, sobol(64, 2, 0).float(), 4).dtype == torch.float32
