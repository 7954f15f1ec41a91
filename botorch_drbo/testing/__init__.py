"""Contracts: the tests that everything of one kind passes, for yours too.

They need pytest and hypothesis, which the extra ``testing`` brings.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in ("adversaries", "ambiguity_sets", "functions")
    )
)

from botorch_drbo.testing.adversaries import (  # noqa: E402  after the line above
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

__all__ = [
    "AdversaryCase",
    "AdversaryContract",
    "AmbiguitySetCase",
    "AmbiguitySetContract",
    "RobustTestFunctionCase",
    "RobustTestFunctionContract",
]
