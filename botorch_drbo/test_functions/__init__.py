r"""Test functions with known context distribution and optimum.

Nothing in the library imports this package.

Example:
    >>> function = make_test_function("ackley_2_1", noise_std=0.1)
    >>> (function.d_x, function.d_c)
    (2, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.closed_form import PROBLEMS, closed_form

TEST_FUNCTIONS: dict[str, Callable[..., RobustTestFunction]] = {
    name: partial(closed_form, presets) for name, presets in PROBLEMS.items()
}
"""What makes each test function, by name; ``make_test_function`` calls it."""


def make_test_function(name: str, **options: Any) -> RobustTestFunction:
    """Return the test function of that name."""
    if name not in TEST_FUNCTIONS:
        raise InputDataError(
            f"No test function {name!r}. Choose one of {sorted(TEST_FUNCTIONS)}."
        )
    return TEST_FUNCTIONS[name](**options)


__all__ = [
    "TEST_FUNCTIONS",
    "RobustTestFunction",
    "make_test_function",
]
