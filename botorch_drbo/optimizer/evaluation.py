"""A user's function of one decision: its arguments and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import as_numbers
from botorch_drbo.optimizer.events import Tell


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


def as_tell(
    result: Any,
    x: Tensor,
    chosen: Tensor | None,
    read_context: Callable[[Any], Tensor],
) -> Tell:
    r"""What a user's function returned, as it is told.

    Args:
        result: ``(c, y)`` or ``(c, y, constraints)``; of a context that was chosen also
            ``y`` alone.
        x: The decision, ``d_x``.
        chosen: The context that was chosen, ``d_c``; None if the world decides.
        read_context: Reads a context that the function returned.

    Raises:
        InputDataError: Something else.
    """
    if isinstance(result, tuple | list) and len(result) in (2, 3):
        c, y, *further = result
        c = read_context(c)
    elif chosen is not None and not isinstance(result, tuple | list | Mapping):
        c, y, further = chosen, result, []
    else:
        raise InputDataError(
            "`evaluate` must return (c, y) or (c, y, constraints): the context that "
            f"occurred, the outcome, and the measured constraints. It returned "
            f"{result!r:.200}."
        )
    y = as_returned(y, "y")
    if y.numel() != 1:
        raise InputDataError(
            f"`evaluate` must return one outcome `y`, got {y.numel()} numbers."
        )
    constraints = None
    if further and further[0] is not None:
        constraints = as_returned(further[0], "constraints").reshape(1, -1)
    return Tell(x=x, c=c, y=y.reshape(1), constraints=constraints)


def as_returned(value: Any, name: str) -> Tensor:
    """Numbers of any kind as a tensor of their shape."""
    return as_numbers(value, f"`evaluate` must return numbers as `{name}`")
