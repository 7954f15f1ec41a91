"""Any BoTorch model in place of a recipe's own: ``model=`` a function from data."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.fit import fit_fully_bayesian_model_nuts, fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.model import Model, ModelList
from botorch.models.transforms import Normalize
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.problem import History, Round, SearchSpace
from botorch_drbo.recipes import (
    RECIPES,
    Recipe,
    make_recipe,
    recipe_from_dict,
)
from botorch_drbo.surrogate import FixedHyperparameters
from tests.models import uniform

SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}
TINY = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 2}
FEW = {"num_contexts": 16}
FEWER = {
    "stable_opt": FEW,
    "drbo_mmd": FEW,
    "drbo_mmd_minimax": FEW,
    "sbo_kde": FEW,
    "drbo_kde": {**FEW, "num_outside": 16},
    "ts_drbo_kde": {**FEW, "num_outside": 16},
    "ei_drbo_kde": {**FEW, "num_outside": 16},
    "wdrbo_exact": {"num_candidates": 16},
    "phased_gp_us": {"num_decisions": 32},
}
# Sample paths, episodes and bases need one exact Gaussian process.
NO_ENSEMBLES = {name for name in RECIPES if name.startswith(("ts_", "ei_"))}
NO_ENSEMBLES = NO_ENSEMBLES - {"ei_integral"} | {"phased_gp_us"}

BOUNDS = torch.tensor([[-1.0], [3.0]]).double()
CONTEXT_BOUNDS = torch.tensor([[10.0], [12.0]]).double()
SPACE = SearchSpace(BOUNDS, CONTEXT_BOUNDS)


def history(t: int = 8, Yvar: Tensor | None = None) -> History:
    X, C = -1 + 4 * uniform(t, 1), 10 + 2 * uniform(t, 1, seed=1)
    Y = -(X - C + 10).square()
    return History(X=X, C=C, Y=Y, contexts=C, Yvar=Yvar)


def recipe(name: str, **options) -> Recipe:
    return make_recipe(name, **{**SMALL, **FEWER.get(name, {}), **options})


def fixed_kernel(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    kernel = RBFKernel(ard_num_dims=X.shape[-1])
    kernel.lengthscale = 0.4
    model = SingleTaskGP(
        X,
        Y,
        Yvar,
        covar_module=kernel,
        mean_module=ZeroMean(),
        input_transform=Normalize(X.shape[-1], bounds=bounds),
        outcome_transform=None,
    )
    if Yvar is None:
        model.likelihood.noise = 0.01
    return model


def matern(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    d = X.shape[-1]
    transform = Normalize(d, bounds=bounds)
    kernel = MaternKernel(nu=1.5, ard_num_dims=d)
    model = SingleTaskGP(X, Y, Yvar, covar_module=kernel, input_transform=transform)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def ensemble(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    """SAAS, three models; nothing fitted."""
    taus = torch.tensor([0.01, 0.1, 1.0]).to(X)
    transform = Normalize(X.shape[-1], bounds=bounds)
    model = EnsembleMapSaasSingleTaskGP(
        X, Y, Yvar, num_taus=3, taus=taus, input_transform=transform
    )
    model.covar_module.base_kernel.lengthscale = (
        torch.tensor([0.2, 0.4, 0.8]).to(X).reshape(3, 1, 1)
    )
    return model.eval()


def check(algorithm: Recipe) -> None:
    """Propose and recommend inside the box."""
    data = history(4)
    x = algorithm.propose(data, SPACE, seed=3)
    assert x.shape == (1, 1)
    assert (x >= BOUNDS[0]).all() and (x <= BOUNDS[1]).all()
    best = algorithm.recommend(data, SPACE, seed=3)
    assert best.worst_case_value <= best.expected_value + 1e-6
    assert best.worst_case_weights.sum().item() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", sorted({*RECIPES} - {"regret_balancing"}))
def test_every_recipe_takes_a_model(name):
    algorithm = recipe(name, model=fixed_kernel, **TINY)
    if name == "edrbo":
        with pytest.raises(UnsupportedError, match=r"ensemble.*got one SingleTaskGP"):
            check(algorithm)
    else:
        check(algorithm)


@pytest.mark.parametrize("name", sorted({*RECIPES} - {"regret_balancing"}))
def test_every_recipe_takes_an_ensemble_or_says_why_not(name):
    algorithm = recipe(name, model=ensemble, **TINY)
    if name in NO_ENSEMBLES:
        with pytest.raises(UnsupportedError, match=r"batch of models|EnsembleMapSaas"):
            check(algorithm)
    else:
        check(algorithm)


def test_regret_balancing_says_what_to_take_instead():
    with pytest.raises(UnsupportedError, match=r"takes no `model`.*hyperparameters"):
        recipe("regret_balancing", model=fixed_kernel)


@pytest.mark.parametrize("name", ["wdrbo", "drbo_mmd", "phased_gp_us"])
def test_the_prior_of_a_recipe_as_a_model_asks_the_same(name):
    prior = FixedHyperparameters(lengthscale=0.4, noise_variance=0.01)
    given = recipe(name, model=fixed_kernel)
    own = recipe(name, hyperparameters=prior)
    at = {"history": history(), "space": SPACE, "seed": 5}
    assert torch.allclose(given.propose(**at), own.propose(**at), atol=1e-6)
    assert torch.allclose(given.recommend(**at).x, own.recommend(**at).x, atol=1e-4)


def test_the_search_climbs_the_bound_of_the_model_itself():
    data, model = history(), None

    def remembered(*arguments) -> Model:
        nonlocal model
        model = matern(*arguments)
        return model

    grid = torch.linspace(-1, 3, 201).double().reshape(-1, 1, 1)
    algorithm = recipe("erbo", model=remembered, beta=4.0, max_iterations=100)
    x = algorithm.propose(data, SPACE)
    assert model is not None
    Z = torch.cat(
        [torch.cat([grid, x[None]]).expand(-1, 8, 1), data.C.expand(202, 8, 1)], -1
    )
    at = model.posterior(Z)
    scores = (at.mean + 2 * at.variance.sqrt()).mean((-1, -2))
    assert scores[-1] >= scores[:-1].max() - 1e-6


def test_the_function_is_given_the_data_as_they_are():
    calls = []

    def watched(*arguments) -> Model:
        calls.append(arguments)
        return fixed_kernel(*arguments)

    data = history(Yvar=torch.full((8, 1), 0.04).double())
    recipe("gp_ucb", model=watched).recommend(data, SPACE)
    (X, Y, Yvar, bounds), joint = calls
    assert torch.equal(X, data.X) and torch.equal(bounds, BOUNDS)
    assert torch.equal(Y, data.Y) and Yvar is None  # the context is noise too
    assert torch.equal(joint[0], torch.cat([data.X, data.C], -1))
    assert torch.equal(joint[2], data.Yvar)
    assert torch.equal(joint[3], torch.cat([BOUNDS, CONTEXT_BOUNDS], -1))


def test_told_variances_reach_a_heteroscedastic_model():
    opt = RobustOptimizer("erbo", BOUNDS, CONTEXT_BOUNDS, model=fixed_kernel, **SMALL)
    data, variances = history(), torch.linspace(0.01, 0.5, 8).double()
    opt.tell(data.X, data.C, data.Y, y_variance=variances)
    likelihood = opt.model.likelihood
    assert isinstance(likelihood, FixedNoiseGaussianLikelihood)
    assert torch.allclose(likelihood.noise, variances)
    Z = torch.cat([data.X, data.C], -1)
    U = (Z - SPACE.joint_bounds[0]) / (SPACE.joint_bounds[1] - SPACE.joint_bounds[0])
    K = torch.exp(-0.5 * torch.cdist(U, U).square() / 0.4**2)
    mean = K @ torch.linalg.solve(K + variances.diag(), data.Y)
    assert torch.allclose(opt.predict(data.X, data.C)[0], mean.flatten(), atol=1e-6)


def test_an_ensemble_is_judged_by_its_mixture():
    data = history()
    algorithm = recipe("dro", model=ensemble, radius=0.3)
    best = algorithm.recommend(data, SPACE)
    model = algorithm.fitted_model(data, SPACE)
    points = best.context_set.points
    Z = torch.cat([best.x.expand(len(points), 1), points], -1)
    posterior = model.posterior(Z)
    values = posterior.mixture_mean.flatten()
    expected = (best.context_set.weights * values).sum().item()
    assert best.expected_value == pytest.approx(expected, rel=1e-6)
    worst = (best.worst_case_weights * values).sum().item()
    assert best.worst_case_value == pytest.approx(worst, rel=1e-5)
    opt = RobustOptimizer("dro", BOUNDS, CONTEXT_BOUNDS, model=ensemble, **SMALL)
    opt.tell(data.X, data.C, data.Y)
    mean, variance = opt.predict(Z[:, :1], Z[:, 1:])
    assert torch.allclose(mean, values, atol=1e-8)
    assert torch.allclose(variance, posterior.mixture_variance.flatten(), atol=1e-8)


def without_transform(X: Tensor, Y: Tensor, Yvar: Tensor | None, _: Tensor) -> Model:
    return SingleTaskGP(X, Y, Yvar)


@pytest.mark.parametrize("maker", [fixed_kernel, without_transform, ensemble])
@pytest.mark.filterwarnings("ignore:Data .*is not")
def test_a_context_that_is_known_is_known_to_any_model(maker):
    known = torch.tensor([10.5]).double()
    algorithm = recipe("erbo", model=maker, max_iterations=100)
    best = algorithm.recommend(history(), SPACE, this_round=Round(known_context=known))
    model = algorithm.fitted_model(history(), SPACE)
    grid = torch.linspace(-1, 3, 401).double().unsqueeze(-1)
    Z = torch.cat([grid, known.expand(401, 1)], -1)
    posterior = model.posterior(Z)
    mean = (
        posterior.mean.flatten(1) if maker is not ensemble else posterior.mixture_mean
    )
    assert best.expected_value == pytest.approx(mean.max().item(), abs=1e-3)
    # The same decision is worth the same, whichever way it is asked.
    x = torch.cat([best.x, known]).unsqueeze(0)
    at = model.posterior(x).mean.mean().item()
    assert best.expected_value == pytest.approx(at, rel=1e-6)


def returning(model: object):
    return lambda *_: model


def two_outputs(X: Tensor, Y: Tensor, *_) -> Model:
    return SingleTaskGP(X, torch.cat([Y, Y], -1))


def decisions_alone(X: Tensor, Y: Tensor, *_) -> Model:
    return SingleTaskGP(X[:, :1], Y)


@pytest.mark.filterwarnings("ignore:Data .*is not contained")
@pytest.mark.parametrize(
    ("maker", "error", "words"),
    [
        ("matern", InputDataError, "must be a function, got str"),
        (
            SingleTaskGP(uniform(4, 2), uniform(4, 1)),
            InputDataError,
            "`model` is a SingleTaskGP, but outcomes are still to come",
        ),
        (returning(None), InputDataError, "must return a fitted .* got NoneType"),
        (two_outputs, UnsupportedError, "2 outputs"),
        (decisions_alone, BotorchTensorDimensionError, "2 columns.*model of 1 inputs"),
        (
            returning(GenericDeterministicModel(lambda Z: Z[..., :1])),
            UnsupportedError,
            "no training inputs",
        ),
    ],
)
def test_what_is_no_model_of_the_data_is_refused(maker, error, words):
    with pytest.raises(error, match=words):
        recipe("erbo", model=maker, **TINY).propose(history(), SPACE)


def test_a_list_of_one_model_is_that_model():
    check(recipe("wdrbo", model=lambda *data: ModelList(fixed_kernel(*data))))


def test_a_model_and_hyperparameters_exclude_each_other():
    prior = FixedHyperparameters(lengthscale=0.4, noise_variance=0.01)
    with pytest.raises(InputDataError, match="Give one of them"):
        recipe("erbo", model=matern, hyperparameters=prior)


def test_the_data_free_width_is_that_of_the_recipes_own_kernel():
    width = ConfidenceWidth(norm_bound=1.0, data_free=True)
    with pytest.raises(UnsupportedError, match="data_free"):
        recipe("erbo", model=matern, beta=width)
    check(recipe("erbo", model=fixed_kernel, beta=ConfidenceWidth(norm_bound=1.0)))


def test_episodes_need_a_noise_that_is_learnt():
    data = history()

    def noisy(X: Tensor, Y: Tensor, _: Tensor | None, bounds: Tensor) -> Model:
        return fixed_kernel(X, Y, torch.full_like(Y, 0.1), bounds)

    with pytest.raises(UnsupportedError, match=r"learns its noise.*FixedNoise"):
        recipe("phased_gp_us", model=noisy).propose(data, SPACE)


def test_a_ball_of_the_kernel_needs_a_kernel():
    class Plain(Model):
        num_outputs = 1
        batch_shape = torch.Size()
        train_inputs = (uniform(4, 2),)

        def __init__(self, gp: Model) -> None:
            super().__init__()
            self.gp = gp

        def posterior(self, X, **options):
            return self.gp.posterior(X, **options)

    def plain(*data: Any) -> Model:
        return Plain(fixed_kernel(*data).eval())

    with pytest.raises(
        UnsupportedError, match=r"kernel of the model.*Plain shows none"
    ):
        recipe("drbo_mmd", model=plain).propose(history(), SPACE)


class TestSaved:
    def test_a_recipe_notes_that_there_was_a_function(self):
        stored = json.loads(json.dumps(recipe("erbo", model=matern).to_dict()))
        with pytest.raises(InputDataError, match=r"`matern`.*cannot be saved"):
            recipe_from_dict(stored)
        again = recipe_from_dict(stored, matern)
        assert again.to_dict() == stored
        with pytest.raises(InputDataError, match="made without a function as `model`"):
            recipe_from_dict(recipe("erbo").to_dict(), matern)

    def test_a_run_goes_on_with_the_function_given_again(self, tmp_path):
        path = tmp_path / "run.jsonl"

        def made(**options) -> RobustOptimizer:
            options = {"num_initial": 3, "model": fixed_kernel, **SMALL, **options}
            return RobustOptimizer("erbo", BOUNDS, CONTEXT_BOUNDS, **options)

        data = history(4)
        with made(journal=path) as opt:
            opt.tell(data.X, data.C, data.Y, closes_pending=False)
            state = opt.state_dict()
        whole = made()
        whole.tell(data.X, data.C, data.Y, closes_pending=False)
        before = path.read_bytes()
        with pytest.raises(InputDataError, match=r"`fixed_kernel`.*Pass it again"):
            RobustOptimizer.resume(path)
        assert path.read_bytes() == before
        expected = whole.ask()
        with RobustOptimizer.resume(path, model=fixed_kernel) as again:
            assert torch.equal(again.ask(), expected)
        again = RobustOptimizer.from_state_dict(state, model=fixed_kernel)
        assert torch.equal(again.ask(), expected)


def test_the_model_of_a_forecast_round_is_the_same():
    forecast = ContextSet(torch.tensor([[10.2], [10.4]]).double())
    best = recipe("wdrbo", model=matern).recommend(
        history(), SPACE, this_round=Round(context_set=forecast, radius=0.0)
    )
    assert best.worst_case_value == pytest.approx(best.expected_value, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wdrbo", "drbo_mmd"])
def test_a_fully_bayesian_model(name):
    pytest.importorskip("numpyro")
    fitted = []

    def saas(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        if fitted:  # one chain takes half a minute
            return fitted[0]
        transform = Normalize(X.shape[-1], bounds=bounds)
        Y = (Y - Y.mean()) / Y.std()
        model = SaasFullyBayesianSingleTaskGP(X, Y, Yvar, input_transform=transform)
        fit_fully_bayesian_model_nuts(
            model, warmup_steps=8, num_samples=8, thinning=2, disable_progbar=True
        )
        fitted.append(model)
        return model

    check(recipe(name, model=saas, **TINY))
