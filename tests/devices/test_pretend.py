"""The pretended device has the rules of CUDA, and counts what waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.devices.places import PRETENDED
from tests.devices.pretend import ELSEWHERE, MixedDevicesError, pretended

# From a tensor elsewhere (4 x 4), one on the CPU (4 x 4) and a number on the CPU.
OPERATIONS: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "add": lambda gpu, cpu, one: gpu + cpu,
    "add a number": lambda gpu, cpu, one: gpu + one,
    "number add": lambda gpu, cpu, one: one + gpu,
    "matmul": lambda gpu, cpu, one: gpu @ cpu,
    "mv": lambda gpu, cpu, one: gpu @ cpu[0],
    "cat": lambda gpu, cpu, one: torch.cat([gpu, cpu]),
    "stack with a number": lambda gpu, cpu, one: torch.stack([gpu[0, 0], one]),
    "where": lambda gpu, cpu, one: torch.where(gpu > 0, gpu, cpu),
    "where a number": lambda gpu, cpu, one: torch.where(gpu > 0, gpu, one),
    "condition on the CPU": lambda gpu, cpu, one: torch.where(cpu > 0, gpu, gpu),
    "maximum": lambda gpu, cpu, one: torch.maximum(gpu, cpu),
    "maximum of a number": lambda gpu, cpu, one: torch.maximum(gpu, one),
    "in place": lambda gpu, cpu, one: gpu.add_(cpu),
    "number in place": lambda gpu, cpu, one: gpu.mul_(one),
    "copy": lambda gpu, cpu, one: gpu.copy_(cpu),
    "to": lambda gpu, cpu, one: cpu.to(gpu) + gpu,
    "gather": lambda gpu, cpu, one: gpu.gather(-1, cpu.long()),
    "index on the CPU": lambda gpu, cpu, one: gpu[torch.tensor([0, 2])],
    "index elsewhere": lambda gpu, cpu, one: cpu[gpu[0].long()],
    "fill a mask": lambda gpu, cpu, one: gpu.masked_fill(cpu > 0, 0.0),
    "triangular": lambda gpu, cpu, one: torch.linalg.solve_triangular(
        gpu, cpu, upper=False
    ),
    "cdist": lambda gpu, cpu, one: torch.cdist(gpu, cpu),
    "row set": lambda gpu, cpu, one: gpu.__setitem__(0, cpu[0]),
}


# Where fake CUDA tensors need a build of torch for CUDA: what CUDA does.
KNOWN = {
    "stack with a number": True,
    "copy": False,
    "index on the CPU": False,
    "index elsewhere": True,
    "row set": False,
}


def mixes(name: str) -> bool:
    """Whether CUDA says so; without a GPU FakeTensorMode, which has no values."""
    device = nullcontext() if torch.cuda.is_available() else FakeTensorMode()
    with device, torch.no_grad():
        gpu = torch.eye(4, device="cuda")
        try:
            OPERATIONS[name](gpu, torch.eye(4), torch.ones(()))
        except RuntimeError as error:
            if "not linked" in str(error):
                return KNOWN[name]
            if "device" in str(error):
                return True
            raise
    return False


@pytest.mark.parametrize("name", OPERATIONS)
def test_mixes_are_those_of_cuda(name):
    operation = OPERATIONS[name]
    expected = mixes(name)
    cpu = torch.eye(4)
    with pretended():
        if expected:
            with pytest.raises(MixedDevicesError):
                operation(PRETENDED.there(cpu), cpu, torch.tensor(1.0))
        else:
            operation(PRETENDED.there(cpu), cpu, torch.tensor(1.0))


def test_both_answers_occur():
    found = {mixes(name) for name in OPERATIONS}
    assert found == {True, False}


def test_values_are_kept_and_gradients_pass():
    x = torch.rand(5, 3, dtype=torch.double)
    with pretended():
        moved = PRETENDED.there(x).requires_grad_()
        assert moved.device == ELSEWHERE
        (gradient,) = torch.autograd.grad(moved.square().sum(), moved)
        assert gradient.device == ELSEWHERE
    assert torch.equal(PRETENDED.values(gradient), 2 * x)


def test_writing_through_views_and_lists_reaches_the_values():
    with pretended():
        x = torch.zeros(2, 3, device=ELSEWHERE)
        x[..., [0, 2]] = torch.ones(2, 2, device=ELSEWHERE)
        x.diagonal().mul_(5)
        x[1].add_(torch.tensor([1.0, 2.0, 3.0], device=ELSEWHERE))
        x.unsqueeze_(0)
        assert x.shape == (1, 2, 3)
        assert x.tolist() == [[[5.0, 0.0, 1.0], [2.0, 2.0, 4.0]]]


READS: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "if": lambda x: bool((x > 0).all()),
    "mask": lambda x: x[x > 0],
    "mask put": lambda x: x.__setitem__(x > 0, 1.0),
    "nonzero": lambda x: x.nonzero(),
    "cpu": lambda x: x.cpu(),
    "tolist": lambda x: x.tolist(),
    "a Cholesky that is checked": lambda x: torch.linalg.cholesky(x @ x.mT + 1),
    "equal": lambda x: torch.equal(x, x),
    "written to the CPU": lambda x: torch.zeros(1, 1).copy_(x),
}


@pytest.mark.parametrize("name", READS)
def test_reads_are_counted(name):
    with pretended() as device:
        x = PRETENDED.there(torch.ones(1, 1, dtype=torch.double))
        assert not device.reads
        READS[name](x)
        assert sum(device.reads.values()) == 1


def test_what_waits_for_nothing_is_not_counted():
    with pretended() as device:
        x = PRETENDED.there(torch.rand(4, 4, dtype=torch.double))
        torch.where(x > 0, x, 0.0).sort(-1)
        torch.linalg.cholesky_ex(x @ x.mT)
        x[torch.tensor([0, 1])], x[0], x.argmin(-1)
        assert not device.reads


def test_numpy_and_foreign_generators_are_refused():
    with pretended():
        x = PRETENDED.there(torch.rand(3))
        with pytest.raises(RuntimeError, match="numpy"):
            x.numpy()
        with pytest.raises(MixedDevicesError, match="generator"):
            torch.rand(3, generator=torch.Generator(), device=ELSEWHERE)
