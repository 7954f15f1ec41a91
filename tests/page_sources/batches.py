"""Batches and pending decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, committed_table


def batches() -> list[Row]:
    joint = committed_table("batches.md", "Joint minus another way")
    greedily = [
        [x.value for x in numbers(cell)]
        for name in ("qUCB", "qEI")
        for cell in joint[f"{name}, jointly - {name}, greedily"]
    ]
    largest = max(abs(mean) / error for mean, error in greedily)
    hallucinated = numbers(joint["qUCB, jointly - UCB, hallucinated"][2])
    better = committed_table("batches.md", "Acquisition values on the same model")
    share = {name: numbers(cells[3])[0].value for name, cells in better.items()}
    warm = [share[f"{name}, jointly, warm"] for name in ("qUCB", "qEI")]
    cold = [share[f"{name}, jointly, cold"] for name in ("qUCB", "qEI")]
    return [[2, largest, *warm, *cold, *(x.value for x in hallucinated)]]


def batches_table() -> list[Row]:
    cells = committed_table("batches.md", "| method |").values()
    return [[x.value for i in (0, 1, 3) for x in numbers(row[i])] for row in cells]


def pending() -> list[Row]:
    lines = (RESULTS / "pending.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if "repelled - hallucinated" in line]
    ackley, newsvendor = (
        [x.value for x in numbers(row[4])] for row in rows if "branin" not in row[0]
    )
    return [[*ackley, *newsvendor]]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "batches.md": batches,
    "batches.md, table": batches_table,
    "pending.md": pending,
}
