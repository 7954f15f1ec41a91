"""A mistaken row is taken back, a failed trial is closed: neither ends a run."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.optimizer.decisions import which_may_meet
from tests.products import FEW, covering


def context(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.double)


@pytest.fixture
def opt(toy: Any) -> RobustOptimizer:
    return toy.make("random")


def statuses(opt: RobustOptimizer) -> list[str]:
    return [trial.status for trial in opt.trials]


def assert_same(opt: RobustOptimizer, other: RobustOptimizer) -> None:
    """Equal in all that later decisions depend on."""
    for name in ("X", "C", "Y", "contexts"):
        assert torch.equal(getattr(opt.history, name), getattr(other.history, name))
    assert torch.equal(opt.pending, other.pending)


def test_trials_are_numbered_as_they_come(opt: RobustOptimizer) -> None:
    x = opt.ask(2)
    opt.tell(x[1], context(1.0), 10.0)
    opt.tell(x[0] * 0.5, context(2.0), 20.0, closes_pending=False)
    opt.tell(x[0], context(3.0))
    trials = opt.trials
    assert [trial.number for trial in trials] == [0, 1, 2]
    assert [trial.status for trial in trials] == ["pending", "complete", "complete"]
    assert [trial.y for trial in trials] == [None, 10.0, 20.0]
    assert torch.equal(torch.stack([t.x for t in trials]), torch.cat([x, x[:1] * 0.5]))
    assert trials[2].asked is None
    trials[0].x.zero_()  # a copy
    assert torch.equal(opt.pending, x[:1])


def test_withdrawn_outcome_can_be_told_again(opt: RobustOptimizer) -> None:
    x = opt.ask(2)
    opt.tell(x[0], context(1.0), 120.0)
    opt.withdraw(0)
    assert opt.history.t == 0 and len(opt.history.contexts) == 0
    assert torch.equal(opt.pending, x)
    opt.tell(x[0], context(1.0), 1.2)
    assert opt.history.Y.tolist() == [[1.2]]
    assert opt.history.contexts.tolist() == [[1.0]]
    assert torch.equal(opt.pending, x[1:])


def test_mistyped_decision_gives_back_the_one_that_it_closed(
    opt: RobustOptimizer,
) -> None:
    x = opt.ask(2)
    opt.tell(x[0] * 0.9, context(1.0), 1.0)
    opt.withdraw(0)
    assert torch.equal(opt.pending, x)


def test_cancelled_decision(opt: RobustOptimizer) -> None:
    x = opt.ask(3)
    opt.withdraw(1)
    assert torch.equal(opt.pending, x[[0, 2]])
    assert statuses(opt) == ["pending", "withdrawn", "pending"]
    # The design goes on behind the decisions that were asked.
    assert not (opt.ask() == x).all(-1).any()


def test_cancelled_decision_that_was_executed_after_all(opt: RobustOptimizer) -> None:
    x = opt.ask(2)
    opt.withdraw(1)
    opt.tell(x[1], context(2.0), 20.0)  # closes none of the others
    assert torch.equal(opt.pending, x[:1])
    assert statuses(opt) == ["pending", "complete"]


def test_told_trial_is_withdrawn_twice_to_cancel_it(opt: RobustOptimizer) -> None:
    opt.tell(opt.ask(), context(1.0), 1.0)
    opt.withdraw(0)
    opt.withdraw(0)
    assert opt.history.t == len(opt.pending) == len(opt.history.contexts) == 0
    with pytest.raises(InputDataError, match="withdrawn already"):
        opt.withdraw(0)


def test_data_from_elsewhere_are_gone(opt: RobustOptimizer) -> None:
    x = opt.ask()
    opt.tell(x * 0.5, context(1.0), 1.0, closes_pending=False)
    opt.tell(x * 0.6, context(2.0), closes_pending=False)
    opt.withdraw(1)
    opt.withdraw(2)
    assert opt.history.t == len(opt.history.contexts) == 0
    assert torch.equal(opt.pending, x)
    opt.tell(x * 0.5, context(1.0), 2.0, closes_pending=False)
    assert statuses(opt) == ["pending", "withdrawn", "withdrawn", "complete"]


@pytest.mark.parametrize("trial", [5, -1, True, 0.0, "0", None])
def test_no_such_trial(opt: RobustOptimizer, trial: Any) -> None:
    opt.ask()
    state = opt.state_dict()
    with pytest.raises(InputDataError, match="trial"):
        opt.withdraw(trial)
    assert opt.state_dict() == state


def test_failed_trial_counts_its_context_and_is_closed(opt: RobustOptimizer) -> None:
    x = opt.ask(3)
    opt.tell(x[0], context(1.0))  # its context is told at once ...
    opt.tell(x[0], context(1.0), failed=True)  # ... and counts once
    opt.tell(x[1], context(2.0), failed=True)
    assert opt.history.contexts.tolist() == [[1.0], [2.0]]
    assert opt.history.t == 0
    assert torch.equal(opt.pending, x[2:])
    assert statuses(opt) == ["failed", "failed", "pending"]
    opt.withdraw(0)  # it came after all
    opt.tell(x[0], context(1.0), 1.0)
    assert opt.history.contexts.tolist() == [[2.0], [1.0]]
    assert statuses(opt) == ["complete", "failed", "pending"]


def test_failed_trial_has_no_outcome(opt: RobustOptimizer) -> None:
    x = opt.ask()
    with pytest.raises(InputDataError, match="`y` and `failed=True`"):
        opt.tell(x, context(1.0), 1.0, failed=True)
    with pytest.raises(InputDataError, match="`failed` must be"):
        opt.tell(x, context(1.0), failed="yes")  # pyright: ignore


@pytest.mark.parametrize("name", ["erbo", "wdrbo_exact", "gp_ucb"])
def test_a_failed_decision_is_not_asked_again(name: str) -> None:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    few = {"surrogate": "botorch", "num_restarts": 2, "raw_samples": 16}
    opt = RobustOptimizer(name, unit, unit, num_initial=0, **few)
    X = torch.linspace(0.1, 0.9, 6, dtype=torch.double).unsqueeze(-1)
    C = X.flip(0)
    opt.tell(X, C, -(X - 0.37).square() + 0.1 * C)
    failed: list[float] = []
    for _ in range(3):
        x = opt.ask()
        failed.append(x.item())
        opt.tell(x, C[:1], failed=True)
    gaps = torch.tensor(failed).diff().abs()
    assert (gaps > 1e-3).all() and abs(failed[2] - failed[0]) > 1e-3, failed


def test_a_decision_that_failed_in_another_context_may_be_asked_in_this_one(
    opt: RobustOptimizer,
) -> None:
    x = opt.ask(2)
    for row, value in zip(x, (1.0, 2.0), strict=True):
        opt.tell(row, context(value), failed=True)
    for known, rows in [(None, x), (1.0, x[:1]), (2.0, x[1:]), (3.0, x[:0])]:
        given = None if known is None else context(known)
        assert torch.equal(which_may_meet(opt.trials, given, opt.space), rows)


def test_failed_decisions_of_the_design_are_made_up_for(toy: Any) -> None:
    opt = toy.make(num_initial=2)
    other = toy.make(num_initial=3)
    for i in range(3):
        x, z = opt.ask(), other.ask()
        assert torch.equal(x, z)
        if i == 0:
            opt.tell(x, context(1.0), failed=True)
            other.tell(z, context(1.0), 1.0)
        else:
            opt.tell(x, context(1.0), 1.0)
            other.tell(z, context(1.0), 1.0)


@pytest.mark.parametrize("name", ["erbo", "phased_gp_us"])
def test_a_withdrawn_row_does_not_matter(toy: Any, name: str) -> None:
    plain, mistaken = toy.make(name, num_initial=5), toy.make(name, num_initial=5)
    toy.run(plain, 0, 5)
    for i, c in enumerate(toy.contexts(5)):
        x = mistaken.ask()
        if i == 2:
            mistaken.tell(x, c, 1e6)
            mistaken.withdraw(2)
        if i == 4:
            mistaken.tell(x * 0.3, c, 1e6, closes_pending=False)
            mistaken.withdraw(5)
        mistaken.tell(x, c, toy.outcome(x, c.unsqueeze(0)))
    assert_same(plain, mistaken)
    assert torch.equal(plain.ask(), mistaken.ask())
    assert torch.equal(plain.recommend().x, mistaken.recommend().x)


def eventful(toy: Any, **options: Any) -> RobustOptimizer:
    """A run with every kind of event."""
    opt = toy.make(**options)
    toy.run(opt, 0, 3)
    x = opt.ask(3)
    opt.tell(x[0], context(1.0), failed=True)
    opt.tell(x[1].float(), torch.tensor([0.7]))
    opt.tell(x[1], context(0.7), 1e5)
    opt.withdraw(4)
    opt.withdraw(5)
    opt.tell(0.5 * x[2], context(0.1), 0.5, closes_pending=False)
    opt.withdraw(1)
    return opt


def test_state_survives_json(toy: Any) -> None:
    opt = eventful(toy)
    state = json.loads(json.dumps(opt.state_dict(), allow_nan=False))
    again = RobustOptimizer.from_state_dict(state)
    assert again.state_dict() == opt.state_dict()
    assert_same(opt, again)
    assert statuses(again) == statuses(opt)
    assert torch.equal(opt.ask(), again.ask())


def test_journal_is_resumed_and_holds_all_events(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with eventful(toy, journal=path) as opt:
        decision = RobustOptimizer.from_state_dict(opt.state_dict()).ask()
    events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    kinds = [event["event"] for event in events]
    assert kinds.count("withdraw") == 3
    assert sum(event.get("failed", False) for event in events) == 1
    told = [event["y"]["tensor"] for event in events if "y" in event]
    assert [1e5] in told  # nothing is deleted
    with RobustOptimizer.resume(path) as again:
        assert_same(opt, again)
        assert torch.equal(again.ask(), decision)


LIMITS = {torch.double: 1e145, torch.float: 5e14}


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_outcome_whose_square_overflows_is_refused(
    toy: Any, dtype: torch.dtype, sign: float
) -> None:
    opt = RobustOptimizer(
        "random", toy.bounds.to(dtype), toy.context_bounds.to(dtype), num_initial=3
    )
    x = opt.ask()
    state = opt.state_dict()
    for factor in (10.0, 1e20):
        with pytest.raises(InputDataError, match="cannot be modelled"):
            opt.tell(x, context(1.0), sign * factor * LIMITS[dtype])
    with pytest.raises(InputDataError, match="cannot be modelled"):
        opt.tell(x, context(1.0), 1e200)
    assert opt.state_dict() == state
    opt.tell(x, context(1.0), sign * LIMITS[dtype])


# Every part of recipes in one way, and those that differ most in every way.
# `regret_balancing` is told the range of its outcomes, and refuses what is outside.
NEAR_THE_LIMIT = [
    (name, torch.double, False) for name in covering() if name != "regret_balancing"
] + [
    (name, dtype, all_rows)
    for name in ("erbo", "gp_ucb", "ts_bocu", "wdrbo")
    for dtype, all_rows in (
        (torch.double, True),
        (torch.float, False),
        (torch.float, True),
    )
]


@pytest.mark.filterwarnings("ignore")  # ill-conditioned, and said to be so
@pytest.mark.parametrize(("name", "dtype", "all_rows"), NEAR_THE_LIMIT)
def test_just_inside_the_limit_a_run_goes_on(
    toy: Any, name: str, dtype: torch.dtype, all_rows: bool
) -> None:
    limit = LIMITS[dtype]
    budget = {"num_restarts": 1, "raw_samples": 4, "max_iterations": 3}
    opt = RobustOptimizer(
        name,
        toy.bounds.to(dtype),
        toy.context_bounds.to(dtype),
        **budget,
        **FEW.get(name, {}),
    )
    x = opt.ask(6)
    c = toy.contexts(6).to(dtype)
    y = toy.outcome(x, c)
    y = limit * y / y.abs().max()
    if not all_rows:
        y[1:] /= limit
        y[0] = limit
    opt.tell(x, c, y)
    assert torch.isfinite(opt.ask()).all()
    best = opt.recommend()
    assert torch.isfinite(best.x).all()
    assert abs(best.expected_value) <= 10 * limit
    assert abs(best.worst_case_value) <= 10 * limit


def test_an_outcome_that_drowns_all_others_is_announced(toy: Any) -> None:
    opt = toy.make("random")
    x = opt.ask(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt.tell(x[:2], torch.rand(2, 1).double(), torch.tensor([1.0, 2.0]))
        opt.tell(x[2], context(1.0), 1e15)
        opt.withdraw(2)
    with pytest.warns(BotorchWarning, match="withdraw"):
        opt.tell(x[2], context(1.0), 1e17)
    assert opt.history.t == 3


def test_an_outcome_that_dwarfs_ten_others_is_announced(toy: Any) -> None:
    opt = toy.make("random")
    x, y = opt.ask(13), torch.linspace(300.0, 310.0, 10).double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt.tell(x[:10], torch.rand(10, 1).double(), y)
        opt.tell(x[10], context(1.0), 409.0)
        opt.withdraw(10)
    with pytest.warns(BotorchWarning, match="411 dwarfs the 10 earlier ones"):
        opt.tell(x[11], context(1.0), 411.0)
    opt.withdraw(11)
    with pytest.warns(BotorchWarning, match="between 300 and 310.*withdraw"):
        opt.tell(x[12], context(1.0), -1e6)
