"""``ask(actions=...)``: a round's own set, which binds what may be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer


def rounds(number: int, size: int = 6) -> Tensor:
    """The action set of a round, ``size x 2``, inside the toy's bounds."""
    generator = torch.Generator().manual_seed(number)
    unit = torch.rand(size, 2, generator=generator, dtype=torch.double)
    return unit * torch.tensor([1.0, 2.0]) - torch.tensor([0.0, 1.0])


def among(x: Tensor, actions: Tensor) -> bool:
    return bool((x == actions).all(-1).any())


def play(toy: Any, opt: RobustOptimizer, first: int, last: int) -> list[Tensor]:
    stream, asked = toy.contexts(last), []
    for i in range(first, last):
        x = opt.ask(actions=rounds(i))
        assert among(x, rounds(i))
        asked.append(x)
        opt.tell(x, stream[i : i + 1], toy.outcome(x, stream[i : i + 1]))
    return asked


def test_actions_are_candidates(toy: Any) -> None:
    binding, free = toy.make(), toy.make()
    for i, x in enumerate(play(toy, binding, 0, 5)):
        assert torch.equal(x, free.ask(candidates=rounds(i)))
        c = toy.contexts(5)[i : i + 1]
        free.tell(x, c, toy.outcome(x, c))


def test_another_action_of_the_round_may_be_told(toy: Any) -> None:
    opt = toy.make()
    x = opt.ask(actions=rounds(0))
    other = next(row for row in rounds(0) if not torch.equal(row, x[0]))
    opt.tell(other, toy.contexts(1), 0.0)
    assert torch.equal(opt.history.X[0], other) and len(opt.pending) == 0


@pytest.mark.parametrize("outcome", [0.0, None])
def test_a_decision_outside_the_set_is_refused(toy: Any, outcome: object) -> None:
    opt = toy.make()
    x = opt.ask(actions=rounds(0))
    before = opt.state_dict()
    with pytest.raises(InputDataError, match="none of the 6 actions"):
        opt.tell(torch.tensor([0.5, 0.5]).double(), toy.contexts(1), outcome)
    assert opt.state_dict() == before
    elsewhere = torch.tensor([0.5, 0.5]).double()
    opt.tell(elsewhere, toy.contexts(1), 0.0, closes_pending=False)
    assert torch.equal(opt.pending, x)
    opt.tell(x, toy.contexts(1), 0.0)
    free = toy.make()
    free.ask(candidates=rounds(0))  # a list that does not bind
    free.tell(torch.tensor([0.5, 0.5]).double(), toy.contexts(1), 0.0)


def test_the_set_survives_in_the_journal(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = play(toy, toy.make(), 0, 5)
    with toy.make(journal=path) as opt:
        assert all(map(torch.equal, play(toy, opt, 0, 4), whole))
        x = opt.ask(actions=rounds(4))
    with RobustOptimizer.resume(path) as opt:
        assert torch.equal(opt.pending, whole[4]) and torch.equal(x, whole[4])
        with pytest.raises(InputDataError, match="none of the 6 actions"):
            opt.tell(torch.tensor([0.5, 0.5]).double(), toy.contexts(1), 0.0)
        state = opt.state_dict()
    again = RobustOptimizer.from_state_dict(state)
    with pytest.raises(InputDataError, match="none of the 6 actions"):
        again.tell(torch.tensor([0.5, 0.5]).double(), toy.contexts(1), 0.0)


def test_bad_sets(toy: Any) -> None:
    opt = toy.make()
    with pytest.raises(InputDataError, match="one list"):
        opt.ask(candidates=rounds(0), actions=rounds(0))
    with pytest.raises(InputDataError, match="outside"):
        opt.ask(actions=rounds(0) + 5.0)
    with pytest.raises(InputDataError, match="empty"):
        opt.ask(actions=rounds(0)[:0])
    with pytest.raises(InputDataError, match="6 different rows"):
        opt.ask(7, actions=rounds(0))
    assert opt.state_dict()["events"] == []
