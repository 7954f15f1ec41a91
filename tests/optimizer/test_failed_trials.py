"""A trial may fail before anybody saw its context, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import NamedOptimizer, RobustOptimizer, Space
from tests.optimizer.conftest import Toy


def with_failure(toy: Toy, **options: Any) -> RobustOptimizer:
    opt = toy.make("random", **options)
    toy.run(opt, 0, 2)
    opt.tell(opt.ask(), None, failed=True, error="Traceback: no licence")
    return opt


def test_it_has_no_context_and_its_decision_is_avoided(toy: Toy) -> None:
    opt = with_failure(toy)
    trial = opt.trials[2]
    assert (trial.status, trial.c, trial.error) == (
        "failed",
        None,
        "Traceback: no licence",
    )
    assert opt.history.t == len(opt.history.contexts) == 2
    assert opt._run.ledger.failed[0].x.equal(trial.x) and not len(opt.pending)
    assert opt.table().loc[2].isna()[["c1", "outcome"]].all()


def test_a_journal_and_a_state_keep_it(toy: Toy, path: Path) -> None:
    with with_failure(toy, journal=path) as opt:
        state, expected = opt.state_dict(), opt.trials[2]
    with RobustOptimizer.resume(path) as resumed:
        for again in (resumed, RobustOptimizer.from_state_dict(state)):
            found = again.trials[2]
            assert (found.status, found.c, found.error) == (
                expected.status,
                None,
                expected.error,
            )
            assert again.ask().equal(opt.preview())


def test_taken_back_it_is_pending_again(toy: Toy) -> None:
    opt = with_failure(toy)
    opt.withdraw(2)
    trial = opt.trials[2]
    assert (trial.status, trial.error) == ("pending", None)
    assert opt.pending.equal(trial.x.unsqueeze(0))
    opt.withdraw(2)
    assert opt.trials[2].status == "withdrawn"


def test_a_context_that_was_told_before_stays(toy: Toy) -> None:
    opt = toy.make("random")
    x = torch.cat([opt.ask(), opt.ask()])
    opt.tell(x[0], torch.tensor([3.0]).double())
    opt.tell(x[0], None, failed=True)
    first, second = opt.trials
    assert first.status == "failed" and first.c is not None and first.c.item() == 3.0
    assert second.status == "pending"


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({}, "Got no `c`"),
        ({"failed": True, "constraints": 0.5}, "Got no `c`"),
        ({"y": 1.0}, "Got no `c`"),
        ({"failed": True, "error": ValueError("x")}, "`error` must be a text"),
    ],
)
def test_only_a_failed_trial_has_no_context(
    toy: Toy, further: dict[str, Any], message: str
) -> None:
    opt = toy.make("random")
    with pytest.raises(InputDataError, match=message):
        opt.tell(opt.ask(), None, **further)
    with pytest.raises(InputDataError, match="`error` must be a text"):
        opt.tell(opt.pending, toy.contexts(1), 1.0, error="why")
    assert len(opt.pending) == 1


def test_a_table_of_trials_is_read_again() -> None:
    opt = NamedOptimizer("random", Space({"x": (0, 1)}, {"c": (0, 1)}))
    opt.tell({"x": 0.2}, {"c": 0.5}, 1.0)
    opt.tell(opt.ask(), None, failed=True)
    again = NamedOptimizer.from_dataframe(
        opt.table(),
        decisions={"x": (0, 1)},
        contexts={"c": (0, 1)},
        outcome="outcome",
        status="status",
    )
    assert [t.status for t in again.trials] == ["complete", "failed"]
    assert again.trials[1].c is None
