"""The tournament: losses and regrets of all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, committed_table


def tournament_ten() -> list[Row]:
    """Losses of `erbo` in percent after ten contexts; each case counts the same."""
    losses = pd.read_csv(RESULTS / "tournament" / "losses.csv")
    losses = losses[
        (losses["contexts"] == losses["contexts"].min())
        & (losses["method"] == "erbo")
        & ~losses["case"].str.endswith("_drifting")
    ]
    means = 100 * losses.set_index(["deployment", "case"])["mean"]
    laws = ("nothing shifts", "worst within 1 sd")
    return [[100, *(means[law].mean() for law in laws)]]


def methods() -> list[Row]:
    """Blocks of a method, and how many show five points if nothing shifts."""
    table = committed_table("tournament/methods.md")
    blocks = max(numbers(row[3])[0].value for row in table.values())
    needed = [numbers(row[4])[0].value for row in table.values()]
    return [[blocks, min(needed), max(needed)]]


def drift() -> list[Row]:
    """15 rounds; the regrets of a ball of one deviation and of ``erbo``."""
    table = committed_table("tournament/report.md", "## The regret while the law moves")
    robust, plain = table["`wdrbo_exact_1sd`"], table["`erbo`"]
    seeds = results_of_tournament()["seed"].nunique()
    less = [x.value for x in numbers(robust[3])]
    other = [abs(x.value) for x in numbers(table["`drbo_mmd`"][3])]
    return [[15, float(robust[0]), float(plain[0]), *less, seeds, *other]]


def results_of_tournament() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "tournament" / "regrets.csv")


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "tournament/losses.csv, ten contexts": tournament_ten,
    "tournament/methods.md": methods,
    "tournament/report.md, drift": drift,
}
