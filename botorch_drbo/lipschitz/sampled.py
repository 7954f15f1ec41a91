"""How fast a score can change with the context: a Lipschitz constant per decision."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor
from torch.nn import Module

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
_TINY = 1e-30


class LipschitzConstant(Module):
    r"""The largest gradient norm of a score in the context, for each decision.

    .. math:: L(x) = \max_{c \in C} \lVert \nabla_{\tilde c}\, s(x, c) \rVert_2

    where ``c~`` is the context scaled to the unit cube by ``context_bounds``, so that
    contexts in different units can be compared.

    The maximum is searched in two steps. The norm is computed by autograd at the
    support of the reference, a fixed Sobol set and the corners of the box; then the
    best ``num_starts`` contexts of each decision, apart from each other, climb for
    ``num_ascent_steps`` steps: each goes to the top of parabolas through the norms at a
    cross of neighbours, which shrinks by three from step to step. The best context seen
    counts, hence the result is a *lower* bound of the true ``L(x)``, never below the
    sampled maximum. ``lipschitz_upper_bound`` bounds it from the other side.

    ``L`` is differentiable in ``x``: by the envelope theorem its gradient is the
    partial derivative of the norm in ``x`` at the maximising context, a second
    derivative of the score.

    Args:
        context_bounds: The box ``C``, ``2 x d_c``.
        support: Contexts to look at besides the Sobol set, ``n x d_c``.
        num_sobol: Size of the Sobol set; by default 64, 128, 256, and 512 from
            ``d_c = 4`` on.
        num_starts: Contexts per decision that climb, by default ``1 + d_c``, at most 4.
        num_ascent_steps: Climbing steps, by default ``2 + d_c``; 0 keeps the best
            sampled context.
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
        num_sobol = check_count(
            64 * 2 ** min(d_c - 1, 3) if num_sobol is None else num_sobol, "num_sobol"
        )
        self.spacing = num_sobol ** (-1 / d_c)  # in widths of the box
        self.num_starts = check_count(
            min(1 + d_c, 4) if num_starts is None else num_starts, "num_starts"
        )
        self.num_ascent_steps = check_count(
            2 + d_c if num_ascent_steps is None else num_ascent_steps,
            "num_ascent_steps",
            minimum=0,
        )
        parts = [draw_sobol_samples(bounds, num_sobol, 1, seed=seed).squeeze(-2)]
        if d_c <= _MAX_CORNER_DIMENSIONS:
            unit = torch.tensor(list(product((0.0, 1.0), repeat=d_c))).to(bounds)
            parts.append(bounds[0] + unit * (bounds[1] - bounds[0]))
        if support is not None:
            check_inside(support, bounds, "support", "context_bounds")
            parts.append(support.detach().to(bounds))
        self.register_buffer("bounds", bounds)
        self.register_buffer("candidates", torch.cat(parts))

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
        starts, best = self._starts(candidates, norms)  # ... (x S) x R x d_c
        return self._climb(heights, starts, best)

    def _starts(self, candidates: Tensor, norms: Tensor) -> tuple[Tensor, Tensor]:
        """The steepest candidates that do not lie on each other's doorstep."""
        widths = (self.bounds[1] - self.bounds[0]).to(candidates)
        starts, heights = [], []
        for _ in range(min(self.num_starts, len(candidates))):
            height, index = norms.max(-1)  # ... (x S)
            start = candidates[index]  # ... (x S) x d_c
            away = ((candidates - start.unsqueeze(-2)) / widths).norm(dim=-1)
            norms = norms.masked_fill(away < _START_DISTANCE, 0.0)
            starts.append(start)
            heights.append(height)
        return torch.stack(starts, dim=-2), torch.stack(heights, dim=-1)

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
        return (gradient * widths).square().sum(-1).clamp_min(_TINY).sqrt()

    def _climb(
        self, norms: Callable[[Tensor], Tensor], starts: Tensor, heights: Tensor
    ) -> Tensor:
        """Climb by parabolas through a shrinking cross, all decisions at once."""
        d_c = starts.shape[-1]
        lower = self.bounds[0].to(starts)
        widths = (self.bounds[1] - self.bounds[0]).to(starts)
        arms = torch.eye(d_c, dtype=starts.dtype, device=starts.device)
        cross = torch.cat([torch.zeros_like(arms[:1]), arms, -arms])  # 2 d_c + 1 points
        reach = self.spacing / 2  # half way to a neighbour in the Sobol set
        best, highest = starts[..., :1, :], heights[..., :1]  # ... (x S) x 1 (x d_c)
        centre = (starts - lower) / widths  # ... (x S) x R x d_c
        for _ in range(self.num_ascent_steps):
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
