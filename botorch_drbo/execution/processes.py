"""One call at a time in processes of this machine; one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_byte
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

from botorch.exceptions.errors import InputDataError

_LONGEST = 20_000  # characters of a traceback: some errors print all of their data


@dataclass(frozen=True)
class Returned:
    """What a call returned."""

    # The result.
    value: object


@dataclass(frozen=True)
class Raised:
    """Why a call returned nothing."""

    # The error in one line.
    summary: str
    # The traceback, or all that is known instead.
    details: str


Outcome: TypeAlias = Returned | Raised


def attempt(
    function: Callable[..., object], arguments: tuple[object, ...], label: str = ""
) -> Outcome:
    """Call a function; an error is an outcome like another.

    An error crosses to another process as text, because not every exception can be
    pickled there and unpickled here.
    """
    try:
        return Returned(function(*arguments))
    except (Exception, SystemExit) as error:
        return Raised(summary(error), _details(error))


def summary(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _details(error: BaseException) -> str:
    own = error.__traceback__  # its first frame is `attempt`
    below = None if own is None else own.tb_next
    text = "".join(traceback.format_exception(error.with_traceback(below)))
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


class Processes:
    """Worker processes that call one function.

    They are new interpreters (``spawn``): nothing of this process is copied, neither
    its threads nor the lock of a journal. A process that dies takes only its own call
    with it. They end with this process, however it ends, together with the programs
    that they have started.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._payload = _pickled(function)
        self._workers: list[_Worker] = []
        # Without a lock, which a process that dies might hold.
        self._loaded = multiprocessing.get_context("spawn").RawValue("b", 0)

    @property
    def has_loaded(self) -> bool:
        """Whether any process has loaded the function: what dies later dies of it."""
        return bool(self._loaded.value)

    def start(self, arguments: tuple[object, ...]) -> _Worker:
        """Begin a call in a process that has none, or in a new one."""
        self._workers = [w for w in self._workers if w.is_usable]
        worker = next((w for w in self._workers if not w.is_busy), None)
        if worker is None:
            worker = _Worker(self._payload, self._loaded)
            self._workers.append(worker)
        worker.begin(arguments)
        return worker

    def close(self) -> None:
        """End all processes at once, whatever they do."""
        for worker in self._workers:
            worker.end()


class _Worker:
    """A process, and the future of the call that it makes."""

    def __init__(self, payload: bytes, loaded: c_byte) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, payload, loaded))
        self._process.start()
        theirs.close()  # so that its end is seen here
        self.is_busy = False

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a further call, now or later."""
        return not self._connection.closed and self._process.is_alive()

    def begin(self, arguments: tuple[object, ...]) -> None:
        """Send the arguments of a call; if the process has died, `result` says it."""
        self.is_busy = True
        with suppress(OSError):
            self._connection.send(arguments)

    def done(self) -> bool:
        """Whether the call is over, or will never be."""
        return self._connection.poll() or not self._process.is_alive()

    def result(self) -> Outcome:
        """What came of the call."""
        try:
            found = self._connection.recv() if self._connection.poll() else None
        except (EOFError, OSError, pickle.UnpicklingError):  # cut off by its death
            found = None
        if isinstance(found, Outcome):
            self.is_busy = False
            return found
        self.end()
        raise RuntimeError(
            f"The worker process {self._process.pid} ended (exit code "
            f"{self._process.exitcode}) before the call did."
            if found is None
            else f"The function cannot be loaded in a worker process: {found}"
        )

    def end(self) -> None:
        """Kill the process and what it has started."""
        if self._connection.closed:
            return
        if self._process.is_alive():
            _kill_group(self._process.pid)
            self._process.kill()
        self._process.join()
        self._connection.close()

    cancel = end  # the process ends with its call


def _kill_group(leader: int | None) -> None:
    """Kill a process that leads a group of its own, and the group."""
    if sys.platform != "win32" and leader is not None:
        with suppress(ProcessLookupError, PermissionError):  # it leads none yet
            os.killpg(leader, signal.SIGKILL)


def _serve(connection: Connection, payload: bytes, loaded: c_byte) -> None:
    """The life of a worker process."""
    if sys.platform != "win32":
        os.setsid()  # Ctrl-C in the terminal is for the run, not for its evaluations
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function = pickle.loads(payload)
    except Exception as error:
        connection.send(summary(error))
        return
    loaded.value = 1
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        outcome = attempt(function, arguments)
        try:
            connection.send(outcome)
        except Exception as error:  # the result cannot be pickled
            text = f"The result cannot be sent back: {summary(error)}"
            connection.send(Raised(text, text))


def _end_with_parent() -> None:
    """End this process when the run that started it has been killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        _kill_group(os.getpid())
        os._exit(1)


def _pickled(function: Callable[..., object]) -> bytes:
    """A function as a new interpreter can load it.

    By its name where it is in a module or a script; else by its code, with cloudpickle.
    """
    is_script = hasattr(sys.modules["__main__"], "__file__")
    reason = "it is defined in a session, which other processes cannot import"
    if is_script or getattr(function, "__module__", None) != "__main__":
        try:
            return pickle.dumps(function)
        except Exception as error:
            reason = summary(error)
    if find_spec("cloudpickle") is None:
        raise InputDataError(
            f"`evaluate` cannot be sent to another process: {reason}. Define it at the "
            "top of a module or script, `pip install cloudpickle`, or pass "
            "`executor=concurrent.futures.ThreadPoolExecutor()`."
        )
    import cloudpickle

    try:
        return cloudpickle.dumps(function)
    except Exception as error:
        raise InputDataError(
            f"`evaluate` cannot be sent to another process: {summary(error)}. Define "
            "it at the top of a module or script without what cannot be sent, or pass "
            "`executor=concurrent.futures.ThreadPoolExecutor()`."
        ) from error
