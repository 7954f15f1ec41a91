"""Each kind of variable speaks the user's units, and refuses what it cannot take."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.codec import decode, encode
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable
from botorch_drbo.space.variables import as_variable

KINDS: list[tuple[Variable, list[object], list[float]]] = [
    (Continuous(-1.0, 3.0), [-1.0, 0.25, 3.0], [-1.0, 0.25, 3.0]),
    (Integer(2, 5), [2, 5, 3], [2.0, 5.0, 3.0]),
    (Ordinal([40, 2.5, 10]), [10.0, 40.0], [10.0, 40.0]),
    (Category(["sun", "rain", "snow"]), ["snow", "sun"], [2.0, 0.0]),
    (Log(0.01, 100.0), [0.01, 1.0, 100.0], [math.log(0.01), 0.0, math.log(100.0)]),
]


def cell(i: int) -> str:
    return f"row {i}:"


@pytest.mark.parametrize(("variable", "values", "numbers"), KINDS)
def test_values_go_to_the_model_and_back(
    variable: Variable, values: list[object], numbers: list[float]
) -> None:
    encoded = variable.encode(values, cell)
    torch.testing.assert_close(encoded, torch.tensor(numbers).double())
    assert variable.decode(encoded) == pytest.approx(values)
    assert decode(encode(variable), Variable) == variable
    lower, upper = variable.bounds
    assert lower <= encoded.min() and encoded.max() <= upper


@pytest.mark.parametrize(
    ("variable", "wrong", "words"),
    [
        (Continuous(0.0, 1.0), 1.5, "between 0 and 1, got 1.5"),
        (Continuous(0.0, 1.0), math.nan, "finite number"),
        (Continuous(0.0, 1.0), "a", "finite number, got 'a'"),
        (Continuous(0.0, 1.0), True, "finite number"),
        (Integer(0, 9), 2.5, "whole number, got 2.5"),
        (Integer(0, 9), 10, "between 0 and 9"),
        (Ordinal([1, 2, 5]), 3, "one of"),
        (Category(["sun", "rain"]), "rian", "Did you mean `rain`"),
        (Category(["sun", "rain"]), 1, "got 1"),
        (Log(0.1, 1.0), 0.0, "between 0.1 and 1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    variable: Variable, wrong: object, words: str
) -> None:
    good = variable.decode(torch.tensor([variable.bounds[0]]))
    with pytest.raises(InputDataError, match=r"row 1:") as caught:
        variable.encode([*good, wrong], cell)
    assert words in str(caught.value)


@pytest.mark.parametrize("first", [0.001, -3.0])
def test_an_ordinal_is_meant_within_a_millionth_of_its_smallest_gap(
    first: float,
) -> None:
    scale = Ordinal([*sorted({first, 0.001}), 0.002, 5.0])
    encoded = scale.encode([0.002 + 9e-10, 0.002 - 9e-10, 5.0 - 9e-10], cell)
    assert encoded.tolist() == [0.002, 0.002, 5.0]
    for wrong in (0.002 + 1.5e-9, 0.001 - 1.5e-9, 5.0 + 1e-7, 0.0):
        with pytest.raises(InputDataError, match="must be one of"):
            scale.encode([wrong], cell)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Continuous(1.0, 1.0), "below"),
        (lambda: Continuous(0.0, math.inf), "finite"),
        (lambda: Integer(0, 2.5), "whole"),  # pyright: ignore[reportArgumentType]
        (lambda: Ordinal([1.0]), "two different"),
        (lambda: Ordinal(["a", "b"]), "Category"),  # pyright: ignore[reportArgumentType]
        (lambda: Category(["a", "a"]), "two different"),
        (lambda: Category("ab"), "list of names"),
        (lambda: Category([1, 2]), "names"),  # pyright: ignore[reportArgumentType]
        (lambda: Log(0.0, 1.0), "positive"),
        (lambda: as_variable((1.0, 0.0), "price"), "`price`"),
        (lambda: as_variable(3, "price"), "pair"),
    ],
)
def test_a_variable_that_is_none_is_refused(make: object, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        make()  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("wrong", [2.9, 2.99, 3.00001])
def test_a_whole_number_is_whole_to_a_millionth(wrong: float) -> None:
    with pytest.raises(InputDataError, match="whole number"):
        Integer(0, 9).encode([wrong], cell)
    assert Integer(0, 9).encode([2.9999999], cell).tolist() == [3.0]
    with pytest.raises(InputDataError, match="between 0 and 16777216, got 16777217"):
        Integer(0, 2**24).encode([2**24 + 1], cell)


def test_a_logarithmic_number_never_leaves_its_bounds() -> None:
    """``exp(log(b))`` is not ``b`` for about every other number."""
    outside = 0
    for k in range(1, 200):
        lower, upper = k / 7, k / 7 + k / 3
        kind = Log(lower, upper)
        ends = torch.tensor(kind.bounds, dtype=torch.double)
        a, b = ends.exp().tolist()
        outside += a < lower or b > upper
        low, high = kind.decode(ends)
        assert lower <= low <= high <= upper
        assert kind.bounds[0] <= kind.encode([low, high], cell).min()
        assert kind.encode([low, high], cell).max() <= kind.bounds[1]
    assert outside > 20  # else this says nothing
    near = torch.tensor([0.1, 0.3]).tolist()  # what float32 makes of the bounds
    encoded = Log(0.1, 0.3).encode(near, cell)
    assert near[0] > 0.1 and near[1] > 0.3
    assert encoded.max().item() == math.log(0.3)
