"""The basis of the answer: the model check, the columns that matter, the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from botorch_drbo.optimizer.journal import environment
from botorch_drbo.plotting.history import plot_history
from botorch_drbo.plotting.model import plot_model_check
from botorch_drbo.recommendation.model_check import ModelCheck
from botorch_drbo.recommendation.promise import shown
from botorch_drbo.recommendation.recommendation import row_words
from botorch_drbo.report.answer import verdict
from botorch_drbo.report.findings import Findings
from botorch_drbo.report.markup import (
    Markup,
    disclosed,
    figure,
    joined,
    paragraphs,
    rough,
    table,
    tag,
)
from botorch_drbo.space import (
    Category,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Variable,
)
from botorch_drbo.space.constraints import function_name

if TYPE_CHECKING:
    import pandas as pd

_LAST = 15  # rows of the history


def model_section(found: Findings) -> Markup:
    """How well outcomes are predicted that the model has not seen."""
    check, outcome = found.best.model_check, found.best.outcome
    if check is None:
        return tag(
            "p",
            "The model has no closed form to leave outcomes out, so that it was not "
            "checked.",
        )
    # Without a title: the page says it.
    drawn = figure(
        lambda ax: plot_model_check(check, ax, outcome=outcome).set_title(""),
        "Each dot is one row: what happened against what the model says of it from "
        "other rows, with its 95% interval. Dots on the line are predicted exactly; "
        f"numbers name the {found.row_name}s that surprise most.",
    )
    # The numbers of trials need a word on how they begin, those of lines do not.
    first = "" if found.lines is not None else " (trial 0 is the first one of the data)"
    surprising = [_surprise(check, row) for row in check.worst]
    return joined(
        paragraphs(verdict(check)),
        drawn,
        tag(
            "p",
            f"The rows that surprise most{first}. Check whether they are right:",
        ),
        table([found.row_name, outcome, "predicted", "95% from", "95% to"], surprising),
        disclosed("The check in full", tag("pre", str(check))),
    )


def importance_section(found: Findings) -> Markup:
    """Bars: by how much the outcome differs if one column alone changes."""
    space, best = found.optimizer.named_space, found.best
    rows = sorted(
        zip(
            [*space.decisions, *space.contexts],
            found.importance.mean.tolist(),
            found.importance.possible.tolist(),
            strict=True,
        ),
        key=lambda row: row[1],
        reverse=True,
    )
    largest = max(rows[0][1], 1e-300)
    bars = [
        joined(
            tag(
                "dt",
                name,
                tag(
                    "small",
                    " you choose it" if name in space.decisions else " you meet it",
                ),
            ),
            tag(
                "dd",
                tag(
                    "span", "", class_="bar", style=f"width:{60 * size / largest:.1f}%"
                ),
                tag("span", rough(size), class_="size"),
                tag("small", f"{rough(possible)} with what it does not know"),
            ),
        )
        for name, size, possible in rows
    ]
    return joined(
        paragraphs(
            f"By the model's mean {rows[0][0]} makes the largest difference: about "
            f"{rough(rows[0][1])} of {best.outcome}."
        ),
        tag("dl", *bars, class_="bars"),
        paragraphs(
            "How it is measured: two situations are drawn that differ in this column "
            "alone, and the number is the typical difference (root of the mean "
            f"square) of the {best.outcome} that the model expects of them. Decisions "
            "are drawn from all that are allowed, contexts from those expected. What "
            "the model expects is smoother than the truth: the small number is the "
            "same of what may be true. Where it is much larger, the data do not say "
            "yet whether the column matters."
        ),
    )


def history_section(found: Findings) -> Markup:
    """The outcomes in their order, the best one, and the last rows."""
    optimizer, outcome = found.optimizer, found.best.outcome
    done = optimizer.history.dropna(subset=[outcome])
    maximize = optimizer.maximize
    outcomes = done[outcome].tolist()
    place = outcomes.index(max(outcomes) if maximize else min(outcomes))
    at, top = done.index[place], done.to_dict("records")[place]
    size = top.pop(outcome)
    word = "highest" if maximize else "lowest"
    last = with_measured(optimizer.table(), found.limits).tail(_LAST)
    rows = [
        [found.row(int(number)), *row]
        for number, row in zip(last.index, last.to_numpy().tolist(), strict=True)
    ]
    text = (
        f"The {word} {outcome} so far is {shown(float(size))}, in {found.row_name} "
        f"{found.row(int(at))} ({row_words(top)}). One outcome has noise and a context "
        "of its own, so the best one seen need not be the best decision."
    )
    words = f"Each {outcome}, in the order of the data."
    return joined(
        tag("p", text),
        figure(lambda ax: plot_history(optimizer, ax), words),
        disclosed(
            f"The last {len(rows)} rows",
            table([found.row_name, *(str(name) for name in last.columns)], rows),
        ),
    )


_LIMIT = re.compile(r"\s*(.+?)\s*(<=|>=)\s*(.+?)\s*")


def with_measured(trials: pd.DataFrame, limits: Sequence[str]) -> pd.DataFrame:
    """The table with what was measured, in place of what is left to its limits.

    Those are columns before the status: of each name in turn the lower, the upper one.
    """
    found = [match.groups() for text in limits if (match := _LIMIT.fullmatch(text))]
    first = list(dict.fromkeys(name for name, _, _ in found))
    found.sort(key=lambda part: (first.index(part[0]), part[1] == "<="))
    rooms = trials.columns[len(trials.columns) - 1 - len(found) : -1]
    if not found or not str(rooms[0]).startswith("constraint1"):
        return trials
    shown = trials.drop(columns=rooms)
    for room, (name, sense, bound) in zip(rooms, found, strict=True):
        left = trials[room]
        value = float(bound) - left if sense == "<=" else float(bound) + left
        if name not in shown:
            shown.insert(len(shown.columns) - 1, name, value)
    return shown


def _surprise(check: ModelCheck, row: int) -> list[object]:
    i = check.trials.index(row)
    columns = (check.outcomes, check.predicted, check.lower, check.upper)
    return [row, *(column[i].item() for column in columns)]


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
            "; ".join(
                str(c) if isinstance(c, LinearConstraint) else function_name(c)
                for c in space.constraints
            )
            or "none"
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
    """How many trials are complete, pending, failed and withdrawn."""
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
