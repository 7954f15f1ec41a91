"""Each test of a contract runs once for each case that is listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest


class Named(Protocol):
    """What has a name, by which a failing test calls it."""

    @property
    def name(self) -> str:
        """The name."""
        ...


def run_for_each(metafunc: pytest.Metafunc, **cases: Sequence[Named]) -> None:
    """Run a test for each case."""
    for argument, listed in cases.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, listed, ids=[case.name for case in listed])
