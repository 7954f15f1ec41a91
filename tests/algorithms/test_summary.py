"""How a recommendation prints."""

from __future__ import annotations

import torch

from botorch_drbo import ContextSet
from botorch_drbo.algorithms import Recommendation
from botorch_drbo.ambiguity import SolverStatus


def recommendation(num: int = 4) -> Recommendation:
    points = torch.tensor([[0.1], [0.4], [0.4], [0.9]], dtype=torch.double)[:num]
    worst = torch.tensor([0.0, 0.3, 0.4, 0.3], dtype=torch.double)
    return Recommendation(
        x=torch.tensor([12.345678, 3.0], dtype=torch.double),
        objective=1.0,
        expected_value=2.71828,
        worst_case_value=-1.5,
        worst_case_weights=worst,
        context_set=ContextSet(points),
        worst_case_box=None,
        worst_case_status=SolverStatus.EXACT,
    )


def test_a_report_is_a_few_lines() -> None:
    lines = str(recommendation()).splitlines()
    assert lines == [
        "decision            x1 = 12.35, x2 = 3",
        "expected value      2.718",
        "worst-case value    -1.5 (exact)",
        "contexts that hurt  c1 = 0.4: weight 0.700, 0.500 in the reference",
        "                    c1 = 0.9: weight 0.300, 0.250 in the reference",
    ]


def test_names_can_be_given() -> None:
    text = recommendation().report(["price", "stock"], ["demand"])
    assert "price = 12.35, stock = 3" in text and "demand = 0.9" in text


def test_the_repr_is_short() -> None:
    assert repr(recommendation()) == (
        "Recommendation(x=[12.345678, 3.0], expected_value=2.71828, "
        "worst_case_value=-1.5, worst_case_status=EXACT)"
    )
