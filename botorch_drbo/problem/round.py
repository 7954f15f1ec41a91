"""One round: what is known about it, radii by column, what was observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import (
    check_finite,
    check_inside,
    check_nonnegative,
    did_you_mean,
    is_number,
    shown,
)
from botorch_drbo.codec.objects import storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import SearchSpace, check_values

ColumnRadii: TypeAlias = Mapping[str, float]
"""For names of context columns how far all mass may move in that column alone."""


def checked(radii: ColumnRadii, name: str = "radius") -> dict[str, float]:
    """A dictionary of plain numbers that are not negative."""
    if not radii:
        raise InputDataError(
            f"`{name}` is an empty dictionary. Name a column of the contexts, such as "
            "{'temp': 6}, or give one number."
        )
    found = {}
    for column, value in radii.items():
        if not isinstance(column, str):
            raise InputDataError(
                f"`{name}` must have names of context columns as keys, got {column!r}."
            )
        if not is_number(value):
            raise InputDataError(
                f"`{name}` of `{column}` must be a number, got "
                f"{type(value).__name__} {value!r}."
            )
        if not 0.0 <= float(value) < math.inf:
            raise InputDataError(
                f"`{name}` of `{column}` must be finite and not negative, got {value}."
            )
        found[column] = float(value)
    return found


def column_of(column: object, space: SearchSpace, name: str) -> int:
    columns = space.context_columns
    if column not in columns:
        raise InputDataError(
            f"{name} names `{column}`, which is not a context. The contexts are "
            f"{list(columns)}.{did_you_mean(str(column), columns)}"
        )
    return columns.index(str(column))


def in_widths(radii: ColumnRadii, space: SearchSpace, name: str = "radius") -> Tensor:
    """The radius of each column in widths of its bounds.

    Of a category it is the share of the mass that may change it; of a logarithmic
    variable, whose radius is a factor, the logarithm. A column that is not named has
    the radius zero.
    """
    widths = space.context_bounds[1] - space.context_bounds[0]
    found = torch.zeros_like(widths)
    for column, value in checked(radii, name).items():
        j = column_of(column, space, f"`{name}`")
        if j in space.context_categories:
            if value > 1.0:
                raise InputDataError(
                    f"`{name}` of `{column}` must be at most 1, got {value:g}: for a "
                    "category it is the share of cases in which it may change, 0.1 "
                    "for a tenth."
                )
            found[j] = value
        elif j in space.context_logarithms:
            if value < 1.0:
                raise InputDataError(
                    f"`{name}` of `{column}` must be at least 1, got {value:g}: for a "
                    "logarithmic variable it is a factor, 1.2 for a fifth more."
                )
            found[j] = math.log(value) / widths[j]
        else:
            found[j] = value / widths[j]
    return found


def in_words(widths: Sequence[float], space: SearchSpace) -> str:
    """How far the mass may move in each column alone, in the units of the contexts."""
    sides = (space.context_bounds[1] - space.context_bounds[0]).tolist()
    parts = []
    for j, column in enumerate(space.context_columns):
        if widths[j] == 0.0 or j in space.known_columns:
            continue
        if j in space.context_categories:
            share = 100.0 * min(widths[j], 1.0)
            parts.append(f"another {column} in {share:.3g}% of cases")
        elif j in space.context_logarithms:
            parts.append(f"a factor {math.exp(widths[j] * sides[j]):.3g} of {column}")
        else:
            parts.append(f"{shown(widths[j] * sides[j], 3)} of {column}")
    return " or ".join(parts) if parts else "0 of every column"


@dataclass(frozen=True)
class Held:
    """In how many trials outcome constraints held (few if a sign is wrong)."""

    # The number of trials with measured constraints.
    measured: int
    # The number of them in which all constraints held.
    together: int
    # The same for each constraint alone.
    each: tuple[int, ...]

    def words(self, rows: str = "{} trials told") -> str:
        """Say it as the report of a recommendation does."""
        text = f"held in {self.together} of {rows.format(self.measured)}"
        if len(self.each) == 1:
            return text
        return f"all {text}, one by one in {', '.join(map(str, self.each))}"


@dataclass(frozen=True, eq=False)
class ConstraintData:
    r"""Trials with measured outcome constraints.

    Attributes:
        X: Executed decisions, ``s x d_x``.
        C: The contexts of these trials, ``s x d_c``.
        G: The measured value of each constraint, ``s x k``; it holds where not
            negative.

    Raises:
        BotorchTensorDimensionError: The numbers of rows do not fit.
        InputDataError: Not floating point, NaN or infinite entries.
    """

    X: Tensor
    C: Tensor
    G: Tensor

    def __post_init__(self) -> None:
        """Check that the tensors belong together."""
        shapes = [tuple(getattr(self, name).shape) for name in ("X", "C", "G")]
        for name in ("X", "C", "G"):
            check_finite(getattr(self, name), name)
        if {len(shape) for shape in shapes} != {2} or len({s[0] for s in shapes}) > 1:
            raise BotorchTensorDimensionError(
                "`X`, `C` and `G` must be `s x d_x`, `s x d_c` and `s x k`, got shapes "
                f"{', '.join(map(str, shapes))}."
            )

    def held(self) -> Held:
        """The number of trials in which the constraints were met."""
        met = self.G >= 0
        return Held(len(met), int(met.all(-1).sum()), tuple(met.sum(0).tolist()))


@dataclass(frozen=True, eq=False)
class History:
    r"""What has been observed.

    Recipes receive outcomes to be maximised. ``RobustOptimizer.history`` has the user's
    sign.

    Attributes:
        X: Executed decisions that have an outcome, ``t x d_x``.
        C: The contexts of these trials, ``t x d_c``.
        Y: Their outcomes, ``t x 1``.
        contexts: Every observed context, the oldest first, also those without an
            outcome yet, ``s x d_c``. They describe the context distribution. Contexts
            that were chosen, as in a laboratory, are not included.
        Yvar: The variances of the noise in the outcomes, ``t x 1``; None if they are
            not known.
        constraints: Trials whose outcome constraints were measured, with an outcome or
            without one; None if there are no such constraints.
        baseline: The decisions that an improvement has to beat, ``m x d_x``; None for
            all of ``X``.
        failed: Decisions of trials that will never have an outcome, ``m x d_x``; None
            for none. They teach nothing, but are not proposed as long as there are
            others.

    Raises:
        BotorchTensorDimensionError: The numbers of rows or columns do not fit.
        InputDataError: Not floating point, NaN or infinite entries.

    Example:
        >>> import torch
        >>> from botorch_drbo.problem import History
        >>> X, C, Y = torch.rand(4, 2), torch.rand(4, 1), torch.rand(4, 1)
        >>> History(X=X, C=C, Y=Y, contexts=C).t
        4
    """

    X: Tensor
    C: Tensor
    Y: Tensor
    contexts: Tensor
    Yvar: Tensor | None = None
    constraints: ConstraintData | None = None
    baseline: Tensor | None = None
    failed: Tensor | None = None

    def __post_init__(self) -> None:
        """Check that the tensors belong together."""
        for name in ("X", "C", "Y", "contexts", "Yvar", "failed"):
            if name in ("Yvar", "failed") and getattr(self, name) is None:
                continue
            values = check_finite(getattr(self, name), name)
            if values.ndim != 2:
                raise BotorchTensorDimensionError(
                    f"`{name}` must be a matrix with one row per trial, got shape "
                    f"{tuple(values.shape)}."
                )
        t = self.X.shape[0]
        if self.C.shape[0] != t or self.Y.shape != (t, 1):
            raise BotorchTensorDimensionError(
                "`X`, `C` and `Y` must be `t x d_x`, `t x d_c` and `t x 1`, got shapes "
                f"{tuple(self.X.shape)}, {tuple(self.C.shape)}, {tuple(self.Y.shape)}."
            )
        if self.Yvar is not None and self.Yvar.shape != (t, 1):
            raise BotorchTensorDimensionError(
                f"`Yvar` must be `t x 1`, one variance for each of {t} outcomes, got "
                f"shape {tuple(self.Yvar.shape)}."
            )
        if self.contexts.shape[1] != self.C.shape[1]:
            raise BotorchTensorDimensionError(
                f"`contexts` must be `s x {self.C.shape[1]}`, got shape "
                f"{tuple(self.contexts.shape)}. Pass `contexts=C` if every context "
                "has its outcome, and the world chose it."
            )

    @property
    def t(self) -> int:
        """The number of outcomes."""
        return self.X.shape[0]


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
            contexts = contexts_within(contexts, space, "context_set")
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


def contexts_within(contexts: ContextSet, space: SearchSpace, name: str) -> ContextSet:
    """The same in the dtype and on the device of a space, which must hold it."""
    box = space.context_bounds
    if contexts.dim != space.d_c:
        raise BotorchTensorDimensionError(
            f"`{name}` has {contexts.dim} context columns, `context_bounds` has "
            f"{space.d_c}."
        )
    given = contexts.points.to(box.device)
    check_inside(given, box, name, "context_bounds")
    check_values(given, box, space.context_values, name)
    points = space.snap_contexts(given.to(box).clamp(*box))
    if given.dtype == box.dtype and torch.equal(points, given):
        return contexts
    return ContextSet(points, contexts.weights.to(box))


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
