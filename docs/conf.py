"""Sphinx configuration. Build with `make docs`: every warning is an error."""

from __future__ import annotations

import importlib
import re
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


sys.path[:0] = [str(DOCS), str(ROOT)]
recipes = importlib.import_module("recipe_page").page()
(DOCS / "api" / "recipes.md").write_text(recipes)
gallery = importlib.import_module("docs.sphinx_parts.gallery")
gallery.write(ROOT / "tutorials", DOCS / "tutorials")  # ignored by git

CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def link_citations(app, what, name, obj, options, lines) -> None:
    """Make `[Key2020word]_` in a docstring a link to the bibliography.

    A key that references.bib does not define is a warning of bibtex, so an error.
    """
    lines[:] = [CITATION.sub(r":cite:t:`\1`", line) for line in lines]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", link_citations)
