"""The description of a recipe, and the text of ``help`` about it."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botorch_drbo.recipes.options import option_values, part_name, parts_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, kw_only=True)
class Description:
    """One sentence, a formula in LaTeX, remarks, and where it comes from."""

    # One plain sentence.
    summary: str
    # What its next decision maximises, in LaTeX; empty if words do.
    formula: str = ""
    # Further sentences, where the method has a peculiarity.
    remarks: str = ""
    # The citation, as in docstrings; empty for our own combinations.
    source: str = ""


_ENTRY = re.compile(r"^    (\w+): (.*)")
_CITED_LAST = re.compile(r"^\[.*\]_.*$", re.MULTILINE)
_LOOP = """\
>>> import torch
>>> from botorch_drbo import RobustOptimizer
{imports}>>> unit = torch.tensor([[0.0], [1.0]]).double()  # lower, upper bounds
>>> opt = RobustOptimizer({recipe}, unit, unit, seed=0)
>>> for c in torch.tensor([[0.3], [0.5], [0.4], [0.6], [0.2]]).double().split(1):
...     x = opt.ask()  # the context is not known yet
...     opt.tell(x, c, 1 - (x - c).square())  # put your outcome here
>>> best = opt.recommend()  # best.x; print(best) shows the whole answer"""


def wrapped(text: str, indent: int = 0) -> str:
    """A paragraph in lines of the width of a docstring."""
    margin = " " * indent
    return textwrap.fill(
        text,
        84,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


class HelpText(str):
    """The docstring of a class of recipes; of a recipe, the text about itself."""

    def __get__(self, recipe: Any, owner: type | None = None) -> str:
        """Called by Python when ``__doc__`` is read."""
        return str(self) if recipe is None else recipe.describe()


def help_text(recipe: DataclassInstance, name: str, method: str) -> str:
    """The text that ``help`` shows and that the page of the recipes has."""
    meanings = option_meanings(recipe)
    options = [
        f"``{option}`` = ``{value!r}``\n{wrapped(meanings.get(option, ''), 4)}"
        for option, value in option_values(recipe).items()
    ]
    loop = _LOOP.format(**_as_typed(recipe, name))
    example = "Example::\n\n" + "\n".join(f"    {line}" for line in loop.splitlines())
    return "\n\n".join([method, "**Options**", *options, example])


def method_text(kind: type) -> str:
    """The docstring of a class up to its arguments, and the citations below them."""
    told, _, rest = _doc(kind).partition("\nArgs:\n")
    return "\n\n".join([told, *_CITED_LAST.findall(rest)]).strip()


def option_meanings(recipe: DataclassInstance) -> dict[str, str]:
    """What the docstrings say about each option of a recipe."""
    found = {
        name: text
        for part in (recipe, *parts_of(recipe).values())
        for base in reversed(type(part).__mro__)
        if base is not object
        for name, text in _entries(_doc(base)).items()
    }
    return {name: found[name] for name in option_values(recipe) if name in found}


def _doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _entries(doc: str) -> dict[str, str]:
    """The entries of ``Args:``."""
    found: dict[str, str] = {}
    name = ""
    for line in doc.partition("\nArgs:\n")[2].splitlines():
        if line and not line.startswith(" "):
            break  # the next section
        if entry := _ENTRY.match(line):
            name = entry[1]
            found[name] = entry[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _as_typed(recipe: DataclassInstance, name: str) -> dict[str, str]:
    """How a user names it: by its name, or as a product of its parts."""
    parts = {key: part_name(key, part) for key, part in parts_of(recipe).items()}
    if not parts or name != "_".join(parts.values()):
        return {"imports": "", "recipe": f'"{name}"'}
    given = ", ".join(f'{key}="{value}"' for key, value in parts.items())
    imports = ">>> from botorch_drbo.recipes import make_recipe\n"
    return {"imports": imports, "recipe": f"make_recipe({given})"}
