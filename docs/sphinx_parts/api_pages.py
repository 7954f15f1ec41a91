"""A page for each public class and recipe, and a table of the names of each package.

The pages of `docs/api/` say what a package is for, and name it in a directive::

    .. public-names:: botorch_drbo.ambiguity

which becomes a table of everything in its ``__all__``, the functions in full, and a
link to one page per class. The page of a class or a recipe ends with the places that
use it: the guide, the formulas of the papers, the tutorials. They are found in the
texts, so they need no care.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

from botorch_drbo.recipes import RECIPES
from docs.sphinx_parts import recipe_page

PACKAGE = "botorch_drbo"
DOCS = Path(__file__).parents[1]
TUTORIALS = DOCS.parent / "tutorials"
_DIRECTIVE = re.compile(r"^\.\. public-names:: (\S+)(.*)$", re.MULTILINE)
_INLINE_OR_BLOCK = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^\((papers-[a-z-]+)\)=$", re.MULTILINE)
_CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")
_MOST_GUIDES = 5

# The page that explains what a package is about.
GUIDES = {
    "acquisition": "botorch",
    "acquisition.inputs": "botorch",
    "adversaries": "methods",
    "ambiguity": "methods",
    "calibrate": "radius",
    "codec": "extending",
    "confidence": "certainty",
    "contexts": "rounds",
    "integrations.ax": "ax",
    "integrations.optuna": "optuna",
    "integrations.xopt": "xopt",
    "lipschitz": "conventions",
    "objectives": "objectives",
    "optimizer": "rounds",
    "plotting": "certainty",
    "policies": "extending",
    "posterior": "speed",
    "problem": "extending",
    "recipes": "methods",
    "recommendation": "certainty",
    "report": "tables",
    "sample_paths": "methods",
    "schedules": "radius",
    "space": "spaces",
    "surrogate": "surrogates",
    "test_functions": "benchmarks",
    "testing": "extending",
}
# Hosts' base classes bring members that are not ours.
_ONLY = {"RobustGenerationNode": "recommend, words, optimizer"}
_NOT = {"RobustGenerator": "model_config, model_post_init, ingest"}


@cache
def listed() -> dict[str, tuple[str, ...]]:
    r"""The public names that the pages of `docs/api/` list.

    Returns:
        Names by module: those that the directive gives, else all of ``__all__``.
    """
    found = {}
    pages = {p.stem: p.read_text() for p in sorted((DOCS / "api").glob("*.md"))}
    pages["recipes"] = recipe_page.page()
    for page in pages.values():
        for module, given in _DIRECTIVE.findall(page):
            names = given.split() or importlib.import_module(module).__all__
            found[module] = tuple(names)
    return found


def write() -> None:
    """Write the pages of classes and recipes into `docs/api/`, ignored by git."""
    folder, recipes = DOCS / "api" / "classes", DOCS / "api" / "recipes"
    for written in (folder, recipes):
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
    (DOCS / "api" / "recipes.md").write_text(recipe_page.page())
    for name in RECIPES:
        places = "\n".join(used("botorch_drbo.recipes", name))
        (recipes / f"{name}.rst").write_text(recipe_page.recipe_page(name) + places)
    for module, names in listed().items():
        for name in names:
            kind = getattr(importlib.import_module(module), name)
            if inspect.isclass(kind):
                (folder / f"{_page(module, name)}.rst").write_text(
                    class_page(module, name, kind)
                )


_CONSTRUCTORS = ("RobustOptimizer", "NamedOptimizer")  # of one class without a page


def class_page(module: str, name: str, kind: type) -> str:
    r"""The page of a class.

    Args:
        module: The package that users import it from.
        name: Its name there.
        kind: The class.

    Returns:
        reStructuredText: its documentation, and where it is used.
    """
    options = ["   :show-inheritance:"]
    options.append(f"   :members: {_ONLY.get(name, '')}".rstrip())
    if name in _NOT:
        options.append(f"   :exclude-members: {_NOT[name]}")
    if name in _CONSTRUCTORS:
        options.append("   :inherited-members:")
    described = [name, "=" * len(name), ""]
    described += [f".. autoclass:: {module}.{name}", *options, ""]
    return "\n".join([*described, *used(module, name)])


def _page(module: str, name: str) -> str:
    return f"{module.removeprefix(f'{PACKAGE}.')}.{name}"


def add_methods(
    app: object, what: str, name: str, kind: object, options: object, lines: list[str]
) -> None:
    """End the docstring of a class with a table of its methods and properties."""
    short = name.rpartition(".")[2]
    if what == "class" and isinstance(kind, type) and short not in _ONLY | _NOT:
        lines += _methods(kind)


@cache
def _class_names() -> dict[type, str]:
    """Full names of the public classes."""
    found = {}
    for module, names in listed().items():
        for name in names:
            kind = getattr(importlib.import_module(module), name)
            if inspect.isclass(kind):
                found[kind] = f"{module}.{name}"
    return found


def _methods(kind: type) -> list[str]:
    """A table of the methods and properties, those of base classes of ours too."""
    places = _class_names()
    rows = {}
    for base in reversed(kind.__mro__):
        inherited = kind.__name__ in _CONSTRUCTORS and base is not object
        place = places.get(base, places[kind] if inherited else None)
        if place is None:
            continue
        for name, member in vars(base).items():
            called = isinstance(member, (property, classmethod, staticmethod))
            if name.startswith("_") or not (called or inspect.isfunction(member)):
                continue
            said = first_sentence(getattr(kind, name)) or first_sentence(member)
            role = "attr" if isinstance(member, property) else "meth"
            link = f":{role}:`{name} <{place}.{name}>`"
            rows[name] = (link, said)
    if len(rows) < 2:
        return []
    return ["", ".. rubric:: Methods and properties", "", *_table(list(rows.values()))]


def first_sentence(thing: object) -> str:
    r"""What a docstring says first, in one line.

    Args:
        thing: A class, function, method or property.

    Returns:
        The sentence; empty if there is no docstring.
    """
    paragraph = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return _CITATION.sub(r":cite:t:`\1`", " ".join(paragraph.split()))


def _table(rows: list[tuple[str, str]]) -> list[str]:
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name, said in rows:
        lines += [f"   * - {name}", f"     - {said}"]
    return [*lines, ""]


def used(module: str, name: str) -> list[str]:
    r"""Where a class or a recipe is explained and used.

    Args:
        module: The package that users import it from.
        name: Its name there.

    Returns:
        Lines of reStructuredText: guides, formulas of the papers, tutorials.
    """
    short = module.removeprefix(f"{PACKAGE}.")
    guides = [GUIDES[short]]
    guides += [page for page in _mentions(name) if page not in guides]
    told = [("Guides", [f":doc:`/{page}`" for page in guides[:_MOST_GUIDES]])]
    told.append(("Formulas", [f":ref:`{label}`" for label in _formulas(name)]))
    told.append(("Tutorials", [f":doc:`/tutorials/{t}`" for t in _tutorials(name)]))
    rows = [(kind, "; ".join(links)) for kind, links in told if links]
    return ["Where it is used", "-" * 16, "", *_table(rows)]


@cache
def _code_of_guides() -> dict[str, str]:
    """The code of each guide page, inline and in blocks."""
    pages = [page for page in DOCS.glob("*.md") if page.stem != "papers"]
    return {
        page.stem: "\n".join(_INLINE_OR_BLOCK.findall(page.read_text()))
        for page in sorted(pages)
    }


def _count(name: str, text: str) -> int:
    """How often a text names it; a recipe, which may be a word, only in quotes."""
    word = rf"[`\"]{name}[`\"]" if name in RECIPES else rf"\b{name}\b"
    return len(re.findall(word, text))


def _mentions(name: str) -> list[str]:
    """Guides whose code has the name, the one with most of it first."""
    counts = {page: _count(name, code) for page, code in _code_of_guides().items()}
    return sorted((page for page in counts if counts[page]), key=lambda p: -counts[p])


def _formulas(name: str) -> list[str]:
    """Labels of the sections of papers.md that have the name."""
    before, *pieces = _SECTION.split((DOCS / "papers.md").read_text())
    del before
    sections = zip(pieces[::2], pieces[1::2], strict=True)
    return [label for label, text in sections if _count(name, text)]


@cache
def _sources_of_tutorials() -> dict[str, str]:
    """Tutorials that have a notebook, without the prose of their text cells."""
    sources = {}
    for path in sorted(TUTORIALS.glob("*.py")):
        if path.with_suffix(".ipynb").exists():
            lines = path.read_text().splitlines()
            code = [line for line in lines if not line.startswith("# ")]
            spans = re.findall(r"`[^`\n]+`", path.read_text())
            sources[path.stem] = "\n".join([*code, *spans])
    return sources


def _tutorials(name: str) -> list[str]:
    sources = _sources_of_tutorials()
    return [page for page, text in sources.items() if _count(name, text)]


class PublicNames(SphinxDirective):
    """The table of a package's names, and its functions in full."""

    required_arguments = 1
    optional_arguments = 100

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        lines = [f".. py:currentmodule:: {module}", ""]
        names = listed()[module]
        found = {name: getattr(importlib.import_module(module), name) for name in names}
        kinds = {name: _kind(thing) for name, thing in found.items()}
        described = []
        rows = []
        for role in ("class", "func", "data"):
            for name in (name for name, kind in kinds.items() if kind == role):
                if role == "data":
                    said = _said_of_data(module, name)
                    described += [f".. py:data:: {module}.{name}", "", f"   {said}", ""]
                else:
                    said = first_sentence(found[name])
                if role == "func":
                    described += [f".. autofunction:: {module}.{name}", ""]
                rows.append((f":{role}:`~{module}.{name}`", said))
        lines += _table(rows)
        classes = [name for name, kind in kinds.items() if kind == "class"]
        if classes:
            pages = [f"   /api/classes/{_page(module, name)}" for name in classes]
            lines += [".. toctree::", "   :hidden:", "", *pages, ""]
        node = nodes.section()
        node.document = self.state.document
        source = StringList([*lines, *described], source=self.env.docname)
        nested_parse_with_titles(self.state, source, node)
        return node.children


def _kind(thing: object) -> str:
    """The role by which Sphinx refers to it."""
    if inspect.ismodule(thing):
        return "mod"
    if inspect.isclass(thing):
        return "class"
    return "func" if inspect.isroutine(thing) else "data"


@cache
def _said_of_data(module: str, name: str) -> str:
    """The string under an assignment, which Python keeps nowhere: from the source."""
    found = importlib.import_module(module)
    for path in sorted(Path(found.__file__ or "").parent.glob("*.py")):
        for line, below in pairwise(ast.parse(path.read_text()).body):
            targets = getattr(line, "targets", None) or [getattr(line, "target", None)]
            is_it = [getattr(target, "id", None) for target in targets] == [name]
            said = below.value if isinstance(below, ast.Expr) else None
            if is_it and isinstance(said, ast.Constant):
                return " ".join(str(said.value).split())
    raise KeyError(f"{module}.{name} has no docstring under its assignment")
