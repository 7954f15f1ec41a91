"""A constraint whose robust probability of being met has a closed form."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Independent, Uniform

from benchmarks.problems.laws import UnivariateMixture
from botorch_drbo._validation import check_nonnegative
from botorch_drbo.contexts import ContextSet
from botorch_drbo.test_functions.base import Optimum, RobustTestFunction
from botorch_drbo.test_functions.closed_form import unit_bounds


class Reservoir(RobustTestFunction):
    r"""The more water two reservoirs hold the better, and the sooner a flood spills.

    .. math::
        f(x, c) = .8 x_1 + .6 x_2 + .3 (.5 - c), \qquad
        g(x, c) = 1.05 - .5 (x_1^2 + x_2^2) - c, \qquad x, c \in [0, 1]

    The decision is how full the reservoirs are kept, the context is the inflow, and the
    one constraint is met where the inflow finds room: ``g(x, c) >= 0``. The optimiser
    is told that the inflow is uniform (``reference``). In truth a share of it is
    floods between .9 and 1. This law is within an l1 distance of 1.8 times that share.

    With ``a = 1.05 - .5 |x|^2`` the constraint is met with probability ``min(a, 1)``
    under the uniform law. The worst law within an l1 distance of ``radius``, a
    ``TotalVariation`` ball, moves the mass ``radius / 2`` to ``c = 1``. So

    .. math:: \pi(x) = \begin{cases} 1 & a \ge 1 \\
        \max\{ a - \text{radius} / 2,\, 0 \} & a < 1 \end{cases}

    and the robustly feasible decisions are those with
    :math:`|x|^2 \le 2 (1.05 - \min\{ \text{level} + \text{radius} / 2,\, 1 \})`: a disc
    around the empty reservoirs, which never is empty. The context moves the outcome of
    all decisions alike, so that ambiguity matters to the constraint alone.

    Args:
        flood_share: The share of floods in the true law.
        noise_std: Standard deviation of the observation noise of f; g has none.
        num_reference: The number of points of the reference distribution.

    Raises:
        InputDataError: A share that is not in [0, 1].

    Example:
        >>> function = Reservoir()
        >>> best = function.constrained_optimum(level=0.8, radius=0.2)
        >>> round(best.value, 4), [round(x, 3) for x in best.decision]
        (0.5342, [0.438, 0.329])
        >>> x = torch.tensor([best.decision], dtype=torch.double)
        >>> function.feasibility(x, radius=0.2)
        tensor([0.8000], dtype=torch.float64)

    Ours.
    """

    _GAIN: ClassVar[tuple[float, float]] = (0.8, 0.6)
    _ROOM = 1.05  # of empty reservoirs

    def __init__(
        self,
        *,
        flood_share: float = 0.1,
        noise_std: float = 0.0,
        num_reference: int = 100,
    ) -> None:
        share = float(check_nonnegative(flood_share, "flood_share"))
        if share > 1.0:
            raise InputDataError(f"`flood_share` must be in [0, 1], got {flood_share}.")
        everything, floods = (
            Uniform(torch.full((1,), low).double(), torch.ones(1).double(), False)
            for low in (0.0, 0.9)
        )
        law = UnivariateMixture(
            [everything, floods], torch.tensor([1.0 - share, share]).double()
        )
        self._mean_inflow = 0.5 + 0.45 * share
        full = sum(self._GAIN) + 0.3 * (0.5 - self._mean_inflow)
        middles = (torch.arange(num_reference).double() + 0.5) / num_reference
        super().__init__(
            "reservoir",
            bounds=unit_bounds(2),
            context_bounds=unit_bounds(1),
            context_law=Independent(law, 1),
            noise_std=noise_std,
            optimum=Optimum(full, (1.0, 1.0)),
            reference=ContextSet(middles.unsqueeze(-1)),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        gain = x @ x.new_tensor(self._GAIN)
        return gain + 0.3 * (0.5 - c.squeeze(-1))

    def constraints(self, X: Tensor, C: Tensor) -> Tensor:
        r"""Return the constraint, met where it is not negative.

        Args:
            X: Decisions, ``... x 2``.
            C: Contexts, ``... x 1``; leading dimensions broadcast with those of X.

        Returns:
            ``g``, ``... x 1``.
        """
        self._check_columns(X, self.d_x, "X")
        self._check_columns(C, self.d_c, "C")
        return self._room(X).unsqueeze(-1) - C.to(X)

    def feasibility(self, X: Tensor, radius: float = 0.0) -> Tensor:
        r"""Return the probability of meeting the constraint under the worst law.

        Args:
            X: Decisions, ``... x 2``.
            radius: The l1 distance from the uniform law; 0 for that law.

        Returns:
            ``pi``, ``...``.
        """
        self._check_columns(X, self.d_x, "X")
        room = self._room(X)
        mass = min(radius / 2.0, 1.0)
        return torch.where(room >= 1.0, 1.0, (room - mass).clamp_min(0.0))

    def constrained_optimum(self, level: float, radius: float = 0.0) -> Optimum:
        r"""Return the best decision among those that are robustly feasible.

        Args:
            level: The robust probability that is asked for.
            radius: The l1 distance from the uniform law; 0 for that law.

        Returns:
            Its expected value under the true law, and the decision.
        """
        reach = math.sqrt(2.0 * (self._ROOM - min(level + radius / 2.0, 1.0)))
        first, second = (reach * gain for gain in self._GAIN)
        if first > 1.0:  # the disc leaves the box
            first, second = 1.0, min(math.sqrt(reach**2 - 1.0), 1.0)
        gain = self._GAIN[0] * first + self._GAIN[1] * second
        return Optimum(gain + 0.3 * (0.5 - self._mean_inflow), (first, second))

    def _room(self, X: Tensor) -> Tensor:
        return self._ROOM - 0.5 * X.square().sum(-1)
