"""Options that are the user's own functions; a journal stores only their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo.codec.objects import FunctionName
from botorch_drbo.codec.tags import is_storable
from botorch_drbo.policies.objective import ObjectiveMaker, check_objective_maker
from botorch_drbo.surrogate.given_model import ModelMaker, check_model_maker


@dataclass(frozen=True, kw_only=True)
class OwnFunctions:
    r"""What a user passes again to go on with a stored run.

    Args:
        model: The function that makes the model, if the run had one.
        objective: The function that makes the objective, if the run had one.

    Raises:
        InputDataError: Something that is no such function.
    """

    model: ModelMaker | None = None
    objective: ObjectiveMaker | None = None

    def __post_init__(self) -> None:
        """Check what was given."""
        check_model_maker(self.model)
        check_objective_maker(self.objective)


NO_FUNCTIONS = OwnFunctions()
OPTIONS = tuple(field.name for field in fields(OwnFunctions))


def names_of_functions(options: Mapping[str, Any]) -> dict[str, FunctionName]:
    r"""The functions among the options, each by its name.

    Args:
        options: The options of a recipe.

    Returns:
        Names by option; what can be stored as it is is not among them.
    """
    return {
        option: FunctionName(_name(options[option]))
        for option in OPTIONS
        if callable(options.get(option)) and not is_storable(options[option])
    }


def recalled(options: Mapping[str, Any], given: OwnFunctions) -> dict[str, Any]:
    r"""Restored options of a recipe, with the functions back in their places.

    Args:
        options: As they were stored, but restored.
        given: The functions that the user has passed again.

    Returns:
        The options.

    Raises:
        InputDataError: A function is missing, or one too many.
    """
    found = dict(options)
    for option in OPTIONS:
        function, stored = getattr(given, option), options.get(option)
        if isinstance(stored, FunctionName):
            if function is None:
                raise InputDataError(
                    f"the run has the {option} of a function of yours, "
                    f"`{stored.name}`, which cannot be saved. Pass it again: "
                    f"`{option}=...`."
                )
            found[option] = function
        elif function is not None:
            raise InputDataError(
                f"the run was made without a function as `{option}`. Leave it out; to "
                f"go on with another {option} start a new run and tell it the same "
                "outcomes."
            )
    return found


def _name(function: Callable[..., object]) -> str:
    """The name under which a journal stores a function."""
    if isinstance(function, partial):
        return _name(function.func)
    return getattr(function, "__qualname__", type(function).__name__)
