"""A stopwatch for parts of a computation, their backward pass included.

On the CPU the backward pass runs in the thread that asks for it, and takes the nodes of
the graph in the opposite order of their making. So a part that has made the nodes from
number ``a`` to number ``b`` in the forward pass is worked off when the backward pass
comes to these numbers. A hook before the first node of each part tells the stopwatch.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

REST = "rest"


class Stopwatch:
    """Seconds of each part, without those of the parts inside it.

    Args:
        closed: Parts that keep the seconds of the parts inside them.
    """

    def __init__(self, *, closed: Collection[str] = ()) -> None:
        """In no part, and not running."""
        self.closed = closed
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._open: list[str] = [REST]
        self._since = 0.0
        self._recording = False
        self._made: list[tuple[int, int, str]] = []  # nodes of the parts, by number

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside.

        Raises:
            RuntimeError: A part has not ended.
        """
        self._since = time.thread_time()
        yield
        self._book()
        if self._open != [REST]:
            raise RuntimeError(f"{self._open[-1]} has not ended.")

    def part(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function a part; its backward pass too, inside of ``whole``."""

        def watched(*arguments: Any, **options: Any) -> Any:
            if self._open[-1] in self.closed:
                return function(*arguments, **options)
            self._enter(name)
            first = _next_number() if self._recording else 0
            result = function(*arguments, **options)
            if self._recording:
                self._made.append((first, _next_number(), name))
            self._leave()
            return result

        return watched

    def whole(
        self, name: str, function: Callable[[Tensor], Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """Make a function of a tensor a part, with its backward pass and parts."""

        def watched(argument: Tensor) -> Tensor:
            if self._open[-1] in self.closed:
                return function(argument)
            self._enter(name)
            self._made.clear()
            self._recording = torch.is_grad_enabled() and argument.requires_grad
            argument = _Begin.apply(self, argument)
            result = function(argument)
            if self._recording:
                self._recording = False
                self._book()  # what is done here is no part's work
                self._place_hooks(name, result, argument)
                self._since = time.thread_time()
                result = _End.apply(self, name, result)
            self._leave()
            return result

        return watched

    def _place_hooks(self, name: str, result: Tensor, argument: Tensor) -> None:
        """Before each node of the backward pass with which another part begins."""
        current = name
        for node in _nodes_between(result.grad_fn, argument.grad_fn):
            number = node._sequence_nr()
            inside = [p for first, last, p in self._made if first <= number < last]
            part = inside[0] if inside else name  # the innermost ended first
            if part != current:
                node.register_prehook(lambda _, part=part: self._switch(part))
            current = part

    def _enter(self, part: str) -> None:
        self.calls[part] += 1
        self._book()
        self._open.append(part)

    def _leave(self) -> None:
        self._book()
        self._open.pop()

    def _switch(self, part: str) -> None:
        self._book()
        self._open[-1] = part

    def _book(self) -> None:
        now = time.thread_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now


def _next_number() -> int:
    """The number that the next node of a graph will get, or one less."""
    with torch.enable_grad():
        node = torch.zeros(1, requires_grad=True).neg().grad_fn
    assert node is not None
    return node._sequence_nr()  # pyright: ignore[reportAttributeAccessIssue]


def _nodes_between(last: Node | None, first: Node | None) -> list[Any]:
    """All nodes from which ``first`` is reached, in the order of the backward pass."""
    found: dict[Any, list[Any]] = {}
    todo: list[Any] = [last]
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = [
                child
                for child, _ in node.next_functions
                if child is not None and hasattr(child, "_sequence_nr")
            ]
            todo += found[node] if node != first else []
    leading = {first}
    for node in sorted(found, key=lambda node: node._sequence_nr()):
        if leading.intersection(found[node]):
            leading.add(node)
    return sorted(leading, key=lambda node: -node._sequence_nr())


class _Begin(torch.autograd.Function):
    """The identity; in the backward pass the whole ends here."""

    @staticmethod
    def forward(ctx: Any, watch: Stopwatch, tensor: Tensor) -> Tensor:
        ctx.watch = watch
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        ctx.watch._leave()
        return None, *gradients


class _End(torch.autograd.Function):
    """The identity; in the backward pass the whole begins here."""

    @staticmethod
    def forward(ctx: Any, watch: Stopwatch, name: str, tensor: Tensor) -> Tensor:
        ctx.part = watch, name
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        watch, name = ctx.part
        watch._enter(name)
        watch.calls[name] -= 1  # a call was counted in the forward pass
        return None, None, *gradients
