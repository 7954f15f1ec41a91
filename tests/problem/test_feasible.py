"""What satisfies constraints, and by how little it may miss them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from botorch_drbo.problem.equalities import in_units
from botorch_drbo.problem.feasible import TOLERANCE, feasible
from botorch_drbo.problem.search_space import SearchSpace

BOX = torch.tensor([[-9.0, -9.0], [9.0, 9.0]], dtype=torch.double)


def space(*linear: tuple[list[int], list[float], float], **options) -> SearchSpace:
    constraints = tuple(
        (torch.tensor(columns), torch.tensor(weights).double(), rhs)
        for columns, weights, rhs in linear
    )
    return SearchSpace(BOX, BOX[:, :1], inequality_constraints=constraints, **options)


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


@pytest.mark.parametrize(
    "linear, exact, scale",
    [  # the scale is that of the side and of all terms together
        (([0], [2.0], 6.0), [3.0, 0.0], 12.0),
        (([0, 1], [1.0, 1.0], 0.0), [5.0, -5.0], 10.0),  # the side says nothing
        (([1], [-1.0], -4.0), [0.0, 4.0], 8.0),
        (([0, 1], [3.0, -1.0], 2.0), [2.0, 4.0], 12.0),
    ],
)
def test_a_linear_constraint_may_be_missed_by_a_millionth(linear, exact, scale):
    columns, weights, _ = linear
    for share, kept in ((0.0, True), (0.9, True), (1.1, False)):
        x = rows(exact)
        x[0, columns[0]] -= share * TOLERANCE * scale / weights[0]
        assert feasible(space(linear), x).tolist() == [kept]


@pytest.mark.parametrize("share, kept", [(0.0, True), (0.9, True), (1.1, False)])
def test_a_function_may_be_missed_by_a_millionth(share, kept):
    circle = space(nonlinear_inequality_constraints=(lambda x: 4 - x.norm(dim=-1),))
    x = rows([4 + share * TOLERANCE, 0.0])
    assert feasible(circle, x).tolist() == [kept]


def test_every_constraint_counts():
    """Linear ones and functions, the first and the last."""
    both = space(
        ([0], [1.0], 1.0),
        ([1], [1.0], 1.0),
        nonlinear_inequality_constraints=(
            lambda x: 5 - x[:, 0],
            lambda x: 5 - x[:, 1],
        ),
    )
    x = rows([2.0, 2.0], [0.0, 2.0], [2.0, 0.0], [6.0, 2.0], [2.0, 6.0])
    assert feasible(both, x).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("shape", [(), (4,), (5, 4), (2, 5, 4)])
def test_only_logarithms_are_raised_whatever_the_rows(shape: tuple[int, ...]) -> None:
    X = torch.rand(*shape, 3, generator=torch.Generator().manual_seed(0)).double()
    expected = torch.tensor(
        [[a, math.exp(b), c] for a, b, c in X.reshape(-1, 3).tolist()]
    ).double()
    assert torch.allclose(in_units(X, [1]), expected.reshape(X.shape))
    assert in_units(X, []) is X
