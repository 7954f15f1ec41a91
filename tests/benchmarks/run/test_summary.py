"""The numbers of the table, against numbers by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.run.report import Estimate
from benchmarks.run.summary import curves, summarise, warning_notes


def rows(regrets: dict[str, dict[int, list[float]]], **columns) -> pd.DataFrame:
    """One problem: algorithm -> seed -> regrets."""
    return pd.DataFrame(
        {
            "problem": "newsvendor",
            "algorithm": label,
            "seed": seed,
            "iteration": i,
            "y": 10.0 - regret,
            "regret": regret,
            "seconds": 0.5,
            "fit_seconds": 0.25,
            "inner_seconds": 0.125,
            "warnings": [[]],
            # what was decided first, said in the last round
            "recommended_regret": run[0] if i == len(run) - 1 else None,
            **columns,
        }
        for label, runs in regrets.items()
        for seed, run in runs.items()
        for i, regret in enumerate(run)
    ).assign(warnings=lambda frame: frame.warnings.map(lambda nested: nested[0]))


RUNS = {
    "wdrbo": {0: [1.0, 2.0], 1: [3.0, 4.0]},
    "erbo": {0: [2.0, 2.0], 1: [4.0, 9.0]},
    "gp_ucb": {1: [1.0, 1.0]},
}


def test_rows_by_hand():
    frame = rows(RUNS)
    frame.loc[frame.algorithm == "wdrbo", "seconds"] = [0.1, 0.2, 0.3, 0.9]
    wdrbo, erbo, gp_ucb = summarise(frame, "erbo")
    assert (wdrbo.label, wdrbo.seeds) == ("wdrbo", 2)
    # Cumulative 3 and 7: mean 5, sample deviation sqrt(8), error 2.
    assert wdrbo.cumulative == Estimate(5.0, pytest.approx(2.0))
    # Outcomes 20 less that.
    assert wdrbo.reward == Estimate(15.0, pytest.approx(2.0))
    # Mean regret of the last ten, here of both: 1.5 and 3.5.
    assert wdrbo.last == Estimate(2.5, pytest.approx(1.0))
    # Paired differences 3 - 4 and 7 - 13: mean -3.5, error 2.5.
    assert wdrbo.difference == Estimate(-3.5, pytest.approx(2.5))
    assert (wdrbo.wins, wdrbo.pairs) == (2, 2)
    # Best regrets 1 and 3; recommended, here, what was decided first.
    assert wdrbo.simple == wdrbo.recommended == Estimate(2.0, pytest.approx(1.0))
    assert wdrbo.seconds == pytest.approx(0.25)
    # Of the longer runs that these are the first rows of, nothing is known.
    shorter = frame[frame.iteration == 0]
    assert [each.recommended for each in summarise(shorter, "erbo")] == 3 * [None]
    # A run that was continued has recommended before, too.
    both = frame.assign(recommended_regret=frame.recommended_regret.bfill())
    assert summarise(both, "erbo")[0].recommended == wdrbo.recommended
    assert (wdrbo.fit, wdrbo.inner) == (0.25, 0.125)
    assert wdrbo.acquisition == pytest.approx(1.5 / 4 - 0.25 - 0.125)
    # Two pairs of one sign: 2 / 2^2 = .5; one pair: 1; Holm's for both.
    assert (wdrbo.p_value, erbo.p_value, gp_ucb.p_value) == (1.0, None, 1.0)
    assert erbo.difference is None and erbo.wins is None
    # One seed: no error; paired with the same seed of the baseline, not with its mean.
    assert gp_ucb.cumulative == Estimate(2.0, None)
    assert gp_ucb.difference == Estimate(-11.0, None)
    assert (gp_ucb.wins, gp_ucb.pairs) == (1, 1)


def test_last_regret_covers_ten_iterations():
    frame = rows({"erbo": {0: [100.0] * 5 + [1.0] * 10}})
    assert summarise(frame, "erbo")[0].last.mean == 1.0


def test_pairing_removes_what_seeds_share():
    shared = [0.0, 50.0, 200.0]
    frame = rows(
        {
            "a": {i: [s + 1.0] for i, s in enumerate(shared)},
            "b": {i: [s] for i, s in enumerate(shared)},
        }
    )
    row = summarise(frame, "b")[0]
    assert row.difference == Estimate(pytest.approx(1.0), pytest.approx(0.0))
    assert row.cumulative.error is not None and row.cumulative.error > 10


def test_warnings_are_counted():
    frame = rows({"a": {0: [1.0, 2.0], 1: [1.0, 1.0]}, "b": {0: [1.0, 1.0]}})
    frame["warnings"] = [["A: again"], ["A: again", "B"], [], [], [], []]
    assert warning_notes(summarise(frame, "a"), 2) == [
        "a: 2 of 4 asks warned, mostly 'A: again'"
    ]


def test_curves_are_seeds_by_iterations():
    result = curves(rows(RUNS), "cumulative")
    assert list(result) == ["wdrbo", "erbo", "gp_ucb"]
    assert result["wdrbo"].tolist() == [[1.0, 3.0], [3.0, 7.0]]
    simple = curves(rows({"a": {0: [3.0, 1.0, 2.0]}}), "simple")
    assert simple["a"].tolist() == [[3.0, 1.0, 1.0]]


def test_running_means_are_of_the_last_ten_or_of_as_many_as_there_are():
    values = [float(n**2) for n in range(25)]
    running = curves(rows({"a": {0: values}}), "running")["a"].squeeze(0).tolist()
    by_hand = [np.mean(values[max(0, n - 9) : n + 1]) for n in range(25)]
    assert running == pytest.approx(by_hand)
