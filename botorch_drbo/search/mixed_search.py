"""The best decision where some variables are discrete or decisions are constrained."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation import gen_candidates_scipy
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo.problem.feasible import (
    all_decisions,
    allowed,
    feasible,
    free_space,
)
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.search.candidates import neighbours, score
from botorch_drbo.search.starts import InUnitCube

# At a kink L-BFGS-B would spend most of its evaluations on digits that no one needs.
LINE_SEARCH = {"maxls": 8, "factr": 1e9}
_HALVINGS = 20  # of the way from a start inside to an end outside
_MAX_STEPS = 256  # values of a range that is stepped through
MOST_TURNS = 64  # of steps and ascents, as in BoTorch's alternating search
_MOST_STEPS = 8  # in a turn
_MOST_ITERATIONS = 32  # of the ascent of a turn
_NO_GAIN = 1e-8  # in units of the prior
_MAX_ROUNDED = 6  # wide columns of which all combinations of sides are looked at


def climb(
    cube: InUnitCube,
    space: SearchSpace,
    starts: Tensor,
    *,
    max_iterations: int,
    max_turns: int = MOST_TURNS,
) -> Tensor:
    """Decisions that may be taken, the best found of them among them.

    - If there are few decisions in all, each is looked at.
    - Equalities leave fewer columns, over which the search goes in these ways.
    - With discrete variables and at most linear constraints, steps to better values
      and ascents in the others take turns.
    - With functions as constraints each start keeps its discrete values, and
      SLSQP climbs in the others.

    Whole numbers of a range that steps cannot cross are climbed as if all numbers in
    between could be taken; those on both sides of an end are decisions.

    Shapes: ``starts``: ``k x 1 x d_x``, returns ``m x d_x``.
    """
    # A short list of decisions needs no search: all of them are evaluated.
    enumerated = all_decisions(space)
    if enumerated is not None:
        return enumerated
    # Elimination: columns that equalities determine are no variables of the search.
    if space.equalities is not None:  # the same with the columns that are free
        free, lifted = free_space(space), space.equalities.lifted
        within = InUnitCube(_Lifted(cube.acqf, lifted), free.bounds)
        chosen = cube.to_box(starts)[..., list(space.equalities.free)]
        unit = within.to_cube(chosen)
        found = climb(
            within, free, unit, max_iterations=max_iterations, max_turns=max_turns
        )
        return allowed(space, free, found)
    linear = _linear_in_cube(space) or None
    # A range of very many values is climbed as a number, and rounded at the end.
    wide_ranges = [
        j
        for j, values in space.discrete.items()
        if isinstance(values, range) and len(values) > _MAX_STEPS
    ]
    # What is left: short lists, and categories.
    stepwise = [j for j in space.values if j not in wide_ranges]
    # Alternating search: steps in the discrete variables, ascents in the others.
    if stepwise and not space.nonlinear_inequality_constraints:
        ends = _alternating(
            cube, space, starts, stepwise, linear, max_iterations, max_turns
        )
    else:
        # SLSQP under nonlinear constraints is dear: discrete values stay as in each
        # start, and it moves the others.
        groups = _by_discrete_values(starts, stepwise)
        ends = torch.cat(
            [
                _ascent(cube, space, group, stepwise, linear, max_iterations)
                for group in groups
            ]
        )
    # The starts stay in: an ascent that was cut off may end below them.
    X = cube.to_box(torch.cat([ends, starts.squeeze(-2)]))
    # Rounding may leave the feasible set: what does is dropped, last of all.
    X = _rounded(space, X, wide_ranges)
    return X[feasible(space, X)]


def _alternating(
    cube: InUnitCube,
    space: SearchSpace,
    starts: Tensor,
    stepwise: list[int],
    linear: list[tuple[Tensor, Tensor, float]] | None,
    max_iterations: int,
    max_turns: int,
) -> Tensor:
    """From each start steps and an ascent in turn, ``k x 1 x d_x`` to ``k x d_x``.

    BoTorch's ``optimize_acqf_mixed_alternating`` does this from starts of its own.
    """
    ends = starts.squeeze(-2).clone()
    heights = score(cube, ends)  # k
    active = torch.arange(len(ends), device=ends.device)
    for _ in range(max_turns):
        before = heights[active]
        _step(cube, space, ends, heights, active)
        if len(stepwise) < space.d_x:
            _ascend(
                cube, space, ends, heights, active, stepwise, linear, max_iterations
            )
        active = active[heights[active] > before + _NO_GAIN]
        if not len(active):
            break
    return ends


def _step(
    cube: InUnitCube, space: SearchSpace, ends: Tensor, heights: Tensor, active: Tensor
) -> None:
    """Move some rows of ``k x d_x`` to their best neighbours, while that is higher."""
    for _ in range(_MOST_STEPS):
        around = []
        for X in cube.to_box(ends[active]):
            near = neighbours(X, space)
            around.append(cube.to_cube(near[feasible(space, near)]))
        if not any(map(len, around)):
            return
        values = score(cube, torch.cat(around)).split([len(U) for U in around])
        moved = []
        for i, U, found in zip(active.tolist(), around, values, strict=True):
            if len(found) and found.max() > heights[i] + _NO_GAIN:
                ends[i], heights[i] = U[found.argmax()], found.max()
                moved.append(i)
        active = active.new_tensor(moved)
        if not moved:
            return


def _ascend(
    cube: InUnitCube,
    space: SearchSpace,
    ends: Tensor,
    heights: Tensor,
    active: Tensor,
    stepwise: list[int],
    linear: list[tuple[Tensor, Tensor, float]] | None,
    max_iterations: int,
) -> None:
    """Climb from some rows of ``k x d_x``; their discrete values stay."""
    U = ends[active]
    one_by_one = {"max_optimization_problem_aggregation_size": 1}  # is SLSQP's way
    options = one_by_one if linear else LINE_SEARCH
    # Robust objectives have kinks, at which a line search may give up. Where it stopped
    # is an end all the same.
    found, _ = optimize_acqf(
        cube,
        bounds=cube.bounds,
        q=1,
        num_restarts=len(U),
        batch_initial_conditions=U.unsqueeze(-2),
        fixed_features={j: U[:, j] for j in stepwise},
        inequality_constraints=linear,
        return_best_only=False,
        retry_on_optimization_warning=False,
        options={"maxiter": min(max_iterations, _MOST_ITERATIONS), **options},
    )
    found = found.squeeze(-2)
    values = score(cube, found)
    higher = (values > heights[active]) & feasible(space, cube.to_box(found))
    ends[active[higher]], heights[active[higher]] = found[higher], values[higher]


class _Lifted(AcquisitionFunction):
    """A function of decisions, of their free columns ``b x q x f``."""

    def __init__(
        self, acqf: AcquisitionFunction, lifted: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__(acqf.model)
        self._acqf, self._lifted = acqf, lifted
        self._log = acqf._log

    def forward(self, F: Tensor) -> Tensor:
        return self._acqf(self._lifted(F))


def _ascent(
    cube: InUnitCube,
    space: SearchSpace,
    starts: Tensor,
    stepwise: list[int],
    linear: list[tuple[Tensor, Tensor, float]] | None,
    max_iterations: int,
) -> Tensor:
    """From starts with the same discrete values, ``k x 1 x d_x`` to ``k x d_x``."""
    # Nothing is continuous, so nothing can climb.
    if len(stepwise) == space.d_x:
        return starts.squeeze(-2)
    # Not by BoTorch's `fixed_features`: a nonlinear constraint then sees other columns
    # (0.18.1 puts the fixed values in twice).
    lower, upper = cube.bounds.clone()
    lower[stepwise] = upper[stepwise] = starts[0, 0, stepwise]
    ends = []
    with warnings.catch_warnings():
        # Where a line search gave up is a candidate, bisected if it is infeasible.
        warnings.simplefilter("ignore", OptimizationWarning)
        for start in starts:  # SLSQP takes nonlinear constraints from one at a time
            nonlinear = [
                (_from_start(g, cube, start), True)
                for g in space.nonlinear_inequality_constraints
            ]
            end, _ = gen_candidates_scipy(
                start.unsqueeze(0),
                cube,
                lower_bounds=lower,
                upper_bounds=upper,
                inequality_constraints=linear,
                nonlinear_inequality_constraints=nonlinear or None,
                options={"maxiter": max_iterations},
            )
            ends.append(end.reshape(1, -1))
    return _bisected(cube, space, starts.squeeze(-2), torch.cat(ends))


def _from_start(
    constraint: Callable[[Tensor], Tensor], cube: InUnitCube, start: Tensor
) -> Callable[[Tensor], Tensor]:
    """A constraint of one decision in the coordinates of the search, for BoTorch.

    It refuses a start that is allowed up to our tolerance only: such a start may miss
    what it misses.
    """
    missed = constraint(cube.to_box(start)).clamp_max(0.0)  # 1
    return lambda u: (constraint(cube.to_box(u).unsqueeze(0)) - missed).squeeze(0)


def _rounded(space: SearchSpace, X: Tensor, wide: list[int]) -> Tensor:
    """Decisions with values that they may have, ``n x d_x`` to ``m x d_x``.

    Of wide columns the whole numbers on both sides, for the nearest one may violate a
    constraint: in all combinations, or else all the lower and all the upper ones.
    """
    rows = [X]
    # Both sides of each column are 2^k combinations: of many columns all go down, or
    # all up.
    if len(wide) > _MAX_ROUNDED:
        rows += [X.floor(), X.ceil()]
        wide = []
    for j in wide:
        roundings = []
        for row in rows:
            roundings += [row.clone(), row.clone()]
            roundings[-2][:, j], roundings[-1][:, j] = (
                row[:, j].floor(),
                row[:, j].ceil(),
            )
        rows = roundings
    return space.snap(torch.cat(rows))


def _bisected(
    cube: InUnitCube, space: SearchSpace, starts: Tensor, ends: Tensor
) -> Tensor:
    """Feasible ends; of the others the last feasible point on the way, by bisection.

    Where a constraint has a kink an ascent often ends a little outside.
    """
    # Of a feasible end the interval is [1, 1]: it stays where it is.
    lower = feasible(space, cube.to_box(ends)).unsqueeze(-1).to(ends)  # k x 1
    upper = torch.ones_like(lower)
    # Invariant: the point at `lower` is feasible, that at `upper` is not known to be. A
    # nonconvex set may have gaps between them, so this is a boundary, not the last one.
    for _ in range(_HALVINGS):
        middle = 0.5 * (lower + upper)
        is_feasible = feasible(space, cube.to_box(starts + middle * (ends - starts)))
        lower = torch.where(is_feasible.unsqueeze(-1), middle, lower)
        upper = torch.where(is_feasible.unsqueeze(-1), upper, middle)
    return starts + lower * (ends - starts)


def _by_discrete_values(starts: Tensor, columns: list[int]) -> list[Tensor]:
    if not columns:
        return [starts]
    _, group = starts[:, 0, columns].unique(dim=0, return_inverse=True)
    return [starts[group == g] for g in range(int(group.max()) + 1)]


def _linear_in_cube(space: SearchSpace) -> list[tuple[Tensor, Tensor, float]]:
    """BoTorch's linear constraints, of decisions in the unit cube."""
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]
    return [
        (
            indices,
            coefficients * side[indices],
            rhs - float((coefficients * lower[indices]).sum()),
        )
        for indices, coefficients, rhs in space.inequality_constraints
    ]
