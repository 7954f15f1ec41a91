"""Attacks on whole rounds: units of powers of two and a mirror change no bit.

Both are exact in floating point, so what is asked and recommended must be the same
numbers, not only close ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.surrogate import FixedHyperparameters
from tests.attacks.counted import count, num_cases

NUM = num_cases(2, 40)  # of each recipe
RECIPES = ("erbo", "wdrbo", "wdrbo_exact", "ucb_ro", "ts_erbo", "ei_erbo")


@dataclass(frozen=True)
class Run:
    """Told outcomes, in some units."""

    recipe: str
    seed: int
    rows: int
    equal: bool
    decision_unit: float = 1.0
    outcome_unit: float = 1.0
    mirrored: bool = False

    def answers(self) -> tuple[Tensor, Tensor, Tensor]:
        """Two decisions, one recommendation and what it promises, in units of one."""
        chance = torch.Generator().manual_seed(self.seed)
        x = torch.rand(self.rows, 2, generator=chance, dtype=torch.double)
        c = torch.rand(self.rows, 1, generator=chance, dtype=torch.double)
        y = -(x[:, :1] - c).square() - x[:, 1:].square()
        if self.equal:
            y = y[:1].repeat(self.rows, 1)
        factor = -self.outcome_unit if self.mirrored else self.outcome_unit
        square = self.outcome_unit**2
        opt = RobustOptimizer(
            self.recipe,
            self.decision_unit * torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double(),
            torch.tensor([[0.0], [1.0]]).double(),
            seed=self.seed,
            maximize=not self.mirrored,
            num_initial=1,
            num_restarts=1,
            raw_samples=8,
            max_iterations=4,
            hyperparameters=FixedHyperparameters(
                (0.4, 0.3, 0.5), 0.01 * square, outputscale=0.7 * square
            ),
        )
        opt.tell(self.decision_unit * x, c, factor * y)
        asked, best = opt.ask(2), opt.recommend()
        value = torch.tensor(
            [best.objective, best.worst_case_value], dtype=torch.double
        )
        return asked / self.decision_unit, best.x / self.decision_unit, value / factor


@pytest.mark.parametrize("recipe", RECIPES)
@settings(
    max_examples=NUM,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 9),
    equal=st.booleans(),
    decisions=st.integers(-27, 27),
    outcomes=st.integers(-27, 27),
)
def test_units_and_a_mirror_change_no_bit(
    recipe, seed, rows, equal, decisions, outcomes
):
    count(f"rounds, {recipe}")
    plain = Run(recipe, seed, rows, equal)
    expected = plain.answers()
    others = [{"mirrored": True}, {"decision_unit": 2.0**decisions}]
    if not recipe.startswith("ei"):  # a logarithm: other units round in another way
        others.append({"outcome_unit": 2.0**outcomes})
    for how in others:
        found = replace(plain, **how).answers()
        for one, other in zip(expected, found, strict=True):
            assert torch.equal(one, other), how
