"""The portfolio surrogate, on a generated file and on the real one where it is."""

from __future__ import annotations

from pathlib import Path

import gpytorch
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean

from benchmarks.problems import make
from benchmarks.problems.surrogates import portfolio
from botorch_drbo.test_functions.base import normal_law
from tests.data import DATA, needs

REAL = DATA / "portfolio.npz"
needs_real_data = needs(REAL.name)
KINDS = [("normal", "wdrbo"), ("normal", "sbo_kde")]
KINDS += [("uniform", "wdrbo"), ("uniform", "sbo_kde")]


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the same entries, with 60 runs of an invented simulator."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 5)).astype(np.float32)
    y = (np.sin(4 * x[:, 0]) + x[:, 3] * x[:, 1] - x[:, 4]).astype(np.float32)
    y = 4 * y - 3
    path = tmp_path_factory.mktemp("data") / "portfolio.npz"
    np.savez(
        path,
        X=x,
        y=y,
        y_mean=float(y.mean()),
        y_std=float(y.std(ddof=1)),
        rbf_lengthscale=np.array([0.4, 1.0, 2.0, 0.8, 1.5]),
        rbf_noise=0.01,
        rbf_mean_constant=-0.3,
        matern52_lengthscale=np.array([0.8, 2.0, 3.0, 1.2, 2.5]),
        matern52_outputscale=3.0,
        matern52_noise=0.02,
        matern52_mean_constant=-0.4,
    )
    return path


def gpytorch_mean(path: Path, preset: str, z: torch.Tensor) -> torch.Tensor:
    """The posterior mean by GPyTorch, without the class under test."""
    with np.load(path) as data:
        x = torch.tensor(data["X"]).double()
        y = torch.tensor(data["y"]).double()
        shift, scale = float(data["y_mean"]), float(data["y_std"])
        kind = "rbf" if preset == "wdrbo" else "matern52"
        kernel: gpytorch.kernels.Kernel = (
            RBFKernel(ard_num_dims=5)
            if preset == "wdrbo"
            else ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=5))
        )
        base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
        base.lengthscale = torch.tensor(data[f"{kind}_lengthscale"])
        if isinstance(kernel, ScaleKernel):
            kernel.outputscale = float(data["matern52_outputscale"])
        mean = ConstantMean()
        mean.initialize(constant=float(data[f"{kind}_mean_constant"]))
        model = SingleTaskGP(
            x,
            ((y - shift) / scale).unsqueeze(-1),
            covar_module=kernel,
            mean_module=mean,
            outcome_transform=None,
        ).double()
        model.likelihood.initialize(noise=float(data[f"{kind}_noise"]))
    model.eval()
    exact = gpytorch.settings.fast_computations(
        covar_root_decomposition=False, log_prob=False, solves=False
    )
    with torch.no_grad(), exact:
        return shift + scale * model.posterior(z).mean.squeeze(-1)


@pytest.mark.parametrize("preset", ["wdrbo", "sbo_kde"])
def test_posterior_mean_against_gpytorch(small_file: Path, preset: str) -> None:
    z = torch.rand(300, 5, generator=torch.Generator().manual_seed(0)).double()
    function = portfolio(preset=preset, path=small_file)
    value = function.evaluate(z[:, :3], z[:, 3:])
    torch.testing.assert_close(
        value, gpytorch_mean(small_file, preset, z), rtol=1e-6, atol=1e-6
    )
    negated = portfolio(preset=preset, path=small_file, negate=True)
    torch.testing.assert_close(negated.evaluate(z[:, :3], z[:, 3:]), -value)


@pytest.mark.parametrize("preset", ["wdrbo", "sbo_kde"])
def test_gradient_of_the_posterior_mean(small_file: Path, preset: str) -> None:
    function = portfolio(preset=preset, path=small_file)
    z = torch.rand(5, 5, generator=torch.Generator().manual_seed(1)).double()
    z.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda z: function.evaluate(z[:, :3], z[:, 3:]), z)
    x = z[:, :3].detach().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: function.expected_value(x, num=33), x)


def test_gradient_at_a_training_point(small_file: Path) -> None:
    """Matern has a root of a distance that is zero there."""
    with np.load(small_file) as data:
        x = torch.tensor(data["X"][:1]).double().requires_grad_(True)
    function = portfolio(preset="sbo_kde", path=small_file)
    assert torch.autograd.gradcheck(lambda x: function.evaluate(x[:, :3], x[:, 3:]), x)


@pytest.mark.parametrize(("law", "preset"), KINDS)
def test_context_laws(small_file: Path, law: str, preset: str) -> None:
    function = make(f"portfolio_{law}", preset=preset, path=small_file)
    assert function.name == f"portfolio_{law}"
    assert (function.d_x, function.d_c) == (3, 2)
    contexts = function.true_contexts(4096)
    std = {"uniform": 12**-0.5, "wdrbo": 0.198, "sbo_kde": 0.1}
    wanted = std[law if law == "uniform" else preset]
    np.testing.assert_allclose(contexts.std(0).numpy(), wanted, atol=2e-3)
    np.testing.assert_allclose(contexts.mean(0).numpy(), 0.5, atol=2e-3)


@pytest.mark.slow
def test_other_data_are_searched_on_demand(small_file: Path) -> None:
    function = portfolio("uniform", path=small_file)
    axis = torch.linspace(0, 1, 9).double()
    grid = torch.cartesian_prod(axis, axis, axis)
    values = function.expected_value(grid, num=256)
    assert function.optimal_value >= values.max().item() - 1e-3
    near = function.expected_value(function.optimal_decision, num=2**12)
    assert function.optimal_value == pytest.approx(near.item(), abs=1e-3)


def test_own_law(small_file: Path) -> None:
    function = portfolio(normal_law(0.2, 0.01, 2), path=small_file)
    assert function.true_contexts(256).mean().item() == pytest.approx(0.2, abs=1e-3)
    with pytest.raises(InputDataError, match='"normal", "uniform"'):
        portfolio("triangular", path=small_file)


def test_where_the_file_is_looked_for(
    small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(small_file.parent))
    by_variable = portfolio()
    x, c = torch.rand(4, 3).double(), torch.rand(4, 2).double()
    by_path = portfolio(path=small_file)
    torch.testing.assert_close(by_variable.evaluate(x, c), by_path.evaluate(x, c))
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"BOTORCH_DRBO_DATA.*sbokde"):
        portfolio()
    with pytest.raises(FileNotFoundError, match=r"nowhere.npz"):
        portfolio(path=tmp_path / "nowhere.npz")


def test_broken_files(small_file: Path, tmp_path: Path) -> None:
    with np.load(small_file) as stored:
        data = dict(stored)
    np.savez(tmp_path / "short.npz", **{k: v for k, v in data.items() if k != "y"})
    with pytest.raises(InputDataError, match="lacks the entries"):
        portfolio(path=tmp_path / "short.npz")
    np.savez(tmp_path / "odd.npz", **(data | {"y": data["y"][:-1]}))
    with pytest.raises(InputDataError, match="one entry per row"):
        portfolio(path=tmp_path / "odd.npz")


@needs_real_data
@pytest.mark.parametrize("preset", ["wdrbo", "sbo_kde"])
def test_real_surrogate_fits_its_runs(preset: str) -> None:
    function = portfolio(preset=preset, path=REAL)
    with np.load(REAL) as data:
        z, y = torch.tensor(data["X"][:400]).double(), torch.tensor(data["y"][:400])
    residual = function.evaluate(z[:, :3], z[:, 3:]) - y
    assert residual.std() < 0.15 * y.std()
