"""One way to store objects: nothing is mistaken, nothing is run that must not be."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

import botorch_drbo
from botorch_drbo import Category, Integer, LinearConstraint, Log, Ordinal, Space
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.codec import decode, encode, objects, register
from botorch_drbo.codec.objects import tag_of
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.schedules import Constant, Schedule
from botorch_drbo.schedules.radii import Rule
from botorch_drbo.surrogate import FixedHyperparameters


def trip(value: object) -> Any:
    return decode(json.loads(json.dumps(encode(value), allow_nan=False)), object)


@dataclass(frozen=True)
class Constant2(Schedule):
    """A schedule of this module, with the name of none of ours."""

    value: float = 1.0

    def at(self, t: int) -> float:
        return self.value / t


def module_with(name: str, source: str) -> ModuleType:
    """A module of a user, as if it had been imported."""
    module = ModuleType(name)
    sys.modules[name] = module
    exec(source, module.__dict__)
    return module


IMPOSTOR = """
import torch
from botorch_drbo.ambiguity import AmbiguitySet

class TotalVariation(AmbiguitySet):
    solve = distance = None
"""


def test_a_class_of_the_same_name_does_not_take_the_place_of_ours() -> None:
    record = encode(TotalVariation(0.3))
    own = module_with("sets_of_mine", IMPOSTOR).TotalVariation
    try:
        assert type(decode(record, AmbiguitySet)) is TotalVariation
        found = trip(own(0.3))
        assert type(found) is own and found.radius == 0.3
        assert encode(own(0.3))["class"] == "sets_of_mine:TotalVariation"
    finally:
        del sys.modules["sets_of_mine"]
    with pytest.raises(InputDataError, match="Import the module"):
        decode(json.loads(json.dumps(record).replace("botorch_drbo:", "gone:")), object)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        "text",
        (),
        (1, (2.0, None)),
        {"b": 1, "a": (2,)},
        Constant(0.1),
        Constant2(0.1),
        ConfidenceWidth(1.0, noise_ratio=0.5),
        FixedHyperparameters((0.1, 0.3), 0.01),
        Integer(0, 9),
        Ordinal([10, 2.5]),
        Category(["sun", "rain"]),
        Log(0.1, 10),
        LinearConstraint({"b": 1.0, "a": -2}, upper=3.0),
    ],
    ids=repr,
)
def test_values_come_back_equal(value: object) -> None:
    found = trip(value)
    assert found == value and type(found) is type(value)
    if isinstance(value, dict):
        assert list(found) == list(value)


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan"), -0.0])
def test_numbers_that_json_does_not_know(number: float) -> None:
    assert repr(trip(number)) == repr(number)
    assert [repr(n) for n in trip((number,))] == [repr(number)]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([[0.1, -0.0], [float("nan"), float("-inf")]]),
        torch.tensor(0.1, dtype=torch.double),
        torch.tensor([0.1, 3.0]).half(),
        torch.tensor([0.1, 3.0]).bfloat16(),
        torch.tensor([[1, -(2**62)]]),
        torch.tensor([True, False]),
        torch.empty(0, 3),
        torch.empty(2, 0, dtype=torch.double),
    ],
    ids=str,
)
def test_tensors_keep_dtype_shape_and_bits(tensor: Tensor) -> None:
    found = trip(tensor)
    assert found.dtype == tensor.dtype and found.shape == tensor.shape
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    same = bits[tensor.element_size()]
    assert torch.equal(found.view(same), tensor.contiguous().view(same))


def made_in_a_function() -> type[Schedule]:
    @dataclass(frozen=True)
    class Halving(Schedule):
        initial: float = 4.0

        def at(self, t: int) -> float:
            return self.initial * 0.5 ** (t - 1)

    return Halving


def test_a_class_that_cannot_be_found_again_is_refused_when_it_is_stored() -> None:
    hidden = made_in_a_function()
    with pytest.raises(InputDataError, match="register"):
        encode(hidden())
    register(hidden)
    try:
        assert trip(hidden(2.0)) == hidden(2.0)
        again = register(made_in_a_function())  # as a cell of a notebook run twice
        assert type(trip(hidden(2.0))) is again
    finally:
        del objects._REGISTERED[tag_of(hidden)]


def test_a_class_of_ours_may_move_between_modules(monkeypatch: Any) -> None:
    record = encode(Constant(0.5))
    monkeypatch.setattr(Constant, "__module__", "botorch_drbo.elsewhere")
    monkeypatch.setitem(
        sys.modules,
        "botorch_drbo.elsewhere",
        type("Elsewhere", (ModuleType,), {"Constant": Constant})("elsewhere"),
    )
    assert encode(Constant(0.5)) == record
    assert decode(record, Rule) == Constant(0.5)


def test_two_of_our_classes_have_two_names() -> None:
    """Moves are free only as long as no two storable classes are called the same.

    Read from the syntax, so that also classes count whose host is not imported.
    """
    package = Path(botorch_drbo.__file__).parent
    classes = [
        node
        for path in package.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    bases = {
        node.name: {b.id for b in node.bases if isinstance(b, ast.Name)}
        for node in classes
    }
    names = {kind.__name__ for kind in objects._BASES}
    while found := {n for n, b in bases.items() if b & names} - names:
        names |= found
    storable = [
        node.name
        for node in classes
        if any(isinstance(b, ast.Name) and b.id in names for b in node.bases)
        or any(
            isinstance(d, ast.Name) and d.id == "storable" for d in node.decorator_list
        )
    ]
    assert len(storable) > 30
    assert sorted(storable) == sorted(set(storable))


def test_two_classes_under_one_name_are_refused() -> None:
    source = "from tests.codec.test_codec import Constant2 as Base\n" + (
        "class Constant(Base): pass\n"
    )
    module = module_with("botorch_drbo.rogue", source)
    try:
        with pytest.raises(InputDataError, match="more than one class"):
            encode(Constant(1.0))
    finally:
        del sys.modules["botorch_drbo.rogue"], module


@pytest.mark.parametrize(
    "tag",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "pathlib:Path",
        "torch.nn.modules.linear:Linear",
        "botorch_drbo.optimizer:RobustOptimizer",
        "botorch_drbo:RobustOptimizer",
        "botorch_drbo:Journal",
        "this:s",
        "",
        ["botorch_drbo:Constant"],
        None,
    ],
    ids=str,
)
def test_a_record_runs_no_other_constructors(tag: object) -> None:
    known = set(sys.modules)
    with pytest.raises(InputDataError, match="class"):
        decode({"class": tag, "arguments": {}}, object)
    assert set(sys.modules) == known  # and imports nothing


BAD: dict[str, tuple[Any, str]] = {
    "abstract": ({"class": "botorch_drbo:Schedule", "arguments": {}}, "abstract"),
    "unknown argument": (
        {"class": "botorch_drbo:Constant", "arguments": {"value": 1.0, "x": 2}},
        r"takes \['value'\], not \['x'\]",
    ),
    "missing argument": (
        {"class": "botorch_drbo:Constant", "arguments": {}},
        "missing 1 required",
    ),
    "out of range": (
        {"class": "botorch_drbo:Constant", "arguments": {"value": -1.0}},
        "must not be negative",
    ),
    "no arguments": ({"class": "botorch_drbo:Constant", "arguments": 3}, "dictionary"),
    "no such tensor": (
        {
            "class": "botorch_drbo:Constant",
            "arguments": {"value": 1.0},
            "exact": {"value": {"tensor": 2.0, "dtype": "float64"}},
        },
        "no tensor 'value'",
    ),
    "another shape": (
        {**encode(TotalVariation(0.3)), "exact": {"radius": encode(torch.ones(2))}},
        "shape",
    ),
    "another value": (
        {
            "class": "botorch_drbo:TotalVariation",
            "arguments": {"radius": 0.3},
            "exact": {"radius": encode(torch.tensor(-1.0, dtype=torch.double))},
        },
        "makes 0.3 of the radius -1.0: the record is damaged",
    ),
    "another kind": (encode(Constant(1.0)), "should be a AmbiguitySet"),
    "unknown entries": ({"x": 1}, r"\['x'\]"),
    "an old record": ({"schedule": "Constant", "value": 1.0}, "'schedule', 'value'"),
    "a name in place of a number": ({"float": "big"}, "no number"),
    "pairs": ({"mapping": [["a"]]}, "pairs"),
    "no JSON": ({1, 2}, "no type of JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_damaged_records(case: str) -> None:
    data, words = BAD[case]
    with pytest.raises(InputDataError, match=words) as caught:
        decode(data, AmbiguitySet, "the set")
    assert "`the set`" in str(caught.value)


def test_records_that_are_too_deep() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputDataError, match="deep"):
        decode(deep, object)


class Scaled(AmbiguitySet):
    """A user's set whose constructor takes more than tensors."""

    def __init__(self, radius: float, scale: float, keep: str = "scale") -> None:
        super().__init__(radius)
        self.keep = keep
        if keep == "scale":
            self.scale = scale
        elif keep == "twice":
            self.scale = 2.0 * scale

    solve = distance = None  # pyright: ignore[reportAssignmentType]


