"""A tutorial stands twice, as a script and as an executed notebook: the same cells.

And it is listed in the gallery, has links into the documentation, and no broken one.
"""

from __future__ import annotations

import base64
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
from PIL import Image

from docs.sphinx_parts import gallery

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "tutorials"
SCRIPTS = sorted(TUTORIALS.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_links_lead_to_files_of_the_repository(script: Path):
    links = re.findall(r"\]\(([^)\s]+)\)", script.read_text())
    inside = [link.split("#")[0] for link in links if "://" not in link]
    assert [link for link in inside if not (TUTORIALS / link).exists()] == []
    guides = [link for link in inside if link.startswith("../docs/")]
    assert any("/api/" in link for link in guides), "no link into the API reference"
    assert any("/api/" not in link for link in guides), "no link to a guide"


def test_tutorial_13_contradicts_the_advice_as_its_truths_do():
    """Made again, the page may need another sentence behind its last table."""
    name = "13_is_my_model_good_enough.ipynb"
    *_, advice, _, table, text = json.loads((TUTORIALS / name).read_text())["cells"]
    printed = "".join("".join(part["text"]) for part in advice["outputs"])
    assert "fields: wdrbo_exact saves" in printed and "stay with erbo." in printed
    shown = "".join(table["outputs"][-1]["data"]["text/plain"])
    rows = shown[shown.index("in truth") :].splitlines()[1:]
    truth = [float(row.split()[-1]) for row in rows]  # three worlds of each method
    settled, _, moved = (b - a for a, b in zip(truth[:3], truth[3:], strict=True))
    assert moved > -settled > 0
    said = " ".join("".join(text["source"]).split())
    assert "contradicts the advice above: with 30 mm less the robust decision" in said


def png(shade: int) -> str:
    """A picture of one grey, as a notebook holds it."""
    file = io.BytesIO()
    Image.new("L", (640, 480), shade).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def notebook(about: str, *, tags: tuple[str, ...] = (), seconds: int | None = 34):
    """Two figures, the second one with the tags."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A day\n", "\n", about]},
        {"cell_type": "markdown", "metadata": {}, "source": "[r](../docs/radius.md)"},
    ]
    cells += [
        {
            "cell_type": "code",
            "metadata": {"tags": list(own)},
            "outputs": [{"data": {"image/png": png(shade)}}, {"text": "x"}],
        }
        for shade, own in ((10, ()), (200, tags))
    ]
    timed = {} if seconds is None else {"botorch_drbo": {"core_seconds": seconds}}
    return {"cells": cells, "metadata": timed}


ABOUT = "*Beginner, ten minutes: you have a\ntable.*\n\nThis is *not*\n*all*"


def test_gallery_has_a_row_with_level_minutes_and_picture(tmp_path: Path):
    (tmp_path / "09_a_day.ipynb").write_text(json.dumps(notebook(ABOUT)))
    gallery.write(tmp_path, tmp_path / "out")
    text = (tmp_path / "out" / "gallery.txt").read_text()
    assert "## To begin with" in text and "## Further" not in text
    assert "[A day](tutorials/09_a_day.ipynb)" in text
    assert "Ten minutes to read, 30 seconds to run." in text
    assert "You have a table." in text and "all" not in text
    copied = (tmp_path / "out" / "09_a_day.ipynb").read_text()
    assert "](../radius.md)" in copied
    with Image.open(tmp_path / "out" / "09_a_day.png") as picture:
        assert picture.size == (320, 240)
        assert picture.getpixel((5, 5)) == (10, 10, 10)


def test_gallery_shows_first_what_teaches_most_then_the_others_by_level():
    levels = {"16_z": "Intermediate", "07_x": "Advanced", "13_y": "Beginner"}
    found = [
        gallery.Tutorial(name, name, level, "ten", "you", 30, b"")
        for name, level in levels.items()
    ]
    text = gallery.gallery(found)
    headings = ["To begin with", "Further: beginner", "Further: advanced"]
    assert re.findall(r"^## (.+)", text, re.MULTILINE) == headings
    assert text.index("16_z.ipynb") < text.index("13_y.ipynb") < text.index("07_x.ipy")
    assert "tutorials/16_z\ntutorials/13_y\ntutorials/07_x\n" in text


def test_gallery_shows_the_figure_with_the_tag():
    found = gallery.Tutorial.of("x", notebook(ABOUT, tags=("thumbnail",)))
    assert found.picture == base64.b64decode(png(200))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (notebook("*Five minutes.*"), "Levels"),
        (notebook(ABOUT, seconds=None), "make notebooks"),
        ({**notebook(ABOUT), "cells": notebook(ABOUT)["cells"][:2]}, "no figure"),
    ],
)
def test_gallery_refuses_a_tutorial_that_it_cannot_describe(broken, message: str):
    with pytest.raises(ValueError, match=message):
        gallery.Tutorial.of("x", broken)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_tutorial_is_described_for_the_gallery_and_quick(script: Path):
    read = json.loads(script.with_suffix(".ipynb").read_text())
    found = gallery.Tutorial.of(script.stem, read)
    assert found.core_seconds < 180


@pytest.mark.slow
def test_script_is_run_into_a_notebook_with_its_time(tmp_path: Path):
    script, target = tmp_path / "small.py", tmp_path / "out.ipynb"
    script.write_text("\n\n# %% [markdown]\n# # Small\n\n# %%\nprint(6 * 7)\n")
    run = ROOT / ".ci" / "notebook"
    subprocess.run([sys.executable, run, script, target], check=True, timeout=120)
    read = json.loads(target.read_text())
    assert [cell["cell_type"] for cell in read["cells"]] == ["markdown", "code"]
    assert read["cells"][1]["outputs"][0]["text"] in ("42\n", ["42\n"])
    assert read["cells"][1]["execution_count"] == 1
    # A kernel needs a part of a second of a core to start.
    assert read["metadata"]["botorch_drbo"]["core_seconds"] in range(60)


@pytest.mark.slow
def test_script_that_fails_leaves_no_notebook(tmp_path: Path):
    script, target = tmp_path / "small.py", tmp_path / "out.ipynb"
    script.write_text("# %%\n1 / 0\n")
    run = ROOT / ".ci" / "notebook"
    found = subprocess.run(
        [sys.executable, run, script, target], capture_output=True, timeout=120
    )
    assert found.returncode != 0
    assert b"ZeroDivisionError" in found.stderr
    assert not target.exists()
