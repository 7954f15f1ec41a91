"""The assumptions, and how the page was made."""

from __future__ import annotations

from collections import Counter

import torch

from botorch_drbo.optimizer.environment import environment
from botorch_drbo.recommendation.numbers import shown
from botorch_drbo.report.findings import Findings
from botorch_drbo.report.markup import Markup, tag
from botorch_drbo.space import (
    Category,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Variable,
)


def assumptions_section(found: Findings) -> Markup:
    """A list of what the page rests on."""
    optimizer = found.optimizer
    space, recipe = optimizer.named_space, optimizer.algorithm
    goal = "as high as possible" if optimizer.maximize else "as low as possible"
    summary = getattr(getattr(recipe, "description", None), "summary", "")
    rows = {
        "Data": found.source or "a table in Python",
        "Rows": in_words(Counter(trial.status for trial in optimizer.trials)),
        "Outcome": f"{space.outcome}, {goal}",
        "You choose": "; ".join(
            f"{name}: {_kind(variable)}" for name, variable in space.decisions.items()
        ),
        "You meet": "; ".join(
            f"{name}: {_kind(variable)}" for name, variable in space.contexts.items()
        ),
        "Constraints of the decision": (
            "; ".join(_constraint(c) for c in space.constraints) or "none"
        ),
        "Measured limits": _measured(found),
        "Recipe": f"{recipe.name}. {summary}",
        "Worst case over": found.best.searched or "not stated by the recipe",
        "Surrogate": str(recipe.options.get("surrogate") or recipe.default_surrogate),
        "Made": (
            f"{found.date:%Y-%m-%d %H:%M} with botorch_drbo "
            f"{environment()['botorch_drbo']}, BoTorch {environment()['botorch']}, "
            f"PyTorch {environment()['torch']}"
        ),
    }
    pairs = [
        part
        for name, text in rows.items()
        for part in (tag("dt", name), tag("dd", text))
    ]
    return tag("dl", *pairs, class_="facts")


def in_words(counts: Counter[str]) -> str:
    """How many trials are complete, pending, failed and withdrawn.

    Example:
        >>> in_words(Counter(["complete", "complete", "pending"]))
        '3: 2 complete, 1 pending'
    """
    order = ("complete", "pending", "failed", "withdrawn")
    parts = [f"{counts[status]} {status}" for status in order if counts[status]]
    return f"{counts.total()}: {', '.join(parts)}"


def _measured(found: Findings) -> str:
    """The limits that have to hold with a probability, which is no other's."""
    if found.best.feasibility is None:
        return "none"
    names = ", ".join(found.limits) or "not named here"
    level = found.optimizer.algorithm.options["feasibility"]
    return f"{names}; they have to hold with probability {shown(float(level))}"


def _kind(variable: Variable) -> str:
    if isinstance(variable, Category):
        return f"one of {', '.join(variable.choices)}"
    if isinstance(variable, Ordinal):
        return f"one of {', '.join(f'{choice:g}' for choice in variable.choices)}"
    ends = variable.units(torch.tensor(variable.bounds, dtype=torch.double))
    low, high = (shown(end) for end in ends.tolist())
    words = f"{low} to {high}"
    if isinstance(variable, Integer):
        return f"{words}, whole numbers"
    return f"{words}, of which factors count" if isinstance(variable, Log) else words


def _constraint(constraint: object) -> str:
    if isinstance(constraint, LinearConstraint):
        return str(constraint)
    return getattr(constraint, "__name__", type(constraint).__name__)
