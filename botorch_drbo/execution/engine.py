"""Running calls on any executor; a call whose worker died is submitted again."""

from __future__ import annotations

import asyncio
import pickle
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from typing import Generic, Protocol, TypeVar, runtime_checkable

from botorch.exceptions.errors import InputDataError

from botorch_drbo.execution.processes import (
    Outcome,
    Processes,
    Raised,
    Returned,
    attempt,
    summary,
)

Key = TypeVar("Key", bound=Hashable)
_SHORTEST, _LONGEST = 1e-3, 0.1  # seconds between two looks at what is under way


class NoAnswerError(InputDataError):
    """No worker answers, or none takes a call: perhaps one call has ended them all."""

    def __init__(self, message: str, killer: Hashable | None = None) -> None:
        super().__init__(message)
        self.killer = killer


class Future(Protocol):
    """A call under way."""

    @abstractmethod
    def done(self) -> bool:
        """Whether it is over."""

    @abstractmethod
    def result(self) -> object:
        """What it returned; raises if its worker died."""


@runtime_checkable
class _Cancellable(Protocol):
    """A future that can be cancelled."""

    @abstractmethod
    def cancel(self) -> object:
        """Give the call up."""


@runtime_checkable
class Executor(Protocol):
    """What makes calls elsewhere: of ``concurrent.futures``, dask, or another."""

    @abstractmethod
    def submit(self, fn: Callable[..., object], /, *args: object) -> Future:
        """Begin a call."""


class Engine(Generic[Key]):
    """Calls of one function, each under a key, and what came of them.

    Use as ``with closing(Engine(...)) as engine``, which cancels what is under way.
    Futures are looked at, again and again, rather than called back: that is what all
    executors have in common.
    """

    def __init__(
        self,
        function: Callable[..., object],
        executor: Executor | None = None,
        *,
        retries: int = 3,
    ) -> None:
        self._retries = retries
        self._answered = False  # whether any worker has ever answered
        # For each key its future, its arguments (to submit it again) and the attempts
        # so far.
        self._calls: dict[Key, tuple[Future, tuple[object, ...], int]] = {}
        self.ready: dict[Key, Outcome] = {}
        """What is over and not dropped yet, as it was found."""
        self._processes = Processes(function) if executor is None else None
        self._executor, self._function = executor, function
        if executor is not None:
            _check_executor(executor, function)

    @property
    def running(self) -> list[Key]:
        """The keys of the calls under way."""
        return list(self._calls)

    def start(self, key: Key, *arguments: object) -> None:
        """Begin a call."""
        self._start(key, arguments, 0)

    def _start(self, key: Key, arguments: tuple[object, ...], tried: int) -> None:
        if self._processes is not None:
            future: Future = self._processes.start(arguments)
        else:
            assert self._executor is not None
            try:
                # A label that is never repeated: dask returns the old result of a call
                # that looks the same.
                future = self._executor.submit(
                    attempt, self._function, arguments, uuid.uuid4().hex
                )
            except Exception as error:
                raise NoAnswerError(
                    f"`executor` takes no further call: {summary(error)}. It is closed "
                    "or broken, or cannot send the call. Go on with another one."
                ) from error
        self._calls[key] = future, arguments, tried + 1

    def wait(self) -> None:
        """Wait until something is ready, if anything is under way."""
        pause = _SHORTEST
        self.look()
        while self._calls and not self.ready:
            time.sleep(pause)
            # Polling with growing pauses: executors have no common way to wait for any
            # of many.
            pause = min(1.5 * pause, _LONGEST)
            self.look()

    def look(self) -> None:
        """Note what is over by now."""
        for key, (future, arguments, tried) in list(self._calls.items()):
            if not future.done():
                continue
            try:
                # An error of the function comes back as an outcome: what is raised here
                # is the loss of a worker.
                found = future.result()
            except (Exception, asyncio.CancelledError) as error:
                # A worker dies of memory or of its machine: the same call may well
                # succeed elsewhere.
                if tried <= self._retries:
                    self._start(key, arguments, tried)
                    continue
                outcome: Outcome = self._lost(key, error, tried)
            else:
                self._answered = True
                outcome = found if isinstance(found, Outcome) else Returned(found)
            self.ready[key] = outcome
            del self._calls[key]  # last: an interrupt loses none

    def _lost(self, key: Key, error: BaseException, tried: int) -> Raised:
        times = "once" if tried == 1 else f"{tried} times"
        text = f"The call was lost {times}, the last time by {summary(error)}"
        # Other calls have come back, so this one is to blame: it is a failure like
        # others.
        if self._answered:
            return Raised(text, text)
        processes = self._processes
        # If the function was loaded, it is the call that kills its worker: the caller
        # can drop it.
        is_loaded = processes is not None and processes.has_loaded
        raise NoAnswerError(
            f"{text} No call has come back from any worker yet. See what the workers "
            "print: with processes, a script must start its work under "
            '`if __name__ == "__main__":`; workers of a cluster need the same packages '
            "as this process.",
            key if is_loaded else None,
        ) from error

    def close(self) -> None:
        """Cancel what is under way; the processes of this machine end at once."""
        for future, _, _ in self._calls.values():
            if isinstance(future, _Cancellable):
                future.cancel()
        self._calls.clear()
        if self._processes is not None:
            self._processes.close()


def _check_executor(executor: object, function: Callable[..., object]) -> None:
    if isinstance(executor, type) or not isinstance(executor, Executor):
        raise InputDataError(
            "`executor` must be a concurrent.futures.Executor, a dask "
            f"Client, or another object with `submit`, got {executor!r:.80}."
        )
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InputDataError(
            f"`evaluate` cannot be sent to a process: {summary(error)}. Define it at "
            "the top of a module or script, or leave out `executor`."
        ) from error


_AHEAD = 2  # calls submitted for each one that runs, so that no worker waits


def in_parallel(
    function: Callable[..., object],
    things: Mapping[Key, object],
    *,
    parallel: int,
    executor: Executor | None = None,
) -> Iterator[tuple[Key, Outcome]]:
    """Call a function with each of many things."""
    if executor is None and parallel == 1:
        for key, thing in things.items():
            yield key, attempt(function, (thing,))
        return
    waiting = iter(things.items())
    most = parallel if executor is None else _AHEAD * parallel
    left = len(things)
    with closing(Engine[Key](function, executor)) as engine:
        while left:
            while len(engine.running) < min(most, left):
                engine.start(*next(waiting))
            engine.wait()
            for key in list(engine.ready):
                left -= 1
                yield key, engine.ready.pop(key)
