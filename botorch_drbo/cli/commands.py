"""The commands: suggest, recommend, check, compare, plot, report."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botorch.exceptions.errors import BotorchError
from typer.core import TyperCommand

from botorch_drbo.cli.columns import HELP, parse_radius, parse_shift
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.digits import in_digits
from botorch_drbo.cli.picture import draw
from botorch_drbo.cli.problem import WEIGHT, Problem
from botorch_drbo.cli.terminal import say, show
from botorch_drbo.optimizer.comparison import METHODS
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.report import write_report
from botorch_drbo.surrogate import SURROGATES
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTS = ("--decisions", "--contexts", "--known", "--radius", "--methods", "--shift")


class _ListCommand(TyperCommand):
    """A command whose lists are written ``--decisions price=1:2 stock=0:9``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the option before each entry of its list."""
        spread: list[str] = []
        option = None
        for word in args:
            if word.startswith("-"):
                option = word if word in _LISTS else None
                if option is None:
                    spread.append(word)
            elif option is not None:
                spread += [option, word]
            else:
                spread.append(word)
        return super().parse_args(ctx, spread)


app = typer.Typer(
    help="Robust decisions from a CSV file of decisions, contexts and outcomes.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Data = Annotated[
    Path, typer.Argument(help="The CSV file, with the names of the columns first.")
]
Decisions = Annotated[
    list[str], typer.Option("--decisions", help=f"Columns that you choose. {HELP}")
]
Contexts = Annotated[
    list[str],
    typer.Option("--contexts", help="Columns that you meet, written the same way."),
]
Outcome = Annotated[str, typer.Option("--outcome", help="The column to be improved.")]
Minimize = Annotated[
    bool, typer.Option("--minimize", help="Low outcomes are good, as for costs.")
]
AlgorithmName = Annotated[str, typer.Option("--algorithm", help="The recipe's name.")]
SurrogateName = Annotated[
    str | None,
    typer.Option(
        "--surrogate",
        help=f"How outcomes are modelled: one of {', '.join(SURROGATES)}; "
        f"{DEFAULT_SURROGATE} if the recipe has none of its own.",
    ),
]
Constraints = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        help="What decisions have to satisfy, such as 'price + 2*stock <= 100'. "
        "May be given several times.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides every random draw.")]
Forecast = Annotated[
    Path | None,
    typer.Option(
        "--forecast",
        help="A CSV file of contexts that may come, in place of those seen so far; "
        f"with a column `{WEIGHT}` if some are likelier.",
    ),
]
Radius = Annotated[
    list[str] | None,
    typer.Option(
        "--radius",
        help="How far the contexts may be off, for this call: NAME=SIZE of each that "
        "may, in its own unit (of a category the share that may change it); or one "
        "number in widths of the bounds, `spread` or `sd`.",
    ),
]
Level = Annotated[
    float,
    typer.Option("--level", help="Of the intervals that are shown, above 0 to 1."),
]
Known = Annotated[
    list[str] | None,
    typer.Option("--known", help="What is known of the context: NAME=VALUE."),
]


@app.command(cls=_ListCommand)
def suggest(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
    forecast: Forecast = None,
    radius: Radius = None,
    known: Known = None,
    q: Annotated[int, typer.Option("-q", help="How many decisions.")] = 1,
    seed: Seed = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show them, and leave the file alone.")
    ] = False,
) -> None:
    """Append the next decisions to the file, contexts and outcomes empty.

    Fill in what happened. Rows without an outcome are pending: the next suggestions
    keep apart from them.
    """
    with _errors(), nullcontext() if dry_run else CsvFile.locked(data, _waiting):
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        pending = opt.pending
        x = opt.ask(q, **problem.this_round(forecast, radius, known))
        rows = in_digits(x, pending, problem.file, problem.space)
        if not dry_run:
            problem.file.append(rows)
        show(rows, "Suggested" if dry_run else f"Appended to {data}")


@app.command(cls=_ListCommand)
def recommend(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
    forecast: Forecast = None,
    radius: Radius = None,
    known: Known = None,
    level: Level = LEVEL,
    seed: Seed = 0,
) -> None:
    """Show the decision to implement now, and what to expect of it."""
    with _errors():
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        problem.check_outcomes()
        this_round = problem.this_round(forecast, radius, known)
        say(str(opt.recommend(**this_round, level=level)))


@app.command(cls=_ListCommand)
def check(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
    forecast: Forecast = None,
    seed: Seed = 0,
) -> None:
    """Show how far the model can be believed: outcomes predicted from all others."""
    with _errors():
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        problem.check_outcomes()
        asked = problem.this_round(forecast, None, None)
        say(str(opt.check(context_set=asked["context_set"])))


@app.command(cls=_ListCommand)
def compare(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
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
    radius: Radius = None,
    clip: Annotated[
        float,
        typer.Option("--clip", help="What share a shift may move out of the bounds."),
    ] = 0.0,
    seed: Seed = 0,
) -> None:
    """Show what the methods are expected to earn, as things are and under shifts."""
    with _errors():
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        problem.check_outcomes()
        found = opt.compare(
            methods or METHODS,
            shifts=dict(map(parse_shift, shift or ())),
            radii=[parse_radius(radius)] if radius else (),
            context_set=problem.this_round(forecast, None, None)["context_set"],
            clip=clip,
        )
        say(str(found))


@app.command(cls=_ListCommand)
def plot(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
    forecast: Forecast = None,
    radius: Radius = None,
    known: Known = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="The picture; by default beside DATA.")
    ] = None,
) -> None:
    """Draw the outcomes so far, and what the recommended decision promises."""
    with _errors():
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        problem.check_outcomes()
        best = opt.recommend(**problem.this_round(forecast, radius, known))
        path = data.with_suffix(".png") if out is None else out
        draw(opt.history, best, path)
        say(f"Wrote {path}")


@app.command(cls=_ListCommand)
def report(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo_exact",
    surrogate: SurrogateName = None,
    constraint: Constraints = None,
    forecast: Forecast = None,
    radius: Radius = None,
    q: Annotated[int, typer.Option("-q", help="How many decisions to try next.")] = 3,
    level: Level = LEVEL,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The page; by default beside DATA."),
    ] = None,
) -> None:
    """Write one HTML page: what to do, how far to believe it, what to try next."""
    with _errors():
        problem = _problem(decisions, contexts, outcome, constraint, data)
        opt = problem.optimizer(
            minimize=minimize, algorithm=algorithm, surrogate=surrogate, seed=seed
        )
        problem.check_outcomes()
        asked = problem.this_round(forecast, radius, None)
        path = data.with_suffix(".html") if out is None else out
        write_report(
            opt,
            path,
            context_set=asked["context_set"],
            radius=asked["radius"],
            level=level,
            q=q,
            source=data.name,
        )
        say(f"Wrote {path}")


def main() -> None:
    """The entry point ``botorch-drbo``."""
    app()


def _problem(
    decisions: list[str],
    contexts: list[str],
    outcome: str,
    constraint: list[str] | None,
    data: Path,
) -> Problem:
    problem = Problem.parse(decisions, contexts, outcome, constraint, data)
    for note in problem.notes:
        say(note, "dim", error=True)
    return problem


@contextmanager
def _errors() -> Iterator[None]:
    """Say what was wrong and what is worth knowing, without a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except (BotorchError, OSError) as error:
        say(f"Error: {error}", "red", error=True)
        raise typer.Exit(2) from error


def _note(message: Warning | str, category: type[Warning], *location: object) -> None:
    """Show a warning, of which a user of a command needs no line of code."""
    say(f"Note: {message}", "yellow", error=True)


def _waiting() -> None:
    say("Waiting for another `suggest` on this file ...", "dim", error=True)
