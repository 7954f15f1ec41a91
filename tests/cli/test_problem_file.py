"""problem.toml says which columns are what, and its mistakes are named by their key."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest
from botorch.exceptions.errors import InputDataError
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from botorch_drbo.cli import init as init_module
from botorch_drbo.cli.commands import app
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.init import guess_variable
from botorch_drbo.cli.problem import as_comment, as_key, as_toml, read_problem
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable

FARM = """field,sort,seed rate,dose,nitrogen,rain,soil,runoff,yield,status
N1,A,100,0.01,35.5,80,clay,6.5,5.1,
N2,B,150,20,61,140,sand,,6.0,
N3,A,210,0.5,120.25,200,sand,9.5,6.4,
N4,B,180,3,90,95,clay,8.1,,failed
"""
COLUMNS = (
    "outcome = 'yield'\n[decisions]\nnitrogen = [0, 200]\n[contexts]\nrain = [0, 300]\n"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "farm.csv"
    path.write_text(FARM)
    return path


def call(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def problem(data: Path) -> dict[str, Any]:
    return tomllib.loads((data.parent / "problem.toml").read_text())


def test_init_guesses_what_the_columns_are_and_says_so(data: Path) -> None:
    code, shown, error = call("init", data, "--limit", "runoff <= 9")
    assert code == 0, error
    assert problem(data) == {
        "outcome": "yield",
        "minimize": False,
        "limits": ["runoff <= 9"],
        "status": "status",
        "decisions": {
            "sort": {"Category": ["A", "B"]},
            "seed rate": {"Integer": [100, 210]},
            "dose": {"Log": [0.01, 100]},
            "nitrogen": [30, 130],
        },
        "contexts": {
            "rain": {"Integer": [80, 200]},
            "soil": {"Category": ["clay", "sand"]},
        },
    }
    text = (data.parent / "problem.toml").read_text()
    assert text.strip() in shown
    for line in text.splitlines():
        kind = line.partition("=")[0].strip().strip('"')
        if kind in ("sort", "seed rate", "dose", "nitrogen", "rain", "soil"):
            assert "# guessed" in line
    assert "35.5 to 120.25 in the file" in text
    assert "# field: nearly each row has another text" in text
    assert data.read_text() == FARM


def test_what_is_said_is_not_guessed(data: Path) -> None:
    words = ["--decisions", "nitrogen=0:250", "dose", "--outcome", "runoff"]
    assert call("init", data, *words, "--contexts", "rain=0:300", "--minimize")[0] == 0
    assert problem(data) == {
        "outcome": "runoff",
        "minimize": True,
        "status": "status",
        "decisions": {"nitrogen": [0, 250], "dose": {"Log": [0.01, 100]}},
        "contexts": {"rain": [0, 300]},
    }
    text = (data.parent / "problem.toml").read_text()
    assert "# soil: not named" in text and "# yield: empty in rows" in text


@pytest.mark.parametrize("cell", ["1e400", "1e99999999999999999999", 400 * "9"])
def test_a_number_beyond_all_numbers_leaves_its_column_alone(
    data: Path, cell: str
) -> None:
    data.write_text(FARM.replace("120.25", cell).replace("9.5,6.4", f"{cell},6.4"))
    assert call("init", data, "--contexts", "rain")[0] == 0
    assert not {"nitrogen", "runoff"} & {*problem(data)["decisions"]}
    text = (data.parent / "problem.toml").read_text()
    assert f"# nitrogen: numbers, and {cell}" in text


def test_a_column_with_gaps_is_no_variable(data: Path) -> None:
    assert call("init", data, "--contexts", "rain")[0] == 0
    assert "runoff" not in problem(data)["decisions"]
    text = (data.parent / "problem.toml").read_text()
    assert "# runoff: empty in rows with an outcome, so perhaps measured" in text


def test_columns_that_are_empty_where_the_outcome_is_out_are_contexts(
    data: Path,
) -> None:
    data.write_text("a,b,y\n1.5,2.5,1\n2.5,3.5,2\n3,,\n")
    assert call("init", data)[0] == 0
    assert list(problem(data)["contexts"]) == ["b"]


def test_init_finds_contexts_by_the_row_that_waits_not_by_one_that_failed(
    tmp_path: Path,
) -> None:
    """The bakery met its week in the row that failed."""
    data = tmp_path / "bakery.csv"
    data.write_text(
        "dough [kg],outside [F],week,crust,waste,status\n"
        "35.5,61,school,1.2,20,\n40.0,52,holiday,0.9,31,\n61.5,70,school,,,failed\n"
    )
    limit = ("--limit", "crust >= 0.8")
    code, _, error = call("init", data, *limit)
    assert code == 2
    assert "for example --contexts 'outside [F]' week." in error
    data.write_text(data.read_text() + "50.0,,,,,\n")
    code, shown, error = call("init", data, *limit)
    assert code == 0, error
    assert list(problem(data)["contexts"]) == ["outside [F]", "week"]
    assert shown.count("limits =") == 1  # not again among the other keys


@pytest.mark.parametrize(
    ("low", "high", "chosen", "kind"),
    [
        ("0.5", "500.0", True, Log(0.1, 1000.0)),  # a factor of 1000 counts
        ("0.5", "499.0", True, Continuous(0.0, 500.0)),
        ("0.5", "500.0", False, Continuous(0.0, 500.0)),  # what is met is a number
        ("0.0", "500.0", True, Continuous(0.0, 500.0)),
        ("-0.5", "500.0", True, Continuous(-100.0, 500.0)),
        ("0.01", "0.02", True, Continuous(0.01, 0.02)),
    ],
)
def test_a_decision_over_three_orders_of_magnitude_is_a_factor(
    low: str, high: str, chosen: bool, kind: Variable
) -> None:
    assert guess_variable({2: low, 3: high}, chosen=chosen).variable == kind


def test_init_asks_in_a_terminal(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    answers = iter(["runoff", "rain, soil", "no"])
    monkeypatch.setattr(init_module.sys, "stdin", Terminal)
    monkeypatch.setattr(
        init_module.typer, "prompt", lambda *words, **options: next(answers)
    )
    text = init_module.written(
        CsvFile.read(data),
        decisions=None,
        contexts=None,
        outcome=None,
        minimize=None,
        limits=(),
    )
    assert tomllib.loads(text)["outcome"] == "runoff"
    assert list(tomllib.loads(text)["contexts"]) == ["rain", "soil"]


def test_a_file_is_not_overwritten_without_being_asked(data: Path) -> None:
    path = data.parent / "problem.toml"
    path.write_text("mine")
    code, shown, error = call("init", data)
    assert (code, shown, path.read_text()) == (2, "", "mine")
    assert "already exists. Use --overwrite" in error
    assert call("init", data, "--out", data.parent / "other.toml")[0] == 0
    assert path.read_text() == "mine"
    assert call("init", data, "--overwrite")[0] == 0 and "decisions" in problem(data)


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (
            "a,b,gain\n1,2,3\n2,3,4\n",
            [],
            "looks like that of an outcome. Write --outcome",
        ),
        ("a,b,yield\n1,3,3\n2,5,4\n", [], "do you choose, and which do you meet"),
        (FARM, ["--outcome", "yeild"], "Did you mean `yield`"),
        (FARM, ["--contexts", "rian"], "Did you mean `rain`"),
        (FARM, ["--limit", "runof <= 9"], "Did you mean `runoff`"),
        ("a,rain,yield\n5,1,3\n5,2,4\n", [], "is left for decisions"),
    ],
)
def test_what_cannot_be_guessed_is_said(
    data: Path, content: str, words: list[str], message: str
) -> None:
    data.write_text(content)
    code, _, error = call("init", data, *words)
    assert code == 2 and message in error
    assert not (data.parent / "problem.toml").exists()


def test_the_kinds_of_the_space_are_read(data: Path) -> None:
    path = data.parent / "p.toml"
    path.write_text(
        "outcome = 'yield'\nhalf_life = 7\nradius = {rain = 30}\nminimize = true\n"
        "[decisions]\nnitrogen = [0, 200.5]\n'seed rate' = {Integer = [0, 300]}\n"
        "dose = {Log = [0.01, 100]}\nsort = {Category = ['A', 'B']}\n"
        "[contexts]\nrain = {Ordinal = [80, 140, 200, 95]}\n"
    )
    found = read_problem(path, CsvFile.read(data))
    assert found.decisions == {
        "nitrogen": Continuous(0, 200.5),
        "seed rate": Integer(0, 300),
        "dose": Log(0.01, 100),
        "sort": Category(["A", "B"]),
    }
    assert found.contexts == {"rain": Ordinal([80, 95, 140, 200])}
    assert (found.half_life, found.radius, found.minimize) == (7.0, {"rain": 30}, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0, 200]", "[200, 0]", "decisions.nitrogen: A variable must have a lower"),
        ("[0, 200]", "[0, 200, 3]", r"decisions.nitrogen: got .*Write \[LOW, HIGH\]"),
        ("[0, 200]", "7", "decisions.nitrogen: got 7. Write"),
        ("[0, 200]", "{Int = [0, 9]}", "Did you mean `Integer`"),
        ("[0, 200]", "{Integer = [0.5, 9]}", "must be whole numbers, got 0.5"),
        ("nitrogen", "nitrogn", "names `nitrogn`.*Did you mean `nitrogen`"),
        ("'yield'", "3", 'outcome: got 3. Write a text, such as "yield"'),
        ("outcome", "outcom", "Did you mean `outcome`"),
        ("outcome = 'yield'\n", "", "has no `outcome`"),
        ("[contexts]", "", "has no `contexts`. Write a table"),
        ("rain = [0, 300]", "rain = [0, 300]\nminimize = true", "above the tables"),
        ("'yield'", "'yield'\nminimize = 'yes'", 'got "yes". Write true or false'),
        ("'yield'", "'yield'\nhalf_life = 'ten'", 'half_life: got "ten"'),
        ("'yield'", "'yield'\nlimits = [9]", r"limits: got \[9\]. Write texts"),
        ("'yield'", "'yield'\nradius = {rain = 'a'}", "radius.rain: got"),
        ("nitrogen", "seed rate", "cannot be read as TOML.*quotation marks"),
    ],
)
def test_mistakes_are_named_by_their_key(
    data: Path, old: str, new: str, message: str
) -> None:
    path = data.parent / "p.toml"
    path.write_text(COLUMNS.replace(old, new))
    with pytest.raises(InputDataError, match=f"p.toml.*{message}"):
        read_problem(path, CsvFile.read(data))


def test_words_of_a_command_take_the_place_of_those_of_the_file(data: Path) -> None:
    (data.parent / "problem.toml").write_text(COLUMNS)
    code, _, error = call("suggest", data, "--dry-run", "--algorithm", "nothing")
    assert code == 2 and "nothing" in error and "as described in" in error
    code, _, error = call("suggest", data, "--problem", "p.toml", "--outcome", "yield")
    assert code == 2 and "both say which columns are what" in error
    code, _, error = call("suggest", data, "--problem", data.parent / "p.toml")
    assert code == 2 and "No such file" in error and "Errno" not in error


def test_without_any_word_init_is_named(data: Path) -> None:
    code, _, error = call("suggest", data)
    assert code == 2 and "--decisions is missing" in error
    assert "botorch-drbo init" in error
    code, _, error = call("suggest", data, "--decisions", "nitrogen=0:200")
    assert code == 2 and "--contexts is missing" in error


@pytest.mark.parametrize(
    "value",
    ['a"b\\c\n', "ä \x7f", True, 3, 2.5, [1, "a"], {"x y": [1], "z": {"a": 1}}],
)
def test_values_are_written_as_toml_reads_them(value: Any) -> None:
    assert tomllib.loads(f"{as_key('a b')} = {as_toml(value)}") == {"a b": value}


BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[2J", "\x85", "\u2028", "\x7f"]


@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize("where", ["header", "constant", "mixed", "measured"])
def test_nothing_of_the_file_gets_out_of_a_comment(
    tmp_path: Path, end: str, where: str
) -> None:
    bad = f'x{end}algorithm = "random"{end}[decisions]'
    head, cells = ["note", "dose", "rain", "yield"], [["1", "2", "3", "4"]]
    cells += [["2", "3", "5", "6"], ["9", "5", "7", "8"]]
    if where == "header":
        head[0] = bad
    for i, row in enumerate(cells):
        if where == "constant" or (where == "mixed" and i == 1):
            row[0] = bad
        if where == "measured":
            row[0] = "" if i == 1 else bad
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([head, *cells])
    code, _, error = call("init", path, "--contexts", "rain")
    assert code == 0, error
    text = (tmp_path / "problem.toml").read_bytes().decode()
    found = tomllib.loads(text)
    assert set(found) == {"outcome", "minimize", "decisions", "contexts"}
    alone = [bad] if where == "header" else []
    assert [*found["decisions"]] == [*alone, "dose"]
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert all(line.isprintable() for line in comments)


@given(st.text())
def test_a_comment_is_one_line(text: str) -> None:
    assert tomllib.loads(f"a = 1  {as_comment(text)}\nb = 2") == {"a": 1, "b": 2}
