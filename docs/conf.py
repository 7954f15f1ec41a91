"""Sphinx configuration. Build with `make docs`: every warning is an error."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from docs.sphinx_parts import (  # noqa: E402  (on the path that is set above)
    api_pages,
    both_spellings,
    command_page,
    figure_texts,
    gallery,
    inventories,
    name_links,
    root_pages,
    table_breaks,
    versions_page,
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
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = f"botorch_drbo {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_search_scorer = str(DOCS / "sphinx_parts" / "scorer.js")
html_extra_path = ["llms.txt"]

# The notebooks are committed executed (`make notebooks`): nothing runs here.
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# What is copied can be pasted: no prompts, and no answers behind them.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

default_role = "code"  # `a` in a docstring is code, as ``a`` is
smartquotes = False  # `--group` and 'share above 60' are typed as they stand
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "alpha"
bibtex_reference_style = "author_year"


versions_page.PAGE.write_text(versions_page.page())
command_page.PAGE.write_text(command_page.page())
api_pages.write()
root_pages.write()
gallery.write(ROOT / "tutorials", DOCS / "tutorials")  # ignored by git
intersphinx_mapping = inventories.write(DOCS / "inventories")

CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def link_citations(app, what, name, obj, options, lines) -> None:
    """Make `[Key2020word]_` in a docstring a link to the bibliography.

    A key that references.bib does not define is a warning of bibtex, so an error.
    """
    lines[:] = [CITATION.sub(r":cite:t:`\1`", line) for line in lines]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", link_citations)
    app.connect("autodoc-process-docstring", api_pages.add_methods)
    app.connect("html-page-context", table_breaks.add_breaks)
    app.add_directive("public-names", api_pages.PublicNames)
    app.add_transform(figure_texts.FigureTexts)
    app.add_post_transform(name_links.LinkNames)
    app.add_search_language(both_spellings.BothSpellings)
