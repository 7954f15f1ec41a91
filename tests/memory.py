"""How much memory torch's tensors take, and budgets in place of the default one."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Peak(TorchDispatchMode):
    """Inside it all tensors that are made are counted, until they are let go.

    What an operation uses for itself, within LAPACK for example, is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self._live = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for made in out if isinstance(out, tuple | list) else [out]:
            if isinstance(made, Tensor):
                self._count(made.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self._live += storage.nbytes()
            self.bytes = max(self.bytes, self._live)
            weakref.finalize(storage, self._let_go, key)

    def _let_go(self, key: int) -> None:
        self._live -= self._sizes.pop(key)


def set_default_budget(patch: pytest.MonkeyPatch, budget: int) -> None:
    """Give every function of the library that takes a `memory_budget` this default.

    Recipes take none: they use the default of what they are made of.
    """
    for function in _functions():
        defaults = function.__kwdefaults__
        if defaults and "memory_budget" in defaults:
            patch.setitem(defaults, "memory_budget", budget)


def _functions() -> Iterator[FunctionType]:
    for name, module in list(sys.modules.items()):
        if name.startswith("botorch_drbo"):
            for found in list(vars(module).values()):
                members = vars(found).values() if isinstance(found, type) else ()
                for each in (found, *members):
                    if isinstance(each, FunctionType):
                        yield each
