"""Runs of each recipe whose journals, written by 0.2.0, are on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from botorch_drbo import RobustOptimizer
from tests.recipes_golden.cases import (
    BUDGET,
    NEEDED,
    OPTIONS,
    PRIOR,
    described,
    exactly,
    outcomes,
    problem,
    spread,
)

NUM_TOLD = 3


def runs() -> dict[str, tuple[str, dict[str, Any]]]:
    """A recipe and its options: each as it is, and each kind of option once."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        name: (name, {}) for name in OPTIONS
    }
    for name, keys in {
        "dro": list(OPTIONS["dro"]),
        "ts_bocu": ["sensitive", "mean-risk", "expectation"],
        "wdrbo": ["spread", "width", "radius schedule, forgetting"],
        "phased_gp_us": ["paper", "ours"],
        "regret_balancing": ["guesses"],
    }.items():
        for key in keys:
            found[f"{name}, {key}"] = name, OPTIONS[name][key](1)
    return found


def write(path: Path, name: str, options: dict[str, Any]) -> None:
    """Ask and tell a few times; the last decision is the recipe's own."""
    space = problem(1).space
    options = {**BUDGET, **NEEDED.get(name, {}), "hyperparameters": PRIOR, **options}
    optimizer = RobustOptimizer(
        name,
        space.bounds,
        space.context_bounds,
        seed=1,
        num_initial=NUM_TOLD - 1,
        journal=path,
        **options,
    )
    for c in 10.0 + 2.0 * spread(NUM_TOLD, 1):
        x = optimizer.ask()
        context = c.unsqueeze(0)
        optimizer.tell(x, context, outcomes(x, context))


def follow(path: Path) -> list[str]:
    """What a resumed run recommends and asks next, in hexadecimal."""
    optimizer = RobustOptimizer.resume(path)
    return [*described(optimizer.recommend()), *exactly(optimizer.ask())]
