"""Columns of a search space, by hand and by brute force."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.problem.search_space import SearchSpace, check_values, snapped


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


# A number, a category of four, an integer; a category of three and a number.
SPACE = SearchSpace(
    rows([10.0, 0.0, 0.0], [20.0, 3.0, 5.0]),
    rows([0.0, -1.0], [2.0, 3.0]),
    discrete={2: (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)},
    categories={1: 4},
    context_categories={0: 3},
)


def test_two_categories_are_one_apart_whatever_their_indices() -> None:
    first = rows([10.0, 0.0, 0.0], [10.0, 0.0, 0.0], [12.5, 2.0, 0.0])
    second = rows([10.0, 3.0, 0.0], [15.0, 1.0, 5.0], [12.5, 2.0, 1.0])
    expected = rows([0.0, 1.0, 0.0], [-0.5, 1.0, -1.0], [0.0, 0.0, -0.2])
    torch.testing.assert_close(SPACE.gaps(first, second), expected)


def test_distances_of_contexts_by_hand() -> None:
    C = rows([0.0, -1.0], [1.0, -1.0], [2.0, -1.0], [2.0, 3.0], [2.0, 1.0])
    root = 2.0**0.5
    half = 1.25**0.5
    expected = rows(
        [0.0, 1.0, 1.0, root, half],
        [1.0, 0.0, 1.0, root, half],
        [1.0, 1.0, 0.0, 1.0, 0.5],
        [root, root, 1.0, 0.0, 0.5],
        [half, half, 0.5, 0.5, 0.0],
    )
    torch.testing.assert_close(SPACE.context_distances(C, C), expected)
    assert SPACE.embed_contexts(C).shape == (5, 4)


def test_categories_of_contexts_are_columns_behind_the_decisions() -> None:
    assert SPACE.joint_categories == {1: 4, 3: 3}


def test_a_box_has_neither_values_nor_constraints() -> None:
    box = rows([0.0, 0.0], [1.0, 1.0])
    line = (torch.tensor([0]), torch.tensor([1.0]).double(), 0.5)
    assert SearchSpace(box, box).is_box
    assert not SearchSpace(box, box, discrete={0: (0.0, 1.0)}).is_box
    assert not SearchSpace(box, box, inequality_constraints=(line,)).is_box
    functions = (lambda X: X[:, 0],)
    assert not SearchSpace(box, box, nonlinear_inequality_constraints=functions).is_box


def test_known_columns_take_their_value_only() -> None:
    known = replace(SPACE, known_context=torch.tensor([1.0, torch.nan]).double())
    assert known.context_values == {0: (1.0,)}
    torch.testing.assert_close(known.context_support, rows([1.0, -1.0], [1.0, 3.0]))
    listed = {j: tuple(column) for j, column in SPACE.context_values.items()}
    assert listed == {0: (0.0, 1.0, 2.0)}


def test_the_nearest_value_by_brute_force() -> None:
    allowed = (-2.0, -1.5, 0.0, 4.0)
    points = 8.0 * torch.rand(200, 2, dtype=torch.double) - 3.0
    found = snapped(points, {1: allowed})
    choices = torch.tensor(allowed).double()
    nearest = choices[(points[:, 1:] - choices).abs().argmin(-1)]
    assert torch.equal(found[:, 1], nearest)
    assert torch.equal(found[:, 0], points[:, 0])


def test_values_are_checked_up_to_rounding_and_the_row_is_named() -> None:
    box, values = rows([0.0, 0.0], [1.0, 3.0]), {1: (0.0, 1.0, 3.0)}
    check_values(rows([0.3, 1.0 + 1e-15]), box, values, "X")
    with pytest.raises(InputDataError, match=r"`X` has 1.001 in row 1, column 1"):
        check_values(rows([0.3, 1.0], [0.3, 1.001]), box, values, "X")
