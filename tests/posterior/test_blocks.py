"""Blocks of rows: as many as the memory allows, and nothing is kept in between."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import AdditiveKernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_drbo.posterior import blocks, marginal_posterior, stationary_moments
from botorch_drbo.posterior.blocks import in_blocks
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.generic import GenericPosterior
from tests.models import make_inputs, make_model


class Spy:
    """Sines of rows, and how many rows it was given at a time."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, block: Tensor) -> tuple[Tensor, ...]:
        self.rows.append(len(block))
        return block.sin(), block.square().sum(-1)


ROWS = torch.rand(23, 2, dtype=torch.double)


def test_rows_come_back_in_order() -> None:
    for rows in (ROWS, ROWS[:1], ROWS[:0]):
        found = in_blocks(Spy(), rows, 100, 500)
        for a, b in zip(found, Spy()(rows), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(500, [5, 5, 5, 5, 3]), (99, 23 * [1]), (10**6, [23])],
)
def test_as_many_rows_as_the_budget_allows(budget: int, expected: list[int]) -> None:
    spy = Spy()
    in_blocks(spy, ROWS, 100, budget)
    assert spy.rows == expected


def test_without_a_graph_blocks_fit_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CACHE_BYTES", 1000)
    spy = Spy()
    in_blocks(spy, ROWS, 100, 10**6)
    assert spy.rows == [10, 10, 3]
    leaf, spy = ROWS.clone().requires_grad_(), Spy()
    in_blocks(spy, leaf, 100, 10**6)
    assert spy.rows == [23]


def test_with_a_graph_blocks_are_computed_again_not_kept() -> None:
    leaf, spy = ROWS.clone().requires_grad_(), Spy()
    found = in_blocks(spy, leaf, 100, 500)
    warm_up, *forward = spy.rows  # one row, without a graph
    assert (warm_up, forward) == (1, [5, 5, 5, 5, 3])
    (gradient,) = torch.autograd.grad(sum(part.sum() for part in found), leaf)
    assert sorted(spy.rows) == sorted([1, *forward, *forward])
    torch.testing.assert_close(gradient, ROWS.cos() + 2 * ROWS)


SUM = AdditiveKernel(RBFKernel(active_dims=[0, 1]), MaternKernel(2.5, active_dims=[2]))


@pytest.mark.parametrize(
    ("kernel", "method", "owner", "name"),
    [
        (None, "exact", stationary_moments, "_slopes"),
        (SUM, "exact", ExactPosterior, "_block"),
        (None, "generic", GenericPosterior, "_block"),
    ],
)
def test_no_posterior_needs_more_than_its_budget(
    kernel, method, owner, name, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, C = make_inputs(b=4, n=6)
    model = make_model(kernel, t=8)
    posterior = marginal_posterior(model, [2], method=method, memory_budget=5000)
    view = posterior.over(C)
    rows, original = [], getattr(owner, name)

    def spy(*arguments):
        rows.append(len(arguments[-1]))
        return original(*arguments)

    monkeypatch.setattr(owner, name, spy)
    mean, variance = view.at(X.requires_grad_()).moments()
    once = owner is stationary_moments  # slopes come with the moments
    warm_up = 0 if once else 1  # one row, without a graph
    assert sum(rows) == 24 + warm_up
    forward = len(rows) - warm_up
    assert forward > 1
    bytes_per_row = 8 * 8 * (8 if once else 12)  # t floats, temporaries
    assert max(rows) * bytes_per_row <= 5000
    (mean.sum() + variance.sum()).backward()
    assert len(rows) == warm_up + forward + (0 if once else forward)


def test_what_all_rows_share_may_want_a_gradient() -> None:
    """Then blocks are computed again too, though the rows want none."""
    shared, seen = torch.rand(2).double().requires_grad_(), []

    def function(block: Tensor, shared: Tensor) -> tuple[Tensor]:
        seen.append(len(block))
        return (block @ shared.sin(),)

    (found,) = in_blocks(function, ROWS, 100, 500, shared)
    (gradient,) = torch.autograd.grad(found.sum(), shared)
    assert sorted(seen) == sorted([1, *2 * [5, 5, 5, 5, 3]])
    torch.testing.assert_close(gradient, ROWS.sum(0) * shared.detach().cos())


def test_of_parts_one_fits_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CACHE_BYTES", 500)
    for parts, budget, expected in (
        (2, 10**6, [10, 10, 3]),
        (9, 500, [5, 5, 5, 5, 3]),
    ):
        spy = Spy()
        in_blocks(spy, ROWS, 100, budget, parts=parts)
        assert spy.rows == expected
