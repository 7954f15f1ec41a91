"""`torch.compile` of an acquisition function, as the page for BoTorch users has it."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_acquisition_function_has_the_same_values_and_gradients(
    backend: str,
) -> None:
    """Without a C++ compiler: what dynamo and autograd make of the graph."""
    torch.manual_seed(0)
    Z = torch.rand(12, 3, dtype=torch.double)
    acqf = DistributionallyRobustUCB(
        SingleTaskGP(Z, Z.sum(-1, keepdim=True).sin()),
        beta=2.25,
        context_set=ContextSet.empirical(Z[:, 2:]),
        objective=UncertaintyObjective.dro(TotalVariation(0.3)),
    )
    X = torch.rand(5, 1, 2, dtype=torch.double, requires_grad=True)
    expected = acqf(X)
    (slope,) = torch.autograd.grad(expected.sum(), X)
    compiled = torch.compile(acqf, backend=backend)
    values = compiled(X)
    (compiled_slope,) = torch.autograd.grad(values.sum(), X)
    torch.testing.assert_close(values, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(compiled_slope, slope, rtol=1e-10, atol=1e-10)
