"""The contracts that third parties run: each finds what is wrong with a member."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.test_functions.laws import uniform_law
from botorch_drbo.testing import RobustTestFunctionCase, RobustTestFunctionContract

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


class Tent(RobustTestFunction):
    """Right, unless a fault is switched on; the best decision is 0.3."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(
            "tent",
            bounds=UNIT,
            context_bounds=UNIT,
            context_law=uniform_law(UNIT),
            noise_std=0.1,
        )
        self.fault = fault

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        value = c.squeeze(-1) - (x - 0.3).abs().squeeze(-1)
        if self.fault == "rows":
            value = value - value.mean()
        if self.fault == "dtype":
            value = value.double()
        return value.detach() if self.fault == "gradient" else value

    def sample_contexts(self, num: int, seed: int) -> Tensor:
        if self.fault == "seed":
            return torch.rand(num, 1, dtype=torch.double)
        drawn = super().sample_contexts(num, seed)
        return drawn / 2 if self.fault == "law" else drawn

    @property
    def optimal_value(self) -> float:
        return super().optimal_value - (0.1 if self.fault == "optimum" else 0.0)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("rows", "rows_are_independent"),
        ("dtype", "float32_follows_the_decision"),
        ("gradient", "expected_value_is_differentiable"),
        ("seed", "contexts_are_paired_and_independent_of_the_optimiser"),
        ("law", "drawn_contexts_follow_the_true_law"),
        ("optimum", "no_random_decision_beats_the_optimum"),
    ],
)
def test_a_wrong_test_function_is_found(fault: str, test: str) -> None:
    run = getattr(RobustTestFunctionContract(), f"test_{test}")
    run(RobustTestFunctionCase("right", Tent))
    with pytest.raises((AssertionError, RuntimeError)):
        run(RobustTestFunctionCase("wrong", lambda: Tent(fault)))
