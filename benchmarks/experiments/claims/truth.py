"""True properties of a case: three laws, their scales, the value of robustness.

Nothing here knows a model: decisions are searched for on the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from benchmarks.experiments.claims.cases import CASES
from benchmarks.study.laws import Ball, Deployment, LawOfTheData
from benchmarks.study.truth import Scale, search_best, truths
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.test_functions.base import RobustTestFunction

SETTLED, SHIFTED, RARE = "nothing shifts", "mean moves 2 sd, badly", "rare bad regime"
_NUM_ATOMS = 2**6  # of the centre of the ball
_NUM_ELSEWHERE = 2**8  # contexts to which its adversary may move mass


@dataclass(frozen=True)
class Known:
    """What the robust decision is worth to somebody who knows the function.

    Args:
        gain: The loss of the plain decision under the shift, less that of the robust
            one, in percent of a blind guess's loss under that shift.
        price: The loss of the robust decision if nothing shifts, in percent.
    """

    gain: float
    price: float


@dataclass(frozen=True, eq=False)
class Truth:
    """A function that is known everywhere."""

    function: RobustTestFunction

    @cached_property
    def laws(self) -> Mapping[str, Deployment]:
        """What decisions are judged by; the first is the law that is learnt from."""
        data = LawOfTheData(self.function)
        shifted = data.shifted(2.0, data.adverse_direction())
        return {
            SETTLED: data.law(data.quantiles()),
            SHIFTED: shifted,
            RARE: data.rare_regime(),
        }

    @cached_property
    def ball(self) -> Ball:
        """The ball of one standard deviation in each column, around the law."""
        data, box = LawOfTheData(self.function), self.function.context_bounds
        d_c = self.function.d_c
        if d_c <= 2:
            side = round(_NUM_ELSEWHERE ** (1 / d_c))
            elsewhere = ContextSet.grid(box, side).points
        else:
            elsewhere = sobol_in_box(_NUM_ELSEWHERE, box, 0)
        atoms = data.clipped(data.quantiles()[:_NUM_ATOMS])
        # Distances are in widths of this box: in standard deviations.
        unit = torch.stack([torch.zeros_like(data.deviation), data.deviation])
        return Ball(1.0, atoms, elsewhere, unit)

    @cached_property
    def _best(self) -> Mapping[str, tuple[Tensor, float, float]]:
        return {name: self._searched(law.value) for name, law in self.laws.items()}

    def _searched(
        self, value: Callable[[RobustTestFunction, Tensor], Tensor]
    ) -> tuple[Tensor, float, float]:
        function = self.function
        start = function.optimal_decision.unsqueeze(0)  # its search takes slopes
        with torch.no_grad():
            return search_best(lambda X: value(function, X), function.bounds, start)

    def scale(self, law: str) -> Scale:
        """From values under a law to losses."""
        _, best, guess = self._best[law]
        return Scale(best, guess)

    def losses(self, X: Tensor) -> Mapping[str, list[float]]:
        """The losses of decisions ``M x d_x`` under each law, in percent."""
        laws = self.laws  # the search for the best decision takes slopes
        with torch.no_grad():
            values = {name: law.value(self.function, X) for name, law in laws.items()}
        return {
            name: [self.scale(name).loss(value) for value in found.tolist()]
            for name, found in values.items()
        }

    @cached_property
    def robust_decision(self) -> Tensor:
        """The decision with the best worst case over the ball, ``d_x``."""
        return self._searched(self.ball.value)[0]

    @cached_property
    def known(self) -> Known:
        """What robustness is worth with the function known."""
        plain = self._best[SETTLED][0]
        losses = self.losses(torch.stack([plain, self.robust_decision]))
        shifted, settled = losses[SHIFTED], losses[SETTLED]
        return Known(gain=shifted[0] - shifted[1], price=settled[1] - settled[0])


truth_of = truths(CASES, lambda case, seed: Truth(case.make(seed)))
"""What is true of a case under a seed."""
