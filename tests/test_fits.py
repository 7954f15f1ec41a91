"""A fit that is remembered is the fit that would have been made."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.model import Model

from botorch_drbo.surrogate import GaussianProcess, ModelData
from tests.fits import Fits
from tests.models import uniform

BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
DATA = ModelData(uniform(6, 2, seed=0), uniform(6, 1, seed=1), BOX)
MADE: list[tuple[str, ModelData]] = []


def counted(surrogate: GaussianProcess, data: ModelData) -> Model:
    MADE.append((surrogate.kernel, data))
    return data.model()


def test_the_same_fit_is_made_once_and_is_nobody_elses() -> None:
    MADE.clear()
    fit, matern = Fits().of(counted), GaussianProcess()
    first, second = fit(matern, DATA), fit(matern, replace(DATA))
    assert len(MADE) == 1 and first is not second
    points = uniform(3, 2, seed=2)
    assert torch.equal(first.posterior(points).mean, second.posterior(points).mean)
    for parameter in first.parameters():
        parameter.data += 1.0
    third = fit(matern, DATA)
    assert torch.equal(third.posterior(points).mean, second.posterior(points).mean)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": DATA.inputs + 1e-15},
        {"outcomes": DATA.outcomes + 1e-15},
        {"bounds": 2 * BOX},
        {"Yvar": torch.ones_like(DATA.outcomes)},
        {"categories": {1: 2}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_data_are_another_fit(change: dict[str, object]) -> None:
    MADE.clear()
    fit, matern = Fits().of(counted), GaussianProcess()
    fit(matern, DATA)
    other = replace(DATA, **change)
    fit(matern, other)
    assert [data for _, data in MADE] == [DATA, other]
    fit(GaussianProcess("rbf"), DATA)
    assert [kernel for kernel, _ in MADE] == ["matern52", "matern52", "rbf"]


def test_equal_outcomes_warn_each_time() -> None:
    fit = Fits().of(counted)
    for _ in range(2):  # of a new table of the same data
        equal = replace(DATA, outcomes=torch.ones_like(DATA.outcomes))
        with pytest.warns(InputDataWarning, match="All 6 outcomes are equal"):
            fit(GaussianProcess(), equal)


def test_fits_that_draw_or_are_tested_are_made_each_time() -> None:
    MADE.clear()

    def drawing(surrogate: GaussianProcess, data: ModelData) -> Model:
        torch.rand(1)
        return counted(surrogate, data)

    fits = Fits()
    for fit in (fits.of(drawing), fits.of(counted)):
        fits.on = False
        fit(GaussianProcess(), DATA)
        fits.on = True
    fit = fits.of(drawing)
    for _ in range(2):
        fit(GaussianProcess(), DATA)
    assert len(MADE) == 4
