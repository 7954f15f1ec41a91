"""How far the contexts may shift before another decision is the better one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.adversaries.base import sample_of_box, with_unlisted
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.base import check_has_radius
from botorch_drbo.calibrate import robustness_profile
from botorch_drbo.calibrate.budget import RobustnessProfile, check_radii
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.best_decision import ChanceConstraint
from botorch_drbo.recommendation.promise import posterior_of_worst_case
from botorch_drbo.recommendation.worst_case import mean_at, worst_case
from botorch_drbo.search.candidates import SEPARATION, without

_TIMES = 4.0  # the recipe's own radius: as far as the default of a profile
_NUM_RADII = 7
_BISECTIONS = 8  # to two thousandths of the recipe's own radius
_ALIKE = 1e-6  # of the range of the values: what solvers and searches leave undecided
_ROUNDING = 16.0  # units in the last place of the largest value


_Row = TypeVar("_Row")


@dataclass(frozen=True, eq=False)
class Stability(Generic[_Row]):
    """The radius from which another decision has the better worst case."""

    # The recipe's own.
    radius: float
    # The first radius, from the own one on, at which another decision has a better
    # worst case; None if there is none up to ``searched``. It is the own radius where
    # one is better already: the recipe maximises something else than this worst case.
    until: float | None
    # The largest radius that was looked at, four times the own.
    searched: float
    # That decision, ``d_x``, with named variables a table of one row; None if there is
    # none.
    rival: _Row | None
    # How many decisions were compared.
    num_rivals: int
    # Which ones, in words. Any other decision may be better earlier.
    compared: str = ""
    # Whether the radius is given by column, so that it is one, and the others are
    # multiples of it.
    by_column: bool = False

    def words(self, rival: str) -> str:
        """Say it in a line."""
        return f"by the posterior mean {self._until(rival)}"

    def _until(self, rival: str) -> str:
        if self.by_column:
            now, beyond = "that radius", f"{self.searched:.3g} times that radius"
            until = f"{self.until or 0.0:.3g} times that radius"
        else:
            now = f"radius {self.radius:.3g}"
            beyond = f"radius {self.searched:.3g} (now {self.radius:.3g})"
            until = f"radius {self.until or 0.0:.3g} (now {self.radius:.3g})"
        if self.until is None:
            return f"beyond {beyond}"
        if self.until == self.radius:
            return f"not at {now} itself: {rival} has a better worst case"
        return f"up to {until}, then {rival}"


def overtaken(
    ball: AmbiguitySet,
    weights: Tensor,
    values: Tensor,
    rival_values: Tensor,
    rivals: Tensor,
) -> Stability[Tensor]:
    """The first of several decisions that overtakes one as the radius grows.

    Shapes: ``rival_values``: ``m x n``, ``rivals``: ``m x d_x``.
    """
    everything = torch.cat([values.unsqueeze(0), rival_values])
    rounding = _ROUNDING * torch.finfo(everything.dtype).eps * everything.abs().max()
    slack = _ALIKE * (everything.max() - everything.min()).double() + rounding
    weights, values = weights.double(), values.double()
    rival_values = rival_values.double()

    # A worst case falls with the radius: what it was is a bound from above.
    bounds = torch.full_like(rival_values[:, 0], torch.inf)
    if ball.holds_reference:
        bounds = rival_values @ weights

    def worst_cases(rows: Tensor, *radii: float) -> Tensor:
        at = weights.new_tensor(radii).expand(len(rows))
        return ball.worst_case(rows, weights, radius=at).value

    def against(
        which: Tensor, radius: float, least: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Worst cases of rivals ``k``, and what they have to exceed to be better.

        Of a rival whose bound does not exceed it, the bound.
        """
        if least is None:
            least = worst_cases(values.unsqueeze(0), radius) + slack
        found = bounds[which]
        close = (found > least).nonzero().squeeze(-1)
        if len(close):
            found[close] = worst_cases(rival_values[which[close]], radius)
        return found, least

    own = ball.radius.item()
    until, rival = None, None
    low, everyone = own, torch.arange(len(rivals), device=rivals.device)
    steps = torch.linspace(own, _TIMES * own, _NUM_RADII, dtype=torch.double).tolist()
    # All at once: of a single row the calls take longer than the arithmetic.
    leasts = worst_cases(values.expand(_NUM_RADII, -1), *steps) + slack
    for high, least in zip(steps, leasts.split(1), strict=True):
        found, least = against(everyone, high, least)
        ahead = (found > least).nonzero().flatten()
        if not len(ahead):
            low, bounds = high, found
            continue
        for _ in range(_BISECTIONS if high > low else 0):
            middle = 0.5 * (low + high)
            found, least = against(ahead, middle)
            earlier = ahead[found > least]
            low, high, ahead = (
                (low, middle, earlier) if len(earlier) else (middle, high, ahead)
            )
        until = high
        rival = rivals[ahead[against(ahead, high)[0].argmax()]]
        break
    return Stability(own, until, _TIMES * own, rival, len(rivals))


_MOST_RIVALS = 32


