"""Inducing points: against the exact model, GPyTorch's posterior and brute force."""

import warnings

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import InducingPointKernel, MaternKernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.codec.objects import decode, encode
from botorch_drbo.posterior import marginal_posterior, training
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.training import training_system
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths
from botorch_drbo.surrogate import (
    EnsembleOf,
    GaussianProcess,
    HyperparameterDraws,
    ModelData,
    Surrogate,
)
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.cross_validation import leave_one_out
from tests.models import UNIT

pytestmark = pytest.mark.usefixtures("each_fit_is_made")  # each of them warns

BOUNDS = torch.tensor([[0.0, -2.0, 0.0], [3.0, 2.0, 2.0]], dtype=torch.double)
X = torch.tensor([[0.4, 1.1], [2.2, -1.3], [1.0, 0.0]], dtype=torch.double)
C = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.double)
PENDING = torch.tensor([[0.5, 1.0, 1.0], [2.0, -1.0, 0.0]], dtype=torch.double)


def rows(t: int, *, known_noise: bool = False, **options: object) -> ModelData:
    generator = torch.Generator().manual_seed(1)
    low, high = BOUNDS
    Z = low + (high - low) * torch.rand(t, 3, generator=generator).double()
    Z[:, 2] = Z[:, 2].round()
    noise = torch.rand(t, 1, generator=generator).double() * 0.1 + 0.01
    Y = (2.0 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:] + 5.0
    Y = Y + noise.sqrt() * torch.randn(t, 1, generator=generator).double()
    return ModelData(
        Z, 10.0 * Y, BOUNDS, 100.0 * noise if known_noise else None, **options
    )


def fitted(surrogate: Surrogate, data: ModelData) -> SingleTaskGP:
    with pytest.warns(InputDataWarning, match="max_exact"):
        model = surrogate.fit(data)
    assert isinstance(model, SingleTaskGP)
    assert isinstance(model.covar_module, InducingPointKernel)
    return model


def at_every_row(t: int = 40) -> tuple[SingleTaskGP, SingleTaskGP]:
    """An exact model, and one with an inducing point at each row: the same model."""
    data = rows(t)
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=3)).double()
    kernel.base_kernel.lengthscale = 0.4
    exact = SingleTaskGP(
        data.inputs,
        data.outcomes,
        covar_module=kernel,
        input_transform=Normalize(3, bounds=BOUNDS),
    )
    exact.likelihood.noise = 0.05
    exact.eval()
    points = exact.transform_inputs(data.inputs)
    few = SingleTaskGP(
        data.inputs,
        data.outcomes,
        covar_module=InducingPointKernel(kernel, points, exact.likelihood),
        likelihood=exact.likelihood,
        mean_module=exact.mean_module,
        input_transform=Normalize(3, bounds=BOUNDS),
    )
    return exact, few.eval()


def test_no_more_rows_than_allowed_are_modelled_exactly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcess("rbf", max_exact=12).fit(rows(12))
    assert not isinstance(model.covar_module, InducingPointKernel)


def test_the_message_names_the_rule_and_the_option() -> None:
    with pytest.warns(InputDataWarning) as found:
        GaussianProcess("rbf", max_exact=12).fit(rows(13))
    (message,) = (str(warning.message) for warning in found)
    assert "more than 12 outcomes" in message
    assert "`max_exact`" in message
    assert "inducing points" in message


