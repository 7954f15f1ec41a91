"""`help` of a recipe, and the page of the recipe, which has the same text."""

from __future__ import annotations

import doctest
import pydoc
import re
from dataclasses import dataclass

import pytest

from botorch_drbo.recipes import RECIPES, Recipe, RobustRecipe, make_recipe
from botorch_drbo.recipes.description import help_text, option_meanings
from docs.sphinx_parts.recipe_page import page, recipe_page


def examples_of(text: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(text, {}, "help", None, 0)


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", RECIPES)
def test_help_shows_formula_options_and_a_loop(name: str) -> None:
    recipe = RECIPES[name]
    shown = one_line(pydoc.plain(pydoc.render_doc(recipe)))
    meanings = option_meanings(recipe)
    assert list(meanings) == list(recipe.options)  # a docstring explains each
    assert all(len(text.split()) > 2 for text in meanings.values())
    for option, text in meanings.items():
        assert f"``{option}`` = ``" in shown
        assert text in shown
    if isinstance(recipe, RobustRecipe):
        assert recipe.description.summary in shown
        assert one_line(recipe.description.formula) in shown
    elif name != "random":  # which has no formula
        assert ".. math::" in shown
    assert f'RobustOptimizer("{name}", unit, unit, seed=0)' in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_the_loop_of_help_runs(name: str) -> None:
    text = RECIPES[name].describe()
    little = text.replace("seed=0)", "seed=0, num_restarts=1, raw_samples=16)")
    assert little != text
    test = examples_of(little)
    assert len(test.examples) == 6
    assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
    best = test.globs["best"]
    assert best.x.shape == (1,) and 0.0 <= best.x.item() <= 1.0
    assert test.globs["opt"].algorithm.name == name


def test_help_shows_the_values_of_this_recipe_and_not_the_defaults() -> None:
    recipe = make_recipe("wdrbo_exact", radius=0.125)
    assert "``radius`` = ``0.125``" in pydoc.plain(pydoc.render_doc(recipe))
    assert "``radius`` = ``0.125``" not in RECIPES["wdrbo_exact"].describe()


def test_help_of_a_product_says_how_to_make_it() -> None:
    shown = make_recipe(adversary="mmd", policy="thompson").describe()
    assert 'make_recipe(adversary="mmd", policy="thompson")' in shown
    exec(examples_of(shown).examples[2].source)  # the import it needs


def test_the_classes_keep_their_own_docstrings() -> None:
    assert (RobustRecipe.__doc__ or "").startswith("A recipe made of")
    assert "make_recipe" not in (Recipe.__doc__ or "")


def test_an_option_that_nobody_explains_is_shown_with_its_value() -> None:
    @dataclass(frozen=True)
    class Plain:
        size: float = 0.2

    text = help_text(Plain(), "plain", "A method.")
    assert text.startswith("A method.\n\n**Options**\n\n``size`` = ``0.2``\n")
    assert 'RobustOptimizer("plain", unit, unit, seed=0)' in text


@pytest.mark.parametrize("name", RECIPES)
def test_the_page_has_the_same_text(name: str) -> None:
    text = RECIPES[name].describe()
    linked = re.sub(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_", r":cite:t:`\1`", text)
    assert len(text) > 500 and linked in recipe_page(name)
    assert f"| `{name}` |" in page() and f"\nrecipes/{name}\n" in page()


def test_its_examples_run() -> None:
    introduction = page().partition("\n| recipe |")[0]
    test = examples_of(introduction)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
