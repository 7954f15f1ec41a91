"""The loop of ``run``: ask, submit the evaluation, tell; several at once."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TypeAlias

from botorch.exceptions.errors import (
    BotorchError,
    BotorchTensorDimensionError,
    InputDataError,
)
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import check_count, check_flag
from botorch_drbo.execution.engine import Engine, Executor, NoAnswerError
from botorch_drbo.execution.processes import Outcome, Raised, Returned, summary
from botorch_drbo.optimizer.decisions import next_decisions
from botorch_drbo.optimizer.events import Ask, Tell, Withdraw
from botorch_drbo.optimizer.ledger import Change
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.translation import AnyTranslation, as_tell
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import Round

Advance: TypeAlias = Callable[[bool], None]
"""One more is over, and whether it failed."""


@contextmanager
def shown_progress(shown: bool, total: int, what: str) -> Iterator[Advance]:
    """Show a bar on stderr while the block lasts."""
    if not shown:
        yield lambda failed: None
        return
    if find_spec("rich") is None:
        raise InputDataError("`progress=True` needs rich: `pip install rich`.")
    from rich import progress
    from rich.console import Console

    with progress.Progress(
        progress.TextColumn(what),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[failures]}"),
        progress.TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("", total=total, failures="")
        failures = 0

        def advance(failed: bool) -> None:
            nonlocal failures
            failures += failed
            text = f"{failures} failed" if failures else ""
            bar.update(task, advance=1, failures=text)

        yield advance


MOST_FAILURES = 10
"""How many evaluations may fail in a row before `run` ends."""
MOST_ENDED = 3
"""How many calls of `run` a trial ends until it is withdrawn."""


@dataclass(frozen=True, kw_only=True)
class Evaluations:
    """What ``run`` was asked to do; see ``RobustOptimizer.run``."""

    # The user's function.
    evaluate: Callable[..., object]
    # How many evaluations end in this call; None with ``total``.
    num: int | None = None
    # How many trials of the run are over at the end; None with ``num``.
    total: int | None = None
    # How many are under way at once.
    parallel: int = 1
    # Who evaluates; None for processes of this machine.
    executor: Executor | None = None
    # Whether the contexts are chosen as well.
    choose_context: bool = False
    # How often an evaluation is submitted again whose worker died.
    retries: int = 3
    # Called with each trial that is over.
    callback: Callable[[Trial], object] | None = None
    # Whether a bar is shown.
    progress: bool = False

    def __post_init__(self) -> None:
        """Check what needs no run."""
        if not callable(self.evaluate):
            raise InputDataError(
                "`evaluate` must be a function of one decision that returns (c, y), "
                f"got {self.evaluate!r:.80}."
            )
        if (self.num is None) is (self.total is None):
            raise InputDataError(
                "Give either `num`, how many evaluations end in this call, or `total`, "
                "how many trials the run has at its end."
            )
        for name in ("num", "total", "parallel"):
            if (value := getattr(self, name)) is not None:
                check_count(value, name)
        check_count(self.retries, "retries", 0)
        check_flag(self.choose_context, "choose_context")
        check_flag(self.progress, "progress")
        if self.callback is not None and not callable(self.callback):
            raise InputDataError(
                f"`callback` must be a function of a trial, got {self.callback!r:.80}."
            )

    def carry_out(self, run: Run, translation: AnyTranslation) -> None:
        """Evaluate until as many are over as was asked."""
        now = run.ledger.standing
        todo = self.num
        if self.total is not None:
            todo = max(self.total - len(now.complete) - len(now.failed), 0)
        assert todo is not None
        waiting = self._waiting(run)
        if not todo:
            return
        with (
            shown_progress(self.progress, todo, "evaluations") as advance,
            closing(
                Engine[int](
                    translation.function(self.evaluate),
                    self.executor,
                    retries=self.retries,
                )
            ) as engine,
        ):
            loop = _Loop(self, run, translation, engine, advance, waiting, todo)
            try:
                loop.go()
            except BaseException:
                loop.stop()
                raise

    def _waiting(self, run: Run) -> deque[int]:
        """The decisions that were asked before and wait for an evaluation."""
        if run.configuration.initial_design == "sobol_joint" and (
            not self.choose_context
        ):
            raise InputDataError(
                "With `initial_design='sobol_joint'` the contexts of the design are "
                "chosen: pass `choose_context=True`, and `evaluate` gets them."
            )
        waiting = [t for t in run.ledger.pending if t.c is None]
        for trial in waiting:
            if (trial.chosen_context is not None) is not self.choose_context:
                what = "without" if self.choose_context else "with"
                raise InputDataError(
                    f"Trial {trial.number} is pending and was asked {what} "
                    f"`choose_context=True`, and this is a run with "
                    f"`choose_context={self.choose_context}`. Tell or withdraw it."
                )
        # What may have killed its worker comes first, alone.
        numbers = (trial.number for trial in waiting)
        return deque(sorted(numbers, key=lambda number: not run.lost[number]))


@dataclass
class _Loop:
    """A run that is being carried out."""

    given: Evaluations
    run: Run
    translation: AnyTranslation
    engine: Engine[int]
    advance: Advance
    waiting: deque[int]
    todo: int
    telling: tuple[int, int] | None = field(default=None)
    failures: int = 0

    def go(self) -> None:
        """Keep as many under way as is asked, until all are over."""
        while self.todo:
            try:
                while len(self.engine.running) < min(self._parallel(), self.todo):
                    self._submit()
                self.engine.wait()
            except NoAnswerError as error:
                raise self._blamed(error) from error
            for number in list(self.engine.ready):
                told = self._tell(number)
                if self.given.callback is not None:
                    self.given.callback(told)
                self._check_failures(told)

    def _parallel(self) -> int:
        """How many may be under way: a trial that has ended a run is so alone."""
        next_ones = [*self.engine.running, *list(self.waiting)[:1]]
        suspected = any(self.run.lost[number] for number in next_ones)
        return 1 if suspected else self.given.parallel

    def _blamed(self, error: NoAnswerError) -> InputDataError:
        """Which trials were under way when no worker answered; killers withdrawn."""
        running = self.engine.running
        if not running:  # the executor was closed before
            return error
        self.run.lost.update(running)
        guilty = [
            number  # certain where the function was loaded, else by how often
            for number in running
            if number == error.killer or self.run.lost[number] >= MOST_ENDED
        ]
        for number in guilty:
            self.run.record(Withdraw(trial=number))
        words = ", ".join(map(str, guilty or running))
        what = (
            f"Withdrawn, as it ends its worker each time: trial {words}."
            if guilty
            else f"Under way: trials {words}. If a decision kills what evaluates it, "
            f"`withdraw` its trial; after {MOST_ENDED} runs that it has ended it is "
            "withdrawn."
        )
        return InputDataError(f"{error} {what}")

    def _check_failures(self, told: Trial) -> None:
        """End the run where nothing but failures comes back."""
        self.failures = self.failures + 1 if told.status == "failed" else 0
        if self.failures == MOST_FAILURES and self.todo:
            last = (told.error or "").strip().splitlines()
            raise InputDataError(
                f"`evaluate` failed {MOST_FAILURES} times in a row, so the run ends; "
                f"the last time with {last[-1] if last else 'no message'!r}. See "
                f"`trials[{told.number}].error`. If these are real failures of "
                "decisions, call `run` again."
            )

    def _submit(self) -> None:
        """Submit the next decision: a pending one, or else a new one."""
        if self.waiting:
            number = self.waiting[0]
        else:
            x, chosen = next_decisions(
                self.run, 1, None, Round(), choose_context=self.given.choose_context
            )
            self.run.record(Ask(x=x, chosen_contexts=chosen))
            number = len(self.run.ledger.trials) - 1
            self.waiting.append(number)
        trial = self.run.ledger.trials[number]
        arguments = self.translation.arguments(trial.x, trial.chosen_context)
        self.engine.start(number, *arguments)
        self.waiting.popleft()

    def _tell(self, number: int) -> Trial:
        """Tell the result of an evaluation."""
        trial = self.run.ledger.trials[number]
        change, failure = self._change(trial, self.engine.ready[number])
        # After an interrupt this says whether the event counts already.
        self.telling = number, self.run.ledger.num_events
        self.run.accept(change)
        (told,) = change.trials
        del self.engine.ready[number]
        self.todo -= 1
        self.advance(failure is not None)
        if failure is not None:
            warnings.warn(
                f"Trial {told.number} failed: {failure.summary.rstrip('.')}. See "
                f"`trials[{told.number}].error`.",
                BotorchWarning,
                stacklevel=6,
            )
        return told

    def _change(self, trial: Trial, outcome: Outcome) -> tuple[Change, Raised | None]:
        """What the result of a trial changes, and why it failed if it did."""
        c = trial.chosen_context
        if isinstance(outcome, Raised):
            return self._failed(trial, c, outcome), outcome
        try:
            read_context = self.translation.returned_context
            event = as_tell(outcome.value, trial.x, c, read_context)
            c = event.c
            return self.run.change(event), None
        except (InputDataError, BotorchTensorDimensionError) as error:
            failure = Raised(summary(error), f"{summary(error)}\n")
            return self._failed(trial, c, failure), failure

    def _failed(self, trial: Trial, c: Tensor | None, failure: Raised) -> Change:
        """That a trial failed; its context too, if that is one."""
        event = Tell(x=trial.x, c=c, failed=True, error=failure.details)
        try:
            return self.run.change(event)
        except (InputDataError, BotorchTensorDimensionError):
            return self.run.change(replace(event, c=None))

    def stop(self) -> None:
        """Tell what has come back and say what is still pending.

        What raised stays pending: Ctrl-C may have been the reason.
        """
        if self.telling is not None and self.telling[1] < self.run.ledger.num_events:
            self.engine.ready.pop(self.telling[0], None)
        running = self.engine.running
        for number, outcome in list(self.engine.ready.items()):
            if isinstance(outcome, Returned):
                # The error that ends the run may come from `tell`.
                with suppress(BotorchError):
                    self._tell(number)
        left = sorted({*running, *self.engine.ready, *self.waiting})
        trials = self.run.ledger.trials
        left = [number for number in left if trials[number].status == "pending"]
        if left:
            journal = self.run.journal
            place = "" if journal is None else f" in {journal.path}"
            shown = ", ".join(map(str, left[:20])) + ", ..." * (len(left) > 20)
            warnings.warn(
                f"The run was stopped. Pending{place}: trials {shown}. The next `run` "
                "submits them first; `withdraw` those that it should not.",
                BotorchWarning,
                stacklevel=5,
            )
