"""Decisions that may be taken: samples of a space with kinds and constraints."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod

import torch
from botorch.exceptions.errors import InputDataError
from botorch.utils.sampling import get_polytope_samples
from torch import Tensor

from botorch_drbo.problem.equalities import EXACT, Equalities, in_units
from botorch_drbo.problem.search_space import SearchSpace, snapped
from botorch_drbo.sampling import sobol_in_box

# An optimiser stops a little outside a constraint: BoTorch's own tolerance.
TOLERANCE = 1e-6
_MOST_DRAWS = 2**17
_LONGEST_LIST = 4096
_DRAWS_AROUND, _MOST_ROUNDS = 4096, 12  # in boxes around what has been found


def feasible(space: SearchSpace, X: Tensor, missed: float = TOLERANCE) -> Tensor:
    """Which decisions satisfy the constraints, up to a millionth.

    Shapes: ``X``: ``n x d_x``.
    """
    kept = torch.ones(len(X), dtype=torch.bool, device=X.device)
    for indices, coefficients, rhs in space.inequality_constraints:
        # Relative to the terms of the sum: they lose digits in proportion to their
        # size.
        terms = X[:, indices] * coefficients  # n x k
        slack = TOLERANCE * (abs(rhs) + terms.abs().sum(-1))
        kept &= terms.sum(-1) >= rhs - slack
    for constraint in space.nonlinear_inequality_constraints:
        with torch.no_grad():
            kept &= constraint(X) >= -TOLERANCE
    if space.equalities is not None:
        kept &= space.equalities.missed(X) <= missed
    return kept


def sample(space: SearchSpace, num: int, seed: int) -> Tensor:
    """Sobol decisions that may be taken.

    The sequence fills the box, its points take the nearest values that they may have,
    and what violates a constraint is left out: the first points of a longer sample are
    the shorter one. Where hardly any are left and all constraints are linear, a random
    walk inside them goes on (BoTorch's hit and run).

    Shapes: returns ``num x d_x``.
    """
    return _rows(space, num, seed)


def joint_sample(space: SearchSpace, num: int, seed: int) -> Tensor:
    """The same with contexts, ``num x (d_x + d_c)``."""
    return _rows(space, num, seed, joint=True)


def all_decisions(space: SearchSpace) -> Tensor | None:
    """Every decision that may be taken, ``m x d_x``; None if there are too many."""
    # With equalities only the free columns are listed; the others follow from them.
    free = free_space(space)
    values = free.values
    if len(values) < free.d_x or prod([len(values[j]) for j in values]) > _LONGEST_LIST:
        return None
    rows = product(*(values[j] for j in range(free.d_x)))
    return allowed(space, free, space.bounds.new_tensor(list(rows)))


def allowed(space: SearchSpace, free: SearchSpace, rows: Tensor) -> Tensor:
    """Those that may be taken of rows of the free columns, and of contexts.

    Shapes: ``rows``: ``n x f``, returns ``m x d_x``.
    """
    F, C = rows[:, : free.d_x], rows[:, free.d_x :]
    kept = feasible(free, F := free.snap(F))
    X = F
    if space.equalities is not None:
        # Solving for the dependent columns loses digits, and snapping moves them: the
        # sums are put right once more, and checked.
        X = settled(space, space.snap(space.equalities.lifted(F)))
        kept &= space.equalities.missed(X) <= EXACT
    return torch.cat([X, space.snap_contexts(C)] if C.shape[-1] else [X], dim=-1)[kept]


def settled(space: SearchSpace, X: Tensor, held: Sequence[int] = ()) -> Tensor:
    """Decisions ``n x d_x`` with the right sums, where numbers of an interval can.

    Those of the columns ``held`` do not move.
    """
    if space.equalities is None:
        return X
    return space.equalities.settled(X, space.bounds, [*space.values, *held])


def free_space(space: SearchSpace) -> SearchSpace:
    """The space of the columns that equalities leave free; itself if there are none.

    The bounds and the constraints of the others are constraints of these.
    """
    equalities = space.equalities
    if equalities is None:
        return space
    free = list(equalities.free)
    logarithms = [i for i, j in enumerate(free) if j in equalities.logarithms]
    # The box of the free columns in the units of the sums, in which constraints are
    # linear.
    lowest, highest = in_units(equalities.bounds, logarithms)
    linear: list[tuple[Tensor, Tensor, float]] = []
    functions: list[Callable[[Tensor], Tensor]] = []
    for weights, least, size in _of_free(space, equalities):
        # Interval arithmetic: the least that a weighted sum can be in the box.
        smallest = torch.where(weights > 0, lowest, highest) @ weights
        size += float(weights.abs() @ torch.maximum(highest, -lowest).abs())
        if smallest >= least - EXACT * size:
            continue  # it always holds
        indices = weights.nonzero().flatten()
        # A sum of exponentials is no linear function of what the search sees.
        if set(indices.tolist()) & set(logarithms):
            functions.append(
                lambda F, w=weights, b=least, s=size: (
                    (in_units(F, logarithms) @ w - b) / s
                )
            )
        else:
            linear.append((indices, weights[indices], least))
    lifted = equalities.lifted
    # Constraints of all columns become constraints of the free ones by substitution.
    functions += [
        lambda F, g=g: g(lifted(F)) for g in space.nonlinear_inequality_constraints
    ]
    # A dependent column of listed values has to hit one of them.
    functions += [
        lambda F, j=j, values=space.values[j]: _on_list(lifted(F)[..., j], values)
        for j in equalities.dependent
        if j in space.values and not _stays_whole(space, equalities, j)
    ]
    ends = equalities.bounds.mT.tolist()
    discrete = {
        i: _between(space.discrete[j], *ends[i])
        for i, j in enumerate(free)
        if j in space.discrete
    }
    bounds = equalities.bounds.clone()
    for i, values in discrete.items():
        bounds[:, i] = bounds.new_tensor([values[0], values[-1]])
    return replace(
        space,
        bounds=bounds,
        discrete=discrete,
        categories={free.index(j): k for j, k in space.categories.items()},
        inequality_constraints=tuple(linear),
        nonlinear_inequality_constraints=tuple(functions),
        equalities=None,
        perturbation=False,
    )


def _of_free(
    space: SearchSpace, equalities: Equalities
) -> Iterator[tuple[Tensor, float, float]]:
    """Linear constraints as weights of free columns, ``f``, the least sum, its size."""
    free, dependent = list(equalities.free), list(equalities.dependent)
    lower, upper = in_units(space.bounds, equalities.logarithms)
    identity = torch.eye(space.d_x).to(lower)
    # The bounds of the dependent columns become constraints of the free ones.
    rows = [(identity[j], float(lower[j])) for j in dependent]
    rows += [(-identity[j], -float(upper[j])) for j in dependent]
    rows += [
        (identity[indices].mT @ coefficients.to(lower), rhs)
        for indices, coefficients, rhs in space.inequality_constraints
    ]
    for row, least in rows:
        # Gaussian elimination: the dependent columns are replaced by what they are.
        own = row[dependent]
        weights = row[free] - own @ equalities.weights[:, free]
        taken = own * equalities.sums
        yield weights, least - float(taken.sum()), abs(least) + float(taken.abs().sum())


def _on_list(numbers: Tensor, values: Sequence[float]) -> Tensor:
    """Not negative where numbers, ``n``, are of a list."""
    nearest = snapped(numbers.unsqueeze(-1), {0: values}).squeeze(-1)
    is_range = isinstance(values, range)  # perhaps too long to be looked through
    step = 1.0 if is_range else min(b - a for a, b in pairwise(values))
    return 0.5 - (numbers - nearest).abs() / (TOLERANCE * step)


def _stays_whole(space: SearchSpace, equalities: Equalities, j: int) -> bool:
    """Whether a column is a whole number whatever the whole numbers it follows from."""
    k = equalities.dependent.index(j)
    weights = equalities.weights[k]
    columns = weights.nonzero().flatten().tolist()
    whole = torch.cat([weights, equalities.sums[k : k + 1]])
    return bool((whole == whole.round()).all()) and all(
        isinstance(space.discrete.get(i), range) for i in columns
    )


def _between(values: Sequence[float], lower: float, upper: float) -> Sequence[float]:
    """The values within bounds, up to rounding; all if there is none."""
    slack = TOLERANCE * (values[1] - values[0])
    first = bisect_left(values, lower - slack)
    return values[first : bisect_right(values, upper + slack)] or values


def _rows(space: SearchSpace, num: int, seed: int, *, joint: bool = False) -> Tensor:
    free = free_space(space)
    bounds = free.joint_bounds if joint else free.bounds
    # Rejection: draw from the box, keep what is feasible, and draw eight times as many
    # while that is too little.
    draws = max(64, num)
    while True:
        rows = allowed(space, free, sobol_in_box(draws, bounds, seed))
        if len(rows) >= num:
            return rows[:num]
        if draws >= _MOST_DRAWS:
            break
        draws = min(8 * draws, _MOST_DRAWS)
    # A small feasible set. If it is a polytope BoTorch walks in it (hit and run);
    # otherwise boxes around what was found are drawn from.
    if free.nonlinear_inequality_constraints:
        further = _around(space, free, rows, num, seed)
    else:
        further = allowed(space, free, _walk(free, num, seed))
        if joint and len(further):
            C = sobol_in_box(len(further), space.context_bounds, seed)
            further = torch.cat([further, space.snap_contexts(C)], dim=-1)
    rows = torch.cat([rows, further]) if len(further) else rows
    if not len(rows):
        raise InputDataError(
            f"None of {_MOST_DRAWS:,} decisions that fill the bounds satisfies the "
            "constraints. Check their signs (a linear one has `upper` or `lower`, a "
            "function is feasible where it is not negative), or narrow the bounds to "
            "where there are feasible decisions. Whole and listed numbers may not add "
            "up to what a constraint asks for."
        )
    # Fewer decisions than asked for: they are repeated in turn.
    return rows[torch.arange(num, device=rows.device) % len(rows)]


def _around(
    space: SearchSpace, free: SearchSpace, rows: Tensor, num: int, seed: int
) -> Tensor:
    """More decisions in boxes around those found, where functions leave little room.

    Contexts, if there are any, still fill their box.
    """
    joint = rows.shape[-1] > space.d_x
    bounds = free.joint_bounds if joint else free.bounds
    columns = range(space.d_x) if space.equalities is None else space.equalities.free
    lower, side = free.bounds[0], free.bounds[1] - free.bounds[0]
    half = _MOST_DRAWS ** (-1 / free.d_x)  # as far as the draws were apart, of a side
    found = [rows]
    for number in range(1, _MOST_ROUNDS + 1):
        # Each round looks around all that is known, so that the sample can creep along
        # a thin set.
        centres = torch.cat(found)[:, list(columns)]
        if not 0 < len(centres) < num:
            break
        points = sobol_in_box(_DRAWS_AROUND, bounds, seed + number)
        moves = half * (2 * (points[:, : free.d_x] - lower) - side)
        near = centres[torch.arange(len(points), device=rows.device) % len(centres)]
        points[:, : free.d_x] = (near + moves).clamp(*free.bounds)
        found.append(allowed(space, free, points))
        # Most of a box of this size is infeasible: a smaller one around the same
        # points.
        if len(found[-1]) < _DRAWS_AROUND // 16:
            half /= 2
    return torch.cat(found)[len(rows) :]


def _walk(free: SearchSpace, num: int, seed: int) -> Tensor:
    """Points inside linear constraints that are a small part of the box."""
    try:
        return get_polytope_samples(
            max(num, 256),
            free.bounds.double(),
            inequality_constraints=[
                (indices, coefficients.double(), rhs)
                for indices, coefficients, rhs in free.inequality_constraints
            ],
            seed=seed,
            n_burnin=256,
            n_thinning=4,
        ).to(free.bounds)
    except ValueError:  # there is no point inside: the caller says so
        return free.bounds[:0]
