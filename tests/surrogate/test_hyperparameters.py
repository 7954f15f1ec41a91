"""Known hyper-parameters: nothing is fitted, and the model is the stated prior."""

from __future__ import annotations

import json
import math

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe, recipe_from_dict
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.surrogate import FixedHyperparameters, gaussian_process

SPACE = SearchSpace(
    bounds=torch.tensor([[-1.0], [3.0]], dtype=torch.double),
    context_bounds=torch.tensor([[10.0], [12.0]], dtype=torch.double),
)
PRIOR = FixedHyperparameters(
    lengthscale=(0.2, 0.5), noise_variance=1e-6, outputscale=2.0
)


def history() -> History:
    X = torch.tensor([[-0.5], [0.4], [1.1], [2.9]], dtype=torch.double)
    C = torch.tensor([[10.1], [11.9], [11.0], [10.7]], dtype=torch.double)
    return History(X=X, C=C, Y=5.0 + X.sin() * C, contexts=C)


def model(name: str, prior: FixedHyperparameters, uses_contexts: bool = True):
    recipe = make_recipe(name, hyperparameters=prior)
    assert isinstance(recipe, ModelBasedRecipe)
    return recipe.fitted(history(), SPACE, uses_contexts=uses_contexts)


def test_posterior_is_the_textbook_formula() -> None:
    data, found = history(), model("erbo", PRIOR)
    z = torch.tensor([[0.0, 10.5], [2.0, 11.5]], dtype=torch.double)
    scale = torch.tensor([4.0 * 0.2, 2.0 * 0.5], dtype=torch.double)
    Z = torch.cat([data.X, data.C], -1)

    def kernel(a, b):
        return 2.0 * torch.exp(-0.5 * torch.cdist(a / scale, b / scale).square())

    K = kernel(Z, Z) + 1e-6 * torch.eye(4, dtype=torch.double)
    solved = torch.linalg.solve(K, torch.cat([data.Y, kernel(Z, z)], -1))
    posterior = found.posterior(z)
    torch.testing.assert_close(posterior.mean, kernel(z, Z) @ solved[:, :1])
    torch.testing.assert_close(
        posterior.covariance_matrix, kernel(z, z) - kernel(z, Z) @ solved[:, 1:]
    )


def test_nothing_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "climbed", None)
    for name in ("erbo", "gp_ucb", "random", "ts_bocu", "wdrbo"):
        small = {"num_restarts": 1, "raw_samples": 4, "max_iterations": 2}
        recipe = make_recipe(name, hyperparameters=PRIOR, **small)
        assert recipe.propose(history(), SPACE).shape == (1, 1)
        assert recipe.recommend(history(), SPACE).x.shape == (1,)


def test_a_model_of_decisions_takes_the_first_lengthscales() -> None:
    kernel = model("gp_ucb", PRIOR, uses_contexts=False).covar_module
    assert kernel.lengthscale.tolist() == [[pytest.approx(0.2)]]


def test_one_lengthscale_for_all_and_float32() -> None:
    prior = FixedHyperparameters(lengthscale=0.3, noise_variance=0.01)
    data = history()
    small = prior.model(data.X.float(), data.Y.float(), SPACE.bounds.float(), 2)
    assert small.covar_module.lengthscale.dtype == torch.float
    ard = model("erbo", prior).covar_module.lengthscale
    torch.testing.assert_close(ard, torch.full((1, 2), 0.3, dtype=torch.double))


@pytest.mark.parametrize(
    "prior", [PRIOR, FixedHyperparameters(lengthscale=0.1, noise_variance=0.01)]
)
def test_survives_json(prior: FixedHyperparameters) -> None:
    recipe = make_recipe("erbo", hyperparameters=prior)
    again = recipe_from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert again.hyperparameters == prior  # pyright: ignore
    assert hash(again.hyperparameters) == hash(prior)  # pyright: ignore


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"lengthscale": ()}, "lengthscale"),
        ({"lengthscale": (0.1, -0.1)}, "lengthscale"),
        ({"lengthscale": "small"}, "lengthscale"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": math.nan}, "noise_variance"),
        ({"outputscale": math.inf}, "outputscale"),
        ({"outputscale": True}, "outputscale"),
    ],
)
def test_bad_numbers(options: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        FixedHyperparameters(**{"lengthscale": 0.1, "noise_variance": 0.1, **options})


def test_bad_fit() -> None:
    three = FixedHyperparameters(lengthscale=(0.1, 0.1, 0.1), noise_variance=0.1)
    with pytest.raises(BotorchTensorDimensionError, match="3 numbers for 2"):
        model("erbo", three)
    with pytest.raises(InputDataError, match="FixedHyperparameters"):
        make_recipe("erbo", hyperparameters={"lengthscale": 0.1})
