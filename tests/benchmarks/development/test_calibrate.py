"""Predictions and promises against the truth of the functions."""

import shutil
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist

from benchmarks.__main__ import main
from benchmarks.development import promises as module
from benchmarks.development import random_rows
from benchmarks.development.calibrate import calibration_report, promise_cells
from benchmarks.development.cases import CASES
from benchmarks.development.learn import SEARCH, Task
from benchmarks.development.promises import KeptPromises, promises, true_worst_case
from benchmarks.development.store import history_of, run_of
from benchmarks.development.truth import truth_of
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.schedules import SpreadRadius


@pytest.mark.parametrize("name", ["six_hump_camel", "branin_2_2"])
@pytest.mark.parametrize("radius", [None, 0.0, 0.05, 3.0])
def test_the_true_worst_case_is_that_of_a_linear_program(name, radius, monkeypatch):
    monkeypatch.setattr(module, "_NUM_GRID", 100)
    function = truth_of(name, 0).function
    contexts = function.sample_contexts(6, seed=2)
    x = torch.full((function.d_x,), 0.3).double()
    found = true_worst_case(function, x, contexts, radius)
    # transport from the contexts seen to a grid and to themselves
    side = 100 if function.d_c == 1 else 10
    axis = np.linspace(0, 1, side)
    grid = np.stack(np.meshgrid(*[axis] * function.d_c, indexing="ij"), -1)
    box, seen = function.context_bounds.numpy(), contexts.numpy()
    points = np.concatenate([box[0] + grid.reshape(side**function.d_c, -1), seen])
    values = function.evaluate(x, torch.from_numpy(points)).numpy()
    plan = cp.Variable((6, len(points)), nonneg=True)
    cost = cdist(seen, points)  # the boxes have sides of one
    limit = SpreadRadius().of(contexts) if radius is None else radius
    lowest = cp.Problem(
        cp.Minimize(cp.sum(plan @ values)),
        [cp.sum(plan, axis=1) == 1 / 6, cp.sum(cp.multiply(plan, cost)) <= limit],
    ).solve(solver=cp.CLARABEL)
    spread = values.max() - values.min()
    assert found == pytest.approx(lowest, abs=1e-5 * spread)
    if radius == 0.0:
        own = function.evaluate(x, contexts).mean().item()
        assert found == pytest.approx(own, abs=1e-9)


@pytest.fixture(scope="module")
def run():
    task = Task("six_hump_camel", "erbo", "botorch", 0, rounds=10)
    return run_of(task, list(task.play([])))


def test_promises_are_those_of_recommendations(run):
    expected, worst = promises(run)
    assert (expected.promised, worst.promised) == ("expected", "worst")
    function = truth_of("six_hump_camel", 0).function
    history = history_of(run, 10)
    optimizer = RobustOptimizer(
        "erbo",
        function.bounds,
        function.context_bounds,
        num_initial=0,
        surrogate="botorch",
        **SEARCH,
    )
    optimizer.tell(history.X, history.C, history.Y, closes_pending=False)
    best = optimizer.recommend()
    assert best.expected_interval is not None
    assert expected.mean == pytest.approx(best.expected_value, rel=1e-3)
    interval = pytest.approx(best.expected_interval, rel=1e-2, abs=1e-2)
    assert (expected.low, expected.high) == interval
    x = best.x.unsqueeze(0)
    seen = function.evaluate(x, history.C).mean().item()
    assert expected.found == pytest.approx(seen, abs=1e-3)
    law = function.expected_value(x).item()
    assert expected.true == pytest.approx(law, abs=1e-2)
    # no distribution of the ball is worse than the worst
    assert worst.true <= worst.found + 1e-3
    assert worst.low <= worst.mean <= worst.high


