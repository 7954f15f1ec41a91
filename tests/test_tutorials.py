"""A tutorial stands twice, as a script and as an executed notebook: the same cells."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest

TUTORIALS = Path(__file__).parents[1] / "tutorials"


@pytest.mark.parametrize("script", sorted(TUTORIALS.glob("*.py")), ids=lambda p: p.name)
def test_notebook_has_the_cells_of_its_script(script: Path):
    cells, committed = (
        [(c.cell_type, c.source.strip()) for c in jupytext.read(path).cells if c.source]
        for path in (script, script.with_suffix(".ipynb"))
    )
    assert committed == cells


@pytest.mark.parametrize(
    "path", sorted(TUTORIALS.glob("*.ipynb")), ids=lambda p: p.name
)
def test_notebook_was_executed_as_a_whole(path: Path):
    cells = [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells if cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
