"""What every policy promises against every adversary that it takes.

A new policy is tested by being in ``POLICIES``, a new adversary by being in
``ADVERSARIES``.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TypeVar

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_drbo.adversaries import ADVERSARIES, Adversary
from botorch_drbo.codec import decode, encode
from botorch_drbo.policies import POLICIES, Policy
from botorch_drbo.recipes import RobustRecipe, make_recipe, recipe_from_dict
from botorch_drbo.testing.rounds import PRIOR, SMALL, nothing_fitted, problem

# Fewer of everything than by default, so that a test takes no time.
FEWER = {"num_contexts": 16, "num_outside": 8, "num_features": 32, "num_paths": 4}
PAIRS = [(adversary, policy) for adversary in ADVERSARIES for policy in POLICIES]
# Policies that do not take any adversary: those that they do take.
TAKEN_BY = {
    "lipschitz_penalty": ["wasserstein"],
    "ei_integral": ["empirical", "kernel_density"],
}
REFUSED = {
    (adversary, policy)
    for policy, taken in TAKEN_BY.items()
    for adversary in ADVERSARIES
    if adversary not in taken
}
TAKEN = [pair for pair in PAIRS if pair not in REFUSED]


Part = TypeVar("Part", Adversary, Policy)


def smaller(part: Part) -> Part:
    names = {field.name for field in fields(part)}
    return replace(part, **{key: n for key, n in FEWER.items() if key in names})


def an_adversary(policy: str) -> str:
    """One that the policy takes."""
    return TAKEN_BY.get(policy, ["wasserstein"])[0]


def made(adversary: str, policy: str) -> RobustRecipe:
    return RobustRecipe(
        adversary=smaller(ADVERSARIES[adversary]),
        policy=smaller(POLICIES[policy]),
        **nothing_fitted(POLICIES[policy]),
        **SMALL,
    )


@pytest.mark.parametrize(("adversary", "policy"), TAKEN)
def test_decisions_lie_inside_and_follow_the_seed(adversary: str, policy: str) -> None:
    history, space = problem()
    recipe = made(adversary, policy)
    x = recipe.propose(history, space, q=2, seed=3)
    assert x.shape == (2, 1) and x.dtype == torch.double and not x.requires_grad
    assert (x >= space.bounds[0]).all() and (x <= space.bounds[1]).all()
    assert (x[0] - x[1]).abs() > 9e-3 * 4.0
    assert torch.equal(x, recipe.propose(history, space, q=2, seed=3))
    listed = torch.tensor([[-0.5], [0.5], [2.0]], dtype=torch.double)
    chosen = recipe.propose(history, space, candidates=listed)
    assert chosen.item() in listed.flatten().tolist()


@pytest.mark.parametrize(("adversary", "policy"), TAKEN)
def test_recommendations_promise_a_worst_case(adversary: str, policy: str) -> None:
    history, space = problem()
    best = made(adversary, policy).recommend(history, space)
    assert space.bounds[0] <= best.x <= space.bounds[1]
    assert best.worst_case_value <= best.expected_value + 1e-5
    weights = best.worst_case_weights
    assert weights.min() >= 0 and weights.sum().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("adversary", "policy"), TAKEN)
def test_a_product_is_stored_and_restored(adversary: str, policy: str) -> None:
    recipe = make_recipe(
        adversary=adversary, policy=policy, **nothing_fitted(POLICIES[policy])
    )
    assert isinstance(recipe, RobustRecipe)
    assert type(recipe.adversary) is type(ADVERSARIES[adversary])
    assert type(recipe.policy) is type(POLICIES[policy])
    assert recipe.name == f"{adversary}_{policy}"
    stored = json.loads(json.dumps(recipe.to_dict(), allow_nan=False))
    again = recipe_from_dict(stored)
    assert again.to_dict() == recipe.to_dict()


@pytest.mark.parametrize(("adversary", "policy"), sorted(REFUSED))
def test_a_pair_that_makes_no_sense_is_refused(adversary: str, policy: str) -> None:
    # What to take instead: another adversary, or another policy.
    instead = " or ".join(f"`{name}`" for name in TAKEN_BY[policy])
    message = f"adversary {instead}, or the policy `.*takes any"
    with pytest.raises(UnsupportedError, match=message) as caught:
        make_recipe(adversary=adversary, policy=policy)
    assert type(ADVERSARIES[adversary]).__name__ in str(caught.value)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_is_stored_and_restored(policy: str) -> None:
    stored = encode(POLICIES[policy], "policy")
    again = decode(json.loads(json.dumps(stored, allow_nan=False)), Policy, "policy")
    assert type(again) is type(POLICIES[policy])
    assert encode(again, "policy") == stored


@pytest.mark.parametrize("policy", POLICIES)
def test_pending_decisions_have_a_say(policy: str) -> None:
    history, space = problem()
    recipe = RobustRecipe(
        adversary=ADVERSARIES[an_adversary(policy)],
        policy=POLICIES[policy],
        **nothing_fitted(POLICIES[policy]),
    )
    model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
    state = recipe.state_of(model, history, space, 0)
    x = torch.linspace(-1.0, 3.0, 41, dtype=torch.double).reshape(-1, 1, 1)
    free = recipe.exploring(state, None)(x)
    pending = x[free.argmax()]
    penalised = recipe.exploring(state, pending)(x)
    assert free.shape == penalised.shape == (41,)
    if policy == "thompson":  # a path of its own
        assert not torch.allclose(free, penalised)
    else:
        assert penalised[free.argmax()] < free.max() - 1e-3


@pytest.mark.parametrize("policy", POLICIES)
def test_exploiting_does_not_explore(policy: str) -> None:
    """Of the posterior mean: more doubt about it leaves the objective as it is."""
    history, space = problem()
    values = []
    for scale in (1.0, 9.0):  # noise and prior variance: the same mean, 3 times sigma
        prior = replace(
            PRIOR, noise_variance=scale * PRIOR.noise_variance, outputscale=scale
        )
        recipe = made(an_adversary(policy), policy).with_options(
            **nothing_fitted(POLICIES[policy], prior)
        )
        model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
        state = recipe.state_of(model, history, space, 0)
        x = torch.linspace(-0.9, 2.9, 5, dtype=torch.double).reshape(-1, 1, 1)
        values.append(recipe.exploiting(state)(x))
    torch.testing.assert_close(*values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_option_is_explained(policy: str) -> None:
    docstrings = " ".join(kind.__doc__ or "" for kind in type(POLICIES[policy]).__mro__)
    for field in fields(POLICIES[policy]):
        assert f"{field.name}: " in docstrings