def test_cells_count_what_lies_inside():
    table: Any = pd.DataFrame(
        {
            "mean": [1.0, 2.0, 3.0, 4.0],
            "low": [0.0, 0.0, 0.0, 0.0],
            "high": [2.0, 4.0, 6.0, 8.0],
            "widening": [1.0, 4.0, 1.0, 1.0],  # the second one: 1.5 to 2.5 at first
            "found": [1.0, 3.5, 5.0, -1.0],
            "true": [1.0, 3.0, 3.0, 9.0],
            "spread": [2.0, 2.0, 2.0, 4.0],
        }
    )
    stated = ["75% ± 22", "2.00", "-0.12 ± 0.51", "50% ± 25", "1.50"]
    # widths 1, 2, 3, 2; optimism 0, -.75, -1, 1.25, and by the law 0, -.5, 0, -1.25
    assert promise_cells(table) == [*stated, "75% ± 22", "-0.44 ± 0.30"]


def test_both_halves_are_pooled_where_both_are_there():
    row: dict[str, Any] = {"mean": 1.0, "low": 0.0, "high": 2.0, "widening": 1.0}
    row |= {"surrogate": "botorch", "told": 15, "spread": 1.0, "case": "bowl_3_1"}
    found = {"A": [1.0, 1.5], "B": [1.0, 2.5, 3.0]}
    table = pd.DataFrame(
        {**row, "half": half, "found": value, "true": value, "promised": promised}
        for half, values in found.items()
        for value in values
        for promised in ("expected", "worst")
    )
    assert calibration_report([], table).count("###") == 0  # of no runs
    task = Task("six_hump_camel", "erbo", "botorch", 0, rounds=15)
    run = run_of(task, list(task.play([])))
    text = calibration_report([run], table)
    for group, cells in {
        "half A": "2 | 100% ± 0",
        "half B": "3 | 33% ± 27",
        "both halves": "5 | 60% ± 22",
    }.items():
        part = text[text.index(f"### Promises after 15 outcomes, {group}") :]
        assert f"| botorch | expected | {cells} | 2.00" in part[:600]
    assert "| bowl_3_1 | 3 of 5 | 3 of 5 |" in text


def test_the_command_makes_each_promise_once(tmp_path, capsys, monkeypatch):
    where = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    where += ["--workers", "1"]
    assert main(["calibration", *where]) == 2  # no runs yet
    assert "benchmarks development" in capsys.readouterr().err
    what = ["--cases", "newsvendor", "--surrogates", "botorch", "--seeds", "2"]
    assert main(["development", *what, "--rounds", "10", *where]) == 0
    assert main(["calibration", "--seeds", "1", *where]) == 0
    text = (tmp_path / "out" / "calibration.md").read_text()
    assert "| botorch | 10 |" in text  # predictions of both seeds
    assert "### Promises after 10 outcomes" in text
    calls = []
    monkeypatch.setattr(
        KeptPromises, "make", lambda self, row: calls.append(row["seed"]) or 0
    )
    assert main(["calibration", "--seeds", "2", *where]) == 0
    assert calls == [1]
    assert main(["calibration", "--first-seed", "2", "--seeds", "3", *where]) == 0
    assert calls == [1]
    capsys.readouterr()


def test_committed_intervals_are_not_made_again_and_stay(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(random_rows, "CASES", {"newsvendor": CASES["newsvendor"]})
    monkeypatch.setattr(random_rows, "TOLD", (6,))
    monkeypatch.setattr(random_rows, "SURROGATES", ("botorch",))
    where = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    where += ["--random-rows", "--half", "A", "--workers", "1"]
    assert main(["calibration", "--seeds", "1", *where]) == 0
    path = tmp_path / "out" / "intervals_A.csv"
    first = pd.read_csv(path)
    assert first["promised"].tolist() == ["expected", "worst"]
    first.assign(surrogate="two").to_csv(path, index=False)  # as if of another study
    shutil.rmtree(tmp_path / "work")
    assert main(["calibration", "--seeds", "1", *where]) == 0
    both = pd.read_csv(path)
    assert both["surrogate"].tolist() == ["botorch"] * 2 + ["two"] * 2
    monkeypatch.setattr(random_rows, "_make", None)  # nothing is made any more
    assert main(["calibration", "--seeds", "1", *where]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(path), both)
    text = (tmp_path / "out" / "intervals_A.md").read_text()
    assert "| two | 6 | worst | 1 | " in text
    assert "| newsvendor | " in text
    capsys.readouterr()
