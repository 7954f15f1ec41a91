"""What no import contract can say: read from the syntax of the package."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import botorch_drbo
from botorch_drbo import ambiguity
from botorch_drbo.ambiguity import AmbiguitySet

PACKAGE = Path(botorch_drbo.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
SETS = {
    name
    for name in ambiguity.__all__
    if inspect.isclass(kind := getattr(ambiguity, name))
    and issubclass(kind, AmbiguitySet)
}
CONCRETE_SETS = SETS - {"AmbiguitySet"}


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Of a file's syntax; the first is the module."""
    return tuple(ast.walk(ast.parse(path.read_text())))


VIEWS = {  # a model may be asked what it is: an ensemble has members
    node.name
    for path in (PACKAGE / "posterior").glob("*.py")
    for node in ast.iter_child_nodes(nodes(path)[0])
    if isinstance(node, ast.ClassDef)
    if "Model" not in {base.id for base in node.bases if isinstance(base, ast.Name)}
}
MOST_SIGNATURES = 20  # that repeat `history` and `space`; see `ObservedRound`
MOST_LINES = 700
LONGER = {  # why
    "optimizer/optimizer.py",  # the public methods and their docstrings
}
CONCRETE_POSTERIORS = {"ExactPosterior", "GenericPosterior", "ProductPosterior"}


def where(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def names_in(node: ast.AST) -> set[str]:
    """Plain names and the last parts of dotted ones."""
    plain = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return plain | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def asked_kinds(path: Path) -> set[str]:
    """Which names the file compares the type of something with."""
    kinds: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                kinds |= names_in(node.args[1])
        elif isinstance(node, ast.Compare):
            kinds |= names_in(node)
        elif isinstance(node, ast.match_case):
            kinds |= names_in(node.pattern)
    return kinds


def names_from_elsewhere(path: Path) -> set[str]:
    """Names that the file has from other packages, such as ``numbers.Integral``."""
    return {
        alias.asname or alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        if not (node.module or "").startswith("botorch_drbo")
        for alias in node.names
    }


def own_imports(path: Path) -> Iterator[tuple[ast.AST, list[str]]]:
    """Imports of the package itself, with what encloses each."""
    for parent in nodes(path):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.ImportFrom):
                modules = [child.module or ""]
            elif isinstance(child, ast.Import):
                modules = [alias.name for alias in child.names]
            else:
                continue
            yield parent, [m for m in modules if m.startswith("botorch_drbo")]


def test_no_question_which_posterior_ran_outside_its_folder() -> None:
    assert CONCRETE_POSTERIORS <= VIEWS
    asked = {
        where(path): found
        for path in SOURCES
        if not where(path).startswith("posterior/")
        and (found := asked_kinds(path) & VIEWS - names_from_elsewhere(path))
    }
    assert asked == {}


def test_no_question_which_set_it_is_outside_the_folder_of_sets() -> None:
    asked = {
        where(path): found
        for path in SOURCES
        if not where(path).startswith("ambiguity/")
        and (found := asked_kinds(path) & SETS)
    }
    assert asked == {}


def test_no_list_of_set_classes_outside_the_folder_of_sets() -> None:
    lists = [
        where(path)
        for path in SOURCES
        if not where(path).startswith("ambiguity/")
        for node in nodes(path)
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        if {n.id for n in node.elts if isinstance(n, ast.Name)} & CONCRETE_SETS
    ]
    assert lists == []


@pytest.mark.parametrize("folder", ["acquisition", "contexts", "lipschitz", "plotting"])
def test_no_set_and_no_posterior_by_name(folder: str) -> None:
    named = {
        where(path): found
        for path in (PACKAGE / folder).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Name | ast.ImportFrom)
        if (
            found := {node.id}
            if isinstance(node, ast.Name)
            else {alias.name for alias in node.names}
        )
        & (CONCRETE_SETS | CONCRETE_POSTERIORS)
    }
    assert named == {}


@pytest.mark.parametrize("folder", ["ambiguity", "objectives", "kernels", "contexts"])
def test_of_botorch_no_more_than_its_exceptions(folder: str) -> None:
    taken = {
        module
        for path in (PACKAGE / folder).rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module
        if (module := node.module).split(".")[0] == "botorch"
    }
    assert {m for m in taken if not m.startswith("botorch.exceptions")} == set()


def test_sobol_points_are_drawn_in_one_place() -> None:
    drawn = {"SobolEngine", "draw_sobol_samples", "draw_sobol_normal_samples"}
    files = [
        where(path)
        for path in SOURCES
        if any(
            isinstance(node, ast.ImportFrom) and drawn & {a.name for a in node.names}
            for node in nodes(path)
        )
    ]
    assert files == ["sampling.py"]


def test_the_package_imports_itself_at_the_top_of_its_files() -> None:
    """An import in a function, or one for type checkers only, hides a circle.

    The package's own `__init__.py` imports when a name is first asked for; so none of
    its modules may import from there.
    """
    hidden = {
        where(path): modules
        for path in SOURCES
        if path != PACKAGE / "__init__.py"
        for parent, modules in own_imports(path)
        if modules and not isinstance(parent, ast.Module)
    }
    assert hidden == {}
    from_the_front = [
        where(path)
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "botorch_drbo"
        if {alias.name for alias in node.names} & set(botorch_drbo.__all__)
    ]
    assert from_the_front == []


def test_few_signatures_repeat_history_and_space() -> None:
    """Inside, one object has both: `ObservedRound`, or with a model `FittedRound`."""
    repeated = [
        f"{where(path)}:{node.name}"
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef)
        if {"history", "space"} <= {arg.arg for arg in node.args.args}
    ]
    assert 0 < len(repeated) <= MOST_SIGNATURES, repeated


def test_no_file_is_long_but_those_that_are_listed() -> None:
    long = {
        where(path)
        for path in SOURCES
        if len(path.read_text().splitlines()) > MOST_LINES
    }
    assert long <= LONGER
