"""Read what EDRBO's authors publish of each run into ``published/edrbo.csv``.

    git clone https://github.com/ramazyant/EDRBO
    python -m benchmarks.read_edrbo EDRBO

Their file of a run is a pickle of a dictionary. Its ``stochastic_Y`` has the expected
value of each of the 200 decisions over their law of the context, the five Sobol points
first; means over three parts of the run are kept. Nothing is unpickled but arrays of
numbers. The committed file is of their commit ``cd9a9fcb9dc7``.
"""

from __future__ import annotations

import argparse
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.run.published import PUBLISHED

PARTS = ((6, 30), (31, 100), (101, 200))
"""The first and the last decision of each part, counted from one."""
_DECISIONS = 200
_METHODS = {
    "LEDRBO": "edrbo",
    "EmpiricalUCB": "erbo",
    "SBOKDE": "sbo_kde",
    "WassersteinUCB": "wdrbo",
    "UCB": "gp_ucb",
    "DRBOKDE": "drbo_kde",
    "MMD": "drbo_mmd",
    "MMD_Minimax_Approx": "drbo_mmd_minimax",
    "Stable": "stable_opt",
}
_PROBLEMS = {
    "Ackley": "ackley_2_1",
    "Continuous_Vendor": "newsvendor",
    "Modified_Branin": "branin_2_2",
    "Hartmann": "hartmann_5_1",
    "ThreeHumpCamel": "three_hump_camel",
    "SixHumpCamel": "six_hump_camel",
    "portfolio_normal_optimization": "portfolio_normal",
    "portfolio_optimization": "portfolio_uniform",
    "Hartmann_complicated": "complicated_hartmann",
}
_NAME = re.compile(
    f"(?P<method>{'|'.join(_METHODS)})_(?P<problem>{'|'.join(_PROBLEMS)})"
    rf"_(?P<seed>\d+)_{_DECISIONS}_.*_results\.pkl"
)
_ARRAYS = {
    (module, name)
    for module in ("numpy.core.multiarray", "numpy._core.multiarray")
    for name in ("_reconstruct", "scalar")
} | {("numpy", "ndarray"), ("numpy", "dtype")}


class _Arrays(pickle.Unpickler):
    """Reads arrays, and refuses all else that a pickle can name."""

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        if (module, name) not in _ARRAYS:
            raise pickle.UnpicklingError(f"{module}.{name} is no array of numbers.")
        return super().find_class(module, name)


def read(folder: Path) -> pd.DataFrame:
    """Mean expected value of the decisions of each part of each run.

    Args:
        folder: ``Result`` of their repository.

    Returns:
        With the columns problem, algorithm, seed, first, last and value.

    Raises:
        ValueError: There is no file, or one has another name or number of decisions.
    """
    if not any(folder.glob("*.pkl")):
        raise ValueError(f"{folder} has no results: clone their repository anew.")
    order = list(_PROBLEMS.values()), list(_METHODS.values())
    table = pd.DataFrame(
        _rows(folder),
        columns=["problem", "algorithm", "seed", "first", "last", "value"],
    )
    for column, names in zip(("problem", "algorithm"), order, strict=True):
        table[column] = pd.Categorical(table[column], names)
    return table.sort_values(["problem", "algorithm", "seed", "first"])


def _rows(folder: Path) -> Iterator[tuple[str, str, int, int, int, float]]:
    for path in folder.glob("*.pkl"):
        found = _NAME.fullmatch(path.name)
        if found is None:
            raise ValueError(f"{path.name} is no result of EDRBO's study.")
        with path.open("rb") as file:
            values = np.squeeze(_Arrays(file).load()["stochastic_Y"])
        if values.shape != (_DECISIONS,):
            raise ValueError(f"{path.name} has values of shape {values.shape}.")
        problem, method = _PROBLEMS[found["problem"]], _METHODS[found["method"]]
        for first, last in PARTS:
            mean = float(values[first - 1 : last].mean())
            yield problem, method, int(found["seed"]), first, last, mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.read_edrbo")
    parser.add_argument("clone", type=Path, help="of their repository")
    read(parser.parse_args().clone / "Result").to_csv(
        PUBLISHED / "edrbo.csv", index=False, float_format="%.6g"
    )
