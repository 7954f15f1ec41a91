"""Outcomes predicted by fits to other folds, against fits to these rows by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from torch import Tensor

from botorch_drbo.surrogate import (
    SURROGATES,
    EdrboKernel,
    EnsembleOf,
    FixedHyperparameters,
    ModelData,
)
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.by_name import GivenModel
from botorch_drbo.surrogate.cross_validation import (
    cross_validated,
    folds,
    folds_of_levels,
    leave_one_out,
    overconfidence,
)
from tests.models import uniform

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
Z = uniform(12, 2, seed=1)
Y = 3.0 * (6 * Z[:, :1]).sin() * (1.0 - Z[:, 1:])
KNOWN = FixedHyperparameters(lengthscale=0.4, noise_variance=0.01, outputscale=2.0)


def residuals(surrogate: Surrogate, data: ModelData) -> Tensor:
    found = cross_validated(surrogate, data)
    assert found is not None
    return found.standardised


def by_hand(
    name: str, row: int, Yvar: Tensor | None = None, Y: Tensor = Y
) -> tuple[float, float]:
    """Mean and deviation of an outcome, by a fit to the rows of the other folds."""
    fold = folds(ModelData(Z, Y, BOX, Yvar))
    told = torch.tensor([i for i in range(12) if fold[i] != fold[row]])
    variances = None if Yvar is None else Yvar[told]
    model = SURROGATES[name].fit(ModelData(Z[told], Y[told], BOX, variances))
    assert isinstance(model, SingleTaskGP)
    with torch.no_grad():
        found = model.posterior(Z[row : row + 1])
    if Yvar is not None:
        noise = Yvar[row].item()
    else:
        noise = model.likelihood.noise.item() * Y[told].var().item()
    return found.mean.item(), (found.variance.item() + noise) ** 0.5


def test_many_rows_are_not_fitted_again() -> None:
    """From 500 on; what leave-one-out then says is the same within a few percent."""
    many = uniform(500, 2, seed=5)
    noise = torch.randn(500, 1, generator=torch.Generator().manual_seed(0)).double()
    data = ModelData(many, (6 * many[:, :1]).sin() + 0.1 * noise, BOX)
    surrogate = SURROGATES["botorch"]
    assert cross_validated(surrogate, data) is None
    fewer = data.of_rows(torch.arange(500) < 499)
    refitted = residuals(surrogate, fewer).square().mean().sqrt()
    alone = leave_one_out(surrogate.fit(data)).standardised.square().mean().sqrt()
    assert refitted.item() == pytest.approx(1.0, abs=0.1)
    assert alone.item() == pytest.approx(refitted.item(), rel=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    own, other = ModelData(Z, Y, BOX), ModelData(Z[order], Y[order], BOX)
    assert torch.equal(folds(other), folds(own)[order])
    found = residuals(SURROGATES["matern"], other)
    expected = residuals(SURROGATES["matern"], own)[order]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_equal_inputs_are_told_apart_by_their_outcomes_and_variances() -> None:
    same = torch.zeros(10, 2).double()
    outcomes = torch.tensor([0.0, 1.0]).double().repeat(5).unsqueeze(-1)
    variances = uniform(10, 1, seed=3)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    own = folds(ModelData(same, outcomes, BOX, variances))
    other = folds(ModelData(same, outcomes[order], BOX, variances[order]))
    assert torch.equal(other, own[order])


@st.composite
def spaces_of_categories(draw: st.DrawFn) -> ModelData:
    """Rows of one to three categories and at most one number; outcomes may be equal."""
    counts = draw(st.lists(st.integers(2, 12), min_size=1, max_size=3))
    t, numbers = draw(st.integers(5, 20)), draw(st.integers(0, 1))
    columns = [
        draw(arrays(np.int64, t, elements=st.integers(0, k - 1))) for k in counts
    ]
    columns += [draw(arrays(np.int64, t, elements=st.integers(0, 3)))] * numbers
    outcomes = draw(arrays(np.int64, t, elements=st.integers(0, 4)))
    upper = [k - 1.0 for k in counts] + [3.0] * numbers
    return ModelData(
        torch.from_numpy(np.stack(columns, 1)).double(),
        torch.from_numpy(outcomes).double().unsqueeze(-1),
        torch.tensor([[0.0] * len(upper), upper]).double(),
        categories=dict(enumerate(counts)),
    )


def relabelled(data: ModelData, orders: list[list[int]]) -> ModelData:
    """The same rows, with the levels of each category listed in another order."""
    inputs = data.inputs.clone()
    for column, order in zip(data.categories, orders, strict=True):
        inputs[:, column] = torch.tensor(order).double()[inputs[:, column].long()]
    return replace(data, inputs=inputs)


@settings(max_examples=40)
@given(spaces_of_categories(), st.data())
def test_the_order_in_which_levels_are_listed_does_not_matter(
    data: ModelData, draws: st.DataObject
) -> None:
    orders = [draws.draw(st.permutations(range(k))) for k in data.categories.values()]
    other = relabelled(data, orders)
    assert torch.equal(folds(other), folds(data))
    for column in data.categories:
        own, found = folds_of_levels(data, column), folds_of_levels(other, column)
        assert (own is None) == (found is None)
        assert own is None or found is None or torch.equal(own, found)


@given(spaces_of_categories(), st.data())
def test_rows_of_categories_may_come_in_any_order(
    data: ModelData, draws: st.DataObject
) -> None:
    """Wherever something tells two rows apart: here all outcomes differ."""
    t = len(data.inputs)
    data = replace(data, outcomes=torch.arange(t).double().unsqueeze(-1))
    order = torch.tensor(draws.draw(st.permutations(range(t))))
    assert torch.equal(folds(data.of_rows(order)), folds(data)[order])


def test_equal_outcomes_are_told_apart_by_the_rows_of_their_levels() -> None:
    """Half of the yields are zero; each pair of levels leads to another outcome."""
    levels = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 3]]).double().mT
    outcomes = torch.tensor([0.0, 1.0, 0.0, 2.0, 0.0, 3.0]).double().unsqueeze(-1)
    box = torch.tensor([[0.0, 0.0], [2.0, 3.0]]).double()
    data = ModelData(levels, outcomes, box, categories={0: 3, 1: 4})
    order = torch.tensor([5, 2, 0, 4, 1, 3])
    assert torch.equal(folds(data.of_rows(order)), folds(data)[order])


def test_what_check_says_does_not_depend_on_the_order_of_levels() -> None:
    """Neither residuals of five folds nor those of levels that were left out."""
    generator = torch.Generator().manual_seed(0)
    levels = torch.randint(0, 12, (40, 2), generator=generator).double()
    outcomes = uniform(40, 1, seed=2) + levels[:, :1]
    box = torch.tensor([[0.0, 0.0], [11.0, 11.0]]).double()
    data = ModelData(levels, outcomes, box, categories={0: 12, 1: 12})
    orders = [torch.randperm(12, generator=generator).tolist() for _ in range(2)]
    other = relabelled(data, orders)
    own, found = (
        residuals(SURROGATES["ensemble"], data),
        residuals(SURROGATES["ensemble"], other),
    )
    torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-4)


def test_folds_are_of_one_size_and_hold_no_level_of_a_grid() -> None:
    levels = torch.linspace(0.0, 1.0, 5, dtype=torch.double)
    grid = torch.cartesian_prod(levels, levels)
    found = folds(ModelData(grid, grid[:, :1], BOX))
    assert found.bincount().tolist() == [5] * 5
    sizes = folds(ModelData(Z, Y, BOX)).bincount().sort().values
    assert sizes.tolist() == [2, 2, 2, 3, 3]
    for fold in range(5):
        for column in (0, 1):
            assert len(grid[found == fold, column].unique()) > 1


@pytest.mark.parametrize("name", ["botorch", "matern"])
def test_each_fold_is_predicted_by_a_fit_to_the_others(name: str) -> None:
    found = residuals(SURROGATES[name], ModelData(Z, Y, BOX))
    for row in (0, 4, 5, 11):
        mean, deviation = by_hand(name, row)
        z = (Y[row].item() - mean) / deviation
        assert found[row].item() == pytest.approx(z, rel=1e-4, abs=1e-4)


def of_kind(kind: str) -> ModelData:
    """Twelve rows; with a category of three levels, which may have features."""
    if kind == "given noise":
        return ModelData(Z, Y, BOX, 0.01 + uniform(12, 1, seed=4))
    if kind in ("numbers", "float32"):
        dtype = torch.float32 if kind == "float32" else torch.double
        return ModelData(Z.to(dtype), Y.to(dtype), BOX.to(dtype))
    inputs = torch.cat([Z, torch.arange(12).remainder(3).double().unsqueeze(-1)], -1)
    features = {2: uniform(3, 2, seed=5)} if kind == "features" else {}
    box = torch.cat([BOX, torch.tensor([[0.0], [2.0]]).double()], -1)
    return ModelData(inputs, Y, box, categories={2: 3}, features=features)


def written(shape: int | tuple[int, int], order: Literal["C", "F"] = "C") -> np.ndarray:
    """Memory that another array has left."""
    return np.full(shape, np.nan, order=order)


@pytest.mark.parametrize(
    "kind", ["numbers", "given noise", "float32", "categories", "features"]
)
@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
@pytest.mark.parametrize("name", ["botorch", "matern", "matern32", "kernels"])
def test_closed_predictions_are_those_of_the_model(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: GPyTorch's posterior. What memory held before is not looked at."""
    monkeypatch.setattr(np, "empty", written)
    data, surrogate = of_kind(kind), SURROGATES[name]
    told = data.of_rows(torch.arange(9))
    every = replace(data, given_units=told.units)
    found = surrogate.predict_others(told, every)
    wanted = Surrogate.predict_others(surrogate, told, every)
    near = 1e-4 if kind == "float32" else 1e-7
    torch.testing.assert_close(found.means, wanted.means, rtol=near, atol=near)
    torch.testing.assert_close(found.deviations, wanted.deviations, rtol=near, atol=0)


