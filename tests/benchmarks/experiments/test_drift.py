"""Regret by the law of each round, against a Monte Carlo of its own."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from benchmarks.experiments.tournament.cases import CASES
from benchmarks.experiments.tournament.drift import drifting_regrets
from benchmarks.study.laws import LawOfTheData

CASE = "newsvendor_drifting"


@pytest.mark.parametrize("step", [5, 14])
def test_regret_is_that_of_the_moved_law(step: int):
    """Contexts as the runs draw them: clipped, moved, clipped again."""
    function = CASES[CASE].make(0)
    data = LawOfTheData(function)
    moved = 2.0 * step / 14 * data.deviation * data.adverse_direction()
    low, high = function.context_bounds
    contexts = function.true_contexts(100_000, seed=3)
    contexts = (contexts.clamp(low, high) + moved).clamp(low, high)
    assert function.bounds.flatten().tolist() == [0.0, 1.0]
    grid = torch.linspace(0.0, 1.0, 501, dtype=torch.double)[:, None]
    earned = function.table(grid, contexts).mean(-1)
    x = torch.tensor([[0.2], [0.7]], dtype=torch.double)
    wanted = earned.max() - function.table(x, contexts).mean(-1)
    wanted = 100 * wanted / (earned.max() - earned.mean())
    steps = pd.DataFrame(
        {
            "case": CASE,
            "seed": 0,
            "method": ["a", "b"],
            "step": step,
            "chosen": True,
            "x": x.tolist(),
        }
    )
    more = steps.assign(step=14, chosen=False)  # says how many rounds there are
    still = steps.assign(case="newsvendor")
    found = drifting_regrets(pd.concat([steps, more, still]))
    assert found["regret"].tolist() == pytest.approx(wanted.tolist(), rel=0.01, abs=0.5)
    assert len(found) == 2
