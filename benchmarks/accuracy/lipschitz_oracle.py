"""``L(x)`` and its gradient without code of the library: formulas, grid, L-BFGS."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from scipy.optimize import minimize
from torch import Tensor

_HILLS = 12  # of the grid that are climbed, for each decision ...
_WORTH = 0.85  # ... if they are as high as this share of the highest
_TIE = 1e-6  # of the value; a gradient is not defined where two places are as steep


class Steepest(NamedTuple):
    """``L(x)`` of each decision ``b``, its gradient ``b x d_x``, and a tie, ``b``."""

    value: Tensor
    gradient: Tensor
    tied: Tensor


class Oracle:
    r"""``L(x)`` of ``mu + w sigma`` over the unit box of contexts, the last columns.

    Args:
        model: Of one scaled RBF or Matern-5/2 kernel, with no transforms.
        width: ``w``.
        num_decisions: The first columns, ``d_x``.
    """

    def __init__(self, model: SingleTaskGP, width: float, num_decisions: int) -> None:
        model = model.double().eval()
        kernel = model.covar_module
        assert isinstance(kernel, ScaleKernel)
        assert isinstance(kernel.base_kernel, (RBFKernel, MaternKernel))
        self.rough = isinstance(kernel.base_kernel, MaternKernel)
        self.width, self.d_x = width, num_decisions
        with torch.no_grad():
            self.lengthscale = kernel.base_kernel.lengthscale.squeeze(0)
            self.variance = kernel.outputscale
            self.points = model.train_inputs[0]
            residual = model.train_targets - cast(Tensor, model.mean_module.constant)
            K, _ = self._kernel(self.points)
            noise = cast(Tensor, model.likelihood.noise)
            K = K + noise * torch.eye(len(K)).to(K)
            self.inverse = torch.cholesky_inverse(torch.linalg.cholesky(K))
            self.alpha = self.inverse @ residual

    def slopes(self, Z: Tensor) -> Tensor:
        """Of the score in the context, ``N x d`` to ``N x d_c``."""
        k, factor = self._kernel(Z)
        solved = k @ self.inverse  # N x t
        sigma = (self.variance - (solved * k).sum(-1)).clamp_min(1e-14).sqrt()
        weights = self.alpha - self.width * solved / sigma.unsqueeze(-1)
        along = weights * factor  # dk/dz_j = -factor (z_j - Z_j) / l_j^2
        moved = Z * along.sum(-1, keepdim=True) - along @ self.points
        return (-moved / self.lengthscale.square())[:, self.d_x :]

    def steepest(self, X: Tensor, per_side: int) -> Steepest:
        """On a grid, then by L-BFGS from the highest hills of it."""
        rows = [self._of_one(x, per_side) for x in X]
        return Steepest(*(torch.stack(part) for part in zip(*rows, strict=True)))

    def on_grid(self, x: Tensor, per_side: int) -> tuple[Tensor, Tensor]:
        """Length of the slope of one decision on a product grid: places, lengths."""
        d_c = self.points.shape[-1] - self.d_x
        side = torch.linspace(0, 1, per_side, dtype=torch.double)
        grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
        with torch.no_grad():
            parts = [self._lengths(x, part) for part in grid.split(8192)]
        return grid, torch.cat(parts)

    def _of_one(self, x: Tensor, per_side: int) -> tuple[Tensor, Tensor, Tensor]:
        grid, lengths = self.on_grid(x, per_side)
        d_c = grid.shape[-1]
        image = lengths.reshape(1, *[per_side] * d_c)
        pool = getattr(torch.nn.functional, f"max_pool{d_c}d")
        is_hill = (pool(image, 3, stride=1, padding=1) == image).flatten()
        is_hill &= lengths > _WORTH * lengths.max()
        order = lengths.where(is_hill, -1.0).argsort(descending=True)[:_HILLS]
        tops = [self._climb(x, c) for c in grid[order[is_hill[order]]]]
        tops.sort(key=lambda top: -top[0])
        value, place = tops[0]
        tied = any(
            other > value * (1 - _TIE) and (there - place).abs().max() > 1e-4
            for other, there in tops[1:]
        )
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(self._lengths(leaf, place[None]).sum(), leaf)
        return x.new_tensor(value), gradient, torch.tensor(tied)

    def _climb(self, x: Tensor, start: Tensor) -> tuple[float, Tensor]:
        def downhill(c: np.ndarray) -> tuple[float, np.ndarray]:
            leaf = torch.from_numpy(c).requires_grad_()
            value = -self._lengths(x, leaf[None]).log().sum()
            (slope,) = torch.autograd.grad(value, leaf)
            return value.item(), slope.numpy()

        found = minimize(
            downhill,
            start.numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(start),
            options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 200},
        )
        place = torch.from_numpy(found.x)
        return float(np.exp(-found.fun)), place

    def _lengths(self, x: Tensor, contexts: Tensor) -> Tensor:
        Z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
        return torch.linalg.vector_norm(self.slopes(Z), dim=-1)

    def _kernel(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Its rows ``N x t``, and minus its derivative by half the squared distance."""
        a, b = Z / self.lengthscale, self.points / self.lengthscale
        squared = (a.unsqueeze(1) - b).square().sum(-1)  # N x t
        if not self.rough:
            k = self.variance * (-0.5 * squared).exp()
            return k, k
        r = (5 * squared).clamp_min(1e-30).sqrt()
        decay = self.variance * (-r).exp()
        return decay * (1 + r + r.square() / 3), decay * 5 / 3 * (1 + r)
