"""Categories: one lengthscale each, main effects, and what does not matter of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import Category, NamedOptimizer, Space
from botorch_drbo.kernels.components import kernel_components
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.wrapped import with_known_columns
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.problem.round import ConstraintData
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths
from botorch_drbo.surrogate import (
    SURROGATES,
    EnsembleOf,
    GaussianProcess,
    ModelData,
    Surrogate,
)
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.evidence import LogPosterior
from botorch_drbo.surrogate.fit import fit_constraints
from botorch_drbo.surrogate.gaussian_process import (
    CATEGORIES,
    model_with,
    with_categories,
)
from tests.contracts.view_case import joined, model_moments
from tests.models import uniform

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

MEMBERS = ("botorch", "matern", "rbf", "matern32")
LEVELS = {1: 3, 3: 5}  # columns 0 and 2 are numbers
BOUNDS = torch.tensor([[0.0, 0.0, -1.0, 0.0], [1.0, 2.0, 3.0, 4.0]]).double()
ALL = {0: 3, 1: 5, 2: 2}
ALL_BOUNDS = torch.tensor([[0.0, 0.0, 0.0], [2.0, 4.0, 1.0]]).double()


def rows(
    t: int,
    bounds: Tensor = BOUNDS,
    categories: dict[int, int] = LEVELS,
    *,
    seed: int = 1,
    **options: object,
) -> ModelData:
    Z = bounds[0] + (bounds[1] - bounds[0]) * uniform(t, bounds.shape[-1], seed=seed)
    first, *_ = columns = list(categories)
    Z[:, columns] = Z[:, columns].round()
    effects = torch.tensor([0.0, 2.0, -1.0, 1.0, 3.0]).double()
    Y = sum(effects[Z[:, j].long()] for j in columns) + Z[:, 0].sin()
    Y = Y + (Z[:, first] == 1) * Z[:, -1] + 0.1 * uniform(t, seed=seed + 1)
    return ModelData(Z, Y[:, None], bounds, categories=categories, **options)


def posterior_of(data: ModelData) -> LogPosterior:
    family = GaussianProcess("matern32").family(data.inputs.shape[-1])
    return LogPosterior(with_categories(family, data, CATEGORIES["matern32"]), data)


def point(posterior: LogPosterior, seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).normal(size=posterior.size)
    return posterior.vector(0.4, 1.7, 0.05) + 0.3 * steps


@pytest.mark.parametrize("whole", [False, True])
def test_the_kernel_is_the_written_formula(whole: bool) -> None:
    """Brute force: one pair after the other, one column after the other."""
    data = rows(9, ALL_BOUNDS, ALL) if whole else rows(9)
    posterior = posterior_of(data)
    at = point(posterior)
    values = posterior.hyperparameters(at)
    model = model_with(data, posterior, at)
    inputs = model.transform_inputs(data.inputs)
    kernel = model.covar_module(inputs).to_dense().detach()
    (low, high), mains = (
        data.bounds,
        dict(zip(data.categories, values.main_effects, strict=True)),
    )
    for i, z in enumerate(data.inputs):
        for k, other in enumerate(data.inputs):
            total, product = 0.0, values.outputscale
            for j, length in enumerate(values.lengthscales):
                if j in data.categories:
                    same = bool(z[j] == other[j])
                    total += mains[j] if same else 0.0
                    product *= 1.0 if same else math.exp(-1.0 / length**2)
                else:
                    gap = abs(z[j] - other[j]).item() / (high - low)[j].item()
                    a = math.sqrt(3.0) * gap / length
                    product *= (1.0 + a) * math.exp(-a)
            assert kernel[i, k].item() == pytest.approx(total + product, rel=1e-6)


@pytest.mark.parametrize("known_noise", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("marginal", [False, True])
def test_the_gradient_is_that_of_finite_differences(
    known_noise: bool, whole: bool, marginal: bool
) -> None:
    noise = {"Yvar": 0.1 + uniform(12, 1, seed=2)} if known_noise else {}
    data = rows(12, ALL_BOUNDS, ALL, **noise) if whole else rows(12, **noise)
    plain = posterior_of(data)
    posterior = LogPosterior(plain.family, data, marginal=marginal)
    at = point(posterior)
    wanted = [
        (posterior(at + h).log_density - posterior(at - h).log_density) / 2e-5
        for h in 1e-5 * np.eye(posterior.size)
    ]
    assert np.allclose(posterior(at).gradient, wanted, atol=1e-6)


def test_the_density_is_that_of_the_covariance() -> None:
    """Up to a constant, by a normal distribution of torch and priors by hand."""
    data = rows(10)
    posterior = posterior_of(data)

    def density(at: np.ndarray) -> float:
        values, model = posterior.hyperparameters(at), model_with(data, posterior, at)
        Z = model.transform_inputs(data.inputs)
        K = model.covar_module(Z).to_dense().detach() + values.noise * torch.eye(10)
        normal = torch.distributions.MultivariateNormal(
            torch.full((10,), posterior(at).mean).double(), K
        )
        found = normal.log_prob(data.scaled_outcomes).item()
        logs = np.log(values.lengthscales)
        numbers, levels = logs[[0, 2]], logs[[1, 3]]
        found += (2.0 * numbers - 6.0 * np.exp(numbers)).sum()  # Gamma(3, 6)
        noise = math.log(values.noise)
        found += 0.1 * noise - 0.05 * values.noise  # Gamma(1.1, .05)
        for prior, many in (
            (CATEGORIES["matern32"].lengthscale, levels),
            (CATEGORIES["matern32"].main_effect, np.log(values.main_effects)),
            (CATEGORIES["matern32"].interaction, np.log([values.outputscale])),
        ):
            middle = prior.location - prior.scale**2
            found -= 0.5 * (((many - middle) / prior.scale) ** 2).sum()
        return found

    first, second = point(posterior), point(posterior, seed=1)
    wanted = density(first) - density(second)
    found = posterior(first).log_density - posterior(second).log_density
    assert found == pytest.approx(wanted, abs=1e-5)


def means(surrogate: Surrogate, data: ModelData, cells: Tensor) -> Tensor:
    with torch.no_grad():
        posterior = surrogate.fit(data).posterior(cells.unsqueeze(1))
        return torch.stack([posterior.mean, posterior.variance]).flatten(1)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(3)), st.integers(0, 100))
def test_the_numbers_of_levels_do_not_matter(
    five: list[int], three: list[int], seed: int
) -> None:
    data = rows(20, seed=seed)
    renamed = data.inputs.clone()
    renamed[:, 1] = torch.tensor(three).double()[data.inputs[:, 1].long()]
    renamed[:, 3] = torch.tensor(five).double()[data.inputs[:, 3].long()]
    other = ModelData(renamed, data.outcomes, BOUNDS, categories=LEVELS)
    for name in MEMBERS:
        wanted = means(SURROGATES[name], data, data.inputs)
        found = means(SURROGATES[name], other, renamed)
        assert torch.allclose(found, wanted, atol=2e-3)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 30), st.integers(0, 100))
def test_levels_that_nobody_has_tried_do_not_matter(more: int, seed: int) -> None:
    data = rows(20, seed=seed)
    bounds = BOUNDS.clone()
    bounds[1, 3] += more
    larger = ModelData(
        data.inputs, data.outcomes, bounds, categories={1: 3, 3: 5 + more}
    )
    for name in MEMBERS:
        wanted = means(SURROGATES[name], data, data.inputs)
        found = means(SURROGATES[name], larger, data.inputs)
        assert torch.allclose(found, wanted, atol=2e-3)


@pytest.mark.parametrize("name", MEMBERS)
def test_units_do_not_matter(name: str) -> None:
    data = rows(20)
    wanted = means(SURROGATES[name], data, data.inputs)
    scaled = ModelData(data.inputs, 30 + 1e4 * data.outcomes, BOUNDS, categories=LEVELS)
    found = means(SURROGATES[name], scaled, data.inputs)
    assert torch.allclose(found[0], 30 + 1e4 * wanted[0], rtol=1e-3)
    assert torch.allclose(found[1], 1e8 * wanted[1], rtol=0.02)


@pytest.mark.parametrize("name", MEMBERS)
def test_main_effects_are_learnt_from_few_rows(name: str) -> None:
    """24 of 3,840 cells, 29 levels: one lengthscale a level learns next to nothing."""
    levels = {0: 8, 1: 8, 2: 5, 3: 4, 4: 3}
    generator = np.random.default_rng(3)
    effects = [
        generator.normal(size=k) * (j < 3) for j, k in enumerate(levels.values())
    ]
    cells = np.stack([generator.integers(0, k, 424) for k in levels.values()], 1)
    values = sum(e[column] for e, column in zip(effects, cells.T, strict=True))
    upper = torch.tensor([k - 1.0 for k in levels.values()]).double()
    bounds = torch.stack([torch.zeros(5).double(), upper])
    Z, Y = torch.from_numpy(cells).double(), torch.from_numpy(values)
    data = ModelData(Z[:48], Y[:48, None], bounds, categories=levels)
    found, _ = means(SURROGATES[name], data, Z[48:])
    explained = 1.0 - (found - Y[48:]).square().mean() / Y[48:].var()
    assert explained > 0.75


def test_where_all_are_categories_members_differ() -> None:
    data = rows(10, ALL_BOUNDS, ALL)
    cells = rows(60, ALL_BOUNDS, ALL, seed=5).inputs
    four = [means(SURROGATES[name], data, cells)[0] for name in MEMBERS]
    for number, one in enumerate(four):
        for other in four[:number]:
            assert (one - other).abs().max() > 1e-2 * data.outcomes.std()


CASES = {
    "mixed, numbers and a category as contexts": (rows(14), (2, 3)),
    "mixed, a category as context": (rows(14), (3,)),
    "mixed, a number as context": (rows(14), (2,)),
    "all categories": (rows(14, ALL_BOUNDS, ALL), (1, 2)),
    "known noise": (rows(14, Yvar=0.01 + 0.1 * uniform(14, 1, seed=9)), (2, 3)),
}


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("case", CASES)
def test_fast_views_are_the_model(case: str, member: str) -> None:
    """Moments, means and slopes, at the contexts of a skeleton and at a few."""
    data, columns = CASES[case]
    model = SURROGATES[member].fit(data).requires_grad_(False)
    decisions = [j for j in range(len(data.bounds[0])) if j not in columns]
    everything = rows(90, data.bounds, dict(data.categories), seed=7).inputs
    X = everything[:6, decisions]
    assert len(kernel_components(model.covar_module, data.num_columns)) == 1 + len(
        data.categories
    )
    for n in (5, 90):
        contexts = everything[:n, list(columns)]
        view = marginal_posterior(model, columns).over(contexts)
        assert view.method == "product"
        mean, variance = view.at(X).moments()
        wanted = model_moments(model, joined(X, contexts, columns))
        assert torch.allclose(mean, wanted[0], atol=1e-7)
        assert torch.allclose(variance, wanted[1], atol=1e-7)
        assert torch.allclose(view.at(X).means(), wanted[0], atol=1e-7)
        slopes = view.at(X).slopes(slice(0, 5))
        leaf = contexts[:5].clone().requires_grad_()
        means_at, variances_at = model_moments(model, joined(X, leaf, columns))
        for found, values in (
            (slopes.mean_slope, means_at),
            (slopes.variance_slope, variances_at),
        ):
            if values.requires_grad:
                (by_autograd,) = torch.autograd.grad(
                    values.sum() + 0.0 * leaf.sum(), leaf, retain_graph=True
                )
                assert torch.allclose(found.sum(0), by_autograd, atol=1e-6)
            for position, column in enumerate(columns):
                if column in data.categories:
                    assert not found[..., position].any()


@pytest.mark.parametrize("member", ["botorch", "matern"])
def test_known_contexts_and_pending_inputs_enter_as_in_the_exact_view(
    member: str,
) -> None:
    """Oracles: the model at the known value, and GPyTorch's kernel in one factor."""
    data, columns = CASES["mixed, numbers and a category as contexts"]
    model = SURROGATES[member].fit(data).requires_grad_(False)
    X, contexts = data.inputs[:6, :2], rows(60, seed=7).inputs[:, 2:]
    known = with_known_columns(model, [3], torch.tensor([4.0]).double())
    mean, variance = marginal_posterior(known, columns).over(contexts).at(X).moments()
    contexts[:, 1] = 4.0
    wanted = model_moments(model, joined(X, contexts, columns))
    assert torch.allclose(mean, wanted[0], atol=1e-7)
    assert torch.allclose(variance, wanted[1], atol=1e-7)
    pending = rows(4, seed=8).inputs
    fast, exact = (
        marginal_posterior(model, columns, pending=pending, method=method)
        .over(contexts)
        .at(X)
        .moments()
        for method in ("product", "exact")
    )
    assert torch.allclose(fast[0], exact[0], atol=1e-7)
    assert torch.allclose(fast[1], exact[1], atol=1e-7)
    assert (exact[1] < variance - 1e-9).any()


