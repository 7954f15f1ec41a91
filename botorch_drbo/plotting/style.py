"""Colours, dashes and markers that can be told apart; axes and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
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
"""Okabe and Ito's seven colours, in an order that also differs in lightness."""
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


def given_or_new(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure that makes room for its own labels."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]


def as_array(values: Tensor) -> NDArray[np.float64]:
    """The values as matplotlib takes them."""
    return values.detach().cpu().double().numpy()
