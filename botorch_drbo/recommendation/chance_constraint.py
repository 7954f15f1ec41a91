"""Outcome constraints in a recipe: the probability that decisions meet them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import ModelListGP
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.acquisition import RobustFeasibility
from botorch_drbo.acquisition.feasibility import log_probability_of_feasibility
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.adversaries.worst_case_problem import listed
from botorch_drbo.ambiguity import RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.joint import joint_moments
from botorch_drbo.problem.feasible import sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.worst_case import worst_case
from botorch_drbo.search.candidates import score
from botorch_drbo.search.maximise import Effort
from botorch_drbo.search.mixed_search import climb
from botorch_drbo.search.starts import hills
from botorch_drbo.search.unit_cube import InUnitCube

_MARGIN = 0.02  # of the allowed risk: what an ascent and a list of contexts leave open
_MAX_ROUNDS = 4  # of a search on a longer list of contexts


@dataclass(frozen=True, eq=False)
class ChanceConstraint:
    r"""The robust probability of feasibility is to be at least ``level``.

    .. math:: \min_{q \in \mathcal U} \sum_i q_i\,
        P\big( g_j(x, c_i) \ge 0 \text{ for all } j \big) \ge 1 - \delta

    Decisions are searched on a list of contexts: those of the problem, and others that
    fill its box. What is found is judged over the whole box (see ``worst_case``).

    Attributes:
        model: A Gaussian process of ``[x, c]`` for each constraint.
        problem: The reference distribution, the set around it, and the contexts to
            which mass may move.
        points: The list, ``m x d_c``, those of the problem first.
        level: ``1 - delta``.
        seed: Decides what fills the box.
    """

    model: ModelListGP
    problem: WorstCaseProblem
    points: Tensor
    level: float
    seed: int

    @classmethod
    def of(
        cls, model: ModelListGP, problem: WorstCaseProblem, level: float, seed: int
    ) -> ChanceConstraint:
        """With the contexts that fill the box of the problem."""
        return cls(model, problem, listed(problem, seed), level, seed)

    @property
    def aim(self) -> float:
        """The level at which a search aims, so that what it finds reaches ``level``."""
        return 1.0 - (1.0 - _MARGIN) * (1.0 - self.level)

    @cached_property
    def feasibility(self) -> RobustFeasibility:
        """The robust probability on the list."""
        reference = self.problem.contexts.weights
        weights = pad(reference, (0, len(self.points) - len(reference)))
        return RobustFeasibility(
            self.model, ContextSet(self.points, weights), self.problem.ball(self.points)
        )

    def probability(self, X: Tensor) -> Tensor:
        """The robust probability on the list, ``n x d_x`` to ``n``, without a graph."""
        with torch.no_grad():
            return self.feasibility.probability(X)

    def excess(self, X: Tensor) -> Tensor:
        """By how much decisions ``n x d_x`` exceed the aim, on a log scale, ``n``."""
        return self.feasibility(X.unsqueeze(-2)) - math.log(self.aim)

    def robust_probability(self, x: Tensor) -> tuple[ContextSet, RobustValue]:
        """The worst case of the probability at ``x``, ``d_x``, over the whole box."""

        def probability(contexts: Tensor) -> Tensor:  # m x d_c -> m, differentiable
            Z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
            total = contexts.new_zeros(())
            for member in self.model.models:
                mean, variance = joint_moments(cast(Model, member), Z)
                total = total + log_probability_of_feasibility(mean, variance)
            return total.exp()

        return worst_case(self.problem, probability, seed=self.seed)

    def with_contexts(self, contexts: ContextSet) -> ChanceConstraint:
        """The same with further contexts on the list."""
        seen = len(self.problem.contexts.points)
        points = torch.cat([self.points, contexts.points[seen:]])
        return replace(self, points=points)


def warn_of_the_surest(probability: float | None, level: float) -> None:
    """Say that no decision was found that reaches the level."""
    warnings.warn(
        "No decision was found that meets the outcome constraints with probability "
        f"{level} under every plausible distribution of the context. This is the one "
        f"with the largest probability, {probability:.3g}, whatever its value. Go on "
        "asking and telling, or lower `feasibility` or the radius.",
        BotorchWarning,
        stacklevel=3,
    )


def best_feasible(
    acqf: AcquisitionFunction,
    chance: ChanceConstraint,
    space: SearchSpace,
    rows: Tensor,
    effort: Effort | None,
) -> tuple[Tensor, Tensor, float]:
    r"""Find the best decision among those whose robust probability reaches the level.

    The constraint on the probability is one of the space, beside those that it has
    (SLSQP, from starts that meet it). The search knows a list of contexts. If the worst
    case over the box is worse than on the list, the contexts that make it so are added,
    and the search starts again, a few times; after that the next best of what it has
    found is judged, until one reaches the level or none is left.

    Args:
        acqf: What is to be large, of ``b x 1 x d_x`` decisions.
        chance: The constraint.
        space: The decisions.
        rows: Decisions to choose from, ``m x d_x``.
        effort: How to search for others; None if there are no others.

    Returns:
        The decision ``d_x``, its value, and its robust probability over the box. Where
        no decision is found to reach the level, the one with the largest probability.
    """
    known, upper_bound = rows, rows.new_ones(len(rows))
    for num in count():  # each round rules a row out, or is the last one
        if effort is not None and num < _MAX_ROUNDS:
            known = _searched(acqf, chance, space, rows, effort)
            upper_bound = rows.new_ones(len(known))
        values = score(acqf, known)
        probability = chance.probability(known).minimum(upper_bound)
        reached = probability >= chance.level
        best = torch.where(reached, values, -torch.inf).argmax()
        if not reached.any():
            best = probability.argmax()
        contexts, robust = chance.robust_probability(known[best])
        if not reached[best] or robust.value >= chance.level:
            break
        upper_bound[best] = robust.value
        chance = chance.with_contexts(contexts)
    return known[best], values[best], robust.value.item()


def _searched(
    acqf: AcquisitionFunction,
    chance: ChanceConstraint,
    space: SearchSpace,
    rows: Tensor,
    effort: Effort,
) -> Tensor:
    """The rows, a sample, and what ascents find from the best of them."""

    def climbed(
        function: AcquisitionFunction, within: SearchSpace, known: Tensor, rank: Tensor
    ) -> Tensor:
        """Ascents from the hills of a list, ``m x d_x``, of finite rank, ``m``."""
        cube = InUnitCube(function, space.bounds)
        unit = cube.to_cube(known)
        top = hills(unit, rank, effort.num_restarts)
        top = top[rank[top].isfinite()]
        return climb(
            cube,
            within,
            unit[top].unsqueeze(-2),
            raw_samples=effort.raw_samples,
            max_iterations=effort.max_iterations,
        )

    rows = torch.cat([rows, sample(space, effort.raw_samples, effort.seed)])
    probability = chance.probability(rows)
    if not (probability >= chance.aim).any():
        surest = climbed(chance.feasibility, space, rows, probability)
        rows = torch.cat([rows, surest])
        probability = torch.cat([probability, chance.probability(surest)])
    reached = probability >= chance.aim
    if not reached.any():
        return rows
    constraints = (*space.nonlinear_inequality_constraints, chance.excess)
    within = replace(space, nonlinear_inequality_constraints=constraints)
    rank = torch.where(reached, score(acqf, rows), -torch.inf)
    return torch.cat([rows, climbed(acqf, within, rows, rank)])
