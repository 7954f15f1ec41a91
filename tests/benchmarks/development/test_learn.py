"""Runs on the development set: what they hold, and how they are gone on with."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from scipy import stats

from benchmarks.development.learn import SEARCH, Task, prediction
from benchmarks.development.store import run_of
from benchmarks.development.truth import truth_of
from benchmarks.run.storage import Row
from benchmarks.study.cases import INITIAL
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import fitted_state, make_recipe
from botorch_drbo.sampling import derive_seed

TASK = Task("six_hump_camel", "erbo", "botorch", 0, rounds=10)


def learn(task: Task, done: list[Row] | None = None) -> Row:
    """The run of a task that goes on after some rows."""
    before = done or []
    return run_of(task, [*before, *task.play(before)])


@pytest.fixture(scope="module")
def run() -> Row:
    return learn(TASK)


def tensor(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.double)


def history(run: Row, told: int) -> History:
    X, C = (tensor(run[name][:told]) for name in ("x", "c"))
    Y = tensor(run["y"][:told]).unsqueeze(-1)
    return History(X=X, C=C, Y=Y, contexts=C)


def test_a_run_holds_what_happened(run):
    assert (run["half"], run["rounds"], run["told"]) == ("B", 10, [10])
    assert {len(run[name]) for name in ("x", "c", "y", "expected", "seconds")} == {10}
    assert run["mean"][:INITIAL] == run["seconds"][:INITIAL] == [None] * INITIAL
    function = truth_of(TASK.case, 0).function
    X, C = (tensor(run[name]) for name in ("x", "c"))
    torch.testing.assert_close(
        tensor(run["y"]), function.evaluate(X, C), rtol=0, atol=1e-12
    )
    expected = function.expected_value(X, num=2**13)
    torch.testing.assert_close(tensor(run["expected"]), expected, rtol=0, atol=2e-3)
    last = tensor(run["recommended"])
    value = function.expected_value(last).item()
    assert run["value"] == [pytest.approx(value, abs=2e-3)]


def test_decisions_are_those_of_the_recipe_alone(run):
    """Fits are shared within a run; without that the decisions are the same."""
    function = truth_of(TASK.case, 0).function
    space = SearchSpace(bounds=function.bounds, context_bounds=function.context_bounds)
    recipe = make_recipe("erbo", surrogate="botorch", **SEARCH)
    asked = recipe.propose(history(run, 7), space, seed=derive_seed(0, 0, 7))
    assert asked.flatten().tolist() == run["x"][7]
    best = recipe.recommend(history(run, 10), space, seed=derive_seed(0, 1, 10))
    assert best.x.tolist() == run["recommended"][0]


def test_an_outcome_is_predicted_by_the_model_that_asked(run):
    function = truth_of(TASK.case, 0).function
    space = SearchSpace(bounds=function.bounds, context_bounds=function.context_bounds)
    recipe = make_recipe("erbo", surrogate="botorch")
    model = recipe.fitted(history(run, 8), space, uses_contexts=True)
    z = tensor([run["x"][8] + run["c"][8]])
    posterior = model.posterior(z, observation_noise=True)
    assert run["mean"][8] == pytest.approx(posterior.mean.item())
    assert run["variance"][8] == pytest.approx(posterior.variance.item())


def test_data_are_fitted_once(monkeypatch):
    calls, fit = [], fitted_state.fit_outcomes

    def counted(*args, **kwargs):
        calls.append(1)
        return fit(*args, **kwargs)

    monkeypatch.setattr(fitted_state, "fit_outcomes", counted)
    learn(replace(TASK, rounds=11))
    # 6 asks; the recommendation after 10 outcomes takes the fit of the sixth
    assert len(calls) == 6


def test_a_run_that_goes_on_is_that_which_was_not_interrupted(run):
    whole = learn(replace(TASK, rounds=12))
    first = list(TASK.play([]))
    longer = learn(replace(TASK, rounds=12), first)
    skipped = {"seconds", "commits"}
    for name in set(whole) - skipped:
        assert longer[name] == whole[name], name
    assert len(first) == 10  # what was stored is as it was
    assert [row["y"] for row in first] == run["y"]


def test_candidates_meet_the_same_world(run):
    other = learn(Task("six_hump_camel", "wdrbo_exact", "botorch", 0, rounds=6))
    assert other["x"][:INITIAL] == run["x"][:INITIAL]
    assert other["c"] == run["c"][:6]
    assert other["x"][INITIAL] != run["x"][INITIAL]


def test_of_a_robust_recipe_the_worst_case_is_kept():
    row = learn(Task("six_hump_camel", "wdrbo_exact", "botorch", 0, rounds=10))
    assert row["worst"][0] < row["value"][0]
    assert row["worst_best"] >= row["worst"][0] - 1e-3


def test_a_category_is_one_of_its_values():
    row = learn(Task("category_2_1", "erbo", "botorch", 0, rounds=7))
    assert {x[0] for x in row["x"]} <= {0.0, 1.0, 2.0}


def gaussian_process(scale: float, noise: float) -> SingleTaskGP:
    X = torch.tensor([[0.0], [0.5], [1.0]]).double()
    model = SingleTaskGP(X, X.sin(), outcome_transform=None)
    model.covar_module.lengthscale = scale
    model.likelihood.noise = noise
    return model.eval()


def by_hand(scale: float, noise: float, z: float) -> tuple[float, float]:
    """Mean and variance of the outcome, of the formulas of a Gaussian process."""
    X, model = np.array([0.0, 0.5, 1.0]), gaussian_process(scale, noise)
    constant = model.mean_module.constant.item()
    K = np.exp(-((X[:, None] - X) ** 2) / (2 * scale**2)) + noise * np.eye(3)
    k = np.exp(-((X - z) ** 2) / (2 * scale**2))
    weights = np.linalg.solve(K, k)
    mean = constant + weights @ (np.sin(X) - constant)
    return mean, 1 - weights @ k + noise


def test_a_prediction_is_of_the_outcome_with_its_noise():
    mean, variance = by_hand(0.4, 0.05, 0.3)
    z = torch.tensor([[0.3]]).double()
    found = prediction(gaussian_process(0.4, 0.05), z, 0.7, unit=2.0)
    assert found["mean"] == pytest.approx(mean, abs=1e-6)
    assert found["variance"] == pytest.approx(variance, abs=1e-6)
    density = stats.norm(mean, variance**0.5).pdf(0.7)  # per 1, not per 2
    assert found["log_density"] == pytest.approx(math.log(2 * density), abs=1e-5)


class TwoModels(SingleTaskGP):
    """Two Gaussian processes in one batch, as BoTorch's ensembles are."""

    _is_ensemble = True


def test_of_an_ensemble_the_mixture_is_predicted():
    X = torch.tensor([[0.0], [0.5], [1.0]]).double().expand(2, 3, 1)
    model = TwoModels(X, X.sin(), outcome_transform=None)
    model.covar_module.lengthscale = torch.tensor([[[0.4]], [[0.9]]]).double()
    model.likelihood.noise = torch.tensor([[0.05], [0.2]]).double()
    parts = [by_hand(0.4, 0.05, 0.3), by_hand(0.9, 0.2, 0.3)]
    z = torch.tensor([[0.3]]).double()
    found = prediction(model.eval(), z, 0.7, unit=1.0)
    mean = np.mean([m for m, _ in parts])
    second = np.mean([v + m * m for m, v in parts])
    assert found["mean"] == pytest.approx(mean, abs=1e-6)
    assert found["variance"] == pytest.approx(second - mean**2, abs=1e-6)
    density = np.mean([stats.norm(m, v**0.5).pdf(0.7) for m, v in parts])
    assert found["log_density"] == pytest.approx(math.log(density), abs=1e-5)
