"""What is true of a decision: price, floor and regret in one unit, the law's own gain.

Nothing here knows a model: the function itself is searched.
"""

from __future__ import annotations

from functools import cache, cached_property

import torch
from torch import Tensor

from benchmarks.experiments.price.cases import CASES, Case
from botorch_drbo import AnyOf, ContextSet, MeanShift, Mixture, Spread
from botorch_drbo.problem import SearchSpace
from botorch_drbo.sampling import sobol

_SOBOL = 2**13
_ROUNDS, _AROUND = 10, 256  # of a search in smaller and smaller boxes
DANGERS = AnyOf(MeanShift(2.0, clip=1.0), Spread(2.0, clip=1.0), Mixture(0.1))
"""Every direction by two deviations, twice the spread, a tenth from elsewhere."""


class Truth:
    """A case that is known everywhere."""

    def __init__(self, case: Case) -> None:
        self.case, self.space = case, case.space

    @cached_property
    def worlds(self) -> dict[str, ContextSet]:
        """The law, and what it is judged by beside it."""
        changed = DANGERS.changed(self.case.law, self.space)
        return {"as it was": self.case.law, **{w.name: w.contexts for w in changed}}

    def expectations(self, X: Tensor) -> Tensor:
        """Of decisions ``m x d_x`` in each world, ``m x w``."""
        return torch.stack(
            [
                self.case.values(X, world.points) @ world.weights
                for world in self.worlds.values()
            ],
            dim=-1,
        )

    @cached_property
    def best(self) -> Tensor:
        """The best expectation in each world, ``w``."""
        X = _filled(self.space, _SOBOL)
        values = self.expectations(X)
        self._blind = float(values[:, 0].mean())
        top = X[values.argmax(0)]  # w x d_x
        best = values.amax(0)
        side = self.space.bounds[1] - self.space.bounds[0]
        draw = 2.0 * sobol(_AROUND, X.shape[-1], 5).double() - 1.0
        for k in range(_ROUNDS):
            near = top.unsqueeze(1) + 0.1 * 0.5**k * draw * side
            near = near.clamp(*self.space.bounds)
            for w in range(len(top)):
                found = self.expectations(near[w])[:, w]
                if found.max() > best[w]:
                    best[w], top[w] = found.max(), near[w][found.argmax()]
        return best

    @cached_property
    def gain(self) -> float:
        """The unit: the best expectation under the law less that of a blind guess."""
        best = float(self.best[0])
        return best - self._blind

    def judged(self, x: Tensor) -> dict[str, float]:
        """Loss, least expectation, worst and mean regret of ``d_x``, in percent."""
        values = self.expectations(x.unsqueeze(0))[0]
        regrets = 100.0 * (self.best - values) / self.gain
        floor = 100.0 * (values[1:].min() - self.best[0]) / self.gain
        return {
            "loss": float(regrets[0]),
            "floor": float(floor),
            "worst_regret": float(regrets[1:].max()),
            "mean_regret": float(regrets[1:].mean()),
        }

    def best_given(self, C: Tensor) -> Tensor:
        """The best outcome in each of ``n`` contexts."""
        X = _filled(self.space, _SOBOL)
        return self.case.values(X, C).amax(0)


def _filled(space: SearchSpace, num: int) -> Tensor:
    lower, upper = space.bounds
    return lower + sobol(num, space.d_x, 3).double() * (upper - lower)


@cache
def truth_of(case: str) -> Truth:
    """Of a case, once in a process."""
    return Truth(CASES[case])
