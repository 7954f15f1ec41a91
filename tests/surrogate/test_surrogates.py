"""Surrogates by name: what they fit, what they refuse, and how they are stored."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.codec import decode, encode
from botorch_drbo.posterior.ensemble import ModelEnsemble, members_of
from botorch_drbo.surrogate import (
    SURROGATES,
    EdrboKernel,
    EnsembleOf,
    GaussianProcess,
    ModelData,
    Surrogate,
)
from botorch_drbo.surrogate.by_name import as_surrogate
from botorch_drbo.surrogate.evidence import LogPosterior
from tests.models import uniform

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

UNIT = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.double)


def data(t: int = 14, seed: int = 0, **options: object) -> ModelData:
    Z = uniform(t, 3, seed=seed)
    Y = (5 * Z[:, :1]).sin() * Z[:, 1:2] + Z[:, 2:]
    return ModelData(Z, Y, UNIT, **options)


def fitted(name: str, **options: object) -> Model:
    return SURROGATES[name].fit(data(**options))


@pytest.mark.parametrize("name", SURROGATES)
def test_the_same_data_give_the_same_model_to_the_last_bit(name: str) -> None:
    Z = uniform(5, 1, 3, seed=9)
    first, second = (fitted(name).posterior(Z) for _ in range(2))
    assert torch.equal(first.mean, second.mean)
    assert torch.equal(first.variance, second.variance)


@pytest.mark.parametrize("name", SURROGATES)
def test_it_does_not_depend_on_the_units(name: str) -> None:
    Z = uniform(5, 1, 3, seed=9)
    wanted, own = fitted(name).posterior(Z), data()
    bounds = torch.tensor([[2.0] * 3, [7.0] * 3], dtype=torch.double)
    scaled = ModelData(2 + 5 * own.inputs, 30 + 1e4 * own.outcomes, bounds)
    found = SURROGATES[name].fit(scaled).posterior(2 + 5 * Z)
    assert torch.allclose(found.mean, 30 + 1e4 * wanted.mean, rtol=1e-3)
    assert torch.allclose(
        found.variance.sqrt(), 1e4 * wanted.variance.sqrt(), rtol=0.02
    )


@pytest.mark.parametrize("name", SURROGATES)
def test_known_noise_is_taken_at_its_word(name: str) -> None:
    observed = data(Yvar=torch.full((14, 1), 0.04, dtype=torch.double))
    for member in members_of(SURROGATES[name].fit(observed)):
        assert isinstance(member, SingleTaskGP)
        scale = member.outcome_transform.stdvs.square().squeeze()
        assert torch.allclose(
            scale * member.likelihood.noise, torch.full((14,), 0.04).double()
        )


# A draw is one of each column: in another order of the columns it is another draw.
@pytest.mark.parametrize("name", [n for n in SURROGATES if n != "hyperparameters"])
def test_the_order_of_categories_says_nothing(name: str) -> None:
    """Three categories under other numbers: the same model, by one-hot columns."""
    Z = uniform(12, 2, seed=4)
    number = torch.arange(12).remainder(3)
    other = torch.tensor([2, 0, 1])[number]
    bounds = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0]], dtype=torch.double)
    Y = Z[:, :1] + number.unsqueeze(-1).eq(1).double()
    means = []
    for column in (number, other):
        inputs = torch.cat([Z, column.unsqueeze(-1).double()], -1)
        observed = ModelData(inputs, Y, bounds, categories={2: 3})
        model = SURROGATES[name].fit(observed)
        means.append(model.posterior(inputs[:5].unsqueeze(1)).mean)
    assert torch.allclose(*means, atol=1e-3)


@pytest.mark.parametrize("name", SURROGATES)
def test_one_outcome_and_equal_outcomes_do(name: str) -> None:
    one = ModelData(uniform(1, 3), torch.tensor([[2.0]]).double(), UNIT)
    assert SURROGATES[name].fit(one).posterior(UNIT).mean.isfinite().all()
    same = ModelData(uniform(5, 3), torch.full((5, 1), 2.0).double(), UNIT)
    with pytest.warns(InputDataWarning, match="All 5 outcomes are equal"):
        found = SURROGATES[name].fit(same).posterior(UNIT)
    assert found.mean.isfinite().all() and found.variance.isfinite().all()


@pytest.mark.parametrize("name", SURROGATES)
def test_float32_data_give_a_float32_model(name: str) -> None:
    own = data()
    single = ModelData(own.inputs.float(), own.outcomes.float(), UNIT.float())
    model = SURROGATES[name].fit(single)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    Z = uniform(5, 1, 3, seed=9)
    wanted = SURROGATES[name].fit(own).posterior(Z).mean
    assert torch.allclose(model.posterior(Z.float()).mean.double(), wanted, atol=0.05)


@pytest.mark.parametrize("name", SURROGATES)
def test_it_can_be_stored(name: str) -> None:
    stored = json.loads(json.dumps(encode(SURROGATES[name])))
    assert decode(stored, Surrogate) == SURROGATES[name]


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
@pytest.mark.parametrize("seed", range(3))
def test_no_start_among_many_finds_much_more(kernel: str, seed: int) -> None:
    """Oracle: twenty random starts, each climbed by steps without a gradient."""
    observed, surrogate = data(10, seed), GaussianProcess(kernel)
    posterior = LogPosterior(surrogate.family(3), observed)
    model = surrogate.fit(observed)
    kernel_of = model.covar_module
    parts = getattr(kernel_of.base_kernel, "kernels", [kernel_of.base_kernel])
    lengthscales = torch.cat([part.lengthscale.flatten() for part in parts])
    rest = [kernel_of.outputscale.reshape(1), model.likelihood.noise]
    found = posterior(torch.cat([lengthscales, *rest]).log().detach().numpy())
    generator = np.random.default_rng(seed)
    best = -np.inf
    for _ in range(20):
        here = generator.normal([-0.7] * 3 + [0.0, -4.0], 1.0)
        value, size = posterior(here).log_density, 0.5
        for _ in range(400):  # random search with steps that shrink
            there = here + size * generator.normal(size=5)
            if (
                there[-1] > np.log(1e-4)
                and (new := posterior(there).log_density) > value
            ):
                here, value = there, new
            else:
                size = max(0.01, 0.99 * size)
        best = max(best, value)
    assert found.log_density > best - 0.05


def test_beyond_eight_variables_lengthscales_grow_with_their_number() -> None:
    short, long = (GaussianProcess().family(d).lengthscale for d in (8, 16))
    grid = np.linspace(-3, 3, 2001)
    modes = [
        grid[(prior.log_density(grid)[0] + grid).argmax()] for prior in (short, long)
    ]  # in the logarithm, where a log-normal is normal
    assert modes[0] == pytest.approx(np.log(0.5), abs=0.01)  # Gamma: a / b
    assert modes[1] == pytest.approx(np.log(1.0), abs=0.01)  # .5 sqrt(16 / 4)


def test_an_ensemble_is_of_the_members_that_were_named() -> None:
    both = EnsembleOf(["botorch", GaussianProcess("rbf")])
    model = both.fit(data())
    assert isinstance(model, ModelEnsemble)
    Z = uniform(5, 1, 3, seed=9)
    for s, single in enumerate((SURROGATES["botorch"], GaussianProcess("rbf"))):
        wanted = single.fit(data()).posterior(Z).mean
        assert torch.equal(model.posterior(Z).mean[:, s], wanted)


def test_the_ensemble_is_the_four_of_the_second_claim() -> None:
    names = [SURROGATES[name] for name in ("botorch", "matern", "rbf", "matern32")]
    assert SURROGATES["ensemble"] == EnsembleOf(names)


def made_by_hand(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    return SingleTaskGP(X, Y)


def test_a_function_is_a_member_too() -> None:
    model = EnsembleOf([made_by_hand, "rbf"]).fit(data())
    assert len(members_of(model)) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("matren", "Did you mean `matern`"),
        (GaussianProcess, "Give an object of it"),
        (3.0, "got a float"),
    ],
)
def test_what_is_no_surrogate_is_refused(given: object, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        as_surrogate(given)


def test_a_model_that_is_fitted_already_is_refused() -> None:
    with pytest.raises(InputDataError, match="outcomes are still to come"):
        as_surrogate(SingleTaskGP(data().inputs, data().outcomes))


def test_an_ensemble_of_nothing_is_refused() -> None:
    with pytest.raises(InputDataError, match="at least one member, got none"):
        EnsembleOf([])
    with pytest.raises(InputDataError, match="a list of surrogates"):
        EnsembleOf("matern")
    with pytest.raises(InputDataError, match="no surrogate 'mattern'"):
        EnsembleOf(["mattern"])


@pytest.mark.parametrize("kind", [GaussianProcess, EdrboKernel])
def test_unknown_kernels_are_refused(kind: type[GaussianProcess]) -> None:
    with pytest.raises(InputDataError, match="Did you mean `matern52`"):
        kind("matern_52")
