"""The picture of a slice shows its numbers, in the units of its variable."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from matplotlib import pyplot as plt

from botorch_drbo.plotting.model import plot_importance, plot_slice
from botorch_drbo.recommendation.importance import Importance, Slice
from botorch_drbo.space import Category, Continuous, Log


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def a_slice(values: list[float], allowed: list[bool] | None = None) -> Slice:
    v = torch.tensor(values, dtype=torch.double)
    kept = torch.tensor(allowed or [True] * len(values))
    return Slice(0, v, 2 * v, 2 * v - 1, 2 * v + 1, kept, index=1, level=0.9)


def test_the_line_leaves_out_what_is_forbidden() -> None:
    found = a_slice([0.0, 1.0, 2.0], [True, True, False])
    ax = plot_slice(found, Continuous(0, 2), name="N <kg>", outcome="yield")
    line, own = ax.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(line.get_ydata(), [0.0, 2.0, math.nan])
    assert (own.get_xdata()[0], own.get_ydata()[0]) == (1.0, 2.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("N <kg>", "expected yield")


def test_a_logarithmic_variable_has_its_own_units_and_plain_ticks() -> None:
    found = a_slice([math.log(0.1), 0.0, math.log(5.0)])
    ax = plot_slice(found, Log(0.1, 5.0))
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), [0.1, 1.0, 5.0])
    ax.figure.canvas.draw()
    labels = {text.get_text() for text in ax.get_xticklabels()}
    assert {"0.1", "0.2", "0.5", "1", "2", "5"} <= labels


def test_a_category_has_its_names() -> None:
    ax = plot_slice(a_slice([0.0, 1.0]), Category(["A", "B<C"]))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["A", "B<C"]


def test_columns_stand_in_the_order_of_their_importance() -> None:
    members = torch.tensor([[1.0, 5.0, 2.0], [1.0, 7.0, 4.0]])
    found = Importance(members, torch.tensor([4.0, 8.0, 3.5]))
    ax = plot_importance(found, ["dose", "rain", "soil"], outcome="yield (t)")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    widths = [bar.get_width() for bar in ax.patches]
    assert dict(zip(labels, widths, strict=True)) == {"dose": 1, "soil": 3, "rain": 6}
    assert widths == sorted(widths)  # the first is at the bottom
    assert ax.get_lines()[0].get_xdata().tolist() == [4.0, 3.5, 8.0]
    assert ax.get_xlabel() == "typical difference of yield (t)"
    with pytest.raises(BotorchTensorDimensionError, match="must have 3 entries, got 2"):
        plot_importance(found, ["dose", "rain"])
