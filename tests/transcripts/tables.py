"""Runs in tables: names, units and kinds; groups; the page of a report."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import (
    Category,
    Integer,
    LinearConstraint,
    Log,
    NamedOptimizer,
    Ordinal,
    Space,
)
from botorch_drbo.report import write_report
from tests.transcripts.tensors import AtOnce
from tests.transcripts.transcript import Answers, refused, run, slow_run
from tests.transcripts.worlds import KNOWN, ONE, SHORT, spread

NUMBERS = Space(
    {"price": (10.0, 90.0), "rate": Log(0.01, 1.0), "stock": Integer(0, 40)},
    {"demand": (0.0, 100.0), "load": Log(1.0, 64.0)},
    outcome="profit",
)
KINDS = Space(
    {"price": (10.0, 90.0), "shelf": Category(["low", "high"])},
    {"demand": (0.0, 100.0), "weather": Category(["sun", "rain"])},
    outcome="profit",
)


def rows(space: Space, num: int, shift: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Decisions and contexts, by a rule."""
    tables, unit = [], spread(num, 6, shift)
    for variables in (space.decisions, space.contexts):
        table = {}
        for name, variable in variables.items():
            share, unit = unit[:, 0], unit[:, 1:]
            table[name] = [value_at(variable, u) for u in share.tolist()]
        tables.append(pd.DataFrame(table))
    return tables[0], tables[1]


def value_at(variable: Any, share: float) -> Any:
    if isinstance(variable, Category | Ordinal):
        values = getattr(variable, "choices", None) or variable.values
        return values[int(share * len(values))]
    low, high = variable.lower, variable.upper
    if isinstance(variable, Log):
        return low * (high / low) ** share
    value = low + share * (high - low)
    return int(value) if isinstance(variable, Integer) else value


def profit(x: pd.DataFrame, c: pd.DataFrame) -> list[float]:
    worlds = zip(x.to_dict("records"), c.to_dict("records"), strict=True)
    return [one_profit(decided, seen) for decided, seen in worlds]


def one_profit(x: dict[str, Any], c: dict[str, Any]) -> float:
    gap = (x["price"] - 20 - 0.5 * c["demand"]) / 40
    return 5 - gap**2 + 0.1 * len(str(x.get("shelf", ""))) * (c.get("load", 8) > 4)


def optimizer(name: str, space: Space = NUMBERS, **options: Any) -> NamedOptimizer:
    settings = {"num_initial": 3, "seed": 4, **KNOWN, **options}
    return NamedOptimizer(name, space, **settings)


def informed(name: str, space: Space = NUMBERS, **options: Any) -> NamedOptimizer:
    opt = optimizer(name, space, **options)
    x, c = rows(space, 8)
    opt.tell(x, c, profit(x, c), closes_pending=False)
    return opt


def rounds(opt: NamedOptimizer, num: int, begin: int = 0, **known: Any) -> Answers:
    for t in range(begin, begin + num):
        x, c = opt.ask(**known), rows(opt.named_space, 1, t)[1]
        yield "ask", x
        opt.tell(x, c, profit(x, c))


@run
def a_table_of_numbers() -> Answers:
    opt = optimizer("wdrbo_exact")
    yield from rounds(opt, 5)
    yield "ask two", (x := opt.ask(2))
    c = rows(NUMBERS, 2, 5)[1]
    opt.tell(x.iloc[[1]], c.iloc[[1]])
    opt.tell(x.iloc[[0]], None, failed=True, error="sold out")
    yield "pending", opt.pending
    yield "history", opt.history
    yield "table", opt.table()
    yield "recommend", opt.recommend()
    yield "trials", opt.trials
    yield "repr", repr(opt)


@run
def a_table_of_kinds() -> Answers:
    opt = optimizer("wdrbo_exact", KINDS)
    yield from rounds(opt, 5)
    yield "recommend", opt.recommend()
    yield "table", opt.table()
    other = optimizer("dro", KINDS)
    yield from rounds(other, 4)
    yield "recommend", other.recommend()


@run
def the_forms_of_a_table() -> Answers:
    space = Space(
        {"price": (10.0, 90.0), "size": Ordinal([1, 2, 5])},
        {"weather": Category(["sun", "rain"])},
        constraints=[LinearConstraint({"price": 1.0, "size": 10.0}, upper=100.0)],
    )
    opt = optimizer("random", space)
    opt.tell({"price": 20, "size": 2}, {"weather": "rain"}, 1.0)
    opt.tell(
        {"price": [30, 40.5], "size": [1, 5]}, {"weather": ["sun", "rain"]}, [2, 3]
    )
    frame = pd.DataFrame({"size": ["5"], "other": [0], "price": ["50"]})
    opt.tell(frame[["size", "price"]].astype(float), {"weather": "sun"}, pd.Series([4]))
    opt.tell(torch.tensor([[60.0, 1.0]]).double(), torch.tensor([[1.0]]).double(), 5.0)
    yield "table", opt.table()
    yield "wrong", refused(lambda: opt.tell(frame, {"weather": "sun"}, 4))
    yield "ask", opt.ask(3)
    yield "recommend", refused(opt.recommend)


