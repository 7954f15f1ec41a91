"""The tables of the experiment, its four claims, and what follows from them."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.experiments.price.rules import BALL, EXPECTED, WITHIN
from benchmarks.run.statistics import holm

_FLIPS = 100_000
_MOST_EXACT = 12  # means of which all signs are tried
_BLOCK = ["case", "seed"]
_MOST_PRICE, _LARGEST_PRICE = 3.0, 12.0  # points, of claims B and C
_LEARNERS = ("erbo", "wdrbo_exact")


class Mean(NamedTuple):
    """A mean over blocks, its errors and its sign-flip tests, one- and two-sided."""

    mean: float
    error: float
    over_functions: float
    p: float
    p_functions: float
    two_sided: float
    blocks: int

    def __str__(self) -> str:
        """The mean with its error over seeds, and over functions."""
        return f"{self.mean:+.1f} ± {self.error:.1f} (± {self.over_functions:.1f})"


def sign_flip(values: np.ndarray) -> tuple[float, float]:
    """One- and two-sided p of a mean: of how many changed signs it is as large.

    Example:
        >>> sign_flip(np.array([1.0, 2.0, 3.0]))
        (0.125, 0.25)
    """
    if len(values) <= _MOST_EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=len(values))))
        extra = 0
    else:
        draw = np.random.default_rng(0)
        signs = draw.choice((1.0, -1.0), size=(_FLIPS, len(values)))
        extra = 1  # the signs as they are
    means, own = signs @ values / len(values), values.mean()
    slack = 1e-12 * (1.0 + abs(own))
    upper = (np.sum(means >= own - slack) + extra) / (len(means) + extra)
    both = (np.sum(np.abs(means) >= abs(own) - slack) + extra) / (len(means) + extra)
    return float(upper), float(both)


def mean_of(values: Any) -> Mean:
    """Of a series over blocks."""
    by_case: Any = values.groupby(level="case")
    cases = by_case.mean()
    squared = (by_case.var() / by_case.count()).sum()
    p, both = sign_flip(values.to_numpy())
    return Mean(
        mean=float(cases.mean()),
        error=float(np.sqrt(squared) / len(cases)),
        over_functions=float(cases.sem()),
        p=p,
        p_functions=sign_flip(cases.to_numpy())[0],
        two_sided=both,
        blocks=len(values),
    )


def against_expected(rows: pd.DataFrame, told: int) -> dict[str, pd.DataFrame]:
    """For each rule, by block: price, and gains in floor and regrets."""
    now: Any = rows[(rows["part"] == "rules") & (rows["told"] == told)]
    wide = now.set_index([*_BLOCK, "rule"]).unstack("rule")
    found = {}
    for rule in now["rule"].unique():
        less = {
            "price": wide["loss", rule] - wide["loss", EXPECTED],
            "floor": wide["floor", rule] - wide["floor", EXPECTED],
            "worst_regret": wide["worst_regret", rule] - wide["worst_regret", EXPECTED],
            "mean_regret": wide["mean_regret", rule] - wide["mean_regret", EXPECTED],
        }
        found[str(rule)] = pd.DataFrame(less).dropna()
    return found


def claims(rows: pd.DataFrame, told: int = 30) -> pd.DataFrame:
    """Statistic, tests and verdict of each claim."""
    by_rule = against_expected(rows, told)
    within, ball = by_rule[WITHIN], by_rule[BALL]
    of_within: Any = within["price"].groupby(level="case").mean()
    of_ball: Any = ball["price"].groupby(level="case").mean()
    varies = (of_ball - of_ball.mean()).abs() - (of_within - of_within.mean()).abs()
    found = {
        "A": mean_of(within["floor"]),
        "B": mean_of(_MOST_PRICE - within["price"]),
        "D": mean_of(-within["worst_regret"]),
    }
    p_c = sign_flip(varies.to_numpy())[0]
    found["C"] = Mean(
        float(varies.mean()), float("nan"), float(varies.sem()), p_c, p_c, 1.0,
        len(within),
    )  # fmt: skip
    names = sorted(found)
    corrected = dict(zip(names, holm([found[n].p for n in names]), strict=True))
    largest = float(of_within.max())
    lines = []
    for name in names:
        one, p = found[name], corrected[name]
        holds = p < 0.05 and (name != "C" or largest <= _LARGEST_PRICE)
        verdict = "holds" if holds else "not decided" if one.mean > 0 else "does not"
        lines.append(
            {
                "claim": name,
                "mean": one.mean,
                "error": one.error,
                "error_functions": one.over_functions,
                "p": one.p,
                "p_holm": p,
                "p_functions": one.p_functions,
                "blocks": one.blocks,
                "verdict": verdict,
            }
        )
    table = pd.DataFrame(lines)
    table.attrs["largest_price"] = largest
    table.attrs["largest_price_of_the_ball"] = float(of_ball.max())
    return table


def make_report(rows: pd.DataFrame) -> str:
    """The page of the results."""
    text = [_HEAD]
    decided = claims(rows)
    text.append(
        "| claim | mean of its statistic | p | after Holm | over functions | blocks "
        "| |\n"
        "|---|---:|---:|---:|---:|---:|---|"
    )
    text += [
        f"| {line['claim']} | {line['mean']:+.2f}{_over_blocks(line['error'])} (± "
        f"{line['error_functions']:.2f}) | {line['p']:.2g} | {line['p_holm']:.2g} "
        f"| {line['p_functions']:.2g} | {line['blocks']} | {line['verdict']} |"
        for line in decided.to_dict("records")
    ]
    largest = decided.attrs["largest_price"]
    of_ball = decided.attrs["largest_price_of_the_ball"]
    text.append(
        f"\nThe largest price of a function is {largest:.1f}, of the ball without a "
        f"limit {of_ball:.1f}.\n"
    )
    for told in (30, 15):
        text.append(f"\n## Less *expected*, after {told} outcomes\n")
        text.append(
            "| rule | price | floor | worst regret | mean regret |\n"
            "|---|---:|---:|---:|---:|"
        )
        for rule, table in against_expected(rows, told).items():
            if rule != EXPECTED:
                cells = " | ".join(str(mean_of(table[c])) for c in table)
                text.append(f"| {rule} | {cells} |")
    text.append("\n## By function, after 30 outcomes\n")
    text.append(
        f"| function | price: {WITHIN} | {BALL} | floor: {WITHIN} | {BALL} |\n"
        "|---|---:|---:|---:|---:|"
    )
    by_rule = against_expected(rows, 30)
    for case in by_rule[BALL].index.unique("case"):
        cells = [
            f"{by_rule[rule].loc[case][column].mean():+.1f}"
            for column in ("price", "floor")
            for rule in (WITHIN, BALL)
        ]
        text.append(f"| {case} | {' | '.join(cells)} |")
    text += [_learners(rows), _one_model(rows), _known(rows)]
    commits = ", ".join(sorted(rows["commit"].unique()))
    text.append(f"\nMade at commit {commits}.\n")
    return "\n".join(text)


def _over_blocks(error: float) -> str:
    """The error over blocks, which a statistic of functions has not."""
    return "" if math.isnan(error) else f" ± {error:.2f}"


def _learners(rows: pd.DataFrame) -> str:
    """What learning robustly changes for the winning rule."""
    own: Any = rows[(rows["part"] == "robust_learner") & (rows["told"] == 30)]
    other: Any = rows[(rows["part"] == "rules") & (rows["told"] == 30)]
    if own.empty:
        return ""
    lines = ["\n## Does it pay to learn robustly?\n"]
    for measure in ("loss", "floor"):
        pair = [
            part[part["rule"] == WITHIN].set_index(_BLOCK)[measure]
            for part in (own, other)
        ]
        found = mean_of((pair[0] - pair[1]).dropna())
        lines.append(
            f"- {measure} of `{_LEARNERS[1]}` less that of `{_LEARNERS[0]}`, "
            f"*{WITHIN}* deciding: {found}, p {found.two_sided:.2g}, "
            f"{found.blocks} blocks"
        )
    return "\n".join(lines)


def _one_model(rows: pd.DataFrame) -> str:
    own: Any = rows[rows["part"] == "one_model"]
    if own.empty:
        return ""
    wide = own.set_index([*_BLOCK, "rule"])["loss"].unstack("rule").dropna()
    found = mean_of(wide["ensemble"] - wide["botorch"])
    return (
        "\n## The ensemble against one model of BoTorch, at the end\n\n"
        f"Loss with the ensemble less that with one model, after 30 outcomes: {found}, "
        f"p {found.two_sided:.2g}, {found.blocks} blocks."
    )


def _known(rows: pd.DataFrame) -> str:
    own: Any = rows[rows["part"] == "known"]
    if own.empty:
        return ""
    rules = ["policy", "fixed decision", "model of the decision alone"]
    table = own.groupby(["case", "rule"])["regret"].mean().unstack("rule")[rules]
    lines = [
        "\n## What to do today, given today's context\n",
        "Mean regret in contexts of the law, in percent of what there is to gain.\n",
        f"| function | {' | '.join(rules)} |",
        "|---|" + "---:|" * len(rules),
    ]
    for case, line in table.iterrows():
        lines.append(f"| {case} | " + " | ".join(f"{v:.1f}" for v in line) + " |")
    lines.append("| all | " + " | ".join(f"{v:.1f}" for v in table.mean()) + " |")
    return "\n".join(lines)


_HEAD = """# What a limit on the price of robustness buys

`python -m benchmarks price`. Cases, rules, judgement and claims were written down
before any run: `benchmarks/experiments/price/claims.md`. All numbers are percent of
what there is to gain under the law as it was; mean ± error over seeds (± over the
twelve functions). A statistic is positive where its claim is right; p is of the
one-sided sign-flip test of that mean.

- A: *ball within 10%* has a higher floor than *expected*.
- B: it costs at most 3 (3 less the price).
- C: its price varies less over functions than the ball's, and is at most 12 on each.
- D: its worst regret is below that of *expected*.
"""
