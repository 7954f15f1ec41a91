"""The worst case of a recommendation: over which contexts and which set."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.adversaries.filling import filling
from botorch_drbo.adversaries.ground_metric import on_fibres
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import SearchSpace, Values

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

    @property
    def radius(self) -> float | None:
        """The radius of the ball, by column one; None for a set without a radius."""
        ball = self.ball(self.contexts.points)
        return ball.radius.item() if ball.has_radius else None

    @property
    def is_reference_alone(self) -> bool:
        """Whether no other distribution is in the set, or there is one context only."""
        points = self.contexts.points
        ball = self.ball(points)
        alone = ball.radius.item() == 0.0 if ball.has_radius else ball.keeps_support
        return alone or (self.box is None and len(points.unique(dim=0)) == 1)

    @property
    def reach(self) -> str:
        """The size of the ball in words; empty for a set without a radius."""
        ball = self.ball(self.contexts.points)
        if not ball.has_radius:
            return ""
        name = type(ball).__name__
        return self.within or f"radius {ball.radius.item():.3g} ({name})"

    def searched(self, space: SearchSpace) -> str:
        """The distributions over which a worst case is searched, in words."""
        ball = self.ball(self.contexts.points)
        if ball.keeps_support and not ball.has_radius:
            return "the posterior mean under the reference alone"
        within = f"the distributions of {type(ball).__name__}"
        if self.reach:
            within = f"distributions within {self.reach}"
        if self.box is None:
            where = "on the listed contexts"
        elif not torch.equal(self.box, space.context_support):
            where = "on any context of a part of the box"
        elif space.known_columns:
            where = "on any context with the known values"
        else:
            where = "on any context"
        return f"the posterior mean under {within} {where}"

    def on_its_list(self) -> tuple[ContextSet, AmbiguitySet]:
        """The problem on the listed contexts alone."""
        return self.contexts, self.ball(self.contexts.points)

    def on_a_full_list(self, seed: int) -> tuple[ContextSet, AmbiguitySet]:
        """The problem on the listed contexts and on points that fill the box.

        Args:
            seed: The seed of the Sobol points.
        """
        contexts = with_unlisted(self.contexts, listed(self, seed))
        return contexts, self.ball(contexts.points)


def with_unlisted(contexts: ContextSet, others: Tensor) -> ContextSet:
    """Add those of other contexts, ``m x d_c``, that are missing, with weight zero."""
    points, weights = contexts.points, contexts.weights
    missing = (torch.cdist(others, points, p=torch.inf) > 0).all(-1)
    if not missing.any():
        return contexts
    points = torch.cat([points, others[missing]])
    return ContextSet(points, pad(weights, (0, len(points) - len(weights))))


def listed(problem: WorstCaseProblem, seed: int) -> Tensor:
    """The contexts of a problem, and those that fill its box beside them, ``m x d_c``.

    Args:
        problem: The ball, and where its adversary may go.
        seed: The seed of the Sobol points.
    """
    given = problem.contexts.points
    if problem.box is None or problem.fills_box:
        return given
    sample = filling(problem.box, problem.values, seed)
    if problem.fixed:
        sample = on_fibres(given, sample, problem.fixed, _MOST_ON_FIBRES)
    return torch.cat([given, sample])
