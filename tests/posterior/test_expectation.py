"""What is believed of an expectation, against joint samples and dense algebra."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import Model
from botorch.models.transforms import Log, Normalize, Standardize
from botorch.sampling.pathwise import draw_matheron_paths
from torch import Tensor

from botorch_drbo.posterior.mixture import _MOST_CONTEXTS, posterior_of_expectation
from botorch_drbo.posterior.wrapped import with_known_columns
from tests.models import ensemble, known_model, uniform

X = torch.tensor([0.3], dtype=torch.double)
C = uniform(40, 1, seed=4)
WEIGHTS = uniform(40, seed=5)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def data(t: int = 9) -> tuple[Tensor, Tensor]:
    Z = uniform(t, 2, seed=2)
    return Z, 3.0 + (4 * Z[:, :1]).sin() * Z[:, 1:]


def sampled(model: Model, num: int = 60_000) -> Tensor:
    """Expectations over the contexts of joint samples of the posterior."""
    Z = torch.cat([X.expand(len(C), -1), C], dim=-1)
    torch.manual_seed(0)
    with torch.no_grad():
        drawn = model.posterior(Z).rsample(torch.Size([num]))
    return (drawn.squeeze(-1) @ WEIGHTS).flatten()


def quantiles_agree(model: Model, tolerance: float) -> None:
    belief, drawn = posterior_of_expectation(model, X, C, WEIGHTS), sampled(model)
    spread = (drawn.quantile(0.95) - drawn.quantile(0.05)).item()
    for probability in (0.05, 0.25, 0.5, 0.75, 0.95):
        error = belief.quantile(probability).item() - drawn.quantile(probability).item()
        assert abs(error) < tolerance * spread
    assert abs(belief.mean.item() - drawn.mean().item()) < tolerance * spread


def test_it_is_what_joint_samples_say() -> None:
    quantiles_agree(known_model(*data(), outcome_transform=Standardize(1)), 0.02)


def test_it_is_what_joint_samples_of_an_ensemble_say() -> None:
    model = ensemble(*data())
    quantiles_agree(model, 0.02)
    assert posterior_of_expectation(model, X, C, WEIGHTS).means.shape == (3,)


def test_it_is_what_joint_samples_say_where_the_outcome_is_a_logarithm() -> None:
    Z, Y = data()
    model = known_model(Z, Y, noise=0.1, outcome_transform=Log())
    torch.manual_seed(1)
    quantiles_agree(model, 0.12)  # 1024 samples against 60,000


def test_it_is_dense_algebra_in_the_users_units() -> None:
    """A kernel, a noise and a scale written out here, without GPyTorch."""
    Z, Y = data()
    model = SingleTaskGP(
        Z, Y, input_transform=Normalize(2), outcome_transform=Standardize(1)
    ).eval()
    model.covar_module.lengthscale = 0.4
    model.likelihood.noise = 0.02
    model.mean_module.constant = 0.3
    low, side = Z.amin(0), Z.amax(0) - Z.amin(0)
    level, unit = Y.mean(), Y.std()

    def kernel(A: Tensor, B: Tensor) -> Tensor:
        gaps = (A.unsqueeze(-2) - B.unsqueeze(-3)) / side / 0.4
        return (-0.5 * gaps.square().sum(-1)).exp()

    there = torch.cat([X.expand(len(C), -1), C], dim=-1)
    inverse = (kernel(Z, Z) + 0.02 * torch.eye(len(Z)).double()).inverse()
    cross = kernel(there, Z)
    mean = 0.3 + cross @ inverse @ ((Y - level) / unit - 0.3).flatten()
    covariance = kernel(there, there) - cross @ inverse @ cross.T
    belief = posterior_of_expectation(model, X, C, WEIGHTS)
    assert low.shape == (2,)
    assert torch.allclose(belief.means, level + unit * (WEIGHTS @ mean), atol=1e-8)
    deviation = unit * (WEIGHTS @ covariance @ WEIGHTS).sqrt()
    assert torch.allclose(belief.deviations, deviation, atol=1e-7)
    # Neither that of independent errors nor the average deviation.
    independent = unit * (WEIGHTS.square() @ covariance.diagonal()).sqrt()
    assert belief.deviations.item() > 1.5 * independent.item()
    assert belief.deviations.item() < (unit * WEIGHTS @ covariance.diagonal().sqrt())


def test_of_many_contexts_a_sample_gives_the_variance_and_all_the_mean() -> None:
    model = known_model(*data(), outcome_transform=Standardize(1))
    contexts, weights = uniform(3 * _MOST_CONTEXTS, 1, seed=6), uniform(3072, seed=7)
    weights = (weights * contexts.squeeze(-1)) / (weights * contexts.squeeze(-1)).sum()
    belief = posterior_of_expectation(model, X, contexts, weights)
    Z = torch.cat([X.expand(len(contexts), -1), contexts], dim=-1)
    with torch.no_grad():
        joint = model.posterior(Z)
        mean = weights @ joint.mean.squeeze(-1)
        covariance = joint.distribution.covariance_matrix
    assert belief.means.item() == pytest.approx(mean.item(), rel=1e-9)
    deviation = (weights @ covariance @ weights).sqrt().item()
    assert belief.deviations.item() == pytest.approx(deviation, rel=0.01)
    several = posterior_of_expectation(ensemble(*data()), X, contexts, weights)
    assert several.means.shape == several.deviations.shape == (3,)


def test_contexts_without_mass_do_not_count() -> None:
    model = known_model(*data())
    more = torch.cat([C, torch.full_like(C, 50.0)])
    padded = torch.cat([WEIGHTS, torch.zeros_like(WEIGHTS)])
    one = posterior_of_expectation(model, X, C, WEIGHTS)
    two = posterior_of_expectation(model, X, more, padded)
    assert torch.equal(one.means, two.means)
    assert torch.equal(one.deviations, two.deviations)


def test_a_known_context_is_one_outcome() -> None:
    model = known_model(*data())
    known = with_known_columns(model, [1], torch.tensor([0.6]).double())
    belief = posterior_of_expectation(known, X, C, WEIGHTS)
    with torch.no_grad():
        there = model.posterior(torch.tensor([[0.3, 0.6]]).double())
    assert belief.means.item() == pytest.approx(there.mean.item())
    assert belief.deviations.item() == pytest.approx(there.variance.sqrt().item())


def test_a_function_has_no_doubt() -> None:
    model = GenericDeterministicModel(lambda Z: Z.sum(-1, keepdim=True))
    belief = posterior_of_expectation(model, X, C, WEIGHTS)
    exact = 0.3 + (WEIGHTS @ C).item()
    assert belief.interval(0.9) == pytest.approx((exact, exact))


def test_sample_paths_of_a_model_have_the_same_expectations() -> None:
    """Not through a covariance at all: by Matheron's rule on random features."""
    model = known_model(*data(), noise=0.05)
    torch.manual_seed(3)
    paths = draw_matheron_paths(model, torch.Size([2000]))
    Z = torch.cat([X.expand(len(C), -1), C], dim=-1)
    with torch.no_grad():
        drawn = paths(Z).reshape(2000, -1) @ WEIGHTS
    belief = posterior_of_expectation(model, X, C, WEIGHTS)
    assert belief.means.item() == pytest.approx(
        drawn.mean().item(), abs=5 * drawn.std().item() / 2000**0.5
    )
    assert belief.deviations.item() == pytest.approx(drawn.std().item(), rel=0.1)
