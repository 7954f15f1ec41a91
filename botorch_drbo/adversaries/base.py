"""Adversaries: the expected contexts, and how their distribution may change.

An adversary turns what was observed into the two problems of a round: the one whose
worst case the search maximises over a list of contexts, and the one whose worst case a
recommendation reports, over the whole box where the set reaches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import ClassVar

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo._validation import check_bounds, check_inside, check_options
from botorch_drbo.ambiguity import AmbiguitySet, FiniteFamily
from botorch_drbo.codec.objects import storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.contexts.sources import half_life_weights
from botorch_drbo.posterior.models import some_inputs
from botorch_drbo.problem.round import History, in_widths, in_words
from botorch_drbo.problem.search_space import SearchSpace, Values, check_values, snapped
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import Constant
from botorch_drbo.schedules.radii import ContextRule, Radius, as_radius, deviations

_IMMOVABLE = 1e6  # a width of a column that may not move, in radii
_LEAST = 8  # contexts to which the mass of a fibre may go
_MOST_PAIRS = 2**21  # of contexts that are compared at once


@dataclass(frozen=True, eq=False)
class GroundMetric:
    r"""Distances between contexts, in widths of the box or in a radius by column.

    .. math:: d(c, c')^2 = \sum_j \Big( \frac{c_j - c'_j}{r_j} \Big)^2

    With a radius by column ``r`` the ball has the radius one: to move all of the mass
    by ``r_j`` in the column ``j`` alone uses all of it, and so does it to change the
    category of a share ``r_j``. In a column of radius zero no mass moves (but a
    millionth of it).
    """

    # The contexts.
    space: SearchSpace
    # The radius of each column in widths of its bounds, ``d_c``; None for distances in
    # widths.
    radii: Tensor | None = None

    @property
    def fixed(self) -> tuple[int, ...]:
        """The columns that are not known and in which no mass may move."""
        if self.radii is None:
            return ()
        still = (self.radii == 0.0).nonzero().flatten().tolist()
        return tuple(j for j in still if j not in self.space.known_columns)

    @property
    def diameter(self) -> float | None:
        """The largest distance of two contexts that differ where they may.

        None where a radius by column lets none move.
        """
        if self.radii is None:
            return self.space.context_diameter
        stay = {*self.fixed, *self.space.known_columns}
        moving = [j for j in range(self.space.d_c) if j not in stay]
        if not moving:
            return None
        return torch.linalg.vector_norm(1.0 / self.radii[moving]).item()

    def distances(self, first: Tensor, second: Tensor) -> Tensor:
        """The formula of the class.

        Shapes: ``first``: ``... a x d_c``, ``second``: ``... b x d_c``, returns ``... a
        x b``.
        """
        space = self.space
        if self.radii is None:
            return space.context_distances(first, second)
        sizes = [space.context_categories.get(j, 1) for j in range(space.d_c)]
        scale = (1.0 / self.radii).clamp_max(_IMMOVABLE)
        scale = scale.repeat_interleave(torch.tensor(sizes).to(scale.device)).to(first)
        a, b = space.embed_contexts(first) * scale, space.embed_contexts(second) * scale
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")

    def words(self, radius: float) -> str:
        """How far a ball of this radius reaches, for people."""
        space = self.space
        if self.radii is not None:
            return f"{in_words(self.radii.tolist(), space)} (Wasserstein)"
        means = f": {in_words(space.d_c * [radius], space)}"
        return (
            f"radius {radius:.3g} (Wasserstein{means if space.context_names else ''})"
        )


def on_fibres(
    contexts: Tensor, sample: Tensor, fixed: Sequence[int], num: int
) -> Tensor:
    """Contexts to which mass may go if some columns are fixed.

    A fibre is what is left of the box where these columns have the values of one of the
    contexts. Each takes its turn of the sample.

    Shapes: ``contexts``: ``n x d_c``, ``sample``: ``m x d_c``, returns ``k x d_c``.
    """
    columns = list(fixed)
    moving = [j for j in range(contexts.shape[-1]) if j not in fixed]
    if not moving:
        return contexts[:0]
    fibres = contexts[:, columns].unique(dim=0)  # u x f
    places = sample[:, moving]
    places = places[first_equal(places).unique()]  # p x (d_c - f)
    each = min(len(places), max(_LEAST, num // len(fibres)))
    turns = torch.arange(len(fibres) * each, device=places.device) % len(places)
    points = contexts.new_empty(len(turns), contexts.shape[-1])
    points[:, moving] = places[turns]
    points[:, columns] = fibres.repeat_interleave(each, dim=0)
    return points


def first_equal(rows: Tensor) -> Tensor:
    """Of each row the position of the first that equals it."""
    _, kind = rows.unique(dim=0, return_inverse=True)
    order = torch.arange(len(rows), device=rows.device)
    first = order.new_full((len(rows),), len(rows))
    return first.scatter_reduce(0, kind, order, "amin")[kind]


_MAX_CORNER_DIMENSIONS = 6
_MAX_LISTED = 4096  # combinations of values that are all looked at
_MAX_COMBINED = 64  # the same, each with a sample of the other columns


def filling(box: Tensor, values: Values, seed: int) -> Tensor:
    """Contexts that fill a box, ``m x d_c``.

    A Sobol set and the corners of the continuous columns, with each combination of the
    listed values of the other columns (a full factorial design). Where these are too
    many, the column with the most values takes the values nearest to Sobol points
    instead, then the next one.
    """
    d_c = box.shape[-1]
    # Full factorial of the listed values, times a Sobol set of the other columns.
    listed = dict(values)
    while prod(map(len, listed.values())) > (
        _MAX_LISTED if len(listed) == d_c else _MAX_COMBINED
    ):
        del listed[max(listed, key=lambda j: len(listed[j]))]
    continuous = [j for j in range(d_c) if j not in listed]
    unit = (
        sobol(64 * 2 ** min(len(continuous), 3), len(continuous), seed)
        if continuous
        else torch.empty(1, 0)
    )
    if 0 < len(continuous) <= _MAX_CORNER_DIMENSIONS:
        corners = torch.tensor(list(product((0.0, 1.0), repeat=len(continuous))))
        unit = torch.cat([unit, corners.to(unit)])
    points = torch.lerp(box[0, continuous], box[1, continuous], unit.to(box))  # m x f
    combinations = box.new_tensor(list(product(*listed.values())))  # l x v
    filled = box.new_empty(len(combinations), len(points), d_c)
    filled[..., continuous] = points
    filled[..., list(listed)] = combinations.unsqueeze(1)
    return snapped(filled.flatten(0, 1), values)


_MOST_ON_FIBRES = 1024  # contexts, where a column does not move

Between = Callable[[Tensor, Tensor], Tensor]
"""A metric or kernel: contexts ``... a x d_c`` and ``... b x d_c`` to ``... a x b``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstCaseProblem:
    r"""The ambiguity set of a recommendation, and the contexts that it reaches.

    Attributes:
        contexts: The reference distribution, and perhaps contexts of weight zero.
        ball: The set on a list of contexts, ``n x d_c``.
        between: The metric or kernel of the set; None if it has none.
        box: The contexts that the adversary may use, ``2 x d_c``; None for those of
            ``contexts`` alone.
        fills_box: Whether ``contexts`` fill the box, so that no sample is needed.
        values: Columns of contexts that take these values only: integers, categories.
        categories: Those of them that have no order.
        fixed: Columns in which no mass moves, and that are not known.
        within: The size of the ball, in words; empty for its name and radius.
        by_column: Whether the radius is a multiple of radii by column.
        family: The distributions of a danger, if they are all.
        worlds: Their names, in the order of the family.
    """

    contexts: ContextSet
    ball: Callable[[Tensor], AmbiguitySet]
    between: Between | None = None
    box: Tensor | None = None
    fills_box: bool = False
    values: Values = field(default_factory=dict)
    categories: Collection[int] = ()
    fixed: tuple[int, ...] = ()
    within: str = ""
    by_column: bool = False
    family: FiniteFamily | None = None
    worlds: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        contexts: ContextSet,
        ambiguity: AmbiguitySet,
        space: SearchSpace,
        *,
        contexts_complete: bool = False,
    ) -> WorstCaseProblem:
        r"""Make the problem of a set, with all contexts that its definition allows.

        Args:
            contexts: The reference distribution.
            ambiguity: The set around it.
            space: The space of the contexts. If each column takes a few values only,
                all combinations are on the list, for every set that can give them mass.
            contexts_complete: Whether the list contains all possible contexts.

        Raises:
            UnsupportedError: A set that would need distances between categories.
        """
        ball = ambiguity.original()
        if space.context_categories and ball.at(contexts.points) is not ball:
            raise UnsupportedError(
                f"{type(ball).__name__} without a `cost` takes distances between "
                "contexts, and categories have none. Give it a `cost`, or take the "
                "recipe `wdrbo_exact`."
            )
        listed = space.listed_contexts
        box = None
        if listed is not None:
            if not (ball.keeps_support or ball.knows_positions):
                contexts = with_unlisted(contexts, listed)
        elif ball.reaches_unseen and not contexts_complete:
            box = space.context_support
        return cls(
            contexts=contexts,
            ball=ball.at,
            box=box,
            values=space.context_values,
            categories=tuple(space.context_categories),
        )

    @cached_property
    def _ball(self) -> AmbiguitySet:
        """The set on the listed contexts, for questions about the set alone."""
        return self.ball(self.contexts.points)

    @property
    def radius(self) -> float | None:
        """The radius of the ball, by column one; None for a set without a radius."""
        ball = self._ball
        return ball.radius.item() if ball.has_radius else None

    @property
    def is_reference_alone(self) -> bool:
        """Whether no other distribution is in the set, or there is one context only."""
        points, ball = self.contexts.points, self._ball
        alone = ball.radius.item() == 0.0 if ball.has_radius else ball.keeps_support
        return alone or (self.box is None and len(points.unique(dim=0)) == 1)

    @property
    def reach(self) -> str:
        """The size of the ball in words; empty for a set without a radius."""
        ball = self._ball
        if not ball.has_radius:
            return ""
        return self.within or f"radius {ball.radius.item():.3g} ({type(ball).__name__})"

    def searched(self, space: SearchSpace) -> str:
        """The distributions over which a worst case is searched, in words."""
        ball = self._ball
        if self.worlds:
            return f"each of {self.within}"
        if ball.keeps_support and not ball.has_radius:
            return "the reference alone"
        within = f"within {self.reach}" if self.reach else f"({type(ball).__name__})"
        if self.box is None:
            return f"all distributions {within} on the listed contexts"
        new = "new contexts"
        if not torch.equal(self.box, space.context_support):
            new = "new contexts of a part of the box"
        elif space.known_columns:
            new = "new contexts with the known values"
        return f"all distributions {within}, {new} included"

    def on_its_list(self) -> tuple[ContextSet, AmbiguitySet]:
        """The problem on the listed contexts alone."""
        return self.contexts, self.ball(self.contexts.points)

    def on_a_full_list(self, seed: int) -> tuple[ContextSet, AmbiguitySet]:
        """The problem on the listed contexts and on points that fill the box.

        Args:
            seed: The seed of the Sobol points.
        """
        contexts = with_unlisted(self.contexts, sample_of_box(self, seed))
        return contexts, self.ball(contexts.points)


