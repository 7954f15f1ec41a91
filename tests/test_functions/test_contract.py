"""What every test function promises; a member passes by being listed once."""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.problems import PROBLEMS, make
from tests.contracts.functions import RobustTestFunctionCase, RobustTestFunctionContract
from tests.data import FILES

# Those that read a data file have tests of their own.
SYNTHETIC = [name for name in PROBLEMS if name not in FILES]
NARROW = ("ackley_1_1", "ackley_2_1", "ackley_2_4", "branin_2_2", "hartmann_5_1")


class TestOurFunctions(RobustTestFunctionContract):
    cases = [
        *(RobustTestFunctionCase(name, partial(make, name)) for name in SYNTHETIC),
        *(
            RobustTestFunctionCase(
                f"{name}, sbo_kde", partial(make, name, preset="sbo_kde")
            )
            for name in NARROW
        ),
        RobustTestFunctionCase(
            "newsvendor with noise", partial(make, "newsvendor", noise_std=0.3)
        ),
    ]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_function_has_the_name_by_which_it_is_asked_for(name: str) -> None:
    assert make(name).name == name
