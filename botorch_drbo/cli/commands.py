"""The commands as they are typed: init, suggest, recommend, check, compare ...

Only words and options stand here. What a command does is the function of the same name
in `actions`, which is imported when the command runs: torch and pandas take seconds to
import, and ``--help`` needs neither.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

import botorch_drbo
from botorch_drbo.cli.options import (
    EXAMPLES,
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
    Methods,
    Minimize,
    Options,
    Outcome,
    Overwrite,
    PlateOptions,
    Scope,
    Workers,
)
from botorch_drbo.cli.terminal import say

_ACTIONS = "botorch_drbo.cli.actions"
_LISTS = (
    "--decisions",
    "--contexts",
    "--known",
    "--radius",
    "--against",
    "--features",
    "--methods",
    "--shift",
    "--at",
    "--at-most",
)
_IN_SHELL = {
    "against": "--against",
    "against=MeanShift(1.0)": "--against mean=1",
    "against=WassersteinBall(radius='sd')": "--against ball",
    "algorithm": "--algorithm",
    "at_most": "--at-most",
    "candidates": "--candidates",
    "choose_context=True": "--choose-context",
    "clip": "--clip",
    "criterion": "--criterion",
    "criterion='regret'": "--criterion regret",
    "give_up": "--give-up",
    "group": "--group",
    "context_set": "--forecast",
    "contexts_per_decision": "--contexts-per-decision",
    "feasibility": "--feasibility",
    "half_life": "--half-life",
    "level": "--level",
    "maximize=False": "--minimize",
    "methods": "--methods",
    "objective": "--objective",
    "q": "-q",
    "radius": "--radius",
    "replicates": "--replicates",
    "scope": "--scope",
    "shifts": "--shift",
    "surrogate": "--surrogate",
    "target": "--target",
}
"""How an argument of Python is typed; `x` in messages, but not of a column `x`."""


class _ListCommand(TyperCommand):
    """A command whose lists are written ``--decisions price=1:2 stock=0:9``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the option before each entry of its list."""
        spread: list[str] = []
        option = None
        for word in args:
            is_number = re.match(r"-\.?\d", word) is not None
            if word.startswith("-") and not (is_number and option is not None):
                option = word if word in _LISTS else None
                if option is None:
                    spread.append(word)
            elif option is not None:
                spread += [option, word]
            else:
                spread.append(word)
        ctx.allow_extra_args = True  # refused here, in words that help
        try:
            super().parse_args(ctx, [*spread])
        except typer.BadParameter as error:
            if error.param is not None and "unable to parse" in error.message:
                kind = "a whole number" if "integer" in error.message else "a number"
                said = [b for a, b in pairwise(spread) if a in error.param.opts]
                error.message = f"takes {kind}, got `{' '.join(said)}`."
            raise
        if ctx.args:
            before = args[: args.index(ctx.args[0])]
            options = [word for word in before if word.startswith("-")]
            ctx.fail(
                f"`{' '.join(ctx.args)}` has no place here: "
                f"{options[-1] if options else self.name} takes one word, and a name "
                f"with spaces is put in quotes. Several words take {', '.join(_LISTS)}."
            )
        return ctx.args


class _Commands(TyperGroup):
    """All commands; a word that is none of them is answered with their names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Refuse what is no command."""
        if args and args[0] not in self.commands:
            near = get_close_matches(args[0], self.commands, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            ctx.fail(
                f"There is no command `{args[0]}`.{hint} The commands are "
                f"{', '.join(self.commands)}."
            )
        return super().resolve_command(ctx, args)


def command(app: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to an app, its parameters that are lists of options spread out.

    The function has the parameters and the help; the function of the same name in
    `actions` does the work. Errors are said without a traceback, with exit status 2.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return")
        shared = {
            name: hint
            for name, hint in hints.items()
            if hint in (Options, PlateOptions)
        }
        parameters = dict(inspect.signature(function).parameters)
        spread: list[inspect.Parameter] = []
        for name, parameter in parameters.items():
            if name in shared:
                spread += _parameters_of(shared[name])
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                spread.append(parameter.replace(annotation=hints[name], kind=kind))

        @wraps(function)
        def called(**given: Any) -> None:
            with _errors():
                for name, kind in shared.items():
                    chosen = {f.name: given.pop(f.name) for f in fields(kind)}
                    given[name] = kind(**chosen)
                getattr(import_module(_ACTIONS), function.__name__)(**given)

        called.__dict__["__signature__"] = inspect.Signature(spread)
        called.__annotations__ = {p.name: p.annotation for p in spread}
        return app.command(cls=_ListCommand)(called)

    return add


def _parameters_of(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    given = inspect.signature(kind).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in given]


@contextmanager
def _errors() -> Iterator[None]:
    """Say what was wrong and what is worth knowing, without a traceback."""
    from botorch.exceptions.errors import BotorchError  # seconds: not for ``--help``

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except BotorchError as error:
        say(f"Error: {in_shell(str(error))}", "red", error=True)
        raise typer.Exit(2) from error
    except OSError as error:
        reason = error.strerror or str(error)
        place = "" if error.filename is None else f"{error.filename}: "
        say(f"Error: {place}{reason}", "red", error=True)
        raise typer.Exit(2) from error


def _note(message: Warning | str, category: type[Warning], *location: object) -> None:
    """Show a warning without the line of code, which a user of a command does not
    need."""
    say(f"Note: {in_shell(str(message))}", "yellow", error=True)


def in_shell(message: str) -> str:
    """A message of the library with the arguments as they are typed in a shell."""
    message = re.sub(
        r"`recommend\(objective='([^']+)'\)`",
        r"`recommend --algorithm erbo --objective '\1'`",
        message,
    )
    words = "|".join(map(re.escape, sorted(_IN_SHELL, key=len, reverse=True)))
    return re.sub(
        rf"(?<!column )`({words})(?:=([^`]+))?`",
        lambda found: f"`{' '.join(filter(None, (_IN_SHELL[found[1]], found[2])))}`",
        message,
    )


app = typer.Typer(
    cls=_Commands,
    help="Robust decisions from a CSV file of decisions, contexts and outcomes. "
    f"`init` writes {NAME}, which says which column is what; the other commands read "
    "it. `example bakery` writes a file to try them on.",
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
def example(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(EXAMPLES)}.")],
    overwrite: Overwrite = False,
) -> None:
    """Write a table to try the commands on, and show the two commands to go on."""


@command(app)
def init(
    data: Data,
    decisions: Decisions = None,
    contexts: Contexts = None,
    outcome: Outcome = None,
    minimize: Minimize = None,
    limit: Limits = None,
    scope: Scope = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The new file; {NAME} beside DATA."),
    ] = None,
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Write a script of the same beside it, problem.py."
        ),
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write problem.toml with the roles of the columns, guessed from the file.

    In a terminal it asks for what the file does not show, also whether the contexts
    are chosen while you learn. Guesses are marked in the
    new file: correct them there.
    """


@command(app)
def suggest(
    options: Options,
    plate: PlateOptions,
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

    With --choose-context the contexts are chosen and written too.

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
    methods: Methods = None,
    shift: Annotated[
        list[str] | None,
        typer.Option(
            "--shift",
            help="What you fear: NAME=+6, by how much a context moves, or NAME=-2,"
            "OTHER=+1 for several at once. Each is a shift of its own.",
        ),
    ] = None,
    forecast: Forecast = None,
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
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Write it anew whenever DATA changes, until Ctrl-C."
        ),
    ] = False,
) -> None:
    """Write one HTML page: what to do, how reliable it is, what to try next."""


@command(app)
def backtest(
    options: Options,
    first: Annotated[
        int | None,
        typer.Option("--first", help="So many rows are known; by default half."),
    ] = None,
    methods: Methods = None,
) -> None:
    """Show what methods would have recommended from the first rows, and how it went.

    Judged by the model of all rows, in the contexts of the later rows, and by the
    outcomes of later rows that are near.
    """


def main() -> None:
    """The entry point ``botorch-drbo``."""
    app()
