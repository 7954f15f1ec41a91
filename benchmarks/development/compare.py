"""Candidates against the baseline, block by block, and the rule of ``claims.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.development.learn import CHECKPOINTS
from benchmarks.development.surrogates import BASELINE
from benchmarks.run.storage import Row
from benchmarks.study.cases import INITIAL
from benchmarks.study.compare import BLOCK, Difference, difference
from benchmarks.study.truth import Scale

CHOSEN_BY = (10, 15, 30)  # outcomes, over which the end loss of half A is averaged
PRIMARY = 15
METHOD = "erbo"  # by which surrogates are chosen
LATER = ("hyperparameters",)  # run after the choice, which does not know them
SECOND, FRESH_FROM = "four", 6  # the second claim: its candidate, its first seed


def ends(rows: Sequence[Row]) -> pd.DataFrame:
    """What was recommended at the checkpoints: a row for each run and checkpoint.

    ``told``; ``loss`` and ``worst_loss`` in percent of a blind guess's; ``regret``, the
    mean loss of the decisions asked up to there.
    """
    found = []
    for row in rows:
        scale = Scale(row["best"], row["guess"])
        for place, told in enumerate(row["told"]):
            worst = row["worst"][place]
            asked = [scale.loss(value) for value in row["expected"][INITIAL:told]]
            found.append(
                {
                    **{name: row[name] for name in _NAMES},
                    "told": told,
                    "loss": scale.loss(row["value"][place]),
                    "worst_loss": np.nan
                    if worst is None
                    else Scale(row["worst_best"], row["worst_guess"]).loss(worst),
                    "regret": float(np.mean(asked)),
                }
            )
    columns = [*_NAMES, "told", "loss", "worst_loss", "regret"]
    return pd.DataFrame(found, columns=pd.Index(columns))


def asks(rows: Sequence[Row]) -> pd.DataFrame:
    """What was predicted: a row for each decision that was asked.

    ``told``: the checkpoint that it is counted for, the first that is larger than the
    number of outcomes known; ``deviations``: how far from the predicted mean the
    outcome was, in predicted standard deviations; ``nlpd``; ``seconds``.
    """
    found = []
    for row in rows:
        for step in range(INITIAL, row["rounds"]):
            spread = row["variance"][step] ** 0.5
            found.append(
                {
                    **{name: row[name] for name in _NAMES},
                    "told": next((t for t in CHECKPOINTS if t > step), np.nan),
                    "deviations": abs(row["y"][step] - row["mean"][step]) / spread,
                    "nlpd": -row["log_density"][step],
                    "seconds": row["seconds"][step],
                }
            )
    columns = [*_NAMES, "told", "deviations", "nlpd", "seconds"]
    return pd.DataFrame(found, columns=pd.Index(columns))


_NAMES = ("half", "case", "seed", "method", "surrogate")


def against_baseline(
    table: pd.DataFrame, candidate: str, measure: str
) -> Difference | None:
    """A surrogate against the baseline, of rows of one method and one checkpoint."""
    return difference(table, candidate, BASELINE, "surrogate", measure)


@dataclass(frozen=True)
class Verdict:
    """What the rule of ``claims.md`` says.

    Args:
        chosen: The surrogate with the lowest mean end loss on half A.
        losses: Those means, by surrogate.
        confirmed: Its differences to the baseline on half B, by checkpoint.
        default: What the default is to be.
    """

    chosen: str
    losses: dict[str, float]
    confirmed: dict[int, Difference]
    default: str


def verdict(ends: pd.DataFrame) -> Verdict | None:
    """Apply the rule.

    Args:
        ends: As ``ends`` makes it.

    Returns:
        The verdict; None while a half has not been run with at least two surrogates.
    """
    ours: Any = ends[(ends["method"] == METHOD) & ~ends["surrogate"].isin(LATER)]
    first: Any = ours[(ours["half"] == "A") & ours["told"].isin(CHOSEN_BY)]
    if first.empty or first["surrogate"].nunique() < 2:
        return None
    losses = _on_common_blocks(first)
    if not losses:
        return None
    chosen = min(losses, key=lambda name: losses[name])
    second: Any = ours[ours["half"] == "B"]
    confirmed = {}
    for told in CHECKPOINTS:
        found = against_baseline(second[second["told"] == told], chosen, "loss")
        if found is not None:
            confirmed[told] = found
    holds = (
        chosen != BASELINE
        and PRIMARY in confirmed
        and confirmed[PRIMARY].mean < 0
        and confirmed[PRIMARY].p < 0.05
        and all(d.mean <= d.error for t, d in confirmed.items() if t != PRIMARY)
    )
    return Verdict(chosen, losses, confirmed, chosen if holds else BASELINE)


@dataclass(frozen=True)
class SecondVerdict:
    """What the rule of ``claims_second.md`` says.

    Args:
        differences: Those of its candidate to the baseline, by checkpoint.
        default: What the default is to be.
    """

    differences: dict[int, Difference]
    default: str


def second_verdict(ends: pd.DataFrame) -> SecondVerdict | None:
    """Apply the rule of the second claim.

    Args:
        ends: As ``ends`` makes it, of seeds from ``FRESH_FROM`` upwards.

    Returns:
        The verdict; None while the candidate has not been run on such seeds.
    """
    ours: Any = ends[ends["method"] == METHOD]
    found = {
        told: d
        for told in CHOSEN_BY
        if (d := against_baseline(ours[ours["told"] == told], SECOND, "loss"))
        is not None
    }
    if PRIMARY not in found:
        return None
    holds = (
        found[PRIMARY].mean < 0
        and found[PRIMARY].p < 0.025
        and all(d.mean <= d.error for t, d in found.items() if t != PRIMARY)
    )
    return SecondVerdict(found, SECOND if holds else BASELINE)


def _on_common_blocks(table: pd.DataFrame) -> dict[str, float]:
    """The mean end loss by surrogate, where all were run; each T counts alike."""
    names, means = set(table["surrogate"]), []
    for _, at in table.groupby("told"):
        columns: Any = at.pivot_table("loss", BLOCK, "surrogate").dropna()
        if names == set(columns) and len(columns):
            means.append(columns.mean())
    if not means:
        return {}
    return {name: float(np.mean([at[name] for at in means])) for name in sorted(names)}
