"""The worst case of a recommendation: over a box of contexts, not over a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.adversaries.judge import Between, Judge, listed
from botorch_drbo.ambiguity import RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import snapped

Score = Callable[[Tensor], Tensor]
"""From contexts ``m x d_c`` to scores ``m``; it can be differentiated."""
_MAX_ROUNDS = 8
_NUM_STARTS = 32  # contexts that descend; at least one for each reduced cost
_NUM_STEPS = 12  # of a descent; the last ones are far below the spacing of the sample
_GAIN = 3e-5  # of the range of the scores: what gains less is not worth a round
_CELL = 1e-5  # of the sides of the box: contexts this near are the same


def worst_case(
    judge: Judge, score: Score, *, seed: int
) -> tuple[ContextSet, RobustValue]:
    r"""Find the worst distribution that the adversary of a judge can make.

    Over a box this is column generation. The worst case is found on the contexts of
    the judge, a Sobol set and the corners (these two unless the contexts fill the box).
    Of columns that take some values only, all combinations are on the list unless there
    are too many. A descent leaves categories as they are, and what it ends at takes the
    nearest values.

    Another context lowers it only if its reduced cost, its score and what the set
    charges for mass there (see ``Prices``), is less than on the list. So contexts
    descend on that cost from where it is least, those that gain are added, and the
    worst case is found again, until none gains.

    Args:
        judge: The ball, and where its adversary may go.
        score: From contexts ``m x d_c`` to scores ``m``.
        seed: Decides the Sobol set.

    Returns:
        The contexts of the judge and those beside them that have mass in the worst
        case (with reference weight zero), and the worst case of the ball on them.
    """
    given, reference = judge.contexts.points, judge.contexts.weights
    with torch.no_grad():
        if judge.box is None:
            robust = judge.ball(given).worst_case(score(given), reference)
            return judge.contexts, robust
        sample = listed(judge, seed)
        sampled = score(sample)
        points, values = sample, sampled
        least_gain = _GAIN * (values.max() - values.min())
        last = torch.inf
        for _ in range(_MAX_ROUNDS):
            weights = pad(reference, (0, len(points) - len(given)))
            ball = judge.ball(points)
            robust = ball.worst_case(values, weights)
            prices = ball.prices(robust, weights)
            cost = _ReducedCost(
                prices.coefficients, points[prices.anchors], judge.between
            )
            target = cost(points, values).amin(-1, keepdim=True) - least_gain
            # Without the contexts that have no mass the minimum is the same.
            kept = robust.weights != 0
            kept[: len(given)] = True
            points, weights, values = points[kept], weights[kept], values[kept]
            robust = replace(robust, weights=robust.weights[kept])
            found = ContextSet(points, weights), robust
            if last - robust.value < least_gain:
                break
            last = robust.value
            new = _below(target, cost, score, judge, judge.box, sample, sampled)
            if not len(new):
                break
            points = torch.cat([points, new])
            values = torch.cat([values, score(new)])
    return found


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
        matrix = self.between(self.anchors, contexts)  # K x a x s
        return scores + (self.coefficients.unsqueeze(-1) * matrix).sum(-2)


def _below(
    target: Tensor,
    cost: _ReducedCost,
    score: Score,
    judge: Judge,
    box: Tensor,
    sample: Tensor,
    sampled: Tensor,
) -> Tensor:
    """Contexts whose cost is below the target of a row (``K x 1``), ``k x d_c``."""
    lower, side = box[0], box[1] - box[0]
    costs = cost(sample, sampled)  # K x m
    num = max(1, _NUM_STARTS // len(costs))
    moves = torch.ones_like(side)
    moves[list(judge.categories)] = 0.0  # there is nothing between two of them
    starts = costs.topk(min(num, costs.shape[-1]), largest=False).indices  # K x s

    def evaluate(unit: Tensor) -> tuple[Tensor, Tensor]:
        """Costs ``K x s`` and their slopes ``K x s x d_c``."""
        with torch.enable_grad():
            unit = unit.detach().requires_grad_()
            contexts = lower + side * unit
            scores = score(contexts.flatten(0, 1)).reshape(unit.shape[:-1])
            costs = cost(contexts, scores)
            (slopes,) = torch.autograd.grad(costs.sum(), unit)
        return costs.detach(), slopes * moves

    width = torch.where(side > 0, side, 1.0)  # a reference without spread has none
    unit = ((sample[starts] - lower) / width).clamp(0.0, 1.0)
    spacing = len(sample) ** (-1.0 / len(side))
    if moves.any():
        unit, costs = _descend(evaluate, unit, spacing)
    else:
        costs = costs.gather(-1, starts)
    gain, order = (target - costs).flatten().sort(descending=True, stable=True)
    unit = unit.flatten(0, 1)[order[gain > 0]]
    return snapped((lower + side * _apart(unit)).clamp(lower, box[1]), judge.values)


def _descend(
    evaluate: Callable[[Tensor], tuple[Tensor, Tensor]], unit: Tensor, reach: float
) -> tuple[Tensor, Tensor]:
    """Go downhill in the unit cube, each context by steps of its own length."""
    costs, slopes = evaluate(unit)
    length = torch.full_like(unit[..., :1], reach)
    for _ in range(_NUM_STEPS):
        blocked = ((unit <= 0) & (slopes > 0)) | ((unit >= 1) & (slopes < 0))
        slopes = slopes.masked_fill(blocked, 0.0)
        norm = torch.linalg.vector_norm(slopes, dim=-1, keepdim=True)
        step = length * slopes / torch.where(norm > 0, norm, 1.0)
        tried = (unit - step).clamp(0.0, 1.0)
        found, inclines = evaluate(tried)
        lower = found < costs
        costs = torch.where(lower, found, costs)
        lower = lower.unsqueeze(-1)
        unit = torch.where(lower, tried, unit)
        slopes = torch.where(lower, inclines, slopes)
        length = torch.where(lower, 1.5, 0.3) * length
    return unit, costs


def _apart(unit: Tensor) -> Tensor:
    """The first context of each cell, in order."""
    cells = (unit / _CELL).round()
    _, cell = cells.unique(dim=0, return_inverse=True)
    first = cell.new_full((len(unit),), len(unit))
    first = first.scatter_reduce(0, cell, torch.arange(len(unit)).to(cell), "amin")
    return unit[first[first < len(unit)].sort().values]
