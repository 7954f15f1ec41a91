"""Flat options of a recipe: each belongs to the recipe or to one of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.adversaries import ADVERSARIES, Adversary
from botorch_drbo.policies import POLICIES, Policy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_PARTS: dict[str, tuple[type, Mapping[str, Any]]] = {
    "adversary": (Adversary, ADVERSARIES),
    "policy": (Policy, POLICIES),
}
_FOR_PEOPLE = ("name", "description")
_Recipe = TypeVar("_Recipe", bound="DataclassInstance")


def option_fields(recipe: DataclassInstance) -> dict[str, Field]:
    r"""The options of a recipe: its own fields, and those of its parts.

    Args:
        recipe: A dataclass, perhaps with an ``adversary`` and a ``policy``.

    Returns:
        Fields by name, those of the parts first.
    """
    own = {
        field.name: field for field in fields(recipe) if field.name not in _FOR_PEOPLE
    }
    parts = [getattr(recipe, own.pop(name).name) for name in _PARTS if name in own]
    found = {field.name: field for part in parts for field in fields(part)}
    return {**found, **own}


def check_names_differ(recipe: DataclassInstance) -> None:
    r"""Refuse a product in which one name would mean two options.

    Args:
        recipe: As for ``option_fields``.

    Raises:
        InputDataError: An option of the adversary, of the policy and of the recipe that
            have the same name: a value could reach only one of them.
    """
    owners = {"recipe": recipe, **parts_of(recipe)}
    of_whom: dict[str, str] = {}
    for owner, part in owners.items():
        for field in fields(part):
            if field.name in _FOR_PEOPLE or (part is recipe and field.name in _PARTS):
                continue
            if field.name in of_whom:
                raise InputDataError(
                    f"The option `{field.name}` of the {owner} "
                    f"{type(part).__name__} is also one of the {of_whom[field.name]} "
                    f"{type(owners[of_whom[field.name]]).__name__}: a value could "
                    "reach only one of them. Give one of them another name."
                )
            of_whom[field.name] = owner


def option_values(recipe: DataclassInstance) -> dict[str, Any]:
    r"""The values of all options by name.

    Args:
        recipe: As for ``option_fields``.

    Returns:
        Values by name, those of the parts first.
    """
    values: dict[str, Any] = {}
    for part in (*parts_of(recipe).values(), recipe):
        values |= own_values(part)
    return values


def own_values(part: DataclassInstance) -> dict[str, Any]:
    """The values of the fields of a recipe or of a part; without those of its parts."""
    no_options = (*_FOR_PEOPLE, *_PARTS)
    names = [field.name for field in fields(part) if field.name not in no_options]
    return {name: getattr(part, name) for name in names}


def parts_of(recipe: DataclassInstance) -> dict[str, Any]:
    """The adversary and the policy of a recipe, by these names; none of others."""
    own = {field.name for field in fields(recipe)}
    return {name: getattr(recipe, name) for name in _PARTS if name in own}


def with_options(recipe: _Recipe, options: Mapping[str, Any]) -> _Recipe:
    r"""The same recipe with other options, each routed to where it belongs.

    Args:
        recipe: As for ``option_fields``.
        options: Values by name. ``adversary`` and ``policy`` are names, or objects;
            they are taken first, with their own defaults.

    Returns:
        A new recipe.

    Raises:
        InputDataError: An unknown option, or a value outside its range.
    """
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


def required(field: Field) -> bool:
    """Whether an option has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def _part(name: str, given: object) -> Any:
    kind, known = _PARTS[name]
    if isinstance(given, kind):
        return given
    if not isinstance(given, str) or given not in known:
        near = did_you_mean(given, known) if isinstance(given, str) else ""
        raise InputDataError(
            f"`{name}` must be one of {sorted(known)}, or {kind.__name__} of your own, "
            f"got {given!r}.{near}"
        )
    return known[given]


def part_name(name: str, part: object) -> str:
    """The name under which a part is registered; that of its class if it is not."""
    for key, value in _PARTS[name][1].items():
        if type(value) is type(part):
            return key
    return type(part).__name__
