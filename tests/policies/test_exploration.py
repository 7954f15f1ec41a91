"""The confidence width of theory as an option of the recipes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe, make_recipe, recipe_from_dict
from botorch_drbo.surrogate import FixedHyperparameters

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
SPACE = SearchSpace(UNIT, UNIT)
PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=0.08, outputscale=2.0)
WIDTH = ConfidenceWidth(norm_bound=1.5, delta=0.05)
GENERATOR = torch.Generator().manual_seed(0)
X, C = torch.rand(2, 6, 1, generator=GENERATOR, dtype=torch.double)
HISTORY = History(X=X, C=C, Y=(5 * X).sin() * C, contexts=C)


def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    square = ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1)
    return np.exp(-0.5 * square / 0.3**2)  # the paper's, of size one


def lemma_1(Z: np.ndarray, sigma: float, lam: float = 0.04) -> float:
    """In units of the paper's sigma, for a norm of 1.5 and delta = .05."""
    logdet = np.linalg.slogdet(np.eye(len(Z)) + kernel(Z, Z) / lam)[1]
    return sigma / math.sqrt(lam) * math.sqrt(2 * math.log(20) + logdet) + 1.5


@pytest.mark.parametrize(
    "name", ["wdrbo", "ec_wdrbo", "sbo_kde", "ucb_bocu_1", "ucb_bocu_2", "ucb_so"]
)
def test_beta_is_lemma_1_of_the_data_at_hand(name: str) -> None:
    recipe = make_recipe(name, beta=WIDTH, hyperparameters=PRIOR)
    assert isinstance(recipe, RobustRecipe)
    model = recipe.fitted(HISTORY, SPACE, uses_contexts=True)
    acqf = recipe.exploring(recipe.state_of(model, HISTORY, SPACE, 0), None)
    # Of a kernel of size 2: its sigma is sqrt(2) times the paper's, the product is one.
    noise = math.sqrt(0.08)
    paper = lemma_1(torch.cat([X, C], -1).numpy(), noise) / math.sqrt(2.0)
    assert acqf.beta.sqrt().item() == pytest.approx(paper, rel=1e-6)  # pyright: ignore


@pytest.mark.parametrize("name", ["ec_gp_ucb", "gp_ucb"])
def test_a_model_of_decisions_has_the_gain_of_decisions(name: str) -> None:
    recipe = make_recipe(name, beta=WIDTH, hyperparameters=PRIOR)
    assert isinstance(recipe, RobustRecipe)
    model = recipe.fitted(HISTORY, SPACE, uses_contexts=False)
    acqf = recipe.exploring(recipe.state_of(model, HISTORY, SPACE, 0), None)
    paper = lemma_1(X.numpy(), math.sqrt(0.08)) / math.sqrt(2.0)
    assert acqf.beta.sqrt().item() == pytest.approx(paper, rel=1e-6)  # pyright: ignore


def test_lambda_may_differ_from_the_noise() -> None:
    model = PRIOR.model(X, HISTORY.Y, UNIT, 2)
    real = ConfidenceWidth(norm_bound=1.5, delta=0.05, noise_std=0.5)
    paper = lemma_1(X.numpy(), 0.5) / math.sqrt(2.0)
    assert real.beta(model) == pytest.approx(paper**2, rel=1e-6)


