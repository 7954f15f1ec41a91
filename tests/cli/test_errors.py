"""What a slip of the fingers is answered: what was wrong, and what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app, in_shell

TABLE = "day,loaves,price,temp,profit\n1,40,2.5,20,30\n2,90,3.5,14,50\n3,60,4,25,20\n"
COLUMNS = ["--decisions", "loaves", "price", "--contexts", "temp"]
OUTCOME = ["--outcome", "profit"]
ALL = [*COLUMNS, *OUTCOME]

SLIPS = {
    "commas": (
        ["recommend", "--decisions", "loaves,price", "--contexts", "temp", *OUTCOME],
        "`loaves,price` is several columns in one word. Separate them with spaces: "
        "loaves price.",
    ),
    "two outcomes": (
        ["recommend", *COLUMNS, "--outcome", "profit", "day"],
        "`day` has no place here: --outcome takes one word",
    ),
    "a negative radius": (
        ["recommend", *ALL, "--radius", "-1"],
        "`--radius` must not be negative, got -1.0",
    ),
    "a negative radius without a zero": (
        ["recommend", *ALL, "--radius", "-.5"],
        "`--radius` must not be negative, got -0.5",
    ),
    "a command misspelt": (
        ["sugest"],
        "There is no command `sugest`. Did you mean `suggest`? The commands are "
        "example, init, suggest,",
    ),
    "no command": (["nonsense"], "There is no command `nonsense`. The commands are"),
    "no whole number": (
        ["suggest", *ALL, "-q", "many"],
        "Invalid value for '-q': takes a whole number, got `many`.",
    ),
    "no number": (
        ["recommend", *ALL, "--level", "high"],
        "Invalid value for '--level': takes a number, got `high`.",
    ),
    "two roles": (
        ["recommend", "--decisions", "price", "--contexts", "price", *OUTCOME],
        "`price` is a decision and a context. A column has one role",
    ),
    "a decision as outcome": (
        ["recommend", *COLUMNS, "--outcome", "price"],
        "`price` is a decision and the outcome.",
    ),
    "bounds turned round": (
        ["recommend", "--decisions", "price=90:10", "--contexts", "temp", *OUTCOME],
        "got 90.0 and 10.0. Write the lower one first: 10.0 and 90.0.",
    ),
    "a recipe without a radius": (
        ["recommend", *ALL, "--algorithm", "erbo", "--radius", "temp=3"],
        "`erbo` has no option radius. Recipes that have radius: wdrbo, wdrbo_exact",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_answered(slip: str, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text(TABLE)
    (command, *words), answer = SLIPS[slip]
    done = CliRunner().invoke(app, [command, str(data), *words], env={"COLUMNS": "999"})
    assert done.exit_code == 2
    said = " ".join(re.sub(r"[│╭╰─╮╯]", "", done.stderr).split())
    assert answer in said
    assert data.read_text() == TABLE


def test_a_negative_number_stays_an_option_where_no_list_is_open() -> None:
    done = CliRunner().invoke(app, ["recommend", "data.csv", "--clip", "0.1", "-3"])
    assert done.exit_code == 2 and "No such option" in done.stderr


def test_remedies_can_be_typed() -> None:
    said = in_shell("Say against what: `against=MeanShift(1.0)`, or `against=3`.")
    assert said == "Say against what: `--against mean=1`, or `--against 3`."
    assert in_shell("`criterion='regret'` is") == "`--criterion regret` is"
