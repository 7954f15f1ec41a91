"""An option means in every command what its key means in problem.toml."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from botorch_drbo import NamedOptimizer
from botorch_drbo.cli import actions, commands, problem
from botorch_drbo.cli.commands import app

HEADER = "price,stock,temp,delay,profit,note"
# Cold days want another price than hot ones.
ROWS = [
    f"{10 + 9 * k},{(7 * k) % 10},{16 + (5 * k) % 8},{(3 * k) % 7},"
    f"{3 + k * ((5 * k) % 8 - 3.5) / 10:.3f},{'failed' if k == 8 else ''}"
    for k in range(8)
] + ["82,3,,,,failed"]
PROBLEM = """outcome = "profit"
{keys}
[decisions]
price = [10.0, 90.0]
stock = [0.0, 9.0]
[contexts]
temp = [0.0, 40.0]
"""
OPTIONS = {
    "minimize": ("true", ["--minimize"]),
    "limits": ('["delay <= 4"]', ["--limit", "delay <= 4"]),
    "constraints": (
        '["price + 2*stock <= 60"]',
        ["--constraint", "price + 2*stock <= 60"],
    ),
    "status": ('"note"', ["--status", "note"]),
    "algorithm": ('"wdrbo"', ["--algorithm", "wdrbo"]),
    "surrogate": ('"matern"', ["--surrogate", "matern"]),
    "feasibility": ("0.6", ["--feasibility", "0.6"]),
    "half_life": ("2", ["--half-life", "2"]),
    "scope": ('"list.csv"', ["--scope", "list.csv"]),
    "radius": ("{temp = 12}", ["--radius", "temp=12"]),
    "against": ('"temp=2"', ["--against", "temp=2"]),
    "give_up": ('"20%"', ["--give-up", "20%"]),
    "objective": ('"worst third"', ["--objective", "worst third"]),
    "criterion": ('"regret"', ["--criterion", "regret"]),
    "clip": ("0.25", ["--clip", "0.25"]),
}
OTHERS = {
    "feasibility": ['limits = ["delay <= 4"]'],
    "criterion": ['against = "temp=2"'],
    "clip": ['against = "temp=2"'],
}
"""Keys without which one has no meaning."""
COMMANDS = {
    "suggest": ["--dry-run"],
    "recommend": [],
    "check": [],
    "compare": [],
    "predict": ["--at", "price=30", "stock=4", "temp=20"],
    "profile": [],
    "plot": [],
    "report": [],
    "backtest": ["--first", "4"],
}


class Seen(Exception):
    """A command has asked its question, which need not be answered here."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """From a command, keys and words to the run that is asked, and what it is asked."""

    def recorder(name: str) -> Callable[..., None]:
        def called(opt: NamedOptimizer, *args: object, **options: object) -> None:
            options.pop("rounded", None)  # a function of the file
            raise Seen(f"{name} {args} {options} of {opt.state_dict()}")

        return called

    for name in ("ask", "recommend", "check", "compare", "predict"):
        monkeypatch.setattr(NamedOptimizer, name, recorder(name))
    monkeypatch.setattr(actions, "write_report", recorder("write_report"))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.csv").write_text("temp,weight\n20,1\n30,3\n")

    def ask(command: str, keys: list[str], words: list[str]) -> str:
        data = tmp_path / "data.csv"
        data.write_text("\n".join([HEADER, *ROWS]) + "\n")
        (tmp_path / "problem.toml").write_text(PROBLEM.format(keys="\n".join(keys)))
        given = [command, str(data), *COMMANDS[command], *words]
        done = CliRunner().invoke(app, given)
        assert isinstance(done.exception, Seen), done.output
        return str(done.exception)

    return ask


def test_every_key_has_an_option_and_every_command_takes_it() -> None:
    # Features need a column that is a category: they have their own test below.
    assert {*OPTIONS, "outcome", "features"} == set(problem._KEYS)
    named = {command.callback.__name__ for command in app.registered_commands}  # pyright: ignore
    assert named == {*COMMANDS, "init", "example"}
    for command in COMMANDS:
        taken = {*signature(getattr(commands, command)).parameters}
        names = {name.removesuffix("s") for name in OPTIONS} | {"statu", "feature"}
        assert names <= {name.removesuffix("s") for name in taken}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_is_its_key(
    asked: Callable[..., str], key: str, command: str
) -> None:
    value, words = OPTIONS[key]
    others = OTHERS.get(key, [])
    by_word = asked(command, others, words)
    assert by_word == asked(command, [*others, f"{key} = {value}"], [])
    # What is ignored on both roads would be equal too.
    assert by_word != asked(command, others, [])


@pytest.mark.parametrize("command", COMMANDS)
def test_features_by_word_are_those_of_the_key(
    asked: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    (tmp_path / "stocks.csv").write_text(
        "stock,size\n" + "".join(f"{k},{k % 4}\n" for k in range(10))
    )
    levels = json.dumps([str(k) for k in range(10)])
    kind = f"{{{{Category = {levels}}}}}"
    monkeypatch.setitem(globals(), "PROBLEM", PROBLEM.replace("[0.0, 9.0]", kind))
    by_word = asked(command, [], ["--features", "stock=stocks.csv"])
    assert by_word == asked(command, ['features = {stock = "stocks.csv"}'], [])
    assert by_word != asked(command, [], [])


@pytest.mark.parametrize("command", COMMANDS)
def test_columns_by_word_are_those_of_the_file(
    asked: Callable[..., str], command: str
) -> None:
    words = ["--decisions", "price=10:90", "stock=0:9", "--contexts", "temp=0:40"]
    by_word = asked(command, [], [*words, "--outcome", "profit"])
    assert by_word == asked(command, [], [])


@pytest.mark.parametrize("command", COMMANDS)
def test_no_insurance_is_erbo(asked: Callable[..., str], command: str) -> None:
    by_word = asked(command, [], ["--no-insurance"])
    assert by_word == asked(command, ['algorithm = "erbo"'], [])
    assert by_word != asked(command, [], [])


@pytest.mark.parametrize("key", ["radius", "against", "give_up", "algorithm"])
def test_no_insurance_and_another_is_refused(
    asked: Callable[..., str], tmp_path: Path, key: str
) -> None:
    asked("check", [f"{key} = {OPTIONS[key][0]}"], [])
    words = ["recommend", str(tmp_path / "data.csv"), "--no-insurance"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "is the expectation alone: leave out" in " ".join(done.stderr.split())
    assert f"--{key.replace('_', '-')}" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_takes_the_place_of_its_key(
    asked: Callable[..., str], command: str
) -> None:
    words = ["--radius", "temp=12"]
    assert asked(command, ["radius = {temp = 1}"], words) == asked(command, [], words)


def test_compare_decides_as_recommend_does(tmp_path: Path) -> None:
    """A case of 30 rows where the radius makes another decision of it."""
    draw = random.Random(5)
    rows = ["x,t,y"]
    for _ in range(30):
        x, t = round(draw.uniform(0, 1), 3), round(draw.uniform(0.5, 0.9), 3)
        rows.append(f"{x},{t},{round(3 * x * (t - 0.5) - 0.3 * x, 4)}")
    data = tmp_path / "d.csv"
    data.write_text("\n".join(rows) + "\n")
    columns = ["--decisions", "x=0:1", "--contexts", "t=0:1", "--outcome", "y"]
    words = [str(data), *columns, "--radius", "t=0.4", "--json"]
    best, found = (
        json.loads(CliRunner().invoke(app, [command, *words]).stdout)
        for command in ("recommend", "compare")
    )
    decided = {row["method"]: row["x"] for row in found["rows"]}
    assert best["decision"]["x"] == pytest.approx(0.0, abs=0.01)
    assert decided["wdrbo_exact"] == pytest.approx(best["decision"]["x"], abs=0.01)
    assert decided["erbo"] == pytest.approx(1.0, abs=0.01)
    assert "nothing to choose" not in found["advice"]
    assert found["radii"] == {
        "erbo": "",
        "wdrbo_exact": "0.4 of t (Wasserstein)",
    }


@pytest.mark.parametrize(
    ("context", "radius", "words"),
    [
        ("temp", "temp=2", "A radius of 2 of temp is cut by the bounds of `temp`, 16"),
        ("temp", "temp=2", "it would move 25% of cases beyond them"),
        ("temp=16:23", "temp=2", "it would move 25% of cases beyond them"),
        ("temp=1:50", "temp=2", ""),
        ("temp=1:50:log", "temp=1.2", ""),
        ("temp=10:25:log", "temp=2", "a factor 2 of temp is cut by the bounds of"),
        ("temp", "temp=0", ""),
        ("temp", "sd", ""),
    ],
)
def test_a_radius_that_is_cut_by_bounds_says_so(
    asked: Callable[..., str],
    tmp_path: Path,
    context: str,
    radius: str,
    words: str,
) -> None:
    asked("check", [], [])
    given = [str(tmp_path / "data.csv"), "--decisions", "price=10:90", "--contexts"]
    given += [context, "--outcome", "profit", "--radius", radius]
    done = CliRunner().invoke(app, ["recommend", *given])
    shown = " ".join(done.stderr.split())
    assert words in shown if words else "is cut" not in shown
    assert isinstance(done.exception, Seen), done.output


@pytest.mark.parametrize("command", ["plot", "report"])
@pytest.mark.parametrize("place", ["missing/a.png", "folder", "folder.html"])
def test_a_path_is_looked_at_first(
    asked: Callable[..., str], tmp_path: Path, command: str, place: str
) -> None:
    asked("check", [], [])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.html").mkdir()
    words = [str(tmp_path / "data.csv"), "--out", str(tmp_path / place), "--overwrite"]
    done = CliRunner().invoke(app, [command, *words])
    assert done.exit_code == 2 and not isinstance(done.exception, Seen)
    assert "Give another path" in " ".join(done.stderr.split())
