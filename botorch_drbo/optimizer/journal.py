r"""A run on disk: one JSON line per event, on the disk before the call returns.

The first line is a header with the format, its version and the whole configuration.
Every further line is one event with its number. Nothing else is ever written, so that
what a run knows can be read, checked and rebuilt from the file alone. Floats are
written with the shortest decimal that reads back as the same float64.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

FORMAT = "botorch_drbo journal"
VERSION = 1


class Journal:
    r"""An append-only file of events, locked for one writer.

    Made by ``create`` or ``open``. The lock is advisory (``flock``): it lasts until
    ``close``, or the end of the process; there is none on Windows.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        r"""Take over an open and locked file.

        Args:
            path: Where the file is.
            descriptor: Its file descriptor, closed with the journal.
        """
        self.path = path
        self._descriptor = descriptor
        self._ends: list[int] = []  # where the header and each event end, in bytes
        self._torn: bytes | None = None
        self.close = weakref.finalize(self, os.close, descriptor)
        """Close the file and give up the lock; a second call does nothing."""

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        config: dict[str, Any],
        environment: dict[str, Any],
        events: Sequence[dict[str, Any]] = (),
    ) -> Journal:
        r"""Begin a journal.

        Args:
            path: A file that does not exist, or is empty.
            config: What ``open`` gives back, in JSON types.
            environment: What the results depend on beside it, in JSON types.
            events: Events that have happened already.

        Returns:
            The journal, with the header and the events on the disk.

        Raises:
            InputDataError: The file is not empty, or another process has it.
            OSError: The file cannot be written.
        """
        file = Path(path).absolute()
        with ExitStack() as on_failure:
            journal = cls(
                file, os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            )
            on_failure.callback(journal.close)
            _lock(journal._descriptor, file)
            if os.fstat(journal._descriptor).st_size:
                raise InputDataError(
                    f"The journal {file} exists and is not empty. To go on with its "
                    "run call `RobustOptimizer.resume(path)`; to start another, choose "
                    "another path or delete the file."
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
        r"""Read a journal and lock it; the file is not changed before ``repair``.

        Args:
            path: A journal.

        Returns:
            The journal, its header, and its events in order.

        Raises:
            InputDataError: The file is in use, is not a journal, has another version,
                or is damaged elsewhere than at its very end.
            OSError: The file cannot be read.
        """
        file = Path(path).absolute()
        with ExitStack() as on_failure:
            journal = cls(file, os.open(file, os.O_RDWR | os.O_APPEND))
            on_failure.callback(journal.close)
            _lock(journal._descriptor, file)
            records = journal._read()
            on_failure.pop_all()
        return journal, records[0], records[1:]

    def repair(self) -> None:
        """Cut off a torn last line, or give it the line end that it lacks, and warn."""
        end = self._ends[-1]
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
        r"""Write one event and wait until it is on the disk.

        Args:
            event: JSON types; ``event["number"]`` counts from 1.

        Raises:
            InputDataError: The journal is closed.
            OSError: The event cannot be written; the file is as it was.
        """
        if not self.close.alive:
            raise InputDataError(
                f"The journal {self.path} is closed. Go on with "
                "`RobustOptimizer.resume(path)`."
            )
        # An interrupt (Ctrl-C) may have fallen between the writing of an event and its
        # acceptance: what the caller has not accepted is written over.
        del self._ends[event["number"] :]
        self._write([event])

    def _write(self, records: Sequence[dict[str, Any]]) -> None:
        start = self._ends[-1] if self._ends else 0
        lines = [
            json.dumps(record, allow_nan=False).encode() + b"\n" for record in records
        ]
        data = memoryview(b"".join(lines))
        if os.fstat(self._descriptor).st_size > start:
            os.ftruncate(self._descriptor, start)
        with ExitStack() as on_failure:
            on_failure.callback(os.ftruncate, self._descriptor, start)
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
            on_failure.pop_all()
        for line in lines:
            start += len(line)
            self._ends.append(start)

    def _read(self) -> list[dict[str, Any]]:
        data = self.path.read_bytes()
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()  # what follows the last line end
        records: list[dict[str, Any]] = []
        end = 0
        for number, line in enumerate(lines):
            try:
                record = json.loads(line)
            except ValueError as error:  # not JSON, or not even text
                if number == 0:
                    raise InputDataError(_no_header(self.path)) from error
                if number < len(lines) - 1:
                    raise InputDataError(
                        f"Line {number + 1} of the journal {self.path} is not JSON: "
                        f"{line[:80]!r}. Only the last line can be torn by a crash; "
                        "this file was damaged or edited. Restore it from a copy."
                    ) from error
                self._torn = line
                break
            if number == 0:
                _check_header(record, self.path)
            elif not isinstance(record, dict) or record.get("number") != number:
                raise InputDataError(
                    f"Line {number + 1} of the journal {self.path} should be event "
                    f"number {number}, got {line[:80]!r}. Lines were lost, repeated or "
                    "come from another file. Restore the file from a copy."
                )
            records.append(record)
            end += len(line) + 1
            self._ends.append(end)
        if not records:
            raise InputDataError(_no_header(self.path))
        return records


def _no_header(path: Path) -> str:
    return (
        f"The file {path} does not begin with the header of a journal. If it should be "
        "one, the run was stopped while creating it and had recorded nothing: delete "
        "the file and start again with RobustOptimizer(..., journal=path)."
    )


def _check_header(header: object, path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputDataError(_no_header(path))
    if header.get("version") != VERSION:
        raise InputDataError(
            f"The journal {path} has version {header.get('version')!r}; this library "
            f"reads version {VERSION}. Resume it with the library that wrote it."
        )
    if not isinstance(header.get("config"), dict):
        raise InputDataError(f"The header of the journal {path} has no `config`.")


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


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable too."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
