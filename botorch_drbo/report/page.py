"""The page: its sections, what changes the answer among them, and an embedded style."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import torch

from botorch_drbo._validation import check_flag, check_new_file
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.optimizer.evaluations import shown_progress
from botorch_drbo.plotting.model import plot_policy
from botorch_drbo.plotting.robustness import plot_robustness_profile
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recommendation.promise import LEVEL, shown
from botorch_drbo.recommendation.recommendation import interval_words
from botorch_drbo.report.answer import (
    decision_section,
    next_section,
    price_section,
    scope_section,
    slices_section,
)
from botorch_drbo.report.evidence import (
    assumptions_section,
    history_section,
    importance_section,
    model_section,
)
from botorch_drbo.report.findings import STEPS, Findings, Rounded
from botorch_drbo.report.markup import Markup, figure, joined, paragraphs, table, tag
from botorch_drbo.space import Category

if TYPE_CHECKING:
    import pandas as pd


_LEAST_MOVE = 1e-4  # of the bounds: a decision that moves less is the same
_ROUNDING = 1e-6  # of the outcome: a smaller change is none


def radius_section(found: Findings) -> Markup:
    """The worst case of the decision by how far the contexts shift."""
    profile, best = found.profile, found.best
    if isinstance(profile, str):
        return tag("p", profile)
    values, beliefs = profile.values.tolist(), found.beliefs
    intervals = [interval_words(belief, best.level) for belief in beliefs]
    share = f"{best.level:.0%}"

    def value_at(i: int) -> str:
        return f"{shown(values[i])} ({share}: {intervals[i]})"

    if found.has_radius:
        axis = "shift, in multiples of the radius that counts"
        now = found.steps.index(1.0)
        text = (
            f"If the contexts come as expected, the model expects {best.outcome} to be "
            f"{value_at(0)} on average; if they shift as far as was taken to be "
            f"possible, at worst {value_at(now)}; four times as far, {value_at(-1)}."
        )
    else:
        axis = "share of cases with the worst contexts instead"
        now = found.steps.index(0.2)
        text = (
            f"The recipe {found.optimizer.algorithm.name} has no radius: it takes the "
            f"contexts as they are expected, where the model expects {best.outcome} to "
            f"be {value_at(0)} on average. If the worst contexts come in a fifth of "
            f"the cases instead, it is {value_at(now)}."
        )
    if max(values) - min(values) <= _ROUNDING * max(map(abs, values)):
        text = (
            f"However the contexts shift, the model expects the same of this "
            f"decision, {value_at(0)}; what it cannot rule out, four times as far: "
            f"{share}: {intervals[-1]}."
        )
        return tag("p", text)
    # By multiples, or shares, in place of the units of the set.
    by_step = replace(profile, radii=torch.tensor(found.steps, dtype=torch.double))
    drawn = figure(
        lambda ax: plot_robustness_profile(
            by_step,
            ax,
            label="recommended decision",
            xlabel=axis,
            ylabel=f"worst-case {best.outcome}",
        ),
        f"The worst-case {best.outcome} of the decision if the contexts shift.",
    )
    moves = [[moved] if (moved := found.reach(step)) else [] for step in found.steps]
    columns = zip(found.steps, moves, values, intervals, strict=True)
    rows = [[step, *moved, value, within] for step, moved, value, within in columns]
    units = ["on average the contexts move by"] if any(moves) else []
    head = ["radius, times" if found.has_radius else "share of cases"]
    head += [*units, f"worst-case {best.outcome}", f"{share} interval"]
    meaning = (
        "Radius 1 is that of the recommendation. The worst case is over "
        f"{best.searched}."
        if found.has_radius
        else ""
    )
    return joined(tag("p", text), drawn, table(head, rows), paragraphs(meaning))


def policy_section(found: Findings) -> Markup:
    """The decision if one context column is known before the choice."""
    tables = found.policies
    if isinstance(tables, str):
        return tag("p", f"There is no policy: {tables}")
    parts = [_policy(found, name, rows) for name, rows in tables.items()]
    left_out = len(found.optimizer.named_space.contexts) - len(tables)
    return joined(
        paragraphs(
            "If you learn one of these before you choose, choose by this table; the "
            "other contexts stay unknown.",
            f"{left_out} further columns were not looked up." if left_out else "",
        ),
        *parts,
    )


def _policy(found: Findings, name: str, rows: pd.DataFrame) -> Markup:
    decisions = found.optimizer.named_space.decisions
    written = found.in_digits(rows.loc[:, list(decisions)])
    shifts, same = [], []
    for decision, variable in decisions.items():
        column = rows[decision].tolist()
        if isinstance(variable, Category):
            kinds = list(dict.fromkeys(column))
            words = f"{decision} {' or '.join(kinds)}"
            (shifts if len(kinds) > 1 else same).append(words)
        else:
            words = written[decision].tolist()
            low = words[column.index(min(column))]
            high = words[column.index(max(column))]
            words = (
                f"{decision} {low}"
                if low == high
                else f"{decision} from {low} to {high}"
            )
            (shifts if low != high else same).append(words)
    text = (
        f"By {name}: {', '.join(shifts)}."
        if shifts
        else f"For each {name} the model chooses the same."
    )
    if same and shifts:
        text += f" The same for all: {', '.join(same)}."
    moving = _most_moved(found, rows)
    numeric = not isinstance(found.optimizer.named_space.contexts[name], Category)
    parts = [tag("h3", name), tag("p", text)]
    if moving is not None and numeric and len(rows) > 1:
        without = float(found.best.x[moving].iloc[0])
        parts.append(
            figure(
                lambda ax: plot_policy(
                    rows[[name]],
                    rows[list(decisions)],
                    ax,
                    column=name,
                    decision=moving,
                    without=without,
                ),
                f"{moving} by {name}; the dashed line is the recommended decision, "
                f"for which {name} need not be known.",
            )
        )
    head = [str(column) for column in rows.columns]
    cells = rows.assign(**{name: written[name].tolist() for name in decisions})
    return joined(*parts, table(head, cells.to_numpy().tolist()))


def _most_moved(found: Findings, rows: pd.DataFrame) -> str | None:
    """The number among the decisions that moves most, in widths of its bounds."""
    moves = {}
    for decision, variable in found.optimizer.named_space.decisions.items():
        if not isinstance(variable, Category):
            numbers = variable.encode(rows[decision].tolist(), lambda i: "a decision")
            low, high = variable.bounds
            moves[decision] = (numbers.max() - numbers.min()).item() / (high - low)
    most = max(moves, key=lambda name: moves[name], default=None)
    return most if most is not None and moves[most] > _LEAST_MOVE else None


_SECTIONS = {
    "decision": ("What to do", decision_section),
    "scope": ("On each context", scope_section),
    "price": ("What a better worst case costs", price_section),
    "model": ("How good the model is", model_section),
    "radius": ("If the contexts shift", radius_section),
    "policy": ("If you know a context beforehand", policy_section),
    "slices": ("What each decision does", slices_section),
    "importance": ("Which columns matter", importance_section),
    "history": ("What was tried", history_section),
    "next": ("What to try next", next_section),
    "assumptions": ("What was assumed", assumptions_section),
}


def write_report(
    optimizer: NamedOptimizer,
    path: str | os.PathLike[str],
    *,
    context_set: ContextSet | None = None,
    radius: RoundRadius | None = None,
    level: float = LEVEL,
    q: int = 3,
    source: str = "",
    limits: Sequence[str] = (),
    rounded: Rounded | None = None,
    lines: Sequence[int] | None = None,
    progress: bool = False,
) -> None:
    r"""Write one HTML page with the decision, its intervals, and checks of the model.

    It needs neither a server nor a network: styles and pictures are embedded. The run
    is not changed.

    Args:
        optimizer: The run, with at least one outcome.
        path: The file that is written.
        context_set: The distribution of the context; None for the recipe's own.
        radius: The radius of the ambiguity set, as for ``NamedOptimizer.ask``.
        level: The level of all intervals, a probability.
        q: How many decisions to propose next.
        source: The source of the data, for the reader.
        limits: The measured constraints in words, such as ``"runoff <= 9"``: the
            optimizer knows their numbers only.
        rounded: How decisions are formatted: a function that takes a table of decisions
            and a table of those from which they must differ, and returns a table of
            strings. None for four significant digits.
        lines: The line of each trial in the source, by its number. Rows are then named
            by their lines, otherwise by the numbers of the trials.
        progress: Whether to show a bar; needs ``rich``.

    Raises:
        InputDataError: There is no outcome yet, the optimizer has no named variables,
            or an argument is wrong; ``path`` is looked at first.
        OSError: The file cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from botorch_drbo import NamedOptimizer, Space
        >>> from botorch_drbo.report import write_report
        >>> space = Space({"stock": (0, 1)}, {"demand": (0, 1)}, outcome="profit")
        >>> few = {"num_restarts": 1, "raw_samples": 8, "surrogate": "botorch"}
        >>> opt = NamedOptimizer("erbo", space, **few)
        >>> opt.tell({"stock": [0.1, 0.9]}, {"demand": [0.2, 0.5]}, [1.0, 2.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "report.html"
        ...     write_report(opt, path, q=1)
        ...     print(path.read_text(encoding="utf-8").splitlines()[0])
        <!DOCTYPE html>
    """
    file = Path(path)
    check_new_file(file, "path")
    check_flag(progress, "progress")
    with shown_progress(progress, STEPS, "report") as advance:
        found = Findings.of(
            optimizer,
            context_set=context_set,
            radius=radius,
            level=level,
            q=q,
            source=source,
            limits=limits,
            rounded=rounded,
            lines=lines,
            done=partial(advance, False),
        )
    file.write_text(page(found), encoding="utf-8")


def page(found: Findings) -> Markup:
    """The whole page, from what was found."""
    space, here = found.optimizer.named_space, files("botorch_drbo.report")
    parts = {"price": found.curve, "scope": found.scope}
    chosen = {n: part for n, part in _SECTIONS.items() if parts.get(n, n) is not None}
    links = [tag("a", title, href=f"#{name}") for name, (title, _) in chosen.items()]
    sections = [
        tag("section", tag("h2", title), section(found), id=name)
        for name, (title, section) in chosen.items()
    ]
    title = f"Report on {space.outcome}"
    made = f"{found.source or 'A table in Python'}, {found.date:%Y-%m-%d}"
    header = tag(
        "header", tag("h1", title), tag("p", made, class_="made"), tag("nav", *links)
    )
    return Markup(
        Template((here / "page.html").read_text(encoding="utf-8")).substitute(
            title=tag("title", title),
            style=(here / "style.css").read_text(encoding="utf-8"),
            body=joined(header, tag("main", *sections)),
        )
    )
