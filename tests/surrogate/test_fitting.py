"""The fit of BoTorch's member against BoTorch's own fit of the same model."""

from __future__ import annotations

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo.surrogate import ModelData
from botorch_drbo.surrogate.botorch_default import BoTorchDefault

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

BOX = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def smooth(noise: float = 0.1, variances: float | None = None) -> ModelData:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(40, 3, generator=generator).double()
    Y = (4 * Z[:, :1]).sin() + Z[:, 1:2] ** 2 + 0.3 * Z[:, 2:]
    Y = Y + noise * torch.randn(40, 1, generator=generator).double()
    given = None if variances is None else torch.full_like(Y, variances)
    return ModelData(Z, Y, BOX.expand(2, 3), given)


def noisy() -> ModelData:
    """Its density has a maximum of much noise, and a higher one of little."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(15, 2, generator=generator).double()
    Y = (9 * Z[:, :1]).sin() * (1 - Z[:, 1:])
    Y = Y + 0.6 * torch.randn(15, 1, generator=generator).double()
    return ModelData(Z, Y, BOX.expand(2, 2))


def botorch(data: ModelData) -> SingleTaskGP:
    """BoTorch's model as BoTorch fits it, by GPyTorch's density."""
    model = data.model()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def found(data: ModelData) -> dict[str, Tensor]:
    """The hyper-parameters of the member, and the density that BoTorch gives them."""
    fitted, model = BoTorchDefault().fit(data), data.model()
    assert isinstance(fitted, SingleTaskGP)
    model.covar_module.lengthscale = fitted.covar_module.lengthscale
    model.mean_module.initialize(constant=fitted.mean_module.constant.item())
    if data.Yvar is None:
        model.likelihood.noise = fitted.likelihood.noise
    return values(model)


def values(model: SingleTaskGP) -> dict[str, Tensor]:
    density = ExactMarginalLogLikelihood(model.likelihood, model).train()
    with torch.no_grad():
        each = density(model(*model.train_inputs), model.train_targets)
        return {
            "density": len(model.train_targets) * each,
            "lengthscale": model.covar_module.lengthscale.flatten(),
            "mean": model.mean_module.constant,
            "noise": model.likelihood.noise.mean(),
        }


@pytest.mark.parametrize(
    "data",
    [smooth(), smooth(variances=0.02), smooth(noise=0.0)],
    ids=["noise", "given noise", "no noise"],
)
def test_finds_the_maximum_of_botorch(data: ModelData) -> None:
    ours, theirs = found(data), values(botorch(data))
    assert ours["density"] > theirs["density"] - 1e-6
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-2, atol=1e-3, msg=name)


def test_finds_the_higher_one_of_two_maxima() -> None:
    assert found(noisy())["density"] > values(botorch(noisy()))["density"] + 5.0


def test_the_noise_stays_within_the_bounds_of_botorch() -> None:
    data = smooth(noise=0.0)
    constraint = data.model().likelihood.noise_covar.raw_noise_constraint
    least = constraint.lower_bound.double()
    torch.testing.assert_close(found(data)["noise"], least, rtol=1e-6, atol=0.0)
