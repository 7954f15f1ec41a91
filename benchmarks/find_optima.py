r"""Find the optima that the test functions store, and print them to six digits.

    python benchmarks/find_optima.py [name ...]

Without names it does all of them (minutes; the portfolios take most of it, and need
the data file). A class keeps the printed numbers as constants; the tests check them
by another route. Run it again when a formula or a law changes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from botorch_drbo.test_functions import find_optimum, make_test_function


@dataclass(frozen=True)
class Search:
    """One optimum to find, and the effort it takes."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    num_contexts: int = 2**17
    num_screening: int = 2**10
    num_raw: int = 1024


_BOTH = ({"preset": "wdrbo"}, {"preset": "sbo_kde"})
_SIGNS = ({"negate": False}, {"negate": True})
SEARCHES = (
    *(Search("ackley_2_1", options) for options in _BOTH),
    *(Search("ackley_2_4", options, num_contexts=2**20) for options in _BOTH),
    *(Search("branin_2_2", options) for options in _BOTH),
    *(Search("hartmann_5_1", options, num_raw=4096) for options in _BOTH),
    Search("complicated_hartmann", num_raw=4096),
    Search("newsvendor", num_contexts=2**20, num_raw=4096),
    Search("three_hump_camel"),
    Search("six_hump_camel"),
    Search("wdrbo_figure1", num_raw=4096),
    *(
        Search(name, preset | sign, 2**13, num_screening=128, num_raw=1024)
        for name in ("portfolio_normal", "portfolio_uniform")
        for preset in _BOTH
        for sign in _SIGNS
    ),
    Search("gp_prior_2_2", num_raw=4096),
    Search("hartmann_2_1", num_raw=4096),
    Search("plant_growth", num_raw=4096),
    Search("covid_testing", num_raw=4096),
)


def main(names: list[str]) -> None:
    """Search and print.

    Args:
        names: Which test functions; all of them if empty.
    """
    unknown = set(names) - {search.name for search in SEARCHES}
    if unknown:
        raise SystemExit(f"Unknown test functions: {sorted(unknown)}.")
    for search in SEARCHES:
        if names and search.name not in names:
            continue
        start = time.perf_counter()
        optimum = find_optimum(
            make_test_function(search.name, **search.options),
            num_contexts=search.num_contexts,
            num_screening=search.num_screening,
            num_raw=search.num_raw,
        )
        decision = ", ".join(f"{coordinate:.6f}" for coordinate in optimum.decision)
        seconds = time.perf_counter() - start
        print(
            f"{search.name} {search.options}: {optimum.value:.6f} at ({decision})"
            f"  [{seconds:.0f} s]",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
