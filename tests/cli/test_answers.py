"""What the commands answer: limits, failures, predictions, profiles, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from typer.testing import CliRunner

from botorch_drbo.cli.columns import parse_limits
from botorch_drbo.cli.commands import app, in_shell
from botorch_drbo.cli.options import Options
from botorch_drbo.cli.problem import Problem

ROWS = """price,temp,delay,profit,status
10.25,18,9,1,
20.50,22,4,2.5,ok
30.75,25,6,2,
40.25,22,,1.5,
50.5,20,9,,failed
"""
PROBLEM = """outcome = "profit"
surrogate = "botorch"
[decisions]
price = [10, 90]
[contexts]
temp = [0, 40]
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(ROWS)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    return path


def call(*words: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def document(*words: str | Path) -> dict[str, Any]:
    code, shown, error = call(*words, "--json")
    assert code == 0, error
    assert shown.count("\n") == 1  # nothing but the document, in one line
    return json.loads(shown)


def problem(data: Path, **words: Any) -> Problem:
    return Problem.parse(Options(data=data, **words))


def test_limits_and_failures_of_the_file_are_told(data: Path) -> None:
    opt = problem(data, limit=["delay <= 7", "delay >= 3"]).optimizer()
    # Measured minus lower, upper minus measured, by hand; one cell is empty.
    told = [(6.0, -2.0), (1.0, 3.0), (3.0, 1.0), None, (6.0, -2.0)]
    assert [trial.constraints for trial in opt.trials] == told
    assert [trial.status for trial in opt.trials] == ["complete"] * 4 + ["failed"]
    assert len(opt.pending) == 0


def test_the_status_may_be_another_column(data: Path) -> None:
    data.write_text(ROWS.replace("status", "state"))
    assert len(problem(data).optimizer().pending) == 1
    assert len(problem(data, status="state").optimizer().pending) == 0


def test_a_wrong_status_is_named_by_its_line(data: Path) -> None:
    data.write_text(ROWS.replace("failed", "faild"))
    code, _, error = call("suggest", data)
    assert code == 2 and "line 6, column `status`: is 'faild'" in error
    assert "Did you mean `failed`" in error


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["delay < 7"], "cannot be read"),
        (["delay <= x"], "cannot be read"),
        (["dely <= 7"], "Did you mean `delay`"),
        (["price <= 7"], "--constraint 'price <= 7'"),
        (["delay <= 7", "delay <= 8"], "two limits with <="),
        (["delay <= 7", "delay >= 8"], "leave nothing between 8 and 7"),
    ],
)
def test_other_limits_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        parse_limits(texts, ["delay", "note [h]"], ["price"])


def test_names_of_limits_may_have_spaces() -> None:
    assert parse_limits(["note [h]>=-1e1"], ["note [h]"], []) == {
        "note [h]": (-10.0, None)
    }


def test_limits_decide_the_recommendation(data: Path) -> None:
    limited = ["--limit", "delay <= 7", "--feasibility", "0.5"]
    found = document("recommend", data, *limited)
    assert found["feasibility"] is not None
    assert document("recommend", data)["feasibility"] is None


def test_half_life_is_an_option_of_the_recipe(data: Path) -> None:
    opt = problem(data, half_life=2.0).optimizer()
    assert opt.algorithm.options["half_life"] == 2.0
    code, _, error = call("suggest", data, "--half-life", "-1")
    assert code == 2 and "Error: `--half-life` must be" in error


def test_predictions_are_those_of_the_model(data: Path) -> None:
    rows = data.with_name("rows.csv")
    rows.write_text("note,temp,price\na,18,12.5\nb,30,70\n")
    found = document("predict", data, "--rows", rows)["rows"]
    opt = problem(data).optimizer()
    x = torch.tensor([[12.5], [70.0]], dtype=torch.double)
    c = torch.tensor([[18.0], [30.0]], dtype=torch.double)
    mean, variance = opt.tensors.predict(x, c)
    assert [row["mean"] for row in found] == pytest.approx(mean.tolist())
    assert [row["sd"] for row in found] == pytest.approx(variance.sqrt().tolist())
    assert [row["price"] for row in found] == [12.5, 70]
    one = document("predict", data, "--at", "price=12.5", "temp=18")["rows"]
    assert one == [found[0]]
    code, shown, _ = call("predict", data, "--at", "price=12.5", "temp=18")
    assert code == 0 and "mean" in shown and "12.5" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--rows FILE"),
        (["--at", "price=12"], "has no value for `temp`"),
        (["--at", "price=12", "tmp=3"], "Did you mean `temp`"),
        (["--at", "price=120", "temp=3"], "`--at price=120`: `price` must lie"),
        (["--at", "price=cheap", "temp=3"], "`--at price=cheap`: `price` must be a"),
        (["--rows", "{}"], "rows.csv, line 3, column `temp`"),
    ],
)
def test_what_cannot_be_predicted_is_said(
    data: Path, words: list[str], message: str
) -> None:
    rows = data.with_name("rows.csv")
    rows.write_text("temp,price\n18,12.5\n300,70\n")
    code, shown, error = call("predict", data, *[w.format(rows) for w in words])
    assert code == 2 and message in error and not shown


