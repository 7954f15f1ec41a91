"""Decisions looked for with inducing points, once there are many outcomes."""

import pytest
import torch
from botorch.models import SingleTaskGP

from botorch_drbo.policies.base import ConfidenceWidth
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import with_inducing_points
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe, model_based
from botorch_drbo.search.candidates import score
from tests.models import UNIT, make_model

SPACE = SearchSpace(UNIT.expand(2, 2), UNIT)


def history(t: int) -> History:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(t, 2, generator=generator).double()
    C = torch.rand(t, 1, generator=generator).double()
    Y = (5.0 * X[:, :1]).sin() - (X[:, 1:] - C).square()
    return History(X=X, C=C, Y=Y, contexts=C)


@pytest.fixture
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ten rows are many, and five points few; and how often they were taken."""
    monkeypatch.setattr(model_based, "MANY_ROWS", 10)
    monkeypatch.setattr(model_based, "FEW_POINTS", 5)
    taken: list[int] = []

    def counted(model: object, num: int) -> object:
        taken.append(num)
        return with_inducing_points(model, num)

    monkeypatch.setattr(model_based, "with_inducing_points", counted)
    return taken


@pytest.mark.parametrize("recipe", ["gp_ucb", "erbo", "wdrbo", "drbo_kde", "edrbo"])
def test_the_decision_is_as_good_as_that_of_all_rows(
    recipe: str, few_rows_are_many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_recipe(recipe, raw_samples=64, num_restarts=4)
    observed = history(40)
    x = made.propose(observed, SPACE, seed=0)
    assert few_rows_are_many == [5]
    monkeypatch.setattr(model_based, "MANY_ROWS", 1000)
    expected = made.propose(observed, SPACE, seed=0)
    model = made.fitted(observed, SPACE, uses_contexts=made.uses_contexts)
    acqf = made.exploring(made.state_of(model, observed, SPACE, 0), None)
    found, best = score(acqf, torch.cat([x, expected]))
    assert found > best - 0.02 * observed.Y.std()


@pytest.mark.parametrize("options", [{"q": 2}, {}])
def test_pending_decisions_are_seen(
    few_rows_are_many: list[int], options: dict[str, int]
) -> None:
    made = make_recipe("wdrbo", raw_samples=16, num_restarts=2)
    pending = torch.tensor([[0.5, 0.5]], dtype=torch.double)
    x = made.propose(history(20), SPACE, seed=0, X_pending=pending, **options)
    assert x.shape == (options.get("q", 1), 2)
    assert few_rows_are_many == [5]


def test_what_needs_paths_or_every_row_is_not_ranked_by_few(
    few_rows_are_many: list[int],
) -> None:
    width = ConfidenceWidth(norm_bound=1.0)
    for recipe, options in (("ts_erbo", {}), ("wdrbo", {"beta": width})):
        made = make_recipe(recipe, raw_samples=16, num_restarts=2, **options)
        made.propose(history(20), SPACE, seed=0)
    assert few_rows_are_many == []


def test_a_model_with_few_rows_or_of_another_kind_is_left_alone() -> None:
    model = make_model()
    assert with_inducing_points(model, len(model.train_targets)) is model
    ensemble = ModelEnsemble([model])
    assert with_inducing_points(ensemble, len(model.train_targets)) is ensemble
    few = with_inducing_points(model, 3)
    assert with_inducing_points(few, 2) is few
    assert few.covar_module.inducing_points.shape[0] == 3
    assert not hasattr(model.covar_module, "inducing_points")


@pytest.mark.parametrize("d_c", [1, 2])
def test_interpolated_moments_of_inducing_points(d_c: int) -> None:
    """Against the model's own posterior at every pair, in units of the prior."""
    generator = torch.Generator().manual_seed(2)
    Z = torch.rand(700, 2 + d_c, generator=generator).double()
    Y = (5.0 * Z[:, :1]).sin() - (Z[:, 1:2] - Z[:, 2:].prod(-1, True)).square()
    few = with_inducing_points(SingleTaskGP(Z, Y), 128)
    contexts = torch.rand(400, d_c, generator=generator).double()
    posterior = marginal_posterior(few, list(range(2, 2 + d_c)))
    X = torch.rand(3, 2, generator=generator).double()
    with torch.no_grad():
        view = posterior.over(contexts)
        assert view.method == "product"
        mean, variance = view.at(X).moments()
        pairs = [torch.cat([x.expand(400, -1), contexts], -1) for x in X]
        own = [few.posterior(pair) for pair in pairs]
    exact_mean = torch.stack([each.mean.flatten() for each in own])
    exact_variance = torch.stack([each.variance.flatten() for each in own])
    scale = float(Y.var())
    assert (mean - exact_mean).abs().max() < 1e-6 * scale**0.5
    assert (variance - exact_variance).abs().max() < 1e-6 * scale
