"""Recipes by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import Registry, did_you_mean
from botorch_drbo.adversaries import Adversary
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.codec import decode
from botorch_drbo.codec.objects import make, tag_of
from botorch_drbo.objectives import NamedObjective
from botorch_drbo.policies import Policy
from botorch_drbo.policies.base import ObjectiveMaker
from botorch_drbo.recipes.base import Recipe
from botorch_drbo.recipes.options import (
    OwnFunctions,
    option_fields,
    part_name,
    parts_of,
    recalled,
)
from botorch_drbo.recipes.phased import PhasedUncertaintySampling
from botorch_drbo.recipes.random_search import RandomSearch
from botorch_drbo.recipes.regret_balancing import RegretBalancing
from botorch_drbo.recipes.robust_recipe import RobustRecipe
from botorch_drbo.recipes.table import TABLE
from botorch_drbo.surrogate.by_name import ModelMaker

_ENTRIES = {"name", "class", "options"}
_PARTS = ("adversary", "policy")
_TAILS = ("cvar", "conditional_value_at_risk", "expected_shortfall")
_OWN = tag_of(Recipe).partition(":")[0]

DEFAULT, WITH_RADIUS = "erbo", "wdrbo_exact"
"""The recipe of a table if none is named, and that with a radius."""

GIVE_UP = 0.1
"""What it may give up of what there is to gain, for a better worst case."""

RECIPES: Registry[Recipe] = Registry(
    Recipe,
    {
        "random": RandomSearch(),
        **TABLE,
        "phased_gp_us": PhasedUncertaintySampling(),
        "regret_balancing": RegretBalancing(),
    },
)
"""The recipes with their defaults. Add your own under its ``name``, and journals can
name it."""


def make_recipe(
    name: str | None = None,
    *,
    adversary: str | Adversary | None = None,
    policy: str | Policy | None = None,
    **options: Any,
) -> Recipe:
    r"""Make a recipe by name, or from an adversary and a policy.

    Args:
        name: A key of ``RECIPES``; None for a product of ``adversary`` and
            ``policy``.
        adversary: In place of the recipe's: a key of ``ADVERSARIES``, or an object.
        policy: In place of the recipe's: a key of ``POLICIES``, or an object.
        options: Those of the recipe and of its parts.

    Returns:
        The recipe.

    Raises:
        InputDataError: An unknown name or option, or an option outside its range.

    Example:
        >>> from botorch_drbo.recipes import make_recipe
        >>> make_recipe("wdrbo", radius=0.1).options["radius"]
        0.1
        >>> product = make_recipe(adversary="mmd", policy="expected_improvement")
        >>> product.name
        'mmd_expected_improvement'
    """
    parts = {"adversary": adversary, "policy": policy}
    given = {key: part for key, part in parts.items() if part is not None}
    if name is None:
        if len(given) < len(parts):
            raise InputDataError(
                "A recipe without a name is a product of an `adversary` and a "
                f"`policy`, got {' and '.join(sorted(given)) or 'neither'}. Give both, "
                "or the name of a recipe."
            )
        product = RobustRecipe().with_options(**given)
        name = "_".join(part_name(key, part) for key, part in parts_of(product).items())
        check_options(name, options, known=product)
        return replace(product, name=name).with_options(**options)
    check_options(name, options, changes=given)
    return RECIPES[name].with_options(**given, **options)


def default_recipe(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The recipe of a table if none is named, and its options.

    It learns for the mean, and decides against the ball of one deviation within a tenth
    of what there is to gain: `benchmarks/experiments/price` decided so.
    """
    if options.get("objective") is not None:  # who says what counts fears nothing else
        return DEFAULT, {**options}
    if "against" not in options and {"radius", "adversary"} & options.keys():
        return WITH_RADIUS, {**options}
    insured = {"against": WassersteinBall(radius="sd"), "give_up": GIVE_UP}
    return DEFAULT, {**insured, **options}


