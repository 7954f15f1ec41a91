"""The regret while the law drifts, in each round under the law of that round."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd
import torch

from benchmarks.experiments.tournament.cases import CASES, DRIFT
from benchmarks.study.laws import Law, LawOfTheData
from benchmarks.study.truth import best_decision


@cache
def law_of_round(case: str, seed: int, step: int, rounds: int) -> Law:
    """The law that the context of a round is drawn from.

    Args:
        case: A drifting case.
        seed: Of its function.
        step: The round, from 0.
        rounds: All; in the last one the mean has moved by two standard deviations.
    """
    data = LawOfTheData(CASES[case].make(seed))
    progress = torch.linspace(0, DRIFT, rounds, dtype=torch.double)[step]
    moved = progress * data.deviation * data.adverse_direction()
    return data.law(data.clipped(data.quantiles()) + moved)


def drifting_regrets(steps: pd.DataFrame) -> pd.DataFrame:
    r"""The regret of WDRBO's (10), with a law that changes over time.

    .. math:: r_t = \max_x E_{P_t} f(x, c) - E_{P_t} f(x_t, c)

    in percent of what a blind guess loses under the law of its round.

    Args:
        steps: As ``learning`` makes them: ``case, seed, method, step, chosen, x``.

    Returns:
        ``case, seed, method, step, regret`` of the rounds that a method chose, of the
        cases whose law moves.
    """
    drifting = [case for case in steps["case"].unique() if CASES[case].drifts]
    found = []
    step_numbers: Any = steps["step"]
    rounds = int(step_numbers.max()) + 1
    chosen: Any = steps[steps["case"].isin(drifting) & steps["chosen"]]
    for (case, seed, step), rows in chosen.groupby(["case", "seed", "step"]):
        function = CASES[case].make(seed)
        law = law_of_round(case, seed, step, rounds)
        X = torch.tensor([[*x] for x in rows["x"]], dtype=torch.double)
        values = law.value(function, X)
        best, guess = best_decision(
            lambda x, f=function, p=law: p.value(f, x), function.bounds, X
        )
        regret = 100 * (best - values) / (best - guess)
        found.append(
            rows[["case", "seed", "method", "step"]].assign(regret=regret.tolist())
        )
    return pd.concat(found)
