"""Late contexts, late outcomes, other decisions than asked: who belongs to whom."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.optimizer import RobustOptimizer


def context(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.double)


@pytest.fixture
def opt(toy: Any) -> RobustOptimizer:
    return toy.make("random")


def test_plain_tell(opt: RobustOptimizer) -> None:
    x = opt.ask()
    opt.tell(x, context(1.0), 2.0)
    history = opt.history
    assert torch.equal(history.X, x)
    assert history.C.tolist() == history.contexts.tolist() == [[1.0]]
    assert history.Y.tolist() == [[2.0]]
    assert opt.pending.shape == (0, 2)


@pytest.mark.parametrize(
    "y",
    [
        torch.tensor([1.0, 2.0]),
        torch.tensor([[1.0], [2.0]]),
    ],
    ids=["m", "m x 1"],
)
def test_shapes_of_outcomes(opt: RobustOptimizer, y: Tensor) -> None:
    x = opt.ask(2)
    opt.tell(x, torch.tensor([[3.0], [4.0]]), y)
    assert opt.history.Y.tolist() == [[1.0], [2.0]]
    assert opt.history.C.tolist() == [[3.0], [4.0]]


@pytest.mark.parametrize(
    "y",
    [5.0, 5, torch.tensor(5.0), torch.tensor([5.0]), torch.tensor([[5.0]])],
    ids=repr,
)
def test_scalar_outcomes(opt: RobustOptimizer, y: Tensor | float) -> None:
    opt.tell(opt.ask()[0], context(1.0), y)
    assert opt.history.Y.tolist() == [[5.0]]


def test_outcomes_out_of_order(opt: RobustOptimizer) -> None:
    x = opt.ask(3)
    opt.tell(x[2], context(2.0), 20.0)
    opt.tell(x[0], context(0.0), 0.0)
    assert torch.equal(opt.pending, x[1:2])
    assert torch.equal(opt.history.X, x[[2, 0]])
    assert opt.history.Y.flatten().tolist() == [20.0, 0.0]


def test_late_outcome_completes_its_record(opt: RobustOptimizer) -> None:
    x = opt.ask(2)
    opt.tell(x[0], context(7.0))
    assert opt.history.t == 0
    assert opt.history.contexts.tolist() == [[7.0]]
    assert torch.equal(opt.pending, x)  # still waiting for its outcome
    opt.tell(x[0], context(7.0), 1.0)
    assert opt.history.t == 1
    assert opt.history.contexts.tolist() == [[7.0]]  # counted once
    assert torch.equal(opt.pending, x[1:])


def test_contexts_and_outcomes_arrive_crosswise(opt: RobustOptimizer) -> None:
    x = opt.ask(3)
    for k in (2, 0, 1):
        opt.tell(x[k], context(k))
    for k in (1, 2, 0):
        opt.tell(x[k], context(k), 10.0 * k)
    assert opt.history.contexts.flatten().tolist() == [2.0, 0.0, 1.0]
    assert opt.history.C.flatten().tolist() == [1.0, 2.0, 0.0]
    assert opt.history.Y.flatten().tolist() == [10.0, 20.0, 0.0]
    assert len(opt.pending) == 0


def test_late_outcomes_of_several_rows(opt: RobustOptimizer) -> None:
    x = opt.ask(3)
    c = torch.tensor([[1.0], [2.0], [3.0]])
    opt.tell(x[:2], c[:2])
    # The third row is new, the other two complete, in another order.
    opt.tell(x[[2, 1, 0]], c[[2, 1, 0]], torch.tensor([30.0, 20.0, 10.0]))
    assert opt.history.contexts.flatten().tolist() == [1.0, 2.0, 3.0]
    assert opt.history.Y.flatten().tolist() == [30.0, 20.0, 10.0]
    assert len(opt.pending) == 0


def test_same_decision_in_another_context_is_another_trial(
    opt: RobustOptimizer,
) -> None:
    x = opt.ask(2)
    opt.tell(x[0], context(7.0))
    opt.tell(x[0], context(8.0), 1.0)  # closes the nearest without a context: x[1]
    assert torch.equal(opt.pending, x[:1])
    assert opt.history.contexts.flatten().tolist() == [7.0, 8.0]
    opt.tell(x[0], context(7.0), 2.0)
    assert len(opt.pending) == 0
    assert opt.history.contexts.flatten().tolist() == [7.0, 8.0]


def test_executed_decision_differs(opt: RobustOptimizer, toy: Any) -> None:
    x = opt.ask(3)
    moved = (x[1] + torch.tensor([0.001, -0.001])).clamp(*toy.bounds)
    opt.tell(moved, context(1.0), 1.0)
    assert torch.equal(opt.pending, x[[0, 2]])
    assert torch.equal(opt.history.X, moved.unsqueeze(0))  # what was executed


def test_executed_decision_is_pending_once_its_context_is_known(
    opt: RobustOptimizer,
) -> None:
    x = opt.ask()
    moved = x[0] * 0.9
    opt.tell(moved, context(1.0))
    assert torch.equal(opt.pending, moved.unsqueeze(0))
    opt.tell(moved, context(1.0), 3.0)
    assert len(opt.pending) == 0


def test_nearest_is_in_sides_of_the_box(toy: Any) -> None:
    # One side is a thousand times the other: in raw units the far one would be near.
    bounds = torch.tensor([[0.0, 0.0], [1000.0, 1.0]], dtype=torch.double)
    opt = RobustOptimizer("random", bounds, toy.context_bounds, num_initial=0)
    x = opt.ask(2)
    executed = torch.stack([0.6 * x[0, 0] + 0.4 * x[1, 0], x[1, 1]])
    gaps = (executed - x) / torch.tensor([1000.0, 1.0])
    nearest = int(gaps.norm(dim=-1).argmin())
    raw = int((executed - x).norm(dim=-1).argmin())
    assert nearest != raw, "choose another seed: this one tests nothing"
    opt.tell(executed, context(1.0), 1.0)
    assert torch.equal(opt.pending, x[[1 - nearest]])


def test_exact_rows_go_before_near_ones(opt: RobustOptimizer) -> None:
    x = opt.ask(2)
    near = x[0] * (1 - 1e-4)  # nearest to x[0], which the second row equals
    opt.tell(torch.stack([near, x[0]]), torch.tensor([[1.0], [2.0]]))
    opt.tell(x[0], context(2.0), 1.0)
    assert torch.equal(opt.pending, near.unsqueeze(0))


def test_equal_up_to_rounding(opt: RobustOptimizer, toy: Any) -> None:
    x = opt.ask(2)
    rounded = x[0] + 5e-10 * (toy.bounds[1] - toy.bounds[0])
    opt.tell(rounded, context(1.0))
    opt.tell(x[0], context(1.0 + 5e-9), 1.0)  # 5e-10 of the side of the context box
    assert opt.history.contexts.tolist() == [[1.0]]
    assert torch.equal(opt.pending, x[1:])


def test_data_from_elsewhere(opt: RobustOptimizer) -> None:
    x = opt.ask()
    opt.tell(x, torch.tensor([[1.0]]), 1.0, closes_pending=False)
    assert torch.equal(opt.pending, x)
    opt.tell(x[0] * 0.5, context(2.0), closes_pending=False)
    assert torch.equal(opt.pending, torch.cat([x, x * 0.5]))
    opt.tell(x[0] * 0.5, context(2.0), 2.0, closes_pending=False)
    assert torch.equal(opt.pending, x)
    assert opt.history.contexts.flatten().tolist() == [1.0, 2.0]


def test_elsewhere_does_not_complete_a_decision_that_was_asked(
    opt: RobustOptimizer,
) -> None:
    x = opt.ask()
    opt.tell(x[0], context(1.0))
    opt.tell(x[0], context(1.0), 1.0, closes_pending=False)
    assert torch.equal(opt.pending, x)
    assert opt.history.contexts.flatten().tolist() == [1.0, 1.0]  # two trials


def test_data_without_any_ask(opt: RobustOptimizer) -> None:
    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.double)
    opt.tell(x, torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 2.0]))
    assert opt.history.t == 2
    assert len(opt.pending) == 0


def test_told_tensors_are_copied(opt: RobustOptimizer) -> None:
    x, c, y = opt.ask(), torch.tensor([[1.0]]).double(), torch.tensor([[2.0]]).double()
    kept = x.clone()
    opt.tell(x, c, y)
    x.zero_(), c.zero_(), y.zero_()
    assert torch.equal(opt.history.X, kept)
    assert opt.history.C.item() == 1.0 and opt.history.Y.item() == 2.0


def test_tensors_with_gradients_are_welcome(opt: RobustOptimizer) -> None:
    x = opt.ask().requires_grad_()
    opt.tell(x, context(1.0).requires_grad_(), x.sum())
    assert not opt.history.X.requires_grad and not opt.history.Y.requires_grad


def test_tensors_that_are_changed_later_are_no_matter(opt: RobustOptimizer) -> None:
    actions = torch.tensor([[0.2, 0.3], [0.8, -0.5]], dtype=torch.double)
    forecast = ContextSet(torch.tensor([[2.0], [3.0]]).double())
    x = opt.ask(2)
    listed = opt.ask(actions=actions, context_set=forecast)
    arguments = {
        "x": x[:1].clone(),
        "c": context(1.0).unsqueeze(0),
        "y": context(2.0),
        "y_variance": context(0.25),
    }
    opt.tell(**arguments)
    before = opt.state_dict()["events"]
    history, pending = opt.history.X.clone(), opt.pending.clone()
    for tensor in (x, listed, actions, forecast.points, *arguments.values()):
        tensor.fill_(7.0)
    assert opt.state_dict()["events"] == before
    assert torch.equal(opt.history.X, history)
    assert torch.equal(opt.pending, pending)