def with_unlisted(contexts: ContextSet, others: Tensor) -> ContextSet:
    """Add those of other contexts, ``m x d_c``, that are missing, with weight zero."""
    points, weights = contexts.points, contexts.weights
    strips = others.split(max(1, _MOST_PAIRS // len(points)))
    apart = [(torch.cdist(part, points, p=torch.inf) > 0).all(-1) for part in strips]
    missing = torch.cat(apart)
    if not missing.any():
        return contexts
    points = torch.cat([points, others[missing]])
    return ContextSet(points, pad(weights, (0, len(points) - len(weights))))


def sample_of_box(problem: WorstCaseProblem, seed: int) -> Tensor:
    """Contexts that fill the box of a problem, ``m x d_c``; none if nothing is new."""
    given = problem.contexts.points
    if problem.box is None or problem.fills_box:
        return given[:0]
    sample = filling(problem.box, problem.values, seed)
    if not problem.fixed:
        return sample
    return on_fibres(given, sample, problem.fixed, _MOST_ON_FIBRES)


def listed(problem: WorstCaseProblem, seed: int) -> Tensor:
    """The contexts of a problem, and those that fill its box, ``m x d_c``."""
    return torch.cat([problem.contexts.points, sample_of_box(problem, seed)])


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
    """The given reference distribution, or else the empirical one; without a model.

    Shapes: ``seen``: ``m x d_c``.
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
        return ContextSet(
            torch.cat([self.contexts.points, self.outside]),
            pad(self.contexts.weights, (0, len(self.outside))),
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