@pytest.mark.parametrize("name", MEMBERS)
def test_one_row_and_levels_all_alike_do(name: str) -> None:
    data = rows(9)
    one = ModelData(data.inputs[:1], data.outcomes[:1], BOUNDS, categories=LEVELS)
    alike = data.inputs.clone()
    alike[:, 1] = 2.0
    constant = ModelData(alike, data.outcomes, BOUNDS, categories=LEVELS)
    for few in (one, constant):
        assert means(SURROGATES[name], few, data.inputs).isfinite().all()


@pytest.mark.parametrize("member", MEMBERS)
def test_float32_is_nearly_float64(member: str) -> None:
    data = rows(14)
    single = ModelData(
        data.inputs.float(), data.outcomes.float(), BOUNDS.float(), categories=LEVELS
    )
    model = SURROGATES[member].fit(single)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    X, contexts = data.inputs[:6, :2], data.inputs[:, 2:]
    wanted = marginal_posterior(SURROGATES[member].fit(data), (2, 3))
    found = marginal_posterior(model, (2, 3)).over(contexts.float()).at(X.float())
    for one, other in zip(
        found.moments(), wanted.over(contexts).at(X).moments(), strict=True
    ):
        assert one.dtype == torch.float32
        assert torch.allclose(one.double(), other, atol=0.05)


