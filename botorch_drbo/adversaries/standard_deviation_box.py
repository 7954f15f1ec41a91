"""The worst context within one standard deviation of the mean."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from botorch_drbo._validation import check_count, option
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem
from botorch_drbo.ambiguity import FullSimplex
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StandardDeviationBox(Adversary):
    r"""Every distribution on the box of one standard deviation around the mean.

    .. math:: \min \{ s(x, c) : m - \sigma_c \le c \le m + \sigma_c \}

    ``m`` and :math:`\sigma_c` are the mean and the population standard deviation, per
    coordinate, of the contexts seen so far, or of ``reference``. The box is clipped to
    the context bounds and filled with a Sobol set. (The public code of the two papers
    that compare with it samples ``[m - 3 s, m - s]`` instead.) For the worst case of a
    recommendation the lowest score in the box is searched for from that set.

    Args:
        num_contexts: Sobol points in the box; 1,024 in the experiments.
    """

    context_order: ClassVar[str | None] = (
        "its contexts are a mean and a standard deviation around it"
    )

    num_contexts: int = option(1024, check_count)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""Every distribution on the box."""
        space, data = state.space, state.contexts()
        lower, upper = space.context_bounds
        # A mean of equal numbers may differ from them by rounding.
        low = space.with_known((data.mean - data.std).clamp(lower, upper))
        high = space.with_known((data.mean + data.std).clamp(lower, upper))
        unit = sobol(self.num_contexts, space.d_c, state.seed).to(low)
        box = space.snap_contexts(torch.stack([low, high]))
        ends = box.tolist()
        values = {
            j: column[
                bisect_left(column, ends[0][j]) : bisect_right(column, ends[1][j])
            ]
            for j, column in space.context_values.items()
        }
        return WorstCaseProblem(
            contexts=ContextSet(space.snap_contexts(low + unit * (high - low))),
            ball=lambda points: FullSimplex(),
            box=box,
            values=values,
        )
