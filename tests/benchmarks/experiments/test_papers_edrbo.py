"""EDRBO's study: what the pages say of their files and of ours, computed by hand."""

from __future__ import annotations

import math
import re
import statistics

import pandas as pd
import pytest
from scipy.stats import spearmanr, wilcoxon

from benchmarks.experiments.papers.edrbo_values import (
    NAMES,
    WITHOUT_SLIP,
    parts_of_runs,
    size_of_runs,
    their_rows,
)
from benchmarks.experiments.papers.judge import cells_of
from benchmarks.run.storage import load
from benchmarks.run.tables import load_tables
from tests.data import needs_raw
from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, words_of

ACKLEY = ("ackley_2_1", "edrbo")
PENALTY = ("wdrbo", "wdrbo_detached")
BOTH = ("edrbo", "edrbo_batch")


@pytest.mark.parametrize("name", NAMES)
def test_all_have_the_size_of_the_study(name: str):
    """The tables put them side by side."""
    assert size_of_runs(name) == "10 seeds of 195 rounds"


def test_values_of_edrbo_by_hand():
    """One cell, and the order of the methods on one problem, from the files."""
    rows, about = load_tables(RESULTS / "edrbo")
    here = rows[rows["problem"] == "hartmann_5_1"].set_index(["algorithm", "seed"])
    seeds = (about["optima"]["hartmann_5_1"][0] - here["regret_25"] / 25).unstack()
    rows = their_rows()
    rows = rows[(rows["problem"] == "hartmann_5_1") & (rows["first"] == 6)]
    published = rows.pivot(index="algorithm", columns="seed", values="value")
    own, theirs = seeds.mean(axis=1), published.mean(axis=1)
    cells = [
        f"{side.loc['edrbo'].mean():.3g} ± {side.loc['edrbo'].std() / 10**0.5:.1g}"
        for side in (published, seeds)
    ]
    table = (RESULTS / "edrbo_values.md").read_text(encoding="utf-8")
    assert " / ".join(cells) in table
    both = [name for name in theirs.index if name in own.index]
    found = spearmanr(theirs[both], own[both]).statistic
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    assert len(both) in (8, 9) and f"hartmann_5_1 {found:.2f}," in page


def test_first_places_of_edrbo_with_its_slip_by_hand():
    """On how many problems it has the highest mean of the decisions 6 to 30."""
    rows = pd.concat([load_tables(RESULTS / n)[0] for n in ("edrbo", "edrbo_batch")])
    means = -rows.groupby(["problem", "algorithm"]).regret_25.mean()
    methods = set(their_rows()["algorithm"]) - {"edrbo"}
    number = 0
    for problem in rows.problem.unique():
        others = [means[problem].get(name, -1e9) for name in methods]
        number += means[problem]["edrbo_batch"] > max(others)
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    words = "their slip in EDRBO (one penalty for a whole batch), decisions 6 to 30"
    assert f"{words} | **first on {number} of 9 problems**" in page


def test_first_places_in_their_files_by_hand():
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    for (first, last), part in their_rows().groupby(["first", "last"]):
        means = part.groupby(["problem", "algorithm"])["value"].mean()
        number = 0
        for problem in means.index.unique("problem"):
            values = means[problem].to_dict()
            number += max(values, key=values.__getitem__) == "edrbo"
        words = f"methods in our runs, decisions {first} to {last} "
        row = next(line for line in page.splitlines() if words in line)
        assert f"theirs, the same decisions: {number} of 9 |" in row


def test_edrbo_less_erbo_in_their_files_by_hand():
    """The optimum is in both sums, so it is the difference of the values."""
    rows = their_rows()
    rows["total"] = rows["value"] * (rows["last"] - rows["first"] + 1)
    sums = rows.groupby(["algorithm", "problem", "seed"])["total"].sum()
    more = sums["erbo"] - sums["edrbo"]
    page = (RESULTS / "papers.md").read_text(encoding="utf-8")
    fewer = f"`edrbo` lower than `erbo` in {(more < 0).sum()} of 90 runs"
    row = next(line for line in page.splitlines() if fewer in line)
    assert "In the authors' files" in row and "holds (p < .001)" in row
    here = more["ackley_2_1"]
    assert f"ackley_2_1 {here.mean():.0f} ± {here.std() / 10**0.5:.0f}," in row
    evidence = words_of("docs/evidence.md")
    assert (
        f"less regret than ERBO in {(more < 0).sum()} of 90 runs (p < .001)" in evidence
    )


