"""docs/papers.md names what there is."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from benchmarks.problems import PROBLEMS
from botorch_drbo.recipes import RECIPES

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text()
DOTTED = sorted(set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)[`(]", PAGE)))


@pytest.mark.parametrize("name", DOTTED)
def test_every_dotted_name_is_public(name: str) -> None:
    module, *rest = name.split(".")
    found = importlib.import_module(f"botorch_drbo.{module}")
    for part in rest:
        assert part in getattr(found, "__all__", dir(found))
        found = getattr(found, part)


def test_every_recipe_and_problem_of_a_paper_is_on_the_page() -> None:
    ours = {"random", "dro", "gp_ucb", "wdrbo_exact", "mean_shift", "contamination"}
    ours |= {"six_hump_camel", "misspecified_waves", "misspecified_bumps", "reservoir"}
    ours |= {name for name in RECIPES if name.startswith(("ts_", "ei_"))}
    names = {*RECIPES, *PROBLEMS, "ts_bocu"} - (ours - {"ts_bocu"})
    assert {name for name in names if not re.search(rf"\b{name}\b", PAGE)} == set()


def test_tests_that_are_named_exist() -> None:
    for path in re.findall(r"`(tests/[\w/.]+)`", PAGE):
        assert (ROOT / path).exists()
