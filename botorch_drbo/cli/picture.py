"""The picture of ``botorch-drbo plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.terminal import plain
from botorch_drbo.space import NamedRecommendation

if TYPE_CHECKING:
    import pandas as pd


def check_format(path: Path) -> None:
    """Refuse an ending of which no picture can be made.

    Raises:
        InputDataError: It is none of matplotlib's.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise InputDataError(
            f"`--out {path}` does not end in a format of pictures. The endings are "
            f"{sorted(formats)}."
        )


def draw(history: pd.DataFrame, best: NamedRecommendation, path: Path) -> None:
    """Outcomes in their order, and the values of the recommended decision.

    Args:
        history: The trials.
        best: The recommended decision.
        path: Where the picture is written; its ending decides the format.
    """
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
