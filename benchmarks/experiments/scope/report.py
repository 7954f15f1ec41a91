"""The claims on scopes, tested, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.experiments.price.report import Mean, mean_of
from benchmarks.run.statistics import holm

_BLOCK = ["case", "seed"]
_CVAR = "integral, CVaR within 10%"
BAYBE, FEATURES = "BayBE's panel", "erbo, features"
BESIDE = Path(__file__).parents[2] / "results/scope/baybe.csv"


def by_block(rows: pd.DataFrame, told: int, measure: str) -> Any:
    """A measure of each row of the experiment, a line for each block."""
    now: Any = rows[rows["told"] == told]
    return now.set_index([*_BLOCK, "row"])[measure].unstack("row").dropna()


def of_cases(rows: pd.DataFrame, measure: str) -> Any:
    """The mean of a measure over the seeds of each case, at the end."""
    return by_block(rows, 48, measure).groupby("case").mean()


def statistics(rows: pd.DataFrame) -> dict[str, Mean]:
    """What is to be positive, of each claim."""
    mean_36 = by_block(rows, 36, "mean")
    mean, worst = (by_block(rows, 48, name) for name in ("mean", "worst_fifth"))
    better = max(("one context", "panel"), key=lambda row: float(mean[row].mean()))
    return {
        "E": mean_of(mean_36["erbo"] - mean_36["chance"]),
        "F1": mean_of(worst["erbo"] - worst["one context"] - 8.0),
        "F2": mean_of(worst["erbo"] - worst["panel"] - 8.0),
        "F3": mean_of(mean["erbo"] - mean[better] + 1.0),
        "G, worst fifth": mean_of(worst[_CVAR] - worst["integral"]),
        "G, mean": mean_of(mean[_CVAR] - mean["integral"] + 2.0),
    }


def advice(rows: pd.DataFrame) -> dict[str, Mean]:
    """What decides the advice of the page."""
    mean, worst = by_block(rows, 36, "mean"), by_block(rows, 48, "worst_fifth")
    four = worst["integral, four each"] - worst["integral"]
    return {
        "*integral* less *erbo*, mean at 36": mean_of(mean["integral"] - mean["erbo"]),
        "*four each* less *integral*, worst fifth at 48": mean_of(four),
    }


def statistics_of_plates(rows: pd.DataFrame) -> dict[str, Mean]:
    """What is to be positive, of each claim on plates; shares in percent."""
    everywhere: Any = rows[rows["row"] != FEATURES]
    described: Any = rows[rows["case"] == "described"]
    mean, worst = (by_block(everywhere, 48, name) for name in _MEASURES[:2])
    early = by_block(described, 24, "mean")
    new: Any = rows[rows["true"].notna()].set_index([*_BLOCK, "row"])
    said, true = (100.0 * new[name].unstack("row") for name in ("said", "true"))
    known, named = "new levels, features", "new levels, names"
    return {
        "P1": mean_of(mean["erbo"] - mean["own uncertainty"]),
        "P2": mean_of(worst["erbo"] - worst["own uncertainty"]),
        "P3": mean_of(mean["erbo"] - mean["chance"]),
        "P4": mean_of(worst["erbo"] - worst["panel"]),
        "B1": mean_of(mean["erbo"] - mean[BAYBE]),
        "B2": mean_of(worst["erbo"] - worst[BAYBE]),
        "D1": mean_of(early[FEATURES] - early["erbo"]),
        "D2": mean_of(true[known] - true[named]),
        "D3": mean_of(true[known] + 10.0 - said[known]),
    }


def report_of_plates(rows: pd.DataFrame) -> str:
    """The page of the results on plates, with what BayBE's environment has left."""
    beside: Any = pd.read_csv(BESIDE)
    seen = beside["row"].str.endswith("best seen")
    rows = pd.concat([rows, beside[~seen]], ignore_index=True)
    text = [_PLATES, *_claims(statistics_of_plates(rows))]
    new: Any = rows[rows["true"].notna()].groupby("row")[["said", "true"]].mean()
    text.append("\nShare explained at levels never tried, by 36 trials:\n")
    text += ["| | said by `check` | true |", "|---|---:|---:|"]
    text += [f"| {row} | {a:.2f} | {b:.2f} |" for row, a, b in new.itertuples()]
    found = [by_block(rows, told, "mean") for told in (24, 48)]
    after = [f"{one[FEATURES].mean():.1f} ({one['erbo'].mean():.1f})" for one in found]
    text.append(
        f"\nIn `described` *{FEATURES}* reaches a mean of {after[0]} after 24 trials "
        f"and of {after[1]} after 48, in brackets *erbo* without."
    )
    others: Any = rows[rows["row"] != FEATURES]
    picks = beside.set_index([*_BLOCK, "told", "row"])["mean"].unstack("row")
    same = (picks.nunique(axis=1) == 1).mean()
    text.append(
        f"\nWhat BayBE's mean recommends is the best outcome of its panel so far in "
        f"{same:.0%} of the cases."
    )
    return "\n".join([*text, *_tables(others)]).replace(" (± nan)", "")


