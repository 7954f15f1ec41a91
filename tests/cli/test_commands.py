"""The commands read a CSV file, and append to it and do nothing else to it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from botorch.exceptions.errors import InputDataError
from typer.testing import CliRunner

from botorch_drbo.cli.columns import parse_constraint, parse_variable
from botorch_drbo.cli.commands import app
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Variable,
)

CSV = """day,price,stock,weather,profit
1,20.5,3,sun,1.5
2,30,10,rain,2.5
3,61,30,,
"""
COLUMNS = ["--decisions", "price=10:90", "stock=0:40:int", "--contexts"]
COLUMNS += ["weather=sun,rain", "--outcome", "profit", "--algorithm", "dro"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    return path


def call(command: str, data: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [command, str(data), *words])
    return done.exit_code, " ".join(done.output.split())


def test_suggestions_are_appended_without_context_and_outcome(data: Path) -> None:
    code, shown = call("suggest", data, *COLUMNS, "-q", "2")
    assert code == 0, shown
    text = data.read_text()
    assert text.startswith(CSV)
    new = [line.split(",") for line in text[len(CSV) :].splitlines()]
    assert len(new) == 2 and new[0] != new[1]
    for day, price, stock, weather, profit in new:
        assert (day, weather, profit) == ("", "", "")
        assert 10 <= float(price) <= 90 and 0 <= int(stock) <= 40
    # They are pending now: others are suggested.
    assert call("suggest", data, *COLUMNS)[0] == 0
    assert data.read_text().splitlines()[-1].split(",") not in new


def test_a_last_line_without_an_end_is_ended(data: Path) -> None:
    data.write_text(CSV.rstrip("\n"))
    assert call("suggest", data, *COLUMNS)[0] == 0
    assert data.read_text().startswith(CSV)


def test_a_header_alone_is_a_start(data: Path) -> None:
    data.write_text(CSV.splitlines()[0])
    code, shown = call("suggest", data, *COLUMNS, "--dry-run")
    assert code == 0 and "price" in shown
    assert data.read_text() == CSV.splitlines()[0]


@pytest.mark.slow
def test_recommend_says_decision_and_worst_case(data: Path) -> None:
    code, shown = call("recommend", data, *COLUMNS, "--minimize")
    assert code == 0, shown
    assert "decision price =" in shown and "worst-case profit" in shown
    assert data.read_text() == CSV


@pytest.mark.slow
def test_plot_writes_a_picture(data: Path) -> None:
    code, shown = call("plot", data, *COLUMNS)
    assert code == 0, shown
    assert data.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_the_surrogate_decides_with_the_recipe(data: Path) -> None:
    shown = [
        call("check", data, *COLUMNS, "--surrogate", name)
        for name in ("botorch", "matern", "botorch")
    ]
    assert [code for code, _ in shown] == [0, 0, 0]
    assert shown[0] == shown[2] != shown[1]


def test_methods_are_compared_by_the_surrogate_that_is_asked_for(data: Path) -> None:
    rows = [
        f"{k},{10 + 9 * k},{3 * k},{'sun' if k % 3 else 'rain'},{k * (6 - k)}"
        for k in range(1, 8)
    ]
    data.write_text(CSV.splitlines()[0] + "\n" + "\n".join(rows) + "\n")
    words = [*COLUMNS, "--methods", "erbo", "--methods", "dro"]
    shown = [
        call("compare", data, *words, "--surrogate", name)
        for name in ("botorch", "matern", "botorch")
    ]
    assert [code for code, _ in shown] == [0, 0, 0], shown
    assert "erbo" in shown[0][1] and "dro" in shown[0][1]
    assert shown[0] == shown[2] != shown[1]


def test_an_unknown_surrogate_is_named(data: Path) -> None:
    code, shown = call("suggest", data, *COLUMNS, "--surrogate", "matren")
    assert code == 2 and "no surrogate 'matren'" in shown and "`matern`" in shown
    assert data.read_text() == CSV


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2,30,10", "2,300,10", "line 3, column `price`: must lie between"),
        ("2,30,10", "2,cheap,10", "line 3, column `price`: must be a number"),
        ("2,30,10,rain", "2,30,10,hail", "line 3, column `weather`"),
        ("2,30,10,rain", "2,30,10", "line 3: has 4 cells"),
        ("weather,", "wind,", "no column `weather`"),
        ("day,", "price,", "more than once"),
    ],
)
def test_a_wrong_cell_is_named_by_its_line(
    data: Path, old: str, new: str, words: str
) -> None:
    data.write_text(CSV.replace(old, new, 1))
    before = data.read_text()
    code, shown = call("suggest", data, *COLUMNS)
    assert code == 2 and words in shown
    assert data.read_text() == before


def test_a_name_alone_is_what_its_column_holds(data: Path) -> None:
    words = [w.partition("=")[0] for w in COLUMNS]
    code, shown = call("suggest", data, *words)
    assert code == 0, shown
    assert "price: from 20.5 to 61" in shown and "weather: one of rain, sun" in shown
    assert "stock: a whole number from 3 to 30" in shown
    assert "stock=LOW:HIGH for any number between bounds" in shown
    price, stock = data.read_text().splitlines()[-1].split(",")[1:3]
    assert 20.5 <= float(price) <= 61 and 3 <= int(stock) <= 30
    assert "from" not in call("suggest", data, *COLUMNS)[1]


def test_a_name_alone_of_an_empty_column_is_refused(data: Path) -> None:
    data.write_text(CSV.splitlines()[0])
    code, shown = call("suggest", data, *[w.partition("=")[0] for w in COLUMNS])
    assert code == 2 and "`price` has no bounds" in shown


def test_a_column_that_is_not_there_is_named(data: Path) -> None:
    words = [w.replace("price=10:90", "prize") for w in COLUMNS]
    code, shown = call("suggest", data, *words)
    assert code == 2 and "no column `prize`" in shown and "mean `price`" in shown
    assert call("suggest", data.with_name("none.csv"), *COLUMNS)[0] == 2


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("a=-1:2.5", Continuous(-1.0, 2.5)),
        ("a=0:40:int", Integer(0, 40)),
        ("a=0.1:10:log", Log(0.1, 10.0)),
        ("a=A, B", Category(["A", "B"])),
        ("a=1,2:category", Category(["1", "2"])),
        ("a=1,2,5:ordinal", Ordinal([1, 2, 5])),
    ],
)
def test_variables_are_written_in_one_word(text: str, variable: Variable) -> None:
    assert parse_variable(text) == ("a", variable)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "no bounds"),
        ("a=", "cannot be read"),
        ("a=1", "cannot be read"),
        ("a=1:2:3:4", "cannot be read"),
        ("a=1:b", "numbers as bounds"),
        ("a=1:2.5:int", "whole numbers"),
        ("a=2:1", "below"),
        ("a=1,2,5", "list of numbers"),
        ("a=A,B:ordinal", "takes numbers"),
        ("a=A,A", "two different"),
        ("a=A,B:int", "cannot be read"),
    ],
)
def test_other_words_are_refused(text: str, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        parse_variable(text)


LIMIT = ["--constraint", "price + 2*stock <= 40"]


def test_suggestions_satisfy_constraints_with_a_forecast_and_a_known_context(
    data: Path,
) -> None:
    forecast = data.with_name("forecast.csv")
    forecast.write_text("weather,weight\nrain,3\nsun,1\n")
    words = [*COLUMNS, *LIMIT, "-q", "3"]
    code, shown = call("suggest", data, *words, "--forecast", str(forecast))
    assert code == 0, shown
    new = [line.split(",") for line in data.read_text()[len(CSV) :].splitlines()]
    assert len(new) == 3
    assert all(float(row[1]) + 2 * int(row[2]) <= 40.001 for row in new)
    forecast.write_text("weather,weight\nrain,3\nhail,1\n")
    code, shown = call("suggest", data, *words, "--forecast", str(forecast))
    assert code == 2 and "line 3, column `weather`" in shown
    assert "forecast.csv" in shown.replace(" ", "")  # a long path is wrapped anywhere


MIXED = """sand,lime,water,load,strength
0.50,0.30,0.20,1,3.1
0.333,0.333,0.333,2,2.9
0.20,0.25,0.55,3,1.0
"""
PARTS = ["--decisions", "sand=0:1", "lime=0:1", "water=0.1:0.8", "--contexts"]
PARTS += ["load=1:3", "--outcome", "strength", "--algorithm", "dro"]


@pytest.mark.parametrize("number", [["-q", "9"], []])
def test_parts_of_a_mixture_add_up_as_they_are_written(
    tmp_path: Path, number: list[str]
) -> None:
    """Of the initial design and of a model, and with two opposite inequalities."""
    path = tmp_path / "mix.csv"
    path.write_text(MIXED)
    total = "sand + lime + water"
    both = ["--constraint", f"{total} <= 1", "--constraint", f"{total} >= 1"]
    for limits in (["--constraint", f"{total} = 1"], both):
        code, shown = call("suggest", path, *PARTS, *limits, *number)
        assert code == 0, shown
    new = [line.split(",")[:3] for line in path.read_text().splitlines()[4:]]
    assert len({tuple(row) for row in new}) == len(new)
    assert all(sum(Decimal(word) for word in row) == 1 for row in new)
    assert all(len(word) == 5 for row in new for word in row)  # as their columns are
    code, shown = call("suggest", path, *PARTS, "--constraint", f"{total} = 7")
    assert code == 2 and "the sum lies between 0.1 and 2.8" in shown


def test_a_known_context_fixes_the_recommendation(data: Path) -> None:
    code, shown = call("recommend", data, *COLUMNS, *LIMIT, "--known", "weather=rain")
    assert code == 0, shown
    assert "worst case is the reference" in shown  # there is nothing left to fear
    for word in ("weather=hail", "wether=rain", "weather"):
        code, shown = call("recommend", data, *COLUMNS, "--known", word)
        assert code == 2 and "weather" in shown
    assert data.read_text() == CSV


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("a + 2*b <= 9", LinearConstraint({"a": 1.0, "b": 2.0}, upper=9.0)),
        ("-a+.5 b [EUR]>=-1e1", LinearConstraint({"a": -1, "b [EUR]": 0.5}, lower=-10)),
        ("3b<=4.5", LinearConstraint({"b": 3.0}, upper=4.5)),
        ("a + 2*b = 9", LinearConstraint({"a": 1.0, "b": 2.0}, upper=9, lower=9)),
        ("a+b==1", LinearConstraint({"a": 1.0, "b": 1.0}, upper=1, lower=1)),
    ],
)
def test_constraints_are_written_as_sums(
    text: str, constraint: LinearConstraint
) -> None:
    assert parse_constraint(text, ["a", "b", "b [EUR]"]) == constraint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a <= b",
        "a = b",
        "a = 1 = 1",
        "a = 1 <= 2",
        "a b <= 1",
        "c <= 1",
        "a + a <= 1",
        "a <= 1 <= 2",
        "<= 1",
    ],
)
def test_other_constraints_are_refused(text: str) -> None:
    with pytest.raises(InputDataError, match=r"cannot be read.*\['a', 'b'\]"):
        parse_constraint(text, ["a", "b"])


def test_the_default_recipe_takes_a_categorical_context(data: Path) -> None:
    words = COLUMNS[: COLUMNS.index("--algorithm")]
    for command in ("suggest", "recommend", "plot"):
        code, shown = call(command, data, *words)
        assert code == 0, shown


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("suggest", ["--known", "weather=hail"], "`--known weather=hail`: `weather`"),
        ("suggest", ["--seed", "-1"], "--seed"),
        ("plot", ["--out", "a.xyz"], "`--out a.xyz` does not end in a format"),
        ("recommend", ["--forecast", "{}"], "column `weight`: weights must not be"),
    ],
)
def test_a_wrong_word_is_told_as_it_was_typed(
    data: Path, command: str, words: list[str], message: str
) -> None:
    forecast = data.with_name("forecast.csv")
    forecast.write_text("weather,weight\nrain,-1\n")
    words = [word.format(forecast) for word in words]
    code, shown = call(command, data, *COLUMNS, *words)
    assert code == 2 and message in shown and "`contexts`" not in shown


@pytest.mark.parametrize("command", ["recommend", "plot"])
def test_nothing_is_recommended_without_an_outcome(data: Path, command: str) -> None:
    data.write_text(CSV.splitlines()[0])
    code, shown = call(command, data, *COLUMNS)
    assert code == 2 and "has no outcome yet" in shown and "fill in `profit`" in shown


def test_a_forecast_without_a_row_is_refused(data: Path) -> None:
    forecast = data.with_name("forecast.csv")
    forecast.write_text("weather,weight\n")
    code, shown = call("suggest", data, *COLUMNS, "--forecast", str(forecast))
    assert code == 2 and "List the contexts that may come" in shown


def test_a_warning_is_a_note_without_code(data: Path) -> None:
    data.write_text("price,stock,weather,profit\n20,3,sun,5\n30,4,rain,5\n40,5,sun,5\n")
    code, shown = call("recommend", data, *COLUMNS)
    assert code == 0 and "Note: All 3 outcomes are equal" in shown
    assert "Warning" not in shown and ".py" not in shown


def test_two_dollars_in_a_name_are_no_formula(data: Path) -> None:
    data.write_text(CSV.replace("price", "p$_$").replace("profit", "y $\\foo$"))
    words = [w.replace("price", "p$_$").replace("profit", "y $\\foo$") for w in COLUMNS]
    code, shown = call("plot", data, *words)
    assert code == 0, shown


@pytest.mark.slow
def test_check_says_how_far_the_model_can_be_believed(
    data: Path, tmp_path: Path
) -> None:
    code, shown = call("check", data, *COLUMNS)
    assert code == 0, shown
    assert "knows nearly nothing" in shown and "worst rows" in shown
    assert data.read_text() == CSV
    recommended = call("recommend", data, *COLUMNS, "--level", "0.5")
    assert recommended[0] == 0 and "(50%: " in recommended[1]
    code, shown = call("recommend", data, *COLUMNS, "--level", "50")
    assert code == 2 and "for 50% give 0.5" in shown


def test_a_radius_by_column_in_the_units_of_the_file(data: Path) -> None:
    words = ["wdrbo_exact" if w == "dro" else w for w in COLUMNS]
    code, shown = call("recommend", data, *words, "--radius", "weather=0.1")
    assert code == 0, shown
    assert "within another weather in 10% of cases (Wasserstein)" in shown
    code, shown = call("suggest", data, *words, "--radius", "sd", "--dry-run")
    assert code == 0, shown
    code, shown = call("suggest", data, *words, "--radius", "0.2", "--dry-run")
    assert code == 0, shown


@pytest.mark.parametrize(
    ("radius", "words"),
    [
        (["wheather=0.1"], "Did you mean `weather`?"),
        (["weather=lots"], "Write NAME=SIZE"),
        (["weather=.1", "weather=.2"], "once for each context"),
        (["weather=.1", "sd"], "Write NAME=SIZE"),
        (["weather=10"], "0.1 for a tenth"),
        (["far"], "must be a number, one of ['sd', 'spread']"),
    ],
)
def test_radii_that_cannot_be_read(radius: list[str], words: str, data: Path) -> None:
    names = ["wdrbo_exact" if w == "dro" else w for w in COLUMNS]
    code, shown = call("recommend", data, *names, "--radius", *radius)
    assert code == 2 and words in shown, shown


def test_a_radius_by_column_is_for_distances(data: Path) -> None:
    code, shown = call("recommend", data, *COLUMNS, "--radius", "weather=0.1")
    assert code == 2 and "Recipes that take a radius by column" in shown
