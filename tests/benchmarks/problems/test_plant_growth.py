"""Plant growth: the formula in numpy, on a generated file and on the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from benchmarks.problems import make
from benchmarks.problems.surrogates import plant_growth
from botorch_drbo.test_functions.base import normal_law
from tests.data import DATA, needs

REAL = DATA / "plant_growth.npz"
needs_real_data = needs(REAL.name)


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the same entries, with 30 inducing points, some of them twice."""
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0, 3e4, 30), rng.uniform(2.5, 6.5, 30)])
    points[20:] = points[:10]
    path = tmp_path_factory.mktemp("data") / "plant_growth.npz"
    np.savez(
        path,
        inducing_points=points,
        whitened_mean=rng.normal(size=30),
        lengthscales=np.array([8000.0, 0.9]),
        variance=0.7,
        leaf_area_mean=67.0,
        leaf_area_std=59.0,
    )
    return path


def formula(path: Path, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The mean of the sparse GP by numpy, one kernel entry at a time."""
    with np.load(path) as data:
        z, m = data["inducing_points"], data["whitened_mean"]
        scale, variance = data["lengthscales"], float(data["variance"])
        shift, deviation = float(data["leaf_area_mean"]), float(data["leaf_area_std"])

    def kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        rows = [[np.sum(((a - b) / scale) ** 2) for b in second] for a in first]
        return variance * np.exp(-0.5 * np.array(rows))

    factor = np.linalg.cholesky(kernel(z, z) + 1e-6 * np.eye(len(z)))
    inputs = np.column_stack([c[:, 0], x[:, 0]])  # ammonia first
    return shift + deviation * kernel(inputs, z) @ np.linalg.solve(factor.T, m)


def pairs(num: int) -> tuple[torch.Tensor, torch.Tensor]:
    u = torch.rand(num, 2, generator=torch.Generator().manual_seed(0)).double()
    return 2.5 + 4 * u[:, :1], 30_000 * u[:, 1:]


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=needs_real_data)])
def test_formula(small_file: Path, real: bool) -> None:
    path = REAL if real else small_file
    x, c = pairs(50)
    function = plant_growth(path=path)
    expected = formula(path, x.numpy(), c.numpy())
    # The factor of a nearly singular matrix: rounding is amplified by 1e5 or so.
    np.testing.assert_allclose(function.evaluate(x, c), expected, atol=1e-6)
    table = function.table(x, c[:9])
    torch.testing.assert_close(table, function.evaluate(x[:, None], c[:9]))
    with np.load(path) as data:
        shift, scale = float(data["leaf_area_mean"]), float(data["leaf_area_std"])
    standard = plant_growth(path=path, standardise=True).evaluate(x, c)
    np.testing.assert_allclose(standard, (expected - shift) / scale, atol=1e-7)


def test_domain(small_file: Path) -> None:
    function = make("plant_growth", path=small_file)
    assert function.name == "plant_growth"
    assert function.bounds.flatten().tolist() == [2.5, 6.5]
    assert function.context_bounds.flatten().tolist() == [0, 30_000]
    contexts = function.true_contexts(4096)  # uniform
    assert contexts.mean().item() == pytest.approx(15_000, rel=1e-3)
    assert contexts.std().item() == pytest.approx(30_000 / 12**0.5, rel=1e-3)
    assert function.reference is not None
    assert function.reference.num_points == 64
    assert function.reference.mean.item() == pytest.approx(15_000)


def test_gradient_and_dtype(small_file: Path) -> None:
    function = plant_growth(path=small_file, standardise=True)
    x, c = pairs(5)
    x.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: function.evaluate(x, c), x, atol=1e-4)
    assert torch.autograd.gradcheck(lambda x: function.expected_value(x, num=33), x)
    single = function.evaluate(x.float(), c.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(
        single.double(), function.evaluate(x, c), rtol=1e-3, atol=1e-3
    )
    assert function.expected_value(x.float(), num=16).dtype == torch.float32


def test_other_data_and_laws_are_searched_on_demand(small_file: Path) -> None:
    grid = torch.linspace(2.5, 6.5, 401).double().unsqueeze(-1)
    for law in (None, normal_law(10_000, 3000, 1)):
        function = plant_growth(path=small_file, context_law=law)
        values = function.expected_value(grid)
        assert function.optimal_value >= values.max().item() - 1e-6
        best = grid[values.argmax()].item()
        assert function.optimal_decision.item() == pytest.approx(best, abs=0.02)


def test_broken_files(
    small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.load(small_file) as stored:
        data = dict(stored)
    short = {key: entry for key, entry in data.items() if key != "variance"}
    np.savez(tmp_path / "short.npz", **short)
    with pytest.raises(InputDataError, match="lacks the entries"):
        plant_growth(path=tmp_path / "short.npz")
    np.savez(tmp_path / "odd.npz", **(data | {"whitened_mean": np.ones(3)}))
    with pytest.raises(BotorchTensorDimensionError, match="whitened_mean"):
        plant_growth(path=tmp_path / "odd.npz")
    np.savez(tmp_path / "zero.npz", **(data | {"variance": 0.0}))
    with pytest.raises(InputDataError, match="must be positive"):
        plant_growth(path=tmp_path / "zero.npz")
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"BOTORCH_DRBO_DATA.*Tay et al"):
        plant_growth()
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(small_file.parent))
    assert plant_growth().d_c == 1


@needs_real_data
def test_real_optimum_by_another_quadrature() -> None:
    """A grid of pH, and Gauss-Legendre over ammonia."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    contexts = torch.tensor(15_000 * (nodes + 1)).unsqueeze(-1)
    grid = torch.linspace(2.5, 6.5, 4001).double().unsqueeze(-1)
    function = plant_growth(path=REAL)
    values = function.evaluate(grid[:, None], contexts) @ torch.tensor(weights / 2)
    assert function._known_optimum is not None
    assert function.optimal_value == pytest.approx(values.max().item(), abs=2e-3)
    best = grid[values.argmax()].item()
    assert function.optimal_decision.item() == pytest.approx(best, abs=2e-3)
    standard = plant_growth(path=REAL, standardise=True)
    assert standard._known_optimum is not None
    value = (function.optimal_value - 67.2466342) / 59.3473761
    assert standard.optimal_value == pytest.approx(value, abs=1e-6)
