"""What every command is told of the problem, as it is typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

NAME = "problem.toml"
"""The file that says which column is what."""
HELP = (
    "NAME=LOW:HIGH for a number, NAME=LOW:HIGH:int, NAME=LOW:HIGH:log, NAME=A,B,C for "
    "a category, NAME=1,2,5:ordinal for numbers of which only these may be taken."
)
# Repeated here, and compared in a test: to import them takes seconds.
SURROGATES = "botorch, matern, matern32, rbf, hyperparameters, kernels, ensemble"
DEFAULT_SURROGATE = "ensemble"
LEVEL = 0.9
WEIGHT = "weight"
"""The column of a forecast that says how likely a context is."""
STATUS = "status"
"""The column that says which trials have failed, if no other is named."""
ALGORITHM = "wdrbo_exact"
"""The recipe if none is named."""

Data = Annotated[
    Path, typer.Argument(help="The CSV file, with the names of the columns first.")
]
Decisions = Annotated[
    list[str] | None,
    typer.Option("--decisions", help=f"Columns that you choose. {HELP}"),
]
Contexts = Annotated[
    list[str] | None,
    typer.Option("--contexts", help="Columns that you meet, written the same way."),
]
Outcome = Annotated[
    str | None, typer.Option("--outcome", help="The column to be improved.")
]
Minimize = Annotated[
    bool | None,
    typer.Option(
        "--minimize/--maximize",
        help="Low outcomes are good, as for costs; without it high ones are.",
        show_default=False,
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help="What a measured column has to satisfy, such as 'runoff <= 9'. May be "
        "given several times.",
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
Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON document on stdout, and nothing else there."),
]
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
Known = Annotated[
    list[str] | None,
    typer.Option("--known", help="What is known of the context: NAME=VALUE."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file if there is one already.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        help="The column that says to which group a row belongs, such as a product: "
        "each group is a problem of its own.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --group: processes of this machine; 1 if not."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask", help="With --group: the address of a dask scheduler, tcp://HOST:PORT."
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        "--level",
        help="Of the intervals that are shown, above 0 to 1.",
        show_default=str(LEVEL),
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that all commands on a problem have; None: not given.

    What is given takes the place of what ``problem.toml`` says.
    """

    data: Data
    problem: Annotated[
        Path | None,
        typer.Option(
            "--problem",
            help="A file that says which columns are what, as `init` writes it. "
            "problem.toml beside DATA if no columns are named.",
        ),
    ] = None
    decisions: Decisions = None
    contexts: Contexts = None
    outcome: Outcome = None
    minimize: Minimize = None
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help=f"The recipe's name; {ALGORITHM} if none is."),
    ] = None
    surrogate: Annotated[
        str | None,
        typer.Option(
            "--surrogate",
            help=f"How outcomes are modelled: one of {SURROGATES}; "
            f"{DEFAULT_SURROGATE} if the recipe has none of its own.",
        ),
    ] = None
    constraint: Constraints = None
    limit: Limits = None
    feasibility: Annotated[
        float | None,
        typer.Option(
            "--feasibility",
            help="How probably all limits have to hold, below 1; 0.95 if not given.",
        ),
    ] = None
    half_life: Annotated[
        float | None,
        typer.Option(
            "--half-life",
            help="After how many further rows a context counts half, if the world "
            "drifts; without it none is forgotten.",
        ),
    ] = None
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            help="The column that says `failed` where an outcome will never come; "
            f"`{STATUS}` if there is one.",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Decides every random draw.")
    ] = 0
    json: Json = False
