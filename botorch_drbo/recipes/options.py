"""Flat options of a recipe: each belongs to the recipe or to one of its parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.adversaries import ADVERSARIES, Adversary
from botorch_drbo.codec.objects import FunctionName, is_storable
from botorch_drbo.policies import POLICIES, Policy
from botorch_drbo.policies.base import ObjectiveMaker, check_objective_maker
from botorch_drbo.surrogate import SURROGATES, FixedHyperparameters, Surrogate
from botorch_drbo.surrogate.by_name import (
    GivenModel,
    ModelMaker,
    as_surrogate,
    check_model_maker,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_PARTS: dict[str, tuple[type, Mapping[str, Any]]] = {
    "adversary": (Adversary, ADVERSARIES),
    "policy": (Policy, POLICIES),
}
_FOR_PEOPLE = ("name", "description")
_Recipe = TypeVar("_Recipe", bound="DataclassInstance")


def option_fields(recipe: DataclassInstance) -> dict[str, Field]:
    """The options of a recipe: its own fields, and those of its parts."""
    parts = (*parts_of(recipe).values(), recipe)
    return {name: field for part in parts for name, field in _own_fields(part).items()}


def check_names_differ(recipe: DataclassInstance) -> None:
    """Refuse a product in which one name would mean two options."""
    owners = {"recipe": recipe, **parts_of(recipe)}
    of_whom: dict[str, str] = {}
    for owner, part in owners.items():
        for name in _own_fields(part):
            if name in of_whom:
                raise InputDataError(
                    f"The option `{name}` of the {owner} "
                    f"{type(part).__name__} is also one of the {of_whom[name]} "
                    f"{type(owners[of_whom[name]]).__name__}: a value could "
                    "reach only one of them. Give one of them another name."
                )
            of_whom[name] = owner


def option_values(recipe: DataclassInstance) -> dict[str, Any]:
    """The values of all options by name."""
    parts = (*parts_of(recipe).values(), recipe)
    return {name: value for part in parts for name, value in own_values(part).items()}


def own_values(part: DataclassInstance) -> dict[str, Any]:
    """The values of the fields of a recipe or of a part; without those of its parts."""
    return {name: getattr(part, name) for name in _own_fields(part)}


def _own_fields(part: DataclassInstance) -> dict[str, Field]:
    no_options = (*_FOR_PEOPLE, *_PARTS)
    return {f.name: f for f in fields(part) if f.name not in no_options}


def parts_of(recipe: DataclassInstance) -> dict[str, Any]:
    """The adversary and the policy of a recipe, by these names; none of others."""
    own = {field.name for field in fields(recipe)}
    return {name: getattr(recipe, name) for name in _PARTS if name in own}


def with_options(recipe: _Recipe, options: Mapping[str, Any]) -> _Recipe:
    """The same recipe with other options, each routed to where it belongs."""
    parts: dict[str, Any] = parts_of(recipe)
    for name, now in parts.items():
        if name in options:
            new = _part(name, options[name])
            # The name of what it has already leaves it as it is, a row's values too.
            same = isinstance(options[name], str) and type(new) is type(now)
            parts[name] = now if same else new
    changes = dict(parts)
    rest = {name: value for name, value in options.items() if name not in parts}
    for name, part in parts.items():
        own = {field.name for field in fields(part)} & set(rest)
        if own:
            changes[name] = replace(part, **{key: rest.pop(key) for key in own})
    unknown = sorted(set(rest) - {field.name for field in fields(recipe)})
    if unknown:
        known = list(option_fields(replace(recipe, **parts)))
        raise InputDataError(
            f"There is no option {', '.join(unknown)}.{did_you_mean(unknown[0], known)}"
            f" The options are {known}."
        )
    return replace(recipe, **changes, **rest)


def _part(name: str, given: object) -> Any:
    kind, known = _PARTS[name]
    if isinstance(given, kind):
        return given
    if not isinstance(given, str) or given not in known:
        raise InputDataError(
            f"`{name}` must be one of {sorted(known)}, or {kind.__name__} of your own, "
            f"got {given!r}.{did_you_mean(given, known)}"
        )
    return known[given]


def part_name(name: str, part: object) -> str:
    """The name under which a part is registered; that of its class if it is not."""
    for key, value in _PARTS[name][1].items():
        if type(value) is type(part):
            return key
    return type(part).__name__


class ModelsOutcomes(Protocol):
    """What a recipe that models outcomes has."""

    @property
    @abstractmethod
    def default_surrogate(self) -> str:
        """The name of the surrogate if nothing else is given."""

    @property
    @abstractmethod
    def surrogate(self) -> Surrogate | str | ModelMaker | None:
        """How outcomes are modelled."""

    @property
    @abstractmethod
    def model(self) -> ModelMaker | None:
        """A function of the user that makes the model."""

    @property
    @abstractmethod
    def hyperparameters(self) -> FixedHyperparameters | None:
        """Those of the recipe's own model, if they are known."""


