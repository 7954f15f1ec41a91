"""The rules that decide from the same outcomes, by the same fitted model."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.experiments.price.cases import Case
from botorch_drbo import MeanShift, RobustOptimizer
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.objectives import RobustSatisficing
from botorch_drbo.optimizer.run import Purpose
from botorch_drbo.policies.bounds import ConfidenceBound
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.recipes import RobustRecipe
from botorch_drbo.recipes.base import Recipe
from botorch_drbo.sampling import sobol_in_box

EFFORT: dict[str, Any] = {"num_restarts": 4, "raw_samples": 256, "max_iterations": 100}
_BALL = WassersteinBall(radius="sd")
EXPECTED, BALL, WITHIN = "expected", "ball", "ball within 10%"
RULES: dict[str, dict[str, Any]] = {
    EXPECTED: {},
    BALL: {"against": _BALL},
    "ball within 5%": {"against": _BALL, "give_up": 0.05},
    WITHIN: {"against": _BALL, "give_up": 0.1},
    "ball within 20%": {"against": _BALL, "give_up": 0.2},
    "mean moved by 1 within 10%": {"against": MeanShift(1.0, clip=1.0), "give_up": 0.1},
    "mean moved by 2 within 10%": {"against": MeanShift(2.0, clip=1.0), "give_up": 0.1},
    "regret of mean moved by 2 within 10%": {
        "against": MeanShift(2.0, clip=1.0),
        "give_up": 0.1,
        "criterion": "regret",
    },
}
"""What each rule adds to ``erbo``."""
SATISFICING = "satisficing at 20% within 10%"
_SAMPLE = 256  # decisions by whose mean the gain is known


def decisions(opt: RobustOptimizer, case: Case) -> dict[str, Tensor]:
    """What each rule recommends now, ``d_x`` each."""
    state = opt._run.state(Purpose.RECOMMENDATION)
    own = opt._run.configuration.algorithm
    model = own.judging_model(state)
    found = {
        name: own.with_options(**rule).decided_by(model, state)
        for name, rule in RULES.items()
    }
    # The target lacks 20% of what there is to gain to the best expectation.
    points = state.history.contexts
    box = state.space.bounds
    X = torch.cat([found[EXPECTED].unsqueeze(0), sobol_in_box(_SAMPLE, box, 0)])
    Z = torch.cat(
        [
            X.unsqueeze(1).expand(-1, len(points), -1),
            points.expand(len(X), -1, -1),
        ],
        dim=-1,
    )
    with torch.no_grad():
        mean = joint_moments(model, Z.flatten(0, 1))[0].reshape(len(X), -1).mean(-1)
    target = float(mean.max() - 0.2 * (mean.max() - mean[1:].mean()))
    found[SATISFICING] = satisficing(target).decided_by(model, state)
    return found


def satisficing(target: float) -> Recipe:
    """Least fragile below a target, within the price."""
    policy = ConfidenceBound(objective=partial(RobustSatisficing, target=target))
    return RobustRecipe(
        name="satisficing", adversary=_BALL, policy=policy, give_up=0.1, **EFFORT
    )