def test_distances_by_hand():
    """Of StableOpt, with the slip and without, in the last part."""
    rows = pd.concat([load_tables(RESULTS / n)[0] for n in ("edrbo", "edrbo_slips")])
    rows = rows.set_index(["algorithm", "problem", "seed"])
    ours = rows["optimum"] - (rows["regret"] - rows["regret_95"]) / 100
    published = their_rows()
    published = published[published["first"] == 101]
    theirs = published.set_index(["algorithm", "problem", "seed"])["value"].sort_index()
    table = (RESULTS / "edrbo_values.md").read_text(encoding="utf-8")
    for name in ("stable_opt", "stable_opt_shifted"):
        far = {}
        for problem in theirs.index.unique("problem"):
            if "hump" not in problem:
                a, b = theirs["stable_opt", problem], ours[name, problem]
                error = math.hypot(a.std() / 10**0.5, b.std() / 10**0.5)
                far[problem] = abs(a.mean() - b.mean()) / error
        most = max(far, key=far.__getitem__)
        cells = f"{statistics.median(far.values()):.1f} | {far[most]:.1f} ({most}) |"
        row = next(each for each in table.splitlines() if f"| `{name}` |" in each)
        assert row.endswith(cells) and len(far) == 7


def test_the_page_says_how_near_edrbo_is_to_its_authors_files():
    page = words_of("docs/evidence.md")
    rows, _ = load_tables(RESULTS / "edrbo")
    regret = rows.set_index(["problem", "seed", "algorithm"]).regret.unstack()
    fewer = (regret["edrbo"] < regret["erbo"]).sum()
    assert f"of their text, it has less in {fewer} of {len(regret)} runs" in page
    same = regret.drop(index=["six_hump_camel", "three_hump_camel"], level="problem")
    fewer = (same["edrbo"] < same["erbo"]).sum()
    p = wilcoxon((same["edrbo"] - same["erbo"]).transform("sign")).pvalue
    assert p > 0.05
    words = f"less in {fewer} of {len(same)} runs (p {f'{p:.2f}'[1:]}), which is"
    assert words in page
    table = (RESULTS / "papers.md").read_text(encoding="utf-8")
    assert f"in {fewer} of {len(same)}: cannot be decided (p {p:.2f})" in table
    ensemble = regret["erbo_ensemble"]
    fewer = [(ensemble < regret[name]).sum() for name in ("erbo", "edrbo")]
    assert f"than ERBO with one model in {fewer[0]} of 90 runs" in page
    assert f"which has four models and a penalty, in {fewer[1]} of 90" in page
    cells = cells_of("edrbo_values.md", "How far")
    far = {name.strip("`"): numbers(" ".join(row)) for name, row in cells.items()}
    medians = {name: [n.value for n in row[::2]] for name, row in far.items()}
    largest = {name: [n.value for n in row[1::2]] for name, row in far.items()}
    near = set(far) - {"stable_opt", "drbo_mmd_minimax", "drbo_kde", *WITHOUT_SLIP}
    assert len(near) == 6
    most = max(max(medians[name]) for name in near)
    assert f"over seven problems is at most {most} in every part" in page
    one, two, three = medians["drbo_kde"]
    words = f"*DRBO-KDE* (in the median {one}, {two} and {three}), whose values in the "
    assert words + "last part are higher here on six of seven problems." in page
    sides = (parts_of_runs()[2].ours, parts_of_runs()[2].theirs)
    ours, theirs = (s.mean(axis=1).xs("drbo_kde", level=1) for s in sides)
    more = (ours - theirs).filter(regex="(?<!camel)$")
    assert ((more > 0).sum(), len(more)) == (6, 7)
    one, two, three = medians["stable_opt"]
    assert f"*StableOpt* (in the median {one}, {two} and {three})" in page
    one, two, three = medians["stable_opt_shifted"]
    assert f"With it the medians are {one}, {two} and {three}, and" in page
    assert f"*EDRBO on Ackley* ({largest['edrbo'][2]} in the last part)" in page
    mmd, wdrbo = largest["drbo_mmd"], largest["wdrbo"]
    part = parts_of_runs()[2]
    sides = [
        side.loc["portfolio_normal", "drbo_mmd"] for side in (part.ours, part.theirs)
    ]
    error = math.hypot(*(side.std() / 10**0.5 for side in sides))
    one = f"{abs(sides[0].mean() - sides[1].mean()) / error:.1f}"
    words = f"*DRBO-MMD on the two portfolios* ({one} and {mmd[2]} in the last part): "
    assert words + "the diagonal" in page
    _, middle, last = largest["drbo_mmd_diagonal"]
    assert f"where the largest distance with it is {last}." in page
    assert f"decisions 31 to 100 ({middle} on one portfolio)" in page
    words = f"newsvendor and Branin* ({wdrbo[0]} in the first part and {wdrbo[2]} in "
    assert f"{words}the last):" in page
    first, middle, last = largest["wdrbo_detached"]
    assert f"distance of the last part is {last} with it, and not" in page
    assert f"the newsvendor ({first} and {middle} in the first two parts)" in page
    words = (f"{a}, {b} and {c}" for a, b, c in (medians[m] for m in PENALTY))
    assert f"The medians go from {' to '.join(words)}." in page
    minimax = largest["drbo_mmd_minimax"][2]
    assert f"approximation of DRBO-MMD* ({minimax} on Hartmann in the last" in page
    alike = []
    for part in parts_of_runs():
        means = {"ours": part.ours.mean(axis=1), "theirs": part.theirs.mean(axis=1)}
        groups = pd.DataFrame(means).dropna().groupby(level="problem")
        each = groups.corr("spearman").xs("ours", level=1)["theirs"]
        alike.append((each.median(), each["branin_2_2"]))
    first, second, third = (f"{number:.2f}" for number, _ in alike)
    words = f"over the problems of {first}, {second} and {third}, the two camels among "
    words += f"them, but Branin has {alike[0][1]:.2f} in the decisions 6 to 30."
    assert words in page


