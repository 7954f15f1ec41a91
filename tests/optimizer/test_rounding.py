"""Rows match, and lie inside, up to the rounding of their own dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo import Integer, NamedOptimizer, Space
from botorch_drbo.optimizer import RobustOptimizer

# None of the bounds is a float32 number; a tenth is below its float32, .7 is above.
BOUNDS = torch.tensor([[0.1, -0.7], [0.7, 1.1]], dtype=torch.double)
CONTEXTS = torch.tensor([[0.1], [0.7]], dtype=torch.double)
DTYPES = (torch.float32, torch.float64)


def make(dtype: torch.dtype = torch.double, **options: Any) -> RobustOptimizer:
    bounds, contexts = BOUNDS.to(dtype), CONTEXTS.to(dtype)
    return RobustOptimizer("random", bounds, contexts, num_initial=3, **options)


def context(value: float, dtype: torch.dtype = torch.double) -> Tensor:
    return torch.tensor([[value]], dtype=dtype)


def restored(opt: RobustOptimizer) -> RobustOptimizer:
    state = json.loads(json.dumps(opt.state_dict()))
    again = RobustOptimizer.from_state_dict(state)
    assert again.state_dict() == opt.state_dict()
    return again


@pytest.mark.parametrize("first", DTYPES, ids=str)
@pytest.mark.parametrize("second", DTYPES, ids=str)
@pytest.mark.parametrize("run", DTYPES, ids=str)
def test_late_outcome_in_another_dtype(
    run: torch.dtype, first: torch.dtype, second: torch.dtype
) -> None:
    opt = make(run)
    x = opt.ask(2)
    opt.tell(x[:1].to(first), context(0.3, first))
    opt = restored(opt)
    opt.tell(x[:1].to(second), context(0.3, second), 1.0)
    for o in (opt, restored(opt)):
        assert len(o.history.contexts) == 1  # counted once
        assert torch.equal(o.history.X, x[:1])  # to the last digit
        assert torch.equal(o.pending, x[1:])


def test_another_context_is_another_trial() -> None:
    opt = make()
    x = opt.ask(2)
    opt.tell(x[:1], context(0.3))
    opt.tell(x[:1], context(0.3 + 1e-5, torch.float32), 1.0)
    assert len(opt.history.contexts) == 2


@pytest.mark.parametrize("corner", [0, 1], ids=["lower", "upper"])
def test_rounded_bounds_are_inside(corner: int, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with make(journal=path) as opt:
        opt.ask()
        opt.tell(BOUNDS[corner].float(), CONTEXTS[corner].float())
        opt.tell(BOUNDS[corner], CONTEXTS[corner], 1.0)
        history = opt.history
        assert len(history.contexts) == 1
        for columns, box in ((history.X, BOUNDS), (history.C, CONTEXTS)):
            assert (
                (columns >= box[0]) & (columns <= box[1])
            ).all()  # recipes rely on it
            assert torch.allclose(columns, box[corner], rtol=1e-7)
    with RobustOptimizer.resume(path) as again:
        assert again.state_dict() == opt.state_dict()


def test_float64_rows_have_no_slack_of_float32() -> None:
    opt = make()
    x = BOUNDS[1].clone()
    x[0] += 1e-7
    with pytest.raises(InputDataError, match="outside"):
        opt.tell(x, context(0.3), 1.0)


@pytest.mark.parametrize("run", DTYPES, ids=str)
@pytest.mark.parametrize("other", DTYPES, ids=str)
def test_bounds_of_a_resumed_run(
    run: torch.dtype, other: torch.dtype, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    make(run, journal=path).close()
    bounds, contexts = BOUNDS.to(other), CONTEXTS.to(other)
    RobustOptimizer.resume(path, bounds=bounds, context_bounds=contexts).close()
    for wrong in (bounds + 1e-5, bounds[:, :1]):
        with pytest.raises(InputDataError, match="another problem"):
            RobustOptimizer.resume(path, bounds=wrong)


def test_float32_bounds_of_the_context_in_a_float64_run(tmp_path: Path) -> None:
    opt = RobustOptimizer("random", BOUNDS, CONTEXTS.float(), num_initial=1)
    path = tmp_path / "run.jsonl"
    RobustOptimizer.from_state_dict(opt.state_dict(), journal=path).close()
    for contexts in (CONTEXTS, CONTEXTS.float()):
        RobustOptimizer.resume(path, context_bounds=contexts).close()
    for _ in range(2):
        opt.tell(opt.ask(), CONTEXTS[:1], 1.0)
        opt.tell(opt.ask(), CONTEXTS[1:], 1.0)
        opt = restored(opt)  # the next tells are to a run that was resumed
    assert opt.history.t == 4


@pytest.mark.parametrize("of_list", DTYPES, ids=str)
@pytest.mark.parametrize("of_tell", DTYPES, ids=str)
def test_actions(of_list: torch.dtype, of_tell: torch.dtype) -> None:
    unit = torch.rand(9, 2, generator=torch.Generator().manual_seed(0)).double()
    listed = BOUNDS[0] + unit * (BOUNDS[1] - BOUNDS[0])
    opt = make()
    x = opt.ask(actions=listed.to(of_list))
    asked = int((listed - x).norm(dim=-1).argmin())
    other = (asked + 1) % 9
    opt = restored(opt)
    opt.tell(listed[other].to(of_tell), context(0.3), 1.0)  # another of the list
    assert torch.equal(opt.history.X, listed[[other]].to(of_list).double())
    opt.ask(actions=listed.to(of_list))
    with pytest.raises(InputDataError, match="none of the 9 actions"):
        opt.tell((listed[other] + 1e-4).to(of_tell), context(0.3), 1.0)


@pytest.mark.parametrize("first", DTYPES, ids=str)
@pytest.mark.parametrize("second", DTYPES, ids=str)
def test_pending_decision_is_known_in_a_list_of_another_dtype(
    first: torch.dtype, second: torch.dtype
) -> None:
    listed = torch.stack([BOUNDS[0], BOUNDS[1]])
    opt = make()
    x = opt.ask(candidates=listed.to(first))
    z = restored(opt).ask(candidates=listed.to(second))
    assert not torch.allclose(x, z, atol=1e-3)
    assert (
        torch.cat([x, z]).ge(BOUNDS[0]).all() and torch.cat([x, z]).le(BOUNDS[1]).all()
    )


@pytest.mark.parametrize(
    ("moved", "matches"), [(0.0, True), (0.9e-6, True), (1.1e-6, False)]
)
def test_told_within_a_millionth_of_a_side(moved: float, matches: bool) -> None:
    """It is the decision that was asked; what counts is what was told."""
    opt = make()
    x = opt.ask(2)
    executed = x[:1] + moved * (BOUNDS[1] - BOUNDS[0]) * torch.where(x[:1] > 0.4, -1, 1)
    opt.tell(x[:1], context(0.3))
    opt.tell(executed, context(0.3), 1.0)  # completes it, or is another trial
    assert (len(opt.history.contexts) == 1) is matches
    assert torch.equal(opt.history.X, executed)
    assert torch.equal(restored(opt).history.X, executed)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_decision_in_half_precision_is_what_was_executed(dtype: torch.dtype) -> None:
    opt = make()
    x = opt.ask(2)
    opt.tell(x[:1].to(dtype), context(0.3), 1.0)
    assert torch.equal(opt.history.X, x[:1].to(dtype).double())
    assert torch.equal(opt.pending, x[1:])  # it closed the nearest


def test_whole_numbers_of_a_wide_range_differ() -> None:
    """A millionth of the side is a hundred of them."""
    space = Space({"n": Integer(0, 10**8)}, {"c": (0.0, 1.0)})
    opt = NamedOptimizer("random", space, num_initial=0)
    opt.ask(actions={"n": [40, 70]})
    asked = int(opt.pending["n"].iloc[0])
    other = 110 - asked
    opt.tell({"n": asked}, {"c": 0.5})
    opt.tell({"n": other}, {"c": 0.5}, 1.0)  # data from elsewhere
    assert [t.x.item() for t in opt.trials] == [asked, other]
    assert [t.status for t in opt.trials] == ["pending", "complete"]
