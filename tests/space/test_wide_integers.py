"""A range of whole numbers is never listed, however wide: budgets in dollars."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from botorch_drbo import (
    Category,
    Integer,
    LinearConstraint,
    NamedOptimizer,
    Space,
)
from botorch_drbo.adversaries.base import filling
from botorch_drbo.optimizer.journal import state_checksum
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.feasible import sample
from botorch_drbo.problem.search_space import check_values, snapped
from botorch_drbo.search.mixed_search import climb
from botorch_drbo.search.starts import InUnitCube

WIDE = 10**8
SMALL: dict[str, Any] = {"num_initial": 2, "num_restarts": 1, "raw_samples": 16}


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest tensor had that was made."""

    largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.largest = max(self.largest, found.numel())
        return found


def run(upper: int, algorithm: str, *, limited: bool) -> NamedOptimizer:
    """A round with an integer decision and an integer context of this range."""
    limit = LinearConstraint({"budget": 1.0 / upper, "share": 1.0}, upper=1.2)
    space = Space(
        {"budget": Integer(0, upper), "share": (0.0, 1.0)},
        {"demand": Integer(0, upper), "weather": Category(["sun", "rain"])}
        if algorithm != "stable_opt"
        else {"demand": Integer(0, upper)},
        constraints=[limit] if limited else [],
    )
    opt = NamedOptimizer(algorithm, space, **SMALL)
    for k in range(3):
        x = opt.ask()
        row: dict[str, Any] = {"demand": k * upper // 3}
        if "weather" in space.contexts:
            row["weather"] = ["sun", "rain"][k % 2]
        budget = x.budget.iloc[0]
        assert budget == int(budget) and 0 <= budget <= upper
        opt.tell(x, row, float(-(((budget - row["demand"]) / upper) ** 2)))
    opt.recommend()
    return opt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "limited"),
    [("wdrbo_exact", True), ("dro", False), ("stable_opt", False)],
)
def test_memory_does_not_grow_with_the_range(algorithm: str, limited: bool) -> None:
    run(1000, algorithm, limited=limited)  # what is imported and cached only once
    peaks, tensors = [], []
    for upper in (1000, WIDE):
        tracemalloc.start()
        with LargestTensor() as counter:
            run(upper, algorithm, limited=limited)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        tensors.append(counter.largest)
    assert peaks[1] < 2 * peaks[0] + 2**20
    assert tensors[1] <= 2 * tensors[0]