def check_options(
    name: str,
    options: Iterable[str],
    *,
    changes: Mapping[str, str | Adversary | Policy] | None = None,
    known: Recipe | None = None,
    arguments: Sequence[str] = (),
    remedies: Mapping[str, str] | None = None,
) -> None:
    """Refuse names of options that a recipe has not."""
    if known is None:
        if name not in RECIPES:
            raise InputDataError(
                f"There is no algorithm {name!r}.{_as_objective(name)} The "
                f"choices are {sorted(RECIPES)}."
            )
        known = RECIPES[name]
    if changes:
        if not isinstance(known, RobustRecipe):
            raise InputDataError(
                f"`{name}` is no product: it takes no {' and no '.join(changes)}. "
                "Take another recipe, for example `wdrbo_exact`."
            )
        known = known.with_options(**changes)
    names = list(option_fields(known))
    unknown = sorted(set(options) - set(names))
    if not unknown:
        return
    first = unknown[0]
    near = did_you_mean(first, [*names, *arguments])
    if remedies and first in remedies:
        near = f" Did you mean `{remedies[first]}`?"
    if first == "scope":  # an argument of the optimizers only
        near = " A recipe takes the list to be served as `reference`, a ContextSet."
    others = [
        other
        for other, one in RECIPES.items()
        if first in option_fields(one)
        and (first != "objective" or getattr(one.adversary, "believes_reference", 0))
    ]
    if others and not near:
        near = f" Recipes that have {first}: {', '.join(others)}."
    further = f" Beside them there are {list(arguments)}." if arguments else ""
    raise InputDataError(
        f"`{name}` has no option {', '.join(unknown)}.{near} Its options are {names}."
        f"{further}"
    )


def _as_objective(name: str) -> str:
    """What was meant by the name of an objective, or by a misspelt one."""
    words = "worst fifth" if name.lower() in _TAILS else name
    try:
        words = NamedObjective(words).words
    except InputDataError:
        return did_you_mean(name, RECIPES)
    return (
        f" What is maximised is said by `objective={words!r}`, of an algorithm such as "
        "`erbo`."
    )


def check_can_be_saved(recipe: Recipe) -> None:
    """Raise unless the registry can find the recipe again by its name."""
    if isinstance(recipe, RobustRecipe):  # its parts are saved with it
        return
    if type(RECIPES.get(recipe.name)) is not type(recipe):
        raise InputDataError(
            f"A run of {type(recipe).__name__} cannot be saved: a saved run names its "
            "algorithm. Register it first: "
            f"`RECIPES[{recipe.name!r}] = ...`, the recipe with its defaults."
        )


def recipe_from_dict(
    data: Mapping[str, Any],
    model: ModelMaker | None = None,
    objective: ObjectiveMaker | None = None,
) -> Recipe:
    r"""Rebuild a recipe from ``Recipe.to_dict``.

    Args:
        data: The dictionary, also after a round trip through JSON; without a class, the
            one of that name in this process.
        model: The recipe's ``model``, if it has one: functions are not stored.
        objective: Its ``objective``, if that is a function.

    Returns:
        The recipe.

    Raises:
        InputDataError: The record is damaged; it names an unknown recipe or option, or
            another class of the same name; or a function is missing.

    Example:
        >>> from botorch_drbo.recipes import recipe_from_dict
        >>> data = {"name": "wdrbo", "options": {"radius": 0.1}}
        >>> recipe_from_dict(data).options["radius"]
        0.1
    """
    if not isinstance(data, Mapping) or set(data) | {"class"} != _ENTRIES:
        raise InputDataError(
            f"a stored recipe has the entries {sorted(_ENTRIES)}, got {data!r:.80}."
        )
    name, stored = data["name"], data.get("class")
    if not isinstance(name, str) or not isinstance(data["options"], Mapping):
        raise InputDataError(f"a stored recipe has a name and options, got {name!r}.")
    options = recalled(
        decode_options(data["options"]), OwnFunctions(model=model, objective=objective)
    )
    parts = {key: options.pop(key) for key in _PARTS if key in options}
    if name not in RECIPES and len(parts) == len(_PARTS):  # a product of the user's
        recipe: Recipe = make(RobustRecipe, {"name": name, **parts})
        check_options(name, options, known=recipe)
        return make(recipe.with_options, options)
    check_options(name, options, changes=parts)
    recipe = RECIPES[name]
    here = tag_of(type(recipe))
    ours = {str(tag).partition(":")[0] for tag in (here, stored)} == {_OWN}
    if stored is not None and stored != here and not ours:
        raise InputDataError(
            f"the recipe `{name}` was {stored}, and in this process it is {here}. "
            f"Register the same as then: `RECIPES[{name!r}] = ...`."
        )
    return make(recipe.with_options, {**parts, **options})


def decode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn stored options back into objects."""
    return {name: decode(value, object, name) for name, value in options.items()}
