"""A new problem and a new method: one file and one line of a config each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.problems import PROBLEMS
from benchmarks.run.config import ConfigError
from benchmarks.run.extensions import import_all
from benchmarks.run.storage import load
from botorch_drbo.recipes import RECIPES

CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"


@pytest.fixture
def registries():
    """The registries, which are afterwards what they were."""
    kept = [(registry, dict(registry)) for registry in (RECIPES, PROBLEMS)]
    yield
    for registry, entries in kept:
        registry.clear()
        registry.update(entries)


@pytest.mark.usefixtures("registries")
def test_the_worked_example_of_contributing(tmp_path: Path):
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text.split("## Add a problem or a method to the benchmarks")[1]
    block = r"`(\w+\.(?:py|toml))`.*?```(?:python|toml)\n(.*?)```"
    blocks = re.findall(block, section, re.S)
    assert [n for n, _ in blocks] == ["seesaw.py", "half_variation.py", "mine.toml"]
    for name, block in blocks:
        (tmp_path / name).write_text(block, encoding="utf-8")
    out = tmp_path / "out"
    line = ["run", str(tmp_path / "mine.toml"), "--size", "smoke", "--workers", "1"]
    assert main([*line, "--out", str(out)]) == 0
    rows, _ = load(out)
    assert set(rows.problem) == {"seesaw"}
    assert list(rows.algorithm.unique()) == ["half_variation", "erbo", "random"]
    assert main(["report", str(out), "--out", str(tmp_path / "report")]) == 0
    assert (tmp_path / "report" / "table.md").exists()


@pytest.mark.parametrize("name", ["no_such.py", "no_such_module"])
def test_what_is_not_there_is_refused(name: str):
    with pytest.raises(ConfigError, match=name):
        import_all([name])
