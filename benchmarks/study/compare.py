"""Paired comparisons over blocks, and their way of writing numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.run.statistics import holm, wilcoxon

BLOCK = ["case", "seed"]
_DETECTED = 1.96 + 0.8416  # normal quantiles of 97.5% and 80%


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

    def __str__(self) -> str:
        """The difference and its error."""
        return text_of(self.difference, self.error)

    def blocks_for(self, points: float) -> int:
        """How many blocks show a true difference of this size.

        ``((1.96 + .84) * deviation / points)^2``: a t test at 5% then finds it in four
        of five repetitions, without a correction for other tests.

        Args:
            points: The difference, in percentage points; its sign does not matter.
        """
        return math.ceil((_DETECTED * self.deviation / points) ** 2)


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


@dataclass(frozen=True)
class Difference:
    """A candidate less the baseline, over the blocks that both have.

    Args:
        mean: The mean difference; negative is better.
        error: Its standard error over the blocks; NaN of a single one.
        p: Of Wilcoxon's signed-rank test, one-sided: that the candidate is lower.
        wins: In how many blocks it is lower.
        blocks: How many blocks both have.
    """

    mean: float
    error: float
    p: float
    wins: int
    blocks: int

    def __str__(self) -> str:
        """The mean and its error."""
        return text_of(self.mean, self.error)


def difference(
    table: pd.DataFrame, candidate: str, baseline: str, column: str, measure: str
) -> Difference | None:
    """A candidate against the baseline.

    Args:
        table: A row for each block and whoever played it.
        candidate: An entry of the column.
        baseline: Another.
        column: That says who.
        measure: The column that is compared.

    Returns:
        The difference; None if no block has both.
    """
    columns: Any = table.pivot_table(measure, BLOCK, column)
    if not {candidate, baseline} <= set(columns):
        return None
    d = (columns[candidate] - columns[baseline]).dropna()
    if d.empty:
        return None
    return Difference(
        mean=float(d.mean()),
        error=float(d.sem()),
        p=lower(d.to_numpy()),
        wins=int((d < 0).sum()),
        blocks=len(d),
    )


def lower(differences: np.ndarray) -> float:
    """The one-sided p value of Wilcoxon's test that differences are below zero.

    Example:
        >>> lower(np.array([-1.0, -2.0, -3.0, -4.0, -5.0]))
        0.03125
    """
    if not np.any(differences):
        return 1.0
    test: Any = stats.wilcoxon(differences, zero_method="zsplit", alternative="less")
    return float(test.pvalue)


def text_of(difference: float, error: float) -> str:
    """A difference and its standard error, as tables show them.

    Example:
        >>> text_of(-1.23, 0.45)
        '-1.2 ± 0.5'
    """
    return f"{difference:+.1f} ± {error:.1f}"


def p_text(p: float) -> str:
    """A p value in two digits.

    Example:
        >>> p_text(0.0123), p_text(0.0001)
        ('.012', '< .001')
    """
    return "< .001" if p < 0.001 else f"{p:.2g}".removeprefix("0")
