"""The numbers of a benchmark: a line for each algorithm on each problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from benchmarks.run.report import Estimate, estimate
from benchmarks.run.statistics import holm, wilcoxon

LAST = 10  # iterations over which the last instantaneous regret is averaged
_DESIGNS = {
    "uniform": "random decisions",
    "sobol": "Sobol decisions",
    "sobol_joint": "Sobol points of decision and context",
}
_SEARCH = ("num_restarts", "raw_samples", "max_iterations")


@dataclass(frozen=True)
class Row:
    """The line of one algorithm on one problem.

    Args:
        label: The algorithm.
        seeds: How many finished runs it has.
        cumulative: Cumulative expected regret after the last iteration.
        reward: Cumulative observed reward, the sum of the outcomes ``f(x_t, c_t)`` of
            the iterations; higher is better.
        last: Mean instantaneous expected regret of the last 10 iterations.
        simple: The least regret of a decision so far, after the last iteration.
        recommended: Regret of the decision that is recommended at the end; None where
            that was not asked (the rows are the first ones of longer runs).
        difference: Cumulative regret minus the baseline's, paired by seed, over the
            seeds that both have finished; None for the baseline.
        wins: In how many of the paired seeds its cumulative regret is below the
            baseline's; None for the baseline.
        pairs: How many seeds are paired; None for the baseline.
        p_value: Of Wilcoxon's test of the paired differences, with Holm's correction
            for all algorithms that are compared with the baseline; None for it.
        seconds: Median seconds of one ``ask``.
        fit: Mean seconds of the fit of the model in one ``ask``.
        acquisition: Mean seconds of all else but the inner problem.
        inner: Mean seconds of the inner problem.
        warned: How many calls of ``ask`` raised a warning.
        warning: The warning that most of them raised.
    """

    label: str
    seeds: int
    cumulative: Estimate
    reward: Estimate
    last: Estimate
    simple: Estimate
    recommended: Estimate | None
    difference: Estimate | None
    wins: int | None
    pairs: int | None
    p_value: float | None
    seconds: float
    fit: float
    acquisition: float
    inner: float
    warned: int
    warning: str = ""


def by_seed(rows: pd.DataFrame, field: str) -> pd.DataFrame:
    """``seeds x iterations`` of a field of one algorithm on one problem."""
    return rows.pivot(index="seed", columns="iteration", values=field)


def summarise(rows: pd.DataFrame, baseline: str) -> list[Row]:
    """One row per algorithm on one problem.

    Args:
        rows: All rounds on the problem.
        baseline: The algorithm that the others are compared with.
    """
    regrets = {
        label: by_seed(group, "regret")
        for label, group in rows.groupby("algorithm", sort=False)
    }
    base = regrets[baseline].sum(axis=1) if baseline in regrets else pd.Series()
    paired = {
        label: (regret.sum(axis=1) - base).dropna()
        for label, regret in regrets.items()
        if label != baseline
    }
    compared = [label for label, differences in paired.items() if len(differences)]
    p_values = holm([wilcoxon(paired[label].tolist()) for label in compared])
    p_value = dict(zip(compared, p_values, strict=True))
    summary = []
    for label, regret in regrets.items():
        total = regret.sum(axis=1)  # seeds
        compare = label in compared
        own = rows[rows.algorithm == label]
        at_end = own.iteration == own.iteration.max()
        ends = own.loc[at_end, "recommended_regret"].dropna()
        texts = own.warnings.explode().dropna()
        summary.append(
            Row(
                label=str(label),
                seeds=len(total),
                cumulative=estimate(total.tolist()),
                reward=estimate(own.groupby("seed").y.sum().tolist()),
                last=estimate(regret.iloc[:, -LAST:].mean(axis=1).tolist()),
                simple=estimate(regret.min(axis=1).tolist()),
                recommended=estimate(ends.tolist()) if len(ends) else None,
                difference=estimate(paired[label].tolist()) if compare else None,
                wins=int((paired[label] < 0).sum()) if compare else None,
                pairs=len(paired[label]) if compare else None,
                p_value=p_value.get(label),
                seconds=float(own.seconds.median()),
                fit=float(own.fit_seconds.mean()),
                acquisition=float(
                    (own.seconds - own.fit_seconds - own.inner_seconds).mean()
                ),
                inner=float(own.inner_seconds.mean()),
                warned=int((own.warnings.str.len() > 0).sum()),
                warning=str(texts.mode().iloc[0]) if len(texts) else "",
            )
        )
    return summary


def warning_notes(rows: Sequence[Row], iterations: int) -> list[str]:
    """One line per algorithm whose ``ask`` warned: how often, with which text."""
    return [
        f"{row.label}: {row.warned} of {row.seeds * iterations} asks warned, mostly "
        f"{row.warning!r}"
        for row in rows
        if row.warned
    ]


def curves(rows: pd.DataFrame, field: str) -> dict[str, Tensor]:
    """Label -> ``seeds x iterations`` of ``cumulative``, ``simple`` or ``running``.

    ``simple`` is the least regret so far, ``running`` the mean of the last ``LAST``, or
    of as many as there are.
    """
    found = {}
    for label, group in rows.groupby("algorithm", sort=False):
        regret = torch.tensor(by_seed(group, "regret").to_numpy())
        if field == "cumulative":
            regret = regret.cumsum(-1)
        elif field == "simple":
            regret = regret.cummin(-1).values
        else:
            total = regret.cumsum(-1)
            total[:, LAST:] -= total[:, :-LAST].clone()
            regret = total / torch.arange(1, total.shape[1] + 1).clamp(max=LAST)
        found[str(label)] = regret
    return found


def title_of(config: Mapping[str, Any], problem: Any = "") -> str:
    """What a benchmark is, or a problem of it, in one line."""
    other = problem not in ("", config["name"])
    name = f"{config['name']}: {problem}" if other else config["name"]
    size = f" ({config['size']})" if config["size"] else ""
    return (
        f"{name}{size}, {len(config['seeds'])} seeds, {config['iterations']} "
        f"iterations after {config['initial']} {_DESIGNS[config['initial_design']]}"
    )


def search_of(config: Mapping[str, Any]) -> str:
    """How hard each acquisition function is searched, where the config says so."""
    options = config["options"]
    return ", ".join(f"`{n} = {options[n]}`" for n in _SEARCH if n in options)
