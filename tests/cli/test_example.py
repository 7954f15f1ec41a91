"""The tables that come with the package, and the two commands that go on from each."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app
from botorch_drbo.cli.options import EXAMPLES
from tests.page_numbers import ROOT

SHIPPED = ROOT / "botorch_drbo" / "cli" / "examples"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tables_are_those_of_their_functions() -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "examples" / "make.py")
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    tables = {path.stem: path.read_text() for path in SHIPPED.glob("*.csv")}
    assert tables == {name: make.table(name) for name in make.TABLES}
    assert set(tables) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_two_commands_run(name: str, here: Path) -> None:
    shown = CliRunner().invoke(app, ["example", name])
    assert shown.exit_code == 0, shown.output
    lines = [line.strip() for line in shown.stdout.splitlines()]
    lines = [line for line in lines if line.startswith("botorch-drbo ")]
    assert [line.split()[1] for line in lines] == ["recommend", "suggest"]
    quick = {
        "recommend": ["--surrogate", "botorch"],
        "suggest": ["--algorithm", "random"],
    }
    for line in lines:
        command, *words = shlex.split(line)[1:]
        chosen = "--choose-context" in words
        fast = quick["recommend" if chosen else command]
        done = CliRunner().invoke(app, [command, *words, *fast])
        assert done.exit_code == 0, done.output
    before = (SHIPPED / f"{name}.csv").read_text()
    assert (here / f"{name}.csv").read_text().startswith(before)


def test_a_file_stays_and_a_wrong_name_is_answered(here: Path) -> None:
    (here / "farm.csv").write_text("mine")
    done = CliRunner().invoke(app, ["example", "farm"])
    assert done.exit_code == 2 and "--overwrite" in done.stderr
    assert (here / "farm.csv").read_text() == "mine"
    assert CliRunner().invoke(app, ["example", "farm", "--overwrite"]).exit_code == 0
    done = CliRunner().invoke(app, ["example", "bakry"])
    assert done.exit_code == 2 and "Did you mean `bakery`?" in done.stderr
