"""The page of the recipes, written from the table and the docstrings of the parts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.policies import POLICIES
from botorch_drbo.recipes import (
    RECIPES,
    Recipe,
    RobustRecipe,
)

_INTRODUCTION = """# Recipes

A recipe is a complete method. Most recipes combine an *adversary* (which contexts, and
how their distribution may change) and a *policy* (how the next decision is found). Each
row of the table has the name and the settings of a paper.

```python
>>> from botorch_drbo.recipes import make_recipe
>>> recipe = make_recipe("wdrbo_exact", radius=0.1)  # a row, with another radius
>>> recipe.options["radius"]
0.1
>>> recipe = make_recipe("wdrbo_exact", policy="thompson")  # another policy
>>> recipe.options["num_features"]
1024
>>> make_recipe(adversary="mmd", policy="thompson").name  # a product of your own
'mmd_thompson'

```

`RobustOptimizer("wdrbo_exact", ..., policy="thompson")` takes the same arguments. Each
option belongs to the recipe, to its adversary or to its policy, and is given by its
name alone.

If the model may be wrong, use `ec_gp_ucb` and `ec_wdrbo` if you know by how much, and
`phased_gp_us` and `regret_balancing` if you do not. The last two have a `state` method,
which computes their progress from the history (`PhasedState`, `BalancingState`).

The `ts_*` recipes (Thompson sampling) and the `ei_*` recipes (expected improvement of
the expectation or of the worst case) use sample paths of the model instead of a
confidence bound. Far from data a bound is flat in the context, so its worst case
favours decisions about which little is known. A sample path is equally steep
everywhere.
"""

_CLASSES = """## Functions and classes

```{eval-rst}
.. automodule:: botorch_drbo.recipes
   :members:
   :imported-members:
   :show-inheritance:
```
"""

_CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")
_ENTRY = re.compile(r"^    (\w+): (.*)")
_CITED_LAST = re.compile(r"^\[.*\]_.*$", re.MULTILINE)


def page() -> str:
    r"""The page in MyST Markdown.

    Returns:
        A table of all recipes, then each with its formula, its source, and all its
        options: default and meaning.

    Raises:
        KeyError: An option that no docstring explains.
    """
    lines = ["| recipe | adversary | policy | |", "|---|---|---|---|"]
    for name, recipe in RECIPES.items():
        adversary, policy = "", ""
        if isinstance(recipe, RobustRecipe):
            adversary = f"`{_key(recipe.adversary, ADVERSARIES)}`"
            policy = f"`{_key(recipe.policy, POLICIES)}`"
        link = f"[`{name}`](#{name.replace('_', '-')})"
        said = _summary(recipe).replace("``", "`")
        lines.append(f"| {link} | {adversary} | {policy} | {said} |")
    sections = [_section(name, recipe) for name, recipe in RECIPES.items()]
    return "\n".join([_INTRODUCTION, *lines, "", *sections, _CLASSES])


def explained(recipe: Recipe) -> dict[str, str]:
    r"""What each option of a recipe means.

    Args:
        recipe: Any recipe.

    Returns:
        Sentences by name of the option: all options, those of the parts first.

    Raises:
        KeyError: An option that no docstring explains.
    """
    said = _arguments(type(recipe))
    if isinstance(recipe, RobustRecipe):
        said |= _arguments(type(recipe.adversary)) | _arguments(type(recipe.policy))
    return {name: said[name] for name in recipe.options}


def _arguments(kind: type) -> dict[str, str]:
    """The entries of `Args:` in the docstrings of a class and of those above it."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("botorch_drbo"):
            continue
        listed = inspect.cleandoc(base.__doc__ or "").partition("\nArgs:\n")[2]
        name = ""
        for line in listed.splitlines():
            if line and not line.startswith(" "):
                break  # the next section
            if entry := _ENTRY.match(line):
                name = entry[1]
                found[name] = entry[2]
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _section(name: str, recipe: Recipe) -> str:
    told, _, rest = inspect.cleandoc(type(recipe).__doc__ or "").partition("\nArgs:\n")
    told = f"{told}\n\n{''.join(_CITED_LAST.findall(rest))}"
    if isinstance(recipe, RobustRecipe):
        told = _described(recipe)
    options = [
        f"``{option}`` = ``{_default(recipe.options[option])}``\n    {text}"
        for option, text in explained(recipe).items()
    ]
    body = "\n\n".join([told, "**Options**", *options])
    body = _CITATION.sub(r":cite:t:`\1`", body)
    return f"({name.replace('_', '-')})=\n## {name}\n\n```{{eval-rst}}\n{body}\n```\n"


def _described(recipe: RobustRecipe) -> str:
    """A row of the table: sentence, formula, remarks, source, parts."""
    said = recipe.description
    formula = f".. math:: {said.formula}" if said.formula else ""
    source = f"Source: {said.source}." if said.source else ""
    parts = " ".join(
        f"The {part} is :class:`~{type(made).__module__.rpartition('.')[0]}."
        f"{type(made).__name__}` (``{_key(made, known)!r}``)."
        for part, made, known in (
            ("adversary", recipe.adversary, ADVERSARIES),
            ("policy", recipe.policy, POLICIES),
        )
    )
    told = (said.summary, formula, said.remarks, source, parts)
    return "\n\n".join(filter(None, told))


def _summary(recipe: Recipe) -> str:
    """One sentence."""
    if isinstance(recipe, RobustRecipe):
        return recipe.description.summary
    first = inspect.cleandoc(type(recipe).__doc__ or "").partition("\n\n")[0]
    return " ".join(first.split())


def _default(value: object) -> str:
    """A value as it is typed."""
    if isinstance(value, AmbiguitySet):
        return f"{type(value).__name__}({value.radius.item():g})"
    return repr(value)


def _key(part: object, known: Mapping[str, object]) -> str:
    """The name of a part."""
    return next(name for name, made in known.items() if type(made) is type(part))