@pytest.mark.parametrize("pending", [None, PENDING])
def test_with_a_point_at_every_row_it_is_the_exact_model(
    pending: Tensor | None,
) -> None:
    exact, few = at_every_row()
    for method in ("exact", "auto"):
        expected, found = (
            marginal_posterior(model, [2], method=method, pending=pending)(X, C)
            for model in (exact, few)
        )
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-8)
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.double)
    expected, found = (
        marginal_posterior(model, [2], pending=pending).integral(C, weights)(X)
        for model in (exact, few)
    )
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("categories", [{}, {2: 3}])
@pytest.mark.parametrize("known_noise", [False, True])
@pytest.mark.parametrize(
    "surrogate",
    [BoTorchDefault(max_exact=40), GaussianProcess("matern32", max_exact=40)],
)
def test_moments_are_those_of_gpytorch(
    surrogate: Surrogate, known_noise: bool, categories: dict[int, int]
) -> None:
    data = rows(90, known_noise=known_noise, categories=categories)
    model = fitted(surrogate, data)
    if known_noise:
        assert isinstance(model.likelihood, FixedNoiseGaussianLikelihood)
    expected = marginal_posterior(model, [2], method="generic")(X, C)
    for method in ("exact", "auto"):
        found = marginal_posterior(model, [2], method=method)(X, C)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_moments_are_those_of_the_dense_formula(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "_BLOCK_ELEMENTS", 100)  # a few rows at once
    data = rows(90, known_noise=True)
    model = fitted(GaussianProcess(max_exact=30), data)
    with torch.no_grad():
        kernel = model.covar_module.base_kernel
        Z, U = model.transform_inputs(data.inputs), model.covar_module.inducing_points
        T = model.transform_inputs(torch.cat([X, C], dim=-1))
        to_rows = torch.linalg.solve(kernel(U).to_dense(), kernel(U, Z).to_dense())
        Q, K = kernel(Z, U).to_dense() @ to_rows, kernel(Z).to_dense()
        cross = kernel(T, U).to_dense() @ to_rows
        unit = model.outcome_transform.stdvs.squeeze()
        level = model.outcome_transform.means.squeeze()
        noise = torch.diag(data.Yvar.squeeze() / unit**2 + (K - Q).diagonal())
        constant = model.mean_module.constant
        residual = (data.outcomes.squeeze() - level) / unit - constant
        mean = constant + cross @ torch.linalg.solve(Q + noise, residual)
        variance = kernel(T, diag=True) - (
            cross * torch.linalg.solve(Q + noise, cross.mT).mT
        ).sum(-1)
    posterior = marginal_posterior(model, [2])
    found = [each.diagonal() for each in posterior(X, C)]
    torch.testing.assert_close(found[0], level + unit * mean, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(found[1], unit**2 * variance, rtol=1e-6, atol=1e-7)


def test_all_rows_count_and_not_only_those_that_were_fitted_to() -> None:
    data = rows(400)
    sparse = fitted(GaussianProcess(max_exact=80), data)
    kept = torch.isin(data.inputs[:, 0], sparse_rows(sparse, data))
    exact = GaussianProcess(max_exact=400)
    with torch.no_grad():
        truth = exact.fit(data).posterior(data.inputs).mean
        error, alone = (
            (model.posterior(data.inputs).mean - truth).square().mean().sqrt()
            for model in (sparse, exact.fit(data.of_rows(kept)))
        )
    assert error < 0.5 * alone


def sparse_rows(model: SingleTaskGP, data: ModelData) -> Tensor:
    """The first column of the rows that are inducing points."""
    transformed = model.transform_inputs(data.inputs)
    points = model.covar_module.inducing_points.detach()
    return data.inputs[torch.cdist(transformed, points).amin(-1) < 1e-12, 0]


def test_the_same_rows_give_the_same_model() -> None:
    first, second = (fitted(GaussianProcess(max_exact=20), rows(50)) for _ in range(2))
    torch.testing.assert_close(first.state_dict(), second.state_dict(), rtol=0, atol=0)


def test_units_are_those_of_all_rows() -> None:
    data = rows(200)
    rare = torch.zeros(200, 1).double()
    rare[:3] = 1.0  # hardly any of the rows that are fitted to
    data = ModelData(data.inputs, rare, BOUNDS)
    model = fitted(GaussianProcess(max_exact=10), data)
    assert model.outcome_transform.means.item() == pytest.approx(3 / 200)
    assert model.outcome_transform.stdvs.item() == pytest.approx(rare.std().item())


def test_paths_have_the_moments_of_the_posterior() -> None:
    model = fitted(GaussianProcess("rbf", max_exact=25), rows(80))
    mean, variance = marginal_posterior(model, [2])(X, C)
    paths = PosteriorPaths(model, [2], num_paths=4000, num_features=512, seed=0)
    with torch.no_grad():
        values = paths(X, C)
    assert ((values.mean(0) - mean).abs() < 5.0 * (variance / 4000).sqrt()).all()
    torch.testing.assert_close(values.var(0), variance, rtol=0.15, atol=0.0)


def test_what_needs_every_row_says_so() -> None:
    model = fitted(GaussianProcess(max_exact=20), rows(50))
    with pytest.raises(UnsupportedError, match=r"all 50 rows.*max_exact"):
        training_system(model)
    with pytest.raises(UnsupportedError, match="max_exact"):
        leave_one_out(model)


def test_an_ensemble_gives_the_option_to_its_members() -> None:
    both = EnsembleOf(["botorch", HyperparameterDraws(num_draws=2)], max_exact=20)
    assert [member.max_exact for member in both.members] == [20, 20]
    assert decode(encode(both), Surrogate) == both
    with pytest.warns(InputDataWarning, match="more than 20"):
        model = both.fit(rows(40))
    assert len(members_of(model)) == 3
    for member in members_of(model):
        assert isinstance(member.covar_module, InducingPointKernel)


@pytest.mark.parametrize("max_exact", [0, 1.5, "many"])
@pytest.mark.parametrize("kind", [BoTorchDefault, GaussianProcess, HyperparameterDraws])
def test_a_number_that_is_no_count_is_refused(kind: type, max_exact: object) -> None:
    with pytest.raises(InputDataError, match="max_exact"):
        kind(max_exact=max_exact)


def test_a_member_without_the_option_is_named() -> None:
    class Own(Surrogate):
        def fit(self, data: ModelData) -> SingleTaskGP:
            return data.model()

    with pytest.raises(InputDataError, match=r"Own.*has none"):
        EnsembleOf(["botorch", Own()], max_exact=20)


@pytest.mark.parametrize("recipe", ["gp_ucb", "wdrbo", "wdrbo_exact", "ts_erbo"])
def test_recipes_ask_and_recommend(recipe: str) -> None:
    data = rows(30)
    inputs = (data.inputs - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])
    history = History(
        X=inputs[:, :2], C=inputs[:, 2:], Y=data.outcomes, contexts=inputs[:, 2:]
    )
    space = SearchSpace(UNIT.expand(2, 2), UNIT)
    surrogate = EnsembleOf(["botorch", "matern"], max_exact=15)
    made = make_recipe(recipe, surrogate=surrogate, raw_samples=16, num_restarts=2)
    with pytest.warns(InputDataWarning, match="inducing points"):
        x = made.propose(history, space, seed=0)
        found = made.recommend(history, space, seed=0)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    assert found.model_check is None


def test_a_run_goes_on_beyond_it() -> None:
    opt = RobustOptimizer(
        "wdrbo",
        UNIT.expand(2, 2),
        UNIT,
        surrogate=GaussianProcess(max_exact=8),
        raw_samples=16,
    )
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):
        x, c = (torch.rand(n, generator=generator).double() for n in (2, 1))
        opt.tell(x, c, (x.sum() - c.sum()).item())
    with pytest.warns(InputDataWarning, match="inducing points"):
        assert opt.ask().shape[-1] == 2
