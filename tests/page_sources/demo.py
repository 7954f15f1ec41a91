"""The demonstration: what forty shops earn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from tests.page_sources.files import RESULTS, Row, mean_and_error


def coins(file: str) -> pd.DataFrame:
    """What each shop of a demo earns: methods and worlds by shop."""
    shops = pd.read_csv(RESULTS / "demo" / file)
    return shops.pivot(index="shop", columns="method")


WORLDS = ("rises by a third", "stays as it was", "falls by a third", "halves")


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


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "demo/shops.csv": demo,
    "demo/shops.csv, paired": lambda: [demo_differences()],
    "demo/*.csv": demo_gain,
}
