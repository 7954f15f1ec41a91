"""The minimax approximation: the mean of a lower and an upper linear bound."""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.mmd import MaximumMeanDiscrepancy
from botorch_drbo.ambiguity.solution import Solution
from botorch_drbo.ambiguity.total_variation import TotalVariation
from botorch_drbo.ambiguity.wasserstein import Wasserstein


class MinimaxApproximation(AmbiguitySet):
    r"""An approximation of the worst case over another set by two straight lines.

    The worst-case value ``v`` of the other set is convex in the radius. It therefore
    lies above its tangent at zero and below the chord up to the radius at which the
    adversary reaches the minimum:

    .. math::
        \max(E - \epsilon S, f_{\min}) \le v(\epsilon) \le
        \max\Big(E - \frac{\epsilon}{\epsilon^*} (E - f_{\min}), f_{\min}\Big)

    with the reference mean ``E``, ``S = -delta(0)``, and ``eps* = d(p, point mass at
    the minimum)``; of tied minima the nearest one. The value is the mean of the two
    bounds: of all numbers between them, the one with the smallest largest error. It
    costs one sensitivity at radius zero and no worst case.

    For ``MaximumMeanDiscrepancy`` this sensitivity is a quadratic program if some atoms
    have no mass, because their weights may not become negative. In this case ``S`` is
    the sensitivity of the ball without ``q >= 0``,

    .. math:: S^2 = f^\top K^{-1} f - \frac{(1^\top K^{-1} f)^2}{1^\top K^{-1} 1},

    which is at least ``-delta(0)``, with equality if all atoms have mass. The tangent
    is still a lower bound, and costs two matrix products. With a ``jitter`` and a
    smooth kernel on ``n`` contexts these are of ``n x r`` matrices, ``r`` about 20.

    The returned weights sum to one and attain the value. Some may be negative, because
    the tangent ignores the sign constraint.

    Args:
        ambiguity_set: The set to approximate. Its sensitivity at radius zero must be
            finite: ``TotalVariation``, ``MaximumMeanDiscrepancy`` or ``Wasserstein``.
            Its radius is copied at construction; later changes have no effect.

    Raises:
        InputDataError: A set of another kind.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import MinimaxApproximation, TotalVariation
        >>> f, p = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([0.25, 0.5, 0.25])
        >>> ball = TotalVariation(radius=0.75)
        >>> ball.worst_case(f, p).value
        tensor(0.3750)
        >>> MinimaxApproximation(ball).worst_case(f, p).value  # of 0 and 0.75
        tensor(0.3750)

    [Tay2022minimax]_. Their public code sets rows to zero that share a batch with a
    row of another case, and takes ``S`` with the wrong sign.
    """

    def __init__(self, ambiguity_set: AmbiguitySet) -> None:
        if not isinstance(
            ambiguity_set, (TotalVariation, MaximumMeanDiscrepancy, Wasserstein)
        ):
            raise InputDataError(
                "`ambiguity_set` must be a TotalVariation, MaximumMeanDiscrepancy or "
                f"Wasserstein ball, got {type(ambiguity_set).__name__}: the others "
                "have no finite sensitivity at radius zero, or no point mass within "
                "reach. Use that set itself."
            )
        super().__init__(ambiguity_set.radius)
        self.ambiguity_set = ambiguity_set

    @property
    def holds_reference(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the approximated set holds the reference."""
        return self.ambiguity_set.holds_reference

    @property
    def diameter(self) -> float | None:
        """That of the set."""
        return self.ambiguity_set.diameter

    def _printed(self, name: str) -> AmbiguitySet:
        """The approximated set, with the radius of the approximation."""
        return self.original()

    def at(self, points: Tensor) -> AmbiguitySet:
        r"""The approximation for contexts at these positions.

        Args:
            points: The contexts, ``n x d_c``.

        Returns:
            The approximation; itself if the set knows its contexts.
        """
        there = self.ambiguity_set.at(points)
        if there is self.ambiguity_set:
            return self
        return MinimaxApproximation(there).with_radius(self.radius)

    def original(self) -> AmbiguitySet:
        r"""The approximated set, with the same radius.

        Returns:
            The set.
        """
        return self.ambiguity_set.with_radius(self.radius)

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        ball = self.ambiguity_set
        ball._check_sizes(num_values, num_weights)
        if isinstance(ball, Wasserstein) and num_weights != len(ball._ground):
            raise BotorchTensorDimensionError(
                f"The chord needs a row of `cost` for each of the {num_weights} "
                f"contexts, got {len(ball._ground)} rows."
            )

    def _with_outside(self, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return self.ambiguity_set._with_outside(values, weights)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""The mean of the two lines."""
        # Tangent at zero: max(E - radius S, min f).
        # The value is convex in the radius: above its tangent at zero, and below its
        # chord to the radius at which all mass is at the lowest score.
        start = self._at_zero(values, weights, torch.zeros_like(radius))
        along, start_gradient = start.direction, start.reference_gradient
        assert along is not None and start_gradient is not None  # those sets have both
        low = values.amin(-1, keepdim=True)
        worst_atom = self._nearest_vertex(weights, values == low)
        vertex = torch.zeros_like(values).scatter(-1, worst_atom, 1.0)
        f = values - low  # a large offset would cost digits
        drop = (start.weights * f).sum(-1, keepdim=True)  # E - min
        slope = start.multiplier.unsqueeze(-1)  # S
        descends = (radius * slope < drop).to(f)  # else the tangent met the minimum
        tangent = start.weights + radius * along
        tangent = torch.where(descends > 0, tangent, vertex)

        # Chord from E at zero to min f at eps* = d(p, vertex).
        away = vertex - start.weights
        chord_end, chord_end_gradient = self._distance_to_vertex(weights, worst_atom)
        saturated = radius >= chord_end
        chord_end = torch.where(chord_end > 0, chord_end, 1.0)
        share = torch.where(saturated, 1.0, radius / chord_end)
        # Both weights move along straight lines, so their derivatives are constants.
        share_slope = torch.where(saturated, 0.0, 1 / chord_end)  # d share / d radius
        chord = start.weights + share * away

        def gradient() -> Tensor:
            # Product rule: the end of the chord moves with the reference, too.
            gradient = (descends + 1 - share) * start_gradient()
            end_gradient = drop * share * share_slope * chord_end_gradient()
            return 0.5 * (gradient + end_gradient)

        # The mean of both lines.
        return Solution(
            weights=0.5 * (tangent + chord),
            multiplier=0.5 * (descends * slope + share_slope * drop).squeeze(-1),
            reference_gradient=gradient,
            direction=0.5 * (descends * along + share_slope * away),
        )

    def _at_zero(self, values: Tensor, weights: Tensor, zero: Tensor) -> Solution:
        """The worst case and its derivative at radius zero: the tangent."""
        ball = self.ambiguity_set
        if not isinstance(ball, MaximumMeanDiscrepancy):
            return ball.solve(values, weights, zero)
        slope, direction = ball.free_slope(values)
        return Solution(
            weights=weights,
            multiplier=slope,
            reference_gradient=lambda: values,
            direction=direction,
        )

    def _nearest_vertex(self, p: Tensor, allowed: Tensor) -> Tensor:
        """The atom, ``... x 1``, whose point mass is nearest to ``p``."""
        ball = self.ambiguity_set
        if isinstance(ball, TotalVariation):
            distance = -p
        elif isinstance(ball, Wasserstein):
            distance = p @ ball._ground.to(p)
        else:
            assert isinstance(ball, MaximumMeanDiscrepancy)
            distance = ball.centred.squared_distances(p)
        return torch.where(allowed, distance, torch.inf).argmin(-1, keepdim=True)

    def _distance_to_vertex(
        self, p: Tensor, atom: Tensor
    ) -> tuple[Tensor, Callable[[], Tensor]]:
        """``d(p, point mass)``, ``... x 1``, and its gradient in ``p``, ``... x n``."""
        ball = self.ambiguity_set
        if isinstance(ball, TotalVariation):
            vertex = torch.zeros_like(p).scatter(-1, atom, 1.0)
            return 2 * (1 - p.gather(-1, atom)), lambda: -2 * vertex
        if isinstance(ball, Wasserstein):
            cost = ball._ground.to(p).mT[atom.squeeze(-1)]  # ... x n
            return (p * cost).sum(-1, keepdim=True), lambda: cost
        assert isinstance(ball, MaximumMeanDiscrepancy)
        # |d|_K and its gradient K d / |d|_K, for d = p - e_i.
        difference = p.scatter(-1, atom, p.gather(-1, atom) - 1)
        distance = ball.centred.distance(difference)
        positive = torch.where(distance > 0, distance, 1.0)
        return distance, lambda: ball.centred.product(difference) / positive

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The distance of the set that is approximated.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """
        return self.ambiguity_set.distance(p, q)
