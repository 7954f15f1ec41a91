"""Differences of near rows, against pairs that are counted by hand."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from scipy.stats import chi2

from botorch_drbo.surrogate.cross_validation import near_rows
from tests.models import ensemble, member_of, small_model, uniform

Z = torch.tensor([[0.0], [0.0], [0.5], [0.5], [0.501], [0.9]]).double()
Y = torch.tensor([[1.0], [1.3], [2.0], [2.1], [1.0], [0.0]]).double()


def model(noise: float, **options) -> SingleTaskGP:
    made = SingleTaskGP(Z, Y, **options)
    made.covar_module.lengthscale = 0.3
    made.likelihood.noise = noise
    return made.eval()


def test_repeated_rows_are_compared_and_each_row_once() -> None:
    found = near_rows(model(0.02, outcome_transform=None))
    # (0, 1) and (2, 3) are repeated; row 4 is near, but its neighbours are taken.
    total = 0.3**2 / 0.04 + 0.1**2 / 0.04
    assert found is not None and found.num_pairs == 2
    assert found.ratio == pytest.approx((total / 2) ** 0.5, rel=1e-6)
    assert found.probability == pytest.approx(chi2.sf(total, 2), rel=1e-6)
    assert not found.noisier


def test_units_of_the_outcome_do_not_matter() -> None:
    unit = Y.std().item()
    plain = near_rows(model(0.02 * unit**2, outcome_transform=None))
    scaled = near_rows(model(0.02, outcome_transform=Standardize(1)))
    assert plain is not None and scaled is not None
    # The kernel differs by the unit, which repeated rows do not feel.
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-6)


def test_less_modelled_noise_makes_the_same_outcomes_noisier() -> None:
    found = near_rows(model(1e-3, outcome_transform=None))
    assert found is not None and found.noisier
    assert found.ratio == pytest.approx((0.1 / 0.002 / 2) ** 0.5, rel=1e-6)


def test_without_near_rows_nothing_is_said() -> None:
    assert near_rows(small_model()) is None


def test_near_is_what_noise_makes_half_of() -> None:
    near = torch.tensor([[0.0], [0.1]]).double()
    made = SingleTaskGP(near, torch.tensor([[0.0], [1.0]]).double())
    made.outcome_transform = None
    made.covar_module.lengthscale = 1.0
    modelled = 2 - 2 * torch.tensor(-0.5 * 0.01).exp().item()
    for noise, is_near in ((0.49 * modelled, False), (0.51 * modelled, True)):
        made.likelihood.noise = noise
        assert (near_rows(made.eval()) is not None) is is_near


def test_an_ensemble_averages_covariances() -> None:
    rows = uniform(5, 2).repeat(2, 1)
    outcomes = uniform(10, 1, seed=3)
    mixed = ensemble(rows, outcomes)
    found = near_rows(mixed)
    noise = sum(member_of(mixed, s).likelihood.noise.item() for s in range(3)) / 3
    gaps = ((outcomes[:5] - outcomes[5:]) / outcomes.std()).square().sum().item()
    assert found is not None and found.num_pairs == 5
    assert found.ratio == pytest.approx((gaps / (2 * noise) / 5) ** 0.5, rel=1e-4)
