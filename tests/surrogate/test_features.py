"""Levels with features: the kernel, its gradient, fast views, and what they are for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import Category
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths
from botorch_drbo.surrogate import SURROGATES, GaussianProcess, ModelData
from botorch_drbo.surrogate.cross_validation import cross_validated, folds_of_levels
from botorch_drbo.surrogate.evidence import LogPosterior, around
from botorch_drbo.surrogate.gaussian_process import (
    CATEGORIES,
    model_with,
    with_categories,
)
from tests.contracts.view_case import joined, model_moments
from tests.models import uniform

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

MEMBERS = ("botorch", "matern", "rbf", "matern32")
LEVELS = {1: 3, 3: 6}  # columns 0 and 2 are numbers
BOUNDS = torch.tensor([[0.0, 0.0, -1.0, 0.0], [1.0, 2.0, 3.0, 5.0]]).double()


def table(k: int, p: int, seed: int = 0) -> Tensor:
    """Features as a model sees them, from numbers of any unit."""
    numbers = 100.0 * uniform(k, p, seed=40 + seed) - 7.0
    names = [f"l{i}" for i in range(k)]
    found = Category(names, features=numbers.tolist()).embedding
    assert found is not None
    return found


FEATURES = {3: table(6, 2)}
BOTH = {1: table(3, 1), 3: table(6, 2)}


def rows(t: int, seed: int = 1, **options: Any) -> ModelData:
    Z = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * uniform(t, 4, seed=seed)
    Z[:, list(LEVELS)] = Z[:, list(LEVELS)].round()
    height = 2.0 * FEATURES[3][:, 0]
    Y = Z[:, 0].sin() + Z[:, 1] * Z[:, 2] + height[Z[:, 3].long()]
    return ModelData(
        Z,
        (Y + 0.1 * uniform(t, seed=seed + 1))[:, None],
        BOUNDS,
        categories=LEVELS,
        **{"features": FEATURES, **options},
    )


def posterior_of(data: ModelData) -> LogPosterior:
    family = GaussianProcess("matern32").family(data.inputs.shape[-1])
    return LogPosterior(with_categories(family, data, CATEGORIES["matern32"]), data)


def point(posterior: LogPosterior, seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).normal(size=posterior.size)
    return posterior.vector(0.4, 1.7, 0.05) + 0.3 * steps


@pytest.mark.parametrize("features", [FEATURES, BOTH], ids=["one", "both"])
def test_the_kernel_is_the_written_formula(features: dict[int, Tensor]) -> None:
    data = rows(9, features=features)
    posterior = posterior_of(data)
    at = point(posterior)
    values = posterior.hyperparameters(at)
    model = model_with(data, posterior, at)
    kernel = model.covar_module(model.transform_inputs(data.inputs)).to_dense().detach()
    mains = dict(zip(LEVELS, values.main_effects, strict=True))
    of_features = dict(zip(features, values.lengthscales[4:], strict=True))
    for i, z in enumerate(data.inputs):
        for k, other in enumerate(data.inputs):
            total, product = 0.0, values.outputscale
            for j, length in enumerate(values.lengthscales[:4]):
                if j in LEVELS:
                    same = bool(z[j] == other[j])
                    total += mains[j] if same else 0.0
                    product *= 1.0 if same else math.exp(-1.0 / length**2)
                else:
                    side = (BOUNDS[1] - BOUNDS[0])[j].item()
                    a = math.sqrt(3.0) * abs(z[j] - other[j]).item() / side / length
                    product *= (1.0 + a) * math.exp(-a)
            for j, length in of_features.items():
                first, second = features[j][int(z[j])], features[j][int(other[j])]
                gap = (first - second).square().sum().item()
                product *= math.exp(-0.5 * gap / length**2)
            assert kernel[i, k].item() == pytest.approx(total + product, rel=1e-6)


@pytest.mark.parametrize("features", [FEATURES, BOTH], ids=["one", "both"])
@pytest.mark.parametrize("marginal", [False, True])
def test_the_gradient_is_that_of_finite_differences(
    features: dict[int, Tensor], marginal: bool
) -> None:
    data = rows(12, features=features)
    posterior = LogPosterior(posterior_of(data).family, data, marginal=marginal)
    at = point(posterior)
    wanted = [
        (posterior(at + h).log_density - posterior(at - h).log_density) / 2e-5
        for h in 1e-5 * np.eye(posterior.size)
    ]
    assert np.allclose(posterior(at).gradient, wanted, atol=1e-6)


def test_names_and_features_share_the_prior_of_names() -> None:
    """Its middle: together they are as far apart as names are alone."""
    prior = CATEGORIES["botorch"].lengthscale
    middle = math.exp(prior.location - prior.scale**2)
    assert prior.shared() == around(math.sqrt(2.0) * middle, 1.0)
    one, other = (math.sqrt(2.0) * middle,) * 2
    assert 1.0 / one**2 + 1.0 / other**2 == pytest.approx(1.0 / middle**2)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 9), st.integers(1, 12), st.integers(0, 99), st.sampled_from(MEMBERS)
)
def test_the_kernel_is_positive_semidefinite(
    k: int, p: int, seed: int, member: str
) -> None:
    """On every level, whatever its features, twins among them, and the numbers."""
    numbers = uniform(k, p, seed=seed)
    numbers[-1] = numbers[0] + (k == 2)
    embedding = Category([f"l{i}" for i in range(k)], numbers.tolist()).embedding
    assert embedding is not None
    Z = torch.stack([torch.arange(3.0 * k).double() % k, uniform(3 * k, seed=seed)], -1)
    bounds = torch.tensor([[0.0, 0.0], [k - 1.0, 1.0]]).double()
    data = ModelData(
        Z,
        uniform(3 * k, 1, seed=seed + 1),
        bounds,
        categories={0: k},
        features={0: embedding},
    )
    model = SURROGATES[member].fit(data)
    covariance = model.covar_module(model.transform_inputs(Z)).to_dense().detach()
    smallest = torch.linalg.eigvalsh(covariance)[0].item()
    assert smallest > -1e-9 * covariance.diagonal().max().item()


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 100))
def test_the_numbers_of_levels_do_not_matter(order: list[int], seed: int) -> None:
    data = rows(20, seed=seed)
    places = torch.tensor(order)
    renamed = data.inputs.clone()
    renamed[:, 3] = places.double()[data.inputs[:, 3].long()]
    moved = {3: FEATURES[3][places.argsort()]}
    other = ModelData(renamed, data.outcomes, BOUNDS, categories=LEVELS, features=moved)
    for name in MEMBERS:
        with torch.no_grad():
            wanted = SURROGATES[name].fit(data).posterior(data.inputs).mean
            found = SURROGATES[name].fit(other).posterior(renamed).mean
        assert torch.allclose(found, wanted, atol=3e-3)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("columns", [(2, 3), (3,), (2,)])
def test_fast_views_are_the_model(columns: tuple[int, ...], member: str) -> None:
    """Moments and slopes, at the contexts of a skeleton and at a few."""
    data = rows(14, features=BOTH)
    model = SURROGATES[member].fit(data).requires_grad_(False)
    decisions = [j for j in range(4) if j not in columns]
    everything = rows(90, seed=7).inputs
    X = everything[:6, decisions]
    for n in (5, 90):
        contexts = everything[:n, list(columns)]
        view = marginal_posterior(model, columns).over(contexts)
        assert view.method == "product"
        mean, variance = view.at(X).moments()
        wanted = model_moments(model, joined(X, contexts, columns))
        assert torch.allclose(mean, wanted[0], atol=1e-7)
        assert torch.allclose(variance, wanted[1], atol=1e-7)
        if columns == (2,):
            slopes = view.at(X).slopes(slice(0, 5))
            leaf = contexts[:5].clone().requires_grad_()
            means, _ = model_moments(model, joined(X, leaf, columns))
            (by_autograd,) = torch.autograd.grad(means.sum(), leaf)
            assert torch.allclose(slopes.mean_slope.sum(0), by_autograd, atol=1e-6)


def test_sample_paths_are_of_the_model() -> None:
    model = SURROGATES["rbf"].fit(rows(14)).requires_grad_(False)
    paths = PosteriorPaths(model, [2, 3], num_paths=4000, num_features=64, seed=0)
    X, grid = rows(3, seed=9).inputs[:, :2], rows(5, seed=8).inputs[:, 2:]
    with torch.no_grad():
        values = paths(X, grid).flatten(1)
        posterior = model.posterior(joined(X, grid, (2, 3)).flatten(0, 1))
    size = posterior.variance.max()
    assert ((values.mean(0) - posterior.mean.flatten()).abs() < 0.07 * size**0.5).all()
    covariance = posterior.distribution.covariance_matrix
    assert ((values.T.cov() - covariance).abs() < 0.08 * size).all()


@pytest.mark.parametrize("member", ["botorch", "matern"])
def test_a_level_that_was_never_tried_is_predicted_from_its_features(
    member: str,
) -> None:
    """And a table that says nothing of the outcome does little harm."""
    k = 12
    features = uniform(k, 1, seed=5).tolist()
    true = Category([f"l{i}" for i in range(k)], features).embedding
    useless = Category([f"l{i}" for i in range(k)], uniform(k, 3, seed=6).tolist())
    assert true is not None and useless.embedding is not None
    bounds = torch.tensor([[0.0, 0.0], [k - 1.0, 1.0]]).double()
    tried = torch.arange(36.0).double() % (k - 3)

    def cells(levels: Tensor, seed: int) -> Tensor:
        return torch.stack([levels, uniform(len(levels), seed=seed)], -1)

    def outcome(Z: Tensor) -> Tensor:
        return 2.0 * true[Z[:, 0].long(), 0] + Z[:, 1]

    Z = cells(tried, 2)
    new = cells((k - 3 + torch.arange(60.0) % 3).double(), 3)
    known = cells(tried.repeat(2), 4)
    explained: dict[str, tuple[float, float]] = {}
    for name, embedding in (
        ("none", None),
        ("true", true),
        ("useless", useless.embedding),
    ):
        given = {} if embedding is None else {0: embedding}
        data = ModelData(
            Z, outcome(Z)[:, None], bounds, categories={0: k}, features=given
        )
        model = SURROGATES[member].fit(data)
        with torch.no_grad():
            explained[name] = tuple(
                (
                    1.0
                    - (model.posterior(at).mean[:, 0] - outcome(at)).var()
                    / outcome(at).var()
                ).item()
                for at in (known, new)
            )
    assert explained["true"][1] > 0.9 > 0.5 > explained["none"][1]
    assert explained["useless"][0] > explained["none"][0] - 0.02


def test_levels_are_left_out_whole() -> None:
    data = rows(40)
    fold = folds_of_levels(data, 3)
    assert fold is not None
    levels = data.inputs[:, 3]
    for k in range(int(fold.max()) + 1):
        inside, outside = levels[fold == k].unique(), levels[fold != k].unique()
        assert len(inside) == 1 and not torch.isin(inside, outside).any()
    held = cross_validated(SURROGATES["rbf"], data, fold)
    assert held is not None
    left = fold == 2
    model = SURROGATES["rbf"].fit(data.of_rows(~left))
    with torch.no_grad():
        wanted = model.posterior(data.inputs[left]).mean.flatten()
    assert torch.allclose(held.predicted.mean[left], wanted, atol=1e-6)
    assert folds_of_levels(rows(4), 0) is not None  # of ten and more some together
    many = ModelData(
        torch.arange(23.0).double()[:, None],
        uniform(23, 1),
        torch.tensor([[0.0], [22.0]]).double(),
    )
    together = folds_of_levels(many, 0)
    assert together is not None and int(together.max()) == 9
