"""The decision by the value of one context column, the others not known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.space import Variable

if TYPE_CHECKING:
    import pandas as pd

_NUM_VALUES = 5  # of a number
_MOST_COLUMNS = 4  # each value is a search


def policies(
    optimizer: NamedOptimizer,
    reference: ContextSet,
    *,
    context_set: ContextSet | None = None,
    radius: RoundRadius | None = None,
) -> dict[str, pd.DataFrame]:
    r"""Look up the decision for values of each context column alone.

    Args:
        optimizer: The run.
        reference: The contexts that are expected; of a number five values between the
            lowest and the highest of them are looked up.
        context_set: As for ``NamedOptimizer.policy``.
        radius: As for ``NamedOptimizer.policy``.

    Returns:
        By the name of the column, of at most the first four: a table of its values and
        the decisions.

    Raises:
        UnsupportedError: The recipe's decisions do not depend on the context.
    """
    found = {}
    named = optimizer.named_space.contexts
    for j, (name, variable) in enumerate(list(named.items())[:_MOST_COLUMNS]):
        values = looked_up(variable, reference.points[:, j])
        table = optimizer.policy({name: values}, context_set=context_set, radius=radius)
        found[name] = table[[name, *optimizer.named_space.decisions]]
    return found


def looked_up(variable: Variable, expected: torch.Tensor) -> list[object]:
    r"""Values of a context column that a table of decisions is made for.

    Args:
        variable: The column.
        expected: What is expected in it, as a model sees it, ``n``.

    Returns:
        All of a list of at most seven; else five numbers from the lowest expected one
        to the highest, rounded to three digits of their distance.

    Example:
        >>> from botorch_drbo import Category
        >>> looked_up(Category(["dry", "wet"]), torch.zeros(3))
        ['dry', 'wet']
        >>> from botorch_drbo.space import Continuous
        >>> looked_up(Continuous(0, 9), torch.tensor([1.0, 3.0]))
        [1.0, 1.5, 2.0, 2.5, 3.0]
    """
    listed = variable.values
    if listed is not None and len(listed) <= 7:
        return variable.decode(torch.tensor(list(listed), dtype=torch.double))
    low, high = expected.min().item(), expected.max().item()
    grid = torch.linspace(low, high, _NUM_VALUES, dtype=torch.double)
    if listed is not None:
        numbers = torch.tensor(list(listed), dtype=torch.double)
        nearest = (grid.unsqueeze(-1) - numbers).abs().argmin(-1)
        return variable.decode(numbers[nearest.unique()])
    exact = variable.decode(grid.unique())
    if variable.logarithmic or high <= low:
        return exact
    digits = 2 - math.floor(math.log10(high - low))
    return [min(max(round(v, digits), exact[0]), exact[-1]) for v in exact]
