"""Ascents where decisions are constrained or discrete, against closed forms."""

from __future__ import annotations

import itertools
import random
from unittest.mock import patch

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo.problem.feasible import feasible, sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.search.maximise import climbed_from
from botorch_drbo.search.mixed_search import (
    _ascend as mixed_search_ascend,
)
from botorch_drbo.search.mixed_search import (
    _bisected,
    _by_discrete_values,
    _linear_in_cube,
    climb,
)
from botorch_drbo.search.starts import InUnitCube
from tests.models import small_model


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


class Linear(AcquisitionFunction):
    """``w . x``: largest in a corner of what may be taken. The model has no say."""

    _log = True  # has no units

    def __init__(self, *w: float) -> None:
        super().__init__(small_model())
        self.register_buffer("w", torch.tensor(w, dtype=torch.double))

    def forward(self, X: Tensor) -> Tensor:
        return (X.squeeze(-2) * self.w).sum(-1)


BOX, CONTEXTS = rows([10.0, -3.0], [14.0, 5.0]), rows([0.0], [1.0])
# x1 + 2 x2 <= 16, in BoTorch's form
BELOW = (torch.tensor([0, 1]), torch.tensor([-1.0, -2.0]).double(), -16.0)
TRIANGLE = SearchSpace(BOX, CONTEXTS, inequality_constraints=(BELOW,))


def test_a_linear_constraint_is_the_same_one_in_the_unit_cube() -> None:
    ((indices, coefficients, rhs),) = _linear_in_cube(TRIANGLE)
    unit = torch.rand(50, 2).double()
    x = BOX[0] + unit * (BOX[1] - BOX[0])
    slack = 16.0 - x[:, 0] - 2.0 * x[:, 1]
    found = (unit[:, indices] * coefficients).sum(-1) - rhs
    torch.testing.assert_close(found, slack)


@pytest.mark.parametrize(
    ("w", "best"),
    [
        ((1.0, 1.0), [14.0, 1.0]),  # the corners of the polygon, by hand
        ((1.0, 4.0), [10.0, 3.0]),
        ((1.0, -1.0), [14.0, -3.0]),
    ],
)
def test_an_ascent_ends_in_the_corner_of_a_polygon(
    w: tuple[float, float], best: list[float]
) -> None:
    cube = InUnitCube(Linear(*w), BOX)
    inside = rows([10.5, -2.0], [12.0, -1.0])
    starts = cube.to_cube(inside).unsqueeze(-2)
    found = climb(cube, TRIANGLE, starts, max_iterations=100)
    assert feasible(TRIANGLE, found).all()
    values = (found * torch.tensor(w).double()).sum(-1)
    torch.testing.assert_close(found[values.argmax()], torch.tensor(best).double())


def test_steps_and_ascents_find_the_best_of_all_combinations() -> None:
    space = SearchSpace(
        rows([10.0, -2.0, 0.0], [14.0, 6.0, 2.0]),
        CONTEXTS,
        discrete={1: (-2.0, 0.0, 1.0, 6.0)},
        categories={2: 3},
        inequality_constraints=(BELOW,),
    )

    class Kinds(Linear):
        def forward(self, X: Tensor) -> Tensor:
            worth = torch.tensor([0.0, 3.0, 1.0]).double()
            kind = worth[X[..., 0, 2].round().long()]
            return X[..., 0, 0] + 2.5 * X[..., 0, 1] + kind

    function = Kinds(1.0, 1.0, 1.0)
    cube = InUnitCube(function, space.bounds)
    starts = cube.to_cube(sample(space, 8, 0)).unsqueeze(-2)
    found = climb(cube, space, starts, max_iterations=50)
    best = max(  # x1 as large as it may be
        min(14.0, 16.0 - 2.0 * a) + 2.5 * a + k
        for a, k in itertools.product((-2.0, 0.0, 1.0), (0.0, 3.0, 1.0))
    )
    values = function(found.unsqueeze(-2))
    assert values.max().item() == pytest.approx(best, abs=1e-5)
    assert torch.equal(space.snap(found), found)


