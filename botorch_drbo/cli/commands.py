"""The commands as they are typed: init, suggest, recommend, check, compare ...

Only words and options stand here. What a command does is the function of the same name
in `actions`, which is imported when the command runs: torch and pandas take seconds to
import, and ``--help`` needs neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import botorch_drbo
from botorch_drbo.cli.command import command
from botorch_drbo.cli.options import (
    NAME,
    Contexts,
    Dask,
    Data,
    Decisions,
    Forecast,
    Group,
    Json,
    Known,
    Level,
    Limits,
    Minimize,
    Options,
    Outcome,
    Overwrite,
    Workers,
)

app = typer.Typer(
    help="Robust decisions from a CSV file of decisions, contexts and outcomes. "
    f"`init` writes {NAME}, which says which column is what; the other commands read "
    "it.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"botorch-drbo {botorch_drbo.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_say_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """The options of no command."""


@command(app)
def init(
    data: Data,
    decisions: Decisions = None,
    contexts: Contexts = None,
    outcome: Outcome = None,
    minimize: Minimize = None,
    limit: Limits = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The new file; {NAME} beside DATA."),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write problem.toml with the roles of the columns, guessed from the file.

    In a terminal it asks for what the file does not show. Guesses are marked in the
    new file: correct them there.
    """


@command(app)
def suggest(
    options: Options,
    forecast: Forecast = None,
    known: Known = None,
    q: Annotated[int, typer.Option("-q", help="How many decisions.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show them, and leave the file alone.")
    ] = False,
    group: Group = None,
    workers: Workers = None,
    dask: Dask = None,
) -> None:
    """Append the next decisions to the file, contexts and outcomes empty.

    Fill in what happened. Rows without an outcome are pending, and later suggestions
    differ from them. Write `failed` into the column `status` if there will be none.

    With --group each group of rows is a separate problem. Failed groups are listed.
    """


@command(app)
def recommend(
    options: Options,
    forecast: Forecast = None,
    known: Known = None,
    level: Level = None,
) -> None:
    """Show the decision to implement now, and what to expect of it."""


@command(app)
def check(options: Options, forecast: Forecast = None) -> None:
    """Show how far the model can be trusted: outcomes predicted from all others."""


@command(app)
def compare(
    options: Options,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="Recipes; the first is the yardstick."),
    ] = None,
    shift: Annotated[
        list[str] | None,
        typer.Option(
            "--shift",
            help="What you fear: NAME=+6, by how much a context moves, or NAME=-2,"
            "OTHER=+1 for several at once. Each is a shift of its own.",
        ),
    ] = None,
    forecast: Forecast = None,
    clip: Annotated[
        float,
        typer.Option("--clip", help="What share a shift may move out of the bounds."),
    ] = 0.0,
) -> None:
    """Show the expected outcomes of several methods, without and with shifts."""


@command(app)
def predict(
    options: Options,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", help="A CSV file with all decisions and contexts."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", help="One row instead: NAME=VALUE for each of them."),
    ] = None,
) -> None:
    """Predict the outcome of given rows, without noise.

    `mean` is the prediction, and `sd` the standard deviation of its error.
    """


@command(app)
def profile(
    options: Options,
    forecast: Forecast = None,
    known: Known = None,
    target: Annotated[
        float | None,
        typer.Option("--target", help="An outcome that the decision should reach."),
    ] = None,
) -> None:
    """Show the value of the recommended decision if the contexts shift.

    Up to four times the radius of the recipe, or --radius.
    """


@command(app)
def plot(
    options: Options,
    forecast: Forecast = None,
    known: Known = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The picture; by default beside DATA.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the outcomes so far, and the predictions for the recommended decision."""


@command(app)
def report(
    options: Options,
    forecast: Forecast = None,
    q: Annotated[int, typer.Option("-q", help="How many decisions to try next.")] = 3,
    level: Level = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The page; by default beside DATA."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one HTML page: what to do, how reliable it is, what to try next."""


def main() -> None:
    """The entry point ``botorch-drbo``."""
    app()
