"""A page names the danger, the price and the other side, and shows the curve."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from botorch_drbo import Integer, MeanShift, NamedOptimizer
from botorch_drbo.report import write_report
from botorch_drbo.surrogate import FixedHyperparameters
from tests.recommendation.test_price import told


def test_the_page_of_a_bakery_names_danger_price_and_other_side(tmp_path: Path) -> None:
    opt = told("box", 3, against=MeanShift({"c": (-2, 1)}), give_up=0.1)
    write_report(opt, tmp_path / "page.html", q=1)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    best = opt.recommend()
    assert f"The worst of the dangers named is {best.worlds[0].name}" in page
    assert f"The other way, {best.worlds[-1].name}, it is" in page
    assert "The decision gives up" in page and "in the worst case;" in page
    rows = re.findall("<tr><td>.*?</tr>", page.split("better worst case costs</h2>")[1])
    table = rows[: next(i for i, row in enumerate(rows) if row.count("<td>") != 4)]
    assert len(table) == len(set(table)) > 0  # one decision may answer several limits


def test_where_nothing_is_given_up_no_rounding_is_said(tmp_path: Path) -> None:
    """One column of the table is the best of all contexts, so also of the worst."""
    rows = [(x, c, x + c) for x in range(4) for c in range(4)]
    opt = NamedOptimizer.from_dataframe(
        pd.DataFrame(rows, columns=["x", "c", "y"]),
        decisions={"x": Integer(0, 3)},
        contexts={"c": (0.0, 3.0)},
        outcome="y",
        give_up=0.1,
        hyperparameters=FixedHyperparameters(lengthscale=2.0, noise_variance=1e-3),
        num_restarts=1,
        raw_samples=8,
    )
    write_report(opt, tmp_path / "page.html", q=1)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The decision has the best expected y: it gives up nothing of it" in page
    assert "There is nothing to buy" in page


def test_a_page_without_a_danger_has_no_curve(tmp_path: Path) -> None:
    write_report(told("box", 3), tmp_path / "page.html", q=1)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What a better worst case costs" not in page
