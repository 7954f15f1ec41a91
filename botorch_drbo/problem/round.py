"""What is known about one round alone: its forecast, its radius, its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_inside, check_nonnegative
from botorch_drbo.codec.tags import storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.column_radii import ColumnRadii, checked, in_widths
from botorch_drbo.problem.search_space import SearchSpace, check_values

RoundRadius: TypeAlias = float | str | ColumnRadii
"""A number in the recipe's own units, the name of a rule, or a radius by column."""


@storable
@dataclass(frozen=True, eq=False)
class Round:
    r"""What is known about one round; None for the recipe's own value.

    Attributes:
        context_set: The reference distribution of this round, such as a forecast; it
            replaces the one that the recipe learns from the contexts seen.
        radius: The radius of the ambiguity set: a number in the units of the recipe's
            radius, a name such as ``"sd"``, or a radius by column.
        known_context: The context known before the decision, ``d_c``, with NaN in
            unknown columns.

    Raises:
        InputDataError: Not a context set; a radius that is not a number or negative; or
            a context that is not a floating point tensor, infinite, or unknown in all
            columns.
        BotorchTensorDimensionError: More than one context.

    Example:
        >>> import torch
        >>> from botorch_drbo.problem import Round
        >>> Round(known_context=torch.tensor([0.3, torch.nan])).known_context
        tensor([0.3000,    nan])
    """

    context_set: ContextSet | None = None
    radius: RoundRadius | None = None
    known_context: Tensor | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.context_set is not None and not isinstance(
            self.context_set, ContextSet
        ):
            raise InputDataError(
                "`context_set` must be a ContextSet or None, got "
                f"{type(self.context_set).__name__}. See ContextSet.from_distribution "
                "and ContextSet.empirical."
            )
        if isinstance(self.radius, Mapping):
            object.__setattr__(self, "radius", checked(self.radius))
        elif self.radius is not None and not isinstance(self.radius, str):
            radius = check_nonnegative(self.radius, "radius")
            if radius.numel() != 1:
                raise BotorchTensorDimensionError(
                    f"`radius` must be one number, got shape {tuple(radius.shape)}."
                )
            object.__setattr__(self, "radius", radius.item())  # a tensor is not stored
        if self.known_context is not None:
            object.__setattr__(self, "known_context", _one_context(self.known_context))

    def within(self, space: SearchSpace) -> Round:
        r"""Check that it fits a problem.

        Args:
            space: The boxes of decisions and contexts.

        Returns:
            The same in the dtype and on the device of the boxes.

        Raises:
            BotorchTensorDimensionError: Another number of context columns.
            InputDataError: A context outside the bounds.
        """
        box, contexts, known = space.context_bounds, self.context_set, None
        if isinstance(self.radius, Mapping):
            in_widths(self.radius, space)  # refuses what is no column of contexts
        if contexts is not None:
            if contexts.dim != space.d_c:
                raise BotorchTensorDimensionError(
                    f"`context_set` has {contexts.dim} context columns, "
                    f"`context_bounds` has {space.d_c}."
                )
            given = contexts.points.to(box.device)
            check_inside(given, box, "context_set", "context_bounds")
            check_values(given, box, space.context_values, "context_set")
            points = space.snap_contexts(given.to(box).clamp(*box))
            if given.dtype != box.dtype or not torch.equal(points, given):
                contexts = ContextSet(points, contexts.weights.to(box))
        if self.known_context is not None:
            if len(self.known_context) != space.d_c:
                raise BotorchTensorDimensionError(
                    f"`context` must have {space.d_c} columns, NaN where it is not "
                    f"known, got {len(self.known_context)}."
                )
            known = self.known_context.to(box.device)
            # What is not known is checked as an end of its side.
            filled = torch.where(known.isnan(), box[0].to(known), known).unsqueeze(0)
            check_inside(filled, box, "context", "context_bounds")
            check_values(filled, box, space.context_values, "context")
            snapped = space.snap_contexts(known.to(box).clamp(*box))
            known = torch.where(known.isnan(), known.to(box), snapped)
        return replace(self, context_set=contexts, known_context=known)


def _one_context(context: Tensor) -> Tensor:
    """A context that is known in some column, ``d_c``."""
    if not isinstance(context, Tensor) or not context.is_floating_point():
        got = context.dtype if isinstance(context, Tensor) else type(context).__name__
        raise InputDataError(
            f"`context` must be a floating point tensor, NaN where it is not known, "
            f"got {got}."
        )
    if context.ndim == 2 and len(context) == 1:
        context = context.squeeze(0)
    if context.ndim != 1:
        raise BotorchTensorDimensionError(
            "`context` must be one context, a `d_c`- or `1 x d_c`-dim tensor, got "
            f"shape {tuple(context.shape)}. For a decision for each of many contexts "
            "there is `policy`."
        )
    if context.isinf().any():
        raise InputDataError(
            f"`context` has infinite entries: {context.tolist()}. Use NaN for what is "
            "not known."
        )
    if context.isnan().all():
        raise InputDataError(
            "`context` is NaN in every column: nothing is known. Leave it out."
        )
    return context.detach().clone()