@pytest.mark.filterwarnings("ignore:There are more than 8")
@pytest.mark.parametrize("name", ["botorch", "matern", "kernels"])
def test_a_fold_of_many_rows_is_predicted_by_the_inducing_points_in_use(
    name: str,
) -> None:
    data = ModelData(Z, Y, BOX)
    told = data.of_rows(torch.arange(10))
    every = replace(data, given_units=told.units)
    few = EnsembleOf([EdrboKernel() if name == "kernels" else name], max_exact=8)
    found = few.predict_others(told, every)
    wanted = Surrogate.predict_others(few, told, every)
    assert torch.equal(found.means, wanted.means)
    exact = SURROGATES[name].predict_others(told, every)
    assert not torch.isclose(found.means, exact.means[:1]).all()


def test_folds_of_the_default_make_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make one and to ask it once would take longer than to fit it."""

    def refused(data: ModelData, **options: object) -> SingleTaskGP:
        raise AssertionError("A model was made.")

    monkeypatch.setattr(ModelData, "model", refused)
    assert residuals(SURROGATES["ensemble"], ModelData(Z, Y, BOX)).isfinite().all()


def test_models_of_an_ensemble_are_mixed() -> None:
    found = residuals(EnsembleOf(["botorch", "matern"]), ModelData(Z, Y, BOX))
    for row in (2, 6):
        parts = [by_hand(name, row) for name in ("botorch", "matern")]
        below = sum(norm.cdf(Y[row].item(), *part) for part in parts) / 2
        assert found[row].item() == pytest.approx(norm.ppf(below), rel=1e-3, abs=1e-3)


def test_known_variances_are_those_of_the_row() -> None:
    variances = torch.linspace(0.01, 1.0, 12).double().unsqueeze(-1)
    found = residuals(SURROGATES["matern"], ModelData(Z, Y, BOX, variances))
    for row in (0, 11):
        mean, deviation = by_hand("matern", row, variances)
        z = (Y[row].item() - mean) / deviation
        assert found[row].item() == pytest.approx(z, rel=1e-3, abs=1e-3)


def test_an_outcome_has_no_say_in_its_own_fold() -> None:
    """A wrong outcome surprises, and leaves the other rows of its fold as they were."""
    wrong = Y.clone()
    wrong[6] += 30.0
    before = residuals(SURROGATES["matern"], ModelData(Z, Y, BOX))
    after = residuals(SURROGATES["matern"], ModelData(Z, wrong, BOX))
    assert after[6] > 10.0
    fold = folds(ModelData(Z, Y, BOX))
    beside = fold == fold[6]
    beside[6] = False
    assert beside.any() and torch.equal(before[beside], after[beside])
    others = fold != fold[6]
    assert not torch.isclose(before[others], after[others]).any()


def test_the_same_data_have_the_same_residuals() -> None:
    torch.manual_seed(0)
    first = residuals(SURROGATES["botorch"], ModelData(Z, Y, BOX))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    again = residuals(SURROGATES["botorch"], ModelData(Z, Y, BOX))
    assert torch.equal(first, again)
    assert torch.equal(state, torch.get_rng_state())


def user_model(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    raise AssertionError("A function of the user's is not called for a check.")


@pytest.mark.parametrize(
    "surrogate",
    [GivenModel(user_model), KNOWN, EnsembleOf(["matern", GivenModel(user_model)])],
    ids=["function", "known", "ensemble"],
)
def test_what_may_be_slow_and_what_fits_nothing_is_not_refitted(
    surrogate: Surrogate,
) -> None:
    assert not surrogate.is_refitted
    assert cross_validated(surrogate, ModelData(Z, Y, BOX)) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_outcomes_does_not_matter(unit: float) -> None:
    plain = residuals(SURROGATES["matern"], ModelData(Z, Y, BOX))
    found = residuals(SURROGATES["matern"], ModelData(Z, unit * Y, BOX))
    assert torch.allclose(found, plain, rtol=1e-3, atol=1e-3)


def test_fewer_rows_than_folds_are_not_left_out() -> None:
    assert cross_validated(SURROGATES["matern"], ModelData(Z[:4], Y[:4], BOX)) is None
    few = residuals(SURROGATES["matern"], ModelData(Z[:5], Y[:5], BOX))
    assert few.shape == (5,) and few.isfinite().all()


@pytest.mark.filterwarnings("error::botorch.exceptions.warnings.InputDataWarning")
def test_outcomes_equal_in_some_folds_are_no_news() -> None:
    flat = torch.zeros(12, 1).double()
    flat[3] = 1.0
    assert residuals(SURROGATES["matern"], ModelData(Z, flat, BOX)).isfinite().all()


def test_the_factor_is_a_bound_of_the_scale() -> None:
    # tables: the 25% quantile of chi-squared is 8.4384 of 12 residuals, 2.6746 of 5
    sizes = 2.0 * torch.tensor([1.0, -1.0] * 6).double()
    assert overconfidence(sizes) == pytest.approx((48.0 / 8.4384) ** 0.5, rel=1e-4)
    mixed = torch.tensor([3.0, -1.0, 0.0, 0.0, 0.0]).double()
    assert overconfidence(mixed) == pytest.approx((10.0 / 2.6746) ** 0.5, rel=1e-4)
    assert overconfidence(0.4 * sizes) == 1.0  # never narrower


@pytest.mark.parametrize("t", [5, 12, 60])
def test_deviations_are_stretched_by_enough_three_times_of_four(t: int) -> None:
    generator = torch.Generator().manual_seed(t)
    drawn = 3.0 * torch.randn(4000, t, generator=generator, dtype=torch.double)
    factors = torch.tensor([overconfidence(row) for row in drawn])
    assert (factors >= 3.0).double().mean().item() == pytest.approx(0.75, abs=0.025)
    # So a further number is held by nearly all of its 90% intervals, or more.
    further = 3.0 * torch.randn(4000, generator=generator, dtype=torch.double)
    held = (further.abs() <= norm.ppf(0.95) * factors).double().mean().item()
    assert 0.895 < held < 0.955