def test_an_ascent_keeps_discrete_values_and_reaches_the_end_of_a_constraint() -> None:
    """BoTorch's fixed features gave the constraint the columns in another order."""
    seen = []

    def allowed(X: Tensor) -> Tensor:
        """The third kind, and the number 2, leave x up to 13."""
        seen.append(X.detach())
        return 15.0 - X[..., 1] - 4.0 * (X[..., 0] - 2.0).abs() - X[..., 2]

    space = SearchSpace(
        rows([0.0, 10.0, 0.0], [2.0, 14.0, 8.0]),
        CONTEXTS,
        discrete={2: range(9)},
        categories={0: 3},
        nonlinear_inequality_constraints=(allowed,),
    )
    cube = InUnitCube(Linear(0.0, 1.0, 0.0), space.bounds)
    starts = cube.to_cube(rows([2.0, 11.0, 2.0], [1.0, 10.5, 0.0])).unsqueeze(-2)
    found = climb(cube, space, starts, max_iterations=50)
    ends = {tuple(row) for row in found[:, [0, 2]].tolist()}
    assert ends == {(2.0, 2.0), (1.0, 0.0)}
    highest = {
        kind: found[found[:, 0] == kind][:, 1].max().item() for kind in (2.0, 1.0)
    }
    assert highest == pytest.approx({2.0: 13.0, 1.0: 11.0}, abs=1e-5)
    # A linear function and constraint: a few steps, all of kinds that there are.
    assert len(seen) < 60
    decisions = torch.cat([X.reshape(-1, 3) for X in seen])
    assert {tuple(row) for row in decisions[:, [0, 2]].tolist()} == ends


class Needle(AcquisitionFunction):
    """A hill too narrow to be met by chance, under a wide and lower one."""

    _log = True

    def __init__(self, top: Tensor) -> None:
        super().__init__(small_model())
        self.top, self.calls = top, 0

    def forward(self, X: Tensor) -> Tensor:
        self.calls += 1
        x, kind = X[..., 0, 0], X[..., 0, 2].round()
        far = ((x - self.top[0]) / 0.05).square() + (X[..., 0, 1] - self.top[1]).abs()
        return 9.0 * (-far).exp() * (kind == self.top[2]) - 0.1 * (x - 10.5).square()


MIXED = SearchSpace(
    rows([10.0, 0.0, 0.0], [14.0, 99.0, 39.0]),
    CONTEXTS,
    discrete={1: range(100)},
    categories={2: 40},
)


def test_the_search_climbs_from_the_starts_that_it_is_given() -> None:
    """BoTorch's alternating search makes starts of its own, and missed the hill."""
    top = torch.tensor([13.2, 41.0, 31.0]).double()
    function = Needle(top)
    cube = InUnitCube(function, MIXED.bounds)
    starts = cube.to_cube(rows([13.22, 41.0, 31.0], [11.0, 3.0, 2.0])).unsqueeze(-2)
    found = climb(cube, MIXED, starts, max_iterations=50)
    best = found[function(found.unsqueeze(-2)).argmax()]
    torch.testing.assert_close(best, top, rtol=0.0, atol=2e-3)
    assert function.calls < 80  # of many rows each


def test_the_answer_does_not_depend_on_pythons_random_numbers() -> None:
    """BoTorch looks at 20 random values of a category that has more."""
    cube = InUnitCube(Needle(torch.tensor([11.5, 60.0, 17.0]).double()), MIXED.bounds)
    starts = cube.to_cube(rows([11.5, 60.0, 3.0])).unsqueeze(-2)
    found = []
    for seed in range(4):
        random.seed(seed)
        found.append(climb(cube, MIXED, starts, max_iterations=50))
    assert all(torch.equal(each, found[0]) for each in found)
    assert (found[0][:, 2] == 17.0).any()  # every category is looked at