def test_an_argument_is_kept_under_its_own_name() -> None:
    found = trip(Scaled(0.3, 1.5))
    assert (found.radius.item(), found.scale) == (0.3, 1.5)
    with pytest.raises(InputDataError, match=r"takes \['scale'\]"):
        encode(Scaled(0.3, 1.5, keep="nothing"))
    with pytest.raises(InputDataError, match="makes another `scale`"):
        encode(Scaled(0.3, 1.5, keep="twice"))


def test_a_set_changed_after_it_was_made() -> None:
    ball = Scaled(0.3, 1.5).with_radius(0.7)
    ball.radius = torch.tensor(0.7, dtype=torch.float32)
    found = trip(ball)
    assert found.radius.dtype == torch.float32 and torch.equal(
        found.radius, ball.radius
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda x: x, "function"),
        (print, "function"),
        (object(), "A object"),
        ({1: 2}, "dict"),
        ((1, {"a": object()}), r"`option\[1\]\[a\]`"),
        (Space({"x": (0, 1)}, {"c": (0, 1)}).search_space, "SearchSpace"),
    ],
)
def test_what_cannot_be_stored(value: object, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        encode(value, "option")


def test_a_stored_value_may_be_changed_by_others() -> None:
    """Some stores of JSON turn 1.0 into 1, and forget the order of keys."""
    constraint = LinearConstraint({"b": 1.0, "a": -2.0}, upper=3.0)
    text = json.dumps(encode(constraint), sort_keys=True).replace(".0", "")
    found = decode(json.loads(text), LinearConstraint)
    assert found == constraint
    assert list(found.coefficients) == ["b", "a"]


def test_decode_leaves_the_record_alone() -> None:
    record = encode(Constant(1.0))
    decode(record, Rule)
    assert record == {"class": "botorch_drbo:Constant", "arguments": {"value": 1.0}}
