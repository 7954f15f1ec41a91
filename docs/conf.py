"""Sphinx configuration. Build with `make docs`: every warning is an error."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from docs.sphinx_parts import (  # noqa: E402  (on the path that is set above)
    api_pages,
    both_spellings,
    figure_texts,
    inventories,
    name_links,
    recipe_page,
    root_pages,
)

project = "botorch_drbo"
author = "The botorch_drbo authors"
copyright = "2026, the botorch_drbo authors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without the net
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = "botorch_drbo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]

# The notebooks are committed executed (`make notebooks`): nothing runs here.
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # `a` in a docstring is code, as ``a`` is
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
        # On GitHub a tutorial links the sources of the pages, `../docs/radius.md`.
        text = notebook.read_text().replace("](../docs/", "](../")
        (target / notebook.name).write_text(text)
    if not notebooks:
        (target / "none.md").write_text(
            "# No notebooks here\n\n`make notebooks` makes them.\n"
        )


(DOCS / "api" / "recipes.md").write_text(recipe_page.page())
api_pages.write()
root_pages.write()
intersphinx_mapping = inventories.write(DOCS / "inventories")
copy_notebooks()

CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def link_citations(app, what, name, obj, options, lines) -> None:
    """Make `[Key2020word]_` in a docstring a link to the bibliography.

    A key that references.bib does not define is a warning of bibtex, so an error.
    """
    lines[:] = [CITATION.sub(r":cite:t:`\1`", line) for line in lines]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", link_citations)
    app.connect("autodoc-process-docstring", api_pages.add_methods)
    app.add_directive("public-names", api_pages.PublicNames)
    app.add_transform(figure_texts.FigureTexts)
    app.add_post_transform(name_links.LinkNames)
    app.add_search_language(both_spellings.BothSpellings)
