"""``ask`` with a list of candidates, from the first design to the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer
from tests.products import each_recipe


def grid(num: int = 5) -> Tensor:
    side = torch.linspace(0.0, 1.0, num, dtype=torch.double)
    return torch.cartesian_prod(side, 2.0 * side - 1.0)


def rows_of(x: Tensor, candidates: Tensor) -> list[int]:
    equal = (x.unsqueeze(1) == candidates).all(-1)
    return [int(row.nonzero()[0]) if row.any() else -1 for row in equal]


def rounds(toy: Any, opt: RobustOptimizer, first: int, last: int) -> list[Tensor]:
    stream, asked = toy.contexts(last), []
    for i in range(first, last):
        x = opt.ask(candidates=grid())
        asked.append(x)
        opt.tell(x, stream[i : i + 1], toy.outcome(x, stream[i : i + 1]))
    return asked


def test_design_is_one_shuffle_however_it_is_asked(toy: Any) -> None:
    at_once = toy.make(num_initial=6).ask(6, candidates=grid())
    indices = rows_of(at_once, grid())
    assert -1 not in indices and len(set(indices)) == 6
    opt = toy.make("random", num_initial=6)  # equal seeds, equal designs
    decisions = rounds(toy, opt, 0, 6)
    assert torch.equal(torch.cat(decisions), at_once)
    other = toy.make(num_initial=6, seed=1).ask(6, candidates=grid())
    assert not torch.equal(other, at_once)


def test_design_longer_than_the_list(toy: Any) -> None:
    opt, candidates = toy.make(num_initial=7), grid(2)
    first = opt.ask(3, candidates=candidates)
    second = opt.ask(3, candidates=candidates)
    assert len(set(rows_of(first, candidates))) == 3
    assert len(set(rows_of(second, candidates)) - {-1}) == 3
    assert set(rows_of(torch.cat([first, second]), candidates)) == {0, 1, 2, 3}


def test_list_may_change_between_the_asks(toy: Any) -> None:
    opt = toy.make(num_initial=4)
    for part in grid().split(5):
        assert -1 not in rows_of(opt.ask(2, candidates=part), part)
    assert opt.ask().shape == (1, 2)


def test_batch_across_the_end_of_the_design_is_distinct(toy: Any) -> None:
    opt, candidates = toy.make(num_initial=3), grid(2)
    rounds(toy, opt, 0, 2)
    x = opt.ask(4, candidates=candidates)  # one of design, and all others
    assert sorted(rows_of(x, candidates)) == [0, 1, 2, 3]
    # Everything is pending now: a batch has different rows all the same.
    x = opt.ask(4, candidates=candidates)
    assert sorted(rows_of(x, candidates)) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", each_recipe())
def test_resumed_run_asks_the_same_rows(toy: Any, tmp_path: Path, name: str) -> None:
    whole = rounds(toy, toy.make(name), 0, 5)  # a design of three
    path = tmp_path / "run.jsonl"
    opt = toy.make(name, journal=path)
    assert all(map(torch.equal, rounds(toy, opt, 0, 3), whole))
    opt.close()
    with RobustOptimizer.resume(path) as opt:
        x = opt.ask(candidates=grid())
        assert torch.equal(x, whole[3])
    with RobustOptimizer.resume(path) as opt:  # died between ask and tell
        assert torch.equal(opt.pending, whole[3])
        c = toy.contexts(4)[3:]
        opt.tell(opt.pending, c, toy.outcome(opt.pending, c))
        assert torch.equal(opt.ask(candidates=grid()), whole[4])


def test_recommendation_from_a_list(toy: Any) -> None:
    opt = toy.make(maximize=False)
    rounds(toy, opt, 0, 4)
    assert rows_of(opt.recommend(grid()).x.unsqueeze(0), grid())[0] >= 0
    with pytest.raises(InputDataError, match="empty"):
        opt.recommend(grid()[:0])


@pytest.mark.parametrize("num_rounds", [0, 4])  # in the design, and after it
@pytest.mark.parametrize(
    ("candidates", "q", "error", "text"),
    [
        (grid()[:0], 1, InputDataError, "empty"),
        (grid() + 1.0, 1, InputDataError, "outside"),
        (grid()[:, :1], 1, BotorchTensorDimensionError, "columns"),
        (grid(2), 5, InputDataError, "4 different rows"),
        (grid(), 0, InputDataError, "`q`"),
        (grid().tolist(), 1, InputDataError, "Tensor"),
    ],
)
def test_bad_lists_change_nothing(
    toy: Any, num_rounds: int, candidates, q: int, error: type, text: str
) -> None:
    opt = toy.make()
    rounds(toy, opt, 0, num_rounds)
    before = opt.state_dict()
    with pytest.raises(error, match=text):
        opt.ask(q, candidates=candidates)
    assert opt.state_dict() == before
