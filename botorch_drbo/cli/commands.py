"""The commands: suggest, recommend, plot."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botorch.exceptions.errors import BotorchError, InputDataError
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from botorch_drbo.cli.columns import HELP, parse_variable
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.optimizer import RobustOptimizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_LISTS = ("--decisions", "--contexts")


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
Seed = Annotated[int, typer.Option("--seed", help="Decides every random draw.")]


@app.command(cls=_ListCommand)
def suggest(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo",
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
    with _errors():
        file, opt = _load(data, decisions, contexts, outcome, minimize, algorithm, seed)
        x = opt.ask(q)
        if not dry_run:
            file.append(x.to_dict("records"))
        _show(x, "Suggested" if dry_run else f"Appended to {data}")


@app.command(cls=_ListCommand)
def recommend(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo",
    seed: Seed = 0,
) -> None:
    """Show the decision to implement now, and what to expect of it."""
    with _errors():
        _, opt = _load(data, decisions, contexts, outcome, minimize, algorithm, seed)
        Console().print(str(opt.recommend()), highlight=False, markup=False)


@app.command(cls=_ListCommand)
def plot(
    data: Data,
    decisions: Decisions,
    contexts: Contexts,
    outcome: Outcome,
    minimize: Minimize = False,
    algorithm: AlgorithmName = "wdrbo",
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="The picture; by default beside DATA.")
    ] = None,
) -> None:
    """Draw the outcomes so far, and what the recommended decision promises."""
    from botorch_drbo.cli.picture import draw

    with _errors():
        _, opt = _load(data, decisions, contexts, outcome, minimize, algorithm, seed)
        path = data.with_suffix(".png") if out is None else out
        draw(opt, path)
        Console().print(f"Wrote {path}", highlight=False, markup=False)


def main() -> None:
    """The entry point ``botorch-drbo``."""
    app()


def _load(
    data: Path,
    decisions: list[str],
    contexts: list[str],
    outcome: str,
    minimize: bool,
    algorithm: str,
    seed: int,
) -> tuple[CsvFile, RobustOptimizer]:
    """The file, and an optimizer that knows all of its rows."""
    file = CsvFile.read(data)

    def variables(words: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for word in words:
            name = word.partition("=")[0].strip()
            if name in found:
                raise InputDataError(f"`{name}` is given twice.")
            found.update([parse_variable(word, file.column(name))])
        return found

    chosen, met = variables(decisions), variables(contexts)
    try:
        opt = RobustOptimizer.from_dataframe(
            file.frame({**chosen, **met}, outcome),
            decisions=chosen,
            contexts=met,
            outcome=outcome,
            algorithm=algorithm,
            maximize=not minimize,
            # Nothing is kept but the file: each length of it has a design of its own.
            seed=seed + len(file.lines),
        )
    except InputDataError as error:
        raise InputDataError(f"{data} (rows are its lines): {error}") from error
    return file, opt


@contextmanager
def _errors() -> Iterator[None]:
    """Say what was wrong, without a traceback."""
    try:
        yield
    except (BotorchError, OSError) as error:
        Console(stderr=True).print(f"Error: {error}", style="red", markup=False)
        raise typer.Exit(2) from error


def _show(x: pd.DataFrame, title: str) -> None:
    table = Table(title=title)
    for name in x.columns:
        table.add_column(str(name))
    for row in x.itertuples(index=False):
        cells = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in row]
        table.add_row(*cells)
    Console().print(table)
