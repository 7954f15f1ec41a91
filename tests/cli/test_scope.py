"""A decision for a whole list, on the command line alone."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from botorch_drbo import Category, NamedOptimizer
from botorch_drbo.cli import init as init_module
from botorch_drbo.cli.commands import app
from botorch_drbo.cli.csv_file import CsvFile

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


def call(*words: str | Path | int) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize("scope", ["uniform", "list.csv"])
def test_a_recommendation_serves_the_scope(data: Path, scope: str) -> None:
    Path("list.csv").write_text("substrate,Weight\nb,1\nd,3\n")
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


LEVELS = ["methyl", "nitro", "fluoro", "indole", "thiophene", "pyridine"]


def test_from_an_empty_file_and_a_list_to_a_recommendation(data: Path) -> None:
    data.write_text("ligand,base,solvent,substrate,yield\n")
    Path("list.csv").write_text("\n".join(["substrate", *LEVELS]) + "\n")
    chosen = ["ligand=PPh3,SPhos,XPhos", "base=KOH,Et3N", "solvent=DMF,THF"]
    words = ["--decisions", *chosen, "--outcome", "yield", "--scope", "list.csv"]
    code, _, error = call("init", data, *words)
    assert code == 0, error
    described = tomllib.loads(Path("problem.toml").read_text())
    assert described["scope"] == "list.csv"
    assert described["contexts"] == {"substrate": {"Category": LEVELS}}

    asked = ["suggest", data, "--choose-context", "--surrogate", "botorch"]
    code, _, error = call(*asked, "-q", 12, "--contexts-per-decision", 2)
    assert code == 0, error
    plate = rows(data)
    assert len({(r["ligand"], r["base"], r["solvent"]) for r in plate}) == 6
    used = [r["substrate"] for r in plate]
    assert all(used.count(level) == 2 for level in LEVELS)
    assert {r["yield"] for r in plate} == {""}

    text = data.read_text().replace(",\n", ",Y\n")
    for i in range(12):
        text = text.replace("Y", str(10 + 7 * i % 60), 1)
    data.write_text(text)
    Path("stock.csv").write_text("ligand,base,solvent\nPPh3,KOH,DMF\nXPhos,KOH,THF\n")
    more = ["-q", 4, "--contexts-per-decision", 2, "--candidates", "stock.csv"]
    code, shown, error = call(*asked, *more, "--at-most", "base=1", "--json")
    assert code == 0, error
    new = rows(data)[12:]
    pairs = [{k: v for k, v in row.items() if k != "yield"} for row in new]
    assert json.loads(shown)["suggested"] == pairs
    stock = {("PPh3", "KOH", "DMF"), ("XPhos", "KOH", "THF")}
    assert {(r["ligand"], r["base"], r["solvent"]) for r in new} == stock
    together = [
        tuple(r[k] for k in ("ligand", "base", "solvent", "substrate"))
        for r in rows(data)
    ]
    assert len(set(together)) == 16

    code, shown, error = call("recommend", data, "--surrogate", "botorch", "--json")
    assert code == 0 and len(json.loads(shown)["contexts"]) == 6, error


def test_decisions_keep_their_form_over_their_contexts(data: Path) -> None:
    data.write_text("heat,substrate,yield\n20.5,a,1\n30.0,b,2\n40.5,b,4\n55.0,a,3\n")
    words = ["--decisions", "heat=0:90", "--contexts", "substrate=a,b,c,d", "--outcome"]
    many = ["--scope", "uniform", "--choose-context", "-q", 6, "--replicates", 2]
    code, _, error = call(
        *("suggest", data, *words, "yield", *many, "--contexts-per-decision", 3)
    )
    assert code == 0, error
    new = rows(data)[4:]
    assert len({row["heat"] for row in new}) == 1 and len(new) == 6
    assert sorted(row["substrate"] for row in new)[::2] == sorted(
        {row["substrate"] for row in new}
    )
    Path("stock.csv").write_text("heat\n33.333\n")
    few = ["--candidates", "stock.csv", "--scope", "uniform", "--choose-context"]
    code, _, error = call("suggest", data, *words, "yield", *few)
    assert code == 0, error
    assert rows(data)[-1]["heat"] == "33.333"


BAD_PLATES = [
    (["--contexts-per-decision", 5], "`--contexts-per-decision` is 5, and there are 4"),
    (
        ["--contexts-per-decision", 4, "-q", 99],
        "Asked for 99 wells, and 0 can be had: 0 decisions",
    ),
    (["-q", 7], "Asked for 7 wells, and 6 can be had"),
    (["--at-most", "solvent"], "`--at-most solvent` cannot be read"),
    (["--at-most", "solvent=x"], "`--at-most solvent=x` cannot be read"),
    (["--at-most", "nothing=1"], "`--at-most` names `nothing`"),
    (["--candidates", "stock.csv"], "stock.csv, line 3, column `solvent`"),
]


@pytest.mark.parametrize(("words", "message"), BAD_PLATES)
def test_what_is_wrong_with_a_plate_is_said(
    data: Path, words: list[str | int], message: str
) -> None:
    Path("stock.csv").write_text("ligand,solvent\nPPh3,DMF\nPPh3,water\n")
    asked = ["suggest", data, *COLUMNS, "--scope", "uniform", "--choose-context"]
    code, shown, error = call(*asked, *words)
    assert (code, shown) == (2, "") and message in error, error
    assert data.read_text() == ROWS


@pytest.mark.parametrize(("said", "scope"), [("uniform", "uniform"), ("no", None)])
def test_init_asks_whether_contexts_are_chosen(
    data: Path, monkeypatch: pytest.MonkeyPatch, said: str, scope: str | None
) -> None:
    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    questions: list[str] = []
    monkeypatch.setattr(init_module.sys, "stdin", Terminal)
    monkeypatch.setattr(
        init_module.typer,
        "prompt",
        lambda text, **options: questions.append(text) or said,
    )
    text = init_module.written(
        CsvFile.read(data),
        decisions=["ligand", "solvent"],
        contexts=["substrate"],
        outcome="yield",
        minimize=None,
        limits=(),
    )
    assert questions[0].startswith("Do you choose substrate while you learn")
    assert tomllib.loads(text).get("scope") == scope
    assert ("what you choose while you learn" in text) is (scope is not None)
