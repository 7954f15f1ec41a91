"""The tables that come with the package, and the two commands that go on from each."""

from __future__ import annotations

import importlib.util
import json
import runpy
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


WRITTEN = {
    "bakery": "--contexts temperature --outcome profit",
    "farm": "--contexts rain soil --outcome yield --limit 'runoff <= 10'",
    "server": "--contexts load --outcome latency_ms --minimize",
    "scope": "--contexts substrate --outcome yield --scope uniform",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_script_decides_as_the_command_does(name: str, here: Path) -> None:
    assert CliRunner().invoke(app, ["example", name]).exit_code == 0
    words = ["init", f"{name}.csv", *shlex.split(WRITTEN[name]), "--python"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "problem.toml and problem.py" in done.stdout
    script = (here / "problem.py").read_text()
    quick = script.replace("seed=len", "surrogate='botorch', seed=len")
    quick = quick.replace("print(opt.ask())", "new = opt.preview()")
    (here / "quick.py").write_text(quick)
    ran = runpy.run_path("quick.py")
    decided = ran["opt"].recommend()
    assert ran["new"].shape == (1, len(decided.x.columns))
    asked = ["recommend", f"{name}.csv", "--surrogate", "botorch", "--json"]
    found = json.loads(CliRunner().invoke(app, asked).stdout)
    assert decided.x.to_dict("records")[0] == found["decision_before_rounding"]
    assert decided.worst_case_value == found["worst_case"]
    again = CliRunner().invoke(app, [*words, "--overwrite"])
    assert again.exit_code == 0 and (here / "problem.py").read_text() == script
    (here / "problem.toml").unlink()
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 2 and "problem.py already exists" in again.stderr
    assert not (here / "problem.toml").exists()


def test_a_file_stays_and_a_wrong_name_is_answered(here: Path) -> None:
    (here / "farm.csv").write_text("mine")
    done = CliRunner().invoke(app, ["example", "farm"])
    assert done.exit_code == 2 and "--overwrite" in done.stderr
    assert (here / "farm.csv").read_text() == "mine"
    assert CliRunner().invoke(app, ["example", "farm", "--overwrite"]).exit_code == 0
    done = CliRunner().invoke(app, ["example", "bakry"])
    assert done.exit_code == 2 and "Did you mean `bakery`?" in done.stderr
