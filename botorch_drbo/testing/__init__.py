"""Contracts: the tests that everything of one kind passes, for yours too.

They need pytest and hypothesis, which the extra ``testing`` brings.
"""

import pytest

CONTRACTS = (
    "acquisition",
    "adversaries",
    "ambiguity_sets",
    "functions",
    "policies",
    "recipes",
    "view_case",
    "views",
)
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in CONTRACTS))

from botorch_drbo.testing.acquisition import (  # noqa: E402  after the line above
    AcquisitionContract,
)
from botorch_drbo.testing.acquisition_case import AcquisitionCase  # noqa: E402
from botorch_drbo.testing.adversaries import (  # noqa: E402
    AdversaryCase,
    AdversaryContract,
)
from botorch_drbo.testing.ambiguity_set_case import (  # noqa: E402
    AmbiguitySetCase,
)
from botorch_drbo.testing.ambiguity_sets import (  # noqa: E402
    AmbiguitySetContract,
)
from botorch_drbo.testing.functions import (  # noqa: E402
    RobustTestFunctionCase,
    RobustTestFunctionContract,
)
from botorch_drbo.testing.policies import (  # noqa: E402
    PolicyCase,
    PolicyContract,
)
from botorch_drbo.testing.recipes import RecipeCase, RecipeContract  # noqa: E402
from botorch_drbo.testing.view_case import PosteriorViewCase  # noqa: E402
from botorch_drbo.testing.views import PosteriorViewContract  # noqa: E402

__all__ = [
    "AcquisitionCase",
    "AcquisitionContract",
    "AdversaryCase",
    "AdversaryContract",
    "AmbiguitySetCase",
    "AmbiguitySetContract",
    "PolicyCase",
    "PolicyContract",
    "PosteriorViewCase",
    "PosteriorViewContract",
    "RecipeCase",
    "RecipeContract",
    "RobustTestFunctionCase",
    "RobustTestFunctionContract",
]
