"""What every policy promises against every adversary that it takes.

A new policy is tested by being in ``POLICIES``, a new adversary by being in
``ADVERSARIES``.
"""

from __future__ import annotations

import pytest
from botorch.exceptions.errors import UnsupportedError

from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.policies import POLICIES, Policy
from botorch_drbo.policies.sampled import Thompson
from botorch_drbo.recipes import make_recipe
from botorch_drbo.testing import PolicyCase, PolicyContract
from botorch_drbo.testing.policies import smaller

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
TAKEN = [
    (adversary, policy)
    for adversary in ADVERSARIES
    for policy in POLICIES
    if (adversary, policy) not in REFUSED
]


def case(name: str, policy: Policy) -> PolicyCase:
    refuses = [adversary for adversary, by in sorted(REFUSED) if by == name]
    draws = isinstance(policy, Thompson)  # a path of its own
    return PolicyCase(name, smaller(policy), refuses=refuses, draws=draws)


class TestOurPolicies(PolicyContract):
    cases = [case(name, policy) for name, policy in POLICIES.items()]


@pytest.mark.parametrize(("adversary", "policy"), sorted(REFUSED))
def test_a_refusal_names_what_to_take_instead(adversary: str, policy: str) -> None:
    instead = " or ".join(f"`{name}`" for name in TAKEN_BY[policy])
    message = f"adversary {instead}, or the policy `.*takes any"
    with pytest.raises(UnsupportedError, match=message):
        make_recipe(adversary=adversary, policy=policy)


@pytest.mark.parametrize(("adversary", "policy"), TAKEN)
def test_parts_have_the_names_by_which_they_are_asked_for(
    adversary: str, policy: str
) -> None:
    recipe = make_recipe(adversary=adversary, policy=policy)
    assert recipe.name == f"{adversary}_{policy}"
    assert type(recipe.adversary) is type(ADVERSARIES[adversary])
