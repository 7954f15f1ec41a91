"""A bar that shows how far a run has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

from botorch.exceptions.errors import InputDataError


class Progress(Protocol):
    """What is told of each thing that is over."""

    def advance(self, *, failed: bool) -> None:
        """One more is over."""
        ...


class _Silent:
    """Nothing is shown."""

    def advance(self, *, failed: bool) -> None:
        """One more is over."""


@contextmanager
def shown_progress(shown: bool, total: int, what: str) -> Iterator[Progress]:
    """Show a bar on stderr while the block lasts.

    Args:
        shown: Whether to show it.
        total: How many there are.
        what: What they are.

    Raises:
        InputDataError: There is no ``rich``, which draws it.
    """
    if not shown:
        yield _Silent()
        return
    if find_spec("rich") is None:
        raise InputDataError("`progress=True` needs rich: `pip install rich`.")
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn(what),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[failures]}"),
        progress.TimeElapsedColumn(),
    )

    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, failures="")

        class Bar:
            """The bar of this run."""

            failures = 0

            def advance(self, *, failed: bool) -> None:
                """One more is over."""
                self.failures += failed
                text = f"{self.failures} failed" if self.failures else ""
                bar.update(task, advance=1, failures=text)

        yield Bar()
