"""The expected outcome along each decision variable."""

from __future__ import annotations

from botorch_drbo.plotting.slices import plot_slice
from botorch_drbo.report.figures import figure
from botorch_drbo.report.findings import Findings
from botorch_drbo.report.markup import Markup, joined, rough, tag
from botorch_drbo.space import Category


def slices_section(found: Findings) -> Markup:
    """The expected outcome along each decision variable, the others fixed."""
    best, space = found.best, found.optimizer.named_space
    drawn, lines = [], []
    for part, (name, variable) in zip(
        found.slices, space.decisions.items(), strict=True
    ):
        mean = part.mean[part.allowed]
        drop = (mean.max() - mean.min()).item()
        lines.append((drop, name))
        names = isinstance(variable, Category)
        mark, bar = ("dot", "bar") if names else ("line", "band")
        words = (
            f"{name}: the {mark} is the expected {best.outcome}, the {bar} its "
            f"{part.level:.0%} interval, the square the recommended decision."
        )
        if not bool(part.allowed.all()):
            words += " Values that the constraints forbid are left out."
        drawn.append(
            figure(
                lambda ax, part=part, variable=variable, name=name: plot_slice(
                    part, variable, ax, name=name, outcome=best.outcome
                ),
                words,
            )
        )
    lines.sort(reverse=True)
    first = (
        f"Moved alone, {lines[0][1]} changes the expected {best.outcome} most by the "
        f"model's mean, by {rough(lines[0][0])}. "
    )
    if len(lines) == 1:
        drop, name = lines[0]
        first = (
            f"From its worst to its best value {name} changes the expected "
            f"{best.outcome} by {rough(drop)}, by the model's mean. "
        )
    rest = ", ".join(f"{name} by {rough(drop)}" for drop, name in lines[1:])
    limited = "" if best.feasibility is None else ", or to meet the measured limits"
    return joined(
        tag(
            "p",
            first
            + (f"The others: {rest}. " if rest else "")
            + "The true differences may be larger or smaller, as the intervals of the "
            "pictures say.",
        ),
        tag(
            "p",
            "Each picture moves one decision and leaves the others as recommended; the "
            "outcome is averaged over the expected contexts. A recommended decision "
            "that is not the best of its picture gives up some of the mean for the "
            f"worst case{limited}.",
        ),
        tag("div", *drawn, class_="figures"),
    )
