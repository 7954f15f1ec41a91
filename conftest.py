"""What tests, pages and docstrings share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from botorch_drbo.surrogate import (
    BoTorchDefault,
    EdrboKernel,
    GaussianProcess,
    HyperparameterDraws,
)
from tests.fits import Fits

pytest_plugins = ["tests.durations"]


@pytest.fixture(autouse=True, scope="session")
def fits() -> Iterator[Fits]:
    """Recipes do not fit twice to the same data."""
    remembered = Fits()
    with pytest.MonkeyPatch.context() as patch:
        for kind in (BoTorchDefault, EdrboKernel, GaussianProcess, HyperparameterDraws):
            patch.setattr(kind, "fit", remembered.of(kind.fit))
            patch.setattr(kind, "predict_others", remembered.of(kind.predict_others))
        yield remembered


@pytest.fixture
def each_fit_is_made(fits: Fits, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the fits themselves."""
    monkeypatch.setattr(fits, "on", False)
