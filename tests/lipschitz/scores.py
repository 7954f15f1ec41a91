"""Scores whose slopes are known, for searches of the steepest one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpytorch.kernels import Kernel, RBFKernel
from torch import Tensor

from botorch_drbo.lipschitz.sampled import LipschitzConstant
from botorch_drbo.posterior import marginal_posterior
from tests.models import make_model, observations

Score = Callable[[Tensor, Tensor], Tensor]
"""Decisions ``b x d_x`` and contexts ``b x k x d_c`` to scores ``b (x S) x k``."""


class Surface:
    """The upper confidence bound of a model of one decision column."""

    def __init__(self, model, d_c: int) -> None:
        self.model = model
        self.posterior = marginal_posterior(
            model, list(range(1, 1 + d_c)), method="exact"
        )
        self.view = self.posterior.over(torch.zeros(1, d_c, dtype=torch.double))

    def slopes(self, X: Tensor, contexts: Tensor) -> Tensor:
        """At contexts of each decision's own."""
        at = self.view.at(X).slopes(contexts)
        sigma = at.variance.clamp_min(1e-12).sqrt().unsqueeze(-1)
        return at.mean_slope + 0.75 * at.variance_slope / sigma

    def __call__(self, X: Tensor, contexts: Tensor) -> Tensor:
        mean, variance = self.posterior.moments(self.posterior.join(X, contexts))
        return mean + 1.5 * variance.clamp_min(1e-12).sqrt()


def make_score(
    d_c: int, kernel: Kernel | None = None, lengthscale: float = 0.35, **options
) -> Surface:
    """Of a model with one decision column."""
    d = 1 + d_c
    kernel = RBFKernel(ard_num_dims=d) if kernel is None else kernel
    generator = torch.Generator().manual_seed(3)
    Z = torch.rand(20, d, generator=generator, dtype=torch.double)
    Y = (6 * Z).sin().sum(-1, keepdim=True) + Z[:, :1] * (9 * Z[:, -1:]).cos()
    model = make_model(kernel, t=20, d=d, lengthscale=lengthscale, **options)
    model.set_train_data(Z, Y.squeeze(-1), strict=False)
    return Surface(model, d_c)


def observed_contexts(score: Surface) -> Tensor:
    return observations(score.model)[0][:, 1:]


def slopes_of(score: Score | Surface, search: LipschitzConstant, X: Tensor):
    """What a search asks for, by autograd unless the score knows its slopes."""

    def slopes(contexts: Tensor | None = None) -> Tensor:
        if contexts is None:
            contexts = search.candidates.to(X).expand(*X.shape[:-1], -1, -1)
        if isinstance(score, Surface):
            return score.slopes(X, contexts)
        with torch.enable_grad():
            leaf = contexts.detach().clone().requires_grad_()
            total = score(X, leaf).sum()
            (slope,) = torch.autograd.grad(total, leaf, create_graph=True)
        return slope if torch.is_grad_enabled() else slope.detach()

    return slopes


def steepest(score: Score | Surface, search: LipschitzConstant, X: Tensor) -> Tensor:
    return search(slopes_of(score, search, X))


def box(d_c: int) -> Tensor:
    return torch.tensor([[0.0], [1.0]], dtype=torch.double).repeat(1, d_c)


def grid_maximum(score: Surface, X: Tensor, d_c: int, per_side: int) -> Tensor:
    """Brute force on a product grid, by central differences of the score."""
    side = torch.linspace(0, 1, per_side, dtype=torch.double)
    grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
    with torch.no_grad():
        return differences(score, X, grid.expand(len(X), -1, -1)).amax(-1)


def differences(score: Surface, X: Tensor, contexts: Tensor) -> Tensor:
    """The length of the slope, ``b x k``, without any slope of ours."""
    h = 1e-5
    slopes = [
        (score(X, contexts + h * e) - score(X, contexts - h * e)) / (2 * h)
        for e in torch.eye(contexts.shape[-1], dtype=torch.double)
    ]
    return torch.stack(slopes).norm(dim=0)


def polished_maximum(score: Surface, X: Tensor, d_c: int, per_side: int) -> Tensor:
    """On the grid, then on ever smaller cubes about its eight best hills."""
    side = torch.linspace(0, 1, per_side, dtype=torch.double)
    grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
    corners = torch.linspace(-1, 1, 9, dtype=torch.double)
    cube = torch.cartesian_prod(*[corners] * d_c).reshape(-1, d_c)
    with torch.no_grad():
        heights = differences(score, X, grid.expand(len(X), -1, -1))
        best = heights.amax(-1)
        for _ in range(8):
            centre = grid[heights.argmax(-1)]  # b x d_c
            width = 1.5 / (per_side - 1)
            near = (grid - centre.unsqueeze(-2)).abs().amax(-1) < 2 * width
            heights = torch.where(near, 0.0, heights)
            for _ in range(10):
                points = (centre.unsqueeze(-2) + width * cube).clamp(0.0, 1.0)
                top, index = differences(score, X, points).max(-1)
                centre = points[torch.arange(len(X)), index]
                best, width = torch.maximum(best, top), 0.4 * width
    return best
