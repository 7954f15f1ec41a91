"""How fast a score can change with the context: a Lipschitz constant per decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor
from torch.nn import Module

from botorch_drbo._arrays import arrays, take
from botorch_drbo._validation import check_bounds, check_count, check_inside

Score = Callable[[Tensor, Tensor], Tensor]
"""``(X: ... x d_x, contexts: ... x k x d_c) -> ... x k``, or ``... x S x k``."""

Gradient = Callable[[Tensor], Tensor | None]
"""``(contexts: k x d_c or ... x k x d_c) -> ... x k x d_c``, or None.

The gradient of a score in the context, for decisions that are fixed; differentiable in
them."""

_MAX_CORNER_DIMENSIONS = 6
_START_DISTANCE = 0.15  # between climbs, in widths of the box
_PAIRS_PER_CHUNK = 2**14  # decisions x contexts
_COUNTS = {"num_sobol": 1, "num_starts": 1, "num_ascent_steps": 0}  # the least
_NEWTON_STEPS = 2
_BEYOND = 8.0  # steps of the grid, which end outside the stencil from anywhere in it
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

    Example:
        >>> bounds = torch.tensor([[0.0], [2.0]], dtype=torch.double)
        >>> lipschitz = LipschitzConstant(bounds)
        >>> def score(X, contexts):  # x * sin(c): the steepest slope is |x|, at c = 0
        ...     return X * contexts.squeeze(-1).sin()
        >>> lipschitz(score, torch.tensor([[3.0]], dtype=torch.double))  # times 2 - 0
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
        r"""Draw the candidate contexts.

        Args:
            context_bounds: The box ``C``, ``2 x d_c``.
            support: Contexts to look at besides the Sobol set, ``n x d_c``.
            num_sobol: Size of the Sobol set.
            num_starts: Contexts per decision that climb.
            num_ascent_steps: Climbing steps.
            seed: Seed of the scrambled Sobol set.

        Raises:
            InputDataError: Bounds reversed or not finite, support outside the bounds.
        """
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

    def forward(
        self, score: Score, X: Tensor, gradient: Gradient | None = None
    ) -> Tensor:
        r"""Evaluate ``L(x)``.

        Args:
            score: The function of decision and context; see ``Score``.
            X: Decisions, ``... x d_x``.
            gradient: The gradient of ``score`` at ``X``, where it is known without
                autograd; see ``Gradient``. Where it says None, autograd is asked.

        Returns:
            ``L(x)``, shape ``...`` (for scores of an ensemble of S models,
            ``... x S``), in units of the score; differentiable in ``X``.
        """
        contexts = self.maximizers(score, X, gradient)
        wants_graph = torch.is_grad_enabled() and X.requires_grad
        known = gradient(contexts) if gradient else None
        if known is not None:
            return self._norm(known).max(dim=-1).values
        norms = self._norms(score, X, contexts, create_graph=wants_graph)
        return norms.max(dim=-1).values

    def maximizers(
        self, score: Score, X: Tensor, gradient: Gradient | None = None
    ) -> Tensor:
        r"""Contexts among which the steepest one found is.

        Args:
            score: The function of decision and context; see ``Score``.
            X: Decisions, ``... x d_x``.
            gradient: The gradient of ``score`` at ``X``; see ``forward``.

        Returns:
            The best context seen, and the ends of the climbs, for each decision and
            ensemble member: ``... (x S) x (1 + num_starts) x d_c``.
        """
        X = X.detach()
        candidates = self.candidates.to(X)

        def heights(contexts: Tensor) -> Tensor:
            if gradient is not None:
                with torch.no_grad():
                    known = gradient(contexts)
                if known is not None:
                    return self._norm(known)
            if contexts is candidates:
                return self._candidate_norms(score, X, candidates)
            return self._norms(score, X, contexts, create_graph=False)

        norms = heights(candidates)  # ... (x S) x M
        found = self._starts(norms, candidates)
        ends, best, highest = (torch.as_tensor(part).to(norms) for part in found)
        steps, reach = self.num_ascent_steps, self.spacing / 2
        if self._steps_on_grid:
            steps -= 1
        return self._climb(heights, ends, best, highest, steps, reach)

    @property
    def _steps_on_grid(self) -> bool:
        """Whether the first step needs no norms but those of the grid."""
        on_line = self.bounds.shape[-1] == 1 and self.num_sobol >= len(_STENCIL)
        return on_line and self.num_ascent_steps > 0

    @property
    def stays_on_grid(self) -> bool:
        """Whether the search needs no norms but those of the candidates."""
        return self._steps_on_grid and self.num_ascent_steps == 1

    def tops(self, norms: Any) -> Any:
        """``maximizers`` from the norms at all candidates, if it ``stays_on_grid``."""
        ends, best, _ = self._starts(norms, self.candidates)
        return np.concatenate([best, ends], axis=-2)

    def _starts(self, norms: Any, candidates: Tensor) -> tuple[Any, Any, Any]:
        """The steepest candidates that do not lie on each other's doorstep.

        Returns:
            Starts ``... (x S) x R x d_c``, on a line after their first step; the best
            candidate, ``... (x S) x 1 x d_c``; its norm, ``... (x S) x 1``.
        """
        xp, (heights, places, bounds, stencil) = arrays(
            math.prod(norms.shape),
            norms,
            candidates,
            self.bounds.to(candidates),
            self.stencil.to(candidates),
        )
        highest = xp.amax(heights, -1)[..., None]
        indices, rest = [], heights
        for remaining in reversed(range(min(self.num_starts, len(places)))):
            index = rest.argmax(-1)  # ... (x S)
            indices.append(index)
            if remaining:
                away = (places - places[index][..., None, :]) / (bounds[1] - bounds[0])
                near = (away * away).sum(-1) < _START_DISTANCE**2
                rest = xp.where(near, 0.0, rest)
        index = xp.stack(indices, -1)  # ... (x S) x R
        starts = places[index]  # ... (x S) x R x d_c
        best = starts[..., :1, :]
        if self._steps_on_grid:
            starts = self._step_on_grid(xp, heights, starts, index, bounds, stencil)
        return starts, best, highest

    def _step_on_grid(
        self,
        xp: ModuleType,
        heights: Any,
        starts: Any,
        index: Any,
        bounds: Any,
        stencil: Any,
    ) -> Any:
        """To the top of a polynomial through five points of the grid.

        Starts that are no points of the grid stay where they are.
        """
        last, reach, num = self.num_sobol - 1, len(_STENCIL) // 2, index.shape[-1]
        middle = index.clip(reach, last - reach)  # ... (x S) x R
        around = xp.stack([middle + i for i in range(-reach, reach + 1)], -1)
        near = take(heights, around.reshape(*index.shape[:-1], num * len(_STENCIL)))
        slopes = near.reshape(around.shape) @ stencil  # ... (x S) x R x 4
        first, second, third, fourth = (slopes[..., i] for i in range(4))
        at = 0.0 * heights[..., :1] + (index - middle)  # in steps of the grid
        low, high = (at - 1.0).clip(-reach), (at + 1.0).clip(-reach, reach)
        tiny = xp.finfo(at.dtype).tiny
        for _ in range(_NEWTON_STEPS):
            slope = first + at * (second + at * (third + at * fourth))
            bend = second + at * (2.0 * third + 3.0 * at * fourth)
            # Where it bends upwards the step goes to the end of the interval.
            least = abs(slope) / _BEYOND
            at = at + slope / xp.maximum(-bend, least).clip(tiny)
            at = xp.minimum(xp.maximum(at, low), high)
        place = ((middle + at) / last).clip(0.0, 1.0)[..., None]  # in the unit box
        tops = bounds[0] + place * (bounds[1] - bounds[0])
        return xp.where((index <= last)[..., None], tops, starts)

    def _candidate_norms(self, score: Score, X: Tensor, contexts: Tensor) -> Tensor:
        """Gradient norms at all candidates, ``... (x S) x M``, a few rows at a time."""
        rows = X.reshape(-1, X.shape[-1]).split(
            max(1, _PAIRS_PER_CHUNK // len(contexts))
        )
        norms = torch.cat([self._chunk_norms(score, chunk, contexts) for chunk in rows])
        return norms.reshape(*X.shape[:-1], *norms.shape[1:])

    def _chunk_norms(self, score: Score, X: Tensor, contexts: Tensor) -> Tensor:
        with torch.enable_grad():
            contexts = contexts.expand(*X.shape[:-1], -1, -1).clone().requires_grad_()
            scores = score(X, contexts)  # ... (x S) x M
            members = [scores] if scores.ndim == X.ndim else scores.unbind(-2)
            gradients = [
                torch.autograd.grad(member.sum(), contexts, retain_graph=True)[0]
                for member in members
            ]
        norms = [self._norm(gradient) for gradient in gradients]
        return norms[0] if scores.ndim == X.ndim else torch.stack(norms, dim=-2)

    def _norms(
        self, score: Score, X: Tensor, contexts: Tensor, *, create_graph: bool
    ) -> Tensor:
        """Gradient norms at contexts of each member's own, ``... (x S) x R``."""
        with torch.enable_grad():
            if not contexts.requires_grad:
                contexts = contexts.detach().requires_grad_()
            if contexts.ndim == X.ndim + 1:
                scores = score(X, contexts)  # ... x R
            else:
                size, count = contexts.shape[-3:-1]
                flat = contexts.reshape(*X.shape[:-1], size * count, -1)
                scores = score(X, flat)  # ... x S x (S * R)
                scores = scores.unflatten(-1, (size, count))
                scores = scores.diagonal(dim1=-3, dim2=-2)  # each member its own
            (gradient,) = torch.autograd.grad(
                scores.sum(), contexts, create_graph=create_graph
            )
            return self._norm(gradient)

    def _norm(self, gradient: Tensor) -> Tensor:
        """Norm in the unit cube; its derivative at zero is zero, not NaN."""
        widths = (self.bounds[1] - self.bounds[0]).to(gradient)
        return torch.linalg.vector_norm(gradient * widths, dim=-1)

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
