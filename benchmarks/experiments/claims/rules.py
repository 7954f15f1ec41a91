r"""What each rule recommends from one fit: scores of decisions from one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries import FittedRound, StandardDeviationBox, WassersteinBall
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.posterior import View, marginal_posterior
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.models import prior_variance
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.sampling import sobol, sobol_in_box

_BALL = WassersteinBall(radius="sd", num_candidates=64)
_BOX = StandardDeviationBox(num_contexts=32)
_AT_ONCE = 64  # decisions
_NUM_DECISIONS = 2**7  # Sobol, times the columns
_NUM_NEAR = 8  # neighbours of the best of each rule
_WIDTHS = (0.15, 0.04)  # of the boxes that they are in, in sides


@dataclass(frozen=True, eq=False)
class Scores:
    r"""Moments of decisions, for each of ``S`` models, and the ball.

    Args:
        mean: ``M x S x n``; the first ``t`` contexts are those seen, the next ones
            those that mass may move to, the last ``b`` those of the box.
        variance: The same shape.
        prior: The prior variance of each model, ``S``.
        level: The mean of the outcomes told.
        weights: Of the contexts seen, ``t``.
        ball: The set on all contexts but those of the box.
        in_box: ``b``.
    """

    mean: Tensor
    variance: Tensor
    prior: Tensor
    level: Tensor
    weights: Tensor
    ball: Wasserstein
    in_box: int

    @property
    def seen(self) -> Tensor:
        """The means in the contexts seen, ``M x S x t``."""
        return self.mean[..., : len(self.weights)]

    @property
    def reached(self) -> Tensor:
        """The means in all contexts but those of the box, ``M x S x k``."""
        return self.mean[..., : -self.in_box]

    @cached_property
    def ignorance(self) -> Tensor:
        """The variance that is left of the prior's, of each model, ``M x S x k``."""
        left = self.variance[..., : -self.in_box] / self.prior.unsqueeze(-1)
        return left.clamp(0.0, 1.0)

    @cached_property
    def mixture_ignorance(self) -> Tensor:
        """The same of the mixture of the models, ``M x 1 x k``."""
        between = self.reached.var(1, correction=0, keepdim=True)
        within = self.variance[..., : -self.in_box].mean(1, keepdim=True)
        return (within + between) / self.prior.mean()

    def worst_case(self, unseen: Tensor) -> Tensor:
        """The worst case of the ball with other scores where none was seen, ``M``.

        Args:
            unseen: Scores ``M x S x k``, of which those of the contexts seen are not
                looked at.
        """
        t, k = len(self.weights), self.reached.shape[-1]
        scores = torch.cat([self.seen, unseen[..., t:]], dim=-1)
        weights = torch.cat([self.weights, self.weights.new_zeros(k - t)])
        return self.ball.worst_case(scores, weights).value.mean(-1)

    def worst_case_where(self, allowed: Tensor) -> Tensor:
        """The worst case if mass may move to some of the unseen contexts only, ``M``.

        Args:
            allowed: Which, ``M x S x k``, or what broadcasts to it.
        """
        # Mass moves to lower scores only, so nobody goes where the highest one is.
        highest = self.reached.amax(-1, keepdim=True)
        return self.worst_case(torch.where(allowed, self.reached, highest))


def _expected(s: Scores) -> Tensor:
    return (s.seen @ s.weights).mean(-1)


def _robust(s: Scores) -> Tensor:
    return s.worst_case(s.reached)


def _box(s: Scores) -> Tensor:
    return s.mean[..., -s.in_box :].amin(-1).mean(-1)


def _reach(share: float) -> Callable[[Scores], Tensor]:
    return lambda s: s.worst_case_where(s.mixture_ignorance <= share**2)


def _home(s: Scores) -> Tensor:
    own = (s.seen @ s.weights).unsqueeze(-1)  # M x S x 1
    return s.worst_case(s.reached + s.ignorance * (own - s.level))


def _spread(s: Scores) -> Tensor:
    mean = s.reached.mean(1, keepdim=True)
    disagreement = s.reached.std(1, correction=0, keepdim=True)
    return s.worst_case((mean + disagreement).expand_as(s.reached))


def _seen(s: Scores) -> Tensor:
    return s.worst_case_where(torch.zeros_like(s.reached, dtype=torch.bool))


Rule = Callable[[Scores], Tensor]
METHODS: Mapping[str, Rule] = {"expected": _expected, "robust": _robust, "box": _box}
OPTIONS: Mapping[str, Rule] = {
    "reach .25": _reach(0.25),
    "reach .5": _reach(0.5),
    "home": _home,
    "spread": _spread,
    "seen": _seen,
}
RULES = {**METHODS, **OPTIONS}
"""Name -> values of decisions; higher is better."""


def recommend(
    model: Model,
    history: History,
    space: SearchSpace,
    rules: Mapping[str, Rule],
    seed: int,
) -> dict[str, Tensor]:
    """The best decision of each rule, from one pool.

    Args:
        model: Fitted to the history.
        history: What was told.
        space: The boxes.
        rules: Which.
        seed: Decides the pool and the contexts.

    Returns:
        Name of the rule -> decision, ``d_x``.
    """
    state = FittedRound(model=model, history=history, space=space, seed=seed)
    problem, box = _BALL.search_problem(state), _BOX.search_problem(state)
    ball = problem.ambiguity_set
    assert isinstance(ball, Wasserstein)
    contexts = torch.cat([problem.contexts.points, box.contexts.points])
    columns = list(range(space.d_x, space.d_x + space.d_c))
    view = marginal_posterior(model, columns).over(contexts)
    members = model.members if isinstance(model, ModelEnsemble) else [model]
    prior = contexts.new_tensor([prior_variance(member) for member in members])

    def values(X: Tensor) -> Tensor:
        found = []
        for rows in X.split(_AT_ONCE):
            mean, variance = _moments(view, rows)
            scores = Scores(
                mean,
                variance,
                prior=prior,
                level=history.Y.mean(),
                weights=problem.contexts.weights[: history.t],
                ball=ball,
                in_box=len(box.contexts.points),
            )
            found.append(torch.stack([rule(scores) for rule in rules.values()]))
        return torch.cat(found, dim=-1)  # rules x M

    with torch.no_grad():
        low, high = space.bounds
        X = sobol_in_box(_NUM_DECISIONS * space.d_x, space.bounds, seed)
        X = torch.cat([X, history.X])
        V = values(X)
        for number, width in enumerate(_WIDTHS):
            leaders = X[V.argmax(-1)].unique(dim=0)  # l x d_x
            near = sobol(len(leaders) * _NUM_NEAR, space.d_x, seed + number) - 0.5
            near = near.reshape(len(leaders), _NUM_NEAR, -1) * width * (high - low)
            fresh = (leaders.unsqueeze(1) + near).flatten(0, 1).clamp(low, high)
            X, V = torch.cat([X, fresh]), torch.cat([V, values(fresh)], dim=-1)
    return dict(zip(rules, X[V.argmax(-1)], strict=True))


def _moments(view: View, X: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances ``M x S x n``, also of a single model."""
    mean, variance = view.at(X).moments()
    if mean.ndim == 2:
        return mean.unsqueeze(1), variance.unsqueeze(1)
    return mean, variance
