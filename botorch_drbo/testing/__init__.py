"""Contracts: the tests that everything of one kind passes, for yours too.

It needs pytest and hypothesis: ``pip install botorch-drbo[testing]``.
"""

import pytest

pytest.register_assert_rewrite("botorch_drbo.testing.ambiguity_sets")

from botorch_drbo.testing.ambiguity_sets import (  # noqa: E402  after the line above
    AmbiguitySetCase,
    AmbiguitySetContract,
)

__all__ = ["AmbiguitySetCase", "AmbiguitySetContract"]
