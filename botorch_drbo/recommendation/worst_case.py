"""The worst case of a recommendation: over a box of contexts, not over a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.adversaries.base import (
    Between,
    WorstCaseProblem,
)
from botorch_drbo.ambiguity import AmbiguitySet, RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.view import View
from botorch_drbo.problem.search_space import snapped

Score = Callable[[Tensor], Tensor]
"""From contexts ``m x d_c`` to scores ``m``; it can be differentiated."""
_MAX_ROUNDS = 8
_NUM_STARTS = 32  # contexts that descend; at least one for each reduced cost
_NUM_STEPS = 12  # of a descent; the last ones are far below the spacing of the sample
_GAIN = 3e-5  # of the range of the scores: what gains less is not worth a round
_CELL = 1e-5  # of the sides of the box: contexts this near are the same


def worst_case(
    problem: WorstCaseProblem,
    score: Score,
    *,
    seed: int,
    full: tuple[ContextSet, AmbiguitySet] | None = None,
) -> tuple[ContextSet, RobustValue]:
    """Find the worst distribution that the adversary of a problem can make.

    Over a box this is column generation [DantzigWolfe1960]_. The restricted master
    problem is the worst case on a list: the given contexts, a Sobol set and the
    corners (these two unless the contexts fill the box).
    Of columns that take some values only, all combinations are on the list unless there
    are too many. A descent leaves categories as they are, and what it ends at takes the
    nearest values.

    The pricing problem: another context lowers the value only if its reduced cost, its
    score and what the set charges for mass there (see ``Prices``), is less than on the
    list. So contexts descend on that cost from where it is least, those that gain are
    added as columns, and the worst case is found again, until none gains.

    Shapes: ``score``: ``m x d_c``, ``full``: ``problem.on_a_full_list(seed)`` if it is
    known already.
    """
    given, reference = problem.contexts.points, problem.contexts.weights
    with torch.no_grad():
        # A finite list is one solve of the set.
        if problem.box is None:
            robust = problem.ball(given).worst_case(score(given), reference)
            return problem.contexts, robust
        # Column generation (Dantzig and Wolfe): a distribution on the box is a convex
        # program with a variable for each context. It is solved on a list, and contexts
        # join the list that would lower it.
        contexts, ball = full or problem.on_a_full_list(seed)
        sample = points = contexts.points
        sampled = values = score(sample)
        least_gain = _GAIN * (values.max() - values.min())
        previous = torch.inf
        for _ in range(_MAX_ROUNDS):
            # Restricted master problem: the worst case on the list, and its prices.
            weights = pad(reference, (0, len(points) - len(given)))
            robust = ball.worst_case(values, weights)
            # Columns without mass leave the list: the minimum stays the same.
            # The reference atoms stay whatever their weight: the set is defined around
            # them.
            basic = robust.weights != 0
            basic[: len(given)] = True
            found = replace(robust, weights=robust.weights[basic])
            result = ContextSet(points[basic], weights[basic]), found
            # A round that hardly lowered the value is the last one.
            if previous - robust.value < least_gain:
                break
            # Of a minimisation: each round is an upper bound of the infimum.
            previous = robust.value
            # Reduced cost of a context: its score plus what the dual prices charge for
            # moving mass to it. Below the least on the list it lowers the worst case.
            prices = ball.prices(robust, weights)
            cost = _ReducedCost(
                prices.coefficients, points[prices.anchors], problem.between
            )
            costs = cost(sample, sampled)  # K x m
            of_list = costs if points is sample else cost(points, values)
            target = of_list.amin(-1, keepdim=True) - least_gain
            # Pricing problem: contexts of lower reduced cost than any on the list.
            new = _improving_columns(
                target, cost, score, problem, problem.box, sample, costs
            )
            if not len(new):
                break
            points = torch.cat([points[basic], new])
            values = torch.cat([values[basic], score(new)])
            ball = problem.ball(points)
    return result


@dataclass(frozen=True)
class _ReducedCost:
    """Scores and prices together, with the anchors as contexts, ``K x a x d_c``."""

    coefficients: Tensor  # K x a
    anchors: Tensor
    between: Between | None

    def __call__(self, contexts: Tensor, scores: Tensor) -> Tensor:
        """``K x s`` costs of contexts ``s x d_c``, or ``K x s x d_c`` of each row."""
        if self.between is None or not self.anchors.numel():
            return scores.expand(len(self.coefficients), -1)
        if contexts.ndim == 2:  # the same for all: one matrix, not one for each row
            flat = self.between(self.anchors.flatten(0, 1), contexts)
            matrix = flat.unflatten(0, self.anchors.shape[:2])  # K x a x s
        else:
            matrix = self.between(self.anchors, contexts)
        return scores + (self.coefficients.unsqueeze(-1) * matrix).sum(-2)


def _improving_columns(
    target: Tensor,
    cost: _ReducedCost,
    score: Score,
    problem: WorstCaseProblem,
    box: Tensor,
    sample: Tensor,
    costs: Tensor,
) -> Tensor:
    """Contexts of a reduced cost below the target (``K x 1``), ``k x d_c``.

    Shapes: ``costs``: of the sample, ``K x m``.
    """
    lower, side = box[0], box[1] - box[0]
    # For a Wasserstein ball there is a reduced cost for each atom of the reference,
    # since mass moves from it; for other sets there is one.
    num_starts = max(1, _NUM_STARTS // len(costs))
    is_continuous = torch.ones_like(side)
    # Multiplying slopes by zero holds a column fixed.
    is_continuous[[*problem.categories, *problem.fixed]] = 0.0  # no slope, or no way
    starts = costs.topk(
        min(num_starts, costs.shape[-1]), largest=False
    ).indices  # K x s

    def evaluate(unit: Tensor) -> tuple[Tensor, Tensor]:
        """Costs ``K x s`` and their slopes ``K x s x d_c``."""
        with torch.enable_grad():
            unit = unit.detach().requires_grad_()
            contexts = lower + side * unit
            scores = score(contexts.flatten(0, 1)).reshape(unit.shape[:-1])
            costs = cost(contexts, scores)
            (slopes,) = torch.autograd.grad(costs.sum(), unit)
        return costs.detach(), slopes * is_continuous

    # A side of no width is a known context: every number maps to its single value.
    width = torch.where(side > 0, side, 1.0)  # a reference without spread has none
    unit = ((sample[starts] - lower) / width).clamp(0.0, 1.0)
    # The usual distance of neighbours in the sample: the first step of a descent.
    spacing = len(sample) ** (-1.0 / len(side))
    if is_continuous.any():
        unit, costs = _descend(evaluate, unit, spacing)
    else:
        costs = costs.gather(-1, starts)
    # Best first, so that of contexts in one cell the best one is kept.
    gain, order = (target - costs).flatten().sort(descending=True, stable=True)
    unit = unit.flatten(0, 1)[order[gain > 0]]
    return snapped(
        (lower + side * _distinct(unit)).clamp(lower, box[1]), problem.values
    )


def _descend(
    evaluate: Callable[[Tensor], tuple[Tensor, Tensor]],
    unit: Tensor,
    first_length: float,
) -> tuple[Tensor, Tensor]:
    """Projected gradient descent in the unit cube, with adaptive step lengths.

    A step of given length along the normalised slope is accepted if it lowers the cost,
    and the length grows by half; else it is rejected, and the length shrinks to 0.3.
    """
    costs, slopes = evaluate(unit)
    length = torch.full_like(unit[..., :1], first_length)
    for _ in range(_NUM_STEPS):
        # Active bounds: no step along columns that would leave the cube.
        at_bound = ((unit <= 0) & (slopes > 0)) | ((unit >= 1) & (slopes < 0))
        slopes = slopes.masked_fill(at_bound, 0.0)
        norm = torch.linalg.vector_norm(slopes, dim=-1, keepdim=True)
        # A step has a length of its own, whatever the size of the slope: scores have
        # any unit.
        step = length * slopes / torch.where(norm > 0, norm, 1.0)
        trial = (unit - step).clamp(0.0, 1.0)
        trial_costs, trial_slopes = evaluate(trial)
        # Trust region of each start: longer after success, much shorter after failure.
        accepted = trial_costs < costs
        costs = torch.where(accepted, trial_costs, costs)
        accepted = accepted.unsqueeze(-1)
        unit = torch.where(accepted, trial, unit)
        slopes = torch.where(accepted, trial_slopes, slopes)
        length = torch.where(accepted, 1.5, 0.3) * length
    return unit, costs


def _distinct(unit: Tensor) -> Tensor:
    """The first context of each cell, in order."""
    cells = (unit / _CELL).round()
    _, cell = cells.unique(dim=0, return_inverse=True)
    first = cell.new_full((len(unit),), len(unit))
    # The lowest row number of each cell, without a loop.
    first = first.scatter_reduce(0, cell, torch.arange(len(unit)).to(cell), "amin")
    return unit[first[first < len(unit)].sort().values]


def mean_at(model: Model, x: Tensor) -> Score:
    """The mean at one decision ``d_x``: contexts ``n x d_c`` to ``n``."""
    view = _view(model, x)
    return lambda contexts: view.at(contexts).means().flatten(1).mean(-1)


class WorstAt(NamedTuple):
    """The mean at a decision, and its worst case over the box of a problem."""

    mean: Score
    contexts: ContextSet
    robust: RobustValue

    @classmethod
    def of(
        cls,
        problem: WorstCaseProblem,
        model: Model,
        x: Tensor,
        *,
        seed: int,
        full: tuple[ContextSet, AmbiguitySet] | None = None,
    ) -> WorstAt:
        """Of a model, at a decision ``d_x``."""
        mean = mean_at(model, x)
        return cls(mean, *worst_case(problem, mean, seed=seed, full=full))

    @property
    def distribution(self) -> ContextSet:
        """The worst one."""
        return ContextSet(self.contexts.points, self.robust.weights.clamp_min(0.0))


def moments_at(model: Model, x: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Mean and variance at one decision ``d_x``: ``n x d_c`` to ``n`` each.

    Of an ensemble those of the mixture, as of ``joint_moments``.
    """
    view = _view(model, x)

    def moments(contexts: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = (part.flatten(1) for part in view.at(contexts).moments())
        middle = mean.mean(-1, keepdim=True)
        return middle.squeeze(-1), (variance + (mean - middle).square()).mean(-1)

    return moments


def _view(model: Model, x: Tensor) -> View:
    """With the roles exchanged: the decision stays, and contexts are varied."""
    return marginal_posterior(model, range(len(x))).over(x.detach().unsqueeze(0))


class WorldValue(NamedTuple):
    """A distribution that was named, and what is expected there."""

    # What people call it.
    name: str
    # The expectation of the recommended decision.
    expected: float
    # What it lacks there to the best decision; None if that was not looked for.
    regret: float | None


def worlds_of(
    problem: WorstCaseProblem, mean: Score, best: Tensor | None
) -> tuple[WorldValue, ...]:
    """What is expected in each distribution of a family, the worst first; or nothing.

    Shapes: ``best``: ``K``, the best expectation in each.
    """
    if problem.family is None:
        return ()
    with torch.no_grad():
        expected = problem.family.expectations(mean(problem.contexts.points))
    lacks = [None] * len(expected) if best is None else (best - expected).tolist()
    found = map(WorldValue, problem.worlds, expected.tolist(), lacks)
    worst_by = (
        (lambda w: w.expected) if best is None else (lambda w: -(w.regret or 0.0))
    )
    return tuple(sorted(found, key=worst_by))