def test_sample_paths_have_the_covariance_of_the_posterior() -> None:
    """A main effect's features are those of a tiny lengthscale."""
    data = rows(10, ALL_BOUNDS, ALL)
    model = SURROGATES["matern"].fit(data)
    assert isinstance(model, SingleTaskGP)
    paths = PosteriorPaths(model, [1, 2], num_paths=4000, num_features=64, seed=0)
    grid = torch.cartesian_prod(torch.arange(5.0), torch.arange(2.0)).double()
    X = torch.arange(3.0).double()[:, None]
    with torch.no_grad():
        values = paths(X, grid).flatten(1)  # P x 30
        posterior = model.posterior(joined(X, grid, (1, 2)).flatten(0, 1))
    size = posterior.variance.max()
    covariance = posterior.distribution.covariance_matrix
    assert ((values.mean(0) - posterior.mean.flatten()).abs() < 0.07 * size**0.5).all()
    assert ((values.T.cov() - covariance).abs() < 0.08 * size).all()


def test_many_rows_are_summed_up_at_inducing_points() -> None:
    data = rows(120)
    exact = GaussianProcess("matern52").fit(data)
    with pytest.warns(InputDataWarning, match="max_exact"):
        few = GaussianProcess("matern52", max_exact=60).fit(data)
    X, contexts = data.inputs[:6, :2], data.inputs[:60, 2:]
    view = marginal_posterior(few, (2, 3)).over(contexts)
    assert view.method == "product"
    wanted = model_moments(few, joined(X, contexts, (2, 3)))
    mean, variance = view.at(X).moments()
    assert torch.allclose(mean, wanted[0], atol=1e-5)
    assert torch.allclose(variance, wanted[1], atol=1e-5)
    near = model_moments(exact, joined(X, contexts, (2, 3)))[0]
    assert (mean - near).abs().mean() < 0.2 * data.outcomes.std()


