"""Recipes by name: the one place where a string becomes an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.codec import decode, make, tag_of
from botorch_drbo.recipes.base import Algorithm
from botorch_drbo.recipes.baselines import GPUCB, EmpiricalRisk, RandomSearch, StableOpt
from botorch_drbo.recipes.bocu import UCBBOCU1, UCBBOCU2, UCBRO, UCBSO, ThompsonSampling
from botorch_drbo.recipes.distributionally_robust import DistributionallyRobust
from botorch_drbo.recipes.kernel_density import DRBOKDE, SBOKDE
from botorch_drbo.recipes.misspecified import ECGPUCB, ECWDRBO
from botorch_drbo.recipes.mmd import DRBOMMD, DRBOMMDMinimax
from botorch_drbo.recipes.path_recipes import (
    ImprovementDRBOKDE,
    ImprovementERBO,
    ImprovementWDRBO,
    ThompsonDRBOKDE,
    ThompsonDRBOMMD,
    ThompsonERBO,
    ThompsonWDRBO,
)
from botorch_drbo.recipes.phased import PhasedUncertaintySampling
from botorch_drbo.recipes.regret_balancing import RegretBalancing
from botorch_drbo.recipes.wasserstein import WDRBO, WDRBOExact
from botorch_drbo.surrogate.given_model import ModelMaker, recalled

_ENTRIES = {"name", "class", "options"}
_OWN = tag_of(Algorithm).partition(":")[0]

ALGORITHMS: dict[str, type[Algorithm]] = {
    recipe.name: recipe
    for recipe in (
        RandomSearch,
        GPUCB,
        EmpiricalRisk,
        SBOKDE,
        StableOpt,
        WDRBO,
        WDRBOExact,
        DRBOKDE,
        DRBOMMD,
        DRBOMMDMinimax,
        DistributionallyRobust,
        ThompsonSampling,
        ThompsonERBO,
        ThompsonWDRBO,
        ThompsonDRBOKDE,
        ThompsonDRBOMMD,
        ImprovementERBO,
        ImprovementWDRBO,
        ImprovementDRBOKDE,
        UCBBOCU1,
        UCBBOCU2,
        UCBSO,
        UCBRO,
        PhasedUncertaintySampling,
        ECGPUCB,
        ECWDRBO,
        RegretBalancing,
    )
}
"""The recipes. Add your own class under its ``name``, and journals can name it."""


def make_algorithm(name: str, **options: Any) -> Algorithm:
    r"""Make a recipe by name.

    Args:
        name: A key of ``ALGORITHMS``.
        options: The fields of its class.

    Returns:
        The recipe.

    Raises:
        InputDataError: An unknown name or option, or an option outside its range.

    Example:
        >>> make_algorithm("wdrbo", radius=0.1).radius
        0.1
    """
    check_options(name, options)
    return ALGORITHMS[name](**options)


def check_options(
    name: str,
    options: Iterable[str],
    *,
    arguments: Sequence[str] = (),
    remedies: Mapping[str, str] | None = None,
) -> None:
    r"""Refuse names of options that a recipe has not.

    Args:
        name: A key of ``ALGORITHMS``.
        options: What the user called the options.
        arguments: What the caller itself takes beside the options.
        remedies: What to write in place of an unknown option, where that is known.

    Raises:
        InputDataError: An unknown name or option, with the nearest known one.
    """
    if name not in ALGORITHMS:
        raise InputDataError(
            f"There is no algorithm {name!r}.{did_you_mean(name, ALGORITHMS)} The "
            f"choices are {sorted(ALGORITHMS)}."
        )
    known = [field.name for field in fields(ALGORITHMS[name])]
    unknown = sorted(set(options) - set(known))
    if not unknown:
        return
    first = unknown[0]
    near = did_you_mean(first, [*known, *arguments])
    if remedies and first in remedies:
        near = f" Did you mean `{remedies[first]}`?"
    beside = f" Beside them there are {list(arguments)}." if arguments else ""
    raise InputDataError(
        f"`{name}` has no option {', '.join(unknown)}.{near} Its options are {known}."
        f"{beside}"
    )


def algorithm_from_dict(
    data: Mapping[str, Any], model: ModelMaker | None = None
) -> Algorithm:
    r"""Rebuild a recipe from ``Algorithm.to_dict``.

    Args:
        data: What it returned, also after a trip through JSON or from version 0.1.0 or
            0.2.0, which stored no class.
        model: The recipe's ``model``, if it has one: functions are not stored.

    Returns:
        The recipe.

    Raises:
        InputDataError: The record is damaged, names a recipe or an option that is
            unknown or another class under the same name, or a ``model`` is missing.

    Example:
        >>> algorithm_from_dict({"name": "wdrbo", "options": {"radius": 0.1}}).radius
        0.1
    """
    if not isinstance(data, Mapping) or set(data) | {"class"} != _ENTRIES:
        raise InputDataError(
            f"a stored recipe has the entries {sorted(_ENTRIES)}, got {data!r:.80}."
        )
    name = data["name"]
    if not isinstance(name, str) or not isinstance(data["options"], Mapping):
        raise InputDataError(f"a stored recipe has a name and options, got {name!r}.")
    options = recalled(decode_options(data["options"]), model)
    check_options(name, options)
    here, stored = tag_of(ALGORITHMS[name]), data.get("class")
    ours = {str(tag).partition(":")[0] for tag in (here, stored)} == {_OWN}
    if stored is not None and stored != here and not ours:
        raise InputDataError(
            f"the recipe `{name}` was {stored}, and in this process it is {here}. "
            "Register the same class as then: `ALGORITHMS[YourAlgorithm.name] = ...`."
        )
    return make(ALGORITHMS[name], options)


def decode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the options of ``Algorithm.to_dict`` back into objects."""
    return {name: decode(value, object, name) for name, value in options.items()}