@run
def what_is_known_by_name() -> Answers:
    opt = informed("wdrbo_exact")
    forecast = {"demand": [20.0, 60.0], "load": [2.0, 30.0]}
    news = NUMBERS.context_set(forecast, weights=[0.3, 0.7])
    by_column = {"demand": 6, "load": 1.5}
    yield "known", opt.ask(context={"demand": 30})
    yield "forecast", opt.ask(context_set=news)
    yield "radius", opt.ask(radius=by_column)
    yield "all", opt.ask(context_set=news, radius=by_column, context={"load": 4})
    yield "recommend", opt.recommend(context_set=news, radius=by_column)
    yield "preview", opt.preview(2, context_set=news)
    yield "policy", opt.policy({"demand": [10, 90], "load": [2, 2]})
    yield "check", opt.check(context_set=news)
    best = opt.recommend().x
    yield "profile", opt.robustness_profile(best, radius=by_column, target=4.5)
    yield "predict", opt.predict(best, rows(NUMBERS, 3, 9)[1])
    yield "tensors", opt.tensors.ask()


@run
def lists_and_chosen_contexts_by_name() -> Answers:
    reference = KINDS.context_set({"demand": [20, 60], "weather": ["sun", "rain"]})
    opt = informed("wdrbo_exact", KINDS, reference=reference, radius=0.1)
    listed = rows(KINDS, 5, 30)[0]
    yield "candidates", opt.ask(2, listed)
    yield "actions", opt.ask(actions=listed)
    x, c = opt.ask(choose_context=True)
    yield "chosen", [x, c]
    opt.tell(x, c, profit(x, c))
    yield "recommend", opt.recommend(listed).x
    yield "table", opt.table()


def affordable(columns: dict[str, Tensor]) -> Tensor:
    return 60.0 - columns["price"] - 20.0 * columns["rate"]


LIMITED = Space(
    NUMBERS.decisions,
    NUMBERS.contexts,
    outcome="cost",
    constraints=[LinearConstraint({"price": 1.0, "stock": 1.0}, 80, 20), affordable],
)


@run
def constraints_on_decisions_and_resumed() -> Answers:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = "run.jsonl"
        with optimizer("wdrbo", LIMITED, maximize=False, journal=path) as opt:
            yield from rounds(opt, 4)
            yield "recommend", opt.recommend()
            state = json.loads(json.dumps(opt.state_dict()))
        without = refused(lambda: NamedOptimizer.resume(path))
        yield "without the function", without.replace(str(Path.cwd()), "FOLDER")
        with NamedOptimizer.resume(path, space=LIMITED) as again:
            yield from rounds(again, 2, begin=4)
            yield "recommend", again.recommend().x
        other = NamedOptimizer.from_state_dict(state, space=LIMITED)
        yield "ask", other.ask(2)


COLUMNS: dict[str, Any] = {
    "decisions": {"price": (10, 90), "stock": Integer(0, 40)},
    "contexts": {"demand": (0, 100)},
    "outcome": "cost",
}


def sheet() -> pd.DataFrame:
    x = spread(9, 5)
    price, demand = 10 + 80 * x[:, 0], 100 * x[:, 1]
    cost = ((price - demand) / 40).square() + x[:, 2]
    columns = {"sku": list("AABABAABC"), "price": price, "demand": demand}
    table = pd.DataFrame({**columns, "cost": cost, "runoff": 8 * x[:, 3]})
    table["stock"] = [int(40 * share) for share in x[:, 4]]
    table["status"] = ""
    table.loc[5, ["cost", "status"]] = [None, "failed"]
    table.loc[6, ["cost", "demand", "runoff"]] = None
    table.loc[2, "runoff"] = None
    return table


@run
def read_from_a_table() -> Answers:
    opt = NamedOptimizer.from_dataframe(
        sheet(),
        **COLUMNS,
        **KNOWN,
        outcome_constraints={"runoff": (1, 7)},
        status="status",
        maximize=False,
        half_life=4.0,
        feasibility=0.7,
    )
    yield "table", opt.table()
    yield "recommend", opt.recommend()
    yield "ask", opt.ask(2)
    yield "check", opt.check()
    again = NamedOptimizer.from_dataframe(
        opt.table(), **COLUMNS, **KNOWN, maximize=False, status="status"
    )
    yield "read again", again.table()
    default = NamedOptimizer.from_dataframe(sheet(), **COLUMNS, **SHORT)
    yield "default", [default.algorithm.name, default.ask()]


