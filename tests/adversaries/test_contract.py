"""What every adversary promises. A new one is tested by being in ``ADVERSARIES``."""

from __future__ import annotations

from dataclasses import fields, replace

from botorch_drbo.adversaries import ADVERSARIES, Adversary
from botorch_drbo.adversaries.kernels import KernelDensity, KernelDensityBall
from botorch_drbo.testing import AdversaryCase, AdversaryContract
from botorch_drbo.testing.fixtures import state_against

# Fewer contexts and draws than by default, so that a test takes no time.
FEWER = {"num_contexts": 25, "num_outside": 16, "num_candidates": 16}


def case(name: str, adversary: Adversary) -> AdversaryCase:
    names = {field.name for field in fields(adversary)} & set(FEWER)
    made = replace(adversary, **{key: FEWER[key] for key in names})
    reaches = made.worst_case_problem(state_against(made)).box is not None
    dense = isinstance(adversary, (KernelDensity, KernelDensityBall))
    return AdversaryCase(
        name,
        made,
        draws=(bool(names) or reaches) and not adversary.uses_model_kernel,
        known_within=5e-3 if dense else 0.0,  # a density spreads a little
    )


class TestOurAdversaries(AdversaryContract):
    cases = [case(name, adversary) for name, adversary in sorted(ADVERSARIES.items())]
