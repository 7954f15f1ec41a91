"""The worst case of a recommendation: over a box of contexts, not over a list."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.algorithms.data import SearchSpace, Values, snapped
from botorch_drbo.ambiguity import AmbiguitySet, RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol

Score = Callable[[Tensor], Tensor]
"""From contexts ``m x d_c`` to scores ``m``; it can be differentiated."""
Between = Callable[[Tensor, Tensor], Tensor]
"""A metric or kernel: contexts ``... a x d_c`` and ``... b x d_c`` to ``... a x b``."""

_MAX_CORNER_DIMENSIONS = 6
_MAX_LISTED = 4096  # combinations of values that are all looked at
_MAX_COMBINED = 64  # the same, each with a sample of the other columns
_MAX_ROUNDS = 8
_NUM_STARTS = 32  # contexts that descend; at least one for each reduced cost
_NUM_STEPS = 12  # of a descent; the last ones are far below the spacing of the sample
_GAIN = 3e-5  # of the range of the scores: what gains less is not worth a round
_CELL = 1e-5  # of the sides of the box: contexts this near are the same


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    r"""The ball by which a recommendation is judged, and how far its adversary reaches.

    Attributes:
        contexts: The reference distribution, and perhaps contexts of weight zero.
        ball: The set on a list of contexts, ``n x d_c``.
        between: The metric or kernel that the set is made of; None if of none.
        box: The contexts that the adversary may use, ``2 x d_c``; None for those of
            ``contexts`` alone.
        fills_box: Whether ``contexts`` fill the box, so that no sample is needed.
        values: Columns of contexts that take these values only: integers, categories.
        categories: Those of them that know no order.
    """

    contexts: ContextSet
    ball: Callable[[Tensor], AmbiguitySet]
    between: Between | None = None
    box: Tensor | None = None
    fills_box: bool = False
    values: Values = field(default_factory=dict)
    categories: Collection[int] = ()

    @classmethod
    def of(
        cls,
        contexts: ContextSet,
        ambiguity: AmbiguitySet,
        space: SearchSpace,
        *,
        contexts_complete: bool = False,
    ) -> Judge:
        r"""Let the adversary use what the definition of the set lets it use.

        Args:
            contexts: The reference distribution.
            ambiguity: The set around it.
            space: The contexts that there are. Where each column takes some values
                only, these are on the list, for every set that may give them mass.
            contexts_complete: Whether no context is off the list, whatever the set.
        """
        ball = ambiguity.original()
        listed = space.listed_contexts
        box = None
        if listed is not None:
            if not (ball.keeps_support or ball.knows_positions):
                contexts = with_unlisted(contexts, listed)
        elif ball.reaches_unseen and not contexts_complete:
            box = space.context_reach
        return cls(
            contexts=contexts,
            ball=lambda points: ball,
            box=box,
            values=space.context_values,
            categories=tuple(space.context_categories),
        )

    def searched(self, space: SearchSpace) -> str:
        """Over which distributions a worst case is searched, in words."""
        ball = self.ball(self.contexts.points)
        if ball.keeps_support and not ball.has_radius:
            return "the posterior mean under the reference alone"
        name = type(ball).__name__
        within = f"the distributions of {name}"
        if ball.has_radius:
            within = f"distributions within radius {ball.radius.item():.3g} ({name})"
        if self.box is None:
            where = "on the listed contexts"
        elif not torch.equal(self.box, space.context_reach):
            where = "on any context of a part of the box"
        elif space.known_columns:
            where = "on any context with the known values"
        else:
            where = "on any context"
        return f"the posterior mean under {within} {where}"

    def on_its_list(self) -> tuple[ContextSet, AmbiguitySet]:
        """The contexts, and the set on these alone."""
        return self.contexts, self.ball(self.contexts.points)

    def on_a_full_list(self, seed: int) -> tuple[ContextSet, AmbiguitySet]:
        """The contexts and those that fill the box, and the set on all of these.

        Args:
            seed: Decides the Sobol set.
        """
        contexts = with_unlisted(self.contexts, listed(self, seed))
        return contexts, self.ball(contexts.points)


def with_unlisted(contexts: ContextSet, others: Tensor) -> ContextSet:
    """Add those of other contexts, ``m x d_c``, that are missing, with weight zero."""
    points, weights = contexts.points, contexts.weights
    missing = (torch.cdist(others, points, p=torch.inf) > 0).all(-1)
    if not missing.any():
        return contexts
    points = torch.cat([points, others[missing]])
    return ContextSet(points, pad(weights, (0, len(points) - len(weights))))


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


def listed(judge: Judge, seed: int) -> Tensor:
    """The contexts of a judge, and those that fill its box beside them, ``m x d_c``.

    Args:
        judge: The ball, and where its adversary may go.
        seed: Decides the Sobol set.
    """
    given = judge.contexts.points
    if judge.box is None or judge.fills_box:
        return given
    return torch.cat([given, filling(judge.box, judge.values, seed)])


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


def filling(box: Tensor, values: Values, seed: int) -> Tensor:
    """Contexts that fill a box, ``m x d_c``.

    Sobol points and corners of the columns in between whose values there is something,
    with each combination of the values of the others. Where these are too many, the
    column with the most values takes the nearest ones of the Sobol points, then the
    next one.
    """
    d_c = box.shape[-1]
    listed = dict(values)
    while prod(map(len, listed.values())) > (
        _MAX_LISTED if len(listed) == d_c else _MAX_COMBINED
    ):
        del listed[max(listed, key=lambda j: len(listed[j]))]
    free = [j for j in range(d_c) if j not in listed]
    unit = sobol(64 * 2 ** min(len(free), 3), len(free), seed) if free else None
    if unit is None:
        unit = torch.empty(1, 0)
    elif len(free) <= _MAX_CORNER_DIMENSIONS:
        corners = torch.tensor(list(product((0.0, 1.0), repeat=len(free))))
        unit = torch.cat([unit, corners.to(unit)])
    points = torch.lerp(box[0, free], box[1, free], unit.to(box))  # m x f
    combinations = box.new_tensor(list(product(*listed.values())))  # l x v
    filled = box.new_empty(len(combinations), len(points), d_c)
    filled[..., free] = points
    filled[..., list(listed)] = combinations.unsqueeze(1)
    return snapped(filled.flatten(0, 1), values)
