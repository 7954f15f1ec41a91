"""The boxes of decisions and contexts, as recipes see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import (
    check_bounds,
    coarser_eps,
    rounding,
)
from botorch_drbo.problem.equalities import Equalities

Values = Mapping[int, Sequence[float]]
"""Columns that take these values only, in increasing order: a tuple, or a ``range`` of
whole numbers, which may be too many to be listed."""
Categories = Mapping[int, int]
"""Columns that are categories ``0, ..., k - 1``, which know no order, and their k."""
Features = Mapping[int, Tensor]
"""Numbers that describe the levels of columns that are categories, ``k x p`` each."""

_MAX_LISTED = 4096  # combinations of values that are all looked at


@dataclass(frozen=True, eq=False)
class SearchSpace:
    r"""The search space: boxes of decisions and contexts, discrete values, constraints.

    All values are in model coordinates: a logarithmic variable is its logarithm, a
    category its index. ``botorch_drbo.Space`` builds one from named variables in the
    user's units.

    Attributes:
        bounds: Lower and upper bounds of the decision, ``2 x d_x``.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``.
        known_context: The known part of this round's context, ``d_c``, with NaN in
            unknown columns; None if nothing is known.
        discrete: Decision columns that are integers or ordinals, and their values in
            increasing order, from the lower bound to the upper one; for whole numbers a
            ``range``.
        categories: Decision columns that are categories, with their number of values
            ``k``; their bounds are 0 and ``k - 1``.
        context_discrete: The same of the contexts.
        context_categories: The same of the contexts.
        inequality_constraints: Linear constraints of decisions in BoTorch's form,
            ``(indices, coefficients, rhs)`` for a weighted sum of at least ``rhs``.
        nonlinear_inequality_constraints: Functions of decisions ``n x d_x`` to ``n``,
            feasible where they are not negative.
        equalities: Weighted sums of decisions that have to be right; None for none.
        perturbation: Whether the context perturbs the decision: the outcome, and the
            model, depend only on the sum ``x + c``.
        context_names: The user's names of the context columns; empty for none.
        context_logarithms: Context columns that are logarithms of the user's values.
        context_levels: The user's names of the levels of context columns that are
            categories, in their order; empty for their indices.
        features: Numbers that describe the levels of decision columns that are
            categories, ``k x p``, in units in which two levels are as far apart as
            their one-hot vectors; see ``Category``.
        context_features: The same of the contexts.

    Raises:
        BotorchTensorDimensionError: A tensor is not ``2 x d``.
        InputDataError: Bounds that are not finite floating point numbers, are
            reversed, or differ in dtype or device; a column that does not exist, is
            discrete and a category, or whose values do not reach from bound to bound.

    Example:
        >>> import torch
        >>> from botorch_drbo.problem import SearchSpace
        >>> unit = torch.tensor([[0.0], [1.0]])
        >>> SearchSpace(bounds=unit, context_bounds=unit).d_x
        1
    """

    bounds: Tensor
    context_bounds: Tensor
    known_context: Tensor | None = None
    discrete: Values = field(default_factory=dict)
    categories: Categories = field(default_factory=dict)
    context_discrete: Values = field(default_factory=dict)
    context_categories: Categories = field(default_factory=dict)
    inequality_constraints: tuple[tuple[Tensor, Tensor, float], ...] = ()
    nonlinear_inequality_constraints: tuple[Callable[[Tensor], Tensor], ...] = ()
    equalities: Equalities | None = None
    perturbation: bool = False
    context_names: tuple[str, ...] = ()
    context_logarithms: tuple[int, ...] = ()
    context_levels: Mapping[int, Sequence[object]] = field(default_factory=dict)
    features: Features = field(default_factory=dict)
    context_features: Features = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the bounds and the kinds of the columns."""
        check_bounds(self.bounds, "bounds")
        check_bounds(self.context_bounds, "context_bounds")
        if (self.bounds.dtype, self.bounds.device) != (
            self.context_bounds.dtype,
            self.context_bounds.device,
        ):
            raise InputDataError(
                "`bounds` and `context_bounds` must have one dtype and one device, got "
                f"{self.bounds.dtype} on {self.bounds.device} and "
                f"{self.context_bounds.dtype} on {self.context_bounds.device}. Convert "
                "one of them with `.to(...)`."
            )
        _check_kinds(self.bounds, self.discrete, self.categories, "bounds")
        _check_kinds(
            self.context_bounds,
            self.context_discrete,
            self.context_categories,
            "context_bounds",
        )
        if self.perturbation:
            self._check_perturbation()

    @property
    def d_x(self) -> int:
        """The number of decision variables."""
        return self.bounds.shape[-1]

    @property
    def d_c(self) -> int:
        """The number of context variables."""
        return self.context_bounds.shape[-1]

    @property
    def context_columns(self) -> tuple[str, ...]:
        """The names of the context columns, ``c1, c2, ...`` if they have none."""
        return self.context_names or tuple(f"c{j + 1}" for j in range(self.d_c))

    @property
    def context_support(self) -> Tensor:
        """The bounds of the contexts of this round; a point where they are known."""
        return self.with_known(self.context_bounds)

    @property
    def known_columns(self) -> list[int]:
        """The context columns that are known in this round."""
        if self.known_context is None:
            return []
        return (~self.known_context.isnan()).nonzero().flatten().tolist()

    def with_known(self, contexts: Tensor) -> Tensor:
        """Contexts ``... x d_c``, with what is known in its columns."""
        known = self.known_context
        if known is None:
            return contexts
        return torch.where(known.isnan(), contexts, known)

    @property
    def context_diameter(self) -> float:
        """The largest of ``context_distances``: one for each column that may vary."""
        return float(self.d_c - len(self.known_columns)) ** 0.5

    @property
    def joint_bounds(self) -> Tensor:
        """Bounds of ``[x, c]``, ``2 x (d_x + d_c)``."""
        return torch.cat([self.bounds, self.context_bounds], dim=-1)

    def model_inputs(self, X: Tensor, C: Tensor) -> Tensor:
        """The inputs of the model, ``t x d``: ``[x, c]``, or ``x + c``."""
        return X + C if self.perturbation else torch.cat([X, C], dim=-1)

    @property
    def model_bounds(self) -> Tensor:
        """The bounds of ``model_inputs``, ``2 x d``."""
        return self.model_inputs(self.bounds, self.context_bounds)

    def _check_perturbation(self) -> None:
        if self.d_x != self.d_c:
            raise BotorchTensorDimensionError(
                "`perturbation=True` adds the context to the decision: there must be "
                f"as many contexts as decisions, got {self.d_c} and {self.d_x}. A "
                "decision that is executed exactly has a context of almost no width."
            )
        if self.values or self.context_values:
            raise InputDataError(
                "`perturbation=True` adds the context to the decision: both must be "
                "numbers of an interval, and no integers, ordinals or categories."
            )

    @property
    def values(self) -> Values:
        """The values of discrete decision columns, categories included."""
        return _all_values(self.discrete, self.categories)

    @property
    def context_values(self) -> Values:
        """The values of discrete context columns, categories included.

        The possible values in this round; a single one if it is known.
        """
        values = _all_values(self.context_discrete, self.context_categories)
        support = self.context_support
        fixed = {j: (support[0, j].item(),) for j in self.known_columns if j in values}
        return {**values, **fixed}

    @property
    def listed_contexts(self) -> Tensor | None:
        """All possible contexts of this round, ``n x d_c``, if they are few.

        This holds if each unknown column is discrete and there are at most 4,096
        combinations.
        """
        known = {j: (self.context_support[0, j].item(),) for j in self.known_columns}
        columns = {**self.context_values, **known}
        count = prod(len(values) for values in columns.values())
        if len(columns) < self.d_c or count > _MAX_LISTED:
            return None
        ordered = [columns[j] for j in range(self.d_c)]
        return self.context_bounds.new_tensor(list(product(*ordered)))

    @property
    def joint_categories(self) -> Categories:
        """The categories among the model's inputs ``[x, c]``."""
        moved = {self.d_x + j: k for j, k in self.context_categories.items()}
        return {**self.categories, **moved}

    @property
    def joint_features(self) -> Features:
        """The features of the categories among the model's inputs ``[x, c]``."""
        moved = {self.d_x + j: table for j, table in self.context_features.items()}
        return {**self.features, **moved}

    @property
    def constrained(self) -> bool:
        """Whether decisions have constraints."""
        return self.equalities is not None or bool(
            self.inequality_constraints or self.nonlinear_inequality_constraints
        )

    @property
    def is_box(self) -> bool:
        """Whether every decision within the bounds is allowed."""
        return not self.values and not self.constrained

    def snap(self, X: Tensor) -> Tensor:
        """Decisions ``... x d_x``, rounded to the nearest allowed values."""
        return snapped(X, self.values)

    def snap_contexts(self, C: Tensor) -> Tensor:
        """Contexts ``... x d_c``, rounded to the nearest allowed values."""
        return snapped(C, self.context_values)

    def gaps(self, first: Tensor, second: Tensor) -> Tensor:
        """Differences of decisions in sides of the box; of two categories one."""
        gaps = (first - second) / (self.bounds[1] - self.bounds[0])  # ... x d_x
        for j in self.categories:
            gaps[..., j] = (gaps[..., j] != 0).to(gaps)
        return gaps

    def context_distances(self, first: Tensor, second: Tensor) -> Tensor:
        r"""Distances in units of the context box; two different categories are one.

        Args:
            first: Contexts, ``... a x d_c``.
            second: Contexts, ``... b x d_c``.

        Returns:
            ``... a x b``: what the Wasserstein balls of the recipes are made of.
        """
        a, b = self.embed_contexts(first), self.embed_contexts(second)
        # The matrix-product form of cdist would leave rounding errors on the diagonal.
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")

    def embed_contexts(self, C: Tensor) -> Tensor:
        r"""Contexts in units of their box, as points whose distances matter.

        A category is a corner of a simplex: two different ones are one apart, whatever
        their indices.

        Args:
            C: Contexts, ``... x d_c``.

        Returns:
            ``... x e`` with one column for a number and ``k`` for a category.
        """
        lower, upper = self.context_bounds
        unit = (C - lower) / (upper - lower)
        if not self.context_categories:
            return unit
        columns = []
        for j in range(self.d_c):
            if k := self.context_categories.get(j):
                corner = torch.nn.functional.one_hot(C[..., j].round().long(), k)
                columns.append(corner.to(unit) * 0.5**0.5)
            else:
                columns.append(unit[..., j : j + 1])
        return torch.cat(columns, dim=-1)


