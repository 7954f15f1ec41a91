"""Instances and the convex solver that the tests of every set share."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor

TIGHT = {
    "tol_gap_abs": 1e-10,
    "tol_gap_rel": 1e-10,
    "tol_feas": 1e-10,
    "tol_infeas_abs": 1e-12,
    "tol_infeas_rel": 1e-12,
}
KINDS = ("plain", "ties", "zeros", "skewed", "offset", "huge", "tiny", "constant")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind of instance in turn, unless a test names its own."""
    return request.param


@pytest.fixture
def make_instance() -> Callable[[str, int, int], tuple[Tensor, Tensor]]:
    """Scores and weights, ``rows x n``, of one kind."""

    def make(kind: str, n: int, rows: int = 3) -> tuple[Tensor, Tensor]:
        assert kind in KINDS
        generator = torch.Generator().manual_seed(97 * n + KINDS.index(kind))
        f = torch.randn(rows, n, generator=generator, dtype=torch.double)
        p = torch.rand(rows, n, generator=generator, dtype=torch.double) + 1e-2
        if kind == "ties":
            f, p = (2 * f).round(), torch.ones_like(p)
        if kind == "zeros" and n > 1:
            p[:, ::2] = 0.0
        if kind == "skewed":
            p = p**6
        if kind == "offset":
            f = f + 1e3
        if kind == "constant":
            f = torch.full_like(f, 3.0)
        f = f * {"huge": 1e6, "tiny": 1e-6}.get(kind, 1.0)
        return f, p / p.sum(-1, keepdim=True)

    return make


@pytest.fixture
def by_clarabel() -> Callable[..., float]:
    """The worst case over ``constraints(q, p, radius)``, by cvxpy and Clarabel."""

    def solve(f: Tensor, p: Tensor, radius: float, constraints: Callable) -> float:
        scores = f.numpy()
        # The solver's tolerances are absolute: it sees scores in [0, 1].
        low, span = scores.min(), max(np.ptp(scores), 1e-300)
        q = cp.Variable(len(scores), nonneg=True)
        problem = cp.Problem(
            cp.Minimize(q @ ((scores - low) / span)),
            [cp.sum(q) == 1, *constraints(q, p.numpy(), radius)],
        )
        with warnings.catch_warnings():
            # Tighter than double precision allows at times: what it found is still
            # compared to 1e-8, and cannot be right by chance.
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            value = problem.solve(solver=cp.CLARABEL, **TIGHT)
        assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        return low + span * value

    return solve


@pytest.fixture
def agrees_with_clarabel(by_clarabel: Callable[..., float]) -> Callable[..., None]:
    """Compares the values of rows of scores and weights with Clarabel's."""

    def check(
        values: Tensor, f: Tensor, p: Tensor, radius: float, constraints: Callable
    ) -> None:
        for value, scores, weights in zip(values, f, p, strict=True):
            expected = by_clarabel(scores, weights, radius, constraints)
            span = (scores.max() - scores.min()).item()
            allowed = 1e-8 * span + 1e-14 * abs(expected)
            assert abs(value.item() - expected) <= allowed

    return check
