"""One optimizer with two constructors: tensors for boxes, tables for variables."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from botorch_drbo import NamedOptimizer, RobustOptimizer

FACES = (RobustOptimizer, NamedOptimizer)


def public(kind: type) -> dict[str, Any]:
    members = inspect.getmembers(kind)
    return {n: m for n, m in members if not n.startswith("_") or n == "__init__"}


def function(member: Any) -> Any:
    return member.fget if isinstance(member, property) else member


def test_what_one_can_the_other_can() -> None:
    boxes, named = (set(public(kind)) for kind in FACES)
    assert named - boxes == {"from_dataframe", "named_space", "tensors"}
    assert boxes <= named


def test_what_both_can_is_told_once() -> None:
    own = [name for kind in FACES for name in vars(kind) if not name.startswith("_")]
    assert sorted(own) == ["from_dataframe", "named_space", "tensors"]


@pytest.mark.parametrize("kind", FACES)
def test_nothing_public_takes_or_returns_just_anything(kind: type) -> None:
    for name, member in public(kind).items():
        annotations = inspect.get_annotations(function(member))
        if name != "__init__":
            assert "return" in annotations, name
        for argument, annotation in annotations.items():
            assert not re.search(r"\bAny\b", str(annotation)), (name, argument)


def test_constructors_take_the_same_beside_the_problem() -> None:
    boxes, named = (inspect.signature(kind.__init__).parameters for kind in FACES)
    different = {"bounds", "context_bounds", "space"}
    assert [
        (p.name, p.kind, p.default) for p in boxes.values() if p.name not in different
    ] == [
        (p.name, p.kind, p.default) for p in named.values() if p.name not in different
    ]
