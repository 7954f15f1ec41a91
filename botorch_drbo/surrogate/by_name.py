"""Surrogates by name, and what may be given in place of a name."""

from __future__ import annotations

from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model

from botorch_drbo._validation import Registry, did_you_mean
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.given_model import GivenModel, ModelMaker

DEFAULT_SURROGATE = "ensemble"
"""What recipes model outcomes by, if nothing else is said.

On fresh seeds of the development set it lost less than "botorch", the default of 0.2.0,
by a rule written down before (``benchmarks/development/claims_second.md``); the numbers
stand in ``docs/surrogates.md``. Runs stored before there were surrogates go on with
"botorch".
"""

SURROGATES: Registry[Surrogate] = Registry(Surrogate, {})
"""Surrogates by name. Add your own, and recipes and journals can name it."""


def as_surrogate(given: Surrogate | str | ModelMaker) -> Surrogate:
    r"""Turn a name or a function into a surrogate.

    Args:
        given: A surrogate, a key of ``SURROGATES``, or a function that makes a model.

    Returns:
        The surrogate.

    Raises:
        InputDataError: Something else, or an unknown name.

    Example:
        >>> as_surrogate("matern")
        GaussianProcess(kernel='matern52', max_exact=3000)
    """
    if isinstance(given, Surrogate):
        return given
    if isinstance(given, str):
        if given not in SURROGATES:
            raise InputDataError(
                f"There is no surrogate {given!r}.{did_you_mean(given, SURROGATES)} "
                f"The choices are {sorted(SURROGATES)}, a Surrogate of your own, or a "
                "function that makes a model."
            )
        return SURROGATES[given]
    if isinstance(given, type) and issubclass(given, Surrogate):
        raise InputDataError(
            f"`surrogate` is the class {given.__name__}. Give an object of it: "
            f"`{given.__name__}(...)`."
        )
    if isinstance(given, Model) or not callable(given):
        hint = ""
        if isinstance(given, Model):
            hint = ", and outcomes are still to come"
        raise InputDataError(
            f"A surrogate must be one of {sorted(SURROGATES)}, a Surrogate, or a "
            "function that takes (train_X, train_Y, train_Yvar, bounds) and returns a "
            f"fitted BoTorch model; got a {type(given).__name__}{hint}."
        )
    return GivenModel(given)
