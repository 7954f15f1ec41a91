"""Outcomes predicted from all others, against models that were not told them."""

from __future__ import annotations

import copy

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Log, Normalize, Standardize
from scipy.stats import norm
from torch import Tensor

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.posterior.wrapped import with_perturbation
from botorch_drbo.surrogate.cross_validation import HeldOut, leave_one_out
from tests.models import (
    ensemble,
    known_model,
    member_of,
    small_model,
    uniform,
    variational_model,
)


def conditioned(model: SingleTaskGP) -> tuple[Tensor, Tensor]:
    """Mean and variance of each outcome from a copy that lacks it, ``t`` each.

    In the units in which the model has its targets.
    """
    model = copy.deepcopy(model)
    model.outcome_transform = None
    (Z,), targets = model.train_inputs, model.train_targets.clone()
    inputs = Z.clone()
    model.input_transform = None
    noise = model.likelihood.noise.detach().clone()
    means, variances = [], []
    for i in range(len(targets)):
        others = torch.arange(len(targets)) != i
        alone = SingleTaskGP(
            inputs[others],
            targets[others].unsqueeze(-1),
            None if noise.numel() == 1 else noise[others].unsqueeze(-1),
            covar_module=model.covar_module,
            mean_module=model.mean_module,
            outcome_transform=None,
        )
        if noise.numel() == 1:
            alone.likelihood.noise = noise
        with torch.no_grad():
            there = alone.eval().posterior(inputs[i : i + 1])
        means.append(there.mean.squeeze())
        own = noise if noise.numel() == 1 else noise[i]
        variances.append(there.variance.squeeze() + own.squeeze())
    return torch.stack(means), torch.stack(variances)


def data(t: int = 9) -> tuple[Tensor, Tensor]:
    Z = uniform(t, 2, seed=2)
    return Z, 30.0 + 4.0 * (4 * Z[:, :1]).sin() * Z[:, 1:]


def test_it_is_what_models_that_were_not_told_say() -> None:
    Z, Y = data()
    model = known_model(Z, Y, noise=0.05, outcome_transform=Standardize(1))
    model.mean_module.constant = 0.4
    found = leave_one_out(model)
    mean, variance = conditioned(model)
    level, unit = Y.mean(), Y.std()
    assert torch.allclose(found.outcomes, Y.flatten())
    assert torch.allclose(found.predicted.means[0], level + unit * mean, atol=1e-8)
    assert torch.allclose(found.predicted.deviations[0], unit * variance.sqrt())
    z = (Y.flatten() - level - unit * mean) / (unit * variance.sqrt())
    assert torch.allclose(found.standardised, z, atol=1e-7)
    assert z.abs().max() > 0.5


def test_it_knows_the_noise_that_was_told() -> None:
    Z, Y = data()
    Yvar = 0.1 + 0.4 * uniform(9, 1, seed=8)
    model = SingleTaskGP(Z, Y, Yvar, outcome_transform=None).eval()
    found = leave_one_out(model)
    mean, variance = conditioned(model)
    assert torch.allclose(found.predicted.means[0], mean, atol=1e-8)
    assert torch.allclose(found.predicted.deviations[0].square(), variance, atol=1e-8)


def test_it_takes_the_data_as_a_perturbation_model_does() -> None:
    found = leave_one_out(with_perturbation(small_model()))
    own = leave_one_out(small_model())
    assert torch.allclose(found.standardised, own.standardised)


def test_float32_is_worked_out_in_float64_and_the_model_stays_as_it_is() -> None:
    Z, Y = data()
    Y = (Y - Y.mean()) / Y.std()
    precise = leave_one_out(
        known_model(Z.float().double(), Y.float().double(), noise=1e-4)
    )
    model = known_model(Z, Y, noise=1e-4).float().train()
    found = leave_one_out(model)
    assert found.standardised.dtype == torch.double and model.training
    assert model.train_targets.dtype == torch.float
    assert torch.allclose(found.standardised, precise.standardised, rtol=1e-4)


