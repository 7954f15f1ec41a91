"""Information gains against posterior variances computed from scratch in numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.kernels.kernel import Kernel

from botorch_drbo.confidence import information_gain, maximum_information_gain
from botorch_drbo.confidence.information_gain import (
    GreedyVariance,
    model_information_gain,
)


def points(n: int, d: int = 2, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, d, generator=generator, dtype=torch.double)


def se(A: np.ndarray, B: np.ndarray, lengthscale: float, scale: float) -> np.ndarray:
    """The squared exponential kernel, by hand."""
    square = ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1)
    return scale * np.exp(-0.5 * square / lengthscale**2)


def rbf(lengthscale: float, scale: float) -> ScaleKernel:
    kernel = ScaleKernel(RBFKernel()).double()
    # A plain number would be rounded to float32 on the way.
    kernel.base_kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.double)
    kernel.outputscale = torch.tensor(scale, dtype=torch.double)
    return kernel


def variance_from_scratch(K: np.ndarray, noise: float, chosen: list[int]) -> np.ndarray:
    """Posterior variances of all points after noisy observations of the chosen ones."""
    if not chosen:
        return K.diagonal().copy()
    A = K[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
    k = K[chosen]
    return K.diagonal() - (k * np.linalg.solve(A, k)).sum(0)


KERNELS: dict[str, Kernel] = {
    "rbf": rbf(0.4, 2.5),
    "matern": ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)).double(),
    "linear": LinearKernel().double(),  # not stationary: k(x, x) differs
    "sum": AdditiveKernel(rbf(0.3, 0.5), LinearKernel().double()),
    "one column": RBFKernel(active_dims=(1,)).double(),
}


@pytest.mark.parametrize("t", [0, 1, 7])
def test_gain_is_the_determinant_and_the_sum_of_the_chain_rule(t: int) -> None:
    Z, noise = points(t).numpy(), 0.3
    K = se(Z, Z, 0.4, 2.5)
    _, logdet = np.linalg.slogdet(np.eye(t) + K / noise)
    chain = sum(
        0.5 * math.log(1 + variance_from_scratch(K, noise, list(range(s)))[s] / noise)
        for s in range(t)
    )
    gain = information_gain(torch.tensor(K), noise).item()
    assert gain == pytest.approx(0.5 * logdet, rel=1e-10, abs=1e-14)
    assert gain == pytest.approx(chain, rel=1e-10, abs=1e-14)


def test_only_the_ratio_to_the_noise_counts() -> None:
    Z = points(6).numpy()
    normalised = information_gain(torch.tensor(se(Z, Z, 0.4, 1.0)), 0.02)
    scaled = information_gain(torch.tensor(se(Z, Z, 0.4, 7.0)), 0.14)
    torch.testing.assert_close(normalised, scaled)


def test_own_noise_of_each_observation_batches_and_float32() -> None:
    Z = points(5).numpy()
    K, noise = se(Z, Z, 0.4, 1.0), np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    _, with_signal = np.linalg.slogdet(K + np.diag(noise))
    expected = 0.5 * (with_signal - np.log(noise).sum())
    actual = information_gain(torch.tensor(K), torch.tensor(noise))
    assert actual.item() == pytest.approx(expected, rel=1e-12)
    batch = information_gain(torch.tensor(np.stack([K, 2 * K])), torch.tensor(noise))
    assert batch.shape == (2,) and batch[0] == actual and batch[1] > actual
    single = information_gain(torch.tensor(K).float(), torch.tensor(noise))
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(expected, rel=1e-5)


def test_repeated_inputs_are_no_trouble() -> None:
    same = information_gain(torch.ones(40, 40).double(), 1e-6)
    assert same.item() == pytest.approx(0.5 * math.log1p(40 / 1e-6), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.double, torch.float32])
@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_gain_of_a_model(dtype: torch.dtype) -> None:
    X = 5.0 + 2.0 * points(9)  # transformed inputs and outcomes, another outputscale
    Y = 30.0 * X.sum(-1, keepdim=True).sin()
    bounds = torch.tensor([[5.0, 5.0], [7.0, 7.0]])
    model = SingleTaskGP(
        X.to(dtype),
        Y.to(dtype),
        covar_module=rbf(0.4, 2.5),
        input_transform=Normalize(2, bounds=bounds.to(dtype)),
    ).to(dtype)
    model.likelihood.noise = torch.tensor(0.05, dtype=torch.double)
    U = points(9).numpy()
    _, logdet = np.linalg.slogdet(np.eye(9) + se(U, U, 0.4, 2.5) / 0.05)
    gain = model_information_gain(model)
    tolerance = 1e-9 if dtype == torch.double else 1e-4
    assert gain.item() == pytest.approx(0.5 * logdet, rel=tolerance)


def test_gain_of_a_model_with_known_noise() -> None:
    X, noise = points(6), torch.linspace(0.1, 0.6, 6).double().unsqueeze(-1)
    model = SingleTaskGP(
        X, X[:, :1], noise, covar_module=rbf(0.4, 2.5), outcome_transform=None
    )
    K = se(X.numpy(), X.numpy(), 0.4, 2.5)
    _, with_signal = np.linalg.slogdet(K + np.diag(noise.flatten().numpy()))
    expected = 0.5 * (with_signal - np.log(noise.numpy()).sum())
    assert model_information_gain(model).item() == pytest.approx(expected, rel=1e-9)


def test_model_of_another_kind() -> None:
    X = points(4)
    two = SingleTaskGP(X, torch.cat([X[:, :1], X[:, 1:]], -1))
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        model_information_gain(two)
    several = ModelListGP(SingleTaskGP(X, X[:, :1]))
    with pytest.raises(UnsupportedError, match="ModelListGP"):
        model_information_gain(several)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", KERNELS)
def test_greedy_choice_and_variances_against_refactoring(name: str) -> None:
    Z, kernel, noise = points(30, seed=1), KERNELS[name], 0.05
    with torch.no_grad():
        K = kernel(Z).to_dense().numpy()
    greedy, chosen = GreedyVariance(kernel, Z, noise), []
    for _ in range(20):
        expected = variance_from_scratch(K, noise, chosen)
        np.testing.assert_allclose(greedy.variance.numpy(), expected, atol=1e-11)
        ties = np.flatnonzero(expected >= expected.max() * (1 - 1e-9))
        (index,) = greedy.extend(1)
        assert index == ties[0]
        chosen.append(index)
    assert greedy.indices == tuple(chosen)


@pytest.mark.parametrize("name", KERNELS)
def test_maximum_gain_is_the_gain_of_what_was_chosen(name: str) -> None:
    Z, kernel = points(30, seed=1), KERNELS[name]
    found = maximum_information_gain(kernel, Z, 12, 0.05)
    for t in range(1, 13):
        with torch.no_grad():
            K = kernel(Z[found.indices[:t]]).to_dense()
        gain = information_gain(K, 0.05).item()
        assert found.gains[t - 1].item() == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize("t", [1, 2, 3])
def test_maximum_gain_between_the_optimum_and_its_guarantee(t: int) -> None:
    Z = points(7, seed=3)
    K = se(Z.numpy(), Z.numpy(), 0.5, 2.5)
    best = max(
        0.5 * np.linalg.slogdet(np.eye(t) + K[np.ix_(rows, rows)] / 0.05)[1]
        for rows in itertools.combinations_with_replacement(range(7), t)
    )
    found = maximum_information_gain(rbf(0.5, 2.5), Z, t, 0.05)
    assert found.gains[-1].item() <= best + 1e-10
    assert found.upper_bounds[-1].item() >= best
    ratio = found.upper_bounds / found.gains
    assert ratio[0].item() == pytest.approx(math.e / (math.e - 1.0))


def test_more_observations_than_candidates_repeat_them() -> None:
    found = maximum_information_gain(rbf(0.5, 1.0), points(3), 40, 0.1)
    assert sorted(set(found.indices.tolist())) == [0, 1, 2]
    assert bool((found.gains.diff() > 0).all())


def test_long_and_nearly_singular() -> None:
    # 150 observations of a smooth function: variances fall to rounding error.
    line = torch.linspace(0.0, 1.0, 400).double().unsqueeze(-1)
    greedy = GreedyVariance(rbf(0.5, 1.0), line, 1e-8)
    greedy.extend(150)
    K = se(line.numpy(), line.numpy(), 0.5, 1.0)
    expected = variance_from_scratch(K, 1e-8, list(greedy.indices))
    assert greedy.variance.min() >= 0.0
    np.testing.assert_allclose(greedy.variance.numpy(), expected, atol=1e-11)


def test_choice_among_some_and_observations_of_others() -> None:
    Z = points(12, seed=5)
    among = torch.arange(12) >= 6
    greedy = GreedyVariance(rbf(0.3, 1.0), Z, 0.01)
    greedy.observe(2)  # may be observed, may not be chosen
    K, chosen = se(Z.numpy(), Z.numpy(), 0.3, 1.0), [2]
    for index in greedy.extend(8, among):
        variance = variance_from_scratch(K, 0.01, chosen)
        assert index == 6 + int(variance[6:].argmax())
        chosen.append(index)


def test_a_tie_goes_to_the_first() -> None:
    # A regular grid is full of symmetries, which rounding would break at random.
    side = torch.linspace(0.0, 1.0, 9).double()
    grid = torch.cartesian_prod(side, side)
    greedy = GreedyVariance(rbf(0.3, 1.0), grid, 0.01)
    assert greedy.extend(9) == [0, 80, 8, 72, 40, 4, 76, 36, 44]


def test_float32_points() -> None:
    Z = points(20, seed=1)
    double = GreedyVariance(rbf(0.4, 1.0), Z, 0.01)
    single = GreedyVariance(rbf(0.4, 1.0).float(), Z.float(), 0.01)
    assert double.extend(6) == single.extend(6)
    torch.testing.assert_close(double.variance, single.variance, atol=1e-5, rtol=0)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_bad_noise(noise: float) -> None:
    with pytest.raises(InputDataError, match="noise_variance"):
        information_gain(torch.eye(2), noise)
    with pytest.raises(InputDataError, match="noise_variance"):
        maximum_information_gain(rbf(0.4, 1.0), points(3), 2, noise)


def test_bad_matrices() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="square"):
        information_gain(torch.ones(2, 3), 0.1)
    with pytest.raises(InputDataError, match="NaN"):
        information_gain(torch.full((2, 2), torch.nan), 0.1)
    with pytest.raises(InputDataError, match="no covariance"):
        information_gain(torch.tensor([[1.0, 2.0], [2.0, 1.0]]), 0.1)  # negative
    with pytest.raises(InputDataError, match="no covariance"):
        information_gain(torch.tensor([[1.0, 0.2], [0.5, 1.0]]), 0.1)
    with pytest.raises(BotorchTensorDimensionError, match="2 entries"):
        information_gain(torch.eye(2), torch.tensor([0.1, 0.1, 0.1]))


def test_bad_candidates_and_counts() -> None:
    kernel = rbf(0.4, 1.0)
    with pytest.raises(InputDataError, match="empty"):
        maximum_information_gain(kernel, points(3)[:0], 2, 0.1)
    with pytest.raises(BotorchTensorDimensionError, match="n x d"):
        maximum_information_gain(kernel, points(3)[0], 2, 0.1)
    for num in (0, -1, 1.5, True):
        with pytest.raises(InputDataError, match="num"):
            maximum_information_gain(kernel, points(3), num, 0.1)  # pyright: ignore[reportArgumentType]
    batch = RBFKernel(batch_shape=torch.Size([2]))
    with pytest.raises(UnsupportedError, match="batch"):
        maximum_information_gain(batch, points(3), 2, 0.1)
    greedy = GreedyVariance(kernel, points(3), 0.1)
    with pytest.raises(InputDataError, match="no point"):
        greedy.best(torch.zeros(3, dtype=torch.bool))
    for index in (-1, 3):
        with pytest.raises(InputDataError, match="0 to 2"):
            greedy.observe(index)
