"""One decision on each context of a list: dots, heat map, and what is said of them."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from matplotlib import pyplot as plt
from scipy.stats import norm

from botorch_drbo import Category, NamedOptimizer, Space
from botorch_drbo.plotting import plot_scope
from botorch_drbo.report import write_report
from tests.models import uniform

FEW: dict[str, Any] = {"surrogate": "botorch", "num_restarts": 1, "raw_samples": 32}


@pytest.fixture(autouse=True)
def no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def run(n: int = 5, sign: float = 1.0, **options: Any) -> NamedOptimizer:
    """Ligand b is the best for even substrates, c for odd ones; temp counts too."""
    names = [f"substrate {i} of {n}" for i in range(n)]
    space = Space(
        {"temp": (0.0, 1.0), "ligand": Category(["a", "b", "c"])},
        {"substrate": Category(names)},
        outcome="yield",
    )
    temps, t = uniform(3 * n, seed=3), torch.arange(3 * n)
    ligand, number = (t // n) % 3, t % n
    y = 30.0 + 10.0 * temps + 20.0 * (ligand == 1 + number % 2) - 3.0 * number
    opt = NamedOptimizer("erbo", space, maximize=sign > 0, **{**FEW, **options})
    x = pd.DataFrame(
        {"temp": temps, "ligand": [["a", "b", "c"][i] for i in ligand.tolist()]}
    )
    c = pd.DataFrame({"substrate": [names[i] for i in number.tolist()]})
    opt.tell(x, c, (sign * y).tolist())
    return opt


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_dots_are_predictions_best_on_top(sign: float) -> None:
    opt = run(sign=sign)
    best = opt.recommend(level=0.8)
    dots, _ = plot_scope(opt, best)
    found = opt.predict(best.x, best.contexts[["substrate"]])
    found = found.sort_values("mean", ascending=sign < 0)
    labels = [label.get_text() for label in dots.get_yticklabels()]
    assert labels == found["substrate"].tolist()
    (container,) = dots.containers
    means, _, (bars,) = container
    assert means.get_xdata() == pytest.approx(found["mean"].to_numpy())
    half = norm.ppf(0.9) * best.promise.widening * found["sd"].to_numpy()
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    assert ends[:, 1] - ends[:, 0] == pytest.approx(2.0 * half, rel=1e-4)
    top, bottom = dots.get_ylim()[::-1]
    assert top < bottom  # the first label is the highest
    assert "80% intervals" in dots.get_xlabel()


@pytest.mark.parametrize(
    ("objective", "sign"),
    [("mean", 1.0), ("worst 40%", 1.0), ("worst 40%", -1.0), ("share above 25", 1.0)],
)
def test_the_others_are_the_best_by_what_was_decided_for(
    objective: str, sign: float
) -> None:
    """Brute force over all that was tried, one after the other."""
    opt = run(sign=sign, objective=objective)
    best = opt.recommend()
    _, heat = plot_scope(opt, best)
    (mesh,) = heat.collections
    shown = np.asarray(mesh.get_array()).reshape(5, -1)
    assert shown.shape == (5, 10)  # contexts by decisions
    contexts = best.contexts[["substrate"]]
    scores, rows = [], []
    for _, tried in opt.history[["temp", "ligand"]].drop_duplicates().iterrows():
        found = opt.predict(dict(tried), contexts)
        mean, sd = sign * found["mean"].to_numpy(), found["sd"].to_numpy()
        if objective.startswith("share"):
            scores.append(norm.cdf((mean - 25.0) / sd).mean())
        else:
            worst = 5 if objective == "mean" else 2
            scores.append(np.sort(mean)[:worst].mean())
        rows.append(sign * np.sort(mean))
    order = np.argsort(scores)[::-1][:9]
    for place, i in enumerate(order, 1):
        assert np.sort(sign * shown[:, place]) * sign == pytest.approx(
            rows[i], rel=1e-5
        )
    own = opt.predict(best.x, contexts)["mean"].to_numpy()
    assert np.sort(shown[:, 0]) == pytest.approx(np.sort(own))
    key = heat.get_xlabel().splitlines()
    assert key[0] == "temp, ligand" and len(key) == 11


def test_where_it_fails_is_said_by_name() -> None:
    opt = run()
    best = opt.recommend()
    found = opt.predict(best.x, best.contexts[["substrate"]]).sort_values("mean")
    threshold = found["mean"].iloc[:3].mean()
    missed = found.loc[found["mean"] < threshold, "substrate"].tolist()
    dots, _ = plot_scope(opt, best, threshold=threshold)
    title = " ".join(dots.get_title(loc="left").split())
    assert f"on {len(missed)} of 5: {missed[0]} (" in title
    assert all(f"{name} (" in title for name in missed)
    assert title.count("substrate") == len(missed)
    low = found["mean"] - norm.ppf(0.95) * best.promise.widening * found["sd"]
    unsure = ((low < threshold) & (found["mean"] >= threshold)).sum()
    assert unsure == 3 and "On 3 more it may miss it" in title
    (line,) = (a for a in dots.lines if len(set(a.get_xdata())) == 1)
    assert line.get_xdata()[0] == pytest.approx(threshold)
    dots, _ = plot_scope(opt, best, threshold=-100.0)
    assert dots.get_title(loc="left").split()[-2:] == ["all", "5."]
    dots, _ = plot_scope(opt, best)
    assert "the mean of all outcomes so far" in dots.get_xlabel()
    costs = run(sign=-1.0)
    dots, _ = plot_scope(costs, costs.recommend(), threshold=100.0)
    assert dots.get_title(loc="left").split()[-2:] == ["all", "5."]
    aimed = run(objective="share above 25")
    dots, _ = plot_scope(aimed, aimed.recommend())
    assert "dashed: 25, what is aimed at" in dots.get_xlabel()


def test_thirty_labels_are_horizontal_and_apart() -> None:
    opt = run(30)
    dots, heat = plot_scope(opt, opt.recommend())
    dots.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in dots.get_yticklabels()]
    assert len(boxes) == 30
    assert all(label.get_rotation() == 0.0 for label in dots.get_yticklabels())
    ends = sorted((box.y0, box.y1) for box in boxes)
    assert all(low[1] <= high[0] for low, high in pairwise(ends))
    canvas = dots.figure.bbox
    for box in (*boxes, heat.xaxis.label.get_window_extent()):
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1 and canvas.y0 <= box.y0


def test_a_scope_is_the_reference_and_not_too_long() -> None:
    opt = run(30)
    names = opt.named_space.contexts["substrate"].choices[3:5]
    scope = opt.named_space.context_set(pd.DataFrame({"substrate": names}))
    dots, _ = plot_scope(opt, opt.recommend(context_set=scope))
    assert {label.get_text() for label in dots.get_yticklabels()} == set(names)
    long = run(61)
    with pytest.raises(InputDataError, match="61 contexts, a picture has room for 60"):
        plot_scope(long, long.recommend())


def test_the_report_has_it_where_contexts_are_a_list(tmp_path: Path) -> None:
    served = [f"substrate {i} of 5" for i in range(5)]
    opt = run(scope={"substrate": served}, objective="minimum", give_up=0.5)
    write_report(opt, tmp_path / "a.html", q=1)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "the decision has to serve" in page and "what you meet" not in page
    prices = page[page.index('id="price"') :].split("</table>")[0].split("<tr")[2:]
    assert len(prices) == len(set(prices)) > 0
    assert 'id="scope"' in page and "On each context" in page
    assert page.count("substrate 4 of 5") > 3
    space = Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)})
    plain = NamedOptimizer("erbo", space, **FEW)
    plain.tell({"x": uniform(6)}, {"c": uniform(6, seed=1)}, uniform(6).tolist())
    write_report(plain, tmp_path / "b.html", q=1)
    assert 'id="scope"' not in (tmp_path / "b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("threshold", "verb"), [(-100.0, "reach"), (1e4, "miss")])
def test_of_one_context_there_is_no_all(threshold: float, verb: str) -> None:
    opt = run(scope={"substrate": ["substrate 1 of 5"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # no such outcome was seen
        best = opt.recommend(objective=f"share above {threshold:g}")
    words = " ".join(plot_scope(opt, best)[0].get_title(loc="left").split())
    assert f"expected to {verb}" in words and "1 of 5, the only one:" in words
    assert "all 1" not in words and "of 1:" not in words
