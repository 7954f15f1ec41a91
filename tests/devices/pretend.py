"""A pretended device: tensors that say that they are elsewhere, and keep their values.

On a machine without a GPU it shows what a GPU would: operations that mix tensors of two
devices, and reads, at which the program waits for the device. FakeTensorMode of torch
knows the rules of mixing too (``test_pretend.py`` compares), but its tensors have no
values, so every loop that ends by a value stops it at once; and a build of torch for
CPUs alone has no autograd on "cuda" (the process is aborted). So the label is "meta",
which every build knows.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ELSEWHERE = torch.device("meta")
CPU = torch.device("cpu")
LIBRARY = Path(__file__).parents[2] / "botorch_drbo"

aten = torch.ops.aten
# What returns a number, or a tensor whose size is a value: the program waits.
READS = {
    aten._local_scalar_dense,
    aten.is_nonzero,
    aten.equal,
    aten.nonzero,
    aten.masked_select,
    aten._linalg_check_errors,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.bincount,
}
# A tensor on the CPU without dimensions may meet tensors elsewhere, here as in every
# operation by elements: it is passed as a number.
TAKES_NUMBERS = {
    aten.where,
    aten.masked_fill,
    aten.masked_fill_,
    aten.fill,
    aten.fill_,
    aten.index_put,
    aten.index_put_,
    aten._index_put_impl_,
    aten.pow,
    aten.lerp,
}
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
MOVES = {aten.copy_, aten._to_copy, aten.lift_fresh, aten.lift, aten.is_set_to}


class MixedDevicesError(RuntimeError):
    """An operation got tensors of two devices."""


class Elsewhere(torch.Tensor):
    """A tensor that says that it is elsewhere."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=ELSEWHERE,
        )
        made.inner = inner
        return made

    def __repr__(self) -> str:
        return f"Elsewhere({self.inner!r})"

    def tolist(self) -> Any:
        """A copy to the CPU, as of a tensor on a GPU."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        # Only where no `Pretended` is on: what made it is over.
        return perform(func, args, kwargs or {})


def inner(x: Any) -> Any:
    return x.inner if isinstance(x, Elsewhere) else x


def check_mix(func: Any, args: tuple, kwargs: dict) -> None:
    """Raise where CUDA would."""
    packet = func.overloadpacket
    for t in tree_leaves((args, kwargs)):
        lost = isinstance(t, torch.Tensor) and not isinstance(t, Elsewhere)
        if lost and t.device.type == ELSEWHERE.type:
            raise NotImplementedError(f"{func} got a tensor whose values are lost")
    if packet in MOVES:
        return
    looked_at = args
    if packet in INDEXED:  # indices on the CPU are moved; those elsewhere are not
        target, indices, *rest = args
        if not isinstance(target, Elsewhere):
            looked_at = (target, [i for i in indices if isinstance(i, Elsewhere)], rest)
        else:
            looked_at = (target, rest)
    tensors = [
        t for t in tree_leaves((looked_at, kwargs)) if isinstance(t, torch.Tensor)
    ]
    if not any(isinstance(t, Elsewhere) for t in tensors):
        return
    numbers = packet in TAKES_NUMBERS or torch.Tag.pointwise in func.tags
    for t in tensors:
        if not (isinstance(t, Elsewhere) or (numbers and t.ndim == 0)):
            shapes = [(type(t).__name__, tuple(t.shape)) for t in tensors]
            raise MixedDevicesError(f"{func} mixes devices: {shapes}")
    if func._schema.name.endswith("_") and not isinstance(args[0], Elsewhere):
        raise MixedDevicesError(f"{func} writes to the CPU what is elsewhere")


def perform(func: Any, args: tuple, kwargs: dict) -> Any:
    check_mix(func, args, kwargs)
    here = dict(kwargs)
    asked = None
    generator, device = here.get("generator"), here.get("device")
    foreign = None not in (generator, device) and (
        generator.device.type != torch.device(device).type
    )
    if foreign:
        raise MixedDevicesError(f"{func} draws by a generator of another device")
    if here.get("device") is not None:
        asked = torch.device(here["device"])
        here["device"] = CPU
    elsewhere = any(isinstance(t, Elsewhere) for t in tree_leaves((args, kwargs)))
    if asked is not None:
        elsewhere = asked.type == ELSEWHERE.type
    if func.overloadpacket in INDEXED:
        elsewhere = isinstance(args[0], Elsewhere)
    out = func(*tree_map(inner, args), **tree_map(inner, here))
    if torch.Tag.inplace_view in func.tags:  # the shape changes, of the label too
        with no_dispatch():
            func(*args, **kwargs)
    if func._schema.is_mutable:
        return _the_arguments(func, args, kwargs, out)
    return tree_map(
        lambda t: Elsewhere(t) if elsewhere and isinstance(t, torch.Tensor) else t, out
    )


def _the_arguments(func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """What was written to, as the very tensors that were passed."""
    written = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.name in kwargs:
                written.append(kwargs[argument.name])
            else:
                written.append(args[position])
    for t in written:
        if isinstance(t, Elsewhere) and t.shape != t.inner.shape:
            raise NotImplementedError(f"{func} changes the shape in place")
    if len(func._schema.returns) == 0:
        return None
    if len(func._schema.returns) != len(written):
        raise NotImplementedError(f"{func} writes to some of what it returns")
    return written[0] if len(written) == 1 else tuple(written)


class Pretended(TorchDispatchMode):
    """While it is on, ``device="meta"`` means elsewhere, and reads are counted.

    Attributes:
        reads: Where in the library a value was read, as "file.py:function", and how
            often.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._reads(func, args, kwargs):
            self.reads[library_frame()] += 1
        return perform(func, args, kwargs)

    def _reads(self, func: Any, args: tuple, kwargs: dict) -> bool:
        if _is_sent(func, args, kwargs):
            return True
        if not any(isinstance(t, Elsewhere) for t in tree_leaves(args)):
            return False
        packet = func.overloadpacket
        if packet in READS:
            return True
        if packet is aten.repeat_interleave:
            return kwargs.get("output_size") is None
        if packet in INDEXED:
            return any(
                isinstance(i, Elsewhere) and i.dtype in (torch.bool, torch.uint8)
                for i in args[1]
            )
        if packet is aten._to_copy:
            to = kwargs.get("device")
            return to is not None and torch.device(to).type == "cpu"
        if packet is aten.copy_:
            return isinstance(args[1], Elsewhere) and not isinstance(args[0], Elsewhere)
        return False


