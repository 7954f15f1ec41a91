"""How fast a score can change with the context: a Lipschitz constant per decision."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_bounds, check_count, check_inside

Slopes = Callable[[Tensor | None], Tensor]
"""``None -> ... x M x d_c`` at the candidates; ``... x k x d_c -> ... x k x d_c`` at
contexts of each decision's own.

The slope of a score in the context, for decisions that are fixed; differentiable in
them. With an ensemble of ``S`` models ``... x S x k x d_c``, contexts too."""

_MAX_CORNER_DIMENSIONS = 6
_START_DISTANCE = 0.15  # between climbs, in widths of the box
_TINY = 1e-30
_COUNTS = {"num_sobol": 1, "num_starts": 1, "num_ascent_steps": 0}  # the least
_NEWTON_STEPS = 2
# Values at -2..2 times this are the derivative of the polynomial through them, as
# coefficients of 1, t, t^2 and t^3.
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

    The maximum is searched in two steps. The norm is computed at the support of the
    reference, a fixed Sobol set and the corners of the box; then the best
    ``num_starts`` contexts of each decision, apart from each other, climb for
    ``num_ascent_steps`` steps: each goes to the top of parabolas through the norms at a
    cross of neighbours, which shrinks by three from step to step. The best context seen
    counts, hence the result is a *lower* bound of the true ``L(x)``, never below the
    sampled maximum. ``lipschitz_upper_bound`` bounds it from the other side.

    On a line the Sobol set is an even grid, and the first step goes to the top of the
    polynomial through five points of it: that takes no more norms, and where the score
    is smooth it is enough (``num_starts=1, num_ascent_steps=1``).

    ``L`` is differentiable in ``x``: by the envelope theorem its gradient is the
    partial derivative of the norm in ``x`` at the maximising context, a second
    derivative of the score.

    Args:
        context_bounds: The box ``C``, ``2 x d_c``.
        support: Contexts to look at besides the Sobol set, ``n x d_c``.
        num_sobol: Size of the Sobol set; by default 128, 128, 256, and 512 from
            ``d_c = 4`` on.
        num_starts: Contexts per decision that climb, by default ``1 + d_c``, at most 4.
        num_ascent_steps: Climbing steps, by default four on a line and ``2 + d_c``
            otherwise; 0 keeps the best sampled context.
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

    [Micheli2025wdrbo]_, eq. 13. The authors' code computes ``L`` without a graph, so
    that their penalty has no gradient; this one has.
    """

    bounds: Tensor
    candidates: Tensor
    stencil: Tensor

    def __init__(
        self,
        context_bounds: Tensor,
        support: Tensor | None = None,
        *,
        num_sobol: int | None = None,
        num_starts: int | None = None,
        num_ascent_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        bounds = check_bounds(context_bounds, "context_bounds").detach().clone()
        d_c = bounds.shape[-1]
        defaults = (128, 2, 4)  # on a line
        if d_c > 1:
            defaults = 64 * 2 ** min(d_c - 1, 3), min(1 + d_c, 4), 2 + d_c
        given = (num_sobol, num_starts, num_ascent_steps)
        counts = [
            check_count(default if count is None else count, name, minimum=minimum)
            for count, default, (name, minimum) in zip(
                given, defaults, _COUNTS.items(), strict=True
            )
        ]
        self.num_sobol, self.num_starts, self.num_ascent_steps = counts
        self.spacing = self.num_sobol ** (-1 / d_c)  # in widths of the box
        if d_c == 1:
            unit = torch.linspace(0.0, 1.0, self.num_sobol, dtype=torch.double)
            parts = [torch.lerp(bounds[0], bounds[1], unit.to(bounds).unsqueeze(-1))]
        else:
            draws = draw_sobol_samples(bounds, self.num_sobol, 1, seed=seed)
            parts = [draws.squeeze(-2)]
        if 1 < d_c <= _MAX_CORNER_DIMENSIONS:
            unit = torch.tensor(list(product((0.0, 1.0), repeat=d_c))).to(bounds)
            parts.append(bounds[0] + unit * (bounds[1] - bounds[0]))
        if support is not None:
            check_inside(support, bounds, "support", "context_bounds")
            parts.append(support.detach().to(bounds))
        self.register_buffer("bounds", bounds)
        self.register_buffer("candidates", torch.cat(parts))
        stencil = torch.tensor(_STENCIL, dtype=torch.double).to(bounds)
        self.register_buffer("stencil", stencil, persistent=False)

    def forward(self, slopes: Slopes) -> Tensor:
        r"""Evaluate ``L(x)``.

        Args:
            slopes: The slope of the score in the context; see ``Slopes``.

        Returns:
            ``L(x)``, shape ``...`` (for scores of an ensemble of S models,
            ``... x S``), in units of the score; differentiable where ``slopes`` is.
        """
        return self._norm(slopes(self.maximizers(slopes))).amax(-1)

    def maximizers(self, slopes: Slopes) -> Tensor:
        r"""Contexts among which the steepest one found is.

        Args:
            slopes: The slope of the score in the context; see ``Slopes``.

        Returns:
            The best context seen, and the ends of the climbs, for each decision and
            ensemble member: ``... (x S) x (1 + num_starts) x d_c``.
        """
        with torch.no_grad():
            norms = self._norm(slopes(None))  # ... (x S) x M
            starts, best, highest = self._starts(norms)
            steps, reach = self.num_ascent_steps, self.spacing / 2
            if self._steps_on_grid:
                steps -= 1

            def heights(contexts: Tensor) -> Tensor:
                return self._norm(slopes(contexts))

            return self._climb(heights, starts, best, highest, steps, reach)

    @property
    def _steps_on_grid(self) -> bool:
        """Whether the first step needs no norms but those of the grid."""
        on_line = self.bounds.shape[-1] == 1 and self.num_sobol >= len(_STENCIL)
        return on_line and self.num_ascent_steps > 0

    def _starts(self, norms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The steepest candidates that do not lie on each other's doorstep.

        Returns:
            Starts ``... (x S) x R x d_c``, on a line after their first step; the best
            candidate, ``... (x S) x 1 x d_c``; its norm, ``... (x S) x 1``.
        """
        places = self.candidates.to(norms)  # M x d_c
        widths = (self.bounds[1] - self.bounds[0]).to(norms)
        highest = norms.amax(-1, keepdim=True)
        indices, rest = [], norms
        for remaining in reversed(range(min(self.num_starts, len(places)))):
            index = rest.argmax(-1)  # ... (x S)
            indices.append(index)
            if remaining:
                away = (places - places[index].unsqueeze(-2)) / widths
                near = away.square().sum(-1) < _START_DISTANCE**2  # ... (x S) x M
                rest = torch.where(near, 0.0, rest)
        index = torch.stack(indices, -1)  # ... (x S) x R
        starts = places[index]  # ... (x S) x R x d_c
        best = starts[..., :1, :]
        if self._steps_on_grid:
            starts = self._step_on_grid(norms, starts, index)
        return starts, best, highest

    def _step_on_grid(self, norms: Tensor, starts: Tensor, index: Tensor) -> Tensor:
        """To the top of a polynomial through five points of the grid.

        Starts that are no points of the grid stay where they are.
        """
        last, reach = self.num_sobol - 1, len(_STENCIL) // 2
        bounds, stencil = self.bounds.to(norms), self.stencil.to(norms)
        middle = index.clamp(reach, last - reach)  # ... (x S) x R
        around = torch.stack([middle + i for i in range(-reach, reach + 1)], -1)
        near = norms.gather(-1, around.flatten(-2)).reshape(around.shape)
        first, second, third, fourth = (near @ stencil).unbind(-1)  # ... (x S) x R
        at = (index - middle).to(norms)  # in steps of the grid
        low, high = (at - 1.0).clamp_min(-reach), (at + 1.0).clamp(-reach, reach)
        for _ in range(_NEWTON_STEPS):
            slope = first + at * (second + at * (third + at * fourth))
            bend = second + at * (2.0 * third + 3.0 * at * fourth)
            # Where it bends upwards the step goes to the end of the interval.
            at = at + slope / (-bend).clamp_min(_TINY)
            at = torch.minimum(torch.maximum(at, low), high)
        place = ((middle + at) / last).clamp(0.0, 1.0).unsqueeze(-1)  # in the unit box
        tops = torch.lerp(bounds[0], bounds[1], place)
        return torch.where((index <= last).unsqueeze(-1), tops, starts)

    def _norm(self, gradient: Tensor) -> Tensor:
        """Norm in the unit cube; its derivative at zero is zero, not NaN."""
        if gradient.shape[-1] == 1:
            return (
                (gradient * (self.bounds[1] - self.bounds[0]).to(gradient))
                .abs()
                .squeeze(-1)
            )
        widths = (self.bounds[1] - self.bounds[0]).to(gradient)
        return (gradient * widths).square().sum(-1).clamp_min(_TINY).sqrt()

    def _climb(
        self,
        norms: Callable[[Tensor], Tensor],
        starts: Tensor,
        best: Tensor,
        highest: Tensor,
        num_steps: int,
        reach: float,
    ) -> Tensor:
        """Climb by parabolas through a shrinking cross, all decisions at once.

        The first cross has arms of ``reach`` widths of the box.
        """
        if num_steps == 0:
            return torch.cat([best, starts], dim=-2)
        d_c = starts.shape[-1]
        lower = self.bounds[0].to(starts)
        widths = (self.bounds[1] - self.bounds[0]).to(starts)
        arms = torch.eye(d_c, dtype=starts.dtype, device=starts.device)
        cross = torch.cat([torch.zeros_like(arms[:1]), arms, -arms])  # 2 d_c + 1 points
        centre = (starts - lower) / widths  # ... (x S) x R x d_c
        for _ in range(num_steps):
            points = (centre.unsqueeze(-2) + reach * cross).clamp(0.0, 1.0)
            tried = (lower + points * widths).flatten(-3, -2)  # ... (x S) x R (2 d_c+1)
            heights = norms(tried)
            top, index = heights.max(dim=-1, keepdim=True)
            index = index.unsqueeze(-1).expand(*index.shape, d_c)
            best = torch.where(
                (top > highest).unsqueeze(-1), tried.gather(-2, index), best
            )
            highest = torch.maximum(top, highest)
            heights = heights.unflatten(-1, points.shape[-3:-1])
            middle, up, down = heights.split([1, d_c, d_c], dim=-1)
            bend = 2 * middle - up - down
            vertex = (up - down) / (2 * torch.where(bend > 0, bend, torch.inf))
            uphill = 2 * (up - down).sign()
            step = torch.where(bend > 0, vertex, uphill).clamp(-2.0, 2.0)
            centre = (centre + reach * step).clamp(0.0, 1.0)
            reach = reach / 3
        return torch.cat([best, lower + centre * widths], dim=-2)
