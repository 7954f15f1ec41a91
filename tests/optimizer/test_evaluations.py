"""``run``: decisions are asked, evaluated by an executor and told, several at once."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    Integer,
    NamedOptimizer,
    RobustOptimizer,
    Space,
)
from botorch_drbo.optimizer import Trial
from botorch_drbo.optimizer.evaluations import MOST_ENDED, MOST_FAILURES
from tests.optimizer.conftest import Toy


class Here:
    """An executor that makes each call at once, in this thread; a few calls are lost.

    Attributes:
        lost: What `result` of each call raises, from the first; None for what returns.
    """

    def __init__(self, *lost: BaseException | None) -> None:
        self.lost, self.num = list(lost), 0
        self.calls: list[Any] = []

    def submit(self, fn: Callable[..., object], /, *args: Any) -> Future[object]:
        self.num += 1
        self.calls.append(args[1])
        future: Future[object] = Future()
        error = self.lost.pop(0) if self.lost else None
        if error is None:
            future.set_result(fn(*args))
        else:
            future.set_exception(error)
        return future


def good(x: Tensor) -> tuple[Tensor, float]:
    return 10.0 * x[:1].square(), -x.square().sum().item()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


def test_decisions_are_those_of_a_loop_by_hand(toy: Toy) -> None:
    opt, by_hand = toy.make(), toy.make()
    opt.run(good, num=5, executor=Here())
    for _ in range(5):
        x = by_hand.ask()
        c, y = good(x[0])
        by_hand.tell(x, c, y)
    assert opt.history.X.equal(by_hand.history.X)
    assert opt.history.C.equal(by_hand.history.C)
    assert opt.history.Y.equal(by_hand.history.Y)


def test_whenever_one_ends_the_next_is_asked(
    toy: Toy, threads: ThreadPoolExecutor
) -> None:
    # The first evaluation waits for nine others: in batches of two it would for ever.
    opt = toy.make("random")
    others, begun = threading.Semaphore(0), threading.Lock()
    alone = [True]

    def evaluate(x: Tensor) -> tuple[Tensor, float]:
        with begun:
            is_first, alone[0] = alone[0], False
        if is_first:
            for _ in range(9):
                assert others.acquire(timeout=60)
        else:
            others.release()
        return good(x)

    ended: list[int] = []
    opt.run(
        evaluate,
        num=10,
        parallel=2,
        executor=threads,
        callback=lambda trial: ended.append(trial.number),
    )
    assert sorted(ended) == list(range(10)) and min(ended[-2:]) <= 1
    assert opt.history.t == 10 and not len(opt.pending)


def test_the_next_is_asked_with_the_others_pending(toy: Toy) -> None:
    class NewestFirst:
        """Of three calls under way the newest ends."""

        def __init__(self) -> None:
            self.open: list[Future[object]] = []

        def submit(self, fn: Callable[..., object], /, *args: Any) -> Any:
            pending.append(len(opt.pending))
            future: Future[object] = Future()
            if len(self.open) == 2:
                future.set_result(fn(*args))
            else:
                self.open.append(future)
            return future

    def stop(trial: Trial) -> None:
        if trial.number == 5:
            raise KeyboardInterrupt

    pending: list[int] = []
    opt = toy.make("random")
    with pytest.warns(BotorchWarning, match=r"Pending: trials 0, 1\. "):
        with pytest.raises(KeyboardInterrupt):
            opt.run(good, num=9, parallel=3, executor=NewestFirst(), callback=stop)
    assert pending == [1, 2, 3, 3, 3, 3]


def test_what_raises_is_told_as_failed_with_its_traceback(toy: Toy) -> None:
    def evaluate(x: Tensor) -> tuple[Tensor, float]:
        if opt.trials[-1].number in (1, 3):
            raise OSError("no licence")
        return good(x)

    opt = toy.make("random")
    told: list[Trial] = []
    with pytest.warns(BotorchWarning, match=r"Trial 1 failed: OSError: no licence\. "):
        opt.run(evaluate, num=4, executor=Here(), callback=told.append)
    assert [t.status for t in opt.trials] == ["complete", "failed"] * 2
    assert [t.status for t in told] == ["complete", "failed"] * 2
    error = opt.trials[1].error
    assert error is not None and "in evaluate\n" in error
    assert error.endswith("OSError: no licence\n") and opt.trials[1].c is None


@pytest.mark.parametrize(
    ("returned", "message", "context_is_kept"),
    [
        (3.0, r"must return \(c, y\) or \(c, y, constraints\)", False),
        (None, r"must return \(c, y\)", False),
        ((torch.ones(1),), r"must return \(c, y\)", False),
        ((torch.ones(2), 1.0), "`c` must have 1 columns", False),
        ((torch.ones(2, 1), 1.0), "one row per trial, got 1 and 2", False),
        (([20.0], 1.0), "`c`", False),
        (("hot", 1.0), "numbers as `c`, got 'hot'", False),
        ((float("nan"), 1.0), "`c` has 1 NaN", False),
        ((1.0, torch.ones(2)), "one outcome `y`, got 2", False),
        ((1.0, float("nan")), "`y` has 1 NaN", True),
        ((1.0, np.inf), "`y` has 1 NaN or infinite", True),
        ((1.0, 1e200), "cannot be modelled", True),
        ((1.0, "good"), "numbers as `y`", False),
        ((1.0, "3.5"), "numbers as `y`, got '3.5'", False),
        ((1.0, b"3"), "numbers as `y`, got b'3'", False),
        ((1.0, 3 + 4j), r"numbers as `y`, got \(3\+4j\)", False),
        ((1.0, torch.tensor(3 + 4j)), r"numbers as `y`.*3\.\+4\.j", False),
        ((1.0, np.ma.masked), "numbers as `y`, got masked", False),
        ((1.0, np.ma.array([2.0], mask=[True])), "numbers as `y`, got masked", False),
        ((1.0, np.datetime64("2026-01-01")), "numbers as `y`, got .*2026-01-01", False),
        ((1.0, np.timedelta64(3, "s")), "numbers as `y`, got", False),
        ((1.0, 10**400), "numbers as `y`, got 10000", False),
        ((1.0, True), "numbers as `y`, got True", False),
        ((1.0, None), "numbers as `y`, got None", False),
        ((3 + 4j, 1.0), r"numbers as `c`, got \(3\+4j\)", False),
        ((np.ma.masked, 1.0), "numbers as `c`, got masked", False),
        ((b"3", 1.0), "numbers as `c`, got b'3'", False),
        ((1.0, 1.0, ["1"]), r"numbers as `constraints`, got \['1'\]", False),
        ((1.0, 1.0, np.ma.masked), "numbers as `constraints`, got masked", False),
        ((1.0, 1.0, float("nan")), "`constraints` has 1 NaN", True),
    ],
)
def test_what_cannot_be_told_is_told_as_failed(
    toy: Toy, returned: Any, message: str, context_is_kept: bool
) -> None:
    opt = toy.make("random")
    with pytest.warns(BotorchWarning, match="Trial 0 failed"):
        opt.run(lambda x: returned, num=1, executor=Here())
    (trial,) = opt.trials
    assert trial.status == "failed" and trial.error is not None
    assert re.search(message, trial.error), trial.error
    assert (trial.c is not None) is context_is_kept


@pytest.mark.parametrize(
    "kind",
    [
        *(float, lambda v: [v], np.float32, lambda v: np.array([[v]]), torch.tensor),
        *(lambda v: Decimal(str(v)), lambda v: torch.tensor(v).bfloat16(), Fraction),
    ],
    ids=["float", "list", "float32", "matrix", "tensor", "Decimal", "half", "Fraction"],
)
def test_numbers_of_any_kind_are_taken(toy: Toy, kind: Callable[[float], Any]) -> None:
    opt = toy.make("random")
    opt.run(lambda x: (kind(10.0), kind(0.5)), num=1, executor=Here())
    assert opt.history.C.item() == 10.0 and opt.history.Y.item() == 0.5


def test_constraints_are_told(toy: Toy) -> None:
    opt = toy.make("erbo", feasibility=0.9)
    opt.run(lambda x: (*good(x), [x[0], 1.0]), num=3, executor=Here())
    constraints = opt.history.constraints
    assert constraints is not None and constraints.G.shape == (3, 2)
    assert constraints.G[:, 0].equal(opt.history.X[:, 0])


def test_constraints_that_the_algorithm_ignores_end_the_run(toy: Toy) -> None:
    opt = toy.make("phased_gp_us")
    with (
        pytest.raises(UnsupportedError),
        pytest.warns(BotorchWarning, match="trials 0"),
    ):
        opt.run(lambda x: (*good(x), 1.0), num=3, executor=Here())
    assert len(opt.pending) == 1


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked,
        3 + 4j,
        np.datetime64(7, "ns"),
        np.timedelta64(3, "s"),
        10**400,
        b"3",
        "3",
        True,
    ],
)
def test_a_named_context_is_a_number(value: Any) -> None:
    opt = NamedOptimizer("random", Space({"x": (0, 1)}, {"c": (0, 9)}))
    with pytest.warns(BotorchWarning, match="Trial 0 failed.*column `c`"):
        opt.run(lambda x: ({"c": value}, 1.0), num=1, executor=Here())
    with pytest.raises(InputDataError, match="column `outcome`: must"):
        opt.tell({"x": 0.5}, {"c": 5}, y=[value])
    with pytest.raises(InputDataError, match="`constraints` must be numbers"):
        opt.tell({"x": 0.5}, {"c": 5}, y=1.0, constraints=[value])


class TestNothingButFailures:
    def test_the_run_ends_after_ten_in_a_row(self, toy: Toy) -> None:
        opt = toy.make("random")
        with pytest.warns(BotorchWarning, match="failed: InputDataError"):
            with pytest.raises(InputDataError, match=r"failed 10 times in a row.*'3'"):
                opt.run(lambda x: (1.0, "3"), num=50, executor=Here())
        assert [t.status for t in opt.trials] == ["failed"] * MOST_FAILURES
        opt.run(good, total=12, executor=Here())
        assert opt.history.t == 2

    def test_an_outcome_in_between_begins_a_new_row(self, toy: Toy) -> None:
        opt = toy.make("random")

        def evaluate(x: Tensor) -> tuple[Tensor, float]:
            if len(opt.trials) % MOST_FAILURES:
                raise OSError("no licence")
            return good(x)

        with pytest.warns(BotorchWarning, match="no licence"):
            opt.run(evaluate, num=30, executor=Here())
        assert opt.history.t == 3

    def test_what_was_asked_for_is_no_error(self, toy: Toy) -> None:
        opt = toy.make("random")
        with pytest.warns(BotorchWarning, match="failed"):
            opt.run(lambda x: None, num=MOST_FAILURES, executor=Here())
        assert len(opt.trials) == MOST_FAILURES


class Deadly:
    """An executor of which nothing is left once it was given a deadly decision."""

    def __init__(self, deadly: list[float]) -> None:
        self.deadly, self.is_dead = deadly, False

    def submit(self, fn: Callable[..., object], /, *args: Any) -> Future[object]:
        if self.is_dead:
            raise RuntimeError("the pool is broken")
        future: Future[object] = Future()
        if args[1][0] == self.deadly:
            self.is_dead = True
            future.set_exception(RuntimeError("died"))
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_decision_that_ends_every_run_is_named_and_withdrawn(
    toy: Toy, parallel: int
) -> None:
    opt = toy.make("random")
    deadly = opt.ask(3)[0].tolist()
    for times in range(1, MOST_ENDED + 1):
        what = "Withdrawn, .*trial 0"
        if times < MOST_ENDED:
            what = "Under way: trials 0.*`withdraw` its trial"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BotorchWarning)
            with pytest.raises(InputDataError, match=what):
                opt.run(good, num=5, parallel=parallel, executor=Deadly(deadly))
    assert opt.trials[0].status == "withdrawn"
    opt.run(good, total=5, parallel=parallel, executor=Deadly(deadly))
    assert opt.history.t == 5
    assert [t.status for t in opt.trials[1:]] == ["complete"] * 5


def test_a_closed_executor_is_no_fault_of_a_decision(toy: Toy) -> None:
    opt, closed = toy.make("random"), ThreadPoolExecutor(1)
    closed.shutdown()
    for _ in range(2 * MOST_ENDED):
        with pytest.warns(BotorchWarning, match="Pending: trials 0"):
            with pytest.raises(InputDataError, match="takes no further call"):
                opt.run(good, num=3, executor=closed)
    assert [t.status for t in opt.trials] == ["pending"]


class TestLostCalls:
    def test_they_are_made_again(self, toy: Toy) -> None:
        opt, executor = toy.make("random"), Here(*[RuntimeError("died")] * 3)
        opt.run(good, num=2, executor=executor, retries=3)
        assert opt.history.t == 2 and executor.num == 5
        assert all(call == executor.calls[0] for call in executor.calls[:4])

    def test_a_stated_number_of_times(self, toy: Toy) -> None:
        opt = toy.make("random")
        executor = Here(None, *[RuntimeError("died")] * 3)
        with pytest.warns(BotorchWarning, match="lost 3 times.*RuntimeError: died"):
            opt.run(good, num=3, executor=executor, retries=2)
        assert [t.status for t in opt.trials] == ["complete", "failed", "complete"]

    def test_no_worker_that_answers_is_no_failure_of_the_trial(self, toy: Toy) -> None:
        opt = toy.make("random")
        with pytest.warns(BotorchWarning, match="Pending: trials 0"):
            with pytest.raises(InputDataError, match="No call has come back"):
                opt.run(good, num=3, executor=Here(*[OSError("no module")] * 9))
        assert [t.status for t in opt.trials] == ["pending"]
        opt.run(good, num=3, executor=Here())
        assert [t.status for t in opt.trials] == ["complete"] * 3


class TestPending:
    def test_it_is_evaluated_first(self, toy: Toy) -> None:
        opt, executor = toy.make("random"), Here()
        x = opt.ask(2)
        opt.run(good, num=3, executor=executor)
        assert [call[0] for call in executor.calls[:2]] == x.tolist()
        assert opt.history.t == len(opt.trials) == 3

    def test_an_outcome_that_is_out_is_waited_for(self, toy: Toy) -> None:
        opt = toy.make("random")
        x = opt.ask()
        opt.tell(x, toy.contexts(1))
        opt.run(good, num=2, executor=Here())
        assert [t.status for t in opt.trials] == ["pending", "complete", "complete"]

    def test_equal_decisions_are_told_apart(self) -> None:
        space = Space({"s": Integer(0, 1)}, {"c": (0, 1)})
        opt = NamedOptimizer("random", space)
        with ThreadPoolExecutor(3) as threads:
            opt.run(lambda x: ({"c": 0.5}, x["s"]), 9, parallel=3, executor=threads)
        assert (opt.table()["status"] == "complete").all() and len(opt.trials) == 9


def test_no_more_are_asked_than_will_be_told(toy: Toy) -> None:
    opt = toy.make("random")
    opt.run(good, num=2, parallel=8, executor=Here())
    assert len(opt.trials) == opt.history.t == 2


def test_total_counts_what_was_over_before(toy: Toy) -> None:
    opt = toy.make("random")
    opt.run(good, num=2, executor=Here())
    opt.run(good, total=5, executor=Here())
    assert len(opt.trials) == 5
    opt.run(good, total=4, executor=Here(RuntimeError("never called")))
    assert len(opt.trials) == 5
    opt.run(good, num=2, executor=Here())
    assert len(opt.trials) == 7


def test_total_counts_what_failed(toy: Toy) -> None:
    def evaluate(x: Tensor) -> tuple[Tensor, float]:
        raise OSError("no licence")

    opt = toy.make("random")
    with pytest.warns(BotorchWarning, match="failed: OSError"):
        opt.run(evaluate, num=3, executor=Here())
    opt.run(good, total=4, executor=Here())
    assert [t.status for t in opt.trials] == ["failed"] * 3 + ["complete"]


def lab(**options: Any) -> RobustOptimizer:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    world = ContextSet(torch.linspace(0.0, 1.0, 5, dtype=torch.double).unsqueeze(-1))
    few = {"num_restarts": 1, "raw_samples": 8, "num_initial": 2, **options}
    return RobustOptimizer("ucb_ro", unit, unit, reference=world, **few)


@pytest.mark.parametrize("alone", [True, False])
def test_contexts_that_are_chosen_are_given(alone: bool) -> None:
    opt, seen = lab(), []

    def evaluate(x: Tensor, c: Tensor) -> Any:
        seen.append(c)
        y = -(x - c).square()
        return y if alone else (c, y)

    opt.run(evaluate, num=3, executor=Here(), choose_context=True)
    assert opt.history.C.equal(torch.stack(seen)) and not len(opt.history.contexts)


def test_a_chosen_context_is_kept_of_what_failed() -> None:
    opt = lab()
    with pytest.warns(BotorchWarning, match="ZeroDivisionError"):
        opt.run(lambda x, c: 1 / 0, num=1, executor=Here(), choose_context=True)
    (trial,) = opt.trials
    assert trial.c is not None and trial.chosen_context is not None
    assert trial.c.equal(trial.chosen_context)


def test_a_pending_decision_of_the_other_kind_is_refused() -> None:
    opt = lab()
    opt.ask(choose_context=True)
    with pytest.raises(InputDataError, match="Trial 0 is pending and was asked with "):
        opt.run(good, num=1, executor=Here())
    opt.withdraw(0)
    opt.ask()
    with pytest.raises(InputDataError, match=r"Trial 1 .* asked without"):
        opt.run(good, num=1, executor=Here(), choose_context=True)


def test_a_joint_design_chooses_its_contexts() -> None:
    opt = lab(initial_design="sobol_joint")
    with pytest.raises(InputDataError, match="pass `choose_context=True`"):
        opt.run(good, num=1, executor=Here())


def test_named_functions_get_dictionaries() -> None:
    space = Space(
        {"stock": Integer(0, 40), "shelf": Category(["top", "low"])},
        {"weather": Category(["sun", "rain"]), "temp": (-10, 40)},
    )
    opt, seen = NamedOptimizer("random", space), []

    def evaluate(x: dict[str, Any]) -> Any:
        seen.append(x)
        return {"weather": "rain", "temp": 12.0}, float(x["stock"])

    opt.run(evaluate, num=3, executor=Here())
    assert [type(v) for v in seen[0].values()] == [int, str]
    assert seen == opt.history[["stock", "shelf"]].to_dict("records")
    assert opt.history["outcome"].tolist() == [x["stock"] for x in seen]
    assert opt.history["weather"].tolist() == ["rain"] * 3

    def snow(x: dict[str, Any]) -> Any:
        return {"weather": "snow", "temp": 12.0}, 1.0

    with pytest.warns(BotorchWarning, match="column `weather`"):
        opt.run(snow, num=1, executor=Here())


def test_named_contexts_that_are_chosen_are_dictionaries() -> None:
    world = Space({"x": (0, 1)}, {"c": Category(["a", "b"])})
    reference = world.context_set({"c": ["a", "b"]})
    opt = NamedOptimizer("erbo", world, reference=reference)
    opt.run(
        lambda x, c: (c, float(c["c"] == "a")),
        num=2,
        executor=Here(),
        choose_context=True,
    )
    assert len(opt.table()) == 2


class TestStopped:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_what_came_back_is_told_and_the_rest_is_pending(
        self, toy: Toy, path: Path, error: type[BaseException]
    ) -> None:
        def stop(trial: Trial) -> None:
            raise error

        opt = toy.make("random", journal=path)
        # All three are over when the callback is called for the first.
        with pytest.raises(error):
            opt.run(good, num=9, parallel=3, executor=Here(), callback=stop)
        assert [t.status for t in opt.trials] == ["complete"] * 3
        opt.close()
        with RobustOptimizer.resume(path) as again:
            assert again.history.t == 3

    def test_what_raised_meanwhile_stays_pending(self, toy: Toy, path: Path) -> None:
        # A simulator of which Ctrl-C has made an error.
        def evaluate(x: Tensor) -> Any:
            if opt.trials[-1].number == 1:
                raise OSError("killed by signal 2")
            return good(x)

        def stop(trial: Trial) -> None:
            raise KeyboardInterrupt

        opt = toy.make("random", journal=path)
        with pytest.warns(BotorchWarning, match=rf"Pending in {path}: trials 1\. "):
            with pytest.raises(KeyboardInterrupt):
                opt.run(evaluate, 9, parallel=3, executor=Here(), callback=stop)
        statuses = [t.status for t in opt.trials]
        assert statuses == ["complete", "pending", "complete"]

    def test_an_interrupt_after_a_tell_tells_nothing_twice(
        self, toy: Toy, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opt = toy.make("random", journal=path)
        ledger, accept = opt._run.ledger, opt._run.ledger.accept

        def interrupted(change: Any) -> None:
            accept(change)
            if change.trials[0].status == "complete":
                monkeypatch.undo()
                raise KeyboardInterrupt

        monkeypatch.setattr(ledger, "accept", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opt.run(good, num=9, parallel=3, executor=Here())
        assert [t.status for t in opt.trials] == ["complete"] * 3
        assert opt.history.t == 3

    def test_a_journal_that_is_gone_ends_it(self, toy: Toy, path: Path) -> None:
        opt = toy.make("random", journal=path)

        def evaluate(x: Tensor) -> Any:
            path.unlink()
            return good(x)

        with pytest.warns(BotorchWarning, match="trials 0"):
            with pytest.raises(InputDataError, match="was removed"):
                opt.run(evaluate, num=3, executor=Here())
        assert [t.status for t in opt.trials] == ["pending"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("further", "message"),
        [
            ({"evaluate": 3.0}, "`evaluate` must be a function"),
            ({"num": None}, "either `num`.* or `total`"),
            ({"total": 9}, "either `num`.* or `total`"),
            ({"num": 0}, "`num` must be an integer of at least 1, got 0"),
            ({"num": -2}, "`num` must be an integer of at least 1, got -2"),
            ({"num": 2.5}, "`num` must be an integer"),
            ({"parallel": 0}, "`parallel` must be an integer of at least 1, got 0"),
            ({"retries": -1}, "`retries` must be an integer of at least 0"),
            ({"choose_context": "yes"}, "`choose_context` must be True or False"),
            ({"progress": 1}, "`progress` must be True or False"),
            ({"callback": "print"}, "`callback` must be a function"),
            ({"executor": 8}, "`executor` must be a concurrent.futures.Executor"),
            ({"executor": ThreadPoolExecutor}, "`executor` must be a concurrent"),
        ],
    )
    def test_nothing_is_asked(
        self, toy: Toy, further: dict[str, Any], message: str
    ) -> None:
        opt = toy.make("random")
        arguments: dict[str, Any] = {"evaluate": good, "num": 3, **further}
        with pytest.raises(InputDataError, match=message):
            opt.run(**arguments)
        assert not opt.trials

    def test_an_executor_that_is_closed(self, toy: Toy) -> None:
        opt, executor = toy.make("random"), ThreadPoolExecutor()
        executor.shutdown()
        with pytest.warns(BotorchWarning, match="Pending: trials 0"):
            with pytest.raises(InputDataError, match=r"no further call.*shutdown"):
                opt.run(good, num=3, executor=executor)
        opt.run(good, num=3, executor=Here())
        assert len(opt.trials) == opt.history.t == 3

    def test_a_function_that_a_pool_cannot_be_sent(self, toy: Toy) -> None:
        opt = toy.make("random")
        with ProcessPoolExecutor(1) as executor:
            with pytest.raises(InputDataError, match="Define it at the top of a modul"):
                opt.run(lambda x: good(x), num=3, executor=executor)
        assert not opt.trials

    def test_a_function_that_no_process_can_be_sent(self, toy: Toy) -> None:
        opt, lock = toy.make("random"), threading.Lock()
        with pytest.raises(InputDataError, match=r"cannot be sent.*ThreadPoolExecutor"):
            opt.run(lambda x: lock, num=3)
        assert not opt.trials


class TestProgress:
    def test_a_bar_counts_what_is_over_on_stderr(
        self, toy: Toy, capsys: pytest.CaptureFixture[str]
    ) -> None:
        opt = toy.make("random")
        results = iter([(1.0, 1.0), (1.0, float("nan")), (1.0, 2.0)])
        with pytest.warns(BotorchWarning, match="Trial 1 failed"):
            opt.run(lambda x: next(results), num=3, executor=Here(), progress=True)
        shown = capsys.readouterr()
        assert "evaluations" in shown.err and "3/3 1 failed" in shown.err
        assert not shown.out

    def test_without_rich_it_says_so_before_anything_is_asked(
        self, toy: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "botorch_drbo.optimizer.evaluations.find_spec", lambda name: None
        )
        opt = toy.make("random")
        with pytest.raises(InputDataError, match="pip install rich"):
            opt.run(good, num=1, executor=Here(), progress=True)
        assert not opt.trials


def dies_of_the_first(x: Tensor) -> tuple[Tensor, float]:
    if x[0].item() == 0.25:
        os._exit(9)
    return good(x)


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_decision_that_kills_its_process_is_withdrawn(
    toy: Toy, tmp_path: Path, parallel: int
) -> None:
    path = tmp_path / "run.jsonl"
    opt = toy.make("random", journal=path)
    opt.ask(candidates=torch.tensor([[0.25, 0.25]], dtype=torch.double))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        with pytest.raises(InputDataError, match=r"Withdrawn, .* trial 0"):
            opt.run(dies_of_the_first, num=3, retries=1)
    opt.close()
    with RobustOptimizer.resume(path) as again:  # a script that is started again
        again.run(dies_of_the_first, total=3, parallel=parallel)
        assert [t.status for t in again.trials] == ["withdrawn"] + ["complete"] * 3