def test_an_ensemble_mixes_its_members() -> None:
    Z, Y = data()
    model = ensemble(Z, Y)
    found = leave_one_out(model)
    assert found.predicted.means.shape == (3, 9)
    level, unit = Y.mean(), Y.std()
    parts = [conditioned(member_of(model, s)) for s in range(3)]
    for s, (mean, variance) in enumerate(parts):
        there = level + unit * mean
        assert torch.allclose(found.predicted.means[s], there, atol=1e-6)
        deviations = unit * variance.sqrt()
        assert torch.allclose(found.predicted.deviations[s], deviations, atol=1e-6)
    standardised = (Y.flatten() - level) / unit
    chances = [norm.cdf(standardised, m, v.sqrt()) for m, v in parts]
    z = norm.ppf(sum(chances) / 3)
    assert found.standardised.numpy() == pytest.approx(z, abs=1e-6)


def test_models_side_by_side_are_mixed_as_well() -> None:
    """Members with units of their own."""
    Z, Y = data()
    one = known_model(Z, Y, noise=0.05, outcome_transform=Standardize(1))
    two = known_model(Z, Y, noise=3.0, lengthscale=0.2, outcome_transform=None)
    found = leave_one_out(ModelEnsemble([one, two]))
    parts = [leave_one_out(one), leave_one_out(two)]
    assert torch.allclose(found.outcomes, Y.flatten())
    means = torch.cat([part.predicted.means for part in parts])
    assert torch.equal(found.predicted.means, means)
    chances = [norm.cdf(part.standardised) for part in parts]
    z = norm.ppf(sum(chances) / 2)
    assert found.standardised.numpy() == pytest.approx(z, abs=1e-6)


def test_far_outliers_keep_their_size_and_their_order() -> None:
    Z, Y = data()
    Y[3] += 1e4
    model = known_model(Z, Y, noise=1e-3, outcome_transform=None)
    far = leave_one_out(model)
    exact = (far.outcomes - far.predicted.means[0]) / far.predicted.deviations[0]
    assert torch.allclose(far.standardised, exact) and exact.abs().max() > 1e3
    outcomes = torch.tensor([20.0, 37.0, 38.5, 60.0, -60.0]).double()
    several = torch.tensor([[0.0], [-1.0]]).double().expand(2, 5)
    mixed = GaussianMixture(several, torch.ones(2, 5).double())
    z = HeldOut(outcomes, mixed, torch.arange(5)).standardised
    assert (z[:4].diff() > 1.0).all()
    assert z[3].item() == pytest.approx(60.0, abs=0.02) and z[
        4
    ].item() == pytest.approx(-59.0, abs=0.02)
    # The tail of the nearer model, at half its mass.
    assert z[0].item() == pytest.approx(norm.isf(norm.sf(20.0) / 2))


def test_other_outcome_transforms_come_back_in_the_users_units() -> None:
    Z, Y = data()
    model = known_model(Z, Y, noise=1e-3, outcome_transform=Log())
    found = leave_one_out(model)
    assert torch.allclose(found.outcomes, Y.flatten().log())
    assert torch.allclose(found.in_units(found.outcomes), Y.flatten())
    mean, _ = conditioned(model)
    assert torch.allclose(found.in_units(found.predicted.mean), mean.exp())


def test_a_list_of_one_model_is_that_model() -> None:
    one = small_model()
    found = leave_one_out(ModelListGP(one))
    assert torch.equal(found.standardised, leave_one_out(one).standardised)


@pytest.mark.parametrize(
    "model",
    [
        variational_model(uniform(8, 2)),
        ModelListGP(small_model(), small_model()),
    ],
    ids=["variational", "list"],
)
def test_a_model_without_closed_form_is_refused(model: Model) -> None:
    with pytest.raises(UnsupportedError, match="Compare the model with outcomes that"):
        leave_one_out(model)


def test_a_posterior_of_the_users_own_is_not_taken_for_botorchs() -> None:
    class Shifted(SingleTaskGP):
        def posterior(self, *args, **kwargs):
            return super().posterior(*args, **kwargs)

    Z, Y = data()
    with pytest.raises(UnsupportedError, match="got a Shifted with Gaussian"):
        leave_one_out(Shifted(Z, Y, input_transform=Normalize(2)).eval())
