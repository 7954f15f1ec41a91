"""What every policy promises against every adversary that it takes.

A new policy is tested by being in ``POLICIES``, a new adversary by being in
``ADVERSARIES``.
"""

from __future__ import annotations

import pytest
from botorch.exceptions.errors import UnsupportedError

from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.policies import POLICIES, LipschitzPenalty, Policy, Thompson
from botorch_drbo.recipes import make_recipe
from botorch_drbo.testing import PolicyCase, PolicyContract
from botorch_drbo.testing.policies import smaller

OTHERS = sorted(set(ADVERSARIES) - {"wasserstein"})


def case(name: str, policy: Policy) -> PolicyCase:
    # The one policy that bounds the worst case over one kind of ball.
    refuses = OTHERS if isinstance(policy, LipschitzPenalty) else ()
    draws = isinstance(policy, Thompson)  # a path of its own
    return PolicyCase(name, smaller(policy), refuses=refuses, draws=draws)


class TestOurPolicies(PolicyContract):
    cases = [case(name, policy) for name, policy in POLICIES.items()]


@pytest.mark.parametrize("adversary", OTHERS)
def test_a_refusal_names_what_to_take_instead(adversary: str) -> None:
    message = "adversary `wasserstein`, or the policy `confidence_bound`"
    with pytest.raises(UnsupportedError, match=message):
        make_recipe(adversary=adversary, policy="lipschitz_penalty")


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"lipschitz_penalty"}))
@pytest.mark.parametrize("adversary", sorted(ADVERSARIES))
def test_parts_have_the_names_by_which_they_are_asked_for(
    adversary: str, policy: str
) -> None:
    recipe = make_recipe(adversary=adversary, policy=policy)
    assert recipe.name == f"{adversary}_{policy}"
    assert type(recipe.adversary) is type(ADVERSARIES[adversary])
