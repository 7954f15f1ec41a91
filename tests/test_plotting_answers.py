"""Pictures of an answer: its worst case, and the decision for each context."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import matplotlib
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from matplotlib import pyplot as plt

from botorch_drbo import Category, ContextSet, NamedOptimizer, Space
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.plotting import (
    plot_compare,
    plot_model_check,
    plot_policy,
    plot_robustness_profile,
    plot_worst_case,
)
from botorch_drbo.recommendation import ModelCheck, Recommendation
from tests.models import uniform


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


class Straight:
    """An outcome of twice the first context, with a variance of one quarter."""

    def predict(self, x, c):
        return 2 * c[:, 0], torch.full_like(c[:, 0], 0.25)


def answer(points: torch.Tensor, before: list[float], after: list[float]):
    mean = 2 * points[:, 0]
    before, after = (torch.tensor(w, dtype=torch.double) for w in (before, after))
    return Recommendation(
        x=torch.tensor([0.5], dtype=torch.double),
        objective=0.0,
        expected_value=(before * mean).sum().item(),
        worst_case_value=(after * mean).sum().item(),
        worst_case_weights=after,
        context_set=ContextSet(points, before),
        worst_case_box=None,
        worst_case_status=SolverStatus.EXACT,
    )


def bars(ax) -> dict[str, list[tuple[float, float]]]:
    """By label: the middle and the height of each bar."""
    (twin,) = (other for other in ax.figure.axes if other is not ax)
    return {
        group.get_label(): [
            (bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in group
        ]
        for group in twin.containers
    }


def lines(ax) -> dict[str, list[float]]:
    return {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}


THREE = torch.tensor([[0.0], [2.0], [1.0], [1.0]], dtype=torch.double)
BEST = answer(THREE, [0.1, 0.5, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2])


def test_bars_are_weights_and_equal_contexts_are_one():
    ax = plot_worst_case(Straight(), BEST)
    drawn = bars(ax)
    heights = [height for _, height in drawn["weight in the reference"]]
    assert heights == pytest.approx([0.1, 0.4, 0.5])
    heights = [height for _, height in drawn["weight in the worst case"]]
    assert heights == pytest.approx([0.4, 0.4, 0.2])
    positions = [at for at, _ in drawn["weight in the reference"]]
    assert positions == pytest.approx(
        [-0.2, 0.8, 1.8]
    )  # the pair stands on its context


def test_the_outcome_stands_above_the_bars():
    ax = plot_worst_case(Straight(), BEST, xlabel="wind (m/s)", ylabel="power (kW)")
    assert lines(ax)["outcome of the decision (± 2 sd)"] == [0.0, 2.0, 2.0, 4.0]
    assert lines(ax)["expected value"] == pytest.approx([2.8, 2.8])
    assert lines(ax)["worst-case value"] == pytest.approx([1.6, 1.6])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("wind (m/s)", "power (kW)")
    low, high = ax.get_ylim()
    (twin,) = (other for other in ax.figure.axes if other is not ax)
    share = 0.5 / twin.get_ylim()[1]  # of the tallest bar
    assert (-1.0 - low) / (high - low) > share  # the band begins above it


def test_many_contexts_are_a_histogram():
    weights = torch.full((100,), 0.01).tolist()
    drawn = bars(plot_worst_case(Straight(), answer(uniform(100, 1), weights, weights)))
    heights = [height for _, height in drawn["weight in the worst case"]]
    assert len(heights) == 20 and sum(heights) == pytest.approx(1.0)


def test_of_several_context_variables_one_is_shown():
    points = torch.cat([THREE, THREE.flip(0)], -1)
    best = answer(points, [0.1, 0.5, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2])
    ax = plot_worst_case(Straight(), best, column=1)
    assert ax.get_xlabel() == "context c2"
    heights = [height for _, height in bars(ax)["weight in the reference"]]
    assert heights == pytest.approx([0.2, 0.6, 0.2])
    with pytest.raises(InputDataError, match="no column 2"):
        plot_worst_case(Straight(), best, column=2)


def test_a_single_context_has_a_bar():
    ax = plot_worst_case(Straight(), answer(THREE[:1], [1.0], [1.0]))
    ((at, height),) = bars(ax)["weight in the worst case"]
    assert (at, height) == pytest.approx((0.2, 1.0))


def test_a_policy_is_drawn_in_the_order_of_the_context():
    C, X = THREE[:3], torch.tensor([[5.0], [7.0], [6.0]])
    ax = plot_policy(C, X, without=5.5, labels=("wind (m/s)", "angle (deg)"))
    drawn = lines(ax)
    assert drawn["context known"] == [5.0, 6.0, 7.0]
    assert drawn["context unknown"] == [5.5, 5.5]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("wind (m/s)", "angle (deg)")


def test_a_policy_with_names_and_categories():
    table = pd.DataFrame({"weather": ["sun", "rain"], "price": [3.0, 4.0]})
    ax = plot_policy(table[["weather"]], table[["price"]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weather", "price")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["sun", "rain"]
    ax = plot_policy(table[["price"]], table[["weather"]], column="price")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["sun", "rain"]


@pytest.mark.parametrize("given", ["tensor", "dictionary", "table"])
@pytest.mark.parametrize("context", [[0.0, 3.0, 1.0], ["sun", "rain", "fog"]])
def test_the_policy_of_a_named_run_is_no_diagonal(given, context):
    """Its table holds the contexts as well, in whatever form they were given."""
    numbers = context if given == "tensor" and context[0] == 0.0 else [0.0, 2.0, 1.0]
    contexts = {
        "tensor": torch.tensor(numbers).unsqueeze(-1),
        "dictionary": {"c": context},
        "table": pd.DataFrame({"c": context}),
    }[given]
    policy = pd.DataFrame({"c": context, "x": [5.0, 7.0, 6.0]})
    ax = plot_policy(contexts, policy)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "x")
    expected = [5.0, 6.0, 7.0] if context[0] == 0.0 else [5.0, 7.0, 6.0]
    assert lines(ax)["context known"] == expected
    # A table of decisions alone is drawn as it is.
    own = torch.tensor([[4.0], [5.0], [6.0]])
    decided = policy[["x"]].assign(other=1.0)
    assert lines(plot_policy(own, decided))["context known"] == [5.0, 7.0, 6.0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"labels": ("a",)}, BotorchTensorDimensionError, "must have 2 entries"),
        ({"column": 3}, InputDataError, "no column 3"),
        ({"column": "wind"}, InputDataError, "no column 'wind'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        plot_policy(uniform(4, 2), uniform(4, 1), **options)


def test_tables_must_fit():
    with pytest.raises(BotorchTensorDimensionError, match="as many rows"):
        plot_policy(uniform(4, 2), uniform(3, 1))
    with pytest.raises(InputDataError, match="a tensor or a DataFrame, got list"):
        plot_policy([[1.0]], uniform(1, 1))
    with pytest.raises(InputDataError, match="not 'wind'"):
        plot_policy(pd.DataFrame({"c": [1.0]}), uniform(1, 1), column="wind")


def test_the_worst_case_of_a_mirrored_problem_is_above():
    """With ``maximize=False`` the worst case is the higher value."""
    worse = replace(BEST, expected_value=1.6, worst_case_value=2.8)
    ax = plot_worst_case(Straight(), worse)
    assert lines(ax)["worst-case value"] == pytest.approx([2.8, 2.8])


def test_names_and_categories_come_from_the_problem():
    space = Space(
        decisions={"price": (10.0, 90.0)},
        contexts={"weather": Category(["sun", "rain"])},
        outcome="profit",
    )
    opt = NamedOptimizer("dro", space, radius=0.4, num_restarts=1, raw_samples=8)
    x = pd.DataFrame({"price": [20.0, 40.0, 60.0, 80.0]})
    c = pd.DataFrame({"weather": ["sun", "rain", "sun", "sun"]})
    opt.tell(x, c, [3.0, 1.0, 5.0, 4.0])
    best = opt.recommend()
    ax = plot_worst_case(opt, best)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weather", "profit")
    shown = [text.get_text() for text in ax.get_xticklabels()]
    assert shown == best.contexts["weather"].tolist()  # the worst first
    heights = [height for _, height in bars(ax)["weight in the worst case"]]
    assert heights == pytest.approx(best.contexts["worst_case_weight"].tolist())
    assert "reference_weight" in best.contexts  # drawing takes nothing away
    table = opt.policy(pd.DataFrame({"weather": ["rain", "sun"]}))
    ax = plot_policy(table[["weather"]], table[["price"]])
    assert ax.get_ylabel() == "price"
    assert "answer holds" in str(best)
    assert "price = " in str(best).split("answer holds")[1] or best.rival is None


def test_a_model_check_shows_each_outcome_and_numbers_the_worst() -> None:
    check = ModelCheck(
        trials=(3, 4, 7, 8, 9),
        outcomes=torch.tensor([1.0, 2.0, 3.0, 4.0, 9.0]).double(),
        predicted=torch.tensor([1.5, 2.5, 2.5, 4.0, 5.0]).double(),
        lower=torch.tensor([0.5, 1.5, 1.5, 3.0, 4.0]).double(),
        upper=torch.tensor([2.5, 3.5, 3.5, 5.0, 6.0]).double(),
        standardised=torch.tensor([-1.0, -1.1, 0.9, 0.0, 8.0]).double(),
        fold=torch.arange(5),
        refitted=False,
        near=None,
        unseen=0.0,
        unseen_columns=(0.0,),
        context_names=("c1",),
    )
    ax = plot_model_check(check, outcome="profit (EUR)")
    inside, outside = ax.containers
    points = [
        (x, y) for drawn in (inside, outside) for x, y in drawn.lines[0].get_xydata()
    ]
    assert points == [(1.5, 1.0), (2.5, 2.0), (2.5, 3.0), (4.0, 4.0), (5.0, 9.0)]
    assert outside.get_label() == "outside: 1"
    (bars,) = outside.lines[2]
    assert bars.get_segments()[0].tolist() == [[4.0, 9.0], [6.0, 9.0]]
    assert [text.get_text() for text in ax.texts] == ["9", "4", "3"]
    assert ax.get_ylabel() == "profit (EUR)"
    diagonal = ax.lines[-1].get_xydata().tolist()
    assert diagonal == [[1.0, 1.0], [9.0, 9.0]]


def farm(outcomes: list[float] | None = None, **options: object) -> NamedOptimizer:
    space = Space(
        {"N": (0.0, 1.0)},
        {"rain": (0.0, 1.0), "soil": Category(["clay", "sand"])},
        outcome="yield",
    )
    few = {"num_restarts": 1, "raw_samples": 8, "surrogate": "botorch"}
    opt = NamedOptimizer("wdrbo_exact", space, **{"radius": 0.2, **few, **options})
    n = 12
    x, rain = uniform(n, 1).flatten(), uniform(n, 1, seed=1).flatten()
    soil = ["clay", "sand"] * (n // 2)
    y = (-(x - rain).square()).tolist() if outcomes is None else outcomes
    opt.tell({"N": x.tolist()}, {"rain": rain.tolist(), "soil": soil}, y)
    return opt


def test_one_outcome_far_away_does_not_squeeze_the_others() -> None:
    near = [4.0 + 0.1 * i for i in range(11)]
    for far, corner in ((71.0, 0.99), (-71.0, 0.01)):
        check = farm([*near, far]).check()
        ax = plot_model_check(check)
        assert ax.get_ylim() == pytest.approx((3.75, 5.25))
        left, right = ax.get_xlim()
        assert left <= 3.75 and right >= 5.25
        (note,) = (t for t in ax.texts if "outside the picture" in t.get_text())
        assert note.get_text().startswith(f"trial 11 ({far:g}) is outside")
        assert note.xy[1] == corner
        hidden = sum(not left <= p <= right for p in check.predicted[:11].tolist())
        assert hidden <= 4
        assert (f"as are {hidden} others" in note.get_text()) is (hidden > 0)
        assert ax.get_ylabel() == "yield"  # the column's name
    ax = plot_model_check(farm([*near, 6.0]).check())
    assert ax.get_ylim()[1] > 6.0
    assert not any("outside" in t.get_text() for t in ax.texts)


def test_several_contexts_stand_side_by_side_and_say_which_become_likelier() -> None:
    opt = farm()
    best = opt.recommend()
    both, ends = best.contexts, ("reference_weight", "worst_case_weight")
    gains = both[ends[1]] > both[ends[0]] + 1e-3
    for column in ("soil", "rain"):
        ax = plot_worst_case(opt, best, column=column)
        drawn = {
            group.get_label(): group.lines[0].get_xydata()
            for group in ax.containers
            if group.get_label().startswith(("outcome in each", "likelier"))
        }
        likelier = drawn["likelier in the worst case"]
        assert len(likelier) == gains.sum() > 0
        assert sum(map(len, drawn.values())) == len(both)
        if column == "soil":
            places = [at for xy in drawn.values() for at in xy[:, 0]]
            assert len({round(place, 6) for place in places}) == len(both)
            assert all(abs(at - round(at)) < 0.4 for at in places)


def test_a_profile_says_what_its_radius_counts() -> None:
    for radius, words in (
        (0.2, "how far the contexts may shift (in widths of context_bounds)"),
        ({"rain": 0.1}, "(in multiples of the radius by column)"),
    ):
        opt = farm(radius=radius)
        few = torch.tensor([0.0, 1.0])
        profile = opt.robustness_profile({"N": 0.5}, radii=few)
        assert words in plot_robustness_profile(profile).get_xlabel()


def test_shifts_stand_together_and_each_method_is_joined() -> None:
    ax = plot_compare(farm().compare(shifts={"rain": 0.01}))
    joined = [line for line in ax.get_lines() if line.get_linestyle() == "-"]
    places = torch.tensor([line.get_xdata().tolist() for line in joined])
    assert places.shape == (2, 2)
    within = (places[1] - places[0]).abs().max().item()
    between = (places[:, 1] - places[:, 0]).max().item()
    assert within < between / 5
    left, right = ax.get_xlim()
    assert between <= (right - left) / 3


def test_eleven_names_do_not_run_together() -> None:
    names = [f"substrate {letter}" for letter in "ABCDEFGHIJK"]
    table = pd.DataFrame({"what": names, "price": range(11)})
    ax = plot_policy(table[["what"]], table[["price"]])
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    assert [label.get_text() for label in labels] == names
    assert {label.get_rotation() for label in labels} == {40.0}
    ax = plot_policy(table[["what"]].head(3), table[["price"]].head(3))
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert ax.get_xticklabels()[0].get_rotation() == 0.0


def test_the_table_of_a_named_policy_is_drawn_as_it_is() -> None:
    opt = NamedOptimizer(
        "erbo",
        Space({"price": (0, 10)}, {"rain": (0, 1), "wind": (5, 9)}),
        num_restarts=1,
        raw_samples=8,
        surrogate="botorch",
    )
    grid = pd.DataFrame({"wind": [5.0, 6.0, 7.0, 8.0], "rain": [0.1, 0.4, 0.6, 0.9]})
    for i, row in enumerate(grid.to_dict("records")):
        opt.tell({"price": 2.0 * i}, row, float(-((2.0 * i - 6) ** 2)))
    for contexts in (grid, grid.drop(columns="rain")):
        found = opt.policy(contexts)
        ax = plot_policy(contexts, found)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("wind", "price")
        assert ax.lines[0].get_ydata() == pytest.approx(found["price"].to_numpy())
        ax = plot_policy(found[["rain"]], found, decision="price")
        assert ax.get_ylabel() == "price"
