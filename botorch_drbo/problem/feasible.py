"""Decisions that may be taken: samples of a space with kinds and constraints."""

from __future__ import annotations

from itertools import product
from math import prod

import torch
from botorch.exceptions.errors import InputDataError
from botorch.utils.sampling import get_polytope_samples
from torch import Tensor

from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol_in_box

# An optimiser stops a little outside a constraint: BoTorch's own tolerance.
TOLERANCE = 1e-6
_MOST_DRAWS = 2**17
_LONGEST_LIST = 4096


def feasible(space: SearchSpace, X: Tensor) -> Tensor:
    r"""Which decisions satisfy the constraints, up to a millionth.

    Args:
        space: The space; its kinds are not looked at.
        X: Decisions, ``n x d_x``.

    Returns:
        A mask, ``n``.
    """
    kept = torch.ones(len(X), dtype=torch.bool, device=X.device)
    for indices, coefficients, rhs in space.inequality_constraints:
        terms = X[:, indices] * coefficients  # n x k
        slack = TOLERANCE * (abs(rhs) + terms.abs().sum(-1))
        kept &= terms.sum(-1) >= rhs - slack
    for constraint in space.nonlinear_inequality_constraints:
        with torch.no_grad():
            kept &= constraint(X) >= -TOLERANCE
    return kept


def sample(space: SearchSpace, num: int, seed: int) -> Tensor:
    r"""Sobol decisions that may be taken.

    The sequence fills the box, its points take the nearest values that they may have,
    and what violates a constraint is left out: the first points of a longer sample are
    the shorter one. Where hardly any are left and all constraints are linear, a random
    walk inside them goes on (BoTorch's hit and run).

    Args:
        space: The space.
        num: How many.
        seed: Decides them.

    Returns:
        ``num x d_x``; some twice where there are fewer.

    Raises:
        InputDataError: None was found.
    """
    return _rows(space, space.bounds, num, seed)


def joint_sample(space: SearchSpace, num: int, seed: int) -> Tensor:
    """The same with contexts, ``num x (d_x + d_c)``."""
    return _rows(space, space.joint_bounds, num, seed)


def all_decisions(space: SearchSpace) -> Tensor | None:
    """Every decision that may be taken, ``m x d_x``; None if there are too many."""
    values = space.values
    sizes = [len(values[j]) for j in values]
    if len(values) < space.d_x or prod(sizes) > _LONGEST_LIST:
        return None
    rows = product(*(values[j] for j in range(space.d_x)))
    X = space.bounds.new_tensor(list(rows))
    return X[feasible(space, X)]


def _rows(space: SearchSpace, bounds: Tensor, num: int, seed: int) -> Tensor:
    draws, d_x = max(64, num), space.d_x
    while True:
        rows = _snapped(space, sobol_in_box(draws, bounds, seed))
        rows = rows[feasible(space, rows[:, :d_x])]
        if len(rows) >= num:
            return rows[:num]
        if draws >= _MOST_DRAWS:
            break
        draws = min(8 * draws, _MOST_DRAWS)
    if not space.nonlinear_inequality_constraints:
        walked = _walk(space, num, seed)
        if len(walked) and bounds.shape[-1] > d_x:
            C = sobol_in_box(len(walked), bounds[:, d_x:], seed)
            walked = torch.cat([walked, space.snap_contexts(C)], dim=-1)
        rows = torch.cat([rows, walked]) if len(walked) else rows
    if not len(rows):
        raise InputDataError(
            f"None of {_MOST_DRAWS:,} decisions that fill the bounds satisfies the "
            "constraints. Check their signs (a linear one has `upper` or `lower`, a "
            "function is feasible where it is not negative), or narrow the bounds to "
            "where there are feasible decisions."
        )
    return rows[torch.arange(num, device=rows.device) % len(rows)]


def _walk(space: SearchSpace, num: int, seed: int) -> Tensor:
    """Points inside linear constraints that are a small part of the box."""
    try:
        X = get_polytope_samples(
            max(num, 256),
            space.bounds.double(),
            inequality_constraints=[
                (indices, coefficients.double(), rhs)
                for indices, coefficients, rhs in space.inequality_constraints
            ],
            seed=seed,
            n_burnin=256,
            n_thinning=4,
        ).to(space.bounds)
    except ValueError:  # there is no point inside: the caller says so
        return space.bounds[:0]
    X = _snapped(space, X)
    return X[feasible(space, X)]


def _snapped(space: SearchSpace, rows: Tensor) -> Tensor:
    """Decisions, with contexts or without."""
    d_x = space.d_x
    parts = [space.snap(rows[:, :d_x])]
    if rows.shape[-1] > d_x:
        parts.append(space.snap_contexts(rows[:, d_x:]))
    return torch.cat(parts, dim=-1)
