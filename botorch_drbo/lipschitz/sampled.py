"""How fast a score can change with the context: a Lipschitz constant per decision."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import (
    check_bounds,
    check_count,
    check_inside,
    check_nonnegative,
)
from botorch_drbo.lipschitz.climb import SlopeClimb
from botorch_drbo.sampling import sobol_in_box

Slopes = Callable[[Tensor | None], Tensor]
"""``None -> ... x M x d_c`` at the candidates; ``... x k x d_c -> ... x k x d_c`` at
contexts of each decision's own.

The slope of a score in the context, for decisions that are fixed; differentiable in
them. With an ensemble of ``S`` models ``... x S x k x d_c``, contexts too."""

_MAX_CORNER_DIMENSIONS = 6
# Between climbs, in spacings of the samples. On a line those are much closer.
_START_DISTANCE, _START_DISTANCE_ON_LINE = 1.2, 12.0
_COUNTS = {"num_sobol": 1, "num_starts": 1, "num_ascent_steps": 0}  # the least
# By context columns; with more than three as with three.
_DEFAULTS = {1: (128, 2, 4), 2: (256, 12, 12), 3: (512, 24, 12)}
_NEWTON_STEPS = 2
_MAX_NEWTON_STEP = 8.0  # in steps of the grid: longer than the stencil
# Lagrange interpolation on -2..2: values times this are the coefficients of 1, t, t^2
# and t^3 of the derivative of the quartic through them.
_STENCIL = (
    (1 / 12, -1 / 12, -1 / 4, 1 / 6),
    (-2 / 3, 4 / 3, 1 / 2, -2 / 3),
    (0.0, -5 / 2, 0.0, 1.0),
    (2 / 3, 4 / 3, -1 / 2, -2 / 3),
    (-1 / 12, -1 / 12, 1 / 4, 1 / 6),
)


class LipschitzConstant(Module):
    r"""The largest gradient norm of a score in the context, for each decision.

    .. math:: L(x) = \max_{c \in C} \lVert \nabla_{\tilde c}\, s(x, c) \rVert_2

    where ``c~`` is the context scaled to the unit cube by ``context_bounds``, so that
    contexts in different units can be compared.

    The maximum is searched by a multistart local search. The norm is computed at the
    support of the reference, a fixed Sobol set and the corners of the box. Then ascents
    start from the best ``num_starts`` contexts of each decision, apart from each other:
    a trust-region Newton method with active bounds (``SlopeClimb``), which gives up the
    worse half of them after each step, down to two. The best context evaluated counts,
    hence the result is a *lower* bound of the true ``L(x)``, never below the sampled
    maximum.
    ``lipschitz_upper_bound`` bounds it from the other side.

    On a line the Sobol set is an even grid, and the first step goes to the maximum of
    the quartic interpolant through five points of it: that takes no more norms, and
    where the score is smooth it is enough (``num_starts=1, num_ascent_steps=1``).

    ``L`` is differentiable in ``x``: by the envelope theorem its gradient is the
    partial derivative of the norm in ``x`` at the maximising context, a second
    derivative of the score. That theorem asks for a context at which the norm is
    stationary in the box, which is why climbs go all the way. It speaks of the first
    derivative only: a second one by autograd holds the maximising context fixed.

    Args:
        context_bounds: The box ``C``, ``2 x d_c``.
        support: Contexts to look at besides the Sobol set, ``n x d_c``.
        num_sobol: Size of the Sobol set; by default 128, 256, and 512 from ``d_c = 3``
            on.
        num_starts: Contexts per decision that climb, by default 2 on a line, 12 in two
            columns and 24 from ``d_c = 3`` on.
        num_ascent_steps: The most climbing steps, by default 4 on a line and 12
            otherwise, where half of that is the rule; 0 keeps the best sampled context.
        scales: By what the slope in each column of the unit cube is multiplied, not
            negative, ``d_c``; None for one. With ``r_j`` the slope is that per radius
            ``r_j`` of the column, in widths of its bounds.
        seed: Seed of the scrambled Sobol set, which is drawn once.

    Raises:
        InputDataError: Bounds reversed or not finite, support outside the bounds.

    Example:
        >>> bounds = torch.tensor([[0.0], [2.0]], dtype=torch.double)
        >>> lipschitz = LipschitzConstant(bounds)
        >>> x = torch.tensor([[[3.0]]], dtype=torch.double)  # one decision
        >>> def slopes(contexts=None):  # of x * sin(c): x * cos(c), steepest at c = 0
        ...     contexts = lipschitz.candidates if contexts is None else contexts
        ...     return x * contexts.cos()
        >>> lipschitz(slopes)  # times 2 - 0
        tensor([6.], dtype=torch.float64)

    In float32 ``L`` is as right as the slopes are. Where the model is nearly certain,
    ``sigma`` is a small difference of large numbers: with a noise of 1e-6 slopes, and
    ``L`` with them, were off by 3e-2 on a line. Use float64 there.

    [Micheli2025wdrbo]_, eq. 13. The authors' code computes ``L`` without a graph, so
    that their penalty has no gradient; this one has.
    """

    bounds: Tensor
    candidates: Tensor
    widths: Tensor
    scales: Tensor
    stencil: Tensor
    stencil_offsets: Tensor
    positions: Tensor

    def __init__(
        self,
        context_bounds: Tensor,
        support: Tensor | None = None,
        *,
        num_sobol: int | None = None,
        num_starts: int | None = None,
        num_ascent_steps: int | None = None,
        scales: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        bounds = check_bounds(context_bounds, "context_bounds").detach().clone()
        d_c = bounds.shape[-1]
        scales = bounds.new_ones(d_c) if scales is None else scales.detach().to(bounds)
        if scales.shape != (d_c,):
            raise BotorchTensorDimensionError(
                f"`scales` must have one entry for each of {d_c} columns, got shape "
                f"{tuple(scales.shape)}."
            )
        check_nonnegative(scales, "scales")
        given = (num_sobol, num_starts, num_ascent_steps)
        defaults = _DEFAULTS.get(d_c, _DEFAULTS[3])
        counts = [
            check_count(default if count is None else count, name, minimum=minimum)
            for count, default, (name, minimum) in zip(
                given, defaults, _COUNTS.items(), strict=True
            )
        ]
        self.num_sobol, self.num_starts, self.num_ascent_steps = counts
        self.spacing = self.num_sobol ** (-1 / d_c)  # in widths of the box
        # Two starts nearer than this are taken to climb the same peak.
        distance = _START_DISTANCE_ON_LINE if d_c == 1 else _START_DISTANCE
        self.start_distance = distance * self.spacing
        if d_c == 1:
            # On a line an even grid: its values are differentiated by a stencil. Else
            # Sobol points, and the corners, which they leave out.
            unit = torch.linspace(0.0, 1.0, self.num_sobol, dtype=torch.double)
            parts = [torch.lerp(bounds[0], bounds[1], unit.to(bounds).unsqueeze(-1))]
        else:
            parts = [sobol_in_box(self.num_sobol, bounds, seed)]
        if 1 < d_c <= _MAX_CORNER_DIMENSIONS:
            unit = torch.tensor(list(product((0.0, 1.0), repeat=d_c))).to(bounds)
            parts.append(bounds[0] + unit * (bounds[1] - bounds[0]))
        if support is not None:
            check_inside(support, bounds, "support", "context_bounds")
            parts.append(support.detach().to(bounds))
        self.register_buffer("bounds", bounds)
        self.register_buffer("candidates", torch.cat(parts))
        offsets = torch.arange(len(_STENCIL), device=bounds.device)
        derived = {
            "widths": bounds[1] - bounds[0],
            "scales": scales,
            "stencil": torch.tensor(_STENCIL, dtype=torch.double).to(bounds),
            "stencil_offsets": offsets - len(_STENCIL) // 2,
        }
        # In steps of the grid on a line, between its first and its last point.
        unit_points = (self.candidates - bounds[0]) / derived["widths"]
        derived["positions"] = (self.num_sobol - 1) * unit_points.squeeze(-1)
        for name, tensor in derived.items():
            self.register_buffer(name, tensor, persistent=False)
        self.climb = SlopeClimb(d_c, scales)

    def forward(self, slopes: Slopes) -> Tensor:
        r"""Evaluate ``L(x)``.

        Args:
            slopes: The slope of the score in the context; see ``Slopes``.

        Returns:
            ``L(x)``, shape ``...`` (for scores of an ensemble of S models,
            ``... x S``), in units of the score; differentiable where ``slopes`` is.
        """
        return self.steepest(slopes(self.maximizers(slopes)))

    def steepest(self, slopes: Tensor) -> Tensor:
        r"""The largest of some slopes, in units of the box.

        Args:
            slopes: ``... x k x d_c``.

        Returns:
            ``...``.
        """
        return self._norm(slopes).amax(-1)

    def maximizers(self, slopes: Slopes) -> Tensor:
        r"""Contexts among which the steepest one found is.

        Args:
            slopes: The slope of the score in the context; see ``Slopes``.

        Returns:
            The best context seen, and the ends of the climbs, for each decision and
            ensemble member: ``... (x S) x k x d_c``.
        """
        with torch.no_grad():
            # Danskin: L(x) has the gradient of the slope at the steepest context, which
            # is a constant. So the search needs no graph.
            norms = self._norm(slopes(None))  # ... (x S) x M
            starts, best = self._starts(norms)
            num_steps = self.num_ascent_steps - self._uses_grid_step
            if num_steps == 0:
                return torch.cat([best, starts], dim=-2)
            lower, upper = self.bounds.to(norms)
            widths = self.widths.to(norms)

            def unit_slopes(points: Tensor) -> Tensor:
                contexts = torch.lerp(lower, upper, points.flatten(-3, -2))
                return (slopes(contexts) * widths).reshape(points.shape)

            ends, maximizer, highest = self.climb(
                unit_slopes, (starts - lower) / widths, num_steps, self.spacing
            )
            # The climb ends at a point that was evaluated: it cannot be worse than
            # claimed.
            higher = (highest > norms.amax(-1, keepdim=True)).unsqueeze(-1)
            best = torch.where(higher, torch.lerp(lower, upper, maximizer), best)
            return torch.cat([best, torch.lerp(lower, upper, ends)], dim=-2)

    @property
    def _uses_grid_step(self) -> bool:
        """Whether the first step interpolates the norms of the grid."""
        on_line = self.bounds.shape[-1] == 1 and self.num_sobol >= len(_STENCIL)
        return on_line and self.num_ascent_steps > 0

    def _starts(self, norms: Tensor) -> tuple[Tensor, Tensor]:
        """The steepest candidates at least ``start_distance`` apart (greedy).

        Returns:
            Starts ``... (x S) x R x d_c``, on a line after their first step; and the
            best candidate, ``... (x S) x 1 x d_c``.
        """
        # Greedy: the steepest candidate, and then the steepest not near one of those.
        points = self.candidates.to(norms)  # M x d_c
        indices, available = [], norms
        for remaining in reversed(range(min(self.num_starts, len(points)))):
            index = available.argmax(-1)  # ... (x S)
            indices.append(index)
            if remaining:
                unit = points / self.widths.to(norms)
                offsets = unit - unit[index].unsqueeze(-2)  # ... (x S) x M x d_c
                near = offsets.square().sum(-1) < self.start_distance**2
                available = torch.where(near, 0.0, available)
        index = torch.stack(indices, -1)  # ... (x S) x R
        starts = points[index]  # ... (x S) x R x d_c
        best = starts[..., :1, :]
        if self._uses_grid_step:
            starts = self._grid_newton_step(norms, index)
        return starts, best

    def _grid_newton_step(self, norms: Tensor, index: Tensor) -> Tensor:
        """Newton's method on the quartic interpolant of five points of the grid.

        The points of the grid are the first candidates.
        """
        last, half_width = self.num_sobol - 1, len(_STENCIL) // 2
        # ... (x S) x R, in steps of the grid
        # A quartic through five norms, about the middle one; near an end the stencil is
        # moved inwards.
        position = self.positions.to(norms)[index]
        middle = position.round().clamp(half_width, last - half_width)
        stencil_offsets = self.stencil_offsets.to(middle.device)
        points = middle.long().unsqueeze(-1) + stencil_offsets  # ... (x S) x R x 5
        stencil_norms = norms.gather(-1, points.flatten(-2)).reshape(points.shape)
        derivative = stencil_norms @ self.stencil.to(norms)
        first, second, third, fourth = derivative.unbind(-1)  # ... (x S) x R
        third_twice, fourth_thrice = 2.0 * third, 3.0 * fourth
        position = position - middle
        low, high = (
            (position - 1.0).clamp_min(-half_width),
            (position + 1.0).clamp(-half_width, half_width),
        )
        tiny = torch.finfo(position.dtype).tiny
        for _ in range(_NEWTON_STEPS):
            # Horner: p' = c1 + c2 t + c3 t^2 + c4 t^3, p'' = c2 + 2 c3 t + 3 c4 t^2.
            slope = torch.addcmul(third, position, fourth)
            slope = torch.addcmul(second, position, slope)
            slope = torch.addcmul(first, position, slope)
            curvature = torch.addcmul(third_twice, position, fourth_thrice)
            curvature = torch.addcmul(second, position, curvature)
            # Newton: t - p' / p''. Where p'' >= 0 go uphill to the end of the interval.
            floor = (slope.abs() / _MAX_NEWTON_STEP).clamp_min(tiny)
            position = torch.addcdiv(position, slope, torch.maximum(-curvature, floor))
            position = position.clamp(low, high)
        fraction = ((middle + position) / last).clamp(0.0, 1.0).unsqueeze(-1)
        bounds = self.bounds.to(norms)
        return torch.lerp(bounds[0], bounds[1], fraction)

    def _norm(self, gradient: Tensor) -> Tensor:
        """Norm in the unit cube; its derivative at zero is zero, not NaN."""
        widths = self.widths.to(gradient) * self.scales.to(gradient)
        return torch.linalg.vector_norm(gradient * widths, dim=-1)
