"""The expected outcome along one decision variable, the others fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.expectation import posterior_of_expectation
from botorch_drbo.posterior.mixture import check_level
from botorch_drbo.problem.feasible import feasible, settled
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.promise import LEVEL

_NUM_VALUES = 25  # of a number; all of a category


@final
@dataclass(frozen=True, eq=False)
class Slice:
    r"""What is believed of the expected outcome along one decision variable.

    Attributes:
        column: Which variable, by its column number.
        values: Its values as the model sees them, ``k``, ascending.
        mean: The expected outcome at each, ``k``.
        lower: The lower end of its interval, ``k``.
        upper: The upper end, ``k``.
        allowed: Whether the constraints of the decisions allow it, ``k``.
        index: Which of the values is that of the decision itself.
        level: Of the intervals.
    """

    column: int
    values: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor
    allowed: Tensor
    index: int
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

    Args:
        model: Of ``[x, c]``, fitted.
        space: The decisions, their kinds and constraints.
        x: The decision, ``d_x``.
        contexts: Those that the outcome is averaged over.
        column: Which variable.
        widening: By what intervals are stretched: see ``ModelCheck``.
        level: Of the intervals, a probability.

    Returns:
        The slice: all values of a category or of a short list, else 25 that fill the
        bounds evenly, and the decision's own.

    Raises:
        InputDataError: A level that is not between 0 and 1.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(6, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True)).eval()
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> space = SearchSpace(unit, unit)
        >>> found = slice_through(model, space, Z[0, :1], ContextSet(Z[:, 1:]), 0)
        >>> found.mean.shape, found.values[found.index].item() == Z[0, 0].item()
        (torch.Size([26]), True)
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