def snapped(points: Tensor, values: Values) -> Tensor:
    """Points ``... x d`` with the nearest of a column's values in each such column."""
    if not values:
        return points
    columns = list(points.unbind(-1))
    for j, allowed in values.items():
        if isinstance(allowed, range):  # of two equally near ones the lower, as below
            nearest = (columns[j].detach() - 0.5).ceil().clamp(allowed[0], allowed[-1])
            columns[j] = nearest + 0.0  # a zero without a sign
            continue
        choices = torch.tensor(allowed, dtype=points.dtype, device=points.device)
        middles = (choices[1:] + choices[:-1]) / 2
        columns[j] = choices[torch.bucketize(columns[j].detach().contiguous(), middles)]
    return torch.stack(columns, dim=-1)


def check_values(points: Tensor, bounds: Tensor, values: Values, name: str) -> None:
    """Refuse points, ``n x d``, that have another value where only some are allowed."""
    slack = rounding(bounds, coarser_eps(points, bounds))
    gaps = (points - snapped(points, values)).abs() > slack
    if gaps.any():
        row, j = gaps.nonzero()[0].tolist()
        allowed = values[j]
        listed = allowed if len(allowed) < 9 else allowed[:6]
        dots = [] if len(allowed) < 9 else ["..."]
        shown = ", ".join([*(f"{v:g}" for v in listed), *dots])
        raise InputDataError(
            f"`{name}` has {points[row, j].item():g} in row {row}, column {j}, which "
            f"takes the values {shown} only. Correct it."
        )


def _all_values(discrete: Values, categories: Categories) -> Values:
    return {**discrete, **{j: range(k) for j, k in categories.items()}}


def _check_kinds(
    bounds: Tensor, discrete: Values, categories: Categories, name: str
) -> None:
    both = sorted(set(discrete) & set(categories))
    if both:
        raise InputDataError(
            f"The columns {both} of `{name}` are discrete and categories: a column "
            "is one of them."
        )
    for j, allowed in _all_values(discrete, categories).items():
        if not 0 <= j < bounds.shape[-1]:
            raise InputDataError(
                f"There is no column {j}: `{name}` has {bounds.shape[-1]} of them, "
                "counted from 0."
            )
        ends = bounds.new_tensor([allowed[0], allowed[-1]])
        if isinstance(allowed, range):
            rising = allowed.step == 1
        else:
            rising = all(a < b for a, b in pairwise(allowed))
        if not rising or not torch.equal(ends, bounds[:, j]):
            raise InputDataError(
                f"The values of column {j} must increase from its lower bound to its "
                f"upper one, {bounds[:, j].tolist()}, got {list(allowed[:6])}."
            )
