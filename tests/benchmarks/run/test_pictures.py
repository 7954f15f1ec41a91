"""The panels of the pictures."""

from __future__ import annotations

import pandas as pd
import torch
from matplotlib import pyplot as plt

from benchmarks.run.pictures import Panel, panel_figure, regret_figure


def test_small_regrets_have_a_logarithmic_axis_and_cumulative_ones_have_not():
    rows = pd.DataFrame(
        {"problem": "hill", "algorithm": label, "seed": 0, "iteration": i, "regret": r}
        for label, regrets in (("a", [4.0, 2.0, 1e-9]), ("b", [8.0, 4.0, 2.0]))
        for i, r in enumerate(regrets)
    )
    figure = regret_figure(rows)
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "log", "log"]
    low, high = figure.axes[1].get_ylim()  # what is below four decades is cut off
    assert 1e-4 < low < 8e-4 and 8.0 < high < 16.0
    plt.close(figure)


def test_regrets_of_nothing_keep_a_linear_axis():
    curves = {"a": torch.zeros(2, 3, dtype=torch.float64)}
    figure = panel_figure([Panel("flat", "regret", curves, logarithmic=True)], 1)
    assert figure.axes[0].get_yscale() == "linear"
    plt.close(figure)
