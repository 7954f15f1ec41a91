"""The tables that `botorch-drbo example` writes, made up by small functions of ours.

Four decisions that a stranger can follow: how much to bake, how to fertilise, how to
set up a server, how to run a reaction. No decision moves a context. Every table is the
same wherever it is made: ``python examples/make.py`` writes them into the package.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parents[1] / "botorch_drbo" / "cli" / "examples"
Row = Sequence[object]


def bakery_profit(loaves: float, price: float, temperature: float) -> float:
    """What a day brings: people ask for less on warm days; what is left is lost."""
    asked = 150 - 6 * (temperature - 14) - 30 * (price - 3)
    return price * min(loaves, max(asked, 0.0)) - 2 * loaves


def noon(random: Random) -> float:
    """A temperature of the bakery's days, in degrees."""
    return min(max(random.gauss(19.0, 4.5), 5.0), 33.0)


def bakery(random: Random) -> Iterator[Row]:
    """Loaves are baked before it is known how warm the day gets."""
    yield "day", "loaves", "price", "temperature", "profit"
    for day in range(1, 41):
        loaves, price = random.randint(30, 130), random.randint(25, 60) / 10
        temperature = noon(random)
        # Noise: what people ask for varies as by half a degree.
        profit = bakery_profit(loaves, price, temperature + random.gauss(0, 0.5))
        yield day, loaves, price, f"{temperature:.1f}", f"{profit:.0f}"


def farm(random: Random) -> Iterator[Row]:
    """Fields: a variety, nitrogen, and a limit on what the rain washes out."""
    yield ["field", "variety", "nitrogen", "rain", "soil", "runoff", "yield", "status"]
    for field in range(1, 31):
        variety, soil = random.choice("AB"), random.choice(("clay", "sand"))
        nitrogen, rain = random.uniform(30, 130), random.uniform(80, 200)
        best = (85 if variety == "A" else 105) + (10 if soil == "sand" else 0)
        grown = 7.4 - ((nitrogen - best) / 45) ** 2 + random.gauss(0, 0.15)
        grown -= ((rain - (130 if variety == "A" else 155)) / 55) ** 2
        runoff = 3 + 0.025 * nitrogen + 0.018 * rain + random.gauss(0, 0.2)
        runoff += 0.8 if soil == "clay" else 0.0
        lost, unmeasured = field in (8, 21), field in (5, 17, 26)
        yield (
            f"N{field}",
            variety,
            f"{nitrogen:.0f}",
            f"{rain:.0f}",
            soil,
            "" if unmeasured else f"{runoff:.1f}",
            "" if lost else f"{max(grown, 0.3):.1f}",
            "failed" if lost else "",
        )


def server(random: Random) -> Iterator[Row]:
    """A server under a load that nobody chooses: low latencies are good."""
    yield "threads", "batch", "cache_mb", "load", "latency_ms"
    for _ in range(36):
        threads, batch = random.randint(2, 32), random.choice((1, 2, 4, 8, 16))
        cache = round(64 * 2 ** random.uniform(0, 4))
        load = min(max(random.gauss(180, 50), 50), 400)
        # More threads serve more at once and disturb each other; batches wait to fill.
        busy = load / (25 * threads**0.5 * (1 + math.log2(batch)) ** 0.4)
        latency = 5 + 3 * busy + 0.8 * threads + 0.9 * batch
        latency += 4 * math.log2(1024 / cache) + random.gauss(0, 0.8)
        yield threads, batch, cache, f"{load:.0f}", f"{latency:.1f}"


def scope(random: Random) -> Iterator[Row]:
    """One set of conditions for a list of substrates, of which some are known."""
    ligands, bases = {"XPhos": 16, "SPhos": 9, "dppf": 4, "PPh3": 0}, "KOH K3PO4 CsF"
    hard = {"A": 0, "B": 3, "C": 6, "D": 9, "E": 13, "F": 17, "G": 22, "H": 28}
    yield "ligand", "base", "temperature", "substrate", "yield"
    for _ in range(48):
        ligand, base = random.choice(list(ligands)), random.choice(bases.split())
        temperature, substrate = random.randint(40, 110), random.choice(list(hard))
        found = 58 + ligands[ligand] + {"KOH": 0, "K3PO4": 8, "CsF": 4}[base]
        best = 72 + hard[substrate]  # the harder, the hotter
        found -= hard[substrate] + 0.018 * (temperature - best) ** 2
        if base == "KOH" and hard[substrate] > 12:  # hydrolysis
            found -= 14
        found = min(max(found + random.gauss(0, 2), 0), 99)
        yield ligand, base, temperature, substrate, f"{found:.0f}"


TABLES: dict[str, Callable[[Random], Iterator[Row]]] = {
    "bakery": bakery,
    "farm": farm,
    "server": server,
    "scope": scope,
}


def table(name: str) -> str:
    """The text of a table."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(TABLES[name](Random(name)))
    return text.getvalue()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in TABLES:
        (FOLDER / f"{each}.csv").write_text(table(each), encoding="utf-8")
