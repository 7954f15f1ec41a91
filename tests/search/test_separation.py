"""The next decision stays away from pending ones, by no more than it has to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor
from torch.nn import Module

from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.search.candidates import SAME, SEPARATION, best_apart

BOX = torch.tensor([[0.0, 100.0], [2.0, 300.0]], dtype=torch.double)
SPACE = SearchSpace(BOX, torch.tensor([[0.0], [1.0]], dtype=torch.double))
TOP = torch.tensor([[1.0, 200.0]], dtype=torch.double)


class Hill(AcquisitionFunction):
    """Highest at ``TOP``; it falls with the distance in sides of the box."""

    def __init__(self) -> None:
        Module.__init__(self)

    def forward(self, X: Tensor) -> Tensor:
        return -((X.squeeze(-2) - TOP) / (BOX[1] - BOX[0])).square().sum(-1)


def chosen(
    candidates: Tensor,
    pending: Tensor,
    space: SearchSpace = SPACE,
    num: int = 256,
    *,
    failed: bool = False,
) -> tuple[Tensor, Tensor]:
    """The next decision, and how far it is from those pending, or ``failed``."""
    values = Hill()(candidates.unsqueeze(-2))
    parts = (pending[:0], pending) if failed else (pending, pending[:0])
    x = best_apart(Hill(), candidates, values, *parts, space, 0, num)
    return x, ((x - pending) / (BOX[1] - BOX[0])).abs().amax(-1).amin()


def test_the_best_candidate_where_nothing_is_pending_near_it() -> None:
    other = torch.tensor([[0.2, 120.0]]).double()
    candidates = torch.cat([other, TOP])
    assert torch.equal(chosen(candidates, other)[0], TOP)
    values = Hill()(candidates.unsqueeze(-2))
    alone = best_apart(Hill(), candidates, values, other[:0], other[:0], SPACE, 0, 256)
    assert torch.equal(alone, TOP)
    # Apart in one coordinate is apart: 1.5 hundredths of a side.
    nearby = TOP + torch.tensor([0.03, 0.0]).double()
    assert torch.equal(chosen(candidates, nearby)[0], TOP)


def test_a_candidate_apart_is_not_replaced_by_a_better_sample() -> None:
    aside = torch.tensor([[1.5, 220.0]]).double()
    assert torch.equal(chosen(aside, TOP)[0], aside)


def test_beside_a_pending_top_the_next_one_is_near_and_apart() -> None:
    x, gap = chosen(TOP, TOP, num=32)  # those over the whole box are .17 apart
    assert SEPARATION < gap < 0.02
    assert (x >= BOX[0]).all() and (x <= BOX[1]).all()


def test_apart_from_all_that_is_pending() -> None:
    pending = torch.cat([TOP, TOP + torch.tensor([0.02, 0.0]).double()])
    x, gap = chosen(TOP, pending)
    assert gap > SEPARATION
    assert Hill()(x.unsqueeze(-2)).item() > -2 * 0.05**2


def test_a_candidate_apart_is_taken_if_it_is_better_than_the_samples() -> None:
    # The second candidate lies nearer to the top than any sample that is apart may be.
    second = TOP + torch.tensor([2.0 * 0.0101, 0.0]).double()
    x, _ = chosen(torch.cat([TOP, second]), TOP)
    assert torch.equal(x, second)


def test_a_box_full_of_pending_decisions_leaves_the_widest_gap() -> None:
    side = torch.linspace(0.0, 1.0, 60, dtype=torch.double)  # .0085 from the widest gap
    unit = torch.cartesian_prod(side, side)
    pending = BOX[0] + unit * (BOX[1] - BOX[0])
    _x, gap = chosen(pending[:2], pending)
    assert 0.0075 < gap < SEPARATION


def test_decisions_of_their_kinds_stay_so() -> None:
    whole = tuple(map(float, range(100, 301, 20)))
    space = SearchSpace(BOX, SPACE.context_bounds, discrete={1: whole})
    x, gap = chosen(TOP, TOP, space)
    assert gap > SEPARATION
    assert x[0, 1].item() in whole


def test_a_failed_decision_excludes_itself_alone() -> None:
    x, gap = chosen(TOP, TOP, failed=True)
    assert SAME < gap < 1.5 * SAME
    again, gap = chosen(TOP, torch.cat([TOP, x]), failed=True)
    assert SAME < gap < 2 * SAME and not torch.equal(again, x)
    nearby = TOP + torch.tensor([0.01, 0.0]).double()  # half a hundredth of a side
    assert torch.equal(chosen(TOP, nearby, failed=True)[0], TOP)
    # A hundredth around what is pending is left alone, whatever has failed.
    values = Hill()(TOP.unsqueeze(-2))
    x = best_apart(Hill(), TOP, values, TOP, nearby, SPACE, 0, 256)
    assert ((x - TOP) / (BOX[1] - BOX[0])).abs().amax() > SEPARATION


class Table(AcquisitionFunction):
    """The value of each decision of a list; minus infinity for what is none of it."""

    def __init__(self, rows: Tensor, values: Tensor) -> None:
        Module.__init__(self)
        self.rows, self.values = rows, values

    def forward(self, X: Tensor) -> Tensor:
        equal = (self.rows == X).all(-1)  # b x m
        return torch.where(equal, self.values, -torch.inf).amax(-1)


KINDS: dict[str, Sequence[float]] = {
    "category": range(5),
    "whole numbers": range(5),
    "ordinal": (0.0, 0.3, 1.0, 3.5, 4.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_pattern_of_pending_and_failed_values(kind: str, size: int) -> None:
    """The best that is free; once each is taken the best of all."""
    listed, names = KINDS[kind][:size], kind == "category"
    rows = torch.tensor(list(listed), dtype=torch.double).unsqueeze(-1)
    space = SearchSpace(
        rows[[0, -1]],
        SPACE.context_bounds,
        discrete={} if names else {0: listed},
        categories={0: size} if names else {},
    )
    worth = torch.tensor([2.0, 5.0, 1.0, 4.0, 3.0]).double()[:size]
    acqf = Table(rows, worth)
    for pattern in product("-pf", repeat=size):
        masks = [torch.tensor([s == kind for s in pattern]) for kind in "pf"]
        free = ~(masks[0] | masks[1])
        free = free if free.any() else ~free
        expected = rows[torch.where(free, worth, -torch.inf).argmax()]
        pending, failed = (rows[mask] for mask in masks)
        x = best_apart(acqf, rows, worth, pending, failed, space, 0, 16)
        assert x.item() == expected.item(), pattern


def test_names_know_no_distance() -> None:
    """Of 300 names those next to a pending one are as far from it as all others."""
    rows = torch.arange(300.0, dtype=torch.double).unsqueeze(-1)
    space = SearchSpace(rows[[0, -1]], SPACE.context_bounds, categories={0: 300})
    values = -(rows - 150).abs().squeeze(-1)
    acqf = Table(rows, values)
    x = best_apart(acqf, rows, values, rows[[150]], rows[:0], space, 0, 16)
    assert x.item() in (149, 151)


class Peak(AcquisitionFunction):
    """Highest where all is 5; the last column matters least, and has a ranking."""

    def __init__(self) -> None:
        Module.__init__(self)

    def forward(self, X: Tensor) -> Tensor:
        numbers, last = (X.squeeze(-2) - 5.0).split([5, 1], -1)
        of_last = torch.where(last == 0.0, 0.0, 0.1 * last + 0.8)  # 0 comes second
        return -numbers.square().sum(-1) - of_last.squeeze(-1)


def test_beside_a_failed_decision_of_too_many_to_be_listed() -> None:
    """Five columns of ten numbers and one of ten names: the best is a step away."""
    top, side = torch.full((1, 6), 5.0).double(), torch.zeros(2, 6).double()
    side[1] = 9.0
    numbers = {j: range(10) for j in range(5)}
    space = SearchSpace(
        side, SPACE.context_bounds, discrete=numbers, categories={5: 10}
    )

    def beside(failed: Tensor) -> list[float]:
        values = Peak()(top.unsqueeze(-2))
        x = best_apart(Peak(), top, values, top[:0], failed, space, 0, 32)
        return x.squeeze().tolist()

    assert beside(top) == [5, 5, 5, 5, 5, 0]
    names = top.repeat(10, 1)
    names[:, -1] = torch.arange(10.0)
    steps = (torch.tensor(beside(names)) - 5.0).abs()
    assert steps.sum() == 1 and steps[-1] == 0
