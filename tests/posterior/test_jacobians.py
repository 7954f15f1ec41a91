"""Jacobians in one sweep (``is_grads_batched``) through the views."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.posterior import LocalMoments, marginal_posterior
from botorch_drbo.posterior.factory import Method


def uniform(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.double)


def moments(here: LocalMoments) -> Tensor:
    return torch.stack(here.moments())


def shared_slopes(here: LocalMoments) -> Tensor:
    return torch.cat([part.flatten(1) for part in here.slopes(slice(3))], -1)


def own_slopes(here: LocalMoments) -> Tensor:
    own = 0.2 + 0.6 * uniform(2, 3, 1, seed=5)
    return torch.cat([part.flatten(1) for part in here.slopes(own)], -1)


@pytest.mark.parametrize("what", [moments, shared_slopes, own_slopes])
@pytest.mark.parametrize("method", ["product", "exact"])
def test_in_one_sweep_as_row_by_row(method: Method, what: Callable) -> None:
    assert method in get_args(Method)
    Z = uniform(60, 3, seed=1)
    model = SingleTaskGP(Z, torch.sin(6 * Z).sum(-1, keepdim=True)).eval()
    model.requires_grad_(False)
    view = marginal_posterior(model, [2], method=method).over(uniform(64, 1, seed=2))
    assert view.method == method
    X = uniform(2, 2, seed=3)

    def function(x: Tensor) -> Tensor:
        return what(view.at(x))

    jacobian = torch.autograd.functional.jacobian
    found = jacobian(function, X, vectorize=True)
    torch.testing.assert_close(found, jacobian(function, X))
    assert found.abs().max() > 0.01
