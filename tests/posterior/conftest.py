"""What the tests of the posteriors share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from botorch_drbo.posterior import product


@pytest.fixture
def no_least_size() -> Iterator[None]:
    """Small problems too, for which the exact view would be as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "_MIN_PAIRS", 0)
        yield
