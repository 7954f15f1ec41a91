"""Gaussian processes for the tests, and what BoTorch itself says about them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.testing.fixtures import ensemble as ensemble
from botorch_drbo.testing.fixtures import known_model as known_model
from botorch_drbo.testing.fixtures import member_of as member_of

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def uniform(*shape: int, seed: int = 0) -> Tensor:
    """Numbers in the unit interval, always the same."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.double)


def small_model() -> SingleTaskGP:
    """Ten observations of two decision variables and one context."""
    Z = uniform(10, 3, seed=1)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:]
    return known_model(Z, Y, noise=1e-2)


def variational_model(Z: Tensor) -> SingleTaskVariationalGP:
    """Six inducing points among the inputs ``t x d``, and a posterior set by hand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about transforms and minibatches
        model = SingleTaskVariationalGP(
            Z, inducing_points=6, input_transform=Normalize(Z.shape[-1])
        )
    strategy = model.model.variational_strategy
    with torch.no_grad():
        strategy._variational_distribution.variational_mean.copy_(uniform(6, seed=9))
        strategy._variational_distribution.chol_variational_covar.copy_(
            0.3 * torch.eye(6).double()
        )
    strategy.variational_params_initialized.fill_(1)
    return model.eval()


def make_model(
    covar: Kernel | None = None,
    *,
    t: int = 12,
    d: int = 3,
    lengthscale: float | None = None,
    noise: float = 1e-2,
    fixed_noise: bool = False,
    units: bool = False,
    last: Tensor | None = None,
    seed: int = 1,
    dtype: torch.dtype = torch.double,
    **options,
) -> SingleTaskGP:
    """A Gaussian process over ``d`` columns, by default RBF with a lengthscale each.

    Args:
        covar: Its kernel.
        t: Observations.
        d: Columns.
        lengthscale: Of all parts of the kernel; by default no two hyper-parameters are
            the same, so that columns and parts cannot be taken for each other.
        noise: Its variance, in standardised outcomes.
        fixed_noise: Whether each observation has a known noise of its own.
        units: The last column in -10 to 30, outcomes about 100, both transformed.
        last: Values of the last columns, ``t x k``, in the unit box.
        seed: Of the inputs.
        dtype: Of the model.
        **options: Of ``SingleTaskGP``.
    """
    generator = torch.Generator().manual_seed(seed)
    Z = torch.rand(t, d, generator=generator, dtype=torch.double)
    if last is not None:
        Z[:, -last.shape[-1] :] = last
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos().sum(-1, True)
    Yvar = noise * (0.2 + 2 * Z[:, :1])
    if units:
        Z[:, -1] = 40 * Z[:, -1] - 10
        Y, Yvar = 100 + 7 * Y, 49 * Yvar
        bounds = torch.tensor([[0.0], [1.0]]).repeat(1, d).double()
        bounds[:, -1] = 40 * bounds[:, -1] - 10
        options.setdefault("input_transform", Normalize(d, bounds=bounds))
    options.setdefault("outcome_transform", Standardize(1) if units else None)
    covar = RBFKernel(ard_num_dims=d) if covar is None else covar
    set_hyperparameters(covar, lengthscale)
    model = SingleTaskGP(
        Z,
        Y,
        train_Yvar=Yvar if fixed_noise else None,
        covar_module=covar,
        **options,
    ).double()
    if not fixed_noise:
        model.likelihood.initialize(noise=noise)
    return model.to(dtype).eval()


def set_hyperparameters(covar: Kernel, lengthscale: float | None = None) -> None:
    """One lengthscale for all parts of a kernel, or no two hyper-parameters alike."""
    covar.double()
    for number, part in enumerate(covar.modules()):
        if isinstance(part, ScaleKernel) and lengthscale is None:
            part.outputscale = 0.5 + 0.2 * number
        elif getattr(part, "has_lengthscale", False):
            columns = torch.arange(part.lengthscale.shape[-1]).double()
            part.lengthscale = lengthscale or 0.5 + 0.1 * number + 0.2 * columns


def make_inputs(
    b: int = 3,
    n: int = 60,
    *,
    d: int = 3,
    columns: Sequence[int] = (2,),
    units: bool = False,
    seed: int = 2,
    dtype: torch.dtype = torch.double,
) -> tuple[Tensor, Tensor]:
    """Decisions ``b x d_x`` and contexts ``n x d_c`` for a model of ``d`` columns."""
    generator = torch.Generator().manual_seed(seed)
    Z = torch.rand(b + n, d, generator=generator, dtype=torch.double)
    if units:
        Z[:, -1] = 40 * Z[:, -1] - 10
    others = [i for i in range(d) if i not in columns]
    return Z[:b, others].to(dtype), Z[b:, list(columns)].to(dtype)


def observations(model: SingleTaskGP) -> tuple[Tensor, Tensor]:
    """What a model has seen, in the user's units: ``t x d`` and ``t x 1``."""
    model.eval()
    Z, Y = model.train_inputs[0], model.train_targets.unsqueeze(-1)
    if getattr(model, "input_transform", None) is not None:
        Z = model.input_transform.untransform(Z)
    if getattr(model, "outcome_transform", None) is not None:
        Y = model.outcome_transform.untransform(Y)[0]
    return Z, Y
