"""A resumed run is the run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import ContextSet
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.schedules import InverseSquareRoot
from tests.optimizer.journals import resume_quietly
from tests.products import each_recipe


@pytest.mark.parametrize("name", each_recipe())
def test_resumed_run_asks_what_the_first_would_have_asked(
    toy: Any, path: Path, name: str
) -> None:
    whole = toy.run(toy.make(name), 0, 5)  # a design of three
    with toy.make(name, journal=path) as opt:
        first = toy.run(opt, 0, 4)
    with resume_quietly(path) as opt:
        second = toy.run(opt, 4, 5)
        assert opt.history.t == 5
    pairs = zip(whole, first + second, strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_everything_survives(toy: Any, path: Path) -> None:
    reference = ContextSet(torch.rand(3, 1).double(), torch.rand(3).double())
    opt = toy.make(
        "wdrbo",
        journal=path,
        seed=12,
        maximize=False,
        radius=InverseSquareRoot(1 / 3),
        beta=1 / 7,
        reference=reference,
    )
    x = opt.ask(3)
    opt.tell(x[0], toy.contexts(1))
    opt.tell(x[1] * (1 - 1e-16), torch.tensor([1 / 3]).double(), 0.1 + 0.2)
    opt.tell(x[2], torch.tensor([2.5e-300]).double(), -1e140, closes_pending=False)
    opt.close()
    again = resume_quietly(path)
    assert again.state_dict() == opt.state_dict()
    for name in ("X", "C", "Y", "contexts"):
        assert torch.equal(getattr(again.history, name), getattr(opt.history, name))
    assert torch.equal(again.pending, opt.pending)
    assert torch.equal(again.space.bounds, toy.bounds)


def test_float32_is_exact(toy: Any, path: Path) -> None:
    bounds, context_bounds = toy.bounds.float(), toy.context_bounds.float()
    opt = RobustOptimizer("random", bounds, context_bounds, journal=path)
    x = opt.ask(2)
    opt.tell(x, torch.rand(2, 1), torch.rand(2))
    opt.close()
    again = resume_quietly(path)
    assert again.history.X.dtype == torch.float32
    assert torch.equal(again.history.X, x)
    assert torch.equal(again.history.Y, opt.history.Y)
    assert torch.equal(
        again.ask(), RobustOptimizer.from_state_dict(opt.state_dict()).ask()
    )


def test_ask_that_never_reached_the_user_is_pending(finished: Path) -> None:
    opt = resume_quietly(finished)
    assert opt.pending.shape == (1, 2)
    assert opt.history.t == 3


def test_run_goes_on_after_a_repair(toy: Any, path: Path) -> None:
    whole = toy.run(toy.make("erbo"), 0, 5)
    with toy.make("erbo", journal=path) as opt:
        toy.run(opt, 0, 4)
        opt.ask()
    path.write_bytes(path.read_bytes()[:-20])  # torn in the middle of that ask
    with pytest.warns(BotorchWarning, match="cut off"):
        opt = RobustOptimizer.resume(path)
    assert torch.equal(opt.ask(), whole[4])


def test_journal_of_another_problem(toy: Any, finished: Path) -> None:
    for name in ("bounds", "context_bounds"):
        with pytest.raises(InputDataError, match=f"`{name}`.*another problem"):
            RobustOptimizer.resume(finished, **{name: 2 * getattr(toy, name)})
    resume_quietly(
        finished, bounds=toy.bounds, context_bounds=toy.context_bounds.float()
    )


@pytest.mark.parametrize("name", ["wdrbo", "gp_ucb", "stable_opt"])
def test_resumed_run_asks_the_same_under_any_default_dtype(
    toy: Any, path: Path, name: str
) -> None:
    whole = toy.run(toy.make(name), 0, 5)
    recommended = toy.make(name)
    toy.run(recommended, 0, 4)
    before = torch.get_default_dtype()
    try:
        with toy.make(name, journal=path) as opt:
            first = toy.run(opt, 0, 2)
        for dtype, last in ((torch.float64, 4), (torch.float32, 5)):
            torch.set_default_dtype(dtype)
            with resume_quietly(path) as opt:
                assert opt.history.X.dtype == torch.float64
                first += toy.run(opt, len(first), last)
                if last == 4:
                    best = opt.recommend()
            assert torch.get_default_dtype() == dtype
        torch.set_default_dtype(torch.float64)
        again = toy.run(toy.make(name), 0, 5)
    finally:
        torch.set_default_dtype(before)
    assert all(torch.equal(a, b) for a, b in zip(whole, first, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))
    assert torch.equal(best.x, recommended.recommend().x)


def test_state_goes_on_in_a_new_journal(toy: Any, path: Path) -> None:
    opt = toy.make("random")
    toy.run(opt, 0, 2)
    with RobustOptimizer.from_state_dict(opt.state_dict(), journal=path) as again:
        x = again.ask()
    assert torch.equal(x, opt.ask())
    assert resume_quietly(path).state_dict() == opt.state_dict()