def test_an_inequality_does_not_list_the_values_of_a_range() -> None:
    """2^53 numbers fit into no memory."""
    most = 2**53
    limit = LinearConstraint({"n": 1.0 / most, "share": 1.0}, upper=0.9)
    variables = {"n": Integer(0, most), "share": (0.0, 1.0)}
    space = Space(variables, {"c": (0, 1)}, constraints=[limit]).search_space
    assert space.equalities is None
    X = sample(space, 8, 0)
    assert (X[:, 0] / most + X[:, 1] <= 0.9 + 1e-6).all()


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_an_equality_does_not_list_the_values_of_a_range(weight: float) -> None:
    """Which numbers a sum leaves is found by their ends."""

    def drawn(most: int) -> Tensor:
        fixed = LinearConstraint({"n": weight, "m": 2.0}, lower=most, upper=most)
        variables = {"n": Integer(0, most), "m": Integer(5, most)}
        space = Space(variables, {"c": (0, 1)}, constraints=[fixed]).search_space
        return sample(space, 8, 0)

    drawn(1000)  # what is imported and cached only once
    tracemalloc.start()
    with LargestTensor() as counter:
        X = drawn(WIDE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < WIDE and counter.largest < WIDE / 10  # a list takes eight bytes each
    assert (weight * X[:, 0] + 2.0 * X[:, 1] == WIDE).all()
    assert torch.equal(X, X.round()) and X[:, 1].min() >= 5
    assert len(X.unique(dim=0)) == 8


def test_the_values_are_a_range() -> None:
    assert Integer(-3, WIDE).values == range(-3, WIDE + 1)
    space = Space({"n": Integer(0, 2**53)}, {"c": Integer(-(2**53), 2**53)})
    assert space.search_space.values == {0: range(2**53 + 1)}
    for bounds in ((0, 2**53 + 1), (-(2**53) - 1, 0), (0, 10**400)):
        with pytest.raises(InputDataError, match=r"2\*\*53"):
            Integer(*bounds)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_range_takes_the_values_that_its_list_takes(dtype: torch.dtype) -> None:
    X = torch.linspace(-3, 9, 97, dtype=dtype).unsqueeze(-1)  # halves among them
    listed = snapped(X, {0: tuple(map(float, range(-2, 8)))})
    found = snapped(X, {0: range(-2, 8)})
    assert torch.equal(found, listed) and found.dtype == dtype
    assert not torch.signbit(found[found == 0]).any()


def test_a_wrong_value_of_a_wide_range_is_refused_in_few_words() -> None:
    bounds = torch.tensor([[0.0], [WIDE]], dtype=torch.double)
    check_values(torch.tensor([[7.0]]).double(), bounds, {0: range(WIDE + 1)}, "x")
    with pytest.raises(InputDataError, match=r"values 0, 1, 2, 3, 4, 5, \.\.\. only"):
        check_values(torch.tensor([[0.5]]).double(), bounds, {0: range(WIDE + 1)}, "x")
    space = Space({"n": Integer(0, WIDE)}, {"c": (0, 1)})
    for wrong in (WIDE + 1, WIDE + 0.5, -1, 0.1, 1 + 2e-6):
        with pytest.raises(InputDataError, match="must"):
            NamedOptimizer("random", space).tell({"n": wrong}, {"c": 0.5}, 1.0)


@pytest.mark.parametrize("values", [range(0, 11, 2), range(10, -1, -1), range(1, 11)])
def test_a_range_that_leaves_out_values_is_refused(values: range) -> None:
    unit = torch.tensor([[0.0], [10.0]])
    with pytest.raises(InputDataError, match="must increase"):
        SearchSpace(unit, unit, discrete={0: values})


def test_a_forged_bound_does_no_harm() -> None:
    space = Space({"n": Integer(0, 9)}, {"c": (0, 1)})
    state = NamedOptimizer("random", space).state_dict()
    for upper in (10**15, 10**30):
        text = json.dumps(state).replace('"upper": 9', f'"upper": {upper}')
        forged = json.loads(text)
        forged["check"] = state_checksum(forged)
        if upper > 2**53:
            with pytest.raises(InputDataError, match=r"2\*\*53"):
                NamedOptimizer.from_state_dict(forged)
        else:
            opt = NamedOptimizer.from_state_dict(forged)
            assert 0 <= opt.ask().n.iloc[0] <= upper


def test_categories_beside_a_wide_range_are_all_looked_at() -> None:
    box = torch.tensor([[0.0, 0.0], [WIDE, 2.0]], dtype=torch.double)
    filled = filling(box, {0: range(WIDE + 1), 1: range(3)}, seed=0)
    assert len(filled) < 1000
    assert torch.equal(filled, filled.round())
    for category in range(3):
        column = filled[filled[:, 1] == category, 0]
        assert {0.0, float(WIDE)} <= set(column.tolist()) and len(column) > 60


class Plane(AcquisitionFunction):
    """``budget / 1000 + share / 2``, larger towards the upper corner."""

    _log = True  # no units

    def forward(self, X: Tensor) -> Tensor:
        return (X[..., 0] / 1000 + X[..., 1] / 2).squeeze(-1)


def cost(x: dict[str, Tensor]) -> Tensor:
    return 700.7 - x["budget"] - 100 * x["share"]


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("category", [True, False])
def test_the_optimum_on_a_limit_is_the_whole_number_inside(
    linear: bool, category: bool
) -> None:
    """``budget + 100 share <= 700.7``: 600 and 1; 601 is nearer, and too much."""
    limit = LinearConstraint({"budget": 1.0, "share": 100.0}, upper=700.7)
    decisions: dict[str, Any] = {"budget": Integer(0, 1000), "share": (0.0, 1.0)}
    if category:
        decisions["supplier"] = Category(["A", "B"])
    space = Space(
        decisions, {"c": (0, 1)}, constraints=[limit if linear else cost]
    ).search_space
    model = SingleTaskGP(torch.rand(3, 1).double(), torch.rand(3, 1).double())
    cube = InUnitCube(Plane(model), space.bounds)
    starts = torch.full((1, 1, space.d_x), 0.25, dtype=torch.double)
    starts[..., 2:] = 0.0
    found = climb(cube, space, starts, max_iterations=100)
    assert torch.equal(found[:, 0], found[:, 0].round())
    best = found[(found[:, 0] / 1000 + found[:, 1] / 2).argmax()]
    torch.testing.assert_close(
        best[:2], torch.tensor([600.0, 1.0]).double(), rtol=0.0, atol=0.008
    )
