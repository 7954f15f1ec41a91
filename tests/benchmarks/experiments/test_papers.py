"""Claims of papers are judged by the rule that their page states."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.experiments.papers import judge
from benchmarks.experiments.papers.bandits import (
    crossed_objectives,
    quarters,
    ranks_of_bocu,
    sizes_of_bocu,
)
from benchmarks.experiments.papers.judge import (
    before,
    by_problem,
    cells_of,
    each_pair,
    each_pair_by_problem,
    ranks_of,
    verdict,
    with_our_default,
)
from benchmarks.experiments.papers.report import make_report
from benchmarks.run.tables import RUNS, load_tables
from benchmarks.study.compare import Comparison
from tests.page_sources.files import RESULTS


def test_a_verdict_needs_enough_blocks():
    assert verdict([-1.0, -2.0]).startswith("cannot be decided (p 0.50)")  # 2 / 2^2
    assert verdict([-float(i) for i in range(1, 6)]).startswith("cannot be decided")
    assert verdict([-float(i) for i in range(1, 7)]) == "holds (p 0.031)"  # 2 / 2^6
    assert verdict([float(i) for i in range(1, 7)]) == "does not hold (p 0.031)"


def test_ranks_of_two_groups():
    ranks = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0], "c": [3.0, 3.0]})
    assert before(ranks, ["a", "b"], ["c"]).tolist() == [-1.5, -1.5]


def test_our_default_stands_beside_the_papers_methods(monkeypatch: pytest.MonkeyPatch):
    """It has no rank, and one claim; a method without such a column has none."""
    scores = pd.DataFrame(
        {"a": [2.0, 4.0] * 3, "a_ensemble": [1.0, 3.5] * 3, "b": [1.5, 9.0] * 3},
        index=pd.MultiIndex.from_product(
            [["first"], range(6)], names=["problem", "seed"]
        ),
    )
    monkeypatch.setattr(judge, "scores_of", lambda *_: (scores, "6 seeds, 9 rounds"))
    ranks, _ = ranks_of("any")
    assert ranks.to_numpy().tolist() == [[2.0, 1.0], [1.0, 2.0]] * 3
    (claim,) = with_our_default("any", "a", "5 seeds")
    assert claim.verdict == "holds (p 0.031)"
    assert claim.measured == "lower in 6 of 6 runs; problem by problem: lower on first"
    assert claim.size == "6 seeds, 9 rounds; the paper: 5 seeds"
    assert not list(with_our_default("any", "b", "5 seeds"))


def test_the_page_and_the_commits_are_those_of_the_files():
    report = make_report()
    assert str(report) == (RESULTS / "papers.md").read_text(encoding="utf-8")
    values = (RESULTS / "edrbo_values.md").read_text(encoding="utf-8")
    assert report.texts["edrbo_values.md"] == values
    commits = (RESULTS / "commits.md").read_text(encoding="utf-8")
    assert report.texts["commits.md"] == commits
    paths = list(RESULTS.rglob(RUNS))
    assert len(paths) == 14
    for path in paths:
        _, about = load_tables(path.parent)
        assert all(f"`{each}`" in commits for each in about["commit"])
    (one,) = set(re.findall("`([0-9a-f]{12})`", commits))
    page = (RESULTS.parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert f"All results of experiments are from one commit, `{one[:7]}`." in page
    (row,) = cells_of("unchanged.md", "| commit |").items()
    assert row[0] == f"`{one}`" and "`edrbo`" in row[1][0]


def test_blocks_that_show_a_difference():
    """By hand: deviation 24, 4 points: (2.8016 * 24 / 4)^2 = 282.6."""
    found = Comparison(0.0, -4.0, error=2.4, wins=0, blocks=100, p=0.2)
    assert found.deviation == 24.0
    assert found.blocks_for(-4.0) == 283
    assert found.blocks_for(8.0) == 71


@pytest.mark.parametrize("sizes", [("3 seeds, 30",), ("3 seeds, 30", "10 seeds, 100")])
def test_sizes_of_bocu_are_those_of_its_tables(tmp_path: Path, sizes: tuple[str, ...]):
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for number, folder in enumerate(folders):
        folder.mkdir()
        size = sizes[number % len(sizes)]
        (folder / "table.md").write_text(f"# BOCU\n\n**DRO, TV**: {size} decisions\n")
    assert sizes_of_bocu(folders) == (
        "3 seeds, 30 decisions"
        if len(sizes) == 1
        else "one, three: 3 seeds, 30 decisions; two: 10 seeds, 100 decisions"
    )
    (folders[0] / "table.md").write_text("# BOCU\n")
    with pytest.raises(ValueError, match="seeds"):
        sizes_of_bocu(folders)


def test_quarters_by_hand():
    """Eight decisions: the first two cost 4 each, the last two 1 each, the rest 2."""
    total = [4.0, 8.0, 10.0, 12.0, 14.0, 16.0, 17.0, 18.0]
    every = pd.DataFrame(
        {
            "problem": "bowl",
            "objective": "dro",
            "distance": "tv",
            "method": "ts_bocu",
            "decision": range(1, 9),
            "mean": total,
        }
    )
    linear = every.assign(method="random", mean=range(1, 9))
    found = quarters(pd.concat([every, linear]))
    assert found.loc["bowl", "dro", "tv"].to_dict() == {"ts_bocu": 0.25, "random": 1.0}


def test_each_pair_needs_each_method():
    """Ten blocks: `a` is before both others in all, `b` only before `d`."""
    ranks = pd.DataFrame(
        {"a": [1.0] * 10, "b": [2.0, 3.0] * 5, "c": [3.0, 2.0] * 5, "d": [4.0] * 10}
    )
    assert each_pair(ranks, ["a"], ["c", "d"]) == (
        "holds (p 0.0039)",
        "each pair is decided",
    )  # 2 / 2^10, by Holm twice
    found, missing = each_pair(ranks, ["a", "b"], ["c", "d"])
    assert found == "holds for 3 of 4 pairs"
    assert missing == "not decided for `b` and `c` (p 1)"
    assert each_pair(ranks, ["b"], ["a", "d"]) == (
        "does not hold for 1 of 2 pairs",
        "the other way for `b` and `a` (p 0.0039)",
    )


def test_each_pair_on_each_problem_has_one_correction():
    """Eight seeds: p is 2 / 2^8, which two problems of two pairs make .031."""
    index = pd.MultiIndex.from_product([["bowl", "camel"], range(8)])
    ranks = pd.DataFrame(
        {"a": [1.0] * 8 + [2.0] * 8, "b": [2.0] * 8 + [1.0] * 8, "c": [3.0] * 16},
        index.set_names(["problem", "seed"]),
    )
    assert each_pair_by_problem(ranks, ["a"], ["b", "c"]) == (
        "holds on bowl; does not hold on camel",
        "the other way for camel: `a` and `b` (p 0.031)",
    )
    assert each_pair_by_problem(ranks, ["b"], ["c"])[1] == "each pair is decided"


def test_the_side_of_a_verdict_is_that_of_its_test():
    """Twelve blocks go the claim's way, one so far the other way that the mean does."""
    assert verdict([*range(-12, 0), 100.0]) == "holds (p 0.021)"