def test_more_rows_than_a_first_fit_takes() -> None:
    data = rows(520)
    for name in ("botorch", "rbf"):
        found, _ = means(SURROGATES[name], data, data.inputs)
        assert (found - data.outcomes.flatten()).std() < 0.1


def test_a_resumed_run_goes_on_as_it_was(tmp_path: Path) -> None:
    """A model is fitted again to what the journal keeps: the same decision."""
    space = Space(
        decisions={"dose": (0.0, 1.0), "ligand": Category(["P", "Q", "R"])},
        contexts={"base": Category(["a", "b", "c", "d", "e"])},
        outcome="yield",
    )
    opt = NamedOptimizer(
        "dro",
        space,
        seed=0,
        num_initial=0,
        journal=tmp_path / "run.jsonl",
        num_restarts=1,
        raw_samples=16,
        max_iterations=5,
    )
    for number in range(9):
        row = {"dose": number / 8, "ligand": "PQR"[number % 3]}
        opt.tell(row, {"base": "abcde"[number % 5]}, number % 3 + number % 5 / 2)
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "run.jsonl").read_bytes())
    resumed = NamedOptimizer.resume(tmp_path / "copy.jsonl")
    assert opt.ask().equals(resumed.ask())


def test_models_of_constraints_learn_categories_too() -> None:
    data = rows(30, ALL_BOUNDS, ALL)
    space = SearchSpace(
        ALL_BOUNDS[:, :2],
        ALL_BOUNDS[:, 2:],
        categories={0: 3, 1: 5},
        context_categories={0: 2},
    )
    X, C, Y = data.inputs[:, :2], data.inputs[:, 2:], data.outcomes
    history = History(
        X=X, C=C, Y=Y, contexts=C, constraints=ConstraintData(X=X, C=C, G=Y - 1.0)
    )
    (model,) = fit_constraints(history, space).models
    wanted = BoTorchDefault().fit(
        ModelData(data.inputs, Y - 1.0, ALL_BOUNDS, categories=ALL)
    )
    found, own = (m.posterior(data.inputs).mean for m in (model, wanted))
    assert torch.allclose(found, own)
    assert len(model.covar_module.kernels) == 4


def test_without_categories_nothing_is_added() -> None:
    data = ModelData(
        uniform(9, 2), uniform(9, 1, seed=1), torch.eye(2).cumsum(0).double()
    )
    family = GaussianProcess("rbf").family(2)
    assert with_categories(family, data, CATEGORIES["rbf"]) is family


def test_an_ensemble_by_name_and_by_object_is_the_same() -> None:
    data = rows(12)
    both = EnsembleOf(["rbf", GaussianProcess("rbf")]).fit(data)
    first, second = (m.posterior(data.inputs).mean for m in members_of(both))
    assert torch.equal(first, second)
