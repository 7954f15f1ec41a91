"""How far a multiple of a recipe's radius reaches, in the units of the contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.column_radii import in_words
from botorch_drbo.recommendation.stability import Stability

if TYPE_CHECKING:
    import pandas as pd


def reach(
    optimizer: NamedOptimizer, stability: Stability[pd.DataFrame], times: float
) -> str | None:
    r"""How far the contexts move, on average, at a multiple of the radius.

    Args:
        optimizer: The run.
        stability: Of its recommendation, which knows the radius.
        times: The multiple.

    Returns:
        For example "6 of temp or another weather in 10% of cases"; None where
        the radius is in no units of the contexts, or given by column.
    """
    adversary = optimizer.algorithm.adversary
    if stability.by_column or not isinstance(adversary, WassersteinBall):
        return None
    space = optimizer.space
    return in_words(space.d_c * [times * stability.radius], space)