def _is_sent(func: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a tensor of the CPU is copied there, and the program waits until it is.

    It does not if it says so (``non_blocking``); CUDA has the numbers by then.
    """
    packet = func.overloadpacket
    if packet is aten._to_copy:
        to = kwargs.get("device")
        there = to is not None and torch.device(to).type == ELSEWHERE.type
        sent = there and not isinstance(args[0], Elsewhere)
        return sent and not kwargs.get("non_blocking", False)
    if packet is aten.copy_:
        sent = isinstance(args[0], Elsewhere) and not isinstance(args[1], Elsewhere)
        return sent and not (args[2:] or [kwargs.get("non_blocking", False)])[0]
    return False


def library_frame() -> str:
    """The innermost function of the library that is running."""
    frame = sys._getframe()
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(LIBRARY):
            return f"{file.relative_to(LIBRARY).as_posix()}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "outside"


class _ListsOfIndices(TorchFunctionMode):
    """Lists as indices: torch makes tensors of them without asking a dispatch mode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            target, index, *value = args
            parts = index if isinstance(index, tuple) else (index,)
            parts = tuple(
                torch.tensor(i, dtype=None if i else torch.long).to(target.device)
                if isinstance(i, list)
                else i
                for i in parts
            )
            args = (target, parts if isinstance(index, tuple) else parts[0], *value)
        return func(*args, **(kwargs or {}))


def _moved_behind(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Of ``torch.tensor``, which gets numbers and makes tensors without values."""

    def made(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        if device is None or torch.device(device).type != ELSEWHERE.type:
            return make(*args, device=device, **kwargs)
        return make(*args, **kwargs).to(device)

    return made


def _new_tensor(like: Tensor, data: Any, **kwargs: Any) -> Tensor:
    return torch.tensor(data, **({"dtype": like.dtype, "device": like.device} | kwargs))


@contextmanager
def pretended() -> Iterator[Pretended]:
    """Run a block with the pretended device.

    Yields:
        What counts the reads.
    """
    with (
        patch.object(torch, "tensor", _moved_behind(torch.tensor)),
        patch.object(torch, "as_tensor", _moved_behind(torch.as_tensor)),
        patch.object(torch.Tensor, "new_tensor", _new_tensor),
        _ListsOfIndices(),
        Pretended() as mode,
    ):
        yield mode


T = TypeVar("T")


def deep_copy(x: T, move: Callable[[Tensor], Tensor]) -> T:
    """A deep copy with every tensor in it moved."""

    def moved(t: Tensor, memo: dict[int, Any]) -> Tensor:
        new = move(t)
        if isinstance(t, torch.nn.Parameter):
            new = torch.nn.Parameter(new, t.requires_grad)
        memo[id(t)] = new
        return new

    with (
        patch.object(torch.Tensor, "__deepcopy__", moved),
        patch.object(torch.nn.Parameter, "__deepcopy__", moved),
    ):
        return copy.deepcopy(x)
