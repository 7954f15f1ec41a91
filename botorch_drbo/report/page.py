"""The page: a title, sections, and an embedded style."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from botorch_drbo._validation import check_new_file
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.report.answer import decision_section, next_section, slices_section
from botorch_drbo.report.evidence import (
    assumptions_section,
    history_section,
    importance_section,
    model_section,
)
from botorch_drbo.report.findings import Findings, Rounded
from botorch_drbo.report.markup import Markup, joined, tag
from botorch_drbo.report.shifts import policy_section, radius_section

_SECTIONS = {
    "decision": ("What to do", decision_section),
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
    )
    file.write_text(page(found), encoding="utf-8")


def page(found: Findings) -> Markup:
    """The whole page, from what was found."""
    space, here = found.optimizer.named_space, files("botorch_drbo.report")
    links = [tag("a", title, href=f"#{name}") for name, (title, _) in _SECTIONS.items()]
    sections = [
        tag("section", tag("h2", title), section(found), id=name)
        for name, (title, section) in _SECTIONS.items()
    ]
    title = f"Report on {space.outcome}"
    made = f"{found.source or 'A table in Python'}, {found.date:%Y-%m-%d}"
    header = tag(
        "header", tag("h1", title), tag("p", made, class_="made"), tag("nav", *links)
    )
    template = Template((here / "page.html").read_text(encoding="utf-8"))
    return Markup(
        template.substitute(
            title=tag("title", title),
            style=(here / "style.css").read_text(encoding="utf-8"),
            body=joined(header, tag("main", *sections)),
        )
    )
