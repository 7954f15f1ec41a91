"""One learning run: contexts of the law of the data, decisions of one method."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import botorch_drbo
from benchmarks.experiments.tournament.cases import (
    CASES,
    DRIFT,
    INITIAL,
    METHODS,
    Size,
)
from benchmarks.experiments.tournament.laws import LawOfTheData
from benchmarks.run.config import ConfigError
from benchmarks.run.runner import one_thread
from benchmarks.run.world import World
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes import Recipe

FORMAT = 1


@dataclass(frozen=True)
class Run:
    """A learning run.

    Args:
        case: A key of ``CASES``.
        method: A key of ``METHODS``.
        seed: Picks contexts, noise, first decisions, and the function of a sample.
    """

    case: str
    method: str
    seed: int

    def __str__(self) -> str:
        """The name in messages."""
        return f"{self.case} {self.method} {self.seed}"

    def file(self, out: Path) -> Path:
        """Where it is kept when it has finished."""
        return out / "runs" / self.case / self.method / f"seed_{self.seed:04d}.json"


def runs_of(size: Size, methods: tuple[str, ...]) -> list[Run]:
    """All runs; seed by seed, so that a tournament stopped half way has whole seeds."""
    return [
        Run(case, method, seed)
        for seed in range(size.seeds)
        for case in size.cases
        for method in methods
        if CASES[case].d_c <= METHODS[method].max_contexts
    ]


def header(run: Run, size: Size, algorithm: Recipe) -> dict[str, Any]:
    """What makes a run this run."""
    return {
        "format": FORMAT,
        "case": run.case,
        "seed": run.seed,
        "contexts": size.contexts,
        "checkpoints": list(size.checkpoints),
        "algorithm": algorithm.to_dict(),
    }


def learn(run: Run, size: Size, out: Path) -> bool:
    """Do a run, unless it is there; it is written as a whole when it has finished.

    Returns:
        Whether it was done now.

    Raises:
        ConfigError: There is a run of that name with other settings.
    """
    function = CASES[run.case].make(run.seed)
    algorithm = METHODS[run.method].algorithm(function, size.search)
    about = header(run, size, algorithm)
    file = run.file(out)
    if file.exists():
        stored = json.loads(file.read_text(encoding="utf-8"))["header"]
        if stored != json.loads(json.dumps(about)):
            raise ConfigError(
                f"{file} holds another run.\n  stored: {stored}\n  asked:  {about}\n"
                "Choose another --out, or delete it."
            )
        return False
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of line searches that stop at a kink
        result = _played(run, size, algorithm)
    result = {"header": about, "version": botorch_drbo.__version__, **result}
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    half.rename(file)
    return True


def _played(run: Run, size: Size, algorithm: Recipe) -> dict[str, Any]:
    case = CASES[run.case]
    function = case.make(run.seed)
    world = World(function, run.case, run.seed)
    drift = torch.zeros(size.contexts, function.d_c, dtype=torch.double)
    if case.drifts:
        data = LawOfTheData(function)
        progress = torch.linspace(0, DRIFT, size.contexts, dtype=torch.double)
        drift = progress[:, None] * data.deviation * data.adverse_direction()
    optimizer = RobustOptimizer(
        algorithm,
        function.bounds,
        function.context_bounds,
        seed=run.seed,
        num_initial=0,  # the world gives the first decisions, to all the same
    )
    seconds: list[float] = []
    recommended: dict[int, list[float]] = {}
    for step in range(size.contexts):
        start = time.perf_counter()
        asked = step >= INITIAL
        x = optimizer.ask() if asked else world.initial_decision(step)
        seconds.append(time.perf_counter() - start if asked else 0.0)
        c = _clipped(world.context(step) + drift[step], function.context_bounds)
        optimizer.tell(x, c, world.outcome(step, x, c), closes_pending=asked)
        if step + 1 in size.checkpoints:
            recommended[step + 1] = optimizer.recommend().x.tolist()
    history = optimizer.history
    return {
        "x": history.X.tolist(),
        "c": history.C.tolist(),
        "y": history.Y.flatten().tolist(),
        "seconds": seconds,
        "recommended": recommended,
    }


def _clipped(c: Tensor, box: Tensor) -> Tensor:
    return c.clamp(box[0], box[1])
