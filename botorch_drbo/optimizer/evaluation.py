"""A user's function of one decision: its arguments and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import as_numbers
from botorch_drbo.optimizer.events import Tell
from botorch_drbo.optimizer.tables import Tables


@dataclass(frozen=True)
class Evaluation:
    """The user's function as a worker calls it: plain data in and out.

    Tensors would be sent through shared memory, which a worker that dies takes along.

    Attributes:
        evaluate: The function.
        dtype: That of its arguments, which are tensors; None if they are dictionaries.
    """

    evaluate: Callable[..., object]
    dtype: torch.dtype | None = None

    def __call__(self, *arguments: Any) -> object:
        """Call it with a decision, and a context if that is chosen."""
        if self.dtype is None:
            return _plain(self.evaluate(*arguments))
        tensors = (torch.tensor(a, dtype=self.dtype) for a in arguments)
        return _plain(self.evaluate(*tensors))


def _plain(value: Any) -> object:
    """The same without tensors."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        short = value.is_floating_point() and value.dtype.itemsize < 4  # not in NumPy
        return (value.double() if short else value).numpy()
    if isinstance(value, tuple | list):
        return (
            type(value)(map(_plain, value)) if type(value) in (tuple, list) else value
        )
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value


class Words(Protocol):
    """How a user's function knows decisions and contexts."""

    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The function as a worker calls it."""
        ...

    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """What it is called with for a decision, and for a context if it is chosen."""
        ...

    def context(self, c: Any) -> Tensor:
        """A context that it returned, ``1 x d_c``."""
        ...


@dataclass(frozen=True)
class Numbers:
    """Vectors, of an optimizer in tensors.

    Attributes:
        dtype: That of the run.
    """

    dtype: torch.dtype

    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The function as a worker calls it."""
        return Evaluation(evaluate, self.dtype)

    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """The decision and the context as lists of numbers."""
        return (x.tolist(),) if c is None else (x.tolist(), c.tolist())

    def context(self, c: Any) -> Tensor:
        """A context from numbers of any kind, ``1 x d_c``."""
        numbers = _numbers(c, "c")
        return numbers.reshape(1) if numbers.ndim == 0 else numbers


@dataclass(frozen=True)
class Names:
    """Dictionaries, of an optimizer of named variables.

    Attributes:
        tables: Between the two.
    """

    tables: Tables

    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The function as a worker calls it."""
        return Evaluation(evaluate)

    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """The decision and the context by name, in the user's units."""
        tables = [self.tables.decisions(x.unsqueeze(0))]
        if c is not None:
            tables.append(self.tables.contexts(c.unsqueeze(0)))
        return tuple(table.to_dict("records")[0] for table in tables)

    def context(self, c: Any) -> Tensor:
        """A context by name, ``1 x d_c``."""
        if isinstance(c, np.ndarray):
            c = _numbers(c, "c")
        return self.tables.read_contexts(c, "c")


def as_tell(result: Any, x: Tensor, chosen: Tensor | None, words: Words) -> Tell:
    r"""What a user's function returned, as it is told.

    Args:
        result: ``(c, y)`` or ``(c, y, constraints)``; of a context that was chosen also
            ``y`` alone.
        x: The decision, ``d_x``.
        chosen: The context that was chosen, ``d_c``; None if the world decides.
        words: How the function knows contexts.

    Raises:
        InputDataError: Something else.
    """
    if isinstance(result, tuple | list) and len(result) in (2, 3):
        c, y, *further = result
        c = words.context(c)
    elif chosen is not None and not isinstance(result, tuple | list | Mapping):
        c, y, further = chosen, result, []
    else:
        raise InputDataError(
            "`evaluate` must return (c, y) or (c, y, constraints): the context that "
            f"occurred, the outcome, and the measured constraints. It returned "
            f"{result!r:.200}."
        )
    y = _numbers(y, "y")
    if y.numel() != 1:
        raise InputDataError(
            f"`evaluate` must return one outcome `y`, got {y.numel()} numbers."
        )
    constraints = None
    if further and further[0] is not None:
        constraints = _numbers(further[0], "constraints").reshape(1, -1)
    return Tell(x=x, c=c, y=y.reshape(1), constraints=constraints)


def _numbers(value: Any, name: str) -> Tensor:
    """Numbers of any kind as a tensor of their shape."""
    return as_numbers(value, f"`evaluate` must return numbers as `{name}`")
