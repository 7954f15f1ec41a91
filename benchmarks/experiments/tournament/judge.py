"""From runs to losses: every recommended decision under every deployed law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from benchmarks.experiments.tournament.cases import CASES, INITIAL
from benchmarks.experiments.tournament.laws import Deployment, LawOfTheData
from benchmarks.run.engine import one_thread
from botorch_drbo.sampling import sobol, sobol_in_box
from botorch_drbo.test_functions.base import RobustTestFunction

_NUM_GUESSES = 2**9  # decisions of a Sobol set, for the mean of a blind guess
_NUM_LEADERS = 4
_NUM_NEAR = 32  # points around each leader
_ROUNDS = 7
_SHRINK = 0.4


def best_decision(
    value: Callable[[Tensor], Tensor], bounds: Tensor, starts: Tensor
) -> tuple[float, float]:
    """The largest value over a box and the mean of a blind guess: ``search_best``."""
    return search_best(value, bounds, starts)[1:]


def search_best(
    value: Callable[[Tensor], Tensor], bounds: Tensor, starts: Tensor
) -> tuple[Tensor, float, float]:
    """The best decision of a box, its value, and the mean value of a blind guess.

    A search in ever smaller boxes around the best few points: values of a worst case
    have kinks, which stop a line search.

    Args:
        value: Decisions ``M x d_x`` to values ``M``.
        bounds: The box, ``2 x d_x``.
        starts: Decisions to look at as well, ``k x d_x``.

    Returns:
        The best decision found, ``d_x``, its value, and the mean over a Sobol set.
    """
    side = bounds[1] - bounds[0]
    guesses = sobol_in_box(_NUM_GUESSES, bounds, 0)
    values = value(guesses)
    mean = values.mean().item()
    points, values = torch.cat([guesses, starts]), torch.cat([values, value(starts)])
    width = 0.5
    for number in range(_ROUNDS):
        top = values.topk(_NUM_LEADERS).indices
        points, values = points[top], values[top]
        width *= _SHRINK
        near = sobol(_NUM_LEADERS * _NUM_NEAR, bounds.shape[-1], number + 1) - 0.5
        near = near.reshape(_NUM_LEADERS, _NUM_NEAR, -1) * width * side
        fresh = (points.unsqueeze(1) + near).flatten(0, 1).clamp(bounds[0], bounds[1])
        points = torch.cat([points, fresh])
        values = torch.cat([values, value(fresh)])
    best = values.argmax()
    return points[best], values[best].item(), mean


def judged(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> Iterator[dict[str, Any]]:
    """One row for each method, checkpoint and deployment of a case and seed.

    The loss is 0 for the best fixed decision of a deployment and 1 for the mean of a
    blind guess.
    """
    function, deployments, anchors = _scales(case, seed)
    for name, deployment in deployments.items():
        best, guess = anchors[name]
        taken = [
            (method, iteration + 1, [*x])
            for method, run in runs.items()
            for iteration, x in run.set_index("iteration").recommended.dropna().items()
        ]
        X = torch.tensor([x for _, _, x in taken], dtype=torch.double)
        values = deployment.value(function, X).tolist()
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
    function = CASES[case].make(seed)
    _, _, anchors = _scales(case, seed)
    best, guess = next(iter(anchors.values()))
    for method, run in runs.items():
        X = torch.tensor([[*x] for x in run.x], dtype=torch.double)
        regrets = (best - function.expected_value(X)) / (best - guess)
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


def judged_seed(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The losses and the steps of one case and seed, on one thread.

    Args:
        case: A key of ``CASES``.
        seed: The seed.
        runs: Method -> the rows of its run.
    """
    with one_thread():
        return list(judged(case, seed, runs)), list(learning(case, seed, runs))


Anchors = Mapping[str, tuple[float, float]]


def _scales(
    case: str, seed: int
) -> tuple[RobustTestFunction, Mapping[str, Deployment], Anchors]:
    """The function, its deployments, and the best and the blind value of each."""
    function = CASES[case].make(seed)
    # A fixed function is the same under all seeds.
    return _anchored(case, seed if function.name.startswith("smooth") else 0)


@cache
def _anchored(
    case: str, seed: int
) -> tuple[RobustTestFunction, Mapping[str, Deployment], Anchors]:
    function = CASES[case].make(seed)
    deployments = LawOfTheData(function).deployments()
    known = function.optimal_decision.unsqueeze(0)
    anchors: dict[str, tuple[float, float]] = {}
    with torch.no_grad():
        for name, deployment in deployments.items():

            def value(X: Tensor, judge: Deployment = deployment) -> Tensor:
                return judge.value(function, X)

            anchors[name] = best_decision(value, function.bounds, known)
    return function, deployments, anchors
