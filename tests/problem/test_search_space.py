"""SearchSpace and History: what is refused, and the joint bounds."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from botorch_drbo.problem import History, SearchSpace

BOUNDS = torch.tensor([[0.0, -1.0], [1.0, 1.0]], dtype=torch.double)
CONTEXT_BOUNDS = torch.tensor([[5.0], [6.0]], dtype=torch.double)


def test_space_sizes_and_joint_bounds() -> None:
    space = SearchSpace(BOUNDS, CONTEXT_BOUNDS)
    assert (space.d_x, space.d_c) == (2, 1)
    expected = torch.tensor([[0.0, -1.0, 5.0], [1.0, 1.0, 6.0]], dtype=torch.double)
    assert torch.equal(space.joint_bounds, expected)


def test_space_refuses_mixed_dtypes() -> None:
    with pytest.raises(InputDataError, match="one dtype"):
        SearchSpace(BOUNDS, CONTEXT_BOUNDS.float())


def test_history_counts_outcomes_not_contexts() -> None:
    history = History(
        X=torch.rand(3, 2),
        C=torch.rand(3, 1),
        Y=torch.rand(3, 1),
        contexts=torch.rand(5, 1),
    )
    assert history.t == 3


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("X", torch.rand(4, 2), BotorchTensorDimensionError, "t x d_x"),
        ("C", torch.rand(3), BotorchTensorDimensionError, "matrix"),
        ("Y", torch.rand(3, 2), BotorchTensorDimensionError, "t x 1"),
        ("Y", torch.tensor([[0.0], [float("nan")], [1.0]]), InputDataError, "NaN"),
        ("contexts", torch.rand(3, 2), BotorchTensorDimensionError, "s x 1"),
    ],
)
def test_history_refuses(
    name: str, value: torch.Tensor, error: type[Exception], message: str
) -> None:
    good = {
        "X": torch.rand(3, 2),
        "C": torch.rand(3, 1),
        "Y": torch.rand(3, 1),
        "contexts": torch.rand(3, 1),
    }
    History(**good)
    with pytest.raises(error, match=message):
        History(**{**good, name: value})
