"""Which columns matter: the outcome along one of them, the others fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_level
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import (
    joint_moments,
    posterior_of_expectation,
    posterior_of_sums,
)
from botorch_drbo.problem.feasible import feasible, sample, settled
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.promise import LEVEL

_NUM_DRAWS = 1024
_NUM_JOINT = 256  # of them, of which the joint posterior is taken


@final
@dataclass(frozen=True, eq=False)
class Importance:
    """By how much the expected outcome differs if one column alone changes."""

    # By the mean of each model of an ensemble, ``S x d``, decisions first, in the units
    # of the outcome; of a single model ``S`` is one.
    members: Tensor
    # With what the models do not know, ``d``: the root of the expected square of the
    # true difference. A mean alone is too smooth.
    possible: Tensor

    @property
    def mean(self) -> Tensor:
        """The mean over the models, ``d``."""
        return self.members.mean(0)


def importance(
    model: Model, space: SearchSpace, contexts: ContextSet, *, seed: int = 0
) -> Importance:
    r"""The typical difference that each column makes to a model's mean.

    .. math:: D_j = \sqrt{E\big[ (\mu(z) - \mu(z_{j \to z'_j}))^2 \big]}, \qquad
        P_j = \sqrt{E\big[ (f(z) - f(z_{j \to z'_j}))^2 \big]}

    with ``z = [x, c]``: a decision that may be taken, all equally likely, and a
    context of the distribution; ``z'_j`` is column ``j`` of another such draw. (Half of
    the square is the total-effect index of Sobol and Jansen, not divided by the
    variance.) ``f`` is drawn from the posterior. 1024 draws, 256 of them for ``P``.
    """
    first = _draws(space, contexts, seed)
    second = first[_shuffled(len(first), seed + 1)]
    changed = first.repeat(first.shape[-1], 1, 1)  # d x n x d
    for j in range(first.shape[-1]):
        changed[j, :, j] = second[:, j]
        if j < space.d_x:  # beside a sum that has to be right others move too
            changed[j, :, : space.d_x] = settled(space, changed[j, :, : space.d_x], [j])
    found = []
    for member in members_of(model):
        with torch.no_grad():
            mean, _ = joint_moments(member, first)
            moved, _ = joint_moments(member, changed.flatten(0, 1))
        gaps = moved.unflatten(0, (-1, len(first))) - mean
        found.append(gaps.square().mean(-1).sqrt())
    squares = [
        torch.stack([_squared_gap(member, first, rows) for rows in changed])
        for member in members_of(model)
    ]
    return Importance(torch.stack(found), torch.stack(squares).mean(0).sqrt())


def _squared_gap(model: Model, first: Tensor, changed: Tensor) -> Tensor:
    """The expected square of the true differences of ``n x d`` rows."""
    n = _NUM_JOINT
    one = torch.eye(n).to(first)
    Z = torch.cat([first[:n], changed[:n]])
    gaps = posterior_of_sums(model, Z, torch.cat([-one, one], dim=-1))
    return (gaps.means.square() + gaps.deviations.square()).mean()


def _draws(space: SearchSpace, contexts: ContextSet, seed: int) -> Tensor:
    """Decisions that may be taken beside contexts of the distribution, ``n x d``."""
    X = sample(space, _NUM_DRAWS, seed)
    steps = (torch.arange(_NUM_DRAWS).to(X) + 0.5) / _NUM_DRAWS
    weights = contexts.weights.to(X)
    places = torch.searchsorted(weights.cumsum(-1), steps * weights.sum())
    C = contexts.points[places.clamp_max(contexts.num_points - 1)].to(X)
    return torch.cat([X, C[_shuffled(_NUM_DRAWS, seed)]], dim=-1)


def _shuffled(num: int, seed: int) -> Tensor:
    return torch.randperm(num, generator=torch.Generator().manual_seed(seed))


_NUM_VALUES = 25  # of a number; all of a category


@final
@dataclass(frozen=True, eq=False)
class Slice:
    """What is believed of the expected outcome along one decision variable."""

    # Which variable, by its column number.
    column: int
    # Its values as the model sees them, ``k``, ascending.
    values: Tensor
    # The expected outcome at each, ``k``.
    mean: Tensor
    # The lower end of its interval, ``k``.
    lower: Tensor
    # The upper end, ``k``.
    upper: Tensor
    # Whether the constraints of the decisions allow it, ``k``.
    allowed: Tensor
    # Which of the values is that of the decision itself.
    index: int
    # Of the intervals.
    level: float

    def mirrored(self) -> Slice:
        """The same of minus the outcome."""
        return Slice(
            self.column,
            self.values,
            -self.mean,
            -self.upper,
            -self.lower,
            self.allowed,
            self.index,
            self.level,
        )


def slice_through(
    model: Model,
    space: SearchSpace,
    x: Tensor,
    contexts: ContextSet,
    column: int,
    *,
    widening: float = 1.0,
    level: float = LEVEL,
) -> Slice:
    r"""Move one variable of a decision through its values, and leave the others.

    Where a sum has to be right (a mixture) the others move too, as little as they can.

    At each value ``v`` what is believed of
    :math:`\sum_i w_i f(x_{j \to v}, c_i)`, as of the expected value of a
    recommendation: see ``Promise``. At the decision's own value it is the same.
    """
    rest = 0.5 * (1.0 - check_level(level))
    values = _values(space, column, x)
    moved = x.repeat(len(values), 1)
    moved[:, column] = values
    own = values == x[column]
    moved = torch.where(own.unsqueeze(-1), x, settled(space, moved, [column]))
    beliefs = [
        posterior_of_expectation(model, row, contexts.points, contexts.weights).widened(
            widening
        )
        for row in moved
    ]
    ends = (torch.stack([b.quantile(p) for b in beliefs]) for p in (rest, 1.0 - rest))
    lower, upper = ends
    return Slice(
        column=column,
        values=values,
        mean=torch.stack([belief.mean for belief in beliefs]),
        lower=lower,
        upper=upper,
        allowed=feasible(space, moved),
        index=int(own.nonzero()[0]),
        level=level,
    )


def _values(space: SearchSpace, column: int, x: Tensor) -> Tensor:
    """The values of a variable, ascending, with that of the decision, ``k``."""
    own = x[column : column + 1]
    if column in space.categories:
        return torch.arange(space.categories[column]).to(x)
    listed = space.discrete.get(column)
    if listed is not None:
        steps = torch.linspace(0, len(listed) - 1, min(_NUM_VALUES, len(listed)))
        indices = steps.round().long().tolist()
        grid = torch.tensor([float(listed[i]) for i in indices]).to(x)
    else:
        lower, upper = space.bounds[:, column].tolist()
        grid = torch.linspace(lower, upper, _NUM_VALUES).to(x)
        grid[0], grid[-1] = space.bounds[:, column]
    return torch.cat([grid, own]).unique()
