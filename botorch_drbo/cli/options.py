"""The options by which every command is told about the problem."""

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
"""The column of a forecast or a scope that says how much a context counts."""

UNIFORM = "uniform"
"""The scope of every combination of levels."""

STATUS = "status"
"""The column that says which trials have failed, if no other is named."""

BALL = "ball"
"""All distributions within one deviation, the danger if none is said."""

EXAMPLES = {
    "bakery": (
        "40 days of a bakery, which bakes before it knows how warm the day gets.",
        "--decisions loaves=30:130:int price=2.5:6 --contexts temperature=0:40 "
        "--outcome profit",
        "--against temperature=5 --give-up 10%",
        "",
    ),
    "farm": (
        "30 fields, with a limit on the runoff, cells not measured, harvests lost.",
        "--decisions variety nitrogen=30:130 --contexts rain=40:240 soil "
        "--outcome yield --limit 'runoff <= 10'",
        "--against rain=30 --give-up 10%",
        "",
    ),
    "server": (
        "36 settings of a server under a load that nobody chooses; low is good.",
        "--decisions threads=2:32:int batch=1,2,4,8,16:ordinal cache_mb=64:1024:log "
        "--contexts load=0:500 --outcome latency_ms --minimize",
        "--against load=0:80 --give-up 10%",
        "",
    ),
    "scope": (
        "48 reactions: one set of conditions for a list of eight substrates.",
        "--decisions ligand base temperature=40:110:int --contexts substrate "
        "--outcome yield --scope uniform",
        "",
        "--choose-context -q 8 --contexts-per-decision 4",
    ),
}
"""Of each table that comes with the package: what it has, its columns, what is asked of
`recommend` and of `suggest`."""

Data = Annotated[
    Path, typer.Argument(help="The CSV file, with the names of the columns first.")
]

Decisions = Annotated[
    list[str] | None,
    typer.Option("--decisions", help=f"Columns that you choose. {HELP}"),
]

Contexts = Annotated[
    list[str] | None,
    typer.Option("--contexts", help="Columns that you observe, in the same form."),
]

Outcome = Annotated[
    str | None, typer.Option("--outcome", help="The column to optimise.")
]

Minimize = Annotated[
    bool | None,
    typer.Option(
        "--minimize/--maximize",
        help="Low outcomes are good (costs), or high ones, the default.",
        show_default=False,
    ),
]

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help="A limit on a measured column, such as 'runoff <= 9'. May be repeated.",
    ),
]

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout, nothing else."),
]

Forecast = Annotated[
    Path | None,
    typer.Option(
        "--forecast",
        help="A CSV file of possible contexts, instead of those seen so far; with a "
        f"column `{WEIGHT}` if they are not equally likely.",
    ),
]

Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        help="The contexts that the decision must serve, in place of those seen so "
        f"far: a CSV file, perhaps with a column `{WEIGHT}`, or `uniform` for every "
        "combination of their levels.",
    ),
]

Known = Annotated[
    list[str] | None,
    typer.Option("--known", help="A known part of the next context: NAME=VALUE."),
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing file.")
]

Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        help="The column that says to which group a row belongs, such as a product: "
        "each group is a separate problem.",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --group: processes on this machine (default 1)."
    ),
]

Dask = Annotated[
    str | None,
    typer.Option(
        "--dask", help="With --group: the address of a dask scheduler, tcp://HOST:PORT."
    ),
]


@dataclass(frozen=True, kw_only=True)
class PlateOptions:
    """How `suggest` chooses contexts too, and lays out what it suggests."""

    choose_context: Annotated[
        bool,
        typer.Option(
            "--choose-context",
            help="Choose the contexts as well, those that teach most; see --scope.",
        ),
    ] = False
    contexts_per_decision: Annotated[
        int,
        typer.Option(
            "--contexts-per-decision",
            min=1,
            help="With --choose-context: in how many contexts each decision is tried.",
        ),
    ] = 1
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates",
            min=1,
            help="With --choose-context: how often each row is suggested.",
        ),
    ] = 1
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            help="NAME=NUMBER: how many values of a decision the new rows may have.",
        ),
    ] = None
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates", help="A CSV file of the decisions that are allowed."
        ),
    ] = None


