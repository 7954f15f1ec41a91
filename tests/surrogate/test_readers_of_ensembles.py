"""What reads the insides of one model asks each member of an ensemble."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.sampling.pathwise.utils import get_train_inputs

from botorch_drbo.acquisition import EnlargedConfidenceUCB, LipschitzPenalizedUCB
from botorch_drbo.adversaries.kernels import context_kernel
from botorch_drbo.confidence.information_gain import noise_precision
from botorch_drbo.contexts import ContextSet
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.wrapped import with_known_columns
from botorch_drbo.problem import SearchSpace
from botorch_drbo.sample_paths import PosteriorPaths, sample_paths
from botorch_drbo.surrogate import SURROGATES, ModelData
from tests.models import UNIT, uniform

SQUARE = UNIT.expand(2, 2)
CONTEXTS = uniform(5, 1, seed=3)


def members() -> list[SingleTaskGP]:
    Z = uniform(12, 2, seed=1)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:] + 0.3 * uniform(12, 1, seed=2)
    data = ModelData(Z, Y, SQUARE)
    fitted = [SURROGATES[name].fit(data) for name in ("botorch", "matern", "rbf")]
    return [model.requires_grad_(False) for model in fitted]


def test_the_enlarged_bound_is_as_wide_as_each_members_noise_asks() -> None:
    own = members()
    found = noise_precision(ModelEnsemble(own))
    assert torch.allclose(found, torch.cat([noise_precision(m) for m in own]))
    X = uniform(4, 1, 2, seed=5)
    together = EnlargedConfidenceUCB(ModelEnsemble(own), 2.0, 0.1)(X)
    alone = [EnlargedConfidenceUCB(model, 2.0, 0.1)(X) for model in own]
    assert torch.allclose(together, torch.stack(alone).mean(0))


def test_the_width_of_theory_is_the_largest_of_the_members() -> None:
    own = members()
    for width in (
        ConfidenceWidth(norm_bound=2.0),
        ConfidenceWidth(norm_bound=2.0, data_free=True),
        ConfidenceWidth(norm_bound=2.0, noise_ratio=0.1),
    ):
        betas = [width.beta(model) for model in own]
        assert width.beta(ModelEnsemble(own)) == pytest.approx(max(betas))
    replaced = ConfidenceWidth(norm_bound=2.0, noise_ratio=0.1)
    changed = replaced.model(ModelEnsemble(own))
    assert isinstance(changed, ModelEnsemble) and len(changed.members) == 3


def test_the_slope_of_an_ensemble_is_that_of_each_member() -> None:
    own, X = members(), uniform(4, 1, seed=5)
    acqf, *alone = (
        LipschitzPenalizedUCB(model, 2.0, ContextSet(CONTEXTS), 0.1, UNIT)
        for model in (ModelEnsemble(own), *own)
    )
    found = acqf.lipschitz_constant(X)  # b x S
    wanted = torch.stack([each.lipschitz_constant(X) for each in alone], -1)
    assert torch.allclose(found, wanted, rtol=1e-3)
    assert torch.allclose(
        acqf(X.unsqueeze(1)),
        torch.stack([each(X.unsqueeze(1)) for each in alone]).mean(0),
        rtol=1e-3,
    )
    bounds = torch.stack([each.lipschitz_upper_bound() for each in alone])
    assert torch.allclose(acqf.lipschitz_upper_bound(), bounds.amax())
    assert (found <= acqf.lipschitz_upper_bound()).all()


def test_the_kernel_ball_has_the_mean_of_the_members_kernels() -> None:
    own, space = members(), SearchSpace(UNIT, UNIT)
    other = uniform(3, 1, seed=7)
    found = context_kernel(ModelEnsemble(own), space, CONTEXTS)(CONTEXTS, other)
    alone = [context_kernel(m, space, CONTEXTS)(CONTEXTS, other) for m in own]
    assert torch.allclose(found, torch.stack(alone).mean(0))


def test_known_columns_are_known_to_each_member() -> None:
    own, at = members(), uniform(4, 1, 2, seed=5)
    known = with_known_columns(ModelEnsemble(own), [1], torch.tensor([0.3]).double())
    there = at.clone()
    there[..., 1] = 0.3
    wanted = ModelEnsemble(own).posterior(there)
    assert torch.allclose(known.posterior(at).mean, wanted.mean)
    for member in own:  # copies were changed, not these
        assert get_train_inputs(member, transformed=False)[0].shape == (12, 2)
        assert not torch.allclose(
            member.posterior(at).mean, member.posterior(there).mean
        )


def test_paths_are_split_over_the_members() -> None:
    """Their mean over many is each member's posterior mean, with its share."""
    own, X = members(), uniform(3, 1, seed=5)
    options = {"num_paths": 600, "num_features": 64, "seed": 3}
    paths = sample_paths(ModelEnsemble(own), [1], **options)
    values = paths(X, CONTEXTS)  # P x b x n
    assert values.shape == (600, 3, 5)
    for s, member in enumerate(own):
        joint = torch.cat(
            [X.unsqueeze(1).expand(-1, 5, -1), CONTEXTS.expand(3, -1, -1)], -1
        )
        posterior = member.posterior(joint.unsqueeze(-2))
        share = values[200 * s : 200 * (s + 1)]
        error = (share.mean(0) - posterior.mean.flatten(1)).abs()
        assert (error < 4 * (posterior.variance.flatten(1) / 200).sqrt() + 1e-6).all()


def test_a_part_of_the_paths_has_their_values() -> None:
    paths = sample_paths(
        ModelEnsemble(members()), [1], num_paths=10, num_features=32, seed=0
    )
    X = uniform(4, 1, seed=5)
    whole = paths(X, CONTEXTS)
    for part in (slice(0, 10), slice(2, 5), slice(3, 8), slice(9, 10)):
        assert torch.allclose(paths.part(part)(X, CONTEXTS), whole[part])
        assert paths.part(part).num_paths == part.stop - part.start
    each = paths.own(X[:1].expand(10, -1), CONTEXTS)
    assert torch.allclose(each, whole[:, 0])


def test_one_path_is_one_of_a_member_that_the_seed_draws() -> None:
    own, X = members(), uniform(4, 1, seed=5)
    drawn = []
    for seed in range(30):
        paths = sample_paths(
            ModelEnsemble(own), [1], num_paths=1, num_features=32, seed=seed
        )
        (part,) = paths.parts
        assert isinstance(part, PosteriorPaths) and part.num_paths == 1
        smoothness = {nu for c in part.components for nu in c.smoothness}
        scaled = any(c.variance != 1.0 for c in part.components)
        drawn.append((min(smoothness), scaled))
        assert paths(X, CONTEXTS).shape == (1, 4, 5)
    assert len(set(drawn)) == 3  # each member at times
