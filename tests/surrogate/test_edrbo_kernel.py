"""EDRBO's models and their fit against what torch and BoTorch make of its code."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim.core import torch_minimize
from botorch.optim.fit import fit_gpytorch_mll_torch
from botorch.optim.stopping import ExpMAStoppingCriterion
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, RQKernel
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.optim import AdamW
from torch.optim.lr_scheduler import CyclicLR

from botorch_drbo.surrogate import EdrboKernel, ModelData
from botorch_drbo.surrogate.gaussian_process import _adamw


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


def as_published(Z: torch.Tensor, y: torch.Tensor, kernel: Kernel) -> SingleTaskGP:
    """A model as the public code builds and fits it."""
    model = SingleTaskGP(
        Z,
        y,
        input_transform=Normalize(Z.shape[-1]),
        outcome_transform=Standardize(1),
        mean_module=ZeroMean(),
        covar_module=kernel,
    ).double()
    optimizer = AdamW(model.parameters(), lr=1e-2)
    fit_gpytorch_mll_torch(
        ExactMarginalLogLikelihood(model.likelihood, model),
        step_limit=110,
        optimizer=optimizer,
        scheduler=CyclicLR(
            optimizer, base_lr=1e-4, max_lr=1e-2, step_size_up=10, step_size_down=20
        ),
    )
    return model.eval()


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", RBFKernel(ard_num_dims=3)),
        ("rational_quadratic", RQKernel(ard_num_dims=3)),
        ("matern32", MaternKernel(1.5, ard_num_dims=3)),
        ("matern52", MaternKernel(2.5, ard_num_dims=3)),
    ],
)
def test_model_is_that_of_the_public_code(name, kernel):
    """Contexts that fill a tenth of their box: inputs count by their own range."""
    torch.manual_seed(0)
    Z = torch.rand(12, 3, dtype=torch.double) * torch.tensor([1.0, 5.0, 0.1])
    y = (Z[:, :1] * 4).sin() + Z[:, 1:2].square() / 9 - (Z[:, 2:] * 30).cos()
    box = torch.tensor([[0.0, 0.0, 0.0], [1.0, 5.0, 1.0]], dtype=torch.double)
    ours = EdrboKernel(name).fit(ModelData(Z, y, box)).posterior(Z + 0.01)
    theirs = as_published(Z, y, kernel).posterior(Z + 0.01)
    torch.testing.assert_close(ours.mean, theirs.mean, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(ours.variance, theirs.variance, rtol=1e-5, atol=1e-7)


def test_input_without_a_range_counts_by_its_box():
    """As in the code, where its divisor is one; so for a category not yet varied."""
    Z = torch.rand(9, 3, dtype=torch.double)
    Z[:, 1] = 0.25
    Z[:, 2] = 1.0
    box = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0]], dtype=torch.double)
    data = ModelData(Z, Z[:, :1].sin(), box, categories={2: 3})
    model = EdrboKernel().fit(data)
    lengthscales = model.covar_module.lengthscale.flatten()
    assert lengthscales[0] < 1.5 * math.log(2)
    torch.testing.assert_close(
        lengthscales[1:],
        torch.full_like(lengthscales[1:], math.log(2)),
        rtol=0.1,
        atol=0,
    )
