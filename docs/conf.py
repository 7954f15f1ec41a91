"""Sphinx configuration. Build with `make docs`: every warning is an error."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "botorch_drbo"
author = "The botorch_drbo authors"
copyright = "2026, the botorch_drbo authors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without the net
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = "botorch_drbo"
html_extra_path = ["llms.txt"]

# The notebooks are committed executed (`make notebooks`): nothing runs here.
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "alpha"
bibtex_reference_style = "author_year"


def copy_notebooks() -> None:
    """Copy tutorials/*.ipynb next to the pages; the copy is ignored by git.

    Sphinx reads only what lies under its own folder. Without a notebook a page that
    says so takes their place, because an empty list of pages is an error.
    """
    target = DOCS / "tutorials"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    notebooks = sorted((ROOT / "tutorials").glob("*.ipynb"))
    for notebook in notebooks:
        shutil.copy(notebook, target)
    if not notebooks:
        (target / "none.md").write_text(
            "# No notebooks here\n\n`make notebooks` makes them.\n"
        )


sys.path.insert(0, str(DOCS))
recipes = importlib.import_module("recipe_page").page()
(DOCS / "api" / "recipes.md").write_text(recipes)
copy_notebooks()

CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def link_citations(app, what, name, obj, options, lines) -> None:
    """Make `[Key2020word]_` in a docstring a link to the bibliography.

    A key that references.bib does not define is a warning of bibtex, so an error.
    """
    lines[:] = [CITATION.sub(r":cite:t:`\1`", line) for line in lines]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", link_citations)
