"""An event costs what it changes, however long the run is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.optimizer.trials import Standing

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def operations(call: Callable[[], object]) -> int:
    """How many instructions Python runs, also those of loops over lists."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks for it in `settrace`
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def rows(num: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    X, C = torch.rand(2, num, 1, generator=generator, dtype=torch.double)
    return X, C


def test_a_tell_costs_the_same_after_many_trials(tmp_path: Any) -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, journal=tmp_path / "run.jsonl")
    costs: dict[int, int] = {}
    for i, (x, c) in enumerate(zip(*rows(500), strict=True)):

        def tell(x: Tensor = x, c: Tensor = c) -> None:
            opt.tell(x, c, float(x), y_variance=0.25, constraints=0.5)

        if i in (10, 20, 490):
            costs[i] = operations(tell)
        else:
            tell()
    opt.close()
    assert costs[490] <= 1.02 * costs[10], costs
    assert costs[490] <= 1.02 * costs[20], costs


def test_trials_that_are_over_are_no_matter_for_those_that_are_open() -> None:
    opt = RobustOptimizer("random", UNIT, UNIT, num_initial=0)
    costs: dict[int, int] = {}
    for i, c in enumerate(rows(300)[1]):
        x = opt.ask()

        def tell(x: Tensor = x, c: Tensor = c) -> None:
            opt.tell(x, c, float(x))

        if i in (10, 290):
            costs[i] = operations(tell)
        else:
            tell()
    assert costs[290] <= 1.02 * costs[10], costs


def test_tensors_are_not_stacked_anew_in_each_tell(monkeypatch: Any) -> None:
    stacked = 0
    stack = torch.stack

    def counting(tensors: Any, *arguments: Any, **options: Any) -> Tensor:
        nonlocal stacked
        stacked += len(tensors)
        return stack(tensors, *arguments, **options)

    monkeypatch.setattr(torch, "stack", counting)
    opt = RobustOptimizer("random", UNIT, UNIT)
    for x, c in zip(*rows(200), strict=True):
        opt.tell(x, c, float(x))
    assert stacked <= 2 * 200
    assert len(opt.history.Y) == 200


def test_an_interrupt_while_a_change_is_folded(monkeypatch: Any) -> None:
    """Half a change does not stay: the trials are as if nothing had interrupted."""
    opt = RobustOptimizer("random", UNIT, UNIT)
    same = RobustOptimizer("random", UNIT, UNIT)
    X, C = rows(6)
    for run in (opt, same):
        run.tell(X[:3], C[:3], X[:3])
        run.ask(2)
        run.tell(X[3:], C[3:], X[3:])
    add = Standing._add

    def interrupted(self: Standing, trial: Any) -> None:
        add(self, trial)
        raise KeyboardInterrupt

    monkeypatch.setattr(Standing, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):  # accepted by then, and not folded yet
        _ = opt.history
    monkeypatch.setattr(Standing, "_add", add)
    assert opt.state_dict()["events"] == same.state_dict()["events"]
    for trial, other in zip(opt.trials, same.trials, strict=True):
        assert (trial.status, trial.y) == (other.status, other.y)
    assert torch.equal(opt.history.contexts, same.history.contexts)
    assert opt._run.ledger.standing.num_asked == 2
    assert torch.equal(opt.ask(), same.ask())


def test_outcomes_are_known_again_after_the_highest_is_withdrawn() -> None:
    opt = RobustOptimizer("random", UNIT, UNIT)
    X, C = rows(4)
    for x, c, y in zip(X, C, (3.0, 9.0, 1.0, 4.0), strict=True):
        opt.tell(x, c, y)
    opt.withdraw(1)
    found = opt._run.ledger.standing.outcomes
    assert (found.num, found.lowest, found.highest) == (3, 1.0, 4.0)
    opt.tell(X[:1], C[:1], 7.0)
    found = opt._run.ledger.standing.outcomes
    assert (found.num, found.lowest, found.highest) == (4, 1.0, 7.0)
