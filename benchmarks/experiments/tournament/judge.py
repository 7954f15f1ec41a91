"""From runs to losses: every recommended decision under every deployed law."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.experiments.tournament.cases import CASES, INITIAL
from benchmarks.experiments.tournament.laws import Deployment, LawOfTheData
from benchmarks.experiments.tournament.learn import Run
from benchmarks.run.runner import one_thread
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
    """The largest value over a box, and the mean value of a blind guess.

    A search in ever smaller boxes around the best few points: values of a worst case
    have kinks, which stop a line search.

    Args:
        value: Decisions ``M x d_x`` to values ``M``.
        bounds: The box, ``2 x d_x``.
        starts: Decisions to look at as well, ``k x d_x``.

    Returns:
        The largest value found, and the mean over a Sobol set.
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
    return values.max().item(), mean


def judged(case: str, seed: int, runs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each method, checkpoint and deployment of a case and seed.

    The loss is 0 for the best fixed decision of a deployment and 1 for the mean of a
    blind guess.
    """
    function, deployments, anchors = _scales(case, seed)
    for name, deployment in deployments.items():
        best, guess = anchors[name]
        taken = [
            (method, int(checkpoint), x)
            for method, run in runs.items()
            for checkpoint, x in run["recommended"].items()
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


def learning(case: str, seed: int, runs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each method and step: what happened, and the regret."""
    function = CASES[case].make(seed)
    _, _, anchors = _scales(case, seed)
    best, guess = next(iter(anchors.values()))
    for method, run in runs.items():
        X = torch.tensor(run["x"], dtype=torch.double)
        regrets = (best - function.expected_value(X)) / (best - guess)
        for step, regret in enumerate(regrets.tolist()):
            yield {
                "case": case,
                "seed": seed,
                "method": method,
                "step": step,
                "chosen": step >= INITIAL,
                "x": run["x"][step],
                "c": run["c"][step],
                "y": run["y"][step],
                "seconds": run["seconds"][step],
                "regret": regret,
            }


def judged_seed(
    members: Sequence[Run], out: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The losses and the steps of one case and seed, on one thread.

    Args:
        members: The finished runs of all methods.
        out: The results folder.
    """
    case, seed = members[0].case, members[0].seed
    runs = {
        run.method: json.loads(run.file(out).read_text(encoding="utf-8"))
        for run in members
    }
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
