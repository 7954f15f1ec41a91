"""Real tables of categories: what the default learns of them from a few random rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.development.categories import (
    CANDIDATES,
    KINDS,
    SALT,
    CategoryFunction,
    Member,
    Score,
    chosen,
    moments,
    random_functions,
    score,
    scores,
)
from benchmarks.problems.data_files import find_data_file
from benchmarks.run.markdown import markdown_table
from benchmarks.run.provenance import commit
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.surrogate import SURROGATES, ModelData

TABLES = ("suzuki", "amidation")
_ROWS, _SEEDS = (24, 48), 6
_SOURCE = (
    "It is a table of reactions: a header, columns of categories, and the yield in the "
    "column `yield`."
)
_PENALTIES = np.exp(np.linspace(-4.0, 6.0, 41))
_FOUR = ("botorch", "matern", "rbf", "matern32")


def read_table(name: str) -> pd.DataFrame:
    """A table ``reactions_NAME.csv``: categories, and the yield."""
    return pd.read_csv(find_data_file(f"reactions_{name}.csv", None, source=_SOURCE))


def learnt_from(
    table: pd.DataFrame, rows: Sequence[int] | np.ndarray, whole: pd.DataFrame
) -> CategoryFunction:
    """Some rows of a table to learn from, and all cells of the whole to predict.

    Args:
        table: The rows are of this one.
        rows: Which.
        whole: All levels of all columns, and the truth.
    """
    columns = [column for column in whole if column != "yield"]
    levels = {column: list(whole[column].unique()) for column in columns}

    def encoded(frame: pd.DataFrame) -> tuple[Tensor, Tensor]:
        codes = [frame[column].map(levels[column].index) for column in columns]
        outcomes = torch.tensor(frame["yield"].to_numpy(), dtype=torch.double)
        return torch.tensor(np.stack(codes, 1), dtype=torch.double), outcomes

    inputs, outcomes = encoded(table.iloc[rows])
    cells, true = encoded(whole)
    counts = {j: len(levels[column]) for j, column in enumerate(columns)}
    upper = torch.tensor([k - 1.0 for k in counts.values()], dtype=torch.double)
    data = ModelData(
        inputs,
        outcomes[:, None],
        torch.stack([torch.zeros_like(upper), upper]),
        categories=counts,
    )
    unseen = (cells[:, None] != inputs).any(-1).all(-1)
    return CategoryFunction(data, cells, true, true, unseen)


def ridge(function: CategoryFunction) -> Tensor:
    """Ridge regression on one-hot columns, its penalty by leave-one-out: means, ``n``.

    Independent of the library: the oracle of what main effects say.
    """
    counts = function.data.categories

    def columns(cells: Tensor) -> np.ndarray:
        parts = [one_hot(cells[:, j].long(), k) for j, k in counts.items()]
        return torch.cat(parts, -1).double().numpy()

    A, y = columns(function.data.inputs), function.data.outcomes.flatten().numpy()
    residual, least = y - y.mean(), np.inf
    weights = np.zeros(A.shape[1])
    for penalty in _PENALTIES:
        precision = np.linalg.inv(A @ A.T + penalty * np.eye(len(y)))
        alpha = precision @ residual
        left_out = np.square(alpha / precision.diagonal()).sum()
        if left_out < least:
            least, weights = left_out, A.T @ alpha
    return torch.from_numpy(y.mean() + columns(function.cells) @ weights)


def run_tables(out: Path, *, functions: int) -> int:
    """Write the report.

    Args:
        out: Where to.
        functions: How many random functions of each kind the choice is made on.
    """
    wholes = {name: read_table(name) for name in TABLES}
    cases = {
        (name, t): [
            learnt_from(whole, _random_rows(seed, name, len(whole), t), whole)
            for seed in range(_SEEDS)
        ]
        for name, whole in wholes.items()
        for t in _ROWS
    }
    lines = [
        "# Tables of categories",
        "",
        f"`python -m benchmarks tables`, {commit()}. The rule is in "
        "`benchmarks/development/categories.md`.",
        "",
        "## R² over the whole table, posterior mean",
        "",
        f"Means over {_SEEDS} seeds of random rows, ± the standard error; *in band*: "
        "the share of unseen cells in the default's bands of 95%, noise included.",
        "",
        *_explained(cases),
        "",
        "## BF3K against BPin",
        "",
        *_nucleophiles(wholes["suzuki"]),
        "",
        "## The choice of the members",
        "",
        *_choice(cases, functions),
        "",
    ]
    out.write_text("\n".join(lines), encoding="utf-8")
    print(*lines, sep="\n")
    return 0


def _random_rows(seed: int, name: str, num: int, t: int) -> np.ndarray:
    generator = np.random.default_rng([SALT, TABLES.index(name), seed])
    return generator.permutation(num)[:t]


def _explained(
    cases: Mapping[tuple[str, int], Sequence[CategoryFunction]],
) -> list[str]:
    rows = []
    for (name, t), group in cases.items():
        found: dict[str, list[float]] = {}
        covered = []
        for function in group:
            own = {
                s: moments(SURROGATES[s].fit(function.data), function) for s in _FOUR
            }
            default = score(function, list(own.values()))
            covered.append(default.covered)
            bare = moments(Member("botorch", None).fit(function.data), function)
            by_ridge = ridge(function), torch.ones_like(function.true)
            parts = {"default": list(own.values()), "ridge": [by_ridge]}
            parts |= {"BoTorch's own": [bare]}
            parts |= {f'`"{s}"`': [both] for s, both in own.items()}
            for model, members in parts.items():
                found.setdefault(model, []).append(score(function, members).explained)
        cells = [f"{np.mean(v):.2f} ± {_error(v):.2f}" for v in found.values()]
        rows.append([name, str(t), *cells, f"{np.mean(covered):.0%}"])
        head = ["table", "rows", *found, "in band"]
    return markdown_table(head, rows)


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / len(values) ** 0.5


def _nucleophiles(whole: pd.DataFrame) -> list[str]:
    few = read_table("suzuki_30_rows")
    function = learnt_from(few, range(len(few)), whole)
    members = members_of(SURROGATES["ensemble"].fit(function.data))
    means = [moments(member, function)[0] for member in members]
    predicted = torch.stack(means).mean(0).numpy()
    rows = []
    same = (whole["ligand"] == "SPhos") & (whole["base"] == "NaOH")
    same &= whole["solvent"] == "THF"
    for nucleophile in ("BF3K", "BPin"):
        here = (same & (whole["nucleophile"] == nucleophile)).to_numpy()
        true = whole["yield"].to_numpy()[here]
        rows.append(
            [nucleophile, f"{predicted[here].mean():.1f}", f"{true.mean():.1f}"]
        )
    text = "SPhos, NaOH, THF, the mean over the electrophiles, from the 30 rows:"
    return [text, "", *markdown_table(["nucleophile", "default", "true"], rows)]


def _choice(
    cases: Mapping[tuple[str, int], Sequence[CategoryFunction]], functions: int
) -> list[str]:
    groups: dict[str, list[dict[str, Score]]] = {
        kind: [scores(function) for function in random_functions(kind, functions)]
        for kind in KINDS
    }
    for (name, _), group in cases.items():
        groups.setdefault(name, []).extend(map(scores, group))
    first, *_ = order = chosen(groups)
    rows = []
    for column, text in enumerate(("R²", "log density", "in band")):
        for name in CANDIDATES:
            means = [
                float(np.mean([each[name][column] for each in group]))
                for group in groups.values()
            ]
            rows.append([text, name, *(f"{m:.3f}" for m in [*means, np.mean(means)])])
    times = []
    for name, members in CANDIDATES.items():
        seconds = [str(round(_seconds(cases["suzuki", t], members), 3)) for t in _ROWS]
        times.append([name, *seconds])
    return [
        f"{functions} functions of each kind, and {2 * _SEEDS} draws of rows of each "
        f"table. The rule's order: {', '.join(order)}; so `{first}`, if its bands and "
        "its time are as required.",
        "",
        *markdown_table(["score", "candidate", *groups, "mean"], rows, left=2),
        "",
        "CPU seconds of one fit of all four, Suzuki, median:",
        "",
        *markdown_table(["candidate", *(f"{t} rows" for t in _ROWS)], times),
    ]


def _seconds(group: Sequence[CategoryFunction], members: Sequence[Member]) -> float:
    seconds = []
    for function in group:
        start = time.process_time()
        for member in members:
            member.fit(function.data)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))
