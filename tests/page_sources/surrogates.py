"""The study of surrogates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, column, committed_table

_TOLD = (10, 15, 30)  # outcomes


def intervals() -> list[Row]:
    """After random rows: data sets, inside and width, of half A and then of half B."""
    found = {}
    for half in "AB":
        text = (RESULTS / "development" / f"intervals_{half}.md").read_text()
        lines = text[: text.index("###")].splitlines()
        for line in (line for line in lines if line.startswith("| ")):
            surrogate, told, promise, *_ = line.strip("| ").split(" | ")
            found[surrogate, told, promise, half] = [x.value for x in numbers(line)]
    return [
        [told, *(x for half in "AB" for x in found[s, str(told), promise, half][1:5])]
        for s in ("botorch", "four")
        for told in _TOLD
        for promise in ("expected", "worst")
    ]


def promises() -> list[Row]:
    """After a method's own decisions: data sets, inside, width, and both optimisms."""
    text = (RESULTS / "development" / "calibration.md").read_text()
    rows = []
    for surrogate in ("botorch", "four"):
        for told in _TOLD:
            title = f"### Promises after {told} outcomes, both halves"
            lines = text[text.index(title) :].splitlines()[1:]
            for promise in ("expected", "worst"):
                start = f"| {surrogate} | {promise} |"
                line = next(line for line in lines if line.startswith(start))
                found = [x.value for x in numbers(line)]
                rows.append([told, *found[:6], *found[-2:]])
    return rows


def beyond() -> list[Row]:
    """Shares of outcomes beyond two predicted deviations, before 10, 15, 30."""
    report = "development/calibration.md"
    columns = [column(report, "beyond 2", f"## {told} outcomes") for told in _TOLD]
    return [[x for c in columns for x in c[name]] for name in ("botorch", "four")]


def second_claim() -> list[Row]:
    """What the ensemble of four loses less than botorch on fresh seeds."""
    title = "## `erbo`, {} outcomes, fresh seeds of both halves"
    report = "development/report.md"
    return [
        column(report, "less botorch", title.format(t))["four"] for t in (10, 15, 30)
    ]


def later_questions() -> list[Row]:
    """Of claims_third.md: outcomes, runs, loss less botorch's, p, regret less its."""
    asked = (
        [("wdrbo_exact", "four", told) for told in (10, 15, 30)]
        + [("erbo", "four", 60)]
        + [("erbo", "hyperparameters", told) for told in (10, 15, 30)]
    )
    rows = []
    for method, surrogate, told in asked:
        title = f"## `{method}`, {told} outcomes, both halves"
        cells = committed_table("development/report.md", title)[surrogate]
        runs, _, loss, p, *others = cells
        regret = others[-5]  # before beyond 1, beyond 2, NLPD and s/ask
        parts = (runs, loss, p, regret)
        rows.append([float(told), *(x.value for part in parts for x in numbers(part))])
    return rows


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "development/intervals_*.md": intervals,
    "development/calibration.md": beyond,
    "development/calibration.md, promises": promises,
    "development/report.md": second_claim,
    "development/report.md, later": later_questions,
}