@pytest.mark.parametrize("name", ["gp_ucb", "ec_gp_ucb", "sbo_kde"])
def test_lambda_of_a_fitted_model_may_differ_from_its_noise(name: str) -> None:
    """The bound by NumPy, from the fitted hyper-parameters and another lambda."""
    lam, norm = 0.3, 1.5
    width = ConfidenceWidth(norm_bound=norm, delta=0.05, noise_ratio=lam)
    reference = ContextSet.fixed(torch.tensor([0.4], dtype=torch.double))
    one = {"surrogate": "botorch"}  # the bound by NumPy is that of one RBF kernel
    recipe = make_recipe(name, beta=width, reference=reference, **one)
    assert isinstance(recipe, RobustRecipe)
    model = recipe.fitted(HISTORY, SPACE, uses_contexts=recipe.uses_contexts)
    acqf = recipe.exploring(recipe.state_of(model, HISTORY, SPACE, 0), None)
    x = torch.linspace(0, 1, 9, dtype=torch.double).reshape(-1, 1, 1)

    inputs = torch.cat([X, C], -1) if recipe.uses_contexts else X
    where = x.squeeze(1)
    if recipe.uses_contexts:
        where = torch.cat([where, torch.full_like(where, 0.4)], -1)
    length = model.covar_module.lengthscale.detach().numpy()  # pyright: ignore
    Z, points = inputs.numpy() / length, where.numpy() / length

    def unit_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1))

    y = HISTORY.Y.squeeze(-1).numpy()
    level, unit = y.mean(), y.std(ddof=1)  # the prior: unit times a kernel of size one
    constant = level + unit * model.mean_module.constant.item()  # pyright: ignore
    noise = unit * math.sqrt(model.likelihood.noise.item())  # pyright: ignore
    K, cross = unit_kernel(Z, Z), unit_kernel(points, Z)
    inverse = np.linalg.inv(K + lam * np.eye(len(Z)))
    mean = constant + cross @ inverse @ (y - constant)
    sigma = np.sqrt(1 - (cross @ inverse * cross).sum(-1))  # the paper's
    logdet = np.linalg.slogdet(np.eye(len(Z)) + K / lam)[1]
    # Lemma 1 in units of y: the paper's sigma is for outcomes over `unit`.
    real = noise / math.sqrt(lam) * math.sqrt(2 * math.log(20) + logdet) + norm
    if name == "ec_gp_ucb":
        real += 0.1 * math.sqrt(len(Z) / lam)
    assert acqf(x).detach().numpy() == pytest.approx(mean + real * sigma, rel=1e-6)


def test_recommendations_keep_the_noise_of_the_model() -> None:
    options = {"num_restarts": 2, "raw_samples": 16}
    width = ConfidenceWidth(norm_bound=1.5, noise_ratio=0.3)
    plain = make_recipe("gp_ucb", **options)
    other = make_recipe("gp_ucb", beta=width, **options)
    assert (
        other.recommend(HISTORY, SPACE).objective
        == plain.recommend(HISTORY, SPACE).objective
    )


def test_data_free_width_is_that_of_the_most_telling_inputs() -> None:
    """Against a greedy choice on a grid, each determinant from scratch."""
    grid, chosen = np.linspace(0, 1, 201)[:, None], []
    for _ in range(len(X)):
        gains = [
            np.linalg.slogdet(np.eye(len(Z)) + kernel(Z, Z) / 0.04)[1]
            for Z in (np.array([*chosen, point]) for point in grid)
        ]
        chosen.append(grid[int(np.argmax(gains))])
    largest = lemma_1(np.array(chosen), math.sqrt(0.08)) / math.sqrt(2.0)
    model = PRIOR.model(X, HISTORY.Y, UNIT, 2)
    free = ConfidenceWidth(norm_bound=1.5, delta=0.05, data_free=True)
    assert free.beta(model) == pytest.approx(largest**2, rel=1e-3)
    assert free.beta(model) > WIDTH.beta(model)
    other = PRIOR.model(X / 10, HISTORY.Y, UNIT, 2)
    assert free.beta(other) == free.beta(model)  # the inputs do not matter


def test_it_survives_a_journal(tmp_path) -> None:
    options: dict = {"num_restarts": 1, "raw_samples": 8, "hyperparameters": PRIOR}
    options |= {"beta": WIDTH, "num_initial": 2}
    run = RobustOptimizer("wdrbo", UNIT, UNIT, journal=tmp_path / "j", **options)
    for c in C[:3].split(1):
        x = run.ask()
        run.tell(x, c, (5 * x).sin() * c)
    run.close()
    resumed = RobustOptimizer.resume(tmp_path / "j")
    assert resumed.algorithm.options["beta"] == WIDTH
    again = RobustOptimizer("wdrbo", UNIT, UNIT, **options)
    for c in C[:3].split(1):
        x = again.ask()
        again.tell(x, c, (5 * x).sin() * c)
    assert torch.equal(resumed.ask(), again.ask())
    resumed.close()


def test_it_is_stored_exactly() -> None:
    recipe = make_recipe("ec_gp_ucb", beta=ConfidenceWidth(1 / 3, 0.07, 0.1, True, 0.2))
    again = recipe_from_dict(recipe.to_dict())
    assert again.options["beta"] == recipe.options["beta"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"norm_bound": -1.0}, "`norm_bound`"),
        ({"norm_bound": 1.0, "delta": 1.0}, "`delta`"),
        ({"norm_bound": 1.0, "noise_std": -0.1}, "`noise_std`"),
        ({"norm_bound": 1.0, "noise_ratio": 0.0}, "`noise_ratio` must be positive"),
        ({"norm_bound": 1.0, "data_free": 1}, "`data_free` must be True or False"),
    ],
)
def test_bad_fields(fields: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        ConfidenceWidth(**fields)