Methods = Annotated[
    list[str] | None,
    typer.Option("--methods", help="Recipes; the first is the yardstick."),
]

Level = Annotated[
    float | None,
    typer.Option(
        "--level",
        help="The level of the intervals, between 0 and 1.",
        show_default=str(LEVEL),
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that all commands on a problem have; None: not given.

    A given option overrides ``problem.toml``.
    """

    data: Data
    problem: Annotated[
        Path | None,
        typer.Option(
            "--problem",
            help="A file with the roles of the columns, as written by `init`. Default: "
            "problem.toml next to DATA, if no columns are named.",
        ),
    ] = None
    decisions: Decisions = None
    contexts: Contexts = None
    outcome: Outcome = None
    minimize: Minimize = None
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            help="The recipe. Default: erbo, deciding against any pattern within one "
            "deviation and giving up at most 10%; wdrbo_exact with a --radius.",
        ),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(
            "--features",
            help="Numbers that describe the levels of a category: NAME=FILE.csv, with "
            "a row for each level. Levels that were never tried are predicted by them.",
        ),
    ] = None
    surrogate: Annotated[
        str | None,
        typer.Option(
            "--surrogate",
            help=f"The model of the outcome: one of {SURROGATES}. Default: that of "
            f"the recipe, or {DEFAULT_SURROGATE}.",
        ),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            help="A constraint on decisions, such as 'price + 2*stock <= 100' or "
            "'sand + lime = 1'. May be repeated.",
        ),
    ] = None
    limit: Limits = None
    feasibility: Annotated[
        float | None,
        typer.Option(
            "--feasibility",
            help="The probability with which all limits must hold (default 0.95).",
        ),
    ] = None
    half_life: Annotated[
        float | None,
        typer.Option(
            "--half-life",
            help="The number of further rows after which the weight of a context is "
            "halved, for contexts that drift. Default: equal weights.",
        ),
    ] = None
    scope: Scope = None
    radius: Annotated[
        list[str] | None,
        typer.Option(
            "--radius",
            help="How far the contexts may shift: NAME=SIZE for each, in "
            "its unit (for a category, the share that may change); or one number in "
            "widths of the bounds, `spread` or `sd`.",
        ),
    ] = None
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            help="What to decide against: temp=3 (up or down by 3), temp=-3:0 (one "
            "way), rain=60% of a category as weather:rain=60%, mean=1 (all columns, in "
            "deviations), spread=2, box=10% (a tenth from anywhere), FORECASTS.csv, or "
            "`ball` (any pattern within one deviation). Several are joined.",
        ),
    ] = None
    give_up: Annotated[
        str | None,
        typer.Option(
            "--give-up",
            help="What a better worst case may cost: 10% of what there is to gain, an "
            "amount of the outcome such as 20, or `all`.",
        ),
    ] = None
    no_insurance: Annotated[
        bool,
        typer.Option(
            "--no-insurance",
            help="Decide for the expectation alone, where no recipe is named.",
        ),
    ] = False
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="What is maximised over the contexts: mean, worst fifth (or half, "
            "quarter, 30% ...), minimum, or 'share above 60'. With --minimize: "
            "maximum, 'share below 60'; the worst fifth is the dearest.",
        ),
    ] = None
    criterion: Annotated[
        str | None,
        typer.Option(
            "--criterion",
            help="worst_case, or `regret` for the least regret in the worst of the "
            "dangers of --against.",
        ),
    ] = None
    clip: Annotated[
        float | None,
        typer.Option(
            "--clip",
            help="What share of cases a shift may move beyond the bounds, where it "
            "leaves them (default 0).",
        ),
    ] = None
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            help="The column that contains `failed` if an outcome will never come "
            f"(default `{STATUS}`, if it exists).",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="The seed of all random draws.")
    ] = 0
    json: Json = False
