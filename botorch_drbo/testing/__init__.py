"""Contract tests for your own sets, acquisition functions, recipes and so on.

They need pytest and hypothesis, installed by the extra ``testing``.
"""

from botorch_drbo.testing._assertions import CONTRACTS as CONTRACTS
from botorch_drbo.testing.acquisition import (
    AcquisitionContract,
)
from botorch_drbo.testing.acquisition_case import AcquisitionCase
from botorch_drbo.testing.adversaries import (
    AdversaryCase,
    AdversaryContract,
)
from botorch_drbo.testing.ambiguity_set_case import (
    AmbiguitySetCase,
)
from botorch_drbo.testing.ambiguity_sets import (
    AmbiguitySetContract,
)
from botorch_drbo.testing.policies import (
    PolicyCase,
    PolicyContract,
)
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
