"""The output of the commands: text for people, JSON for scripts, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.csv_file import CsvFile, as_values, in_digits
from botorch_drbo.cli.terminal import plain
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.report.findings import Rounded, with_words
from botorch_drbo.space import NamedRecommendation, Space

if TYPE_CHECKING:
    import pandas as pd


Json: TypeAlias = (
    "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
)


def words_of(x: pd.DataFrame, file: CsvFile, space: Space) -> dict[str, str]:
    """One decision with the digits of its columns."""
    (words,) = in_digits(x, x.iloc[:0], file, space)
    return words


def rounding_of(file: CsvFile, space: Space) -> Rounded:
    """From decisions to tables of words, with the digits of the columns of a file."""
    import pandas as pd

    return lambda x, taken: pd.DataFrame(in_digits(x, taken, file, space))


def in_digits_of(
    best: NamedRecommendation, file: CsvFile, space: Space
) -> NamedRecommendation:
    """The same with decisions that print with the digits of their columns."""
    return with_words(best, rounding_of(file, space))


def of_recommendation(
    best: NamedRecommendation, file: CsvFile, space: Space
) -> dict[str, Json]:
    """A recommendation as JSON."""
    holds: dict[str, Json] | None = None
    if (stable := best.stability) is not None:
        rival = None
        if stable.rival is not None:
            words = words_of(stable.rival, file, space)
            rival = dict(as_values(words, space.decisions))
        holds = {
            "radius": stable.radius,
            "by_column": stable.by_column,
            "until": stable.until,
            "searched_until": stable.searched,
            "then": rival,
        }
    return {
        "decision": dict(as_values(words_of(best.x, file, space), space.decisions)),
        "decision_before_rounding": best.x.to_dict("records")[0],
        "outcome": best.outcome,
        "expected": best.expected_value,
        "expected_interval": best.expected_interval and list(best.expected_interval),
        "worst_case": best.worst_case_value,
        "worst_case_interval": best.worst_case_interval
        and list(best.worst_case_interval),
        "decided_for": best.decided_for or None,
        "share": best.objective if best.decided_for.startswith("share") else None,
        "level": best.level,
        "worst_case_is_exact": best.worst_case_status.name == "EXACT",
        "searched": best.searched,
        "num_outcomes": best.num_outcomes,
        "feasibility": best.feasibility,
        "feasible": best.feasible,
        "answer_holds": holds,
        "contexts": best.contexts.to_dict("records"),
        "beyond_contexts_seen": best.beyond,
        "contexts_moved": {m.column: m.share for m in best.moved},
    }


def of_check(check: ModelCheck) -> dict[str, Json]:
    """A check of the model by lines as JSON."""
    columns = {
        "line": list(check.trials),
        "outcome": check.outcomes.tolist(),
        "predicted": check.predicted.tolist(),
        "low": check.lower.tolist(),
        "high": check.upper.tolist(),
        "standardised": check.standardised.tolist(),
    }
    rows = zip(*columns.values(), strict=True)
    unseen = zip(check.context_names, check.unseen_columns, strict=True)
    return {
        "num_outcomes": len(check.outcomes),
        "explained": check.explained,
        "explained_interval": list(check.explained_interval),
        "num_outside": check.num_outside,
        "coverage": check.coverage,
        "widening": check.widening,
        "worst_lines": list(check.worst),
        "contexts_outside": check.unseen,
        "contexts_outside_by_column": dict(unseen),
        "contexts_moved": {m.column: m.share for m in check.moved},
        "new_levels": {
            new.column: {"explained": new.explained, "without_features": new.without}
            for new in check.new_levels
        },
        "rows": [dict(zip(columns, row, strict=True)) for row in rows],
    }


def with_decisions_in_digits(
    found: Comparison, file: CsvFile, space: Space
) -> Comparison:
    """The same with decisions that print with the digits of their columns."""
    import pandas as pd

    decided = pd.DataFrame(dict(found.columns))
    rows = [words_of(decided.iloc[[i]], file, space) for i in range(len(decided))]
    columns = {name: [row[name] for row in rows] for name in decided.columns}
    return replace(found, columns=columns)


def of_comparison(found: Comparison, space: Space) -> dict[str, Json]:
    """A comparison as JSON; its decisions are in digits already."""
    rows = found.table.to_dict("records")
    for row in rows:
        words = {name: str(row[name]) for name in space.decisions}
        row.update(as_values(words, space.decisions))
    return {
        "level": found.level,
        "judged_by": found.judged_by,
        "radii": dict(zip(found.methods, found.radii, strict=True)),
        "rows": list(rows),
        "advice": found.advice,
    }


def check_format(path: Path) -> None:
    """Refuse an ending of which no picture can be made."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise InputDataError(
            f"`--out {path}` does not end in a format of pictures. The endings are "
            f"{sorted(formats)}."
        )


def draw(history: pd.DataFrame, best: NamedRecommendation, path: Path) -> None:
    """Outcomes in their order, and the values of the recommended decision."""
    from matplotlib.figure import Figure  # only where a picture is wanted

    outcomes = history[best.outcome].dropna()
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(range(1, len(outcomes) + 1), outcomes, "o", label="outcomes")
    ax.axhline(best.expected_value, linestyle="-", label="recommended: expected")
    ax.axhline(
        best.worst_case_value,
        color="C3",
        linestyle="--",
        label="recommended: worst case",
    )
    title = str(best).splitlines()[0].removeprefix("decision").strip()
    ax.set_title(plain(title), parse_math=False)  # a name may have two dollar signs
    ax.set_xlabel("trial")
    ax.set_ylabel(plain(best.outcome), parse_math=False)
    ax.legend()
    figure.savefig(path, dpi=150)
