"""What is known about one round: its context, its forecast, its radius."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.problem import ConstraintData, History, Round, SearchSpace
from botorch_drbo.problem.feasible import all_decisions
from botorch_drbo.problem.round import checked, in_widths, in_words

NAN = math.nan


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


# Contexts: a number, a category of three, an ordinal, the logarithm of a number.
SPACE = SearchSpace(
    rows([0.0], [1.0]),
    rows([0.0, 0.0, 1.0, 0.0], [40.0, 2.0, 5.0, math.log(100.0)]),
    context_discrete={2: (1.0, 2.0, 5.0)},
    context_categories={1: 3},
    context_names=("temp", "sky", "size", "wind"),
    context_logarithms=(3,),
)


def known(*context: float) -> Round:
    return Round(known_context=torch.tensor(context, dtype=torch.double))


def test_a_known_context_takes_the_dtype_of_the_box_and_the_nearest_value() -> None:
    given = torch.tensor([[10.0, NAN, 2.0 + 1e-7, NAN]])  # float32, one row
    found = Round(known_context=given).within(SPACE).known_context
    assert found is not None and found.dtype == torch.double
    torch.testing.assert_close(
        found, rows([10.0, NAN, 2.0, NAN])[0], rtol=0, atol=0, equal_nan=True
    )


def test_what_was_given_may_change_afterwards() -> None:
    given = torch.tensor([1.0, NAN])
    found = Round(known_context=given).known_context
    given[0] = 2.0
    assert found is not None and found[0] == 1.0


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ([0.5], "floating point tensor, NaN where it is not known, got list"),
        (torch.tensor([1, 2]), "got torch.int64"),
        (torch.tensor([1.0, math.inf]), "infinite entries: .*Use NaN"),
        (torch.tensor([NAN, NAN]), "NaN in every column: nothing is known"),
    ],
)
def test_what_is_no_context_is_refused(context: Any, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        Round(known_context=context)


@pytest.mark.parametrize("shape", [(2, 2), (1, 1, 2), ()])
def test_a_round_has_one_context(shape: tuple[int, ...]) -> None:
    with pytest.raises(BotorchTensorDimensionError, match="must be one context"):
        Round(known_context=torch.zeros(shape))


@pytest.mark.parametrize(
    ("context", "error", "words"),
    [
        ([1.0, NAN], BotorchTensorDimensionError, "must have 4 columns.*got 2"),
        ([41.0, NAN, NAN, NAN], InputDataError, "context"),
        ([NAN, -1.0, NAN, NAN], InputDataError, "context"),
        ([NAN, NAN, 3.0, NAN], InputDataError, "takes the values 1, 2, 5 only"),
        ([NAN, 0.5, NAN, NAN], InputDataError, "takes the values 0, 1, 2 only"),
    ],
)
def test_a_context_fits_the_problem(context: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        known(*context).within(SPACE)


def test_a_forecast_fits_the_problem() -> None:
    points = rows([10.0, 2.0, 5.0, 1.0], [0.0, 0.0, 1.0, 0.0])
    weights = torch.tensor([0.25, 0.75], dtype=torch.double)
    exact = ContextSet(points, weights)
    assert Round(context_set=exact).within(SPACE).context_set is exact
    single = ContextSet(points.float(), weights.float())
    found = Round(context_set=single).within(SPACE).context_set
    assert found is not None
    assert torch.equal(found.points, points) and torch.equal(found.weights, weights)
    with pytest.raises(BotorchTensorDimensionError, match="has 3 context columns"):
        Round(context_set=ContextSet(points[:, :3])).within(SPACE)
    points[1, 2] = 4.0
    with pytest.raises(InputDataError, match="has 4 in row 1, column 2"):
        Round(context_set=ContextSet(points)).within(SPACE)
    with pytest.raises(InputDataError, match="ContextSet or None, got Tensor"):
        Round(context_set=points)  # pyright: ignore[reportArgumentType]


def test_a_radius_is_a_number_a_rule_or_by_column() -> None:
    assert Round(radius=torch.tensor([0.5])).radius == 0.5
    assert Round(radius="sd").radius == "sd"
    assert Round(radius={"temp": 6}).radius == {"temp": 6.0}
    with pytest.raises(BotorchTensorDimensionError, match="must be one number"):
        Round(radius=torch.zeros(2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputDataError, match="radius"):
        Round(radius=-0.1)
    with pytest.raises(InputDataError, match=r"names `tmp`.*Did you mean `temp`"):
        Round(radius={"tmp": 6}).within(SPACE)


def test_radii_by_column_by_hand() -> None:
    radii = {"temp": 6, "sky": 0.1, "size": 1, "wind": 1.2}
    share = math.log(1.2) / math.log(100.0)
    found = in_widths(radii, SPACE)
    torch.testing.assert_close(found, rows([0.15, 0.1, 0.25, share])[0])
    assert in_words(found.tolist(), SPACE) == (
        "6 of temp or another sky in 10% of cases or 1 of size or a factor 1.2 of wind"
    )
    assert in_widths({"sky": 1, "wind": 1}, SPACE).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert in_words([0.0] * 4, SPACE) == "0 of every column"
    # A factor does not depend on where the bounds begin: here 20 to 60.
    ends = rows([math.log(20.0)], [math.log(60.0)])
    warm = SearchSpace(ends, ends, context_names=("t",), context_logarithms=(0,))
    assert in_widths({"t": 1.5}, warm).item() == pytest.approx(
        math.log(1.5) / math.log(3.0), rel=1e-12
    )


@pytest.mark.parametrize(
    ("radii", "words"),
    [
        ({}, "empty dictionary"),
        ({1: 2.0}, "names of context columns as keys, got 1"),
        ({"temp": "6"}, "of `temp` must be a number, got str '6'"),
        ({"temp": True}, "of `temp` must be a number, got bool"),
        ({"temp": -1.0}, "finite and not negative, got -1.0"),
        ({"temp": math.inf}, "finite and not negative, got inf"),
        ({"temp": NAN}, "finite and not negative, got nan"),
        ({"sky": 1.1}, "of `sky` must be at most 1, got 1.1"),
        ({"wind": 0.9}, "of `wind` must be at least 1, got 0.9"),
    ],
)
def test_wrong_radii_by_column_are_refused(radii: Any, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        in_widths(radii, SPACE)


def test_checked_radii_are_a_copy() -> None:
    radii = {"temp": 6.0}
    found = checked(radii)
    radii["temp"] = 7.0
    assert found == {"temp": 6.0}


def test_known_columns_leave_the_distances_of_the_others() -> None:
    space = SearchSpace(
        SPACE.bounds, rows([0.0, 0.0], [1.0, 1.0]), known_context=rows([NAN, 0.5])[0]
    )
    assert space.known_columns == [1] and space.context_diameter == 1.0
    assert SPACE.known_columns == [] and SPACE.context_diameter == 2.0
    given = rows([0.2, 0.9], [0.3, 0.1])
    assert space.with_known(given).tolist() == [[0.2, 0.5], [0.3, 0.5]]
    assert SPACE.with_known(given) is given


def test_contexts_are_listed_where_each_unknown_column_is_discrete() -> None:
    box = rows([0.0, 1.0, 0.0], [2.0, 5.0, 1.0])
    columns: dict[str, Any] = {
        "context_discrete": {1: (1.0, 2.0, 5.0)},
        "context_categories": {0: 3},
    }
    assert SearchSpace(SPACE.bounds, box, **columns).listed_contexts is None
    given = rows([NAN, NAN, 0.25])[0]
    listed = SearchSpace(
        SPACE.bounds, box, known_context=given, **columns
    ).listed_contexts
    expected = [[*both, 0.25] for both in product((0.0, 1.0, 2.0), (1.0, 2.0, 5.0))]
    assert listed is not None and listed.tolist() == expected


@pytest.mark.parametrize(("num", "listed"), [(4096, True), (4097, False)])
def test_long_lists_are_none(num: int, listed: bool) -> None:
    box = rows([0.0], [num - 1.0])
    space = SearchSpace(box, box, categories={0: num}, context_categories={0: num})
    assert (space.listed_contexts is not None) == listed
    assert (all_decisions(space) is not None) == listed


def test_all_decisions_are_those_that_are_feasible() -> None:
    linear = (torch.tensor([0, 1]), torch.tensor([-1.0, -1.0]).double(), -3.0)
    columns: dict[str, Any] = {"discrete": {1: (0.0, 2.0)}, "categories": {0: 4}}
    box = rows([0.0, 0.0], [3.0, 2.0])
    space = SearchSpace(box, box, inequality_constraints=(linear,), **columns)
    found = all_decisions(space)
    expected = [[a, b] for a in range(4) for b in (0.0, 2.0) if a + b <= 3]
    assert found is not None and found.tolist() == expected
    one_is_a_number = SearchSpace(box, box, discrete={1: (0.0, 2.0)})
    assert all_decisions(one_is_a_number) is None


def test_constraints_that_held_are_counted() -> None:
    G = rows([0.0, 1.0], [-1e-9, 1.0], [2.0, -3.0], [1.0, 1.0])
    held = ConstraintData(torch.zeros(4, 1), torch.zeros(4, 1), G).held()
    assert (held.measured, held.together, held.each) == (4, 2, (3, 3))
    assert held.words() == "all held in 2 of 4 trials told, one by one in 3, 3"
    one = ConstraintData(torch.zeros(4, 1), torch.zeros(4, 1), G[:, :1]).held()
    assert one.words() == "held in 3 of 4 trials told"


@pytest.mark.parametrize("shapes", [((4, 1), (3, 1), (4, 2)), ((4, 1), (4, 1), (4,))])
def test_constraints_belong_to_trials(shapes: Any) -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`s x d_x`, `s x d_c`"):
        ConstraintData(*(torch.zeros(shape) for shape in shapes))


def test_variances_belong_to_outcomes() -> None:
    given = {"X": torch.rand(3, 2), "C": torch.rand(3, 1), "Y": torch.rand(3, 1)}
    History(**given, contexts=given["C"], Yvar=torch.rand(3, 1))
    with pytest.raises(BotorchTensorDimensionError, match="one variance for each of 3"):
        History(**given, contexts=given["C"], Yvar=torch.rand(2, 1))
