"""Names become recipes here, and only here."""

from __future__ import annotations

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo.algorithms import ALGORITHMS, algorithm_from_dict, make_algorithm
from botorch_drbo.schedules import InverseSquareRoot


def test_every_recipe_of_the_first_release_is_there() -> None:
    names = {"random", "gp_ucb", "erbo", "wdrbo", "sbo_kde", "stable_opt"}
    assert names <= set(ALGORITHMS)
    assert all(make_algorithm(name).name == name for name in ALGORITHMS)


def test_schedules_survive() -> None:
    recipe = make_algorithm("wdrbo", radius=InverseSquareRoot(0.7), beta=4.0)
    again = algorithm_from_dict(recipe.to_dict())
    assert again.to_dict() == recipe.to_dict()
    assert again.radius == InverseSquareRoot(0.7)  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wdrb", {}, "choices are"),
        ("erbo", {"radius": 0.1}, "no option radius"),
        ("wdrbo", {"radius": -0.1}, "negative"),
        ("wdrbo", {"beta": -1.0}, "negative"),
        ("wdrbo", {"beta": "big"}, "number"),
        ("sbo_kde", {"num_contexts": 0}, "num_contexts"),
        ("stable_opt", {"num_contexts": True}, "num_contexts"),
    ],
)
def test_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        make_algorithm(name, **options)
