"""Random cosines: their shares, their values as plain sums, and their covariance."""

from __future__ import annotations

import math

import torch

from botorch_drbo.kernels.components import KernelComponent, StationaryFactor
from botorch_drbo.sample_paths.fourier_features import RandomFourierFeatures, allocate

WEIGHTS = torch.tensor([[2.0, 0.0, 1.0], [0.5, 3.0, 0.0]], dtype=torch.double)
SMOOTH = KernelComponent(6.0, (StationaryFactor(math.inf, WEIGHTS[0]),))
ROUGH = KernelComponent(
    10.0, (StationaryFactor(math.inf, WEIGHTS[0]), StationaryFactor(2.5, WEIGHTS[1]))
)


def features(num_paths: int, num_features: int) -> RandomFourierFeatures:
    return RandomFourierFeatures(
        [SMOOTH, ROUGH],
        num_paths=num_paths,
        num_features=num_features,
        split=2,
        generator=torch.Generator().manual_seed(0),
    )


def test_features_are_shared_out_by_half_and_by_variance() -> None:
    assert allocate([SMOOTH, ROUGH], 100) == [43, 57]
    assert allocate([SMOOTH, ROUGH], 2) == [1, 1]
    assert sum(allocate([SMOOTH, ROUGH], 7)) == 7
    assert allocate([SMOOTH._replace(variance=0.0)] * 2, 5) == [4, 1]


def test_values_are_the_sums_of_cosines_and_sines() -> None:
    drawn = features(3, 8)
    z = torch.rand(5, 3, dtype=torch.double)
    angles = torch.einsum("td,pdm->ptm", z, drawn.frequencies)
    expected = (
        drawn.cosines.unsqueeze(1) * angles.cos()
        + drawn.sines.unsqueeze(1) * angles.sin()
    ).sum(-1)
    torch.testing.assert_close(drawn.at(z, 2**20), expected)
    torch.testing.assert_close(drawn.at(z, 1), expected)  # a path at a time
    pairs = drawn(z[:, :2].unsqueeze(0), drawn.side(z[:, 2:]))  # 3 x 5 x 5
    torch.testing.assert_close(pairs.diagonal(dim1=1, dim2=2), expected)
    part = drawn.part(slice(1, 3))
    torch.testing.assert_close(part.at(z, 2**20), expected[1:])


def test_the_covariance_over_paths_is_the_kernel() -> None:
    z = torch.tensor([[0.3, 0.1, 0.9], [0.5, 0.4, 0.2], [0.3, 0.1, 0.9]]).double()
    num_paths = 40_000
    values = features(num_paths, 4).at(z[:2], 2**28)  # P x 2
    gaps = (z[0] - z[1]).square() * WEIGHTS.square()
    smooth, a = (-0.5 * gaps[0].sum()).exp(), (5 * gaps[1].sum()).sqrt()
    matern = (1 + a + a.square() / 3) * (-a).exp()
    expected = 6.0 * smooth + 10.0 * smooth * matern
    for product, covariance in (
        (values[:, 0] * values[:, 1], expected),
        (values[:, 0].square(), torch.tensor(16.0).double()),
    ):
        error = product.mean() - covariance
        assert error.abs() < 4 * product.std() / math.sqrt(num_paths)
