"""Tests of whether methods differ: paired on one problem, by ranks across problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats


def wilcoxon(differences: Sequence[float]) -> float:
    """The two-sided p value of Wilcoxon's signed-rank test that the median is zero.

    Exact up to 50 differences without ties, as SciPy does it; 1 if all are zero.
    """
    if not np.any(differences):
        return 1.0
    result: Any = stats.wilcoxon(differences, zero_method="zsplit")
    return float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of one false finding among all.

    The i-th smallest of m is multiplied by m - i + 1, and none may be below one that
    was smaller.
    """
    m, corrected, highest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values)):
        highest = max(highest, min(1.0, (m - rank) * p_values[i]))
        corrected[i] = highest
    return corrected


@dataclass(frozen=True)
class Ranks:
    """Ranks of methods over problems (Demšar 2006).

    Args:
        mean: Method -> its mean rank, the best first; ties share a rank.
        problems: Over how many problems.
        p_value: Of Friedman's test that all methods are alike; None for two methods.
        critical_difference: Mean ranks that differ by less do not differ at 5%, by
            Nemenyi's test.
    """

    mean: pd.Series
    problems: int
    p_value: float | None
    critical_difference: float

    def groups(self) -> list[tuple[float, float]]:
        """The longest spans of ranks within which no two methods differ."""
        ranks, spans = self.mean.tolist(), []
        for low in ranks:
            high = max(r for r in ranks if r <= low + self.critical_difference)
            if high > low and not any(a <= low and high <= b for a, b in spans):
                spans.append((low, high))
        return spans


def rank(scores: pd.DataFrame) -> Ranks:
    """Rank methods by their scores.

    Args:
        scores: ``problems x methods``, lower is better; at least two of each.
    """
    problems, methods = scores.shape
    ranks = scores.rank(axis=1)
    p_value = None
    if methods > 2:
        columns = [scores[method].to_numpy() for method in scores]
        p_value = float(stats.friedmanchisquare(*columns).pvalue)
    quantile = stats.studentized_range.ppf(0.95, methods, math.inf) / math.sqrt(2)
    return Ranks(
        mean=ranks.mean().sort_values(kind="stable"),
        problems=problems,
        p_value=p_value,
        critical_difference=float(
            quantile * math.sqrt(methods * (methods + 1) / (6 * problems))
        ),
    )
