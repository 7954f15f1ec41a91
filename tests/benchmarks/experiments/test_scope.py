"""The experiment on scopes: its worlds, its judgement, and its committed table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.commands import RESULTS
from benchmarks.experiments.scope.cases import CASES, OUTCOME
from benchmarks.experiments.scope.play import CVAR, STUDIES, judged, positions
from benchmarks.experiments.scope.report import (
    BAYBE,
    FEATURES,
    by_block,
    make_report,
    report_of_plates,
    statistics,
    statistics_of_plates,
)

SCOPE = RESULTS / "scope"
ROWS = STUDIES["trials"].rows
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


def test_statistics_of_plates_are_positive_where_their_claims_are_right() -> None:
    draw = np.random.default_rng(0)
    rows = [
        {"case": case, "seed": seed, "row": row, "told": told, "commit": "abc"}
        | {m: size + draw.normal() for m in ("mean", "worst_fifth", "hardest_third")}
        for case in ("suzuki", "described")
        for seed in range(8)
        for row, size in {
            **dict.fromkeys((*STUDIES["plates"].rows, BAYBE), 0.0),
            "erbo": 20.0,
            FEATURES: 40.0,
        }.items()
        if case == "described" or row != FEATURES
        for told in (24, 48)
    ]
    rows += [
        {"case": "described", "seed": seed, "row": f"new levels, {row}", "told": 36}
        | {"said": true, "true": true, "commit": "abc"}
        for seed in range(8)
        for row, true in (("features", 0.6), ("names", 0.3))
    ]
    found = statistics_of_plates(pd.DataFrame(rows))
    assert all(one.mean > 0 and one.p < 0.01 for one in found.values())
    assert [found[name].blocks for name in ("P1", "D1", "D3")] == [16, 8, 8]


def test_features_are_known_to_one_row_only() -> None:
    world = CASES["described"](101)
    plain = world.without_features()
    assert world.chosen["x1"].constructor_arguments()["features"]
    assert "features" not in plain.chosen["x1"].constructor_arguments()
    assert np.array_equal(plain.outcomes, world.outcomes)
    assert [*STUDIES["plates"].rows_of(plain)] == [*STUDIES["plates"].rows[:-1]]


def test_the_committed_page_of_plates_is_made_of_the_committed_tables() -> None:
    rows = pd.read_csv(SCOPE / "plates.csv")
    page = (SCOPE / "plates.md").read_text(encoding="utf-8")
    assert page == report_of_plates(rows)
    study = STUDIES["plates"]
    blocks = rows[["case", "seed"]].drop_duplicates()
    assert len(blocks) == len(study.seeds) * len(study.cases)
    said = " ".join((ROOT / "docs/scope.md").read_text(encoding="utf-8").split())
    found = statistics_of_plates(
        pd.concat([rows, pd.read_csv(SCOPE / "baybe.csv")], ignore_index=True)
    )
    for name in ("P1", "P2", "P3", "P4", "B1", "B2", "D1", "D2"):
        one = found[name]
        words = f"{one.mean:.1f} ± {one.error:.1f}".replace("0.", ".")
        assert words in said, (name, words)


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