@run
def groups_of_a_table() -> Answers:
    groups = NamedOptimizer.from_dataframe(
        sheet(), **COLUMNS, **ONE, group="sku", algorithm="erbo", maximize=False
    )
    yield "names", list(groups)
    yield "ask", groups.ask(2)
    yield "recommend", groups.recommend(context={"demand": 40})
    yield "elsewhere", groups.ask(executor=AtOnce(), parallel=2)
    yield "one", groups["B"].ask()
    yield "none", refused(lambda: groups["D"])


@run
def methods_compared_by_name() -> Answers:
    opt = informed("wdrbo_exact", NUMBERS, radius={"demand": 6})
    news = pd.DataFrame({"demand": [20.0, 60.0], "load": [2.0, 30.0]})
    found = opt.compare(
        ["erbo", "wdrbo_exact"],
        shifts={"fewer": {"demand": -10}, "twice": {"load": 2}, "news": news},
        radii=[{"demand": 20}],
        clip=0.5,
    )
    yield "compare", found
    yield "one shift", opt.compare(["erbo", "dro"], shifts={"demand": -5}, clip=0.5)


def evaluated(x: dict[str, Any]) -> Any:
    seen = {"demand": x["price"] / 2 + 10, "load": 1.0 + x["stock"]}
    if x["stock"] > 30:
        raise ValueError("no room")
    return seen, one_profit(x, seen)


@run
def a_function_of_names_that_is_evaluated() -> Answers:
    opt = optimizer("erbo")
    opt.run(evaluated, 6, executor=AtOnce(), parallel=2)
    yield "table", opt.table()
    yield "pending", opt.pending


# When a page was made, and with which versions.
_MADE = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d with .*)?")


class Words(HTMLParser):
    """What is read on a page: its words, not its pictures and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("style", "svg")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "svg")

    def handle_data(self, data: str) -> None:
        text = _MADE.sub("DATE", " ".join(data.split()))
        if text and not self._hidden:
            self.lines.append(text)


def read(path: Path) -> list[str]:
    return Words(path.read_text(encoding="utf-8")).lines


@slow_run
def a_report() -> Answers:
    opt = informed("wdrbo_exact", NUMBERS)
    news = NUMBERS.context_set({"demand": [20.0, 60.0], "load": [2.0, 30.0]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(opt, path, q=2)
        yield "page", read(path)
        write_report(opt, path, q=1, context_set=news, radius=0.1, level=0.5)
        yield "with a forecast", read(path)


@slow_run
def a_report_of_costs_and_limits() -> Answers:
    opt = NamedOptimizer.from_dataframe(
        sheet(),
        **COLUMNS,
        **KNOWN,
        algorithm="erbo",
        outcome_constraints={"runoff": (None, 7)},
        status="status",
        maximize=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(opt, path, limits=["runoff <= 7"], lines=range(2, 11), source="s")
        yield "page", read(path)


@run
def refusals_in_tables() -> Answers:
    opt = informed("wdrbo_exact", KINDS)
    x, c = rows(KINDS, 2)
    make = partial(NamedOptimizer.from_dataframe, sheet())
    questions: dict[str, Any] = {
        "space": lambda: NamedOptimizer("wdrbo", torch.ones(2, 2)),  # type: ignore[arg-type]
        "a category": lambda: opt.tell(x, c.assign(weather="hail"), 1.0),
        "a missing column": lambda: opt.tell(x[["price"]], c, 1.0),
        "another column": lambda: opt.tell(x.assign(prise=1), c, 1.0),
        "a cell": lambda: opt.tell(x.assign(price=["20", "cheap"]), c, 1.0),
        "outside": lambda: opt.tell(x.assign(price=[20, 200]), c, [1.0, 2.0]),
        "outcomes": lambda: opt.tell(x, c, [1.0, 2.0, 3.0]),
        "a table as a forecast": lambda: opt.ask(context_set=c),  # type: ignore[arg-type]
        "a known name": lambda: opt.ask(context={"wether": "rain"}),
        "a radius": lambda: opt.ask(radius={"prise": 1}),
        "a radius of categories": lambda: opt.ask(radius={"weather": 2}),
        "a shift of categories": lambda: opt.compare(shifts={"weather": 1}),
        "a column": lambda: make(**{**COLUMNS, "outcome": "profit"}),
        "a group": lambda: make(**COLUMNS, group="shop"),
        "a journal of groups": lambda: make(**COLUMNS, group="sku", journal="a"),
        "a limit": lambda: make(**COLUMNS, outcome_constraints={"runoff": (7, 1)}),
        "a constraint": lambda: Space(
            {"a": (0, 1)}, {"c": (0, 1)}, constraints=[LinearConstraint({"b": 1}, 2)]
        ),
        "names": lambda: Space({"a": (0, 1)}, {"a": (0, 1)}),
        "bounds": lambda: Space({"a": (1, 0)}, {"c": (0, 1)}),
        "a recipe of numbers": lambda: NamedOptimizer("drbo_mmd", KINDS),
    }
    for what, ask in questions.items():
        yield what, refused(ask)
    yield "nothing was recorded", opt.table()
