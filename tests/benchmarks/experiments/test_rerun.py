"""How far runs are from those of an earlier commit."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.experiments.rerun import means_moved, rerun_table, reruns
from benchmarks.run.config import ConfigError
from benchmarks.run.storage import Run, RunKey, collect_runs, run_file, save
from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, committed_table, words_of


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def record(results: Path, regrets: dict[int, list[float]]) -> None:
    """Results of one method, a run for each seed."""
    rounds = {RunKey("p", "a", seed): len(each) for seed, each in regrets.items()}
    for key, each in zip(rounds, regrets.values(), strict=True):
        rows = [
            {"iteration": i, "x": [0.5], "c": [0.5], "y": 1.0}
            | {"expected": 1.0, "regret": regret}
            for i, regret in enumerate(each)
        ]
        header = {"seed": key.seed, "versions": {}}
        made = {"commit": "c", "machine": "m", "load": 0.0}
        save(Run(rows, header, made), run_file(results / "e", key))
    collect_runs(rounds, results / "e", {})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A clone with results of three seeds, then of others and of another length."""
    git(tmp_path, "init", "-q")
    folder = tmp_path / "results"
    record(folder, {0: [1.0, 2.0], 1: [4.0, 4.0], 2: [50.0, 50.0], 7: [1.0]})
    git(tmp_path, "add", "results/e/results.parquet")
    git(tmp_path, "commit", "-qm", "earlier")
    record(folder, {0: [1.0, 2.0, 9.0], 1: [4.0, 2.0], 2: [50.0, 50.5], 8: [1.0]})
    return folder


def test_runs_of_both_over_the_rounds_of_both(results: Path):
    table = str(rerun_table(results, "e", "HEAD"))
    # Means: .5 beside an error of 45.
    row = "| 3 | 1 | 1 | -25% (a on p, seed 1) | 0.0 (a on p) |"
    assert f"| `a` {row}\n| all {row}" in table


def test_decisions_of_a_list_have_a_position_and_a_regret_may_be_zero():
    runs = {"problem": "p", "algorithm": "a", "seed": [0, 1, 2]}
    earlier = pd.DataFrame(runs | {"position": [1, 2, 3], "regret": [0.0, 0.0, 2.0]})
    later = earlier.assign(position=[1, 9, 3], regret=[0.0, 1.0, 2.0])
    assert [(r.same, r.moved) for r in reruns(earlier, later)] == [
        (True, 0.0),
        (False, math.inf),
        (True, 0.0),
    ]
    without = [each.drop(columns="regret") for each in (earlier, later)]
    assert [(r.same, r.moved) for r in reruns(*without)] == [
        (True, None),
        (False, None),
        (True, None),
    ]
    assert {(r.same, r.moved) for r in reruns(without[0], later)} == {(False, None)}
    found = reruns(earlier, later.assign(x=[[0.0]] * 3))  # recorded once only
    assert [r.same for r in found] == [False] * 3


def test_how_far_means_have_moved():
    """By hand: from 2 ± 1 to 4 ± 1; from 7 to 8 without an error."""
    runs = {"algorithm": "a", "problem": ["p", "p", "q", "q"], "seed": [0, 1, 0, 1]}
    earlier = pd.DataFrame(runs | {"regret": [1.0, 3.0, 7.0, 7.0]})
    later = earlier.assign(regret=[3.0, 5.0, 7.0, 7.0])
    assert means_moved(reruns(earlier, later)) == "1.4 (a on p)"
    later = earlier.assign(regret=[3.0, 5.0, 8.0, 8.0])
    assert means_moved(reruns(earlier, later)) == "inf (a on q)"
    assert means_moved(reruns(earlier, earlier)) == ""
    assert means_moved(reruns(earlier[1:2], later[1:2])) == ""  # one seed: no error


def test_what_is_not_there_is_said(results: Path):
    with pytest.raises(ConfigError, match="git shows no HEAD:"):
        rerun_table(results, "f", "HEAD")
    git(results.parent, "branch", "old")
    record(results, {9: [1.0]})
    with pytest.raises(ConfigError, match="No run of e is in its results of old"):
        rerun_table(results, "e", "old")


def test_the_page_says_what_has_moved_in_wdrbo():
    """By the paper's methods: not by this library's default model."""
    rows = committed_table("wdrbo/rerun.md")
    del rows["all"], rows["`erbo_ensemble`"]
    runs, same, moved = (sum(int(row[i]) for row in rows.values()) for i in range(3))
    most = max(abs(numbers(row[3])[0].value) for row in rows.values())
    text = words_of("docs/evidence.md")
    assert f"so did all {same} runs of `wdrbo` by the paper's methods" in text
    words = f"of the {runs - same} runs of `wdrbo` by the paper's methods on the EPYC "
    assert f"{words}{moved} have a cumulative regret" in text
    assert f"one by {most:.0f}% (DRBO-KDE on the portfolio" in text
    most = max(numbers(row[4])[0].value for row in rows.values())
    words = f"move by at most {f'{most:.1f}'[1:]} standard errors of the difference, "
    assert f"{words}and no verdict on a paper's" in text
    assert (RESULTS / "wdrbo" / "rerun.md").read_text().count("\n") == len(rows) + 6


def test_the_page_says_that_edrbo_batch_has_other_digits():
    runs, same, *_ = committed_table("edrbo_batch/rerun.md")["all"]
    text = words_of("docs/evidence.md")
    assert f"has other digits in all its {runs} runs" in text and same == "0"


def test_the_page_says_what_has_moved_in_edrbo():
    rows = committed_table("edrbo/rerun.md")
    (runs, same, moved, _, mean), (of, _, most, *_) = rows["all"], rows["`edrbo`"]
    text = words_of("docs/evidence.md")
    words = f"has other digits in all its {runs} runs: {moved} have a cumulative "
    words += f"regret that is another by more than 1%, {most} of the {of} of EDRBO."
    assert words in text and same == "0"
    words = f"The means over the ten seeds move by at most {mean.split()[0]} standard "
    assert f"{words}errors of the difference." in text


def test_the_page_says_which_runs_came_out_bit_for_bit():
    names = ("action_sets", "bocu", "bocu_long", "bounds", "edrbo_slips")
    names = (*names, "misspecified")
    rows = [committed_table(f"{name}/rerun.md")["all"] for name in names]
    runs, same = (sum(int(row[i]) for row in rows) for i in range(2))
    assert runs == same
    text = words_of("docs/evidence.md")
    listed = ", ".join(f"`{name}`" for name in names[:-1])
    words = f"of all {runs:,} runs of {listed} and `{names[-1]}` came out bit for bit"
    assert words in text
