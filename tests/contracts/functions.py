"""Contract tests for test functions."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.testing.fixtures import run_for_each

# The error of 2^14 Sobol contexts of a function of about one, by their dimension.
_QUADRATURE_ERROR = {1: 2e-4, 2: 2e-3}
_WORST_QUADRATURE_ERROR = 5e-3


@dataclass(frozen=True)
class RobustTestFunctionCase:
    r"""One test function of a contract.

    Args:
        name: Its name in messages of failing tests.
        make: Makes the function.
        slack: How far its optimal value may be off, in the units of the outcome; None
            for what suits outcomes of about one.
    """

    name: str
    make: Callable[[], RobustTestFunction]
    slack: float | None = None


def random_pairs(
    function: RobustTestFunction, num: int, seed: int = 0
) -> tuple[Tensor, Tensor]:
    r"""Decisions and contexts anywhere in the boxes.

    Args:
        function: The function, in float64.
        num: How many pairs.
        seed: Decides them.

    Returns:
        Decisions ``num x d_x`` and contexts ``num x d_c``.
    """
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for bounds in (function.bounds, function.context_bounds):
        u = torch.rand(num, bounds.shape[-1], generator=generator, dtype=torch.double)
        pairs.append(bounds[0] + (bounds[1] - bounds[0]) * u)
    return pairs[0], pairs[1]


class RobustTestFunctionContract:
    r"""The tests of a test function: subclass it, and list yours in ``cases``.

    Shapes, dtypes, gradients, pairs and tables, noise, the expected value as the mean
    over the contexts, contexts that are paired between optimisers, an optimum that
    nothing beats, copies, bad input.
    """

    cases: ClassVar[Sequence[RobustTestFunctionCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """
        run_for_each(metafunc, case=self.cases)

    def test_shapes_and_broadcasting(self, case: RobustTestFunctionCase) -> None:
        """Any batch, none at all, and one against many."""
        function = case.make()
        x, c = random_pairs(function, 6)
        pairs = function.evaluate(x[:, None, :], c[None])
        assert pairs.shape == (6, 6)
        torch.testing.assert_close(pairs.diagonal(), function.evaluate(x, c))
        assert function.evaluate(x[0], c[0]).shape == ()
        assert function.expected_value(x[0], num=64).shape == ()
        assert function.expected_value(x.reshape(2, 3, -1), num=64).shape == (2, 3)
        assert function.expected_value(x[:0], num=64).shape == (0,)
        assert function.optimal_decision.shape == (function.d_x,)

    def test_rows_are_independent(self, case: RobustTestFunctionCase) -> None:
        """A pair has the same outcome alone and among others."""
        function = case.make()
        x, c = random_pairs(function, 7)
        alone = torch.stack(
            [function.evaluate(a, b) for a, b in zip(x, c, strict=True)]
        )
        torch.testing.assert_close(function.evaluate(x, c), alone)

    def test_float32_follows_the_decision(self, case: RobustTestFunctionCase) -> None:
        """Outcomes have the dtype of the decisions."""
        function = case.make()
        x, c = random_pairs(function, 20)
        single = function.evaluate(x.float(), c.float())
        assert single.dtype == torch.float32
        torch.testing.assert_close(
            single.double(), function.evaluate(x, c), rtol=1e-3, atol=1e-3
        )
        assert function.expected_value(x.float(), num=16).dtype == torch.float32

    def test_table_has_all_pairs(self, case: RobustTestFunctionCase) -> None:
        """Row by row and column by column."""
        function = case.make()
        x, c = random_pairs(function, 7)
        table = function.table(x, c[:5])
        assert table.shape == (7, 5)
        torch.testing.assert_close(table[3, 4], function.evaluate(x[3], c[4]))
        torch.testing.assert_close(table, function.evaluate(x[:, None], c[:5]))

    def test_expected_value_is_the_mean_over_the_contexts(
        self, case: RobustTestFunctionCase
    ) -> None:
        """All of them, with equal weights."""
        function = case.make()
        x, _ = random_pairs(function, 5)
        contexts = function.true_contexts(64)
        mean = function.evaluate(x.unsqueeze(-2), contexts).mean(-1)
        torch.testing.assert_close(function.expected_value(x, num=64), mean)

    def test_expected_value_is_differentiable(
        self, case: RobustTestFunctionCase
    ) -> None:
        """And its gradient is a finite difference."""
        function = case.make()
        x, _ = random_pairs(function, 2, seed=5)
        x.requires_grad_(True)
        (gradient,) = torch.autograd.grad(function.expected_value(x, num=32).sum(), x)
        step = 1e-6
        for column in range(function.d_x):
            shift = torch.zeros(function.d_x).double()
            shift[column] = step
            with torch.no_grad():
                up = function.expected_value(x + shift, num=32)
                down = function.expected_value(x - shift, num=32)
            torch.testing.assert_close(
                gradient[:, column], (up - down) / (2 * step), rtol=1e-4, atol=1e-4
            )

    def test_noise_has_the_deviation_of_the_function(
        self, case: RobustTestFunctionCase
    ) -> None:
        """And comes from the generator that is given."""
        function = case.make()
        x, c = random_pairs(function, 1000)
        first, again = (
            function.observe(x, c, generator=torch.Generator().manual_seed(0))
            for _ in range(2)
        )
        assert torch.equal(first, again)
        noise, std = first - function.evaluate(x, c), function.noise_std
        assert isinstance(std, float)
        assert noise.std().item() == pytest.approx(std, rel=0.1)
        assert noise.mean().item() == pytest.approx(0.0, abs=0.15 * std)

    def test_contexts_are_paired_and_independent_of_the_optimiser(
        self, case: RobustTestFunctionCase
    ) -> None:
        """They depend on their seed alone, and lie inside the box."""
        function = case.make()
        torch.manual_seed(0)
        first = function.sample_contexts(40, seed=3)
        state = torch.get_rng_state()
        torch.rand(10)
        second = case.make().sample_contexts(60, seed=3)
        torch.testing.assert_close(first, second[:40], rtol=0, atol=0)
        torch.manual_seed(0)
        function.sample_contexts(5, seed=4)
        assert torch.equal(state, torch.get_rng_state())  # the global one is intact
        assert not torch.equal(first, function.sample_contexts(40, seed=4))
        for contexts in (first, function.true_contexts(512)):
            assert contexts.dtype == torch.float64
            assert (contexts >= function.context_bounds[0]).all()
            assert (contexts <= function.context_bounds[1]).all()

    def test_drawn_contexts_follow_the_true_law(
        self, case: RobustTestFunctionCase
    ) -> None:
        """The mean of 4000 draws, within five standard errors."""
        function = case.make()
        drawn, true = (
            function.sample_contexts(4000, seed=1),
            function.true_contexts(4096),
        )
        error = true.std(0) / 4000**0.5
        assert ((drawn.mean(0) - true.mean(0)).abs() <= 5 * error + 1e-6).all()

    def test_no_random_decision_beats_the_optimum(
        self, case: RobustTestFunctionCase
    ) -> None:
        """Neither anywhere in the box nor near the best decision."""
        function = case.make()
        x, _ = random_pairs(function, 512, seed=1)
        low, high = function.bounds
        generator = torch.Generator().manual_seed(2)
        shift = torch.randn(128, function.d_x, generator=generator, dtype=torch.double)
        near = function.optimal_decision + 0.02 * (high - low) * shift
        x = torch.cat([x, near.clamp(low, high)])
        best = function.expected_value(x, num=1024)
        top = x[best.topk(4).indices]
        value = function.expected_value(top, num=2**14).max().item()
        slack = case.slack
        if slack is None:
            slack = _QUADRATURE_ERROR.get(function.d_c, _WORST_QUADRATURE_ERROR)
        assert value <= function.optimal_value + slack
        own = function.expected_value(function.optimal_decision)
        assert own.item() == pytest.approx(function.optimal_value, abs=slack)

    def test_moved_to_float32_as_a_whole(self, case: RobustTestFunctionCase) -> None:
        """And back again."""
        function = case.make()
        x, c = random_pairs(function, 5)
        values, means = function.evaluate(x, c), function.expected_value(x, num=64)
        moved = copy.deepcopy(function).to(torch.float)
        for tensor in (
            moved.bounds,
            moved.context_bounds,
            moved.sample_contexts(2, seed=0),
            moved.true_contexts(4),
            moved.optimizers,
        ):
            assert tensor.dtype == torch.float
        found = moved.evaluate(x.float(), c.float())
        assert found.dtype == torch.float
        torch.testing.assert_close(found.double(), values, atol=1e-3, rtol=1e-3)
        found = moved.expected_value(x.float(), num=64)
        torch.testing.assert_close(found.double(), means, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(moved.to(torch.double).evaluate(x, c), values)

    def test_pickled(self, case: RobustTestFunctionCase) -> None:
        """For processes in parallel."""
        function = case.make()
        again = pickle.loads(pickle.dumps(function))
        x, c = random_pairs(function, 5)
        assert torch.equal(function.evaluate(x, c), again.evaluate(x, c))

    def test_bad_input(self, case: RobustTestFunctionCase) -> None:
        """Other columns, NaN, no contexts."""
        function = case.make()
        x, c = random_pairs(function, 3)
        wide_x, wide_c = torch.cat([x, x[:, :1]], -1), torch.cat([c, c[:, :1]], -1)
        for call in (
            lambda: function.evaluate(wide_x, c),
            lambda: function.evaluate(x, wide_c),
            lambda: function.table(wide_x, c),
            lambda: function.expected_value(wide_x),
        ):
            with pytest.raises(BotorchTensorDimensionError, match="columns"):
                call()
        with pytest.raises(InputDataError, match="NaN"):
            function.expected_value(x * float("nan"))
        with pytest.raises(InputDataError, match="at least 1"):
            function.sample_contexts(0, seed=0)