def test_the_profile_is_in_units_and_of_the_model(data: Path) -> None:
    words = ["--radius", "temp=3"]
    found = document("profile", data, *words, "--target", "-100")
    assert [row["moves"] for row in found["rows"]][:3] == [
        "nothing",
        "1.5 of temp",
        "3 of temp",
    ]
    values = [row["worst_case"] for row in found["rows"]]
    assert values == sorted(values, reverse=True) and found["falls_below"] is None
    best = document("recommend", data, *words)
    assert found["expected"] == pytest.approx(best["expected"])
    assert values[2] == pytest.approx(best["worst_case"], abs=1e-3)
    assert found["decision"] == best["decision"]
    code, shown, _ = call("profile", data, "--target", "9")
    assert code == 0 and "does not reach 9, even if nothing moves" in shown
    assert "1.5 standard deviations" in shown and "nothing" in shown
    middle = 0.5 * (values[0] + values[-1])
    shown = call("profile", data, *words, "--target", str(middle))[1]
    assert f"By the posterior mean it misses {middle:g} from " in shown
    assert "90% interval" in shown and "The intervals are by the model" in shown
    for row in found["rows"]:  # what is promised has an interval
        low, high = row["interval"]
        assert low < row["worst_case"] < high
    code, _, error = call("profile", data, "--algorithm", "erbo")
    assert code == 2 and "`erbo` has no radius above zero" in error
    code, _, error = call("profile", data, "--target", "nan")
    assert code == 2 and "`--target` must be a finite number" in error


def test_decisions_have_the_digits_of_their_column(data: Path) -> None:
    found = document("recommend", data)
    exact = found["decision_before_rounding"]["price"]
    price = found["decision"]["price"]
    assert price == pytest.approx(exact, abs=0.01) and price == round(price, 2)
    shown = call("recommend", data)[1].splitlines()[0]
    assert shown.split() == ["decision", "price", "=", f"{price:.2f}"]


def test_documents_of_the_other_commands(data: Path) -> None:
    found = document("suggest", data, "--dry-run", "-q", "2")
    assert len(found["suggested"]) == 2 and found["appended_to"] is None
    assert data.read_text() == ROWS
    found = document("suggest", data)
    assert found["appended_to"] == str(data)
    price = float(data.read_text().splitlines()[-1].split(",")[0])
    assert found["suggested"] == [{"price": price}]
    data.write_text(ROWS)
    found = document("check", data)
    assert [row["line"] for row in found["rows"]] == [2, 3, 4, 5]
    assert [row["outcome"] for row in found["rows"]] == pytest.approx([1, 2.5, 2, 1.5])
    assert "line " in call("check", data)[1]
    path = data.with_suffix(".toml")
    assert document("init", data, "--contexts", "temp", "--out", path) == {
        "problem": str(path)
    }


def test_a_picture_is_not_overwritten_without_being_asked(data: Path) -> None:
    path = data.with_suffix(".png")
    path.write_text("mine")
    code, _, error = call("plot", data)
    assert code == 2 and "--overwrite" in error and path.read_text() == "mine"
    assert document("plot", data, "--overwrite") == {"picture": str(path)}
    assert path.read_bytes().startswith(b"\x89PNG")


def test_an_error_leaves_stdout_empty(data: Path) -> None:
    data.write_text(ROWS.replace("20.50", "cheap"))
    code, shown, error = call("recommend", data, "--json")
    assert code == 2 and shown == "" and "line 3, column `price`" in error


def test_other_separators_are_told_in_the_words_of_the_shell(data: Path) -> None:
    data.write_text("price;temp;profit\n10,5;18;1\n")
    code, _, error = call("recommend", data)
    assert code == 2 and "sed 's/,/./g; s/;/,/g'" in error and "pandas" not in error


def test_arguments_are_named_as_they_are_typed() -> None:
    assert in_shell("`radius` and `half_life`") == "`--radius` and `--half-life`"
    assert in_shell("line 3, column `radius`") == "line 3, column `radius`"
    assert in_shell("wider bounds, or `clip=0.08`") == "wider bounds, or `--clip 0.08`"
    later = "`recommend --algorithm erbo --objective 'worst fifth'`"
    assert in_shell("`recommend(objective='worst fifth')`") == later
    assert in_shell("`maximize=False`, `temp=6`") == "`--minimize`, `temp=6`"


def test_an_outcome_that_dwarfs_all_others_is_named_by_its_line(data: Path) -> None:
    good = "".join(f"{20 + i},{10 + i},,{300 + i},ok\n" for i in range(10))
    data.write_text(ROWS.splitlines()[0] + "\n" + good + "33,15,,1000000,ok\n")
    code, shown, error = call("recommend", data)
    assert code == 0, error
    assert "line 12 dwarfs all others" in " ".join(shown.split())
    assert "trial" not in shown.replace("another trial", "")
    code, shown, error = call("check", data)
    assert "line 12 (1000000) dwarfs all others (300 to 309)" in " ".join(shown.split())
    assert "trial" not in shown
