"""Every recipe runs on test functions of every size: the widest net, small budgets.

Each test function with a third of the recipes, another third than the one before it;
``make attacks`` takes them all.
"""

from __future__ import annotations

import pytest
import torch

from benchmarks.problems import PROBLEMS as ALL
from benchmarks.problems import make
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes import RECIPES
from tests.attacks.counted import count, num_cases
from tests.data import with_data

ITERATIONS = 20
THIRDS = num_cases(1, 3)
OWN = {"misspecified_bumps", "misspecified_waves", "reservoir"}  # of our experiments
PROBLEMS = sorted(ALL.keys() - OWN)


def recipes_of(problem: str) -> list[str]:
    first = PROBLEMS.index(problem)
    named = enumerate(sorted(RECIPES))
    return [name for i, name in named if (i + first) % 3 < THIRDS]


def test_every_recipe_has_its_test_functions() -> None:
    found = [name for problem in PROBLEMS for name in recipes_of(problem)]
    assert {found.count(name) for name in RECIPES} <= (
        {len(PROBLEMS) // 3, len(PROBLEMS) // 3 + 1} if THIRDS == 1 else {len(PROBLEMS)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("problem", with_data(PROBLEMS))
def test_recipes_run_twenty_iterations(problem: str) -> None:
    function = make(problem)
    bounds, context_bounds = function.bounds, function.context_bounds
    contexts = function.sample_contexts(ITERATIONS, seed=0)
    for name in recipes_of(problem):
        count("recipes on test functions")
        options = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 3}
        if name in ("sbo_kde", "drbo_kde", "drbo_mmd", "drbo_mmd_minimax"):
            options["num_contexts"] = 32
        if name == "regret_balancing":
            options["reward_range"] = (-1e4, 1e4)
        opt = RobustOptimizer(name, bounds, context_bounds, num_initial=19, **options)
        noise = torch.Generator().manual_seed(0)
        for c in contexts.split(1):
            x = opt.ask()
            assert ((x >= bounds[0]) & (x <= bounds[1])).all(), (name, x)
            opt.tell(x, c, function.observe(x, c, generator=noise))
        best = opt.recommend()
        assert opt.history.t == ITERATIONS
        assert torch.isfinite(best.x).all(), name
        values = [best.objective, best.expected_value, best.worst_case_value]
        assert torch.tensor(values).isfinite().all(), (name, values)
        # The model has seen outcomes: its means do not stray far from their range.
        low, high = opt.history.Y.min().item(), opt.history.Y.max().item()
        slack = 2.0 * (high - low) + 1e-6
        assert low - slack <= best.expected_value <= high + slack, name
