"""What approximations lose: with and without them, and the report."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.__main__ import main
from benchmarks.speed.approximations import moved, ranked_by_values
from benchmarks.speed.iterations import make_history
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe


def test_with_the_patch_a_ranking_is_the_values() -> None:
    history, space = make_history(40, 0)
    for name in ("ei_erbo", "edrbo", "wdrbo_exact"):
        recipe = make_recipe(name)
        assert isinstance(recipe, ModelBasedRecipe)
        model = recipe.fitted(history, space, uses_contexts=True)
        acqf = recipe.exploring(recipe.state_of(model, history, space, 0), None)
        X = history.X[:6].unsqueeze(1)
        with torch.no_grad():
            values, cheap = acqf(X), acqf.ranking(X)
            with ranked_by_values():
                exact = acqf.ranking(X)
        torch.testing.assert_close(exact, values)
        assert not torch.allclose(cheap, values)


def test_a_reference_moves_by_less_than_the_radius() -> None:
    few, distance = moved(100, 0)
    assert few == 48 and 0.0 < distance < 1.0


def test_command_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "found.md"
    line = ["speed", "approximations", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(line) == 0
    text = out.read_text()
    assert text.count("| ei_wdrbo |") == 3 and text.count("| ensemble |") == 1
    assert "References moved to a few contexts" in text
    assert text.count("| wdrbo_exact |") == 4 and text.count("| 5 | ") == 1
