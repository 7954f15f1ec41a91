"""The experiment on scopes: its worlds, its judgement, and its committed table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.commands import RESULTS
from benchmarks.experiments.scope.cases import CASES, OUTCOME
from benchmarks.experiments.scope.play import CVAR, ROWS, judged, positions
from benchmarks.experiments.scope.report import by_block, make_report, statistics

SCOPE = RESULTS / "scope"
ROOT = RESULTS.parents[1]


@pytest.mark.parametrize("case", ["additive", "crossed", "field"])
def test_a_world_is_a_list_of_pairs_between_0_and_100(case: str) -> None:
    world, other = CASES[case](1), CASES[case](2)
    assert world.outcomes.shape == (len(world.decisions), len(world.contexts))
    assert (world.outcomes.min(), world.outcomes.max()) == (0.0, 100.0)
    assert not np.allclose(world.outcomes, other.outcomes)
    rows, columns = np.array([3, 5]), np.array([0, 2])
    told = world.trials(rows, columns, np.zeros(2))
    assert told[OUTCOME].tolist() == world.outcomes[rows, columns].tolist()
    # What is told finds its way back.
    assert positions(world.decisions, told[[*world.chosen]]).tolist() == rows.tolist()
    assert positions(world.contexts, told[[*world.met]]).tolist() == columns.tolist()


def test_a_decision_is_judged_over_the_whole_scope() -> None:
    world = CASES["additive"](1)
    found = judged(world, world.decisions.iloc[[7]])
    values = sorted(world.outcomes[7])
    assert found["mean"] == pytest.approx(sum(values) / 8)
    assert found["worst_fifth"] == pytest.approx((values[0] + values[1]) / 2)


def test_statistics_are_positive_where_their_claims_are_right() -> None:
    draw = np.random.default_rng(0)
    better = {"erbo": 20.0, "integral": 20.0, CVAR: 25.0}
    rows = [
        {"case": case, "seed": seed, "row": row, "told": told, "commit": "abc"}
        | {m: better.get(row, 0.0) + draw.normal() for m in ("mean", "worst_fifth")}
        | {"hardest_third": 0.0}
        for case in ("a", "b")
        for seed in range(6)
        for row in (*ROWS, CVAR)
        for told in (24, 36, 48)
    ]
    frame = pd.DataFrame(rows)
    assert all(one.mean > 0 and one.p < 0.01 for one in statistics(frame).values())
    assert by_block(frame, 36, "mean").shape == (12, len(ROWS) + 1)
    assert "| F2 | " in make_report(frame)


def test_the_committed_page_is_made_of_the_committed_table() -> None:
    rows = pd.read_csv(SCOPE / "scope.csv")
    page = (SCOPE / "README.md").read_text(encoding="utf-8")
    assert page == make_report(rows)
    assert len(rows) == 72 * 3 * (len(ROWS) + 1)


def test_the_page_on_scopes_says_what_was_measured() -> None:
    rows = pd.read_csv(SCOPE / "scope.csv")
    found = statistics(rows)
    said = " ".join((ROOT / "docs/scope.md").read_text(encoding="utf-8").split())
    one, panel = found["F1"].mean + 8.0, found["F2"].mean + 8.0
    assert f"{one:.1f} ± {found['F1'].error:.1f} of 100 better" in said
    assert (
        f"panel of four {panel:.1f} ± {found['F2'].error:.1f}".replace("0.", ".")
        in said
    )
    assert (
        f"({found['E'].mean:.1f} ± {found['E'].error:.1f} in".replace("0.", ".") in said
    )
    mean = by_block(rows, 48, "mean").mean()
    gains = mean["erbo"] - mean["one context"], mean["erbo"] - mean["panel"]
    assert f"better and the mean {gains[0]:.1f}, against" in said
    assert f"and {gains[1]:.1f}; the gain of 8" in said
