"""Sessions of the command line, each on a small file of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from botorch_drbo.cli import main
from tests.transcripts.tables import read
from tests.transcripts.transcript import Answers, run, slow_run
from tests.transcripts.worlds import spread

FILE = "data.csv"
ROLES = ["--decisions", "price=10:90", "stock=0:40:int"]
ROLES += ["--contexts", "demand=0:100", "--outcome", "profit"]
QUICK = ["--algorithm", "erbo", "--surrogate", "botorch"]


def line(t: int) -> str:
    price, stock, demand, runoff = (100 * spread(1, 4, t)[0]).tolist()
    price, stock = 10 + 0.8 * price, int(0.4 * stock)
    profit = 5 - ((price - demand) / 40) ** 2 + 0.01 * stock
    return (
        f"{price:.1f},{stock},{demand:.0f},{profit:.2f},{runoff / 12:.1f},{'AB'[t % 2]}"
    )


CSV = "\n".join(["price,stock,demand,profit,runoff,sku", *map(line, range(8)), ""])


@contextlib.contextmanager
def folder(text: str = CSV) -> Iterator[None]:
    """A folder of its own in which the file lies, and a plain terminal."""
    plain = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.chdir(place),
        mock.patch.dict(os.environ, plain),
    ):
        Path(FILE).write_text(text)
        yield


def typed(*words: str) -> dict[str, Any]:
    """What a command prints; a document of JSON as such."""
    out, error, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["botorch-drbo", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    shown, said = (text.getvalue().rstrip() for text in (out, error))
    lines = [text.rstrip() for text in shown.splitlines()]
    document = json.loads(shown) if shown and "--json" in words else lines
    return {"status": status, "printed": document, "said": said.splitlines()}


def command(name: str, *words: str) -> tuple[str, dict[str, Any]]:
    called = [name, FILE, *words]
    return " ".join(called), typed(*called)


@run
def a_session_with_a_problem_file() -> Answers:
    with folder():
        yield command("init", "--outcome", "profit", "--contexts", "demand=0:100")
        yield "problem.toml", Path("problem.toml").read_text()
        yield command("init", "--json")
        yield command("init", *ROLES, "--limit", "runoff <= 9", "--overwrite")
        yield "problem.toml", Path("problem.toml").read_text()
        yield command("suggest", *QUICK, "-q", "2")
        yield "file", Path(FILE).read_text()[len(CSV) :]
        yield command("suggest", *QUICK, "--dry-run", "--json")
        yield command("recommend", *QUICK, "--feasibility", "0.7")


@run
def suggestions_of_what_is_known() -> Answers:
    with folder():
        Path("news.csv").write_text("demand,weight\n20,1\n60,3\n")
        words = [*ROLES, "--algorithm", "wdrbo", "--surrogate", "botorch"]
        words += ["--dry-run", "--json"]
        yield command("suggest", *words, "--forecast", "news.csv", "--radius", "0.05")
        yield command("suggest", *words, "--known", "demand=30")
        more = ["--constraint", "price + stock <= 80", "--half-life", "3", "--minimize"]
        yield command("suggest", *words, *more, "--radius", "demand=6", "--seed", "5")


@run
def recommendations_checks_and_predictions() -> Answers:
    with folder():
        for more in ([], ["--json"]):
            yield command("recommend", *ROLES, *QUICK, "--level", "0.8", *more)
            yield command("check", *ROLES, *QUICK, *more)
            at = ["--at", "price=30", "stock=5", "demand=40"]
            yield command("predict", *ROLES, *QUICK, *at, *more)
        yield command("predict", *ROLES, *QUICK, "--rows", FILE, "--json")


@run
def comparisons_and_profiles() -> Answers:
    with folder():
        words = [*ROLES, "--surrogate", "botorch"]
        compared = [
            "--methods",
            "erbo",
            "dro",
            "--shift",
            "demand=-10",
            "--clip",
            "0.5",
        ]
        yield command("compare", *words, *compared)
        yield command("compare", *words, *compared, "--radius", "demand=20", "--json")
        words += ["--algorithm", "wdrbo_exact", "--radius", "demand=10"]
        yield command("profile", *words, "--target", "4.5")
        yield command("profile", *words, "--json")


@slow_run
def a_picture_and_a_report() -> Answers:
    with folder():
        yield command("plot", *ROLES, *QUICK)
        yield "picture", Path("data.png").read_bytes()[:8]
        yield command("plot", *ROLES, *QUICK)
        limited = [*ROLES, *QUICK, "--limit", "runoff <= 9", "-q", "1"]
        yield command("report", *limited, "--out", "page.html")
        yield "page", read(Path("page.html"))


@run
def groups_on_the_command_line() -> Answers:
    with folder(CSV + "50,3,40,2.0,1.0,C\n"):
        words = [*ROLES, *QUICK, "--group", "sku"]
        yield command("suggest", *words, "--dry-run", "--json")
        yield command("suggest", *words, "-q", "2")
        yield "file", Path(FILE).read_text().splitlines()[10:]


@run
def refusals_on_the_command_line() -> Answers:
    with folder(CSV + "500,3,40,2.0,1.0,C\n"):
        yield command("suggest", *ROLES, *QUICK)
        yield command("suggest", *ROLES[:3], *QUICK)
        yield command("recommend", *ROLES, "--algorithm", "wdbro")
        yield command("recommend", *ROLES, "--surrogate", "matren")
        yield command("recommend", *ROLES, "--known", "demand")
        yield command("check", "--decisions", "price=90:10", "--outcome", "profit")
        yield command("compare", *ROLES, "--shift", "demand")
        yield command("predict", *ROLES, *QUICK)
        yield "no file", typed("recommend", "none.csv", *ROLES)
