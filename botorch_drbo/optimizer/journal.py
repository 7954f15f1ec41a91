"""A run on disk: its journal, its checksums, its state.

The first line is a header with the format, its version and the whole configuration.
Every further line is one event with its number. Nothing else is ever written, so a run
can be read, checked and rebuilt from the file alone. Floats are written with the
shortest decimal that reads back as the same float64.

Each line ends in a checksum of itself and of all lines before it. It detects a changed
bit, a lost line and a line of another run, but not whole lines that are missing at the
very end.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import platform
import re
import sys
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import botorch
import gpytorch
import scipy
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

import botorch_drbo
from botorch_drbo.codec.objects import Json


def checksum(previous: str, body: bytes) -> str:
    """The first 64 bits of SHA-256 over a checksum and the bytes that follow it."""
    return hashlib.sha256(previous.encode() + body).hexdigest()[:16]


def state_checksum(state: dict[str, Any]) -> str:
    """The checksum of a state, the same after any trip through JSON.

    Stores of JSON keep neither the order of keys nor, some of them, the difference
    between 1 and 1.0.
    """
    content = [state.get(key) for key in ("config", "events")]
    try:
        text = json.dumps(_canonical(content), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputDataError(
            "The state holds something other than plain JSON types, or is nested too "
            f"deeply ({type(error).__name__}): it is damaged."
        ) from error
    return checksum("", text.encode())


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


FORMAT = "botorch_drbo journal"
VERSION = 4
_BEGINS = b'{"format": "botorch_drbo journal", '
_SEAL = re.compile(rb', "check": "[0-9a-f]{16}"}')
_SEAL_LENGTH = len(b', "check": "0123456789abcdef"}')


class _Line(NamedTuple):
    end: int  # in bytes from the beginning of the file, with its line end
    check: str  # of this line and all before it


class Journal:
    """An append-only file of events, locked for one writer.

    Made by ``create`` or ``open``. The lock is advisory (``flock``): it lasts until
    ``close``, or the end of the process; there is none on Windows. Only the process
    that made the journal may write: a forked child has a copy that would not know of
    its parent's events.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._lines: list[_Line] = []  # the header and each event
        self._written_end = 0  # up to where the file may hold bytes that this run wrote
        self._torn: bytes | None = None
        self._owner = os.getpid()
        self.close = weakref.finalize(self, _release, descriptor, self._owner)
        """Close the file and give up the lock; a second call does nothing."""

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        config: dict[str, Any],
        environment: dict[str, Any],
        events: Sequence[dict[str, Any]] = (),
    ) -> Journal:
        """Begin a journal."""
        file = Path(path).absolute()
        with ExitStack() as on_failure:
            journal = cls(
                file, os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            )
            on_failure.callback(journal.close)
            _lock(journal._descriptor, file)
            if os.fstat(journal._descriptor).st_size:
                raise InputDataError(
                    f"The file {file} exists and is not empty. If it is the journal of "
                    "a run, go on with it by `resume(path)`; to start "
                    "another run, choose another path."
                )
            header = {
                "format": FORMAT,
                "version": VERSION,
                "config": config,
                "environment": environment,
            }
            journal._write([header, *events])
            _sync_folder(file.parent)
            on_failure.pop_all()
        return journal

    @classmethod
    def open(
        cls, path: str | os.PathLike[str]
    ) -> tuple[Journal, dict[str, Any], list[dict[str, Any]]]:
        """Read a journal and lock it; the file is not changed before ``repair``."""
        file = Path(path).absolute()
        with ExitStack() as on_failure:
            if not file.exists():
                raise FileNotFoundError(
                    errno.ENOENT,
                    "There is no such journal. A run writes one if it is begun with "
                    "`journal=path`",
                    str(file),
                )
            journal = cls(file, os.open(file, os.O_RDWR | os.O_APPEND))
            on_failure.callback(journal.close)
            _lock(journal._descriptor, file)
            records = journal._read()
            on_failure.pop_all()
        return journal, records[0], records[1:]

    def repair(self) -> None:
        """Cut off a torn last line, or give it the line end that it lacks, and warn."""
        end = self._lines[-1].end
        if self._torn is not None:
            os.ftruncate(self._descriptor, end)
            os.fsync(self._descriptor)
            warnings.warn(
                f"The last line of the journal {self.path} was incomplete and has been "
                "cut off: the run was stopped while writing it, before the call "
                f"returned. It began with {self._torn[:80]!r}.",
                BotorchWarning,
                stacklevel=3,
            )
        elif os.fstat(self._descriptor).st_size < end:
            os.write(self._descriptor, b"\n")
            os.fsync(self._descriptor)
            warnings.warn(
                f"The last line of the journal {self.path} lacked its line end, which "
                "has been added. Its event is whole and counts.",
                BotorchWarning,
                stacklevel=3,
            )
        self._torn = None

    def append(self, event: dict[str, Any]) -> None:
        """Write one event and wait until it is on the disk."""
        # An interrupt (Ctrl-C) may have fallen between the writing of an event and its
        # acceptance: what the caller has not accepted is written over.
        del self._lines[event["number"] :]
        self._check_writable()
        self._write([event])

    def _check_writable(self) -> None:
        """Refuse to write unless the file is the one that this run has written."""
        if not self.close.alive:
            raise InputDataError(
                f"The journal {self.path} is closed. Go on with `resume(path)`."
            )
        if os.getpid() != self._owner:
            raise InputDataError(
                f"The journal {self.path} belongs to process {self._owner}, and this "
                f"is process {os.getpid()}, forked from it: two writers would destroy "
                "the run. Ask and tell in the process that opened the journal, and "
                "send it the outcomes. If that process has ended, call `close()` here "
                "and `resume(path)`."
            )
        here, end = os.fstat(self._descriptor), self._lines[-1].end
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            there = None
        if there is None:
            what = "was removed or renamed while the run was using it"
        elif not os.path.samestat(here, there):
            what = "was replaced by another file while the run was using it"
        elif not end <= here.st_size <= self._written_end:
            what = (
                f"has {here.st_size} bytes where this run has written {end}: someone "
                "else cut it or wrote to it"
            )
        else:
            return
        raise InputDataError(
            f"The journal {self.path} {what}. Nothing was recorded or written now. The "
            "run up to here is in memory: put the file back, or go on in a new one "
            "with `from_state_dict(opt.state_dict(), journal=path)`."
        )

    def _write(self, records: Sequence[dict[str, Any]]) -> None:
        start, check = self._lines[-1] if self._lines else (0, "")
        end, written, lines = start, list[_Line](), list[bytes]()
        for record in records:
            body = json.dumps(record, allow_nan=False).encode().removesuffix(b"}")
            check = checksum(check, body)
            lines.append(_with_check(body, check) + b"\n")
            end += len(lines[-1])
            written.append(_Line(end, check))
        if os.fstat(self._descriptor).st_size > start:
            os.ftruncate(self._descriptor, start)
        self._written_end = end
        with ExitStack() as on_failure:
            on_failure.callback(os.ftruncate, self._descriptor, start)
            left = memoryview(b"".join(lines))
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
            on_failure.pop_all()
        self._lines.extend(written)

    def _read(self) -> list[dict[str, Any]]:
        with open(self._descriptor, "rb", closefd=False) as file:
            data = file.read()
        self._written_end = len(data)
        if (data.startswith(_BEGINS) or _BEGINS.startswith(data)) and (
            b"\n" not in data and self._is_torn(data)
        ):
            raise InputDataError(
                f"The journal {self.path} ends within its first line, the header: the "
                "run was stopped while creating it and had recorded nothing. Start "
                "again with RobustOptimizer(..., journal=path), on another path unless "
                "the file is empty."
            )
        *lines, tail = data.split(b"\n")  # what follows the last line end, if anything
        records = [self._accept(line, number) for number, line in enumerate(lines)]
        if tail and records and self._is_torn(tail):
            self._torn = tail
        elif tail:
            records.append(self._accept(tail, len(records)))
        return records

    def _is_torn(self, tail: bytes) -> bool:
        """Whether a line without an end was cut off while it was written.

        Such a line is cut before its checksum is complete. Else it is a whole line, or
        a damaged one.
        """
        return not _SEAL.search(tail)

    def _accept(self, line: bytes, number: int) -> dict[str, Any]:
        """The record of a line, without its checksum; number 0 is the header."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # not JSON, or not even text
            if number == 0:
                raise _no_header(line, self.path) from error
            raise self._damaged(number, line, "is not JSON") from error
        if number == 0:
            if not isinstance(record, dict) or record.get("format") != FORMAT:
                raise _no_header(line, self.path)
            _check_header(record, self.path)
        elif (
            not isinstance(record, dict)
            or type(record.get("number")) is not int
            or record["number"] != number
        ):
            raise self._damaged(number, line, f"should be event number {number}")
        end, check = self._lines[-1] if self._lines else (0, "")
        body = line[:-_SEAL_LENGTH]
        check = checksum(check, body)
        if line != _with_check(body, check):
            raise self._damaged(number, line, "does not fit its checksum")
        self._lines.append(_Line(end + len(line) + 1, check))
        record.pop("check", None)
        return record

    def _damaged(self, number: int, line: bytes, what: str) -> InputDataError:
        advice = "Restore the file from a copy."
        if number > 0:
            advice += (
                " To go on from before the damage instead, copy the first "
                f"{number} lines to a new file and resume that."
            )
        return InputDataError(
            f"Line {number + 1} of the journal {self.path} {what}: {line[:80]!r}. The "
            "file was damaged or edited, or lines of it were lost, repeated or moved; "
            f"it has been left as it is. {advice}"
        )


def _with_check(body: bytes, check: str) -> bytes:
    """A line from its JSON object without the closing brace, and its checksum."""
    return body + b', "check": "%s"}' % check.encode()


def _no_header(line: bytes, path: Path) -> InputDataError:
    return InputDataError(
        f"The file {path} does not begin with the header of a journal, but with "
        f"{line[:80]!r}. It was not written by botorch_drbo, or its first line was "
        "lost or damaged. Check the path, or restore the file from a copy; it has been "
        "left as it is."
    )


def _check_header(header: dict[str, Any], path: Path) -> None:
    """Refuse another version, and a header without a configuration."""
    version = header.get("version")
    if version != VERSION:
        raise InputDataError(
            f"Line 1 of the journal {path} has version {version!r}, and this library "
            f"reads version {VERSION}: resume it with the library that wrote it, or "
            "restore the file from a copy if it was damaged."
        )
    if not isinstance(header.get("config"), dict):
        raise InputDataError(
            f"Line 1 of the journal {path}, the header, has no `config`: it was "
            "damaged. Restore the file from a copy."
        )


def _lock(descriptor: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl  # not on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputDataError(
            f"The journal {path} is in use by another optimizer, in this process or "
            "another one. Call `close()` on it or end that process; two writers would "
            "destroy the run."
        ) from error
    except OSError as error:
        warnings.warn(
            f"The journal {path} cannot be locked ({error}); make sure that no other "
            "process writes to it.",
            BotorchWarning,
            stacklevel=4,
        )


def _release(descriptor: int, owner: int) -> None:
    """Close the file, and give up the lock if this process took it.

    A forked child shares the lock: closing its copy leaves it to the parent. If the
    parent closes first, a child's copy must not keep it.
    """
    if sys.platform != "win32" and os.getpid() == owner:
        import fcntl  # not on Windows

        with suppress(OSError):  # a file system without locks: there was none
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


STATE_FORMAT = "botorch_drbo state"


def write_state(
    config: Json, environment: Json, events: Sequence[dict[str, Json]]
) -> dict[str, Json]:
    """The state of a run; nothing in it is shared with the run."""
    state = {
        "format": STATE_FORMAT,
        "version": VERSION,
        "config": config,
        "environment": environment,
        "events": copy.deepcopy(list(events)),
    }
    return {**state, "check": state_checksum(state)}


def read_state(state: object) -> tuple[object, object, list[object]]:
    """The configuration, the environment and the events of a state."""
    if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
        raise InputDataError(
            "`state` must be a dictionary from `RobustOptimizer.state_dict()`."
        )
    version = state.get("version")
    if version != VERSION:
        raise InputDataError(
            f"The state has version {version!r}, and this library reads version "
            f"{VERSION}: load it with the library that made it."
        )
    if state.get("check") != state_checksum(state):
        raise InputDataError(
            "The state does not fit its checksum: it was damaged or edited after "
            "`state_dict()`. Restore it from a copy."
        )
    events = state.get("events")
    if not isinstance(events, list):
        raise InputDataError("The state has no list of `events`: it is damaged.")
    return state.get("config"), state.get("environment"), events


def environment() -> dict[str, Json]:
    """What a decision depends on beside the configuration and the events."""
    return {
        "botorch_drbo": botorch_drbo.__version__,
        "botorch": botorch.__version__,
        "gpytorch": gpytorch.__version__,
        "torch": str(torch.__version__),
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }


def compare_environment(stored: object, source: str) -> None:
    """Warn if a run continues with other versions than it began with."""
    now = environment()
    if not isinstance(stored, dict):
        lacks = f"In {source} no `environment` says under which versions the run was."
        _warn(f"{lacks} Now they are {now}.")
        return
    names = [name for name in {**now, **stored} if stored.get(name) != now.get(name)]
    if names:
        changes = [
            f"{name} {stored.get(name, 'not recorded')}, now {now.get(name, 'unknown')}"
            for name in names
        ]
        _warn(f"In {source} the run had: {'; '.join(changes)}.")


def _warn(what: str) -> None:
    warnings.warn(
        f"{what} No observation is affected, but the next decisions may differ from "
        "what that run would have asked.",
        BotorchWarning,
        stacklevel=4,
    )
