"""The pages of the recipes, written from the table and the docstrings of the parts."""

from __future__ import annotations

import inspect
import re

from botorch_drbo.recipes import RECIPES, Recipe, RobustRecipe
from botorch_drbo.recipes.options import part_name

_INTRODUCTION = """# Recipes

A recipe is a complete method. Most recipes combine an *adversary* (which contexts are
expected, and how their distribution may change) and a *policy* (how the next decision
is found). Each row of the table has the name and the settings of a published method.
Each recipe has a page of its own with its formula, its options and a loop;
`help(RECIPES["wdrbo_exact"])` shows the same text. To choose one, see
{doc}`../methods`; to write your own, {doc}`../extending`.

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
.. py:module:: botorch_drbo.recipes

.. public-names:: botorch_drbo.recipes
```
"""

_CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def page() -> str:
    r"""The page of all recipes, in MyST Markdown.

    Returns:
        A table of the recipes, then the functions and classes of the package.
    """
    lines = ["| recipe | in short | adversary | policy |", "|---|---|---|---|"]
    for name, recipe in RECIPES.items():
        adversary, policy = "", ""
        if isinstance(recipe, RobustRecipe):
            adversary = f"`{part_name('adversary', recipe.adversary)}`"
            policy = f"`{part_name('policy', recipe.policy)}`"
        said = _summary(recipe).replace("``", "`")
        lines.append(f"| `{name}` | {said} | {adversary} | {policy} |")
    tree = ["```{toctree}", ":hidden:", "", *(f"recipes/{n}" for n in RECIPES), "```"]
    return "\n".join([_INTRODUCTION, *lines, "", *tree, "", _CLASSES])


def recipe_page(name: str) -> str:
    r"""The page of one recipe, in reStructuredText.

    Args:
        name: Its key in ``RECIPES``.

    Returns:
        What ``help(RECIPES[name])`` says.
    """
    body = _CITATION.sub(r":cite:t:`\1`", RECIPES[name].describe())
    return f"{name}\n{'=' * len(name)}\n\n{body}\n\n"


def _summary(recipe: Recipe) -> str:
    """One sentence."""
    if isinstance(recipe, RobustRecipe):
        return recipe.description.summary
    first = inspect.cleandoc(type(recipe).__doc__ or "").partition("\n\n")[0]
    said = " ".join(first.split()).partition(": ")[2]  # after its name
    return said[0].upper() + said[1:]
