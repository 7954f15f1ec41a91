"""The inner problems of the speed table, and how a cvxpy user would write each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch.cvxpylayer import CvxpyLayer
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    TotalVariation,
    Wasserstein,
)

Build = Callable[[], tuple[cp.Problem, cp.Parameter, cp.Expression]]
"""The problem, its parameter (the scores) and the worst-case weights."""


@dataclass(frozen=True)
class InnerProblem:
    """One batch of worst-case problems, for three ways of solving it.

    Attributes:
        name: What the report calls it.
        ambiguity_set: Our solver.
        values: Scores, ``b x n``.
        weights: Reference weights, ``n``.
        build: The same problem in cvxpy, DPP in the scores.
        layer_rows: How many rows the layer solves; its time counts per row.
        loop_rows: How many rows the loop solves.
        layer_target: How many times as fast as the layer we want to be.
        loop_target: How many times as fast as the loop.
    """

    name: str
    ambiguity_set: AmbiguitySet
    values: Tensor
    weights: Tensor
    build: Build
    layer_rows: int
    loop_rows: int
    layer_target: float
    loop_target: float

    def ours(self, rows: int) -> tuple[Tensor, Tensor]:
        """Values and gradient by our solver, ``rows`` and ``rows x n``."""
        f = self.values[:rows].clone().requires_grad_(True)
        value = self.ambiguity_set.worst_case(f, self.weights).value
        (gradient,) = torch.autograd.grad(value.sum(), f)
        return value.detach(), gradient

    def layer(self) -> Callable[[int], tuple[Tensor, Tensor]]:
        """The same through a bare ``CvxpyLayer``, built once."""
        problem, parameter, weights = self.build()
        plan = problem.variables()[0]
        layer = CvxpyLayer(
            problem,
            parameters=[parameter],
            variables=[plan],
            solver_args={"solve_method": "Clarabel"},
        )

        def solve(rows: int) -> tuple[Tensor, Tensor]:
            f = self.values[:rows].clone().requires_grad_(True)
            (q,) = layer(f)
            if plan is not weights:  # a transport plan: its column sums
                q = q.sum(-2)
            value = (q * f).sum(-1)
            (gradient,) = torch.autograd.grad(value.sum(), f)
            return value.detach(), gradient

        return solve

    def loop(self) -> Callable[[int], tuple[Tensor, Tensor]]:
        """The same row by row in cvxpy; the gradient is Danskin's, the weights."""
        problem, parameter, weights = self.build()

        def solve(rows: int) -> tuple[Tensor, Tensor]:
            found = []
            for f in self.values[:rows].numpy():
                parameter.value = f
                problem.solve(solver=cp.CLARABEL)
                found.append(torch.tensor(weights.value))
            gradient = torch.stack(found)
            return (gradient * self.values[:rows]).sum(-1), gradient

        return solve


