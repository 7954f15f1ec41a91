r"""Adversaries: the expected contexts, and how their distribution may change.

An adversary turns what was observed into the two problems of a round: the one whose
worst case the search maximises over a list of contexts, and the one whose worst case a
recommendation reports, over the whole box where the set reaches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_inside, check_options
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.codec.tags import storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.contexts.forgetting import half_life_weights
from botorch_drbo.posterior.models import some_inputs
from botorch_drbo.problem.column_radii import in_widths
from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace, check_values
from botorch_drbo.schedules import Constant
from botorch_drbo.schedules.base import ContextRule
from botorch_drbo.schedules.radius import Radius, as_radius
from botorch_drbo.schedules.spread import deviations


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRound:
    r"""The fitted model of a round and its data, as adversaries and policies need them.

    Attributes:
        model: The fitted model, of ``[x, c]``, or of ``x`` for a policy that looks at
            decisions alone.
        history: What has been observed, to be maximised.
        space: The boxes of decisions and contexts.
        seed: Determines all random draws.
        reference: The context distribution if it is known; None to estimate it.
        half_life: The number of further contexts after which the weight of a context is
            halved; None for equal weights.
        columns: Where the model has each column of ``[x, c]``; None for in this order.
    """

    model: Model
    history: History
    space: SearchSpace
    seed: int
    reference: ContextSet | None = None
    half_life: float | None = None
    columns: tuple[int, ...] | None = None

    @classmethod
    def of_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        context_indices: Sequence[int] | None = None,
        seed: int = 0,
    ) -> FittedRound:
        r"""The round of a model and contexts seen, without a run around them.

        Args:
            model: A model of decision and context.
            contexts: The contexts seen, the oldest first, ``t x d_c``.
            context_bounds: Their box, ``2 x d_c``.
            context_indices: The columns of the contexts; by default the last ``d_c``.
            seed: Determines all random draws.

        Raises:
            InputDataError: No context, one outside the box, or bounds reversed.
            BotorchTensorDimensionError: Another number of columns.
        """
        box = check_bounds(context_bounds, "context_bounds")
        seen = check_inside(contexts, box, "contexts", "context_bounds").to(box)
        inputs, d_c = some_inputs(model), box.shape[-1]
        d = 1 + d_c if inputs is None else inputs.shape[-1]
        last = [j % d for j in context_indices or range(d - d_c, d)]
        order = [*(j for j in range(d) if j not in last), *last]
        Z = box.new_zeros(1, d) if inputs is None else inputs.reshape(-1, d).to(box)
        lower, upper = Z[:, order[: d - d_c]].aminmax(dim=0)
        bounds = torch.stack([lower, torch.where(upper > lower, upper, lower + 1.0)])
        none = bounds[:0]  # decisions and outcomes have no part in the contexts
        return cls(
            model=model,
            history=History(X=none, C=seen[:0], Y=none[:, :1], contexts=seen.detach()),
            space=SearchSpace(bounds, box),
            seed=seed,
            columns=None if context_indices is None else tuple(order),
        )

    def contexts(self) -> ContextSet:
        r"""The given reference distribution, or else the empirical one.

        Raises:
            InputDataError: There is neither, or it lies outside the box.
            BotorchTensorDimensionError: A reference of other contexts.
        """
        return reference_contexts(
            self.history.contexts, self.space, self.reference, self.half_life
        )

    def column_radii(self, radius: Radius) -> Tensor | None:
        r"""The radius of each column in widths of its bounds, if it is one by column.

        Args:
            radius: By name of the columns, ``"sd"``, or anything else.

        Returns:
            ``d_c``, zero where no mass moves; None for a radius that is one number.

        Raises:
            InputDataError: A radius that depends on the contexts before any was
                observed, or a column that is not a context.
        """
        if isinstance(radius, Mapping):
            return in_widths(radius, self.space)
        if not isinstance(radius, str) or radius != "sd":
            return None
        space = self.space
        sizes = [space.context_categories.get(j, 1) for j in range(space.d_c)]
        return deviations(*self._seen("sd"), sizes).clamp_max(1.0)

    def radius(self, rule: Radius) -> float:
        r"""The value of a radius schedule at the (effective) number of contexts.

        Args:
            rule: A number, a rule that depends on the contexts or their number, or the
                name of a rule. With a radius by column, the ball has radius one, or
                zero if no column may move.

        Raises:
            InputDataError: A rule before any context was observed.
        """
        found = as_radius(rule)
        columns = self.column_radii(rule)
        if columns is not None:
            known = self.space.known_columns
            return float(any(r > 0 for j, r in enumerate(columns) if j not in known))
        if isinstance(found, Constant):  # also where the world has shown nothing yet
            return found.value
        return found.of(*self._seen(found))

    def _seen(self, rule: ContextRule | str) -> tuple[Tensor, Tensor | None]:
        """The contexts seen in units of their box, and their weights if they differ."""
        if len(self.history.contexts) == 0:
            raise InputDataError(
                "The world has shown no context yet, so a radius that follows from "
                f"them, {rule}, has no value. Give `radius` a number, or one for each "
                "column."
            )
        seen = self.space.embed_contexts(self.history.contexts)
        if self.half_life is None:
            return seen, None
        return seen, half_life_weights(len(seen), self.half_life, seen)


def reference_contexts(
    seen: Tensor,
    space: SearchSpace,
    reference: ContextSet | None,
    half_life: float | None,
) -> ContextSet:
    r"""The given reference distribution, or else the empirical one; without a model.

    Args:
        seen: The contexts that the world has shown, ``m x d_c``.
        space: The boxes of decisions and contexts.
        reference: The context distribution if it is known; None to estimate it.
        half_life: The number of further contexts after which the weight of a context is
            halved; None for equal weights.

    Raises:
        InputDataError: There is neither, or it lies outside the box.
        BotorchTensorDimensionError: A reference of other contexts.
    """
    if reference is None:
        if len(seen) == 0:
            raise InputDataError(
                "The world has shown no context yet (those that were chosen in a "
                "laboratory do not count), so there is no distribution to learn. "
                "Give the algorithm a `reference`, or the round a `context_set`."
            )
        return ContextSet.empirical(seen, half_life)
    if reference.dim != space.d_c:
        raise BotorchTensorDimensionError(
            f"`reference` has {reference.dim} context columns, "
            f"`context_bounds` has {space.d_c}."
        )
    points = reference.points.to(space.bounds)
    check_inside(points, space.context_bounds, "reference", "context_bounds")
    points = space.with_known(points)
    check_values(points, space.context_bounds, space.context_values, "reference")
    return ContextSet(points, reference.weights.to(space.bounds))


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchProblem:
    r"""The worst case that a search maximises: a set around a list of contexts.

    Attributes:
        contexts: The reference distribution on a list of contexts.
        ambiguity_set: The set around it.
        outside: Further contexts, ``m x d_c``, of which only the lowest score counts;
            None for none.
    """

    contexts: ContextSet
    ambiguity_set: AmbiguitySet
    outside: Tensor | None = None

    def listed(self) -> ContextSet:
        """All contexts of the list, those without reference weight included."""
        if self.outside is None:
            return self.contexts
        inside = self.contexts
        return ContextSet(
            torch.cat([inside.points, self.outside]),
            torch.cat([inside.weights, torch.zeros_like(self.outside[:, 0])]),
        )


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Adversary(ABC):
    r"""A reference distribution and an ambiguity set, computed in each round.

    Its dataclass fields are options of every recipe that uses it.
    """

    context_order: ClassVar[str | None] = None
    """What needs contexts that are numbers, in words; None if categories will do."""
    approximates: ClassVar[bool] = False
    """Whether the search sees something else than the worst case that is promised."""
    believes_reference: ClassVar[bool] = False
    """Whether its set holds the reference distribution alone."""
    uses_model_kernel: ClassVar[bool] = False
    """Whether its distance is made of the kernel of the model."""
    radius_unit: ClassVar[str] = "the distance of its set"
    """What a radius is measured in, in words."""

    def __post_init__(self) -> None:
        """Check the options by their declarations."""
        check_options(self)

    @property
    def unit(self) -> str:
        """The unit of the radius, in words."""
        radius = getattr(self, "radius", None)
        if isinstance(radius, Mapping) or radius == "sd":
            return "multiples of the radius by column"
        return self.radius_unit

    @property
    def fixed_radius(self) -> float | None:
        """The radius if it is a fixed number, else None."""
        rule = getattr(self, "radius", None)
        rule = None if rule is None else as_radius(rule)
        return rule.value if isinstance(rule, Constant) else None

    def diameter(self, space: SearchSpace) -> float | None:
        r"""The largest distance between two distributions of the context.

        Args:
            space: The decisions and the contexts.

        Returns:
            The distance in the unit of the radius; None if there is no radius or the
            distance is unknown.
        """
        return None

    def check_space(self, space: SearchSpace) -> None:
        r"""Raise if a radius by column names a column that does not exist.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: An unknown column, or a radius that is not possible for it.
        """
        radius = getattr(self, "radius", None)
        if isinstance(radius, Mapping):
            in_widths(radius, space)

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The reference on a list of contexts and the set around it, for the search.

        Args:
            state: The round.

        Returns:
            The problem; by default that of the recommendation, on its list.
        """
        contexts, ball = self.worst_case_problem(state).on_its_list()
        return SearchProblem(contexts=contexts, ambiguity_set=ball)

    @abstractmethod
    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distributions over which a recommendation's worst case is a minimum.

        Args:
            state: The round.

        Returns:
            The reference distribution, the set around it, and the contexts to which
            mass may move.
        """

    def worst_case_problem_of(
        self, ambiguity_set: AmbiguitySet, state: FittedRound
    ) -> WorstCaseProblem:
        r"""The same for another ambiguity set.

        Args:
            ambiguity_set: The set, around the contexts seen or the reference.
            state: The round.

        Returns:
            The reference distribution, the set around it, and the contexts to which
            mass may move.
        """
        return WorstCaseProblem.of(state.contexts(), ambiguity_set, state.space)

    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distributions under which constraints must hold.

        Args:
            state: The round.

        Returns:
            By default ``worst_case_problem``: the same adversary for outcome and
            constraints.
        """
        return self.worst_case_problem(state)
