"""What all figures share: colours, axes, names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor

# Okabe and Ito's colours: told apart with every common kind of colour blindness, and in
# this order also by lightness where neighbours meet. The dashes help in grey print.
COLOURS: tuple[str, ...] = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
"""Okabe and Ito's seven colours, in an order that also differs in lightness.

Where methods are compared the first is a robust one, the second one that trusts the
data, the third one that does without them, in every figure.
"""
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1)),
    (0, (6, 2, 1, 2)),
    (0, (1, 1)),
    (0, (8, 2, 2, 2, 2, 2)),
    (0, (4, 4)),
)
"""A dash pattern for each colour."""
MARKERS: tuple[str, ...] = ("o", "^", "s", "D", "v", "P", "X")
"""Markers for further curves."""


def curve_style(i: int) -> dict[str, Any]:
    """What ``Axes.plot`` takes for the ``i``-th of many curves, from 0.

    The first seven differ by colour and dashes, the next seven have full markers too,
    and other colours with the same dashes, seven more have open markers, and so on: the
    first hundred also differ in grey print.
    """
    cycle, index = divmod(i, len(COLOURS))
    colour = COLOURS[(index + 3 * cycle) % len(COLOURS)]
    style: dict[str, Any] = {"color": colour, "linestyle": DASHES[index]}
    if cycle:
        shape = MARKERS[(index + (cycle - 1) // 2) % len(MARKERS)]
        style |= {"marker": shape, "markersize": 6.0}
        if cycle % 2 == 0:
            style["markerfacecolor"] = "white"
    return style


def given_or_new(ax: Axes | None, *, grid: bool = False) -> Axes:
    """The given axes, or those of a new figure that makes room for its own labels."""
    if ax is None:
        ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    if grid:
        ax.grid(alpha=0.25)
    return ax


_PER_INCH = 13  # characters, of the default size


def name_ticks(ax: Axes, positions: Iterable[float], names: Sequence[str]) -> None:
    """Names below the horizontal axis, slanted where they would run together."""
    room = _PER_INCH * ax.bbox.width / ax.figure.dpi
    crowded = len(names) * (max(map(len, names), default=0) + 2) > room
    slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(list(positions), names, **(slanted if crowded else {}))


def as_array(values: Tensor) -> NDArray[np.float64]:
    """The values as matplotlib takes them."""
    return values.detach().cpu().double().numpy()


class Column(NamedTuple):
    """One column: its name, and numbers or the places of its categories."""

    # What the axis is called.
    name: str
    # ``n``.
    values: NDArray[np.float64]
    # Their names, by place; None for numbers.
    categories: list[str] | None


def column_of(table: Any, which: int | str, letter: str, name: str) -> Column:
    """One column of a tensor or of a DataFrame.

    Shapes: ``table``: ``n x d``.
    """
    if isinstance(table, Tensor):
        d = table.shape[-1] if table.ndim == 2 else 0
        if not isinstance(which, int) or not 0 <= which < d:
            raise InputDataError(
                f"`{name}` is a tensor of shape {tuple(table.shape)}: there is no "
                f"column {which!r}."
            )
        label = letter if d == 1 else f"{letter}{which + 1}"
        return Column(label, as_array(table[:, which]), None)
    if not hasattr(table, "columns"):
        raise InputDataError(
            f"`{name}` must be a tensor or a DataFrame, got {type(table).__name__}."
        )
    names = [str(column) for column in table.columns]
    if isinstance(which, int) and 0 <= which < len(names):
        which = names[which]
    if which not in names:
        raise InputDataError(f"`{name}` has the columns {names}, not {which!r}.")
    values = table[which].to_numpy()
    if np.issubdtype(values.dtype, np.number):
        return Column(which, values.astype(float), None)
    kinds = list(dict.fromkeys(map(str, values)))  # in the order of the table
    return Column(which, np.array([kinds.index(str(v)) for v in values], float), kinds)
