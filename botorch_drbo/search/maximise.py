"""Maximise an acquisition function over the decisions, from several starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.problem.feasible import sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol
from botorch_drbo.search.candidates import score
from botorch_drbo.search.mixed_search import LINE_SEARCH, MOST_TURNS, climb
from botorch_drbo.search.starts import InUnitCube, hills, hilltops

_LAST_ENDS, _LAST_STARTS = 4, 2  # that a rough function found, and begun from
_SAME_END = 1e-3  # in sides of the box: nearer ends are of one hill
_FEW_STARTS, _FEW_ITERATIONS, _FEW_TURNS = 4, 8, 2  # of ascents within a plate
_BESIDE = 0.05  # half of a neighbourhood, in sides of the box


@dataclass(frozen=True)
class Effort:
    """How hard a maximum is looked for."""

    # Starting points, at most: one on each hill.
    num_restarts: int
    # Points among which the hills are looked for.
    raw_samples: int
    # L-BFGS-B iterations per ascent.
    max_iterations: int
    # Decides the points.
    seed: int

    def __post_init__(self) -> None:
        """Check the counts."""
        for name in ("num_restarts", "raw_samples", "max_iterations"):
            check_count(getattr(self, name), name)
        if self.raw_samples < self.num_restarts:
            raise InputDataError(
                f"`raw_samples` ({self.raw_samples}) must be at least `num_restarts` "
                f"({self.num_restarts}): the restarts are picked from them."
            )


def maximise(
    acqf: AcquisitionFunction,
    space: SearchSpace,
    effort: Effort,
    start: Tensor | None = None,
    rough: AcquisitionFunction | None = None,
    near: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maximise from several starts, those that are ``near`` if there are any.

    The ascent sees the box of decisions as the unit cube and the function in units of
    the model's prior, so that what it finds does not depend on the units of anything.

    Shapes: ``acqf``: ``b x 1 x d_x``, ``start``: ``1 x 1 x d_x``, ``near``: ``m x
    d_x``, returns ``r x d_x``.
    """
    # Optimisers have absolute tolerances: they see the unit cube and values of order
    # one.
    cube = InUnitCube(acqf, space.bounds)
    cheapest = acqf if rough is None else rough
    if isinstance(cheapest, DecisionAcquisitionFunction):
        rough = cheapest.on_few() or rough
    if rough is None:
        starts = (
            _starts(cube, space, effort)
            if near is None
            else cube.to_cube(near.unsqueeze(-2))
        )
        if start is not None:
            starts = torch.cat([starts, cube.to_cube(start)])
    else:
        # Two stages: many starts climb the cheap function, and only the ends that the
        # true one ranks highest are climbed again, beside the best ones known.
        found, values = maximise(rough, space, effort, start, near=near)
        different = _different(cube.to_cube(found), values)[:_LAST_ENDS]
        known = [rows.flatten(0, -2) for rows in (start, near) if rows is not None]
        found = torch.cat([found[different], *known])
        best = score(acqf, found).topk(min(_LAST_STARTS, len(found))).indices
        starts = cube.to_cube(found[best]).unsqueeze(-2)
    return _climbed(cube, space, starts, effort.max_iterations)


def _different(unit: Tensor, values: Tensor) -> Tensor:
    """The places of ends ``m x d_x``, best first, none of them near a better one."""
    chosen: list[int] = []
    for row in values.argsort(descending=True).tolist():
        gaps = (unit[chosen] - unit[row]).abs().amax(-1)
        if not bool((gaps < _SAME_END).any()):
            chosen.append(row)
    return torch.tensor(chosen, device=unit.device)


def with_neighbours(known: Tensor, space: SearchSpace, seed: int) -> Tensor:
    """Maxima of a similar function, ``m x d_x``, to climb again, and one beside each.

    At a kink an ascent may stay where it is. Steps between discrete values do not, and
    under constraints not all neighbours are feasible: these have none.
    """
    if not space.is_box:
        return known
    lower, upper = space.bounds
    unit = sobol(len(known), space.d_x, seed).to(known)
    beside = known + _BESIDE * (2.0 * unit - 1.0) * (upper - lower)
    return torch.cat([known, beside.clamp(lower, upper)])


def climbed_from(
    acqf: AcquisitionFunction, space: SearchSpace, rows: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """The ends of a few short ascents from the hilltops of ``n x d_x``, and values."""
    cube = InUnitCube(acqf, space.bounds)
    unit = cube.to_cube(rows)
    starts = unit[hills(unit, values, _FEW_STARTS)].unsqueeze(-2)
    return _climbed(cube, space, starts, _FEW_ITERATIONS, _FEW_TURNS)


def _climbed(
    cube: InUnitCube,
    space: SearchSpace,
    starts: Tensor,
    max_iterations: int,
    max_turns: int = MOST_TURNS,
) -> tuple[Tensor, Tensor]:
    """The ends of ascents from ``r x 1 x d_x`` in the cube, and their values."""
    acqf = cube.acqf
    # Discrete columns and constraints have a search of their own.
    if not space.is_box:
        maxima = climb(
            cube, space, starts, max_iterations=max_iterations, max_turns=max_turns
        )
        return maxima, score(acqf, maxima)
    candidates, _ = optimize_acqf(
        cube,
        bounds=cube.bounds,
        q=1,
        num_restarts=len(starts),
        batch_initial_conditions=starts,
        return_best_only=False,
        # One decision at a time: batches are built greedily, with pending decisions.
        # Robust objectives have kinks, at which a line search may give up. Where it
        # stopped is a candidate all the same: no reason to start all over.
        retry_on_optimization_warning=False,
        options={"maxiter": max_iterations, **LINE_SEARCH},
    )
    # The values are computed anew: those of the optimiser are in the units of the cube.
    maxima = cube.to_box(candidates).squeeze(-2)
    return maxima, score(acqf, maxima)


def _starts(cube: InUnitCube, space: SearchSpace, effort: Effort) -> Tensor:
    """Hilltops of a sample of the space, ``r x 1 x d_x``, in the unit cube."""
    # A Sobol set covers the cube more evenly than draws: fewer hills are missed.
    if space.is_box:
        unit = sobol(effort.raw_samples, space.d_x, effort.seed).to(space.bounds)
    else:
        unit = cube.to_cube(sample(space, effort.raw_samples, effort.seed))
    ranking = cast(AcquisitionFunction, cube.ranking)  # it is called, no more
    return hilltops(ranking, unit, effort.num_restarts)