def test_seeds_at_which_edrbo_stays_on_the_newsvendor():
    page = words_of("docs/evidence.md")
    rows = pd.concat([load_tables(RESULTS / n)[0] for n in ("edrbo", "edrbo_batch")])
    rows = rows[rows["problem"] == "newsvendor"].set_index(["algorithm", "seed"])
    means = rows["optimum"] - (rows["regret"] - rows["regret_30"]) / 165
    low, high = (means["edrbo"].loc[side] for side in ([105, 106], [*range(100, 105)]))
    high = pd.concat([high, means["edrbo"].loc[[107, 108, 109]]])
    words = f"mean values of {low[105]:.2f} and {low[106]:.2f} from decision 36 on, "
    words += f"the others {high.min():.2f} to {high.max():.2f})"
    assert words in page
    slip = means["edrbo_batch"]
    assert slip[105] < 0.2 and slip.drop([105, 106]).min() > 0.44
    theirs = their_rows()
    theirs = theirs[(theirs["problem"] == "newsvendor") & (theirs["first"] > 6)]
    assert theirs[theirs["algorithm"] == "edrbo"]["value"].min() > 0.44


@needs_raw("edrbo_batch/results.parquet")
def test_edrbo_with_its_slip_leaves_at_last_at_one_seed():
    rows, _ = load(RESULTS / "edrbo_batch")
    values = rows[(rows["problem"] == "newsvendor") & (rows["seed"] == 106)]
    values = values.set_index("iteration")["expected"]
    assert values.loc[32:50].max() < 0.3 and values.loc[60:].mean() > 0.44


def test_the_readme_of_the_benchmarks_says_the_same():
    page = words_of("benchmarks/README.md")
    names = ("edrbo", "edrbo_batch", "edrbo_slips", "edrbo_detached", "edrbo_diagonal")
    rows = pd.concat([load_tables(RESULTS / name)[0] for name in names])
    regret = rows.set_index(["problem", "seed", "algorithm"]).regret.unstack()
    camels = ["six_hump_camel", "three_hump_camel"]

    def less(one: str, other: str, drop: list[str]) -> tuple[int, int, str]:
        both = regret[[one, other]].dropna().drop(drop, level="problem")
        fewer = both[one] < both[other]
        p = wilcoxon(fewer * 2 - 1).pvalue
        p = "p < .001" if p < 0.001 else f"p {f'{p:.2f}'[1:]}"
        return int(fewer.sum()), len(fewer), p

    for words, one, other in (
        ("here in {} of {} ({}; without the two camels, ", "edrbo", "erbo"),
        ("less than ERBO with our ensemble in {} of {} ({})", "edrbo", "erbo_ensemble"),
        ("has less regret than without in {} of {} runs ({}; ", "edrbo_batch", "edrbo"),
        ("and less than ERBO in {} of {} ({}; ", "edrbo_batch", "erbo"),
        ("has more regret in {} of {} runs ({})", "stable_opt", "stable_opt_shifted"),
        ("has less regret in {} of {} ({}: not dec", "gp_ucb_twice_rooted", "gp_ucb"),
        ("MMD has less regret in {} of {} ({}), on", "drbo_mmd_diagonal", "drbo_mmd"),
        ("WDRBO has less regret in {} of {} ({}; with", "wdrbo_detached", "wdrbo"),
    ):
        assert words.format(*less(one, other, [])) in page
    for words, one, other in (
        ("functions are not theirs, in {} of {}, {})", "edrbo", "erbo"),
        ("without the two camels in {} of {}, {}), and", "edrbo_batch", "edrbo"),
        ("{} of {}, {}): surely less on Ackley", "edrbo_batch", "erbo"),
        ("without the two camels in {} of {}, {}: not", "wdrbo_detached", "wdrbo"),
    ):
        assert words.format(*less(one, other, camels)) in page
    evidence = words_of("docs/evidence.md")
    alike = re.search(r"over the problems of (.{4}, .{4} and .{4}), the", evidence)
    assert alike and f"(rank correlation {alike[1].replace('0.', '.')}, the" in page
    cells = cells_of("edrbo_values.md", "How far")
    far = {name.strip("`"): numbers(" ".join(row)) for name, row in cells.items()}
    minimax = far["drbo_mmd_minimax"][5].value
    assert f"minimax approximation ({minimax} without it) has no option" in page
    most = [far["drbo_mmd_diagonal"][3].value, far["edrbo_batch"][5].value]
    words = "DRBO-MMD before that ({} standard errors) and EDRBO on Hartmann ({}) are"
    assert words.format(*most) in page
