"""Contexts that the decisions seem to move, which no worst case here allows for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from botorch_drbo.problem.search_space import Categories, SearchSpace

_LEAST_SHARE = 0.3
_LEVEL = 0.01  # of all columns together; a run is looked at after every row
_NUM_PERMUTATIONS = 199
_LEAST_ROWS = 8
_MOST_ROWS = 1000  # the newest ones; more make the answer no surer
_ROWS_PER_REGRESSOR = 4
_LEAST_FREE = 1e-6  # 1 - leverage of a row that determines its own prediction
_PENALTIES = (1.0, 10.0)  # of the ridge; columns have about variance one


@final
@dataclass(frozen=True)
class MovedContext:
    """A context column that the decisions predict."""

    # Its name.
    column: str
    # The share of its variance that they predict in rows left out.
    share: float


def moved_words(moved: Sequence[MovedContext]) -> str:
    """How much is predicted, what it means and what to do; nothing if none is."""
    if not moved:
        return ""
    shares = " and ".join(
        f"{'over 99' if m.share > 0.99 else f'{100 * m.share:.0f}'}% of {m.column}"
        for m in moved
    )
    return (
        f"the decisions predict {shares} in rows left out, and no expected or "
        "worst-case value allows for that: unless you decided by a forecast of it, "
        "take as the context what causes it, or how far it is from what the decision "
        "makes expect"
    )


def moved_contexts(
    X: Tensor, C: Tensor, space: SearchSpace
) -> tuple[MovedContext, ...]:
    r"""The context columns that depend on the decisions, by a permutation test.

    A ridge regression on the decisions and their squares (of categories the
    indicators) predicts each row from all others, in closed form:

    .. math:: R^2 = 1 - \sum_i (c_i - \hat c_{-i})^2 / \sum_i (c_i - \tilde c_{-i})^2

    against :math:`\tilde c`, which knows the row before and a trend, because decisions
    may follow past contexts without moving the next ones. A column is named if its
    share is above 0.3 and exceeds the largest share of any column in 198 of 199
    permutations of the residuals of :math:`\tilde c` [FreedmanLane1983]_.

    Shapes: ``X``: ``t x d_x``, ``C``: ``t x d_c``.
    """
    X, C = (values[-_MOST_ROWS:].double().cpu() for values in (X, C))
    X, C = _without_replicates(X, C)
    if len(X) < _LEAST_ROWS:
        return ()
    chosen = _encoded(X, space.categories, squares=True)
    shares = []
    for j in range(space.d_c):
        met = _encoded(C[:, j : j + 1], {0: space.context_categories.get(j, 0)})
        known = torch.ones_like(X[:, :1])
        if not _is_sorted(X):  # of sorted rows the order is no time
            known = torch.cat([known, known.cumsum(0)], dim=-1)
            if met.shape[-1] <= len(X) / _ROWS_PER_REGRESSOR:
                known = torch.cat([known, met.roll(1, 0)], dim=-1)
        shares.append(_shares(met[1:], chosen[1:], known[1:]))
    found = torch.stack(shares)  # d_c x (1 + permutations)
    largest = found[:, 1:].amax(0)
    allowed = _LEVEL * found.shape[-1] - 1.0
    return tuple(
        MovedContext(name, own.item())
        for name, own in zip(space.context_columns, found[:, 0], strict=True)
        if own > _LEAST_SHARE and (largest >= own).sum() <= allowed
    )


def _without_replicates(X: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """One row of each decision, if each comes with one context: repeats are no news."""
    decisions, of_decision = X.unique(dim=0, return_inverse=True)
    if len(torch.cat([X, C], dim=-1).unique(dim=0)) > len(decisions):
        return X, C
    places = of_decision.tolist()
    first = [i for i, place in enumerate(places) if place not in places[:i]]
    return X[first], C[first]


def _is_sorted(X: Tensor) -> bool:
    """Whether the rows are in the order of a decision, which then is no time's."""
    steps = X.diff(dim=0)
    one_way = (steps >= 0).all(0) | (steps <= 0).all(0)
    return bool((one_way & (steps != 0).any(0)).any())


def _encoded(values: Tensor, categories: Categories, squares: bool = False) -> Tensor:
    """Centred regressors ``t x m``: numbers of variance one, indicators of levels."""
    columns = []
    for j, column in enumerate(values.unbind(-1)):
        if k := categories.get(j):
            columns.append(one_hot(column.round().long(), k).to(values))
            continue
        unit = _standardised(column.unsqueeze(-1))
        columns += [unit, _standardised(unit.square())] if squares else [unit]
    joined = torch.cat(columns, dim=-1)
    return joined - joined.mean(0)


def _standardised(column: Tensor) -> Tensor:
    """A column ``t x 1`` of mean zero and variance one, or of zeros."""
    centred = column - column.mean()
    size = centred.square().mean().sqrt()
    negligible = 1e-9 * column.abs().max()
    return centred / size if size > negligible else torch.zeros_like(column)


def _shares(met: Tensor, chosen: Tensor, known: Tensor) -> Tensor:
    """The share of a context that decisions predict, first as it is, then permuted."""
    generator = torch.Generator().manual_seed(0)
    t = len(met)
    orders = [torch.randperm(t, generator=generator) for _ in range(_NUM_PERMUTATIONS)]
    basis = torch.linalg.svd(known, full_matrices=False)
    basis = basis.U[:, 1e-9 * basis.S[0] < basis.S]

    def rest(values: Tensor) -> Tensor:
        return values - basis @ (basis.mT @ values)

    residuals = rest(met)
    permuted = torch.stack([residuals, *(residuals[order] for order in orders)])
    targets = rest(permuted)  # p x t x m
    free = 1.0 - basis.square().sum(-1, keepdim=True)  # 1 - leverage, t x 1
    total = (targets / free.clamp_min(_LEAST_FREE)).square().sum((-1, -2))
    sides, sizes, _ = torch.linalg.svd(rest(chosen), full_matrices=False)
    best = torch.full_like(total, -torch.inf)
    for penalty in _PENALTIES:
        shrunk = sides * (sizes.square() / (sizes.square() + penalty))
        errors = targets - shrunk @ (sides.mT @ targets)
        left = free - (shrunk * sides).sum(-1, keepdim=True)
        missed = (errors / left.clamp_min(_LEAST_FREE)).square().sum((-1, -2))
        best = torch.maximum(best, 1.0 - missed / total)
    return best.nan_to_num(0.0)  # a context that never changed
