"""From runs to losses: every recommendation under every law, in one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import torch

from benchmarks.experiments.claims.cases import CASES
from benchmarks.experiments.claims.learn import COMMON
from benchmarks.experiments.claims.truth import RARE, SETTLED, SHIFTED, truth_of
from benchmarks.study import judge as study
from benchmarks.study.cases import INITIAL

LAWS = {SETTLED: "settled", SHIFTED: "shifted", RARE: "rare"}
"""The law -> the column with the losses under it."""


def judged(rows: pd.DataFrame, workers: int) -> pd.DataFrame:
    """One row for each recommendation, with its losses under all laws.

    Args:
        rows: Of ``results.parquet``.
        workers: Processes.

    Returns:
        ``case, seed, learner, told, surrogate, rule``; the losses ``settled``,
        ``shifted``, ``rare`` in percent; ``regret``, the mean loss of the decisions
        asked so far if nothing shifts (none of the common data's); ``beyond_settled``
        and ``beyond_shifted``, the share of fresh outcomes beyond two deviations of
        that surrogate; ``gain`` and ``price`` of the robust decision with the function
        known.
    """
    table = pd.DataFrame(study.judged(rows, judge, workers)["losses"])
    places = {case: place for place, case in enumerate(CASES)}
    return table.sort_values(
        ["case", "seed"],
        key=lambda column: column.replace(places),
        kind="stable",
        ignore_index=True,
    )


def judge(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a block."""
    return {
        "losses": [
            row for who, run in runs.items() for row in _run(case, seed, who, run)
        ]
    }


def _run(
    case: str, seed: int, learner: str, run: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    truth = truth_of(case, seed)
    asked = torch.tensor([[*x] for x in run["x"]], dtype=torch.double)
    regrets = truth.losses(asked)[SETTLED]
    for step, text in run.set_index("iteration")["found"].dropna().items():
        told = int(str(step)) + 1
        for surrogate, found in json.loads(str(text)).items():
            decisions = found["decisions"]
            X = torch.tensor([*decisions.values()], dtype=torch.double)
            losses = truth.losses(X)
            own = regrets[INITIAL:told]
            for place, rule in enumerate(decisions):
                yield {
                    "case": case,
                    "seed": seed,
                    "learner": learner,
                    "told": told,
                    "surrogate": surrogate,
                    "rule": rule,
                    **{LAWS[law]: losses[law][place] for law in LAWS},
                    "regret": None if learner == COMMON else sum(own) / len(own),
                    "beyond_settled": found["settled"],
                    "beyond_shifted": found["shifted"],
                    "gain": truth.known.gain,
                    "price": truth.known.price,
                }
