"""How far a radius reaches, in the units of the contexts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.column_radii import in_widths, in_words
from botorch_drbo.problem.round import RoundRadius


def movement(
    optimizer: NamedOptimizer, radius: RoundRadius | None
) -> Callable[[float], str] | None:
    r"""How far the contexts move, on average, within a radius.

    Args:
        optimizer: The run.
        radius: What was asked for; None for the recipe's own.

    Returns:
        From a radius, which by column is a multiple of the one asked for, to words:
        "6 of temp or another weather in 10% of cases". None if the radius is in no
        units of the contexts.
    """
    space = optimizer.named_space.search_space
    own = getattr(optimizer.algorithm, "adversary", None)
    given = getattr(own, "radius", None) if radius is None else radius
    if isinstance(given, Mapping):
        widths = in_widths(given, space)
    elif given == "sd":
        return lambda size: f"{size:.3g} standard deviations"
    elif isinstance(own, WassersteinBall):
        widths = torch.ones(space.d_c, dtype=torch.double)
    else:
        return None
    return lambda size: in_words((size * widths).tolist(), space) if size else "nothing"
