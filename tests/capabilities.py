"""What the package can do, a line each: ``python -m tests.capabilities`` writes it.

New lines are added; a line goes only if the section of 0.3.0 in CHANGELOG.md names it
in backticks, as it stands here, with or without its first word.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

import botorch_drbo
from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.policies import POLICIES
from botorch_drbo.recipes import RECIPES
from botorch_drbo.surrogate import SURROGATES

FILE = Path(__file__).with_suffix(".txt")
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
VERSION = "0.3.0"
OWN = "botorch_drbo"
_LOOP = ("NamedOptimizer", "RobustOptimizer", "Space", "ContextSet")
"""The classes whose every call is listed by what it takes."""
_RESULTS = ("Recommendation", "NamedRecommendation", "RobustDecision", "Comparison")
_RESULTS += ("ModelCheck", "Promise", "Trial", "History")
"""Those that a user reads and does not make."""
_SPECIAL = ("self", "cls", "args", "kwargs")


def capabilities() -> list[str]:
    """All lines, sorted."""
    return sorted({*names(), *recipes(), *registered(), *commands()})


def public_modules() -> Iterator[Any]:
    """The packages, and the modules of the hosts."""
    yield botorch_drbo
    for info in pkgutil.walk_packages(botorch_drbo.__path__, f"{OWN}."):
        parts = info.name.split(".")
        host = parts[1] == "integrations" and len(parts) == 3
        if (info.ispkg or host) and not any(part.startswith("_") for part in parts):
            yield importlib.import_module(info.name)


def names() -> Iterator[str]:
    """Public names, what a call of them takes, and what the user's own objects have."""
    seen: set[int] = set()
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            thing, place = getattr(module, name), f"{module.__name__}.{name}"
            yield f"name {place}"
            if id(thing) in seen or module.__name__ == f"{OWN}.testing":
                continue
            seen.add(id(thing))  # a name of two packages is one thing
            if name in _LOOP or name in _RESULTS:
                yield from attributes(place, thing)
            if callable(thing) and name not in _RESULTS:
                yield from parameters(place, thing)


def attributes(place: str, kind: type) -> Iterator[str]:
    """Public fields, properties and methods; of the loop what each takes."""
    own = [c for c in kind.__mro__ if c.__module__.startswith(OWN)]
    known = {name for c in own for name in (*vars(c), *inspect.get_annotations(c))}
    for name in sorted(known):
        if not name.startswith("_"):
            yield f"attribute {place}.{name}"
            method = getattr(kind, name, None)
            if kind.__name__ in _LOOP and callable(method):
                yield from parameters(f"{place}.{name}", method)


def parameters(place: str, thing: Any) -> Iterator[str]:
    """What a call takes, by name."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return
    for name, parameter in signature.parameters.items():
        if name not in _SPECIAL and not name.startswith("_"):
            stars = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}
            yield f"parameter {place}({stars.get(parameter.kind, '')}{name})"


def recipes() -> Iterator[str]:
    for name, recipe in RECIPES.items():
        yield f"recipe {name}"
        yield from (f"option {name}({option})" for option in recipe.options)


def registered() -> Iterator[str]:
    """What is chosen by name."""
    kinds = {"surrogate": SURROGATES, "adversary": ADVERSARIES, "policy": POLICIES}
    for kind, known in kinds.items():
        yield from (f"{kind} {name}" for name in known)


def commands() -> Iterator[str]:
    """Commands and their options, from the application that ``main`` calls."""
    for name, command in application().commands.items():
        yield f"command {name}"
        for parameter in command.params:
            words = [*parameter.opts, *parameter.secondary_opts]
            yield from (f"command {name} {word}" for word in words)


def application() -> Any:
    found = []
    for info in pkgutil.iter_modules(importlib.import_module(f"{OWN}.cli").__path__):
        module = importlib.import_module(f"{OWN}.cli.{info.name}")
        found += [v for v in vars(module).values() if isinstance(v, typer.Typer)]
    (app,) = {id(one): one for one in found}.values()
    return get_command(app)


def recorded() -> list[str]:
    """The lines of the file."""
    return FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []


def may_go(line: str) -> bool:
    """Whether the changelog of this version names a line, in backticks."""
    sections = re.split(r"^## ", CHANGELOG.read_text(encoding="utf-8"), flags=re.M)
    ours = "".join(text for text in sections if text.startswith(VERSION))
    return f"`{line}`" in ours or f"`{line.partition(' ')[2]}`" in ours


def lost(now: list[str]) -> list[str]:
    """Lines of the file that are gone and that the changelog does not name."""
    return [line for line in recorded() if line not in now and not may_go(line)]


def main() -> None:
    now = capabilities()
    gone, before = lost(now), recorded()
    kept = sorted({*now, *gone})
    FILE.write_text("\n".join(kept) + "\n", encoding="utf-8")
    new = len(set(now) - set(before))
    print(f"{len(kept)} capabilities, {new} of them new")
    if gone:
        raise SystemExit(
            f"These are gone, and kept in {FILE.name} until the section {VERSION} of "
            "CHANGELOG.md names them in backticks:\n" + "\n".join(gone)
        )


if __name__ == "__main__":
    main()
