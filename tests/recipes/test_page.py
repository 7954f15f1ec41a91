"""The page of the recipes is written from the table and the docstrings."""

from __future__ import annotations

import doctest

import pytest

from botorch_drbo.recipes import RECIPES, RobustRecipe
from docs.recipe_page import explained, page


@pytest.mark.parametrize("name", RECIPES)
def test_all_options_stand_there_with_defaults_and_meanings(name: str) -> None:
    recipe = RECIPES[name]
    texts = explained(recipe)
    assert list(texts) == list(recipe.options)
    assert all(len(text.split()) > 2 for text in texts.values())
    section = page().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for option in recipe.options:
        assert f"\n``{option}`` = ``" in section
    if isinstance(recipe, RobustRecipe):
        assert recipe.description.summary in section
        assert recipe.description.formula in section


def test_its_examples_run() -> None:
    test = doctest.DocTestParser().get_doctest(page(), {}, "recipes", None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
