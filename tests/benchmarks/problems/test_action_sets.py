"""Bandits with actions drawn anew, and the rewards of a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from benchmarks.problems import ActionSetBandit, MisspecifiedFunction
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes.regret_balancing import RegretBalancing
from botorch_drbo.surrogate import FixedHyperparameters

FUNCTION = MisspecifiedFunction(
    "waves", 1, misspecification=0.02, d_x=1, lengthscale=0.5
)
BANDIT = ActionSetBandit(FUNCTION, num_actions=6, noise=0.05)


def test_actions_depend_on_the_seed_alone_and_fill_the_box() -> None:
    actions = BANDIT.actions(400, seed=3)
    assert actions.shape == (400, 6, 1)
    assert torch.equal(actions[:9], BANDIT.actions(9, seed=3))
    assert not torch.equal(actions[:9], BANDIT.actions(9, seed=4))
    counts = torch.histc(actions, bins=10, min=0.0, max=1.0)
    assert (counts - 240).abs().max() < 5 * 240**0.5


def test_contextual_regret_by_a_loop() -> None:
    actions = BANDIT.actions(7, seed=0)
    taken = actions[:, 2]
    total, expected = 0.0, []
    context = torch.zeros(1, dtype=torch.double)  # the function knows none
    for x, offered in zip(taken, actions, strict=True):
        values = [FUNCTION.evaluate(row, context).item() for row in offered]
        total += max(values) - FUNCTION.evaluate(x, context).item()
        expected.append(total)
    np.testing.assert_allclose(BANDIT.regret(taken, actions), expected)
    assert 0 < total < 7 * (FUNCTION.optimal_value - min(values)) + 7
    with pytest.raises(BotorchTensorDimensionError, match="one action set for each"):
        BANDIT.regret(taken[:3], actions)
    with pytest.raises(InputDataError, match="num_actions"):
        ActionSetBandit(FUNCTION, num_actions=0)


def test_outcomes_stay_in_the_range_that_balancing_is_told() -> None:
    low, high = BANDIT.reward_range()
    x = BANDIT.actions(500, seed=1).flatten(0, 1)
    y = BANDIT.observe(x, generator=torch.Generator().manual_seed(0))
    assert low < y.min() and y.max() < high
    noise = y - FUNCTION.expected_value(x)
    assert noise.abs().max() <= 0.05 and noise.abs().max() > 0.049
    assert abs(noise.mean().item()) < 0.005


def test_regret_balancing_plays_it_and_learns() -> None:
    rounds, design = 25, 4
    prior = FixedHyperparameters(0.5, noise_variance=0.05**2 / 3)
    recipe = RegretBalancing(
        hyperparameters=prior,
        horizon=rounds,
        reward_range=BANDIT.reward_range(),
        num_design=design,
        misspecifications=(0.2, 0.05, 0.0),
    )
    opt = RobustOptimizer(
        recipe, FUNCTION.bounds, FUNCTION.context_bounds, num_initial=design
    )
    actions = BANDIT.actions(rounds + design, seed=5)
    generator = torch.Generator().manual_seed(1)
    context = torch.full((1, 1), 0.5, dtype=torch.double)
    for offered in actions:
        x = opt.ask(actions=offered)
        assert (offered == x).all(-1).any()
        opt.tell(x, context, BANDIT.observe(x, generator=generator))
    regret = BANDIT.regret(opt.history.X, actions)
    blind = BANDIT.regret(actions[:, 0], actions)
    assert regret[-1] - regret[design - 1] < 0.5 * (blind[-1] - blind[design - 1])
    state = recipe.state(opt.history, opt.space)
    assert sum(state.num_plays) == rounds and min(state.num_plays) > 0
