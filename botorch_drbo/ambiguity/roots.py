"""A batch of one-dimensional roots: Newton's method safeguarded by bisection."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_drbo import _device

_MAX_STEPS = 48
_STEPS_PER_QUESTION = 6  # on a GPU
_TOLERANCE = 4e-15
_QUADRATIC = 3e-8  # a step of Newton's this small leaves an error of about its square


def increasing_root(
    function: Callable[[Tensor], tuple[Tensor, Tensor]],
    lower: Tensor,
    upper: Tensor,
    start: Tensor,
) -> Tensor:
    r"""Find where an increasing function of each row is zero.

    Newton's method in a bracket: a step that leaves the bracket, or does not halve the
    step before, is replaced by one of bisection, so the steps never stall.

    Args:
        function: From ``x`` to its value there and the step that Newton's method, or
            one like it, would take; a step that is not a number is replaced.
        lower: Where the function is not positive.
        upper: Where the function is not negative.
        start: The first guess.

    Returns:
        The roots, to about rounding error; shaped like the bounds.

    Example:
        >>> squares = torch.tensor([4.0, 9.0], dtype=torch.double)
        >>> def error(x):
        ...     return x**2 - squares, (squares - x**2) / (2 * x)
        >>> increasing_root(error, 0 * squares, squares, squares)
        tensor([2., 3.], dtype=torch.float64)
    """
    x = torch.minimum(torch.maximum(start, lower), upper)
    last = upper - lower
    done = torch.zeros_like(x, dtype=torch.bool)
    for number in range(1, _MAX_STEPS + 1):
        value, step = function(x)
        # The bracket: f(lower) <= 0 <= f(upper).
        lower = torch.where(value <= 0.0, x, lower)
        upper = torch.where(value >= 0.0, x, upper)
        # Newton's step if it is safe, else the middle of the bracket.
        guess = x + step
        good = (guess >= lower) & (guess <= upper) & (2.0 * step.abs() <= last)
        guess = torch.where(good, guess, 0.5 * (lower + upper))
        last = (guess - x).abs()
        x = torch.where(done, x, guess)
        done = (
            done
            | (last <= _TOLERANCE * (1.0 + x.abs()))
            | (good & (last <= _QUADRATIC))
        )
        # Asking a GPU makes the host wait: that costs about as much as a step.
        asks = _device.on_cpu(x) or number % _STEPS_PER_QUESTION == 0
        if asks and bool(done.all()):
            break
    return x
