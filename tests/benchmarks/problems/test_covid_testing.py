"""COVID-19 testing: kernel ridge by numpy, on a generated file and on the real one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy import stats

from benchmarks.problems import make
from benchmarks.problems.surrogates import covid_testing
from botorch_drbo.test_functions import RobustTestFunction
from tests.data import DATA, needs

REAL = DATA / "covid_infection.npz"
needs_real_data = needs(REAL.name)


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the same entries, with 80 runs of an invented simulator."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), size=(2, 80))
    last = rng.random(80)
    x = np.column_stack([shares[0, :, :2], shares[1, :, :2], last])
    y = -last + 0.3 * np.sin(5 * x[:, 0]) * x[:, 2]
    path = tmp_path_factory.mktemp("data") / "covid_infection.npz"
    np.savez(path, X=x, y=(y - y.mean()) / y.std())
    return path


@pytest.fixture(scope="module")
def real() -> RobustTestFunction:
    return covid_testing(path=REAL)


def kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    total = np.zeros((len(first), len(second)))
    for j in range(first.shape[1]):
        total += np.subtract.outer(first[:, j], second[:, j]) ** 2
    return np.exp(-total / (2 * 0.1**2))


@cache
def ridge(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The runs and their weights, by numpy."""
    with np.load(path) as data:
        x, y = data["X"], data["y"]
    return x, np.linalg.solve(kernel(x, x) + 1e-6 * np.eye(len(x)), y)


def near_runs(path: Path, num: int) -> torch.Tensor:
    """Points near the runs: far from all of them the function is zero."""
    with np.load(path) as data:
        x = torch.tensor(data["X"][:num])
    step = 0.05 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    return (x + step).clamp(0, 1)


def test_ridge_against_numpy(small_file: Path) -> None:
    z = near_runs(small_file, 60)
    function = covid_testing(path=small_file)
    value = function.evaluate(z[:, :2], z[:, 2:])
    runs, weights = ridge(small_file)
    expected = kernel(z.numpy(), runs) @ weights
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(value, expected, atol=1e-8)
    table = function.table(z[:, :2], z[:7, 2:])
    torch.testing.assert_close(table.diagonal(), value[:7])


@needs_real_data
def test_real_ridge_against_numpy(real: RobustTestFunction) -> None:
    z = near_runs(REAL, 200)
    value = real.evaluate(z[:, :2], z[:, 2:])
    runs, weights = ridge(REAL)
    np.testing.assert_allclose(value, kernel(z.numpy(), runs) @ weights, atol=1e-7)


@needs_real_data
def test_real_surrogate_meets_its_runs(real: RobustTestFunction) -> None:
    with np.load(REAL) as data:
        z, y = torch.tensor(data["X"]), torch.tensor(data["y"])
    assert z.shape == (4085, 5)
    assert (real.evaluate(z[:, :2], z[:, 2:]) - y).abs().max() < 1e-3
    # What the class says of the data.
    assert (z[:, 0] + z[:, 1]).max() <= 1 and (z[:, 2] + z[:, 3]).max() <= 1
    assert np.corrcoef(z[:, 4], y)[0, 1] < -0.8
    outside = torch.tensor([0.9, 0.9, 0.9, 0.9, 0.5]).double()
    assert abs(real.evaluate(outside[:2], outside[2:]).item()) < 1e-3


@needs_real_data
def test_real_optimum_in_closed_form(real: RobustTestFunction) -> None:
    """Uniform contexts: the mean of the kernel is a product of normal integrals."""
    assert real._known_optimum is not None
    runs, weights = ridge(REAL)
    normal = stats.norm(runs[:, 2:], 0.1)
    integrals = 0.1 * np.sqrt(2 * np.pi) * (normal.cdf(1) - normal.cdf(0))
    weights = weights * integrals.prod(1)

    def mean(x: np.ndarray) -> np.ndarray:
        return kernel(x, runs[:, :2]) @ weights

    axis = np.linspace(0, 1, 61)
    grid = np.array([[a, b] for a in axis for b in axis])
    best = real.optimal_decision.numpy()
    values = mean(grid)
    assert np.abs(grid[values.argmax()] - best).max() < 0.02
    step = np.linspace(-0.005, 0.005, 21)
    fine = np.array([[best[0] + a, best[1] + b] for a in step for b in step])
    assert mean(fine).max() == pytest.approx(real.optimal_value, abs=2e-4)
    assert values.max() <= real.optimal_value + 2e-4
    x = torch.rand(20, 2).double()
    np.testing.assert_allclose(real.expected_value(x), mean(x.numpy()), atol=2e-3)


def test_domain_gradient_and_dtype(small_file: Path) -> None:
    function = make("covid_testing", path=small_file)
    assert function.name == "covid_testing"
    assert (function.d_x, function.d_c) == (2, 3)
    assert function.reference is not None
    assert function.reference.num_points == 64
    contexts = function.true_contexts(4096)
    np.testing.assert_allclose(contexts.std(0), 12**-0.5, atol=2e-3)
    z = near_runs(small_file, 5).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda z: function.evaluate(z[:, :2], z[:, 2:]), z)
    x = z[:, :2].detach().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: function.expected_value(x, num=33), x)
    single = function.evaluate(z[:, :2].float(), z[:, 2:].float())
    assert single.dtype == torch.float32
    exact = function.evaluate(z[:, :2], z[:, 2:])
    torch.testing.assert_close(single.double(), exact, rtol=1e-3, atol=1e-3)


def test_other_data_are_searched_on_demand(small_file: Path) -> None:
    function = covid_testing(path=small_file)
    axis = torch.linspace(0, 1, 41).double()
    values = function.expected_value(torch.cartesian_prod(axis, axis))
    assert function.optimal_value >= values.max().item() - 1e-6


def test_broken_files(
    small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.load(small_file) as stored:
        x, y = stored["X"], stored["y"]
    np.savez(tmp_path / "short.npz", X=x)
    with pytest.raises(InputDataError, match="lacks the entries"):
        covid_testing(path=tmp_path / "short.npz")
    np.savez(tmp_path / "odd.npz", X=x, y=y[:-1])
    with pytest.raises(InputDataError, match="one entry per row"):
        covid_testing(path=tmp_path / "odd.npz")
    np.savez(tmp_path / "narrow.npz", X=x[:, :4], y=y)
    with pytest.raises(BotorchTensorDimensionError, match="5 columns"):
        covid_testing(path=tmp_path / "narrow.npz")
    np.savez(tmp_path / "nan.npz", X=x, y=np.full_like(y, np.nan))
    with pytest.raises(InputDataError, match="NaN"):
        covid_testing(path=tmp_path / "nan.npz")
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"BOTORCH_DRBO_DATA.*Tay et al"):
        covid_testing()
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(small_file.parent))
    assert covid_testing().d_c == 3
