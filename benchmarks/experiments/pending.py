"""Does it pay to keep decisions that are asked in parallel apart?

The same confidence bound on three problems, always with the same number of outcomes:
decision by decision, and in batches whose decisions see the earlier ones as pending.
For these the variance shrinks (*hallucinated*, the rule of version 0.1.0), and now they
also repel each other where it does not (*repelled*).
"""

from __future__ import annotations

from pathlib import Path

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from rich.console import Console
from torch import Tensor

from benchmarks.experiments.batches import (
    BETA,
    INITIAL,
    METHODS,
    Method,
    Run,
    Setting,
    mean_and_error,
    run_method,
)
from benchmarks.run.markdown import markdown_table
from benchmarks.run.runner import one_thread
from botorch_drbo.acquisition import DistributionallyRobustUCB

PROBLEMS = ("branin_2_2", "ackley_2_1", "newsvendor")


def _repelled(
    model: SingleTaskGP, setting: Setting, tried: Tensor, seed: int
) -> AcquisitionFunction:
    return DistributionallyRobustUCB(
        model, BETA, setting.context_set, setting.objective
    )


ONE_BY_ONE = "one by one"
HALLUCINATED = next(m for m in METHODS if m.label == "UCB, hallucinated")
REPELLED = Method("UCB, repelled", _repelled)

Runs = dict[tuple[str, str], list[Run]]  # by problem and method


def run_pending(out: Path, *, seeds: int, rounds: int, q: int) -> int:
    """Run all seeds; the table in ``out`` is of the seeds done so far.

    Returns:
        The exit status, 0.
    """
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    runs: Runs = {}
    with one_thread():
        settings = [Setting(name) for name in PROBLEMS]
        for seed in range(seeds):
            for setting in settings:
                for label, method, k in (
                    (ONE_BY_ONE, REPELLED, 1),
                    (HALLUCINATED.label, HALLUCINATED, q),
                    (REPELLED.label, REPELLED, q),
                ):
                    run = run_method(method, setting, seed, rounds=rounds * q // k, q=k)
                    runs.setdefault((setting.name, label), []).append(run)
            out.write_text(report(runs, rounds=rounds, q=q), encoding="utf-8")
            console.print(f"{seed + 1} of {seeds} seeds")
    return 0


def report(runs: Runs, *, rounds: int, q: int) -> str:
    """The table, as Markdown."""
    seeds = len(next(iter(runs.values())))
    lines = [
        "# Pending decisions",
        "",
        f"`python -m benchmarks batches --pending --seeds {seeds} --rounds {rounds} "
        f"--q {q}`",
        "",
        f"{INITIAL} random decisions, then {rounds * q} in batches of {q} or one by "
        f"one; {seeds} seeds, paired. Mean ± standard error.",
        "",
    ]
    rows = []
    for (problem, label), found in runs.items():
        cells = [mean_and_error(column) for column in _columns(found, rounds)]
        gaps = torch.cat([run.gaps for run in found]).median().item()
        cells.append("" if label == ONE_BY_ONE else f"{gaps:.2g}")
        rows.append([problem, label, *cells])
    for problem in dict.fromkeys(problem for problem, _ in runs):
        new, old = (
            _columns(runs[problem, label], rounds)
            for label in (REPELLED.label, HALLUCINATED.label)
        )
        cells = [mean_and_error(a - b) for a, b in zip(new, old, strict=True)]
        rows.append([problem, "repelled - hallucinated", *cells, ""])
    head = ["problem", "method", "regret at the end", "mean over rounds"]
    head += ["regret of the decisions", "nearest two, in sides"]
    return "\n".join([*lines, *markdown_table(head, rows, left=2)]) + "\n"


def _columns(runs: list[Run], rounds: int) -> tuple[Tensor, Tensor, Tensor]:
    """Regret at the end, its mean over the rounds, and of the decisions; by seed."""
    regret = torch.stack([run.regret for run in runs])  # seeds x rounds, or x rounds q
    each = regret.shape[-1] // rounds
    decisions = torch.stack([run.batch_regret.mean() for run in runs])
    return regret[:, -1], regret[:, each - 1 :: each].mean(-1), decisions