def make_report(rows: pd.DataFrame) -> str:
    """The page of the results."""
    text = [_HEAD, *_claims(statistics(rows))]
    text.append("\nWhat decides the advice:\n")
    text += [f"- {name}: {one}, p {one.p:.2g}" for name, one in advice(rows).items()]
    return "\n".join([*text, *_tables(rows)])


def _claims(found: Mapping[str, Mean]) -> list[str]:
    """Each claim, tested."""
    corrected = holm([one.p for one in found.values()])
    text = ["| claim | its statistic | p | after Holm | blocks | |"]
    text.append("|---|---:|---:|---:|---:|---|")
    for (name, one), p in zip(found.items(), corrected, strict=True):
        verdict = "holds" if p < 0.05 else "not decided" if one.mean > 0 else "does not"
        text.append(
            f"| {name} | {one} | {one.p:.2g} | {p:.2g} | {one.blocks} | {verdict} |"
        )
    return text


def _tables(rows: pd.DataFrame) -> list[str]:
    """What each row reached, by trials, and in the end by case."""
    text: list[str] = []
    played: Any = rows[rows["mean"].notna()]
    for told in sorted(played["told"].unique()):
        text.append(f"\n## After {told} trials\n")
        text.append("| row | mean | worst fifth | hardest third |")
        text.append("|---|---:|---:|---:|")
        tables = [by_block(rows, told, m) for m in _MEASURES]
        for row in tables[0].columns:
            cells = [str(mean_of(table[row])).lstrip("+") for table in tables]
            text.append(f"| {row} | {' | '.join(cells)} |")
    text.append("\n## By case, after 48 trials: mean, worst fifth\n")
    mean, worst = (of_cases(rows, m) for m in _MEASURES[:2])
    text.append(f"| case | {' | '.join(mean.columns)} |")
    text.append("|---|" + "---:|" * len(mean.columns))
    for case in mean.index:
        pairs = zip(mean.loc[case], worst.loc[case], strict=True)
        text.append(
            f"| {case} | " + " | ".join(f"{a:.1f}, {b:.1f}" for a, b in pairs) + " |"
        )
    commits = ", ".join(sorted(set(rows["commit"])))
    return [*text, f"\nMade at commit {commits}.\n"]


_MEASURES = ("mean", "worst_fifth", "hardest_third")

_HEAD = """# Which trials serve a list

`python -m benchmarks scope`. Cases, rows, judgement and claims were written down before
any run: `benchmarks/experiments/scope/claims.md`. Outcomes are between 0 and 100; mean
± error over seeds (± over the cases). A statistic is positive where its claim is right;
p is of the one-sided sign-flip test of that mean.

- E: choosing contexts (*erbo*) has a better mean at 36 than meeting them by chance.
- F1, F2: its worst fifth at 48 is 8 above that of *one context*, of *panel*.
- F3: it loses at most 1 of the mean to the better of these two.
- G: deciding by CVaR within 10% lifts the worst fifth, and loses at most 2 of the mean.
"""


_PLATES = """# Plates of 8, levels with features, the rule before, BayBE

`python -m benchmarks scope plates`; BayBE in an environment of its own
(`benchmarks/experiments/scope/baybe_panel.py`). Written down before any run, with
seeds that no other study has: the second part of `claims.md` (the commit named below
was on a branch that has been rebased since). Outcomes are between 0 and 100; mean ±
error over seeds (± over the cases). A statistic is positive where its claim is right;
p is of the one-sided sign-flip test of that mean.

- P1, P2: at 48 trials *erbo* is better than *own uncertainty*, the rule before: in the
  mean, in the worst fifth.
- P3: choosing contexts has a better mean at 48 than meeting them by chance.
- P4: its worst fifth at 48 is better than that of *panel*.
- B1, B2: the same against BayBE's panel, in the mean and in the worst fifth.
- D1: knowing the features gives a better mean at 24 (one case).
- D2: levels never tried are predicted better from features; D3: what `check` says of
  them is at most 10 above the truth. Both of the share explained, in percent.
"""
