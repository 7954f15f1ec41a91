"""What the exact solvers share: sorted and scaled scores, checks of weights, roots."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo import _device
from botorch_drbo._validation import check_weights


def ranked(scores: Tensor, *, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort the last dimension.

    Equal scores keep no particular order, but always the same one.

    Shapes: ``scores``: ``... x n``, returns ``... x n``.
    """
    if not _device.on_cpu(scores):
        return scores.sort(dim=-1, descending=descending, stable=True)
    # NumPy sorts three times as fast as torch on a CPU with vector instructions.
    keys = (-scores if descending else scores).detach().numpy()
    order = torch.from_numpy(keys.argsort(axis=-1))
    return scores.gather(-1, order), order


def places_of_least(values: Tensor) -> Tensor:
    """The first of the lowest of each row, ``... x n`` to ``...``.

    NumPy's takes a sixth of torch's time on a CPU with vector instructions.
    """
    if not _device.on_cpu(values):
        return values.argmin(-1)
    return torch.from_numpy(values.numpy().argmin(-1))


def scaled_scores(values: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Shift scores by ``low`` and divide them by their range.

    Only differences of scores matter: a large offset would cost digits, and squares of
    very large or small scores would overflow.

    Shapes: ``values``: ``... x n``, ``low``: ``... x 1``, returns ``... x n``.
    """
    span = values.amax(-1, keepdim=True) - values.amin(-1, keepdim=True)
    span = torch.where(span > 0, span, 1.0)
    return (values - low) / span, span


def may_hold(condition: Tensor) -> bool:
    """Whether a condition holds anywhere; True on a GPU, where the check would wait."""
    return not _device.on_cpu(condition) or bool(condition.any())


def lowest_supported(values: Tensor, weights: Tensor) -> Tensor:
    """The lowest score of an atom with weight: ``... x n`` twice to ``... x 1``."""
    if may_hold(weights.amin(-1) <= 0):
        values = torch.where(weights > 0, values, torch.inf)
    return values.amin(-1, keepdim=True)


_ON_SIMPLEX: WeakValueDictionary[tuple[int, int], Tensor] = WeakValueDictionary()
"""Weights that were checked already: reading a result makes a GPU wait."""


def check_simplex(weights: Tensor) -> None:
    """Raise unless the weights, ``... x n``, are distributions, up to rounding."""
    # Inference tensors count no versions: a change in place would go unseen.
    key = None if weights.is_inference() else (id(weights), weights._version)
    if 0 in weights.shape[:-1] or (key and _ON_SIMPLEX.get(key) is weights):
        return
    sums = weights.detach().sum(-1)
    off = (sums - 1).abs().max()
    # Float64 weights may be those of a float32 context set, rounded before.
    rounding = max(torch.finfo(weights.dtype).eps ** 0.5, 1e-6)
    # Written so that NaN fails.
    if not (off <= rounding and weights.min() >= 0):
        raise InputDataError(
            "`weights` must lie on the simplex (not negative, sum one), got a minimum "
            f"of {weights.min().item()} and sums from {sums.min().item()} to "
            f"{sums.max().item()}. Divide them by their sum, or take the weights of a "
            "ContextSet."
        )
    if key:
        _ON_SIMPLEX[key] = weights


def check_distributions(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    r"""Check two distributions, as ``distance`` of a set gets them.

    Args:
        p: Reference weights, ``... x n``.
        q: Other weights, ``... x m``.

    Returns:
        Both in float64, scaled to sum to one.

    Raises:
        InputDataError: Negative, not finite, or zero-sum weights.

    Example:
        >>> check_distributions(torch.tensor([1, 3]), torch.tensor([0.5, 0.5]))[0]
        tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    p = check_weights(p.double(), p.shape[-1], "p")
    return p, check_weights(q.double(), q.shape[-1], "q")


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
