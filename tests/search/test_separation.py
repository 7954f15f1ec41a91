"""The next decision stays away from pending ones, by no more than it has to."""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor
from torch.nn import Module

from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.search.separation import SEPARATION, best_apart

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
    candidates: Tensor, pending: Tensor, space: SearchSpace = SPACE, num: int = 256
) -> tuple[Tensor, Tensor]:
    values = Hill()(candidates.unsqueeze(-2))
    x = best_apart(Hill(), candidates, values, pending, pending[:0], space, 0, num)
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
