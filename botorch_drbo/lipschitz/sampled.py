"""How fast a score can change with the context: a Lipschitz constant per decision."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_bounds, check_inside

Score = Callable[[Tensor, Tensor], Tensor]
"""``(X: ... x d_x, contexts: ... x k x d_c) -> ... x k``, or ``... x S x k``."""

_MAX_CORNER_DIMENSIONS = 6
_START_DISTANCE = 0.15  # between climbs, in widths of the box
_PAIRS_PER_CHUNK = 4096  # decisions x contexts; small enough to stay in cache
_RELATIVE_GAIN = 1e-12  # a climb that promises less has arrived
_TINY = 1e-30


class LipschitzConstant(Module):
    r"""The largest gradient norm of a score in the context, for each decision.

    .. math:: L(x) = \max_{c \in C} \lVert \nabla_{\tilde c}\, s(x, c) \rVert_2

    where ``c~`` is the context scaled to the unit cube by ``context_bounds``, so that
    contexts in different units can be compared.

    The maximum is searched in two steps. The norm is computed by autograd at the
    support of the reference, a fixed Sobol set and the corners of the box; then the
    best ``num_starts`` contexts of each decision climb for ``num_ascent_steps``
    projected quasi-Newton (BFGS) steps that accept improvements only. What comes out
    is attained at a context, hence a *lower* bound of the true ``L(x)``, never below
    the sampled maximum. ``lipschitz_upper_bound`` bounds it from the other side.

    ``L`` is differentiable in ``x``: by the envelope theorem its gradient is the
    partial derivative of the norm in ``x`` at the maximising context, a second
    derivative of the score.

    Args:
        context_bounds: The box ``C``, ``2 x d_c``.
        support: Contexts to look at besides the Sobol set, ``n x d_c``.
        num_sobol: Size of the Sobol set; by default 64 times ``min(d_c, 4)``.
        num_starts: Contexts per decision that climb.
        num_ascent_steps: Climbing steps; 0 keeps the best sampled context.
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
        num_starts: int = 3,
        num_ascent_steps: int = 10,
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
        if num_sobol is None:
            num_sobol = 64 * min(d_c, 4)
        parts = [draw_sobol_samples(bounds, num_sobol, 1, seed=seed).squeeze(-2)]
        if d_c <= _MAX_CORNER_DIMENSIONS:
            unit = torch.tensor(list(product((0.0, 1.0), repeat=d_c))).to(bounds)
            parts.append(bounds[0] + unit * (bounds[1] - bounds[0]))
        if support is not None:
            check_inside(support, bounds, "support", "context_bounds")
            parts.append(support.detach().to(bounds))
        self.register_buffer("bounds", bounds)
        self.register_buffer("candidates", torch.cat(parts))
        self.num_starts = num_starts
        self.num_ascent_steps = num_ascent_steps

    def forward(self, score: Score, X: Tensor) -> Tensor:
        r"""Evaluate ``L(x)``.

        Args:
            score: The function of decision and context; see ``Score``.
            X: Decisions, ``... x d_x``.

        Returns:
            ``L(x)``, shape ``...`` (for scores of an ensemble of S models,
            ``... x S``), in units of the score; differentiable in ``X``.
        """
        contexts = self.maximizer(score, X.detach())
        wants_graph = torch.is_grad_enabled()
        norms = self._norms(score, X, contexts, create_graph=wants_graph)
        return norms.squeeze(-1)

    def maximizer(self, score: Score, X: Tensor) -> Tensor:
        r"""The steepest context found for each decision.

        Args:
            score: The function of decision and context; see ``Score``.
            X: Decisions, ``... x d_x``.

        Returns:
            One context per decision and ensemble member, ``... (x S) x 1 x d_c``.
        """
        X = X.detach()
        candidates = self.candidates.to(X)
        norms = self._candidate_norms(score, X, candidates)  # ... (x S) x M
        contexts, norms = self._starts(candidates, norms)  # ... (x S) x R x d_c
        if self.num_ascent_steps:
            contexts, norms = self._ascend(score, X, contexts, norms)
        best = norms.argmax(-1)[..., None, None]
        return contexts.gather(-2, best.expand(*best.shape[:-1], contexts.shape[-1]))

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

    def _ascend(
        self, score: Score, X: Tensor, contexts: Tensor, norms: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Climb with projected BFGS in the unit cube, all decisions at once."""
        lower, widths = self.bounds[0].to(X), (self.bounds[1] - self.bounds[0]).to(X)

        def value_and_slope(unit: Tensor) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                unit = unit.detach().requires_grad_()
                height = self._norms(score, X, lower + unit * widths, create_graph=True)
                if not height.requires_grad:  # a score linear in the context
                    return height, torch.zeros_like(unit)
                (slope,) = torch.autograd.grad(height.sum(), unit)
            return height.detach(), slope

        unit = (contexts - lower) / widths  # ... (x S) x R x d_c
        height, slope = value_and_slope(unit)
        inverse_hessian = torch.eye(unit.shape[-1]).to(unit).expand(*unit.shape, -1)
        reach = torch.full_like(height, 0.1)  # longest step, in widths of the box
        fresh = torch.ones_like(height, dtype=torch.bool)  # no curvature seen yet
        for _ in range(self.num_ascent_steps):
            stuck = ((unit <= 0) & (slope < 0)) | ((unit >= 1) & (slope > 0))
            free = slope.masked_fill(stuck, 0.0)
            step = (inverse_hessian @ free.unsqueeze(-1)).squeeze(-1)
            step = step.masked_fill(stuck, 0.0)
            length = step.norm(dim=-1)
            factor = reach / length.clamp_min(_TINY)
            factor = torch.where(fresh, factor, factor.clamp_max(1.0))
            gain = factor * (free * step).sum(-1)  # expected from the slope
            if bool((gain <= _RELATIVE_GAIN * height).all()):
                break
            trial = (unit + factor.unsqueeze(-1) * step).clamp(0.0, 1.0)
            trial_height, trial_slope = value_and_slope(trial)
            better = trial_height > height
            inverse_hessian, valid = _bfgs_update(
                inverse_hessian, trial - unit, slope - trial_slope, fresh
            )
            fresh = fresh & ~valid
            unit = torch.where(better.unsqueeze(-1), trial, unit)
            slope = torch.where(better.unsqueeze(-1), trial_slope, slope)
            height = torch.where(better, trial_height, height)
            moved = (factor * length).clamp_max(1.0)
            reach = torch.where(better, (2 * reach).clamp_max(0.5), moved / 4)
        return lower + unit * widths, torch.maximum(height, norms)


def _bfgs_update(
    inverse: Tensor, step: Tensor, change: Tensor, fresh: Tensor
) -> tuple[Tensor, Tensor]:
    """One BFGS update of ``... x d x d`` inverses, and where it was possible.

    ``change`` is the slope before minus the slope after: positive along the step where
    the function is concave. Elsewhere the update is skipped. The first one also sets
    the scale.
    """
    s, y = step.unsqueeze(-1), change.unsqueeze(-1)
    curvature = (s * y).sum((-1, -2), keepdim=True)  # ... x 1 x 1
    y_squared = y.square().sum((-1, -2), keepdim=True)
    s_squared = s.square().sum((-1, -2), keepdim=True)
    valid = curvature > 1e-10 * (s_squared * y_squared).sqrt()
    one = torch.ones_like(curvature)
    identity = torch.eye(s.shape[-2]).to(s)
    scale = curvature / torch.where(valid, y_squared, one)
    inverse = torch.where(fresh[..., None, None] & valid, scale * identity, inverse)
    rho = 1.0 / torch.where(valid, curvature, one)
    left = identity - rho * s @ y.mT
    updated = left @ inverse @ left.mT + rho * s @ s.mT
    return torch.where(valid, updated, inverse), valid[..., 0, 0]
