"""The papers' experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from benchmarks.run.tables import mean_value
from botorch_drbo.test_functions import make_test_function
from tests.page_numbers import ROOT
from tests.page_sources.files import RESULTS, Row, mean_and_error, runs


def regret_rows(name: str, methods: Sequence[str]) -> Row:
    """Cumulative regret, mean and error over seeds, method by method."""
    total = runs(name).set_index(["algorithm", "seed"])["regret"]
    return [x for method in methods for x in mean_and_error(total[method])]


RECIPES = ("wdrbo", "erbo", "sbo_kde", "gp_ucb")


def one_problem(name: str, problem: str) -> pd.DataFrame:
    """Cumulative regret and that of the recommendation: seed by method."""
    table = runs(name)
    table = table[table["problem"] == problem].set_index(["seed", "algorithm"])
    names = {"regret": "total", "recommended_regret": "last"}
    return table[[*names]].rename(columns=names).unstack()


def measured() -> list[Row]:
    portfolio = one_problem("wdrbo", "portfolio_normal")["total"]
    return [
        regret_rows("figure1", RECIPES[:2]),
        [x for method in RECIPES for x in mean_and_error(portfolio[method])],
    ]


def measured_less_erbo() -> list[Row]:
    rows = []
    for name, problem in (
        ("figure1", "wdrbo_figure1"),
        ("wdrbo", "portfolio_normal"),
    ):
        total = one_problem(name, problem)["total"]
        gain = total["wdrbo"] - total["erbo"]
        rows.append([*mean_and_error(gain), (gain < 0).sum(), len(gain)])
    return rows


def less_regret() -> list[tuple[int, pd.Series]]:
    """Decisions, and by problem and seed whether the ensemble has less regret."""
    rows = []
    for name, recipe in (
        ("wdrbo", "erbo"),
        ("sbo_kde", "sbo_kde"),
        ("figure1", "wdrbo"),
        ("figure1", "erbo"),
        ("edrbo", "erbo"),
    ):
        table = runs(name)
        of_run = table.set_index(["problem", "seed", "algorithm"])
        score = of_run["regret"].unstack()
        if name == "sbo_kde":  # this problem is judged by what was seen
            seen = -of_run["reward"].unstack().loc[["complicated_hartmann"]]
            score.loc["complicated_hartmann"] = seen.to_numpy()
        less = score[f"{recipe}_ensemble"] < score[recipe]
        rows.append((table["rounds"].max(), less))
    return rows


def default_model() -> list[Row]:
    return [[rounds, len(less), less.sum()] for rounds, less in less_regret()]


def shared_worlds() -> list[Row]:
    """Runs in worlds of the study of surrogates, others, and those with less regret."""
    study = pd.read_csv(RESULTS / "development" / "worlds.csv")
    known = pd.MultiIndex.from_frame(study[["case", "seed"]])
    (first, *others) = [(less, less.index.isin(known)) for _, less in less_regret()]
    assert not any(shared.any() for _, shared in others)
    less, shared = first
    return [[shared.sum(), (~shared).sum(), less[~shared].sum()]]


def default_model_in_words() -> list[Row]:
    wdrbo, sbo_kde, *_, edrbo = default_model()
    row = [x for _, runs, less in (wdrbo, sbo_kde, edrbo) for x in (less, runs)]
    ((known, new, better),) = shared_worlds()
    return [[*row, known, known + new, new, better]]


def portfolio() -> list[Row]:
    table = one_problem("wdrbo", "portfolio_normal")
    return [
        [x for part in ("total", "last") for x in mean_and_error(table[part, method])]
        for method in RECIPES
    ]


def figure1() -> list[Row]:
    table = runs("figure1")
    total = table.set_index(["algorithm", "seed"])["regret"].unstack(0)
    assert (total["wdrbo"] < total["erbo"]).all()
    last = table.set_index("algorithm")["last"].str.split().explode()
    distance = last.astype(float).abs()
    assert set(table["rounds"]) == {100} and len(distance) == 10 * len(table)
    spread = distance.groupby(level=0).quantile([0.5, 0.25, 0.75])
    problem = make_test_function("wdrbo_figure1")
    reference = 0.1 * math.sqrt(2 / math.pi)  # mean |c - .5| of N(.5, .1)
    truth = (problem.true_contexts() - 0.5).abs().mean().item()
    row = [len(total), 0, 0.5]
    row += [problem.optimal_decision.abs().item(), 10, 0]
    row += [*spread["wdrbo"], *spread["erbo"], 0.5, reference, truth, reference, 0.1]
    return [row]


def bocu_long() -> list[Row]:
    table = pd.read_csv(RESULTS / "bocu_long/gp_prior_2_2/iterations.csv")
    total = table.pivot(index="decision", columns="method", values="mean")
    every = total.loc[100::100].diff().fillna(total.loc[[100]]) / 100
    return [[600, 100, *every["ts_bocu"], *every["random"]]]


def first_places() -> list[Row]:
    """On how many problems EDRBO has the highest mean: theirs, ours, with the slip."""
    theirs = pd.read_csv(ROOT / "benchmarks" / "published" / "edrbo.csv")
    methods, rows = set(theirs["algorithm"]), []
    slip = runs("edrbo_batch").replace({"algorithm": {"edrbo_batch": "edrbo"}})
    study = runs("edrbo")
    others = study[study["algorithm"].isin(methods - {"edrbo"})]
    own = study[study["algorithm"].isin(methods)]
    for (first, last), part in theirs.groupby(["first", "last"]):
        tables = [part.groupby(["problem", "algorithm"])["value"].mean()]
        for ours in (own, pd.concat([slip, others])):
            values = ours.assign(value=mean_value(ours, first - 5, last - 5))
            tables.append(values.groupby(["problem", "algorithm"])["value"].mean())
        best = [table.unstack().idxmax(axis="columns") for table in tables]
        rows.append([float((each == "edrbo").sum()) for each in best])
    return rows


def ackley() -> list[Row]:
    """Mean values of the published parts of the decisions: ours and theirs."""
    theirs = pd.read_csv(ROOT / "benchmarks" / "published" / "edrbo.csv")
    theirs = theirs[theirs["problem"] == "ackley_2_1"]
    both = pd.concat([runs("edrbo"), runs("edrbo_batch")])
    both = both[both["problem"] == "ackley_2_1"]
    parts = ((6, 30), (31, 100), (101, 200))
    ours = pd.concat(
        both.assign(first=first, value=mean_value(both, first - 5, last - 5))
        for first, last in parts
    )
    rows = []
    for values, method in (
        (ours, "erbo"),
        (theirs, "erbo"),
        (ours, "erbo_ensemble"),
        (ours, "edrbo"),
        (ours, "edrbo_batch"),
        (theirs, "edrbo"),
    ):
        parts = values[values["algorithm"] == method].groupby("first")["value"]
        rows.append([x for _, part in parts for x in mean_and_error(part)])
    return rows


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "*/runs.csv": measured,
    "*/runs.csv, paired": measured_less_erbo,
    "*/runs.csv, default model": default_model,
    "edrbo*/runs.csv, first places": first_places,
    "edrbo*/runs.csv, Ackley": ackley,
    "*/runs.csv, default model in words": default_model_in_words,
    "development/worlds.csv, shared worlds": shared_worlds,
    "wdrbo/runs.csv, portfolio_normal": portfolio,
    "figure1/runs.csv": figure1,
    "bocu_long/gp_prior_2_2/iterations.csv": bocu_long,
}
