"""Data sets on which the share that a model explains is said and known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from benchmarks.development.cases import CASES
from benchmarks.problems.data_files import find_data_file
from botorch_drbo.problem import History, SearchSpace

NUM_CONTEXTS = {"suzuki": 2, "amidation": 1}
"""Of each table: so many columns before the outcome are contexts."""
_NOISE = {
    "branin_2_2": 0.1,
    "hartmann_5_1": 0.5,
    "newsvendor_2_1": 0.5,
    "rastrigin_2_1": 0.5,
    "matern_2_1": 0.5,
    "rational_quadratic_3_1": 1.0,
    "six_hump_camel": 2.0,
}
"""Deviations of the noise, in deviations of the function."""
_NUM_FRESH = 4000  # outcomes that no model was told

SIZES: tuple[tuple[str, int], ...] = (
    *((table, t) for table in NUM_CONTEXTS for t in (15, 30, 48, 100)),
    *zip(_NOISE, (15, 20, 30, 48, 60, 80, 100), strict=True),
)
"""Tables and functions, with how many rows are told: 15, of two seeds each."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Outcomes that are told, and others of the same kind that are not.

    Args:
        told: ``t`` rows.
        space: The boxes and categories.
        inputs: Of rows that are not told, ``n x d``, decisions first.
        outcomes: Theirs, noise included, ``n``.
    """

    told: History
    space: SearchSpace
    inputs: Tensor
    outcomes: Tensor


def data_set(name: str, num_rows: int, seed: int) -> DataSet:
    """Random rows of a table or of a function with noise."""
    generator = torch.Generator().manual_seed(seed)
    if name in NUM_CONTEXTS:
        return _of_table(name, num_rows, generator)
    case, total = CASES[name], num_rows + _NUM_FRESH
    function = case.make(seed)
    uniforms = torch.rand(total, function.d_x, generator=generator).double()
    X, C = case.decisions(function, uniforms), function.sample_contexts(total, seed)
    values = function.evaluate(X, C)
    noise = torch.randn(total, generator=generator).to(values)
    Y = values + _NOISE[name] * values.std() * noise
    return _split(X, C, Y, num_rows, case.space(function))


def _of_table(name: str, num_rows: int, generator: torch.Generator) -> DataSet:
    file = f"reactions_{name}.csv"
    path = find_data_file(file, None, source="A full factorial table of yields.")
    rows = pd.read_csv(path)
    codes = [pd.factorize(rows[column], sort=True)[0] for column in rows.columns[:-1]]
    Z = torch.from_numpy(np.stack(codes, -1)).double()
    Y = torch.tensor(rows.iloc[:, -1].to_numpy()).double()
    order = torch.randperm(len(Z), generator=generator)
    X, C = Z[order].tensor_split([Z.shape[-1] - NUM_CONTEXTS[name]], dim=-1)
    tops = Z.amax(0)
    bounds, context_bounds = (
        torch.stack([torch.zeros_like(top), top])
        for top in tops.tensor_split([X.shape[-1]])
    )
    counts = [int(top) + 1 for top in tops]
    space = SearchSpace(
        bounds,
        context_bounds,
        categories=dict(enumerate(counts[: X.shape[-1]])),
        context_categories=dict(enumerate(counts[X.shape[-1] :])),
    )
    return _split(X, C, Y[order], num_rows, space)


def _split(X: Tensor, C: Tensor, Y: Tensor, t: int, space: SearchSpace) -> DataSet:
    told = History(X=X[:t], C=C[:t], Y=Y[:t].unsqueeze(-1), contexts=C[:t])
    return DataSet(told, space, torch.cat([X, C], -1)[t:], Y[t:])
