"""A set whose radius is to be chosen, or a function that makes one for contexts."""

from __future__ import annotations

from collections.abc import Callable

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.ambiguity.base import AmbiguitySet

SetOrMaker = AmbiguitySet | Callable[[Tensor], AmbiguitySet]
"""An ambiguity set; or, for one that knows where its contexts lie, a function that
makes it from contexts ``n x d_c``. Its own radius is ignored."""


def check_has_radius(ambiguity_set: AmbiguitySet) -> AmbiguitySet:
    """Return the set if there is a radius to choose."""
    if not isinstance(ambiguity_set, AmbiguitySet):
        raise InputDataError(
            "`ambiguity_set` must be an AmbiguitySet, or a function that makes one "
            f"from contexts, got {type(ambiguity_set).__name__}."
        )
    if not ambiguity_set.has_radius:
        raise InputDataError(
            f"{type(ambiguity_set).__name__} has no radius to choose. Give a set that "
            "has one, for example `ambiguity_set=TotalVariation(0.2)`."
        )
    return ambiguity_set


def bound_to_list(ambiguity_set: SetOrMaker) -> AmbiguitySet | None:
    """The set, if it knows the contexts of one list by a matrix; else None."""
    if isinstance(ambiguity_set, AmbiguitySet) and ambiguity_set.knows_positions:
        return ambiguity_set
    return None


def made_for(ambiguity_set: SetOrMaker, contexts: Tensor) -> AmbiguitySet:
    """The set itself, or what is made for contexts ``n x d_c``."""
    if not isinstance(ambiguity_set, AmbiguitySet) and callable(ambiguity_set):
        ambiguity_set = ambiguity_set(contexts)
    return check_has_radius(ambiguity_set)