def inner_problems(b: int, n: int) -> list[InnerProblem]:
    """Every ambiguity set that has an inner problem, on ``b`` score vectors of ``n``.

    ``n`` should be a square, for the grid of two dimensions.
    """
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    p = torch.rand(n, generator=generator, dtype=torch.double) + 0.1
    p = p / p.sum()
    rough = normal(b, n)
    line = torch.linspace(0, 1, n, dtype=torch.double).unsqueeze(-1)  # n x 1
    side = torch.linspace(0, 1, math.isqrt(n), dtype=torch.double)
    square = torch.cartesian_prod(side, side)  # n x 2
    distance = _distances(line)
    squared_exponential = _gaussian(distance)
    in_the_plane = _gaussian(_distances(square))
    exponential = torch.exp(-distance / 0.2)  # Matern-1/2
    smooth = rough @ torch.linalg.cholesky(squared_exponential).T
    smooth_plane = rough @ torch.linalg.cholesky(in_the_plane).T
    w = p.numpy()

    def simple(ball: Callable[[cp.Variable], Any]) -> Build:
        def build() -> tuple[cp.Problem, cp.Parameter, cp.Expression]:
            f, q = cp.Parameter(n), cp.Variable(n, nonneg=True)
            limits: list[Any] = [cp.sum(q) == 1, ball(q)]
            return cp.Problem(cp.Minimize(f @ q), limits), f, q

        return build

    def transport() -> tuple[cp.Problem, cp.Parameter, cp.Expression]:
        f, plan = cp.Parameter(n), cp.Variable((n, n), nonneg=True)
        q = plan.T @ np.ones(n)
        limits: list[Any] = [
            cp.sum(plan, axis=1) == w,
            cp.sum(cp.multiply(distance.numpy(), plan)) <= 0.05,
        ]
        return cp.Problem(cp.Minimize(f @ q), limits), f, q

    def kernel_ball(kernel: Tensor) -> Build:
        root = torch.linalg.cholesky(kernel).T.numpy()
        return simple(lambda q: cp.norm(root @ (q - w)) <= 0.1)

    closed = {"layer_rows": b, "loop_rows": 16, "layer_target": 300, "loop_target": 100}
    root = {"layer_rows": 32, "loop_rows": 16, "layer_target": 200, "loop_target": 30}
    flow = {"layer_rows": 4, "loop_rows": 4, "layer_target": 200, "loop_target": 30}
    kernel = {"layer_rows": 32, "loop_rows": 16, "layer_target": 15, "loop_target": 5}
    problems = [
        InnerProblem(
            "TotalVariation(.3)",
            TotalVariation(0.3),
            rough,
            p,
            simple(lambda q: cp.norm1(q - w) <= 0.3),
            **closed,
        ),
        InnerProblem(
            "ModifiedChiSquared(.3)",
            ModifiedChiSquared(0.3),
            rough,
            p,
            simple(lambda q: cp.norm(cp.multiply(w**-0.5, q - w)) <= 0.3**0.5),
            **closed,
        ),
        InnerProblem(
            "ChiSquared(.3)",
            ChiSquared(0.3),
            rough,
            p,
            # sum (q - p)^2 / q = sum p^2 / q - 1; with cp.inv_pos(q) the layer is
            # slower, and its gradients are off by .1
            simple(
                lambda q: sum(cp.quad_over_lin(w[i], q[i]) for i in range(n)) <= 1.3
            ),
            **closed,
        ),
        InnerProblem(
            "ConditionalValueAtRisk(.8)",
            ConditionalValueAtRisk(0.8),
            rough,
            p,
            simple(lambda q: 0.2 * q <= w),
            **closed,
        ),
        InnerProblem(
            "KullbackLeibler(.1)",
            KullbackLeibler(0.1),
            rough,
            p,
            simple(lambda q: cp.sum(cp.rel_entr(q, w)) <= 0.1),
            **root,
        ),
        InnerProblem(
            "Wasserstein(.05), line",
            Wasserstein(0.05, distance),
            rough,
            p,
            transport,
            **flow,
        ),
    ]
    problems += [
        InnerProblem(
            f"MMD(.1), {name}",
            MaximumMeanDiscrepancy(0.1, matrix),
            scores,
            p,
            kernel_ball(matrix),
            **kernel,
        )
        for name, matrix, scores in (
            ("SE on a line, rough scores", squared_exponential, rough),
            ("SE on a line, smooth scores", squared_exponential, smooth),
            ("Matern-1/2 on a line, rough scores", exponential, rough),
            ("SE on a square grid, smooth scores", in_the_plane, smooth_plane),
        )
    ]
    return problems


def _distances(points: Tensor) -> Tensor:
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def _gaussian(distances: Tensor) -> Tensor:
    """A squared exponential of lengthscale .2, with jitter ``1e-10``."""
    kernel = torch.exp(-0.5 * (distances / 0.2).square())
    return kernel + 1e-10 * torch.eye(len(kernel), dtype=torch.double)
