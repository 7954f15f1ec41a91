"""What a test file enters for its benchmarks, the other files do not see."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import patch

import pytest

from benchmarks.problems import PROBLEMS
from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.policies import POLICIES
from botorch_drbo.recipes import RECIPES


@pytest.fixture(autouse=True, scope="module")
def registries() -> Iterator[None]:
    """Registries are as they were after each file of tests."""
    with ExitStack() as stack:
        for registry in (RECIPES, ADVERSARIES, POLICIES, PROBLEMS):
            stack.enter_context(patch.dict(registry))
        yield
    sys.modules.pop("benchmarks.experiments.enter_ablations", None)
