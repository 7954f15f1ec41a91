"""A recommendation in names and units, by hand."""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import Category, ContextSet, Integer, Space
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation.stability import Stability
from botorch_drbo.space import NamedRecommendation

SPACE = Space(
    {"stock": Integer(0, 40), "supplier": Category(["A", "B"])},
    {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])},
    outcome="profit",
)


def row(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


def found(**changes: object) -> NamedRecommendation:
    # Rain with a demand of 20 was seen twice.
    points = torch.stack([row(10, 0), row(20, 1), row(30, 2), row(20, 1)])
    plain = Recommendation(
        x=row(12, 1),
        objective=1.5,
        expected_value=3.0,
        worst_case_value=-2.0,
        worst_case_weights=row(0.0, 0.25, 0.4, 0.35),
        context_set=ContextSet(points, row(0.1, 0.2, 0.3, 0.4)),
        worst_case_box=None,
        worst_case_status=SolverStatus.EXACT,
        **changes,  # pyright: ignore[reportArgumentType]
    )
    return NamedRecommendation.of(plain, SPACE)


def test_contexts_are_one_row_each_those_that_hurt_first() -> None:
    best = found()
    assert best.x.to_dict("records") == [{"stock": 12, "supplier": "B"}]
    expected = pd.DataFrame(
        {
            "demand": [20.0, 30.0, 10.0],
            "weather": ["rain", "snow", "sun"],
            "reference_weight": [0.6, 0.3, 0.1],
            "worst_case_weight": [0.6, 0.4, 0.0],
        }
    )
    pd.testing.assert_frame_equal(best.contexts, expected, check_dtype=False)
    assert best.rival is None
    assert best.expected_interval is None and best.worst_case_interval is None


def test_it_prints_names_and_weights() -> None:
    best = found()
    lines = str(best).splitlines()
    assert lines[0] == "decision            stock = 12, supplier = B"
    # Rain has the same weight in both.
    assert lines[3] == (
        "contexts that hurt  demand = 30, weather = snow: weight 0.400, 0.300 in the "
        "reference"
    )
    assert repr(best) == (
        "NamedRecommendation(x={'stock': 12, 'supplier': 'B'}, expected_value=3, "
        "worst_case_value=-2, worst_case_status=EXACT)"
    )


def test_a_rival_has_names_too() -> None:
    known = Stability(0.1, until=0.2, searched=0.4, rival=row(3, 0), num_rivals=5)
    best = found(stability=known)
    assert best.rival is not None
    assert best.rival.to_dict("records") == [{"stock": 3, "supplier": "A"}]
    assert "stock = 3, supplier = A" in str(best)
    none = Stability(0.1, until=None, searched=0.4, rival=None, num_rivals=5)
    assert found(stability=none).rival is None
