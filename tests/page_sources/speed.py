"""Times, on processors and on GPUs."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, column, committed_table

# The size that is quoted: decisions, contexts, outcomes, context columns.
SIZE = (64, 1024, 100, 1)


def speed() -> list[Row]:
    size = str(SIZE)
    table = "| (b, n, t, d_c) | auto takes"
    (milliseconds,) = column("speed.md", "auto", table)[size]
    (faster,) = column("speed.md", "idiom / auto", table)[size]
    (share,) = column("speed.md", "auto / GEMM", table)[size]
    every = [ratio for (ratio,) in column("speed.md", "idiom / auto", table).values()]
    assert len(every) == 10 and faster == max(every)
    ratios = [min(every), max(every), statistics.median(every)]
    return [[*SIZE[:3], milliseconds, faster, share, *ratios]]


def speed_of_large() -> list[Row]:
    table = committed_table("speed.md", "### What must be reached")
    time = table["expected UCB at (64, 1024, 2000, 1)"][0]
    memory = table["peak memory above the start, (16, 65536, 500, 1)"][0]
    seconds = [number.value for number in numbers(time)]
    return [[64, 1024, 2000, *seconds, 16, 65536, 500, numbers(memory)[0].value]]


def speed_missed() -> list[Row]:
    new, old = (
        committed_table(name, "| recipe | iteration |")
        for name in ("speed.md", "speed_0.1.0.md")
    )

    def ratio(table: Mapping[str, list[str]], recipe: str) -> float:
        return float(table[recipe][2])

    def milliseconds(table: Mapping[str, list[str]], recipe: str) -> float:
        return float(table[recipe][0].removesuffix(" ms"))

    target = (
        "WDRBO over ERBO on the same contexts, value and gradient, (64, 100, 100, 1)"
    )
    limit = [
        numbers(committed_table(name, "### What must be reached")[target][0])[0].value
        for name in ("speed.md", "speed_0.1.0.md")
    ]
    row = [100, ratio(new, "wdrbo"), 1.5, ratio(old, "wdrbo")]
    row += [milliseconds(new, "wdrbo"), milliseconds(old, "wdrbo")]
    row += [milliseconds(new, "gp_ucb"), milliseconds(old, "gp_ucb"), 100, *limit]
    two = ("wdrbo_exact", "drbo_mmd")
    row += [*(ratio(new, name) for name in two), 2, *(ratio(old, name) for name in two)]
    row += [*(milliseconds(table, name) for table in (new, old) for name in two)]
    return [[*row, ratio(new, "drbo_mmd_minimax"), 1024]]


def gpu_ratios(file: str) -> tuple[Row, Row, Row, Row, Row, Row]:
    """Least and largest milliseconds and ratios: large, one decision, asks."""

    def ratios(name: str, chosen: Callable[[str], bool], title: str = "") -> Row:
        found = column(file, name, title).items()
        return [ratio for size, (ratio,) in found if chosen(size)]

    def large(size: str) -> bool:
        return size.startswith("(512, 4096")

    def ends(values: Row) -> Row:
        return [min(values), max(values)]

    one, every = "one thread / GPU", "all cores / GPU"
    asks = "### Whole asks"
    return (
        ends(ratios("GPU", large)),
        ends(ratios(one, large)),
        ends(ratios(every, large)),
        ends(ratios(one, lambda size: size.startswith("(1, "))),
        ends(ratios(one, lambda ask: "t = 100," in ask, asks)),
        ends(ratios(one, lambda ask: "t = 100," not in ask, asks)),
    )


def gpu_speed() -> list[Row]:
    times, one, every, single, few, many = gpu_ratios("gpu_speed.md")
    (milliseconds,) = {round(x) for x in times}
    cores = re.search(r"(\d+) cores", (RESULTS / "gpu_speed.md").read_text())
    assert cores is not None
    large = [512, 4096, milliseconds, *one, *every, int(cores[1])]
    return [[*large, 1024, *single, 100, *few, 500, 1000, *many]]


def gpu_speed_h100() -> list[Row]:
    return [[x for ends in gpu_ratios("gpu_speed_h100.md") for x in ends]]


def surrogate_speed() -> list[Row]:
    """How many times an ask with ``botorch`` one with the ensemble takes, and may."""
    table = column("surrogate_speed.md", "ask / botorch")
    ratios = [row for name, (row,) in table.items() if name.endswith(", ensemble")]
    return [[min(ratios), max(ratios), 4]]


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
    assert fastest.startswith("ConditionalValue") and slowest.startswith("MMD")
    return [[100, times[fastest], times[slowest] / 1000, min(faster), max(faster)]]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "speed*.md": speed_missed,
    "speed.md": speed,
    "speed.md, large": speed_of_large,
    "gpu_speed.md": gpu_speed,
    "gpu_speed_h100.md": gpu_speed_h100,
    "surrogate_speed.md": surrogate_speed,
    "inner_speed.md": inner_speed,
}
