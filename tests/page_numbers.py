"""Where the numbers of README.md and docs/*.md come from, computed again.

A page names the source of a table, or of a paragraph, in a line before it, as in
``<!-- numbers: benchmarks/results/demo/shops.csv -->``: a committed file or a pattern,
and behind a comma which part of it, where there are several. ``SOURCES`` has for each
a function of the numbers that stand there, row by row without the first column; a
paragraph is one row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ("README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
Row = list[float]

_MARK = re.compile(r"<!-- numbers: (.*?) -->")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|\$[^$]*\$")
# 1,024 or .5 or 2e-8; no part of a word (W1) or of a version (0.18.1).
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(?:e[-+]?\d+)?"
    r"(?!\d|\.\d|,\d{3})"
)


@dataclass(frozen=True)
class Printed:
    """A number as it stands on a page."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text.replace(",", ""))

    @property
    def unit(self) -> float:
        """One in its last digit."""
        mantissa, _, exponent = self.text.replace(",", "").partition("e")
        return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))

    def is_rounded(self, value: float) -> bool:
        """Whether ``value``, rounded to these digits, is this number."""
        return math.isclose(
            self.value, value, rel_tol=1e-9, abs_tol=0.5 * self.unit * (1 + 1e-6)
        )


@dataclass(frozen=True)
class Passage:
    """A table or a paragraph of a page.

    Args:
        line: Where it begins, from 1.
        source: What the comment before it says; empty without one.
        rows: Its numbers.
        is_table: Else a paragraph.
    """

    line: int
    source: str
    rows: list[list[Printed]]
    is_table: bool


def numbers(text: str) -> list[Printed]:
    """The numbers of a text; code, formulas and links have none."""
    return [Printed(found) for found in _NUMBER.findall(_CODE.sub(" ", text))]


def passages(page: str) -> Iterator[Passage]:
    """The tables of a page, and the paragraphs that name a source."""
    text = _FENCE.sub(lambda found: "\n" * found.group().count("\n"), page)
    lines, start = text.splitlines(), 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = start
        while end < len(lines) and lines[end].strip():
            end += 1
        block, first = lines[start:end], start + 1
        mark = _MARK.fullmatch(block[0].strip())
        source = mark.group(1) if mark else ""
        if mark:
            block = block[1:]
        if block and block[0].startswith("|"):
            yield Passage(first, source, [_cells(row) for row in block[2:]], True)
        elif mark:
            yield Passage(first, source, [numbers(" ".join(block))], False)
        start = end


def _cells(row: str) -> list[Printed]:
    """The numbers of a row of a table, without its first cell."""
    cells = re.split(r"(?<!\\)\|", row.strip().strip("|"))[1:]
    return [number for cell in cells for number in numbers(cell)]


def wrong_numbers(found: Passage, rows: Sequence[Sequence[float]]) -> list[str]:
    """What differs between a passage and its source, a line for each difference."""
    if len(rows) != len(found.rows):
        return [f"{len(found.rows)} rows, the source has {len(rows)}"]
    wrong = []
    for i, (page, source) in enumerate(zip(found.rows, rows, strict=True)):
        texts = [number.text for number in page]
        if len(page) != len(source):
            wrong.append(f"row {i}: {texts}, the source has {list(source)}")
            continue
        wrong += [
            f"row {i}: {number.text}, the source has {value:.6g}"
            for number, value in zip(page, source, strict=True)
            if not number.is_rounded(value)
        ]
    return wrong


# ---- the sources


def mean_and_error(values: pd.Series) -> Row:
    """Mean and standard error."""
    return [values.mean(), values.std(ddof=1) / len(values) ** 0.5]


