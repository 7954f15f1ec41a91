"""Contracts: the tests that everything of one kind passes, for yours too.

They need pytest and hypothesis, which the extra ``testing`` brings.
"""

import pytest

pytest.register_assert_rewrite(
    "botorch_drbo.testing.adversaries", "botorch_drbo.testing.ambiguity_sets"
)

from botorch_drbo.testing.adversaries import (  # noqa: E402  after the line above
    AdversaryCase,
    AdversaryContract,
)
from botorch_drbo.testing.ambiguity_sets import (  # noqa: E402
    AmbiguitySetCase,
    AmbiguitySetContract,
)

__all__ = [
    "AdversaryCase",
    "AdversaryContract",
    "AmbiguitySetCase",
    "AmbiguitySetContract",
]
