"""The world of a run depends on problem, seed and step alone."""

from __future__ import annotations

import pytest
import torch

from benchmarks.problems import make
from benchmarks.run.world import World

X = torch.full((1, 2), 0.3, dtype=torch.double)


def world(seed: int = 0, noise_std: float = 0.5) -> World:
    problem = make("ackley_2_1", noise_std=noise_std)
    return World(problem, "ackley_2_1", seed, salt="")


def happenings(world: World, step: int) -> list[torch.Tensor]:
    c = world.context(step)
    return [world.initial_decision(step), c, world.outcome(step, X, c)]


def test_same_seed_same_world_whatever_happened_before():
    first, second = world(), world()
    for step in (3, 1):  # another order, other draws between
        happenings(second, step)
        torch.rand(7)
    for step in range(4):
        for a, b in zip(happenings(first, step), happenings(second, step), strict=True):
            assert torch.equal(a, b)


def test_global_generator_is_left_alone():
    state = torch.get_rng_state()
    happenings(world(), 2)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("other", [(0, 1), (1, 0)])
def test_seeds_and_steps_differ(other):
    seed, step = other
    for a, b in zip(
        happenings(world(0), 0), happenings(world(seed), step), strict=True
    ):
        assert not torch.equal(a, b)


def test_noise_does_not_depend_on_the_decision():
    noisy, c = world(), world().context(4)
    for x in (X, 2 * X):
        noise = noisy.outcome(4, x, c) - noisy.problem.evaluate(x, c)
        torch.testing.assert_close(
            noise, noisy.outcome(4, X, c) - noisy.problem.evaluate(X, c)
        )
    assert noise.abs().item() > 1e-3


def test_steps_are_independent_draws_of_the_law():
    draws = torch.cat([world().context(step) for step in range(400)])
    truth = world().problem.true_contexts(4096)
    error = 5 * truth.std().item() / 400**0.5
    assert draws.mean().item() == pytest.approx(truth.mean().item(), abs=error)
    assert draws.std().item() == pytest.approx(truth.std().item(), rel=0.2)
    assert draws.unique().numel() > 390


def test_initial_decisions_fill_the_bounds():
    problem = world().problem
    draws = torch.cat([world().initial_decision(step) for step in range(200)])
    low, high = problem.bounds
    assert ((draws >= low) & (draws <= high)).all()
    assert (draws.amin(0) < low + 0.1 * (high - low)).all()
    assert (draws.amax(0) > high - 0.1 * (high - low)).all()


def test_shapes():
    c = world().context(0)
    assert c.shape == (1, 1)
    assert world().initial_decision(0).shape == (1, 2)
    assert world().outcome(0, X, c).shape == (1, 1)


def test_a_joint_design_fills_decisions_and_contexts_together():
    function = make("ackley_2_1")
    joint = World(function, "ackley_2_1", 3, "sobol_joint", salt="")
    pairs = [joint.initial(step) for step in range(8)]
    points = torch.cat([torch.cat(pair, dim=-1) for pair in pairs])
    # the first 8 points of a Sobol sequence: one in each eighth, in every column
    eighths = (points * 8).long().sort(0).values
    assert torch.equal(eighths, torch.arange(8)[:, None].expand(-1, 3))
    again = World(function, "ackley_2_1", 3, "sobol_joint", salt="").initial(5)
    assert all(torch.equal(a, b) for a, b in zip(again, pairs[5], strict=True))
    assert torch.equal(joint.context(9), world(3).context(9))


def test_a_sobol_design_fills_decisions_and_has_contexts_of_the_law():
    function = make("ackley_2_1")
    design = World(function, "ackley_2_1", 3, "sobol", salt="")
    pairs = [design.initial(step) for step in range(8)]
    points = torch.cat([x for x, _ in pairs])
    eighths = (points * 8).long().sort(0).values
    assert torch.equal(eighths, torch.arange(8)[:, None].expand(-1, 2))
    for step, (_, c) in enumerate(pairs):
        assert torch.equal(c, world(3).context(step))


def test_a_uniform_design_has_contexts_of_the_law():
    x, c = world().initial(2)
    assert torch.equal(x, world().initial_decision(2))
    assert torch.equal(c, world().context(2))
