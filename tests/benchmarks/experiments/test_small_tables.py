"""The small tables of studies, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.experiments.small_tables import (
    commits_of,
    write_small_tables,
    write_study,
)
from benchmarks.run.config import ConfigError
from tests.data import RESULTS, needs_raw

RUN = ["case", "seed", "learner", "told", "surrogate", "rule"]
CLAIMS = pd.DataFrame(
    [
        ("bowl", 1, "erbo", 15, "ensemble", "expected", 1.0, 2.0, 3.0, 0.5, 0.6),
        ("bowl", 1, "erbo", 15, "botorch", "expected", 9.0, 9.0, 9.0, 9.0, 9.0),
        ("bowl", 1, "random", 15, "botorch", "expected", 4.0, 5.0, 6.0, 0.7, 0.8),
    ],
    columns=[*RUN, "settled", "shifted", "rare", "beyond_settled", "beyond_shifted"],
)


def test_claims_have_each_learners_own_rule(tmp_path: Path):
    CLAIMS.attrs["commit"] = ["abc+"]
    CLAIMS.to_parquet(tmp_path / "claims.parquet")
    again = CLAIMS.assign(settled=[1.5, 9.0, 4.0], rare=[3.0, 8.0, 6.0])
    again.to_parquet(tmp_path / "claims_repeated.parquet")
    write_study(tmp_path)
    (row,) = pd.read_csv(tmp_path / "claims.csv").to_dict("records")
    assert row == CLAIMS.iloc[0][:9].to_dict()  # no row of `random` is its own
    (row,) = pd.read_csv(tmp_path / "beyond.csv").to_dict("records")
    assert (row["surrogate"], row["beyond_shifted"]) == ("botorch", 0.8)
    moved = pd.read_csv(tmp_path / "claims_repeated.csv")
    assert moved.to_dict("records") == [
        {"case": "bowl", "seed": 1, "learner": "erbo", "moved": 1.0},
        {"case": "bowl", "seed": 1, "learner": "random", "moved": 0.0},
    ]
    commits = json.loads((tmp_path / "commits.json").read_text())
    assert commits == {"claims": ["abc"], "claims_repeated": ["abc"]}


def test_means_of_losses_and_sums_of_regrets(tmp_path: Path):
    about = {"case": "bowl", "method": "erbo", "commit": "abc"}
    losses = pd.DataFrame({"seed": [0, 1], "loss": [0.25, 0.75]})
    losses.assign(contexts=10, deployment="rare", **about).to_parquet(
        tmp_path / "losses.parquet"
    )
    steps = pd.DataFrame({"seed": [0, 0, 1], "regret": [1.0, 2.0, 4.0]})
    steps.assign(**about).to_parquet(tmp_path / "steps.parquet")
    write_study(tmp_path)
    assert (tmp_path / "losses.csv").read_text().splitlines() == [
        "method,contexts,deployment,case,mean,size",
        "erbo,10,rare,bowl,0.5,2",
    ]
    assert (tmp_path / "regrets.csv").read_text().splitlines() == [
        "case,seed,method,regret",
        "bowl,0,erbo,3",
        "bowl,1,erbo,4",
    ]


def test_tables_name_their_commits_as_metadata_or_in_a_column() -> None:
    table = pd.DataFrame({"loss": [1.0, 2.0]})
    assert commits_of(table.assign(commits=[["b", "a+"], ["b"]])) == ["a", "b"]
    assert commits_of(table.assign(commit=["c", "c"])) == ["c"]
    table.attrs["commit"] = ["d+"]
    assert commits_of(table) == ["d"]
    del table.attrs["commit"]
    with pytest.raises(KeyError, match="commit"):  # nothing is guessed
        commits_of(table)


def test_without_raw_files_there_is_nothing_to_write(tmp_path: Path):
    with pytest.raises(ConfigError, match="python -m benchmarks results"):
        write_small_tables(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("tournament", marks=needs_raw("tournament/claims.parquet")),
        pytest.param("development", marks=needs_raw("development/runs.parquet")),
    ],
)
def test_the_tables_of_a_study_are_those_of_its_rows(name: str, tmp_path: Path):
    for path in (RESULTS / name).glob("*.parquet"):
        (tmp_path / path.name).symlink_to(path)
    write_study(tmp_path)
    written = [path for path in tmp_path.iterdir() if not path.is_symlink()]
    assert len(written) >= 2
    for path in written:
        assert path.read_text() == (RESULTS / name / path.name).read_text()
