"""``tell(..., y_variance=...)``: the noise of each outcome is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.surrogate import FixedHyperparameters

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
PRIOR = FixedHyperparameters(lengthscale=0.5, noise_variance=0.3, outputscale=4.0)
VARIANCES = torch.tensor([1e-3, 0.5, 1e-3, 2.0, 0.1, 1e-2], dtype=torch.double)


def rows() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    X, C = torch.rand(2, 6, 1, generator=generator, dtype=torch.double)
    X[1], C[1] = X[0], C[0]  # a trial that was repeated
    return X, C, 3.0 * (X - C).square() - X


def make(algorithm: str = "erbo", **options: Any) -> RobustOptimizer:
    settings = {"num_initial": 0, "num_restarts": 1, "raw_samples": 8, **options}
    return RobustOptimizer(algorithm, UNIT, UNIT, **settings)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_predictions_are_those_of_the_formula(maximize: bool, given: bool) -> None:
    X, C, Y = rows()
    opt = make(hyperparameters=PRIOR, maximize=maximize)
    opt.tell(X, C, Y, y_variance=VARIANCES if given else None)
    Z = torch.cat([X, C], dim=-1)
    z = torch.tensor([[0.3, 0.6], [0.9, 0.1]], dtype=torch.double)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return 4.0 * (-0.5 * torch.cdist(a, b).square() / 0.25).exp()

    noise = VARIANCES if given else torch.full((6,), 0.3, dtype=torch.double)
    K = kernel(Z, Z) + noise.diag()
    mean = (kernel(z, Z) @ torch.linalg.solve(K, Y)).flatten()
    variance = 4.0 - (kernel(z, Z) @ torch.linalg.solve(K, kernel(Z, z))).diagonal()
    found = opt.predict(z[:, :1], z[:, 1:])
    assert torch.allclose(found[0], mean, atol=1e-5)
    assert torch.allclose(found[1], variance, atol=1e-5)
    # One decision in several contexts, and opt.model says the same.
    several = opt.predict(z[0, :1], C)[0]
    pairs = torch.cat([z[:1, :1].expand(6, -1), C], dim=-1)
    own = opt.model.posterior(pairs).mean.flatten()
    assert torch.allclose(several, own if maximize else -own, atol=1e-6)


def test_a_fitted_model_takes_the_variances_at_their_word() -> None:
    X, C, Y = rows()
    opt = make()
    opt.tell(X, C, Y, y_variance=VARIANCES.unsqueeze(-1))
    members = members_of(opt.model)
    assert len(members) == 4
    for each in members:
        noise = each.likelihood.noise * each.outcome_transform.stdvs.square()
        assert torch.allclose(noise.flatten(), VARIANCES)
    history = opt.history
    assert history.Yvar is not None and history.Yvar.shape == (6, 1)
    assert opt.recommend().worst_case_value <= opt.recommend().expected_value + 1e-9
    assert opt.ask().shape == (1, 1)


def test_predict_follows_the_data_and_the_model_is_a_copy() -> None:
    X, C, Y = rows()
    opt = make(hyperparameters=PRIOR)
    opt.tell(X[:3], C[:3], Y[:3])
    before = opt.predict(X[0], C[0])[0]
    opt.model.covar_module.lengthscale = 9.0
    assert torch.equal(opt.predict(X[0], C[0])[0], before)
    opt.tell(X[3:], C[3:], Y[3:])
    assert not torch.equal(opt.predict(X[0], C[0])[0], before)


@pytest.mark.parametrize("name", ["random", "gp_ucb", "phased_gp_us"])
def test_every_recipe_predicts_decision_and_context(name: str) -> None:
    X, C, Y = rows()
    opt, erbo = make(name, hyperparameters=PRIOR), make(hyperparameters=PRIOR)
    for each in (opt, erbo):
        each.tell(X, C, Y)
    assert torch.allclose(opt.predict(X, C)[0], erbo.predict(X, C)[0])


def test_variances_survive_resume_and_withdrawal(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    X, C, Y = rows()
    with make(hyperparameters=PRIOR, journal=path) as opt:
        opt.tell(X, C, Y, y_variance=VARIANCES)
        expected, state = opt.ask(), opt.state_dict()
    with RobustOptimizer.resume(path) as opt:
        assert opt.state_dict() == state
        assert torch.equal(opt.pending, expected)
        history = opt.history
        assert history.Yvar is not None
        assert torch.equal(history.Yvar.flatten(), VARIANCES)
        opt.withdraw(3)
        history = opt.history
        assert history.Yvar is not None and len(history.Yvar) == 5
        assert opt.trials[4].y_variance == 0.1


@pytest.mark.parametrize(
    ("variance", "error", "message"),
    [
        (-0.1, InputDataError, "must not be negative"),
        (torch.nan, InputDataError, "NaN"),
        ("small", InputDataError, "`y_variance`"),
        (VARIANCES[:2], BotorchTensorDimensionError, "`y_variance` must have one"),
    ],
    ids=str,
)
def test_bad_variances_are_refused_and_not_recorded(
    variance: Any, error: type[Exception], message: str
) -> None:
    X, C, Y = rows()
    opt = make()
    before = opt.state_dict()
    with pytest.raises(error, match=message):
        opt.tell(X, C, Y, y_variance=variance)
    assert opt.state_dict() == before


def test_all_outcomes_or_none() -> None:
    X, C, Y = rows()
    for first, second in ((0.1, None), (None, 0.1)):
        opt = make()
        opt.tell(X[:3], C[:3], Y[:3], y_variance=first)
        before = opt.state_dict()
        with pytest.raises(InputDataError, match="with each outcome, or with none"):
            opt.tell(X[3:], C[3:], Y[3:], y_variance=second)
        assert opt.state_dict() == before
    with pytest.raises(InputDataError, match="without `y`"):
        make().tell(X, C, y_variance=0.1)
    with pytest.raises(UnsupportedError, match="decision alone"):
        make("gp_ucb").tell(X, C, Y, y_variance=0.1)


def test_predict_refuses_what_does_not_fit() -> None:
    X, C, Y = rows()
    with pytest.raises(InputDataError, match="no outcome"):
        make().predict(X, C)
    opt = make(hyperparameters=PRIOR)
    opt.tell(X, C, Y)
    with pytest.raises(BotorchTensorDimensionError, match="6 and 2"):
        opt.predict(X, C[:2])
    with pytest.raises(InputDataError, match="outside"):
        opt.predict(X + 2.0, C)
