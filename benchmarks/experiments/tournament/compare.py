"""Paired comparisons with one baseline, over all cases and seeds of a situation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.experiments.tournament.cases import CASES, Case
from benchmarks.run.statistics import holm, wilcoxon

WHILE_LEARNING = "regret while learning"
SETTLED = "nothing shifts"
_DETECTED = 1.96 + 0.8416  # normal quantiles of 97.5% and 80%


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


@dataclass(frozen=True)
class Comparison:
    """One method against the baseline, on the blocks that it played.

    Args:
        loss: Its mean loss; each case counts the same.
        difference: Minus that of the baseline on the same blocks; negative is better.
        error: The standard error of the difference, over the seeds within cases.
        wins: In how many blocks its loss is lower.
        blocks: Cases times seeds.
        p: Of Wilcoxon's signed-rank test over the blocks, after Holm's correction for
            the number of methods; 1 for the baseline.
    """

    loss: float
    difference: float
    error: float
    wins: int
    blocks: int
    p: float

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at 5%."""
        return self.p < 0.05

    @property
    def deviation(self) -> float:
        """The standard deviation of a block's difference, pooled over the cases."""
        return self.error * math.sqrt(self.blocks)

    def blocks_for(self, points: float) -> int:
        """How many blocks show a true difference of this size.

        ``((1.96 + .84) * deviation / points)^2``: a t test at 5% then finds it in four
        of five repetitions, without a correction for other tests.

        Args:
            points: The difference, in percentage points; its sign does not matter.
        """
        return math.ceil((_DETECTED * self.deviation / points) ** 2)


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


def compare(frame: pd.DataFrame, baseline: str) -> dict[str, Comparison]:
    """Every method against the baseline."""
    # pandas' annotations leave open what most expressions are
    columns: dict[str, Any] = {str(name): frame[name].dropna() for name in frame}
    differences: dict[str, Any] = {
        name: (losses - columns[baseline]).dropna() for name, losses in columns.items()
    }
    rivals = [name for name in differences if name != baseline]
    corrected = holm([wilcoxon(differences[name].tolist()) for name in rivals])
    p = {baseline: 1.0, **dict(zip(rivals, corrected, strict=True))}
    result = {}
    for name, d in differences.items():
        by_case = d.groupby(level="case")
        squared = (by_case.var() / by_case.count()).sum()
        result[name] = Comparison(
            loss=float(columns[name].groupby(level="case").mean().mean()),
            difference=float(by_case.mean().mean()),
            error=math.sqrt(squared) / by_case.ngroups,
            wins=int((d < 0).sum()),
            blocks=len(d),
            p=p[name],
        )
    return result


def _by_method(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    table = rows.pivot_table(index=["case", "seed"], columns="method", values=column)
    order = list(dict.fromkeys(rows["method"]))  # as the methods were given
    return table.reindex(columns=order)
