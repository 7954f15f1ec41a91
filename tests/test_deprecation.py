"""Old names: each leads to its new one, and says so where it is used."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest
import torch

from botorch_drbo import algorithms
from botorch_drbo._deprecation import renamed_attribute, renamed_name
from botorch_drbo.problem import SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.recipes.phased import PhasedState

MOVED_FROM = [
    f"botorch_drbo.{package}"
    for package in (
        "acquisition",
        "calibrate",
        "cli",
        "confidence",
        "kernels",
        "lipschitz",
        "plotting",
        "posterior",
        "sample_paths",
        "schedules",
        "test_functions",
    )
]


@pytest.mark.parametrize("old", sorted(algorithms._RENAMED))
def test_every_old_name_is_what_the_new_one_is(old: str) -> None:
    module, _, new = algorithms._RENAMED[old].partition(":")
    with pytest.warns(DeprecationWarning) as caught:
        found = getattr(algorithms, old)
    assert found is getattr(importlib.import_module(module), new)
    (warning,) = caught
    assert str(warning.message) == (
        f"`botorch_drbo.algorithms.{old}` is deprecated: use `{module}.{new}`."
    )
    assert warning.filename == __file__  # where the old name stands


def test_the_names_that_users_of_0_2_0_had_most_often() -> None:
    with pytest.warns(DeprecationWarning, match="use `botorch_drbo.recipes.make_rec"):
        from botorch_drbo.algorithms import make_algorithm
    with pytest.warns(DeprecationWarning, match="use `botorch_drbo.recipes.Recipe`"):
        from botorch_drbo.algorithms import Algorithm
    with pytest.warns(DeprecationWarning, match="use `botorch_drbo.recipes.RECIPES`"):
        from botorch_drbo.algorithms import ALGORITHMS
    assert (make_algorithm, Algorithm, ALGORITHMS) == (make_recipe, Recipe, RECIPES)


def test_a_class_without_successor_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'EmpiricalRisk'"):
        _ = algorithms.EmpiricalRisk
    with pytest.raises(AttributeError, match="'there' has no attribute 'name'"):
        renamed_name("there", "name", {})


def test_old_attributes() -> None:
    X = torch.rand(5, 2).double()
    state = PhasedState(1, 1, X, torch.ones(5, dtype=torch.bool), X[:2], X[:1])
    with pytest.warns(DeprecationWarning, match=r"use `PhasedState\.observed`"):
        assert state.told is state.observed
    box = torch.tensor([[0.0], [2.0]]).double()
    space = SearchSpace(box, box)
    with pytest.warns(DeprecationWarning, match=r"`SearchSpace\.context_support`"):
        assert torch.equal(space.context_reach, space.context_support)


def test_the_warning_points_to_the_line_that_reads_the_attribute() -> None:
    class Ball:
        radius = 2.0
        size = renamed_attribute("size", "radius")

    with pytest.warns(DeprecationWarning) as caught:
        assert Ball().size == 2.0
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError):
        Ball().size = 3.0


def test_the_package_uses_no_old_name() -> None:
    """Nothing in it imports the old module; attributes are caught by the filter."""
    package = Path(algorithms.__file__).parent
    for path in package.rglob("*.py"):
        assert "botorch_drbo.algorithms" not in path.read_text(), path
    filters = tomllib.loads((package.parent / "pyproject.toml").read_text())
    shown = filters["tool"]["pytest"]["ini_options"]["filterwarnings"]
    assert r"error::DeprecationWarning:botorch_drbo\b" in shown


MOVED = [
    (package, name)
    for package in MOVED_FROM
    for name in importlib.import_module(package)._MOVED
]


@pytest.mark.parametrize(("package", "name"), MOVED)
def test_a_name_of_0_2_0_that_left_its_package_is_found_in_its_module(
    package: str, name: str
) -> None:
    module = importlib.import_module(package)
    home = module._MOVED[name]
    assert home.startswith(f"{package}.") and name not in module.__all__
    with pytest.warns(DeprecationWarning) as caught:
        found = getattr(module, name)
    assert found is getattr(importlib.import_module(home), name)
    expected = f"`{package}.{name}` is deprecated: use `{home}.{name}`."
    assert [str(warning.message) for warning in caught] == [expected]
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="no attribute 'never_there'"):
        _ = module.never_there
