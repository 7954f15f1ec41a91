"""Published values beside ours."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.run import published
from benchmarks.run.config import CONFIGS, from_toml
from benchmarks.run.published import PUBLISHED, published_table

CONFIG = {"name": "by_hand", "initial": 2}


def rows(iterations: int) -> pd.DataFrame:
    """Two methods, two seeds; decision n of seed s is worth 10 s + n, or minus that."""
    return pd.DataFrame(
        {
            "algorithm": label,
            "seed": seed,
            "iteration": i,
            "expected": sign * (10.0 * seed + i + 3),
        }
        for label, sign in (("known", 1.0), ("new", -1.0))
        for seed in (0, 1)
        for i in range(iterations)
    )


@pytest.fixture(autouse=True)
def by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "by_hand.csv").write_text(
        "problem,algorithm,seed,first,last,value\n"
        "hill,known,0,3,4,7\nhill,known,1,3,4,8\n"
        "hill,known,0,5,6,8\nhill,known,1,5,6,12\nlake,known,0,3,4,1\n"
    )
    monkeypatch.setattr(published, "PUBLISHED", tmp_path)


def test_means_of_each_part_of_the_run_stand_beside_the_published_ones() -> None:
    table = published_table(rows(4), "hill", CONFIG)
    assert table is not None
    assert table.head[1:] == ["decisions 3 to 4, theirs", "ours", *table.head[3:]]
    # Decisions 3 and 4: 3.5 and 13.5, mean 8.5, error 10 / 2; 5 and 6 are worth 2 more.
    # Theirs: 7 and 8, mean 7.5, error .5; 8 and 12, mean 10, error 2.
    assert table.rows[0][:3] == ["known", "7.50 ± 0.50", "8.5 ± 5.0"]
    assert table.rows[0][3:] == ["10.0 ± 2.0", "10.5 ± 5.0"]
    assert table.rows[1] == ["new", "", "-8.5 ± 5.0", "", "-10.5 ± 5.0"]


def test_a_part_that_was_not_played_whole_is_left_out() -> None:
    table = published_table(rows(3), "hill", CONFIG)
    assert table is not None and len(table.head) == 3
    assert published_table(rows(1), "hill", CONFIG) is None
    assert published_table(rows(4), "nowhere", CONFIG) is None
    assert published_table(rows(4), "hill", {**CONFIG, "name": "other"}) is None


def test_edrbo_has_published_what_its_config_runs() -> None:
    config = from_toml(CONFIGS / "edrbo.toml", "paper")
    theirs = pd.read_csv(PUBLISHED / "edrbo.csv")
    assert {p.label for p in config.problems} == set(theirs["problem"])
    assert set(theirs["algorithm"]) <= {a.label for a in config.algorithms}
    assert config.initial + config.iterations == theirs["last"].max() == 200
    assert set(theirs["seed"]) == set(config.seeds)
    assert len(theirs) == 9 * 9 * 10 * 3
