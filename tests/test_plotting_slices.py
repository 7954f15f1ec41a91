"""The picture of a slice shows its numbers, in the units of its variable."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from botorch_drbo.plotting.model import plot_slice
from botorch_drbo.recommendation.importance import Slice
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
