"""Slopes of the exact path: against autograd through ``model.posterior``."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Normalize,
    Warp,
)
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_drbo.posterior import ExactPosterior
from botorch_drbo.posterior.affine_inputs import affine_inputs


def make_model(kernel, transform, noise=1e-2):
    generator = torch.Generator().manual_seed(1)
    Z = torch.rand(14, 3, generator=generator, dtype=torch.double)
    Z = Z * torch.tensor([2.0, 30.0, 0.5]).double() + 1e4
    Y = (Z - 1e4).sin().sum(-1, keepdim=True)
    model = SingleTaskGP(Z, Y, covar_module=kernel, input_transform=transform)
    model.likelihood.noise = noise
    return model.eval(), Z


CASES = [
    (ScaleKernel(RBFKernel(ard_num_dims=3)), Normalize(3)),
    (MaternKernel(nu=2.5, ard_num_dims=3), Normalize(3)),
    (
        ScaleKernel(MaternKernel(nu=1.5)),
        ChainedInputTransform(a=InputStandardize(3), b=Normalize(3)),
    ),
]


@pytest.mark.parametrize("kernel, transform", CASES)
@pytest.mark.parametrize("columns", [[2], [0, 1], [2, 0]])
@pytest.mark.parametrize("own", [False, True])
def test_against_autograd(kernel, transform, columns, own):
    model, Z = make_model(kernel, transform)
    others = [i for i in range(3) if i not in columns]
    X, contexts = Z[:4, others] + 0.03, Z[4:9, columns] + 0.02
    if own:
        contexts = torch.stack([contexts + 0.01 * i for i in range(4)])
    at = ExactPosterior(model, columns).slopes(X, contexts)

    joint = torch.empty(4, 5, 3, dtype=torch.double)
    joint[..., others] = X.unsqueeze(-2)
    joint[..., columns] = contexts
    joint.requires_grad_()
    posterior = model.posterior(joint.reshape(20, 1, 3))
    for moment, value, slope in (
        (posterior.mean, at.mean, at.mean_slope),
        (posterior.variance, at.variance, at.variance_slope),
    ):
        (expected,) = torch.autograd.grad(moment.sum(), joint, retain_graph=True)
        torch.testing.assert_close(value, moment.reshape(4, 5), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(slope, expected[..., columns], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel, transform", CASES)
def test_slopes_have_gradients(kernel, transform):
    model, Z = make_model(kernel, transform)
    X = (Z[:3, :1] + 0.1).requires_grad_()
    posterior = ExactPosterior(model, [1, 2], memory_budget=3000)  # several chunks
    assert torch.autograd.gradcheck(
        lambda X: tuple(posterior.slopes(X, Z[3:6, 1:] + 0.05)), X, atol=1e-4
    )


def test_what_is_not_affine_is_left_to_autograd():
    model, Z = make_model(CASES[0][0], Warp(3, indices=[0]))
    assert affine_inputs(model) is None
    assert ExactPosterior(model, [2]).slopes(Z[:2, :2], Z[:3, 2:]) is None


def test_affine_inputs_far_from_zero():
    model, Z = make_model(*CASES[2])
    torch.testing.assert_close(affine_inputs(model)(Z), model.transform_inputs(Z))
