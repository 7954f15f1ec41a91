"""The recipe of EDRBO: against its formula, from BoTorch's models of the same data."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import cast

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, RQKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe, make_recipe
from botorch_drbo.surrogate import EnsembleOf, HyperparameterDraws
from botorch_drbo.testing.fixtures import PRIOR, SMALL, small_problem
from tests.contracts.view_case import joined
from tests.models import uniform

LISTED = -1.0 + 4.0 * uniform(40, 1, seed=4)
KERNELS = {
    "rbf": RBFKernel(ard_num_dims=3),
    "rational quadratic": RQKernel(ard_num_dims=3),
    "matern32": MaternKernel(nu=1.5, ard_num_dims=3),
    "matern52": MaternKernel(nu=2.5, ard_num_dims=3),
}


def recipe(**options: object) -> RobustRecipe:
    return cast(RobustRecipe, make_recipe("edrbo", **{**SMALL, **options}))


@cache
def fitted() -> tuple[History, SearchSpace, ModelEnsemble]:
    history, space = small_problem()
    model = recipe().fitted(history, space, uses_contexts=True)
    assert isinstance(model, ModelEnsemble)
    return history, space, model


def by_hand(X: Tensor, *, beta: float = 1.5) -> tuple[Tensor, Tensor]:
    """Bound and disagreement, of plain models of scaled inputs and outcomes."""
    history, space, model = fitted()
    bounds = torch.cat([space.bounds, space.context_bounds], -1)

    def scaled(Z: Tensor) -> Tensor:
        return (Z - bounds[0]) / (bounds[1] - bounds[0])

    level, unit = history.Y.mean(), history.Y.std()
    means, deviations = [], []
    for kernel, member in zip(KERNELS.values(), model.members, strict=True):
        member = cast(SingleTaskGP, member)
        plain = SingleTaskGP(
            scaled(torch.cat([history.X, history.C], -1)),
            (history.Y - level) / unit,
            covar_module=kernel.double(),
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        plain.covar_module.lengthscale = member.covar_module.lengthscale
        if isinstance(kernel, RQKernel):
            kernel.alpha = member.covar_module.alpha
        plain.likelihood.noise = member.likelihood.noise
        joint = scaled(joined(X, history.contexts, [1, 2]))
        with torch.no_grad():
            posterior = plain.eval().posterior(joint)
        means.append(level + unit * posterior.mean.squeeze(-1).mean(-1))
        deviations.append(unit * posterior.variance.squeeze(-1).sqrt().mean(-1))
    mean, deviation = torch.stack(means), torch.stack(deviations)
    apart = (mean - mean.mean(0)) ** 2 + (deviation - deviation.mean(0)) ** 2
    return mean.mean(0) + beta * deviation.mean(0), apart.sqrt().amax(0)


def test_four_kernels_are_the_default() -> None:
    _, _, model = fitted()
    kinds = [type(cast(SingleTaskGP, m).covar_module) for m in model.members]
    assert kinds == [type(kernel) for kernel in KERNELS.values()]
    assert recipe().options["penalty"] == 1.41 and recipe().options["beta"] == 2.25


@pytest.mark.parametrize("penalty_over", ["decision", "batch"])
def test_values_are_those_of_botorchs_models(penalty_over: str) -> None:
    history, space, model = fitted()
    one = recipe(penalty_over=penalty_over)
    acqf = one.exploring(one.state_of(model, history, space, 0), None)
    bound, apart = by_hand(LISTED)
    penalty = apart if penalty_over == "decision" else apart.max()
    expected = bound - 1.41 * penalty
    with torch.no_grad():
        found = acqf(LISTED.unsqueeze(1))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert apart.max() > 1.2 * apart.min()


def test_the_decision_is_the_best_by_the_formula() -> None:
    history, space, _ = fitted()
    for penalty in (0.0, 1.41, 20.0):
        bound, apart = by_hand(LISTED)
        x = recipe(penalty=penalty).propose(history, space, candidates=LISTED)
        assert torch.equal(x[0], LISTED[(bound - penalty * apart).argmax()])


def test_the_penalty_has_the_unit_of_the_outcome() -> None:
    """Decisions are the same in thousands, and from another level."""
    history, space, _ = fitted()
    for penalty in (1.41, 20.0):
        one = recipe(penalty=penalty)
        x = one.propose(history, space, candidates=LISTED)
        other = replace(history, Y=1000.0 * history.Y - 7000.0)
        assert torch.equal(x, one.propose(other, space, candidates=LISTED))


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"surrogate": "matern"}, "`surrogate='matern'`"),
        ({"surrogate": "botorch"}, "`surrogate='botorch'`"),
        ({"hyperparameters": PRIOR}, "`hyperparameters`"),
        ({"surrogate": EnsembleOf(["matern"])}, "EnsembleOf"),
        ({"surrogate": EnsembleOf([EnsembleOf(["rbf"])])}, "EnsembleOf"),
        ({"surrogate": HyperparameterDraws(num_draws=1)}, "HyperparameterDraws"),
    ],
)
def test_one_model_is_refused(options: dict, got: str) -> None:
    message = f"`edrbo` needs several.*{got}.*one"
    with pytest.raises(UnsupportedError, match=message) as caught:
        recipe(**options)
    assert "'ensemble', 'hyperparameters', 'kernels', or `EnsembleOf`" in str(
        caught.value
    )
    with pytest.raises(UnsupportedError, match="needs several models"):
        make_recipe("erbo", policy="disagreement_penalty", surrogate="matern")


def test_a_function_that_makes_an_ensemble_of_one_is_refused_when_it_did() -> None:
    history, space = small_problem()
    _, _, model = fitted()
    one = recipe(model=lambda *data: ModelEnsemble(model.members[:1]))
    with pytest.raises(UnsupportedError, match="two models or more"):
        one.propose(history, space)


def test_the_models_of_nested_ensembles_are_counted() -> None:
    two = EnsembleOf([EnsembleOf(["rbf"]), "matern"])
    assert two.num_models == 2 and recipe(surrogate=two)
    assert EnsembleOf(["kernels", "hyperparameters"]).num_models == 4 + 8


def test_any_ensemble_will_do() -> None:
    history, space = small_problem()
    priors = [PRIOR, replace(PRIOR, lengthscale=0.8)]
    one = recipe(surrogate=EnsembleOf(priors))
    assert one.propose(history, space).shape == (1, 1)
    product = make_recipe(adversary="wasserstein", policy="disagreement_penalty")
    assert cast(RobustRecipe, product).default_surrogate == "kernels"


def test_bad_options() -> None:
    with pytest.raises(InputDataError, match="`penalty_over` must be one of"):
        recipe(penalty_over="rows")
    with pytest.raises(InputDataError, match="`penalty`"):
        recipe(penalty=-0.1)
