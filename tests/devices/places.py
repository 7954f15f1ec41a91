"""Where the tests of this folder run the library: a pretended device, and a GPU."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from tests.devices.pretend import (
    ELSEWHERE,
    Elsewhere,
    deep_copy,
    inner,
    library_frame,
    pretended,
)
from tests.devices.reads import READS, READS_ON_CUDA


class Reads(Protocol):
    """Counts where the library waited for the device, as "file.py:function"."""

    @property
    def reads(self) -> Counter[str]: ...


@dataclass(frozen=True)
class Place:
    """A device that is not the CPU.

    Attributes:
        device: As torch writes it.
        arrive: A copy of a tensor there.
        values: The values of a tensor there, on the CPU.
        running: A block of code with its reads counted.
        listed: Where a value may be read.
        rounding: By how many times more results may differ from those of the CPU than
            those of the pretended device: kernels add in another order.
    """

    device: torch.device
    arrive: Callable[[Tensor], Tensor]
    values: Callable[[Tensor], Tensor]
    running: Callable[[], AbstractContextManager[Reads]]
    listed: frozenset[str]
    rounding: float

    def there(self, x: Any) -> Any:
        """A deep copy with every tensor in it there, as if it had been made there.

        ``model.to(device)`` is something else: BoTorch's models forget what they keep
        beside their buffers.
        """
        return deep_copy(x, self.arrive)

    def unlisted(self, reads: Counter[str]) -> set[str]:
        """Where the library waited though the list does not say so."""
        return set(reads) - self.listed

    def assert_equal(
        self, found: Tensor, expected: Tensor, *, rtol: float, atol: float
    ) -> None:
        """It is there, and its values are those of the CPU."""
        assert found.device.type == self.device.type
        torch.testing.assert_close(
            self.values(found.detach()),
            expected.detach(),
            rtol=rtol * self.rounding,
            atol=atol * self.rounding,
            equal_nan=True,
        )


@dataclass(frozen=True)
class _Counted:
    reads: Counter[str]


@contextmanager
def _on_cuda() -> Iterator[_Counted]:
    """CUDA itself says where the program waits for it, by warnings."""
    counted = _Counted(Counter())

    def count(message: Warning | str, *where: object) -> None:
        if "synchronizing CUDA operation" in str(message):
            counted.reads[library_frame()] += 1

    with warnings.catch_warnings(), patch.object(warnings, "showwarning", count):
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield counted
        finally:
            torch.cuda.set_sync_debug_mode("default")


PRETENDED = Place(
    device=ELSEWHERE,
    arrive=lambda t: Elsewhere(t.detach().clone()),
    values=inner,
    running=pretended,
    listed=frozenset(READS),
    rounding=1.0,
)
CUDA = Place(
    device=torch.device("cuda"),
    arrive=lambda t: t.detach().to("cuda", copy=True),
    values=lambda t: t.cpu(),
    running=_on_cuda,
    listed=frozenset(READS) | frozenset(READS_ON_CUDA),
    rounding=10.0,
)
PLACES = {"pretended": PRETENDED} | (
    {"cuda": CUDA} if torch.cuda.is_available() else {}
)
on_each_place = pytest.mark.parametrize(
    "place", [pytest.param(place, id=name) for name, place in PLACES.items()]
)
