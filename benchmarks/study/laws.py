r"""The laws of the contexts after the data, and balls of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import torch
from scipy.stats import t as student
from torch import Tensor

from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol_in_box, sobol_inside
from botorch_drbo.test_functions.base import RobustTestFunction, quantiles

_POINTS_SEED = 20_261  # scrambles the Sobol points of all laws; any fixed number
_NUM_POINTS = 2**10
_NUM_EACH_WAY = 2**8
_NUM_ATOMS = 2**7  # of the centre of a ball
_NUM_ELSEWHERE = 2**9  # contexts to which the adversary of a ball may move mass
_DEGREES_OF_FREEDOM = 2.0  # of the heavy tails: no variance
_RARE = 0.1  # the probability of the bad regime
_REGIME_SIDE = 0.1  # of the box in the worst corner, in sides of the context box


class Deployment(ABC):
    """How good a decision is after the data, as one number."""

    @abstractmethod
    def value(self, function: RobustTestFunction, X: Tensor) -> Tensor:
        r"""The value of decisions ``M x d_x``, ``M``; higher is better."""


@final
@dataclass(frozen=True)
class Law(Deployment):
    """The expectation under one law.

    Args:
        points: Contexts, ``n x d_c``.
        weights: Their probabilities, ``n``.
    """

    points: Tensor = field(repr=False)
    weights: Tensor = field(repr=False)

    def value(self, function: RobustTestFunction, X: Tensor) -> Tensor:
        r"""The expectation."""
        return function.table(X, self.points) @ self.weights


@final
@dataclass(frozen=True)
class Ball(Deployment):
    """The worst expectation over a type-1 Wasserstein ball around the law of the data.

    Distances are in units of the context box.

    Args:
        radius: The radius.
        atoms: Contexts of equal weight, ``n x d_c``.
        elsewhere: Contexts to which mass may move, beside the atoms, ``m x d_c``.
        box: The context box, ``2 x d_c``.
    """

    radius: float
    atoms: Tensor = field(repr=False)
    elsewhere: Tensor = field(repr=False)
    box: Tensor = field(repr=False)

    def value(self, function: RobustTestFunction, X: Tensor) -> Tensor:
        r"""The worst case, by the exact solver."""
        points = torch.cat([self.atoms, self.elsewhere])
        unit = (points - self.box[0]) / (self.box[1] - self.box[0])
        n = len(self.atoms)
        cost = torch.cdist(
            unit[:n], unit, compute_mode="donot_use_mm_for_euclid_dist"
        )  # n x (n + m)
        ball = Wasserstein(self.radius, cost)
        weights = unit.new_full((n,), 1 / n)
        parts = [
            ball.worst_case(function.table(rows, points), weights).value
            for rows in X.split(256)
        ]
        return torch.cat(parts)


@dataclass(frozen=True)
class LawOfTheData:
    """The law that contexts are learnt from, as quasi-Monte Carlo points.

    Args:
        function: The test function.
    """

    function: RobustTestFunction

    def uniforms(self) -> Tensor:
        """Points of the unit cube, ``n x d_c``."""
        return sobol_inside(_NUM_POINTS, self.function.d_c, _POINTS_SEED)

    def quantiles(self) -> Tensor:
        """Contexts before they are clipped to the box, ``n x d_c``."""
        return quantiles(self.function.context_law, self.uniforms())

    def clipped(self, contexts: Tensor) -> Tensor:
        """Contexts inside the box."""
        return contexts.clamp(*self.function.context_bounds)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation of each coordinate, ``d_c``."""
        return self.clipped(self.quantiles()).std(0, correction=0)

    @property
    def radius(self) -> float:
        """One standard deviation in units of the box, the root of the mean square."""
        low, high = self.function.context_bounds
        return (self.deviation / (high - low)).square().mean().sqrt().item()

    def corners(self) -> Tensor:
        """The corners of the context box, ``2^d_c x d_c``."""
        sides = self.function.context_bounds.mT.unbind()
        corners = torch.cartesian_prod(*sides)
        return corners.reshape(-1, self.function.d_c)  # of one column it is a vector

    def directions(self) -> Tensor:
        """Unit shifts, in standard deviations: along each axis, and the diagonal."""
        d_c = self.function.d_c
        eye = torch.eye(d_c, dtype=torch.double)
        diagonal = torch.full((1, d_c), 1 / math.sqrt(d_c), dtype=torch.double)
        half = eye if d_c == 1 else torch.cat([eye, diagonal])
        return torch.cat([half, -half])

    def law(self, points: Tensor, weights: Tensor | None = None) -> Law:
        """A law on clipped points; equal weights unless they are given."""
        if weights is None:
            weights = points.new_full((len(points),), 1 / len(points))
        return Law(self.clipped(points), weights)

    def shifted(self, size: float, direction: Tensor) -> Law:
        """The law with its mean moved by ``size`` standard deviations."""
        return self.law(self.quantiles() + size * self.deviation * direction)

    def adverse_direction(self) -> Tensor:
        """The shift in which the best decision under the data earns least, ``d_c``."""
        x = self.function.optimal_decision.unsqueeze(0)
        earned = [
            self.shifted(1.0, direction).value(self.function, x).item()
            for direction in self.directions()
        ]
        return self.directions()[earned.index(min(earned))]

    def shifted_anywhere(self, size: float) -> Law:
        """The mixture of the shifts in all directions: the mean over them."""
        parts = [self.shifted(size, u).points for u in self.directions()]
        return self.law(torch.cat([points[:_NUM_EACH_WAY] for points in parts]))

    def heavy_tails(self) -> Law:
        """Student's t around the same mean, scaled by the deviation."""
        mean = self.clipped(self.quantiles()).mean(0)
        draws = student.ppf(self.uniforms().numpy(), _DEGREES_OF_FREEDOM)
        return self.law(mean + self.deviation * torch.from_numpy(draws))

    def rare_regime(self) -> Law:
        """With probability .1 a small box in the corner that is worst for the best."""
        low, high = self.function.context_bounds
        x = self.function.optimal_decision.unsqueeze(0)
        corner = self.corners()[self.function.table(x, self.corners()).argmin()]
        anywhere = low + self.uniforms() * (high - low)
        nearby = corner + _REGIME_SIDE * (anywhere - corner)
        points = torch.cat([self.quantiles(), nearby])
        share = torch.tensor([1 - _RARE, _RARE], dtype=torch.double) / _NUM_POINTS
        return self.law(points, share.repeat_interleave(_NUM_POINTS))

    def ball(self, size: float) -> Ball:
        """All laws within ``size`` standard deviations."""
        box = self.function.context_bounds
        d_c = self.function.d_c
        if d_c <= 2:
            side = round(_NUM_ELSEWHERE ** (1 / d_c))
            elsewhere = ContextSet.grid(box, side).points
        else:
            inside = sobol_in_box(_NUM_ELSEWHERE, box, _POINTS_SEED)
            elsewhere = torch.cat([inside, self.corners()])
        atoms = self.clipped(self.quantiles()[:_NUM_ATOMS])
        return Ball(size * self.radius, atoms, elsewhere, box)

    def deployments(self) -> Mapping[str, Deployment]:
        """Everything that decisions are judged by; the first is the data's own law."""
        adverse = self.adverse_direction()
        return {
            "nothing shifts": self.law(self.quantiles()),
            "mean moves 1 sd, any way": self.shifted_anywhere(1.0),
            "mean moves 1 sd, badly": self.shifted(1.0, adverse),
            "mean moves 2 sd, any way": self.shifted_anywhere(2.0),
            "mean moves 2 sd, badly": self.shifted(2.0, adverse),
            "heavy tails": self.heavy_tails(),
            "rare bad regime": self.rare_regime(),
            "worst within 1 sd": self.ball(1.0),
            "worst within 2 sd": self.ball(2.0),
        }