def committed_table(path: str, title: str = "") -> dict[str, list[str]]:
    """First cell of a row -> the other cells, of a committed Markdown table.

    Args:
        path: The file, below benchmarks/results.
        title: A line of it; the first table behind it is meant.
    """
    text = (RESULTS / path).read_text()
    lines = text[text.index(title) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *cells = (
            c.strip().strip("*") for c in re.split(r"(?<!\\)\|", line)[1:-1]
        )
        rows[first] = cells
    return rows


def column(path: str, name: str, title: str = "") -> dict[str, Row]:
    """First cell of a row -> the numbers of one named column."""
    text = (RESULTS / path).read_text()
    lines = text[text.index(title) :].splitlines()
    head = next(line for line in lines if line.startswith("|"))
    place = [c.strip() for c in head.strip("|").split(" | ")].index(name) - 1
    return {
        first: [number.value for number in numbers(cells[place])]
        for first, cells in committed_table(path, title).items()
    }


def results(name: str) -> pd.DataFrame:
    """All rounds of a committed benchmark."""
    return pd.read_parquet(RESULTS / name / "results.parquet")


def coins(file: str) -> pd.DataFrame:
    """What each shop of a demo earns: methods and worlds by shop."""
    shops = pd.read_csv(RESULTS / "demo" / file)
    return shops.pivot(index="shop", columns="method")


WORLDS = ("stays as it was", "falls by a third", "halves")


def demo() -> list[Row]:
    table = coins("shops.csv")
    return [
        [x for world in WORLDS for x in mean_and_error(table[world][method])]
        for method in ("wdrbo_exact", "erbo", "gp_ucb")
    ]


def demo_differences(file: str = "shops.csv") -> Row:
    """Coins more than ``erbo``, shop by shop."""
    table = coins(file)
    gain = (table[world]["wdrbo_exact"] - table[world]["erbo"] for world in WORLDS)
    return [x for each in gain for x in mean_and_error(each)]


def demo_gain() -> list[Row]:
    return [demo_differences(), demo_differences("further_shops.csv")]


def tournament_losses() -> dict[str, pd.DataFrame]:
    """Situation -> losses in percent after 15 contexts, case and seed by method."""
    losses = pd.read_parquet(RESULTS / "tournament" / "losses.parquet")
    drifts = losses["case"].str.endswith("_drifting")

    def chosen(world: str, *, few: bool = False, drifting: bool = False) -> Any:
        count = losses["contexts"].min() if few else losses["contexts"].max()
        rows = losses[
            (losses["deployment"] == world)
            & (losses["contexts"] == count)
            & (drifts == drifting)
        ]
        table = rows.pivot(index=["case", "seed"], columns="method", values="loss")
        return 100 * table

    return {
        "settled": chosen("nothing shifts"),
        "settled, few": chosen("nothing shifts", few=True),
        "moved": chosen("mean moves 2 sd, badly"),
        "drifted": chosen("mean moves 2 sd, badly", drifting=True),
        "rare": chosen("rare bad regime"),
        "worst 1": chosen("worst within 1 sd"),
        "worst 1, few": chosen("worst within 1 sd", few=True),
        "worst 2": chosen("worst within 2 sd"),
    }


def loss(table: pd.DataFrame, method: str) -> float:
    """Each case counts the same."""
    return table[method].groupby("case").mean().mean()


def less_erbo(table: pd.DataFrame, method: str) -> Row:
    """Mean over cases of the paired difference, and the error over seeds in them."""
    difference = (table[method] - table["erbo"]).dropna().groupby("case")
    error = (difference.var() / difference.count()).sum() ** 0.5 / difference.ngroups
    return [difference.mean().mean(), error]


def tournament() -> list[Row]:
    shown = ("sbo_kde", "wdrbo_exact", "drbo_kde", "ei_wdrbo", "stable_opt", "random")
    tables = tournament_losses()
    worlds = ("settled", "moved", "drifted", "rare", "worst 2")
    return [
        [loss(tables[w], "erbo")]
        + [x for method in shown for x in less_erbo(tables[w], method)]
        for w in worlds
    ]


def tournament_ten() -> list[Row]:
    tables = tournament_losses()
    return [[100, *(loss(tables[w], "erbo") for w in ("settled, few", "worst 1, few"))]]


def regret_rows(name: str, methods: Sequence[str]) -> Row:
    """Cumulative regret, mean and error over seeds, method by method."""
    total = results(name).groupby(["algorithm", "seed"])["regret"].sum()
    return [x for method in methods for x in mean_and_error(total[method])]


RECIPES = ("wdrbo", "erbo", "sbo_kde", "gp_ucb", "random")


def measured() -> list[Row]:
    return [
        regret_rows("figure1", RECIPES[:2]),
        regret_rows("portfolio_normal", RECIPES),
    ]


def measured_less_erbo() -> list[Row]:
    rows = []
    for name in ("figure1", "portfolio_normal"):
        total = results(name).groupby(["algorithm", "seed"])["regret"].sum()
        gain = total["wdrbo"] - total["erbo"]
        rows.append([*mean_and_error(gain), (gain < 0).sum(), len(gain)])
    return rows


# The size that is quoted: decisions, contexts, outcomes, context columns.
SIZE = (64, 1024, 100, 1)


def speed() -> list[Row]:
    size = str(SIZE)
    table = "| (b, n, t, d_c) | auto takes"
    (milliseconds,) = column("speed.md", "auto", table)[size]
    (faster,) = column("speed.md", "idiom / auto", table)[size]
    (share,) = column("speed.md", "auto / GEMM", table)[size]
    return [[*SIZE[:3], milliseconds, faster, share]]


def inner_speed() -> list[Row]:
    table = committed_table("inner_speed.md")
    layers = [name for name in table if name.endswith(", layer")]
    micro = {"us": 1.0, "ms": 1000.0}
    times = {}
    for name in layers:
        number, unit = table[name][0].split()
        times[name] = float(number) * micro[unit]
    faster = [numbers(table[name][2])[0].value for name in layers]
    fastest, slowest = min(times, key=times.__getitem__), max(times, key=times.get)
    assert fastest.startswith("TotalVariation") and slowest.startswith("MMD")
    return [[100, times[fastest], times[slowest] / 1000, min(faster), max(faster)]]


def speed_of_large() -> list[Row]:
    table = committed_table("speed.md", "### What must be reached")
    time = table["expected UCB at (64, 1024, 2000, 1)"][0]
    memory = table["peak memory above the start, (16, 65536, 500, 1)"][0]
    seconds = [number.value for number in numbers(time)]
    return [[64, 1024, 2000, *seconds, 16, 65536, 500, numbers(memory)[0].value]]


def certainty() -> list[Row]:
    name = "lipschitz_gradients.md"
    lines = (RESULTS / name).read_text().splitlines()
    cells = [line.split(" | ") for line in lines if re.match(r"\| \d", line)]
    percent = [[float(row[i].strip("%")) for i in (4, 9)] for row in cells]
    slopes = [sum(int(row[2]) for row in cells)]
    slopes += [max(row[0] for row in percent) / 100, max(row[1] for row in percent)]
    lines = (RESULTS / "accuracy.md").read_text().splitlines()
    errors = [line.split(" | ")[5:7] for line in lines if re.match(r"\| \d", line)]
    moments = [max(float(row[i]) for row in errors) for i in (0, 1)]
    return [[], [], [], slopes, [], moments, [], [], [], []]


def misspecified() -> list[Row]:
    rows = []
    for folder in ("misspecified", "misspecified_laptop"):
        ratios: dict[str, Row] = {}
        for kind in ("**waves**", "**bumps**"):
            table = committed_table(f"{folder}/table.md", kind)
            for error in (1, 2):  # the columns of the two errors that are not zero
                regret = {name: numbers(table[name][error])[0].value for name in table}
                for name in regret:
                    ratio = regret[name] / regret["gp_ucb"]
                    ratios.setdefault(name, []).append(ratio)
        methods = ("ec_gp_ucb", "phased_gp_us", "regret_balancing")
        rows.append([f(ratios[name]) for name in methods for f in (min, max)])
    return rows


def constraints() -> list[Row]:
    table = committed_table("constraints.md", "| constraint |")
    cells = (table[name][:4] for name in table)
    return [[x.value for cell in row for x in numbers(cell)] for row in cells]


def constraints_text() -> list[Row]:
    text = (RESULTS / "constraints.md").read_text()
    best = [float(x) for x in re.findall(r"(?:value|law) (0\.\d+)", text)]
    level = float(re.findall(r"probability (0\.\d+)", text)[0])
    outcomes = sum(int(n) for n in re.findall(r"(\d+) (?:decisions|more)", text))
    return [[level, 0.01, outcomes, *best, best[1] - best[0]]]


_RESULTS = "benchmarks/results/"
SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    _RESULTS + "demo/shops.csv": demo,
    _RESULTS + "demo/shops.csv, paired": lambda: [demo_differences()],
    _RESULTS + "demo/*.csv": demo_gain,
    _RESULTS + "tournament/losses.parquet": tournament,
    _RESULTS + "tournament/losses.parquet, ten contexts": tournament_ten,
    _RESULTS + "*/results.parquet": measured,
    _RESULTS + "*/results.parquet, paired": measured_less_erbo,
    _RESULTS + "misspecified*/table.md": misspecified,
    _RESULTS + "speed.md": speed,
    _RESULTS + "speed.md, large": speed_of_large,
    _RESULTS + "inner_speed.md": inner_speed,
    _RESULTS + "lipschitz_gradients.md, accuracy.md": certainty,
    _RESULTS + "constraints.md": constraints,
    _RESULTS + "constraints.md, text": constraints_text,
}
