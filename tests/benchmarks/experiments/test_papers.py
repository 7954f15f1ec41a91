"""Claims of papers are judged by the rule that their page states."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import spearmanr, wilcoxon

from benchmarks.experiments.papers import judge
from benchmarks.experiments.papers.bandits import (
    crossed_objectives,
    quarters,
    ranks_of_bocu,
    sizes_of_bocu,
)
from benchmarks.experiments.papers.edrbo import parts_of_runs
from benchmarks.experiments.papers.judge import (
    before,
    by_problem,
    each_pair,
    each_pair_by_problem,
    ranks_of,
    verdict,
    with_our_default,
)
from benchmarks.experiments.papers.report import make_report
from benchmarks.experiments.tournament.compare import Comparison
from benchmarks.run.storage import load
from tests.page_sources import RESULTS


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
    for path in RESULTS.rglob("results.parquet"):
        _, about = load(path)
        assert all(f"`{each}`" in commits for each in about["commit"])


def test_blocks_that_show_a_difference():
    """By hand: deviation 24, 4 points: (2.8016 * 24 / 4)^2 = 282.6."""
    found = Comparison(0.0, -4.0, error=2.4, wins=0, blocks=100, p=0.2)
    assert found.deviation == 24.0
    assert found.blocks_for(-4.0) == 283
    assert found.blocks_for(8.0) == 71


def test_values_of_edrbo_by_hand():
    """One cell, and the order of the methods on one problem, from the files."""
    rows, _ = load(RESULTS / "edrbo")
    here = rows[(rows["problem"] == "hartmann_5_1") & (rows["iteration"] < 25)]
    seeds = here.groupby(["algorithm", "seed"])["expected"].mean().unstack()
    own, theirs = seeds.mean(axis=1), parts_of_runs()[0].theirs["hartmann_5_1"]
    error = seeds.loc["edrbo"].std() / len(seeds.columns) ** 0.5
    table = (RESULTS / "edrbo_values.md").read_text(encoding="utf-8")
    assert f"{theirs['edrbo']:.3g} / {own['edrbo']:.3g} ± {error:.1g}" in table
    both = [name for name in theirs.index if name in own.index]
    found = spearmanr(theirs[both], own[both]).statistic
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    assert len(both) in (8, 9) and f"hartmann_5_1 {found:.2f}," in page


def test_first_places_of_edrbo_with_its_slip_by_hand():
    """On how many problems it has the highest mean of the decisions 6 to 30."""
    rows = pd.concat([load(RESULTS / n)[0] for n in ("edrbo", "edrbo_batch")])
    means = rows[rows.iteration < 25].groupby(["problem", "algorithm"]).expected.mean()
    methods = set(parts_of_runs()[0].theirs.index.get_level_values(1)) - {"edrbo"}
    number = 0
    for problem in rows.problem.unique():
        others = [means[problem].get(name, -1e9) for name in methods]
        number += means[problem]["edrbo_batch"] > max(others)
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    words = "their slip in EDRBO (one penalty for a whole batch), decisions 6 to 30"
    assert f"{words} | **first on {number} of 9 problems**" in page


def test_first_places_in_their_files_by_hand():
    """Their values have three digits, so that some methods share the first place."""
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    for part in parts_of_runs():
        alone = shared = 0
        for problem in part.theirs.index.unique("problem"):
            values = part.theirs[problem].to_dict()
            first = [name for name in values if values[name] == max(values.values())]
            alone += first == ["edrbo"]
            shared += "edrbo" in first and len(first) > 1
        row = next(
            line
            for line in page.splitlines()
            if f"methods in our runs, decisions {part.first} to {part.last}" in line
        )
        words = f"theirs, the same decisions: {alone} of 9"
        words += f", and level with others on {shared}" if shared else ""
        assert f"{words} |" in row


def test_the_page_says_how_near_edrbo_is_to_its_authors_files():
    page = (RESULTS.parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    rows, _ = load(RESULTS / "edrbo")
    regret = rows.groupby(["problem", "seed", "algorithm"]).regret.sum().unstack()
    fewer = (regret["edrbo"] < regret["erbo"]).sum()
    assert f"it has less regret in {fewer} of {len(regret)} runs" in page
    same = regret.drop(index=["six_hump_camel", "three_hump_camel"], level="problem")
    fewer = (same["edrbo"] < same["erbo"]).sum()
    p = wilcoxon((same["edrbo"] - same["erbo"]).transform("sign")).pvalue
    assert p > 0.05
    words = f"it is less in {fewer} of {len(same)} runs (p {f'{p:.2f}'[1:]}), which is"
    assert words in page
    table = (RESULTS / "papers.md").read_text(encoding="utf-8")
    assert f"in {fewer} of {len(same)}: cannot be decided (p {p:.2f})" in table
    ensemble = regret["erbo_ensemble"]
    fewer = [(ensemble < regret[name]).sum() for name in ("erbo", "edrbo")]
    assert f"than ERBO with one model in {fewer[0]} of 90 runs" in page
    assert f"which has four models and a penalty, in {fewer[1]} of 90" in page
    far = {"stable_opt": [], "drbo_mmd_minimax": []}
    near, own, alike, firsts = [], [], [], []
    for part in parts_of_runs():
        means = part.ours.mean(axis=1)
        errors = ((means - part.theirs) / part.ours.sem(axis=1)).dropna().unstack()
        errors = errors.drop(index=["six_hump_camel", "three_hump_camel"]).abs()
        medians = errors.median()
        for name, numbers in far.items():
            numbers.append(f"{medians[name]:.2g}")
        near.append(f"{medians.drop(list(far)).max():.1f}")
        own.append(errors["edrbo"])
        both = pd.DataFrame({"ours": means, "theirs": part.theirs}).dropna()
        groups = both.groupby(level="problem")
        alike.append(groups.corr("spearman").xs("ours", level=1)["theirs"].median())
        table = both["ours"].unstack()
        firsts.append((table.idxmax(axis="columns") == "edrbo").sum())
    assert f"at most {near[0]}, {near[1]} and {near[2]} of our standard errors" in page
    first, second, third = far["stable_opt"]
    assert f"StableOpt ({first}, {second} and {third})" in page
    _, second, third = far["drbo_mmd_minimax"]
    assert f"approximation of DRBO-MMD ({second} and {third})" in page
    others = own[-1].drop(index="ackley_2_1").max()
    assert f"Ackley's function are within {others:.1f} of these errors" in page
    assert f"Ackley is below theirs by {own[-1]['ackley_2_1']:.0f} in the last" in page
    first, second, third = (f"{number:.2f}" for number in alike)
    assert f"problems of {first}, {second} and {third} in the three parts" in page
    places = [f"{number} of 9" for number in firsts]
    assert f"6 to 30 it is first on {places[0].split()[0]} of 9 problems" in page
    assert f"31 to 100 on {places[1]}, and" in page
    assert f"101 to 200 on {places[2]}, complicated Hartmann" in page


def test_regret_in_their_files_by_hand():
    """The optimum is in both sums, so it is the difference of the values."""
    rows = pd.read_csv(judge.RESULTS.parent / "published" / "edrbo.csv")
    more = 0.0
    for row in rows[rows.problem == "ackley_2_1"].itertuples():
        sign = {"erbo": 1, "edrbo": -1}.get(str(row.algorithm), 0)
        more += sign * float(row.value) * (int(row.last) - int(row.first) + 1)
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    assert f"in their files its regret less ERBO's is ackley_2_1 {more:.0f}," in page


def test_the_page_says_what_their_slips_do():
    page = (RESULTS.parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    names = ("edrbo", "edrbo_batch", "edrbo_slips")
    rows = pd.concat([load(RESULTS / name)[0] for name in names])
    runs = ["problem", "seed", "algorithm"]
    regret = rows.groupby(runs).regret.sum().unstack()
    better = (regret["gp_ucb_twice_rooted"] < regret["gp_ucb"]).sum()
    assert f"GP-UCB is not worse (less regret in {better} of 90 runs" in page
    regret = rows[rows.iteration < 95].groupby(runs).regret.sum().unstack()
    slip = regret["edrbo_batch"] < regret["edrbo"]
    same = slip.drop(["six_hump_camel", "three_hump_camel"], level="problem")
    assert f"in {slip.sum()} of 90 runs (p .035; without the two camels in" in page
    assert f"two camels in {same.sum()} of {len(same)}, p .09)" in page
    rows, _ = load(RESULTS / "ackley_200")
    rows = rows[rows.algorithm == "edrbo_batch"]
    errors = []
    for part in parts_of_runs()[1:]:
        number = rows.iteration + 6
        part_of = rows[(number >= part.first) & (number <= part.last)]
        seeds = part_of.groupby("seed").expected.mean()
        gap = seeds.mean() - part.theirs["ackley_2_1", "edrbo"]
        errors.append(f"{abs(gap) / seeds.sem():.1f}".lstrip("0"))
    assert f"which is {errors[0]} and {errors[1]} of our standard errors away" in page


def test_slip_of_stable_opt_by_hand():
    """In how many runs it has more regret, and where it is nearer to theirs."""
    study, slips = (load(RESULTS / name)[0] for name in ("edrbo", "edrbo_slips"))
    shifted = slips[slips.algorithm == "stable_opt_shifted"]
    plain = study[study.algorithm == "stable_opt"]
    plain = plain[plain.iteration <= shifted.iteration.max()]
    totals = [
        rows.groupby(["problem", "seed"]).regret.sum() for rows in (plain, shifted)
    ]
    fewer = (totals[0] < totals[1].loc[totals[0].index]).sum()
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    line = f"lower than `stable_opt_shifted` in {fewer} of {len(totals[0])} runs"
    assert line in page
    evidence = (RESULTS.parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
    words = f"it StableOpt has more regret in {fewer} of {len(totals[0])} runs (p"
    assert words in " ".join(evidence.split())
    theirs = parts_of_runs()[0].theirs
    gaps = [
        rows[rows.iteration < 25].groupby("problem").expected.mean()
        for rows in (plain, shifted)
    ]
    same = [p for p in gaps[0].index if p not in ("six_hump_camel", "three_hump_camel")]
    nearer = sum(
        abs(gaps[1][p] - theirs[p, "stable_opt"])
        < abs(gaps[0][p] - theirs[p, "stable_opt"])
        for p in same
    )
    row = next(each for each in page.splitlines() if line in each)
    assert f"nearer to theirs on {nearer} of {len(same)} problems" in row
    last = parts_of_runs()[-1]
    ours = last.ours.mean(axis=1).xs("stable_opt_shifted", level="algorithm")[same]
    theirs = last.theirs.xs("stable_opt", level="algorithm")[same]
    close = ((ours - theirs).abs() < 0.02 * theirs.abs()).sum()
    assert (close, len(same)) == (5, 7)
    assert "within 2% of theirs on five of the seven" in " ".join(evidence.split())


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
