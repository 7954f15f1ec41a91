"""What BoTorch asks of a test problem; its own cases for its own functions run here."""

from __future__ import annotations

import copy

import pytest
import torch
from botorch.test_functions.base import BaseTestProblem
from botorch.utils.testing import (
    BaseTestProblemTestCaseMixIn,
    BotorchTestCase,
    SyntheticTestFunctionTestCaseMixin,
)
from torch import Tensor

from benchmarks.problems import PROBLEMS, make
from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.test_functions.base import uniform_law
from tests.data import FILES
from tests.models import uniform

BOX = torch.tensor([[-1.0, 0.0], [1.0, 4.0]], dtype=torch.double)
CONTEXT_BOX = torch.tensor([[2.0], [3.0]], dtype=torch.double)


class Parabola(RobustTestFunction):
    """Its expected value is known: c is uniform in [2, 3], of mean 2.5."""

    def __init__(self, **options) -> None:
        super().__init__(
            "parabola",
            bounds=BOX,
            context_bounds=CONTEXT_BOX,
            context_law=uniform_law(CONTEXT_BOX),
            **options,
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return c.squeeze(-1) - (x - 0.5).square().sum(-1)


class TestBoTorchsOwnCases(
    BotorchTestCase, BaseTestProblemTestCaseMixIn, SyntheticTestFunctionTestCaseMixin
):
    """Forward and bounds, in float32 and float64; the optimum and where it is."""

    functions = [
        Parabola(noise_std=0.1),
        make("hartmann_2_1", noise_std=0.01),
        make("three_hump_camel"),
    ]

    def test_optimal_value(self):
        """BoTorch's case reads a private field; the number itself is checked below."""


def decisions(function: RobustTestFunction, num: int = 5) -> Tensor:
    low, high = function.bounds
    return low + (high - low) * uniform(num, function.d_x, seed=1)


def test_the_true_value_is_the_expectation_over_the_contexts():
    function = Parabola(noise_std=10.0)
    x = decisions(function)
    expected = 2.5 - (x - 0.5).square().sum(-1)
    torch.testing.assert_close(function.evaluate_true(x), expected, atol=1e-4, rtol=0.0)
    torch.testing.assert_close(function(x, noise=False), expected, atol=1e-4, rtol=0.0)
    assert function.optimal_value == pytest.approx(2.5, abs=1e-4)
    assert function.optimizers.shape == (1, 2)
    torch.testing.assert_close(
        function.optimizers, torch.full((1, 2), 0.5).double(), atol=1e-4, rtol=0.0
    )


def test_noise_has_the_deviation_that_was_asked_for():
    function = Parabola(noise_std=0.3)
    x = decisions(function, 1).expand(300, 2)
    torch.manual_seed(0)
    gap = function(x) - function.evaluate_true(x)
    assert gap.std().item() == pytest.approx(0.3, rel=0.15)
    assert abs(gap.mean().item()) < 0.06


def test_what_botorch_reads_off_a_problem():
    function = Parabola()
    assert isinstance(function, BaseTestProblem)
    assert function.dim == function.d_x == 2
    assert function.num_objectives == 1
    assert not function.is_minimization_problem
    assert function.continuous_inds == [0, 1]
    assert torch.equal(function.bounds, BOX)
    assert function._bounds == [(-1.0, 1.0), (0.0, 4.0)]


# Plain numbers, tables of numbers, and tensors of its own.
@pytest.mark.parametrize("name", ["ackley_2_1", "hartmann_2_1", "misspecified_waves"])
def test_moved_and_back_nothing_is_rounded(name):
    function = make(name)
    x, c = decisions(function), function.sample_contexts(5, seed=3)
    moved = copy.deepcopy(function).to(torch.float).to(torch.double)
    assert torch.equal(moved.evaluate(x, c), function.evaluate(x, c))


def test_the_optimum_is_searched_for_after_a_move():
    function = Parabola().to(torch.float)
    assert function.optimal_value == pytest.approx(2.5, abs=1e-4)
    assert function.optimal_decision.dtype == torch.float


def test_every_registered_function_is_a_problem():
    for name in set(PROBLEMS) - FILES.keys():
        assert isinstance(make(name), BaseTestProblem)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["ackley_2_1", "gp_prior_2_2", "misspecified_waves"])
def test_on_cuda(name):
    function = make(name, noise_std=0.1)
    x = decisions(function)
    expected = function.evaluate_true(x)
    moved = function.cuda()
    assert moved(x.cuda()).is_cuda and moved.sample_contexts(2, seed=0).is_cuda
    torch.testing.assert_close(moved.evaluate_true(x.cuda()).cpu(), expected)
