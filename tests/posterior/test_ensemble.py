"""An ensemble of models: what it says is what its members say, side by side."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import MaternKernel, ProductKernel, RQKernel, ScaleKernel

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.posterior.models import prior_variance
from botorch_drbo.surrogate.base import level_and_unit, scaled_model
from tests.models import ensemble, make_model, observations, uniform

X, CONTEXTS = uniform(4, 2, seed=5), uniform(6, 1, seed=6)


def products() -> ScaleKernel:
    parts = [MaternKernel(2.5, active_dims=[j]) for j in range(3)]
    for number, part in enumerate(parts):
        part.lengthscale = 0.3 + 0.2 * number
    return ScaleKernel(ProductKernel(*parts))


def models() -> list[SingleTaskGP]:
    """Members whose moments come by three different methods."""
    kernels = [None, products(), ScaleKernel(RQKernel(ard_num_dims=3))]
    return [make_model(k) if k is not None else make_model() for k in kernels]


def test_the_posterior_is_that_of_each_member_and_their_mixture() -> None:
    members = models()
    joint = torch.cat([X, CONTEXTS[:4]], -1)
    posterior = ModelEnsemble(members).posterior(joint.unsqueeze(1))
    own = [member.posterior(joint.unsqueeze(1)) for member in members]
    assert posterior.mean.shape == (4, 3, 1, 1)
    for s, each in enumerate(own):
        assert torch.allclose(posterior.mean[:, s], each.mean)
        assert torch.allclose(posterior.variance[:, s], each.variance)
    means = torch.stack([each.mean for each in own])
    second = torch.stack([each.variance + each.mean.square() for each in own])
    mixture = second.mean(0) - means.mean(0).square()
    assert torch.allclose(posterior.mixture_variance, mixture)
    mean, variance = joint_moments(ModelEnsemble(members), joint)
    assert torch.allclose(mean, means.mean(0).flatten())
    assert torch.allclose(variance, mixture.flatten())


@pytest.mark.filterwarnings("error")
def test_variances_of_tiny_outcomes_are_not_raised() -> None:
    X, Y = uniform(8, 2, seed=1), uniform(8, 1, seed=2)
    plain, tiny = (
        scaled_model(X, unit * Y, *level_and_unit(unit * Y)).eval()
        for unit in (1.0, 1e-9)
    )
    joint = uniform(3, 2, seed=3)
    (_, wanted), (_, found) = joint_moments(plain, joint), joint_moments(tiny, joint)
    assert torch.allclose(found / 1e-18, wanted)
    mixture = ModelEnsemble([tiny, tiny]).posterior(joint.unsqueeze(1))
    assert torch.allclose(mixture.mixture_variance.flatten() / 1e-18, wanted)


def test_covariances_between_points_are_those_of_each_member() -> None:
    members, joint = models(), torch.cat([X, CONTEXTS[:4]], -1)
    found = ModelEnsemble(members).posterior(joint).distribution.covariance_matrix
    for own, member in zip(found, members, strict=True):
        wanted = member.posterior(joint).distribution.covariance_matrix
        assert torch.allclose(own, wanted)


def test_a_joint_posterior_may_be_singular() -> None:
    joint = torch.cat([X[:1], CONTEXTS[:1]], -1).expand(300, -1)
    posterior = ModelEnsemble(models()).posterior(joint)
    assert posterior.distribution.covariance_matrix.shape == (3, 300, 300)


@pytest.mark.parametrize("own", [False, True])
def test_moments_and_slopes_are_those_of_each_member(own: bool) -> None:
    members = models()
    view = marginal_posterior(ModelEnsemble(members), [2]).over(CONTEXTS)
    at: slice | torch.Tensor = slice(1, 4)
    contexts = CONTEXTS[1:4].expand(4, 3, 3, 1)  # b x S x k x d_c
    if own:  # each member looks at contexts of its own
        contexts = contexts + 0.1 * torch.arange(3.0)[:, None, None].double()
        at = contexts
    here = view.at(X)
    mean, variance = here.moments()
    slopes = here.slopes(at)
    assert mean.shape == (4, 3, 6) and slopes.mean_slope.shape == (4, 3, 3, 1)
    step = 1e-6
    for s, member in enumerate(members):

        def moments(c: torch.Tensor, member: SingleTaskGP = member) -> torch.Tensor:
            joint = torch.cat([X.unsqueeze(1).expand(-1, c.shape[1], -1), c], -1)
            at_points = member.posterior(joint.unsqueeze(-2))
            return torch.stack([at_points.mean, at_points.variance]).flatten(-3)

        with torch.no_grad():
            wanted = moments(CONTEXTS.expand(4, -1, -1))
            points = contexts[:, s]
            change = moments(points + step) - moments(points - step)
        assert torch.allclose(mean[:, s], wanted[0], atol=1e-8)
        assert torch.allclose(variance[:, s], wanted[1], atol=1e-8)
        by_differences = change / (2 * step)
        assert torch.allclose(
            slopes.mean_slope[:, s, :, 0], by_differences[0], atol=1e-6
        )
        assert torch.allclose(
            slopes.variance_slope[:, s, :, 0], by_differences[1], atol=1e-6
        )


def test_each_member_is_in_its_own_fastest_view() -> None:
    posterior = marginal_posterior(ModelEnsemble(models()), [2])
    views = posterior.over(CONTEXTS).views
    assert [view.method for view in views] == ["exact", "product", "exact"]
    assert [type(each).__name__ for each in posterior.posteriors] == [
        "ProductPosterior",
        "ProductPosterior",
        "ExactPosterior",
    ]


def test_pending_decisions_shrink_each_members_variance() -> None:
    members, pending = models(), torch.cat([X[:1], CONTEXTS[:1]], -1)
    both = [
        marginal_posterior(model, [2], pending=pending)(X, CONTEXTS)[1]
        for model in (ModelEnsemble(members), *members)
    ]
    assert torch.allclose(both[0], torch.stack(both[1:], 1))


def test_the_prior_variance_is_the_mean_of_the_members() -> None:
    members = models()
    own = torch.tensor([prior_variance(member) for member in members])
    assert prior_variance(ModelEnsemble(members)) == pytest.approx(own.mean().item())


def test_members_of_an_ensemble_take_its_place() -> None:
    first, second, third = models()
    nested = ModelEnsemble([ModelEnsemble([first, second]), third])
    assert nested.members == [first, second, third]


def test_nothing_is_no_ensemble() -> None:
    with pytest.raises(InputDataError, match="at least one model, got none"):
        ModelEnsemble([])


def test_members_must_be_models_of_one_output() -> None:
    Z, Y = observations(make_model(t=8))
    two = SingleTaskGP(Z, torch.cat([Y, -Y], -1))
    with pytest.raises(BotorchTensorDimensionError, match="one output each"):
        ModelEnsemble([make_model(), two])
    with pytest.raises(InputDataError, match="got a str"):
        ModelEnsemble(["botorch"])
    with pytest.raises(UnsupportedError, match="Take it alone"):
        ModelEnsemble([ensemble(Z, Y)])


def test_members_must_have_the_same_inputs() -> None:
    Z, Y = observations(make_model(t=8))
    with pytest.raises(BotorchTensorDimensionError, match="same inputs"):
        ModelEnsemble([SingleTaskGP(Z, Y), SingleTaskGP(Z[:, :2], Y)])


def test_a_member_without_a_gaussian_posterior_is_refused() -> None:
    Z, Y = observations(make_model(t=8))
    positive = SingleTaskGP(Z, Y.exp(), outcome_transform=Log()).eval()
    with pytest.raises(UnsupportedError, match="Gaussian posterior"):
        ModelEnsemble([positive]).posterior(Z)
