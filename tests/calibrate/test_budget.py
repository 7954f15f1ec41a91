"""The radius that a budget buys, against brute force over radii."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from botorch_drbo.ambiguity import FullSimplex, TotalVariation
from botorch_drbo.calibrate import choice_from, from_budget
from tests.calibrate.oracles import worst_case_in_total_variation
from tests.models import uniform


def test_the_last_decision_within_the_budget_and_no_farther():
    bold = torch.linspace(0.0, 1.0, 10).double().unsqueeze(-1)
    f = 2.0 + bold - bold.square() / 3 + 3 * bold * (uniform(6, seed=4) - 0.5)
    p = torch.full((6,), 1 / 6).double()
    radii, share = torch.linspace(0.0, 1.0, 21), 0.05
    worst = torch.tensor(
        [[worst_case_in_total_variation(row, p, r.item()) for row in f] for r in radii]
    )
    expected = (f @ p)[worst.argmax(-1)]  # at each radius, by HiGHS
    dear = int((expected < (1 - share) * expected[0]).nonzero()[0])
    assert 1 < dear < 20
    radius = from_budget(
        choice_from(f, p, TotalVariation(0.3)), 1.0, share=share, num_radii=20
    )
    assert radii[dear - 1] - 1e-6 <= radius <= radii[dear]


def test_the_jump_is_found_to_the_tolerance():
    calls = []

    def expected(radius):
        calls.append(radius)
        return 10.0 if radius < 0.777 else 9.0

    assert 0.776 <= from_budget(expected, 1.0, tolerance=1e-3) < 0.777
    assert len(calls) <= 8 + 1 + 10


def test_costs_are_costs_also_where_low_outcomes_are_good():
    def cost(radius):  # of the decision that is robust at this radius
        return 10.0 + radius

    assert from_budget(cost, 4.0, share=0.1) == pytest.approx(1.0, abs=0.04)
    assert from_budget(lambda r: -cost(r), 4.0, share=0.1) == pytest.approx(
        1.0, abs=0.04
    )


def test_a_budget_in_units_of_the_outcome():
    assert from_budget(lambda r: -r, 4.0, budget=1.0) == pytest.approx(1.0, abs=0.04)
    assert from_budget(lambda r: -r, 4.0, budget=0.0) == 0.0
    assert from_budget(lambda r: -r, 4.0, budget=9.0) == 4.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"max_radius": 0.0}, "`max_radius` must be a positive finite number"),
        ({"max_radius": float("inf")}, "`max_radius` must be a positive finite number"),
        ({"tolerance": -1.0}, "`tolerance` must be a positive finite number"),
        ({"share": -0.1}, "`share` must not be negative"),
        ({"budget": float("nan")}, "`budget` must be"),
        ({"num_radii": 0}, "`num_radii`"),
        ({"expected_value": lambda r: 0.0}, "Pass `budget`"),
        ({"expected_value": lambda r: float("nan")}, "must be finite"),
    ],
)
def test_refuses_in_the_words_of_the_user(arguments, says):
    usual = {"expected_value": lambda r: 1.0, "max_radius": 1.0}
    with pytest.raises(InputDataError, match=says):
        from_budget(**{**usual, **arguments})


def test_refuses_lists_that_do_not_fit():
    p = torch.full((3,), 1 / 3)
    with pytest.raises(BotorchTensorDimensionError, match="`m x n`"):
        choice_from(torch.zeros(3), p, TotalVariation(0.0))
    with pytest.raises(BotorchTensorDimensionError, match="one score per context"):
        choice_from(torch.zeros(2, 4), p, TotalVariation(0.0))
    with pytest.raises(InputDataError, match="has no radius"):
        choice_from(torch.zeros(2, 3), p, FullSimplex())
