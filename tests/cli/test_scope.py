"""A decision for a whole list, on the command line alone."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from botorch_drbo import Category, NamedOptimizer
from botorch_drbo.cli.commands import app

COLUMNS = [
    *("--decisions", "ligand=PPh3,SPhos,XPhos", "solvent=DMF,THF"),
    *("--contexts", "substrate=a,b,c,d"),
    *("--outcome", "yield", "--surrogate", "botorch"),
]
ROWS = """ligand,solvent,substrate,yield
PPh3,DMF,a,10
SPhos,DMF,a,35
XPhos,THF,a,80
XPhos,DMF,b,30
PPh3,THF,c,52
SPhos,THF,b,61
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reactions.csv"
    path.write_text(ROWS)
    return path


def call(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("scope", ["uniform", "list.csv"])
def test_a_recommendation_serves_the_scope(data: Path, scope: str) -> None:
    Path("list.csv").write_text("substrate,weight\nb,1\nd,3\n")
    code, shown, error = call("recommend", data, *COLUMNS, "--scope", scope, "--json")
    assert code == 0, error
    opt = NamedOptimizer.from_dataframe(
        pd.read_csv(data),
        decisions={
            "ligand": Category(["PPh3", "SPhos", "XPhos"]),
            "solvent": Category(["DMF", "THF"]),
        },
        contexts={"substrate": Category(["a", "b", "c", "d"])},
        outcome="yield",
        algorithm="erbo",
        surrogate="botorch",
        scope="uniform" if scope == "uniform" else pd.read_csv(scope),
        seed=6,
    )
    found, best = json.loads(shown), opt.recommend()
    assert found["decision"] == best.x.to_dict("records")[0]
    assert found["expected"] == pytest.approx(best.expected_value)
    assert f"learnt for the mean over the scope, {scope}" in error


BAD = [
    ("substrate\n", "list.csv has no rows"),
    ("substrate\nz\n", "list.csv, line 2, column `substrate`"),
    ("sub\na\n", "list.csv has no column `substrate`"),
    ("substrate,weight\na,0\n", "list.csv, column `weight`.*not all zero"),
    (None, "list.csv: No such file"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_with_a_scope_is_said(
    data: Path, text: str | None, message: str
) -> None:
    if text is not None:
        Path("list.csv").write_text(text)
    code, shown, error = call("recommend", data, *COLUMNS, "--scope", "list.csv")
    assert (code, shown) == (2, "")
    assert re.search(message, error), error


def test_uniform_needs_levels(data: Path) -> None:
    data.write_text("stock,rain,profit\n1,2,3\n2,3,4\n")
    words = ["--decisions", "stock=0:9", "--contexts", "rain=0:9", "--outcome"]
    code, _, error = call("check", data, *words, "profit", "--scope", "uniform")
    assert code == 2 and "`--scope` is 'uniform'" in error