def check_outcome_model(recipe: ModelsOutcomes) -> None:
    """Check the options of the model; a function becomes the recipe's ``model``."""
    if recipe.hyperparameters is not None and not isinstance(
        recipe.hyperparameters, FixedHyperparameters
    ):
        raise InputDataError(
            "`hyperparameters` must be FixedHyperparameters or None, got "
            f"{type(recipe.hyperparameters).__name__}."
        )
    check_model_maker(recipe.model)
    if recipe.model is not None and recipe.hyperparameters is not None:
        raise InputDataError(
            "Got `model` and `hyperparameters`, which are those of the recipe's "
            "own model. Give one of them."
        )
    if recipe.surrogate is None:
        return
    given = as_surrogate(recipe.surrogate)
    other = "model" if recipe.model is not None else "hyperparameters"
    if recipe.model is not None or recipe.hyperparameters is not None:
        raise InputDataError(
            f"Got `surrogate` and `{other}`, which both say how outcomes are modelled. "
            "Give one of them."
        )
    if isinstance(given, GivenModel):  # a function: journals store its name
        object.__setattr__(recipe, "model", given.function)
        object.__setattr__(recipe, "surrogate", None)


def surrogate_of(recipe: ModelsOutcomes) -> Surrogate:
    """The surrogate that a recipe models outcomes by."""
    if recipe.model is not None:
        return GivenModel(recipe.model)
    if recipe.hyperparameters is not None:
        return recipe.hyperparameters
    named = recipe.surrogate
    return as_surrogate(recipe.default_surrogate if named is None else named)


def check_single_model(recipe: ModelsOutcomes, name: str) -> None:
    """Refuse an ensemble."""
    if not surrogate_of(recipe).is_ensemble:
        return
    single = sorted(key for key, known in SURROGATES.items() if not known.is_ensemble)
    raise UnsupportedError(
        f"`{name}` puts the kernel and the noise of one model to other data, and "
        f"takes no ensemble, got `surrogate={recipe.surrogate!r}`. It takes "
        f"{', '.join(map(repr, single))}."
    )


def check_ensemble(recipe: ModelsOutcomes, name: str) -> None:
    """Refuse a single model; what a function makes is seen when it is made."""
    if recipe.model is not None or surrogate_of(recipe).num_models > 1:
        return
    given = "`hyperparameters`"
    if recipe.hyperparameters is None:
        given = f"`surrogate={recipe.surrogate!r}`"
    several = sorted(key for key, known in SURROGATES.items() if known.num_models > 1)
    raise UnsupportedError(
        f"`{name}` needs several models, whose disagreement it penalises, got {given}, "
        f"which is one. It takes {', '.join(map(repr, several))}, or `EnsembleOf` with "
        "two surrogates of your choice or more. For one model take "
        "`policy='confidence_bound'`."
    )


@dataclass(frozen=True, kw_only=True)
class OwnFunctions:
    """What a user passes again to go on with a stored run."""

    # The function that makes the model, if the run had one.
    model: ModelMaker | None = None
    # The function that makes the objective, if the run had one.
    objective: ObjectiveMaker | None = None

    def __post_init__(self) -> None:
        """Check what was given."""
        check_model_maker(self.model)
        check_objective_maker(self.objective)


NO_FUNCTIONS = OwnFunctions()
OPTIONS = tuple(field.name for field in fields(OwnFunctions))


def names_of_functions(options: Mapping[str, Any]) -> dict[str, FunctionName]:
    """The functions among the options, each by its name."""
    return {
        option: FunctionName(_name(options[option]))
        for option in OPTIONS
        if callable(options.get(option)) and not is_storable(options[option])
    }


def recalled(options: Mapping[str, Any], given: OwnFunctions) -> dict[str, Any]:
    """Restored options of a recipe, with the functions back in their places."""
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
