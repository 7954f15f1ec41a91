"""A set, objective, acquisition function, adversary, policy, recipe of one's own."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.acquisition import RobustAcquisitionFunction
from botorch_drbo.adversaries import (
    ADVERSARIES,
    Adversary,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.ambiguity import AmbiguitySet, Solution
from botorch_drbo.ambiguity.numerics import check_distributions, increasing_root
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.policies import POLICIES, Policy
from botorch_drbo.recipes import RECIPES, RobustRecipe


# [set]
@final
class Contamination(AmbiguitySet):
    """All q = (1 - radius) p + radius r: a share of the days may be anything."""

    knows_positions: ClassVar[bool] = False  # the distance ignores where contexts lie
    finite_at_zero: ClassVar[bool] = True  # a little radius does a little harm
    keeps_support: ClassVar[bool] = False  # contexts of weight zero may get mass
    reaches_unseen: ClassVar[bool] = True  # and so may contexts outside the list
    holds_reference = True  # p is in the set at every radius

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        share = radius.clamp_max(1.0)  # ... x 1
        lowest, where = values.min(-1, keepdim=True)
        point = torch.zeros_like(values).scatter(-1, where, 1.0)
        loss = (weights * (values - lowest)).sum(-1)  # of the value, by unit of radius
        return Solution(
            weights=(1 - share) * weights + share * point,
            multiplier=torch.where(radius.squeeze(-1) < 1, loss, 0.0),
        )

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        p, q = check_distributions(p, q)
        kept = torch.where(p > 0, q / p, torch.inf).amin(-1)
        return (1 - kept).clamp_min(0.0)


# [second set]
@final
class Hellinger(AmbiguitySet):
    """All q with sum_i (sqrt(q_i) - sqrt(p_i))^2 <= radius, a number from 0 to 2.

    For a t > 0, with f the scores above the lowest one, q is proportional to
    p / (f + t)^2, and sum_i sqrt(p_i q_i) = 1 - radius / 2 says what t is.
    """

    knows_positions: ClassVar[bool] = False  # the distance ignores where contexts lie
    finite_at_zero: ClassVar[bool] = False  # the slope at radius zero is infinite
    keeps_support: ClassVar[bool] = True  # contexts of weight zero get no mass
    holds_reference = True  # p is in the set at every radius

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        on = weights > 0
        low = torch.where(on, values, torch.inf).amin(-1, keepdim=True)
        f = torch.where(on, values - low, 0.0)
        span = f.amax(-1, keepdim=True)
        f = f / torch.where(span > 0, span, 1.0)  # from 0 to 1
        at_lowest = torch.where(f <= 0, weights, 0.0)
        lowest = at_lowest.sum(-1, keepdim=True)
        saturated = (2 - 2 * lowest.sqrt() <= radius) | (span <= 0)

        def mean(x: Tensor) -> Tensor:
            return (weights * x).sum(-1, keepdim=True)

        center = mean(f)
        small = radius.clamp_min(1e-60)
        wanted = small - small.square() / 4  # 1 - (1 - radius / 2)^2

        def error(x: Tensor) -> tuple[Tensor, Tensor]:  # increasing in x = log t
            t = x.exp()
            z = 1 / (f + t)
            away = z * (center - f) / (center + t)
            away = away - mean(away)  # z - E z, without its cancellation
            variance, second = mean(away.square()), mean(z.square())
            value = (wanted * second / variance).log()
            bend = mean(away * z.square()) / variance - mean(z**3) / second
            return value, -value / (2 * t * bend)

        lower = torch.full_like(radius, -80.0)
        upper = 1 - small.log() / 2
        t = increasing_root(error, lower, upper, torch.zeros_like(radius)).exp()
        z = 1 / (f + t)
        second = mean(z.square())
        zero = radius <= 0
        q = torch.where(zero, weights, weights * z.square() / second)
        slope = torch.where(zero, torch.inf, span * second.rsqrt())
        gradient = torch.where(zero, f, -z / second) * span
        return Solution(
            weights=torch.where(saturated, at_lowest / lowest, q),
            multiplier=torch.where(saturated, 0.0, slope).squeeze(-1),
            reference_gradient=lambda: torch.where(saturated, 0.0, gradient),
        )

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        p, q = check_distributions(p, q)
        return (p.sqrt() - q.sqrt()).square().sum(-1)


# [objective]
@final
class HalfWay(Objective):
    """Half way from the expected score to the worst one over the ambiguity set."""

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:  # ... x n to ...
        expected = (values * weights).sum(-1)
        return (expected + self.ambiguity_set.value(values, weights)) / 2


def half_way(ambiguity_set: AmbiguitySet) -> HalfWay:
    """The objective of one round, over the set of that round."""
    return HalfWay(ambiguity_set)


# [acquisition]
@final
class MeanLessDeviation(RobustAcquisitionFunction):
    """The mean of the confidence bound over contexts, less its standard deviation."""

    def __init__(
        self,
        model: Model,
        beta: float,
        context_set: ContextSet,
        gamma: float = 1.0,
        *,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model, beta, context_set, X_pending=X_pending)
        self.gamma = gamma

    def values(self, X: Tensor) -> Tensor:  # b x d_x to b
        scores = self.scores(X)  # b x n: mu + sqrt(beta) sigma
        p = self.context_set.weights.to(scores)
        mean = (scores * p).sum(-1)
        variance = ((scores - mean.unsqueeze(-1)).square() * p).sum(-1)
        return mean - self.gamma * variance.clamp_min(1e-12).sqrt()


# [adversary]
@final
@dataclass(frozen=True, kw_only=True, eq=False)
class HellingerBall(Adversary):
    """The Hellinger ball around the contexts seen, or around ``reference``.

    Args:
        radius: A number from 0 to 2.
    """

    radius: float = 0.1

    def search_problem(self, state: FittedRound) -> SearchProblem:
        return SearchProblem(
            contexts=state.contexts(), ambiguity_set=Hellinger(self.radius)
        )

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        return WorstCaseProblem.of(
            state.contexts(), Hellinger(self.radius), state.space
        )


ADVERSARIES["hellinger"] = HellingerBall()


# [policy]
@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CautiousMean(Policy):
    """Maximise the mean less ``gamma`` standard deviations over the contexts.

    Args:
        beta: The squared width of the confidence bound whose mean it is.
        gamma: How many standard deviations, not negative.
    """

    beta: float = 2.25
    gamma: float = 1.0

    @property
    def maximises_worst_case(self) -> bool:
        return False  # a recommendation is what `exploiting` finds

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        contexts = adversary.search_problem(state).contexts
        return MeanLessDeviation(
            state.model, self.beta, contexts, self.gamma, X_pending=X_pending
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        contexts = adversary.search_problem(state).contexts
        return MeanLessDeviation(state.model, 0.0, contexts, self.gamma)


POLICIES["cautious_mean"] = CautiousMean()


# [recipe]
RECIPES["hellinger_bo"] = RobustRecipe(
    name="hellinger_bo", adversary=HellingerBall(radius=0.2)
)
RECIPES["cautious_bo"] = RobustRecipe(
    name="cautious_bo", adversary=HellingerBall(), policy=CautiousMean(gamma=0.5)
)


# [run]
def run(name: str, rounds: int = 3, **options) -> RobustOptimizer:
    """A few rounds of a recipe, where the decision 0.6 is good near the context 0.6."""
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    contexts = torch.tensor([[0.5], [0.7], [0.4], [0.6], [0.3]], dtype=torch.double)
    optimizer = RobustOptimizer(name, unit, unit, seed=0, num_initial=3, **options)
    for c in contexts[:rounds].split(1):
        x = optimizer.ask()
        y = 1 - (x - 0.6).square() - (c - x).square()
        optimizer.tell(x, c, y)
    return optimizer


if __name__ == "__main__":
    for name in ("hellinger_bo", "cautious_bo"):
        best = run(name, rounds=5).recommend()
        print(name, best.x, best.worst_case_value)
# [end]
