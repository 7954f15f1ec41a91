"""The situations of the tournament: what the world does after the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.experiments.tournament.cases import CASES
from benchmarks.study.cases import Case

WHILE_LEARNING = "regret while learning"
SETTLED = "nothing shifts"


@dataclass(frozen=True)
class Situation:
    """What the world does, and on which cases it is looked at.

    Args:
        deployment: What the decisions are judged by.
        few: Whether the decisions are those of the first checkpoint.
        cases: Which cases count.
    """

    deployment: str
    few: bool = False
    cases: Callable[[Case], bool] = lambda case: not case.drifts


SITUATIONS: Mapping[str, Situation] = {
    SETTLED: Situation(SETTLED),
    "nothing shifts, 10 contexts": Situation(SETTLED, few=True),
    "nothing shifts, noise": Situation(SETTLED, cases=lambda case: case.noisy),
    "nothing shifts, 4 or 6 columns": Situation(
        SETTLED, cases=lambda case: case.d_c >= 4
    ),
    "mean moves 1 sd, any way": Situation("mean moves 1 sd, any way"),
    "mean moves 1 sd, badly": Situation("mean moves 1 sd, badly"),
    "mean moves 2 sd, any way": Situation("mean moves 2 sd, any way"),
    "mean moves 2 sd, badly": Situation("mean moves 2 sd, badly"),
    "drifts 2 sd while learning": Situation(
        "mean moves 2 sd, badly", cases=lambda case: case.drifts
    ),
    "heavy tails": Situation("heavy tails"),
    "rare bad regime": Situation("rare bad regime"),
    "worst within 1 sd": Situation("worst within 1 sd"),
    "worst within 1 sd, 10 contexts": Situation("worst within 1 sd", few=True),
    "worst within 2 sd": Situation("worst within 2 sd"),
}


def frames(losses: pd.DataFrame, steps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Situation -> losses in percent, one row for each case and seed, by method.

    Situations that no case of the tournament has are left out.
    """
    few, last = losses["contexts"].min(), losses["contexts"].max()
    found = {}
    for name, situation in SITUATIONS.items():
        cases = [c for c in losses["case"].unique() if situation.cases(CASES[c])]
        chosen: Any = losses[
            (losses["deployment"] == situation.deployment)
            & (losses["contexts"] == (few if situation.few else last))
            & losses["case"].isin(cases)
        ]
        if len(chosen):
            found[name] = 100 * _by_method(chosen, "loss")
    settled = [c for c in steps["case"].unique() if not CASES[c].drifts]
    chosen = steps[steps["chosen"] & steps["case"].isin(settled)]
    found[WHILE_LEARNING] = 100 * _by_method(chosen, "regret")
    return found


def _by_method(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    table = rows.pivot_table(index=["case", "seed"], columns="method", values=column)
    order = list(dict.fromkeys(rows["method"]))  # as the methods were given
    return table.reindex(columns=order)
