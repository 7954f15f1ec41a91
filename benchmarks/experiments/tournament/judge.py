"""From runs to losses: every recommended decision under every deployed law."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from benchmarks.experiments.tournament.cases import CASES
from benchmarks.study.cases import INITIAL
from benchmarks.study.laws import Deployment, LawOfTheData
from benchmarks.study.truth import best_decision, truths
from botorch_drbo.test_functions.base import RobustTestFunction


def judged(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> Iterator[dict[str, Any]]:
    """One row for each method, checkpoint and deployment of a case and seed.

    The loss is 0 for the best fixed decision of a deployment and 1 for the mean of a
    blind guess.
    """
    truth = truth_of(case, seed)
    for name, deployment in truth.deployments.items():
        best, guess = truth.anchors[name]
        taken = [
            (method, iteration + 1, [*x])
            for method, run in runs.items()
            for iteration, x in run.set_index("iteration").recommended.dropna().items()
        ]
        X = torch.tensor([x for _, _, x in taken], dtype=torch.double)
        values = deployment.value(truth.function, X).tolist()
        for (method, checkpoint, _), value in zip(taken, values, strict=True):
            yield {
                "case": case,
                "seed": seed,
                "method": method,
                "contexts": checkpoint,
                "deployment": name,
                "value": value,
                "best": best,
                "guess": guess,
                "loss": (best - value) / (best - guess),
            }


def learning(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> Iterator[dict[str, Any]]:
    """One row for each method and step: what happened, and the regret."""
    truth = truth_of(case, seed)
    best, guess = next(iter(truth.anchors.values()))
    for method, run in runs.items():
        X = torch.tensor([[*x] for x in run.x], dtype=torch.double)
        regrets = (best - truth.function.expected_value(X)) / (best - guess)
        for row, regret in zip(run.to_dict("records"), regrets.tolist(), strict=True):
            yield {
                "case": case,
                "seed": seed,
                "method": method,
                "step": row["iteration"],
                "chosen": row["iteration"] >= INITIAL,
                "x": [*row["x"]],
                "c": [*row["c"]],
                "y": row["y"],
                "seconds": row["seconds"],
                "regret": regret,
            }


def judge(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> dict[str, list[dict[str, Any]]]:
    """The losses and the steps of a block.

    Args:
        case: A key of ``CASES``.
        seed: The seed.
        runs: Method -> the rows of its run.
    """
    return {
        "losses": list(judged(case, seed, runs)),
        "steps": list(learning(case, seed, runs)),
    }


@dataclass(frozen=True, eq=False)
class Truth:
    """A function, and everything that decisions are judged by."""

    function: RobustTestFunction

    @cached_property
    def deployments(self) -> Mapping[str, Deployment]:
        """The laws and balls; the first is the law of the data."""
        return LawOfTheData(self.function).deployments()

    @cached_property
    def anchors(self) -> Mapping[str, tuple[float, float]]:
        """The best and the blind value of each."""
        known, anchors = self.function.optimal_decision.unsqueeze(0), {}
        for name, deployment in self.deployments.items():

            def value(X: Tensor, judge: Deployment = deployment) -> Tensor:
                return judge.value(self.function, X)

            with torch.no_grad():
                anchors[name] = best_decision(value, self.function.bounds, known)
        return anchors


truth_of = truths(CASES, lambda case, seed: Truth(case.make(seed)))
"""What is true of a case under a seed."""
