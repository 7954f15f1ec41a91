"""Contract tests for your own sets, acquisition functions, recipes and so on.

They need pytest and hypothesis, installed by the extra ``testing``.
"""

from botorch_drbo.testing._assertions import CONTRACTS as CONTRACTS
from botorch_drbo.testing.acquisition import (
    AcquisitionCase,
    AcquisitionContract,
)
from botorch_drbo.testing.adversaries import AdversaryCase, AdversaryContract
from botorch_drbo.testing.ambiguity_sets import (
    AmbiguitySetCase,
    AmbiguitySetContract,
)
from botorch_drbo.testing.policies import PolicyCase, PolicyContract
from botorch_drbo.testing.recipes import RecipeCase, RecipeContract

__all__ = [
    "AcquisitionCase",
    "AcquisitionContract",
    "AdversaryCase",
    "AdversaryContract",
    "AmbiguitySetCase",
    "AmbiguitySetContract",
    "PolicyCase",
    "PolicyContract",
    "RecipeCase",
    "RecipeContract",
]
