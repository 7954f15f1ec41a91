"""A model sees outcomes of level zero and spread one, and speaks of the user's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from botorch_drbo.surrogate.base import level_and_unit, scaled_model

Y = torch.tensor([[3.0], [5.0], [13.0]], dtype=torch.double)
Z = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.double)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
def test_standardised_outcomes_have_mean_zero_and_deviation_one(scale: float) -> None:
    level, unit = level_and_unit(scale * Y)
    assert level.item() == pytest.approx(7.0 * scale)
    # (16 + 4 + 36) / 2 = 28
    assert unit.item() == pytest.approx(28.0**0.5 * scale)


def test_one_outcome_has_its_own_size_as_unit_and_zero_has_one() -> None:
    level, unit = level_and_unit(torch.tensor([[-4.0]]).double())
    assert (level.item(), unit.item()) == (-4.0, 4.0)
    assert level_and_unit(torch.tensor([[0.0]]).double())[1].item() == 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_known_noise_is_at_least_a_millionth_of_the_variance(unit: float) -> None:
    """As it is with GPyTorch, which warns of it in units that nobody told."""
    Yvar = unit**2 * torch.tensor([[0.0], [1e-12], [0.04]]).double()
    level, size = unit * torch.tensor(7.0).double(), unit * torch.tensor(2.0).double()
    model: Any = scaled_model(Z, unit * Y, level, size, Yvar)
    wanted = torch.tensor([1e-6, 1e-6, 0.01]).double()
    torch.testing.assert_close(model.likelihood.noise.double(), wanted)


@pytest.mark.parametrize("known_noise", [False, True])
def test_prior_and_posterior_are_in_the_units_told(known_noise: bool) -> None:
    Yvar = torch.full_like(Y, 0.25) if known_noise else None
    level, unit = torch.tensor(7.0).double(), torch.tensor(2.0).double()
    model: Any = scaled_model(Z, Y, level, unit, Yvar).eval()
    assert torch.equal(model.train_targets, (Y - 7.0).flatten() / 2.0)
    far = torch.tensor([[1e3]]).double()
    covar = model.covar_module(Z[:1]).to_dense().item()
    with torch.no_grad():
        prior, here = model.posterior(far), model.posterior(Z)
        noisy = model.posterior(Z, observation_noise=True)
        mean = model.mean_module(far)
    back, variance = model.outcome_transform.untransform(far, torch.ones_like(far))
    assert (back.item(), variance.item()) == (2007.0, 4.0)
    assert prior.variance.item() == pytest.approx(4.0 * covar)
    assert prior.mean.item() == pytest.approx(7.0 + 2.0 * mean.item())
    extra = noisy.variance - here.variance
    if known_noise:
        # Botorch adds the mean of the known variances, in the units told.
        torch.testing.assert_close(extra, torch.full_like(Y, 0.25))
    else:
        added = 4.0 * model.likelihood.noise.expand(3, 1)
        torch.testing.assert_close(extra, added)
