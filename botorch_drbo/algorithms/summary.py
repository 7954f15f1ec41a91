"""A recommendation in a few lines that a person can read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_DIGITS = 4  # significant
_NUM_CONTEXTS = 3


def named(values: Tensor, names: Sequence[str]) -> str:
    """One row of numbers with their names, ``d``."""
    pairs = zip(names, values.tolist(), strict=True)
    return ", ".join(f"{name} = {value:.{_DIGITS}g}" for name, value in pairs)


def said_of_feasibility(probability: float, reached: bool | None) -> str:
    """How surely the outcome constraints are met, in one line."""
    said = f"with probability {probability:.3f} in the worst case"
    return said if reached else f"{said}, TOO LITTLE: nothing better was found"


def hurting_contexts(
    points: Tensor, weights: Tensor, worst: Tensor, names: Sequence[str]
) -> list[str]:
    """The contexts that gain the most weight in the worst case, one line each.

    Args:
        points: ``n x d_c``.
        weights: Of the reference, ``n``.
        worst: Of the worst case, ``n``.
        names: Of the columns.
    """
    places, inverse = points.unique(dim=0, return_inverse=True)  # atoms may coincide
    nothing = torch.zeros(len(places)).to(weights)
    before = nothing.index_add(0, inverse, weights)
    after = nothing.index_add(0, inverse, worst)
    gain, order = (after - before).sort(descending=True, stable=True)
    hurting = order[gain > 1e-6][:_NUM_CONTEXTS]
    if not len(hurting):
        return ["none: the worst case is the reference"]
    return [
        f"{named(places[i], names)}: weight {after[i].item():.3f}, "
        f"{before[i].item():.3f} in the reference"
        for i in hurting.tolist()
    ]
