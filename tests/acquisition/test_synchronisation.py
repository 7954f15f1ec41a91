"""After the first call nothing waits for the device: values stay tensors."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
import torch
from botorch.models import SingleTaskGP
from torch.utils._python_dispatch import TorchDispatchMode

from botorch_drbo import _device
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import (
    ConditionalValueAtRisk,
    FullSimplex,
    NoAmbiguity,
    TotalVariation,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT

# What reads a number or a size off the device. Values of hyper-parameters are compared
# on the CPU only, by ``equal``, which the other test covers on a GPU.
WAITING = {"_local_scalar_dense", "is_nonzero", "nonzero", "masked_select"}


class Waiting(TorchDispatchMode):
    """Counts the calls that would wait."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        boolean = name == "index" and any(
            part is not None and part.dtype == torch.bool for part in args[1]
        )
        self.calls[name] += name in WAITING or boolean
        return func(*args, **(kwargs or {}))


def make(name, device, n=8):
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(16, 2, generator=generator, dtype=torch.double).to(device)
    model = SingleTaskGP(Z, (5 * Z).sin().sum(-1, keepdim=True))
    contexts = torch.rand(n, 1, generator=generator, dtype=torch.double).to(device)
    context_set = ContextSet.empirical(contexts)
    if name == "wdrbo":
        return LipschitzPenalizedUCB(model, 2.0, context_set, 0.1, UNIT.to(device))
    sets = {
        "expectation": NoAmbiguity,
        "worst case": FullSimplex,
        "tv": partial(TotalVariation, 0.2),
        "cvar": partial(ConditionalValueAtRisk, 0.3),
    }
    objective = UncertaintyObjective(sets[name]())
    return DistributionallyRobustUCB(model, 2.0, context_set, objective)


NAMES = ["expectation", "worst case", "tv", "cvar", "wdrbo"]


def forward_and_backward(acqf, X):
    return torch.autograd.grad(acqf(X).sum(), X)


@pytest.mark.parametrize("n", [8, 300])  # exact view and product view
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_off(name, n, monkeypatch):
    # What is done where reading is free must not be done here.
    monkeypatch.setattr(_device, "on_cpu", lambda tensor: False)
    acqf = make(name, "cpu", n)
    X = torch.rand(5, 1, 1, dtype=torch.double, requires_grad=True)
    forward_and_backward(acqf, X)
    with Waiting() as waiting:
        forward_and_backward(acqf, X)
    assert len(waiting.calls) > 10  # it did look
    assert +waiting.calls == Counter()


@pytest.mark.parametrize("n", [8, 300])
@pytest.mark.parametrize("name", NAMES)
def test_what_a_device_does_is_the_same(name, n, monkeypatch):
    """Where reading is not free other code runs, here on the CPU."""
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(70, 1, 1, generator=generator, dtype=torch.double)
    found = []
    for on_cpu in (_device.on_cpu, lambda tensor: False):
        monkeypatch.setattr(_device, "on_cpu", on_cpu)
        acqf = make(name, "cpu", n)
        leaf = X.clone().requires_grad_()
        found.append((acqf(X), acqf(leaf), *forward_and_backward(acqf, leaf)))
    torch.testing.assert_close(*found)


def test_the_counter_counts():
    x = torch.rand(3)
    with Waiting() as waiting:
        x.sum().item()
        x[x > 0]
        bool((x > 0).all())
    assert sum(waiting.calls.values()) >= 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("n", [8, 300])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_waits_on_a_gpu(name, n):
    acqf = make(name, "cuda", n)
    X = torch.rand(5, 1, 1, dtype=torch.double, device="cuda", requires_grad=True)
    forward_and_backward(acqf, X)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        forward_and_backward(acqf, X)
    finally:
        torch.cuda.set_sync_debug_mode("default")