def test_steps_cross_a_long_range_in_a_few_strides() -> None:
    class Peak(Linear):
        calls = 0

        def forward(self, X: Tensor) -> Tensor:
            Peak.calls += 1
            return -(X[..., 0, 1] - 87.0).abs() - (X[..., 0, 0] - 12.0).square()

    cube = InUnitCube(Peak(1.0), MIXED.bounds)
    starts = cube.to_cube(rows([10.0, 2.0, 0.0])).unsqueeze(-2)
    found = climb(cube, MIXED, starts, max_iterations=50)
    assert (found[:, 1] == 87.0).any()
    assert Peak.calls < 40


def test_what_ends_outside_is_drawn_back_to_the_border() -> None:
    space = SearchSpace(
        BOX,
        CONTEXTS,
        nonlinear_inequality_constraints=(lambda X: 13.0 - X[..., 0],),
    )
    cube = InUnitCube(Linear(1.0, 0.0), BOX)
    starts, ends = rows([0.0, 0.5], [0.5, 0.5]), rows([1.0, 0.9], [0.6, 0.5])
    back = cube.to_box(_bisected(cube, space, starts, ends))
    assert back[0, 0].item() == pytest.approx(13.0, abs=2e-5)
    share = 0.75  # of the way, in both columns
    assert back[0, 1].item() == pytest.approx(
        -3.0 + 8.0 * (0.5 + share * 0.4), abs=1e-4
    )
    torch.testing.assert_close(back[1], cube.to_box(ends)[1])  # was inside


def test_starts_are_grouped_by_their_discrete_values() -> None:
    starts = rows([0.1, 0.0], [0.2, 1.0], [0.3, 0.0]).unsqueeze(-2)
    groups = [group[:, 0, 0].tolist() for group in _by_discrete_values(starts, [1])]
    assert groups == [[0.1, 0.3], [0.2]]
    assert len(_by_discrete_values(starts, [])) == 1


def test_starts_come_back_and_what_may_not_be_taken_does_not() -> None:
    cube = InUnitCube(Linear(1.0, 1.0), BOX)
    inside, outside = rows([10.5, -2.0]), rows([13.9, 4.0])
    starts = cube.to_cube(torch.cat([inside, outside])).unsqueeze(-2)
    found = climb(cube, TRIANGLE, starts, max_iterations=5)
    assert (found == inside).all(-1).any()
    assert not (found == outside).all(-1).any()
    assert feasible(TRIANGLE, found).all()


def test_a_start_that_misses_a_constraint_by_rounding_is_climbed_from() -> None:
    """BoTorch refuses one that is off by more than 1e-8; ours are allowed to 1e-6."""
    space = SearchSpace(
        rows([0.0, 0.0], [1.0, 2.0]),
        CONTEXTS,
        discrete={1: range(3)},
        nonlinear_inequality_constraints=(lambda X: X[..., 0] - 0.3,),
    )
    cube = InUnitCube(Linear(1.0, 0.0), space.bounds)
    starts = rows([0.3 - 1e-7, 0.5]).unsqueeze(-2)
    found = climb(cube, space, starts, max_iterations=50)
    assert found[:, 0].max().item() == pytest.approx(1.0)


def test_a_few_ascents_take_two_turns_of_steps_and_an_ascent() -> None:
    """On a ridge along which each turn goes one whole number further."""
    space = SearchSpace(rows([0.0, 0.0], [1.0, 9.0]), CONTEXTS, discrete={1: range(10)})

    class Ridge(Linear):
        def forward(self, X: Tensor) -> Tensor:
            x, whole = X.squeeze(-2).unbind(-1)
            return 0.3 * whole - 20.0 * (x - whole / 9.0).square()

    acqf, start = Ridge(1.0, 1.0), rows([0.0, 0.0])
    turned = []

    def ascend(*given: object) -> None:
        turned.append(len(turned))
        mixed_search_ascend(*given)  # pyright: ignore[reportArgumentType]

    with patch("botorch_drbo.search.mixed_search._ascend", ascend):
        ends, found = climbed_from(acqf, space, start, acqf(start.unsqueeze(-2)))
    assert turned == [0, 1]
    assert found.max().item() == pytest.approx(0.6, abs=1e-4)
    assert ends[found.argmax(), 1] == 2.0
