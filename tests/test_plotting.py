"""Plots return axes that hold what they say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection

from botorch_drbo import Category, Log, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting import (
    plot_history,
    plot_regret,
    plot_robustness_profile,
    plot_surface,
)
from botorch_drbo.plotting.history import draw_atoms
from tests.models import UNIT, uniform

PROFILE = RobustnessProfile(
    radii=torch.tensor([0.0, 1.0, 2.0]),
    values=torch.tensor([5.0, 3.0, 2.0]),
    expected_value=5.0,
    other_values=torch.tensor([4.0, 3.5, 3.0]),
    falls_behind=0.75,
    target=2.5,
    falls_below=1.5,
)


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def offsets(ax) -> torch.Tensor:
    (scatter,) = (c for c in ax.collections if type(c) is PathCollection)
    return torch.as_tensor(scatter.get_offsets().data, dtype=torch.double)


def history(t: int = 12) -> SimpleNamespace:
    data = SimpleNamespace(
        X=uniform(t, 2), C=uniform(t, 1, seed=1), Y=uniform(t, 1, seed=2)
    )
    return SimpleNamespace(history=data)


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot_surface(lambda x, c: x - c, UNIT, UNIT, ax, num=5),
        lambda ax: plot_regret({"a": uniform(2, 4)}, ax),
        lambda ax: plot_history(history(), ax),
        lambda ax: plot_robustness_profile(PROFILE, ax),
    ],
)
def test_draws_on_given_axes_or_on_new_ones(draw):
    _, ax = plt.subplots()
    assert draw(ax) is ax
    assert draw(None) is not ax


def test_surface_evaluates_decision_across_and_context_up():
    seen = {}

    def function(x, c):
        seen["x"], seen["c"] = x, c
        return (10 * x + c).squeeze(-1)

    high = torch.tensor([[2.0], [4.0]], dtype=torch.double)
    ax = plot_surface(function, UNIT, high, num=3)
    assert ax.get_xlim() == (0.0, 1.0)
    assert ax.get_ylim() == (2.0, 4.0)
    # Row by row of the picture: the decision changes first.
    expected_x = torch.tensor([0.0, 0.5, 1.0], dtype=torch.double)
    assert torch.equal(seen["x"].flatten(), expected_x.repeat(3))
    assert torch.equal(seen["c"].flatten(), (2 + 2 * expected_x).repeat_interleave(3))


def test_surface_shows_data_decision_and_context_set():
    X, C = uniform(6, 1), uniform(6, 1, seed=1)
    ax = plot_surface(
        lambda x, c: x * c,
        UNIT,
        UNIT,
        X=X,
        C=C,
        context_set=ContextSet.empirical(C),
        decision=0.25,
        num=5,
    )
    assert torch.allclose(offsets(ax), torch.cat([X, C], dim=-1))
    assert {tuple(line.get_xdata()) for line in ax.get_lines()} == {(0.25, 0.25)}
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["observations", "marked decision"]
    side = [
        child for child in ax.child_axes if child.get_xlabel() == "context\ndensity"
    ]
    assert len(side) == 1
    assert side[0].get_ylim() == ax.get_ylim()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"X": uniform(3, 1)}, InputDataError),
        ({"X": uniform(3, 1), "C": uniform(2, 1)}, BotorchTensorDimensionError),
        ({"context_set": ContextSet(uniform(3, 2))}, BotorchTensorDimensionError),
    ],
)
def test_surface_refuses(arguments, error):
    with pytest.raises(error):
        plot_surface(lambda x, c: x, UNIT, UNIT, num=3, **arguments)


def test_context_density_integrates_to_one_and_ticks_follow_weights():
    points = torch.tensor([[0.3], [0.5], [0.6]], dtype=torch.double)
    weights = torch.tensor([0.2, 0.6, 0.2], dtype=torch.double)
    _, ax = plt.subplots()
    wide = torch.tensor([-2.0, 3.0], dtype=torch.double)
    draw_atoms(ContextSet(points, weights), ax, wide)
    (line,) = ax.get_lines()
    y, x = (torch.as_tensor(v) for v in line.get_data())
    assert torch.trapezoid(y, x).item() == pytest.approx(1.0, abs=1e-3)
    # The density's mean is the weighted mean of the points.
    assert torch.trapezoid(x * y, x).item() == pytest.approx(0.48, abs=1e-3)
    (ticks,) = (c for c in ax.collections if isinstance(c, LineCollection))
    heights = [segment[1][0] - segment[0][0] for segment in ticks.get_segments()]
    assert heights[1] == pytest.approx(3 * heights[0])
    assert ax.get_ylim() == (-2.0, 3.0)


def test_contexts_in_a_tiny_unit_have_a_density_too():
    points = torch.tensor([[0.3e-15], [0.6e-15]], dtype=torch.double)
    _, ax = plt.subplots()
    draw_atoms(ContextSet(points), ax, torch.tensor([0.0, 1e-15]))
    assert len(ax.get_lines()) == 1


def test_point_mass_has_a_tick_and_no_density():
    _, ax = plt.subplots()
    one = ContextSet.fixed(torch.tensor([0.4], dtype=torch.double))
    draw_atoms(one, ax, torch.tensor([0.0, 1.0]))
    assert len(ax.get_lines()) == 0 and len(ax.collections) == 1
    assert ax.get_xlim()[0] == 0.0


SPACE = Space(
    {"price": (10.0, 90.0), "flour": Category(["rye", "spelt"])},
    {
        "weather": Category(["sun", "rain", "snow"]),
        "demand": (0.0, 50.0),
        "dose": Log(1.0, 100.0),
    },
    outcome="profit",
)


def test_regret_curve_is_the_mean_and_the_band_one_standard_error():
    values = torch.tensor([[1.0, 2.0], [3.0, 6.0]], dtype=torch.double)
    ax = plot_regret({"wdrbo": values, "one_seed": values[:1]}, ylabel="lost")
    first, second = ax.get_lines()
    assert first.get_ydata().tolist() == [2.0, 4.0]
    assert first.get_xdata().tolist() == [1, 2]
    assert second.get_ydata().tolist() == [1.0, 2.0]
    (band,) = ax.collections  # one seed has no band
    # Standard errors by hand: sqrt(2)/sqrt(2) = 1 and sqrt(8)/sqrt(2) = 2.
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1.0, 6.0)
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert ax.get_ylabel() == "lost"


def test_no_two_of_many_curves_look_alike_in_grey_print_either():
    """Neither two recipes of the registry, nor any of sixty."""
    ax = plot_regret({f"{i}": uniform(2, 30, seed=i) for i in range(60)})
    looks = {
        (
            str(line._dash_pattern),
            line.get_marker(),
            line.get_markerfacecolor() == "white",
        )
        for line in ax.get_lines()
    }
    assert len(looks) == 60
    first = ax.get_lines()[:7]
    assert {line.get_marker() for line in first} == {"None"}
    assert len({line.get_color() for line in first}) == 7
    in_colour = [(li.get_color(), str(li._dash_pattern)) for li in ax.get_lines()]
    assert len(set(in_colour[:21])) == 21  # also without looking at the markers
    for line in ax.get_lines()[7:]:
        at, apart = line.get_markevery()
        assert len(range(at, 30, apart)) >= 7  # markers are there to be seen


@pytest.mark.parametrize(
    ("regret", "error"),
    [
        ({}, InputDataError),
        ({"a": torch.full((2, 2), torch.nan)}, InputDataError),
        ({"a": torch.rand(3)}, BotorchTensorDimensionError),
    ],
)
def test_regret_refuses(regret, error):
    with pytest.raises(error):
        plot_regret(regret)


def test_history_of_outcomes_has_a_moving_mean():
    optimizer = history()
    optimizer.history.Y = torch.tensor([[1.0], [3.0], [5.0], [11.0], [5.0], [6.0]])
    ax = plot_history(optimizer)
    assert offsets(ax)[:, 1].tolist() == [1.0, 3.0, 5.0, 11.0, 5.0, 6.0]
    assert ax.get_lines()[0].get_ydata().tolist() == [1.0, 2.0, 3.0, 5.0, 5.0, 6.0]


def test_history_refuses_when_empty():
    with pytest.raises(InputDataError, match="empty"):
        plot_history(history(0))


def test_optimizer_fits_plot_history():
    optimizer = RobustOptimizer("random", UNIT, UNIT)
    x = optimizer.ask()
    optimizer.tell(x, torch.tensor([[0.5]], dtype=torch.double), 3.0)
    assert offsets(plot_history(optimizer)).tolist() == [[1.0, 3.0]]


def named_run():
    opt = NamedOptimizer("random", SPACE)
    x = {"price": [20.0, 40.0, 60.0, 80.0], "flour": ["spelt", "rye", "spelt", "rye"]}
    c = {
        "weather": ["snow", "sun", "snow", "rain"],
        "demand": [10.0, 20.0, 40.0, 50.0],
        "dose": [1.0, 10.0, 100.0, 5.0],
    }
    first = {key: value[:3] for key, value in x.items()}
    met = {key: value[:3] for key, value in c.items()}
    opt.tell(first, met, [3.0, 1.0, 5.0])
    last = {key: value[3:] for key, value in x.items()}
    opt.tell(last, {key: value[3:] for key, value in c.items()})  # its outcome is out
    return opt


def test_history_of_a_named_run_speaks_its_words():
    opt = named_run()
    ax = plot_history(opt)
    assert offsets(ax).tolist() == [[1.0, 3.0], [2.0, 1.0], [3.0, 5.0]]
    assert ax.get_lines()[0].get_ydata().tolist() == [3.0, 2.0, 3.0]
    assert ax.get_ylabel() == "profit"
    with pytest.raises(InputDataError, match="empty"):
        plot_history(NamedOptimizer("random", SPACE))


def test_profile_draws_both_curves_the_target_and_where_they_cross():
    ax = plot_robustness_profile(PROFILE, label="bold", other_label="safe")
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert lines["bold"].get_xydata().tolist() == [[0, 5], [1, 3], [2, 2]]
    assert lines["safe"].get_ydata().tolist() == [4.0, 3.5, 3.0]
    assert list(lines["target"].get_ydata()) == [2.5, 2.5]
    assert list(lines["behind the other from 0.75"].get_xdata()) == [0.75, 0.75]
    assert list(lines["below the target from 1.5"].get_xdata()) == [1.5, 1.5]


def test_profile_of_one_decision_has_one_curve():
    alone = replace(
        PROFILE, other_values=None, falls_behind=None, target=None, falls_below=None
    )
    assert len(plot_robustness_profile(alone).get_lines()) == 1
