"""A space of named variables as recipes see it, and what makes no space."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo import Category, Integer, LinearConstraint, Log, Ordinal, Space
from botorch_drbo.codec import decode, encode
from botorch_drbo.problem.feasible import feasible, joint_sample, sample
from botorch_drbo.space.table import to_frame, to_outcomes, to_tensor

DECISIONS = {
    "price": (10.0, 90.0),
    "stock": Integer(0, 40),
    "supplier": Category(["A", "B"]),
    "size": Ordinal([1, 2, 5]),
    "dose": Log(0.001, 1.0),
}
CONTEXTS = {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])}
BUDGET = LinearConstraint({"price": 1.0, "stock": 2.0}, upper=100.0)


def weak(columns: dict[str, Tensor]) -> Tensor:
    return 20.0 - columns["price"] * columns["dose"]


def test_recipes_see_numbers_and_their_kinds() -> None:
    seen = Space(DECISIONS, CONTEXTS).search_space
    low = math.log(0.001)
    wanted = [[10.0, 0.0, 0.0, 1.0, low], [90.0, 40.0, 1.0, 5.0, 0.0]]
    torch.testing.assert_close(seen.bounds, torch.tensor(wanted).double())
    assert dict(seen.categories) == {2: 2}
    assert dict(seen.context_categories) == {1: 3}
    assert set(seen.discrete) == {1, 3} and seen.discrete[3] == (1.0, 2.0, 5.0)
    assert dict(seen.joint_categories) == {2: 2, 6: 3}


def test_constraints_hold_in_the_units_of_the_user() -> None:
    doses = LinearConstraint({"dose": 10.0, "size": 1.0}, lower=2.0, upper=6.0)
    space = Space(DECISIONS, CONTEXTS, constraints=[BUDGET, doses, weak])
    X = sample(space.search_space, 200, seed=1)
    table = to_frame(X, space.decisions)
    assert (table.price + 2 * table.stock <= 100 + 1e-3).all()
    assert (10 * table.dose + table["size"]).between(2 - 1e-4, 6 + 1e-4).all()
    assert (table.price * table.dose <= 20 + 1e-5).all()
    assert set(table.supplier) == {"A", "B"} and set(table["size"]) <= {1.0, 2.0, 5.0}
    assert table.stock.dtype.kind == "i"
    outside = {"price": 80, "stock": 11, "supplier": "A", "size": 1, "dose": 0.2}
    x = to_tensor(outside, space.decisions, "x")
    assert not feasible(space.search_space, x).any()


def test_a_thin_wedge_of_linear_constraints_is_sampled() -> None:
    wedge = [
        LinearConstraint({"a": 1.0, "b": 1.0, "c": 1.0}, upper=0.02),
        LinearConstraint({"a": 1.0, "b": -1.0}, lower=0.0),
    ]
    box = dict.fromkeys("abc", (0.0, 1.0))
    space = Space(box, {"w": (0.0, 1.0)}, constraints=wedge).search_space
    X = sample(space, 64, seed=0)
    assert X.shape == (64, 3) and (X.sum(-1) <= 0.021).all()
    assert len(X.unique(dim=0)) > 32
    assert torch.equal(X, sample(space, 64, seed=0))
    both = joint_sample(space, 64, seed=0)  # where contexts are chosen, too
    assert both.shape == (64, 4) and feasible(space, both[:, :3]).all()
    for rows in (both[:, :3], both[:, 3:]):
        assert len(rows.unique(dim=0)) > 32
    torch.testing.assert_close(
        both[:, 3].mean(), both.new_tensor(0.5), rtol=0.1, atol=0
    )


def test_a_space_survives_json_but_for_its_functions() -> None:
    space = Space(DECISIONS, CONTEXTS, outcome="profit", constraints=[BUDGET])
    stored = json.loads(json.dumps(encode(space)))
    again = decode(stored, Space)
    assert again.constructor_arguments() == space.constructor_arguments()
    assert list(again.decisions) == list(space.decisions)
    with_function = encode(Space(DECISIONS, CONTEXTS, constraints=[weak]))
    with pytest.raises(InputDataError, match=r"weak.*space=space"):
        decode(with_function, Space)


def test_a_context_set_speaks_names() -> None:
    space = Space(DECISIONS, CONTEXTS)
    rows = {"demand": [10.0, 80.0], "weather": ["snow", "sun"]}
    forecast = space.context_set(rows, [1.0, 3.0])
    assert forecast.points.tolist() == [[10.0, 2.0], [80.0, 0.0]]
    assert forecast.weights.tolist() == [0.25, 0.75]


def bad(**changes: Any) -> Any:
    given = {"decisions": DECISIONS, "contexts": CONTEXTS, **changes}
    return lambda: Space(given.pop("decisions"), given.pop("contexts"), **given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (bad(decisions={}), "at least one"),
        (bad(decisions={"demand": (0, 1)}), "`demand` is a decision and a context"),
        (bad(contexts=["demand"]), r"contexts={'demand': \(0.0, 100.0\)}"),
        (bad(contexts={3: (0, 1)}), "strings as names"),
        (bad(outcome=""), "must be a name"),
        (bad(constraints=BUDGET), "brackets"),
        (bad(constraints=["price < 3"]), "LinearConstraint or a function"),
        (bad(constraints=[LinearConstraint({"cost": 1}, upper=1)]), "no decisions"),
        (bad(constraints=[LinearConstraint({"supplier": 1}, upper=1)]), "categories"),
        (bad(constraints=[LinearConstraint({"price": 1}, upper=5)]), "None of"),
        (bad(constraints=[lambda x: x["cost"]]), "cost"),
        (bad(constraints=[lambda x: x["price"].sum()]), r"decisions, got \(\)"),
        (bad(constraints=[lambda x: 3.0]), "decisions, got float"),
        (bad(constraints=[weak, weak]), "names that differ"),
        (lambda: LinearConstraint({"price": 1}), "neither"),
        (lambda: LinearConstraint({"price": 0}, upper=1), "not zero"),
        (lambda: LinearConstraint({"price": 1}, upper=math.nan), "finite"),
        (lambda: LinearConstraint({"price": 1}, upper=0, lower=1), "not be above"),
    ],
)
def test_what_makes_no_space_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        make()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"demand": 1.0}, "no column `weather`"),
        ({"demand": 1.0, "wether": "sun"}, "Did you mean `weather`"),
        ({"demand": [1.0, 2.0], "weather": ["sun", "hail"]}, "row 1, column `weather`"),
        (torch.tensor([[1.0, 1.5]]), "index of a category"),
        (3.0, "must be a DataFrame"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table: Any, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        to_tensor(table, Space(DECISIONS, CONTEXTS).contexts, "c")


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 2), (2, 4, 3)])
def test_a_tensor_without_a_column_for_each_variable_is_refused(shape: tuple) -> None:
    with pytest.raises(BotorchTensorDimensionError, match=r"2 columns.*got shape"):
        to_tensor(torch.zeros(shape), Space(DECISIONS, CONTEXTS).contexts, "c")


def test_a_tensor_of_one_row_needs_no_second_dimension() -> None:
    contexts = Space(DECISIONS, CONTEXTS).contexts
    row = torch.tensor([40.0, 2.0])
    assert to_tensor(row, contexts, "c").tolist() == [[40.0, 2.0]]
    assert to_tensor(row.unsqueeze(0), contexts, "c").tolist() == [[40.0, 2.0]]


def test_outcomes_are_numbers_a_column_a_tensor_or_nothing() -> None:
    assert to_outcomes(None, "profit") is None
    tensor = torch.tensor([[1.0], [2.0]])
    assert to_outcomes(tensor, "profit") is tensor
    for given in ([1, 2.5], {"profit": [1, 2.5], "cost": [0, 0]}):
        found = to_outcomes(given, "profit")
        assert found is not None and found.tolist() == [1.0, 2.5]
    with pytest.raises(InputDataError, match="no column `profit`, got"):
        to_outcomes({"cost": [0]}, "profit")


def test_columns_of_a_table_have_one_length() -> None:
    table = {"demand": [1.0, 2.0], "weather": ["sun"]}
    with pytest.raises(BotorchTensorDimensionError, match="one length"):
        to_tensor(table, Space(DECISIONS, CONTEXTS).contexts, "c")
