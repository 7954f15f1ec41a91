"""How much of a distribution lies beyond the contexts seen, and how far."""

from __future__ import annotations

from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.numbers import shown

_LEAST_SHARE = 0.05  # of the weight: less is not worth a line


def outside(contexts: Tensor, seen: Tensor, space: SearchSpace) -> Tensor:
    """Whether each entry of ``n x d_c`` contexts is outside ``t x d_c`` seen ones."""
    found = (contexts < seen.amin(0)) | (contexts > seen.amax(0))
    for j in space.context_categories:
        found[:, j] = ~(contexts[:, j, None] == seen[:, j]).any(-1)
    return found


def beyond_seen(contexts: ContextSet, seen: Tensor, space: SearchSpace) -> str:
    r"""The share of the weight beyond the contexts seen, and how far in each column.

    Args:
        contexts: The distribution.
        seen: The contexts that have an outcome, ``t x d_c``.
        space: The names and kinds of the columns.

    Returns:
        Words in the units of the columns; nothing if less than 5% lies beyond.
    """
    held = contexts.weights > 0.0
    points, weights = contexts.points[held], contexts.weights[held]
    beyond = outside(points, seen, space)
    share = weights[beyond.any(-1)].sum().item()
    if share < _LEAST_SHARE:
        return ""
    parts: list[tuple[str, float]] = []
    for j, name in enumerate(space.context_columns):
        if j in space.context_categories:
            part = weights[beyond[:, j]].sum().item()
            parts += [(f"a {name} never seen", part)] if part else []
            continue
        column, ends = points[:, j], (seen[:, j].amin(), seen[:, j].amax())
        if j in space.context_logarithms:
            column, ends = column.exp(), (ends[0].exp(), ends[1].exp())
        for gaps, end, word in (
            (ends[0] - column, ends[0], "below the lowest"),
            (column - ends[1], ends[1], "above the highest"),
        ):
            further = (gaps > 0.0) & beyond[:, j]
            if part := weights[further].sum().item():
                far, edge = shown(gaps[further].max().item()), shown(end.item())
                parts.append((f"{name} up to {far} {word}, {edge}", part))
    words = [
        text if len(parts) == 1 else f"{text} ({_percent(part)})"
        for text, part in parts
    ]
    return f"{_percent(share)} of its weight: {'; '.join(words)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else "under 1%"