def rivals_of(
    x: Tensor,
    told: Tensor,
    space: SearchSpace,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
) -> tuple[Tensor, str]:
    """The decisions that a recommendation is compared with.

    Shapes: ``told``: ``t x d_x``, ``candidates``: ``m x d_x``, returns ``m x d_x``.
    """
    rivals = told.unique(dim=0)
    rivals = rivals[feasible(space, rivals)]
    lower, upper = space.bounds
    rivals = rivals[((rivals - x).abs() > SEPARATION * (upper - lower)).any(-1)]
    origin = f"tried so far, differing by more than {SEPARATION:.0%} of the range"
    if candidates is not None:
        rivals, origin = without(candidates, x.unsqueeze(0)), "of the list"
    if chance is not None:  # others are no rivals
        rivals = rivals[chance.allows(rivals)]
        origin = f"{origin}, meeting the constraints"
    return rivals, origin


def against_rivals(
    problem: WorstCaseProblem,
    found: ContextSet,
    model: Model,
    x: Tensor,
    rivals: Tensor,
    origin: str,
    *,
    searched: DistributionallyRobustUCB | None = None,
    seed: int,
) -> Stability[Tensor] | None:
    """Compare a decision with others at larger and larger radii.

    On the contexts of the recommendation and a sample of the box: so the worst cases of
    the others are a little too good, and the radius is a little too small rather than
    too large. Of many rivals those with the best expectation and those with the best
    single worst outcome are compared, 32 in all.

    Shapes: ``rivals``: ``m x d_x``, ``searched``: the last function of the search.
    """
    if not len(rivals) or not problem.radius:
        return None
    if searched is not None:  # its list fills the box already
        view, weights = searched.view, searched.context_set.weights
        ball = searched.objective.ambiguity_set
    else:
        found = with_unlisted(found, sample_of_box(problem, seed))
        columns = range(len(x), len(x) + found.dim)
        view = marginal_posterior(model, columns).over(found.points)
        weights, ball = found.weights, problem.ball(found.points)
    with torch.no_grad():
        values = view.at(torch.cat([x.unsqueeze(0), rivals])).means()
    if values.ndim > 2:  # of an ensemble
        values = values.mean(-2)
    some = _most_dangerous(values[1:], weights)
    total = f"{len(rivals)} decision{'s' if len(rivals) > 1 else ''} {origin}"
    compared = total if len(some) == len(rivals) else f"{len(some)} of {total}"
    stability = overtaken(ball, weights, values[0], values[1:][some], rivals[some])
    return replace(stability, compared=compared, by_column=problem.by_column)


def _most_dangerous(values: Tensor, weights: Tensor) -> Tensor:
    """Rows ``k`` of ``m x n`` values, in order: best expected, and best lowest."""
    if len(values) <= _MOST_RIVALS:
        return torch.arange(len(values), device=values.device)
    half = _MOST_RIVALS // 2
    expected = (values @ weights.to(values)).topk(half).indices
    rest = values.amin(-1)
    rest[expected] = -torch.inf
    return torch.cat([expected, rest.topk(half).indices]).sort().values


_PROFILE_RADII, _PROFILE_TIMES = 25, 4.0


def profile(
    problem: WorstCaseProblem,
    model: Model,
    x: Tensor,
    other: Tensor | None,
    radii: Tensor | None,
    *,
    target: float | None,
    seed: int,
) -> RobustnessProfile:
    """The worst case of a problem for one decision, or for two, at other radii.

    The contexts that the adversary would go to are searched for at each radius and for
    each decision. All values are then found on all of these, so that both curves are
    convex, fall, and are comparable.
    """
    contexts, given = problem.contexts, problem.contexts.num_points
    own = check_has_radius(problem.ball(contexts.points)).radius.item()
    if radii is not None:
        radii = check_radii(radii)
    elif own > 0.0:
        radii = torch.linspace(
            0.0, _PROFILE_TIMES * own, _PROFILE_RADII, dtype=torch.double
        )
    else:
        raise InputDataError(
            "The radius of the set is zero, and says nothing of the radii that matter: "
            "pass `radii`, for example torch.linspace(0.0, 0.5, 26)."
        )
    radii = radii.to(contexts.points.device)
    scores = [mean_at(model, row) for row in (x, other) if row is not None]
    points = contexts.points
    if problem.box is not None:
        balls = [_with_radius(problem, radius) for radius in radii]
        found = [
            worst_case(ball, score, seed=seed)[0].points[given:]
            for ball in balls
            for score in scores
        ]
        points = torch.cat([points, torch.cat(found).unique(dim=0)])
    with torch.no_grad():
        values = [score(points) for score in scores]
    found = robustness_profile(
        values[0],
        pad(contexts.weights, (0, len(points) - given)),
        problem.ball(points),
        radii,
        other_values=values[1] if len(values) > 1 else None,
        target=target,
    )
    reached = ContextSet(points, torch.full_like(points[:, 0], 1.0 / len(points)))
    belief = posterior_of_worst_case(model, x, problem, reached, radii, seed=seed)
    return replace(found, belief=belief)


def _with_radius(problem: WorstCaseProblem, radius: Tensor) -> WorstCaseProblem:
    return replace(
        problem, ball=lambda points: problem.ball(points).with_radius(radius)
    )