def test_by_problem_names_the_problems_that_decide():
    """Eight seeds each: p is 2 / 2^8, which two tests make .016."""
    index = pd.MultiIndex.from_product([["bowl", "camel"], range(8)])
    index = index.set_names(["problem", "seed"])
    differences = pd.Series([-1.0, -2, -3, -4, -5, -6, -7, -8] + [1.0, -1] * 4, index)
    assert by_problem(differences) == "lower on bowl; not decided on 1 of 2"
    assert by_problem(-differences, "holds", "does not") == (
        "does not on bowl; not decided on 1 of 2"
    )


def test_ranks_of_bocu_take_both_versions_for_one_under_dro():
    """By hand: two seeds of one setting; what aimed elsewhere does not count."""
    rows = [
        ("bowl", "dro", "tv", "ts_bocu", "dro", 0, 1.0),
        ("bowl", "dro", "tv", "ts_bocu", "wcs", 0, 9.0),
        ("bowl", "dro", "tv", "ucb_bocu_2", "dro", 0, 3.0),
        ("bowl", "gen", "tv", "ts_bocu", "gen", 0, 3.0),
        ("bowl", "gen", "tv", "ucb_bocu_1", "gen", 0, 2.0),
        ("bowl", "gen", "tv", "ucb_bocu_2", "gen", 0, 1.0),
    ]
    columns = ["problem", "objective", "distance", "method", "aimed_at", "seed"]
    found = ranks_of_bocu(pd.DataFrame(rows, columns=[*columns, "regret"]))
    dro = found.loc["bowl", 0, "dro", "tv"]
    assert dro.to_dict() == {"ts_bocu": 1.0, "ucb_bocu_1": 2.5, "ucb_bocu_2": 2.5}
    gen = found.loc["bowl", 0, "gen", "tv"]
    assert gen.to_dict() == {"ts_bocu": 3.0, "ucb_bocu_1": 2.0, "ucb_bocu_2": 1.0}


def test_crossed_objectives_are_those_of_the_tables():
    """One column, read by hand from the file."""
    folder = RESULTS / "bocu" / "hartmann_2_1"
    every = pd.read_csv(folder / "seeds.csv").assign(problem=folder.name)
    found = crossed_objectives(every)
    assert len(found) == 6 * every["seed"].nunique()
    means_of_seeds = found.groupby(level=["problem", "distance", "objective"]).mean()
    text = (RESULTS / "bocu" / "hartmann_2_1" / "table.md").read_text(encoding="utf-8")
    table = text.split("judged by every objective, MMD**")[1]
    means = {
        line.split("|")[1].strip(): float(line.split("|")[3].split(" ±")[0])
        for line in table.splitlines()
        if line.startswith(("| DRO", "| WCS", "| GEN"))
    }
    row = means_of_seeds.loc["hartmann_2_1", "mmd", "wcs"]
    assert row.to_dict() == pytest.approx(
        {"right": means["WCS"], "wrong": means["GEN"], "other_wrong": means["DRO"]},
        rel=0.01,
    )
