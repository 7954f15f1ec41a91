"""Which input column each column of a transform's result depends on."""

from __future__ import annotations

import pytest
import torch
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputTransform,
    Normalize,
    Round,
    Warp,
)
from gpytorch.kernels import RBFKernel

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.skeleton import column_sources, columns_from
from botorch_drbo.posterior.wrapped import AddedPerturbation
from botorch_drbo.surrogate.base import model_inputs
from tests.contracts.view_case import joined, model_moments
from tests.models import make_model, uniform

D = 4
BOUNDS = torch.tensor([[0.0], [2.0]], dtype=torch.double).expand(2, D)
TRANSFORMS = {
    "none": None,
    "normalize": Normalize(D, bounds=BOUNDS),
    "round": Round(integer_indices=[1]),
    "warp": ChainedInputTransform(a=Normalize(D, bounds=BOUNDS), b=Warp(D, [0, 3])),
    "a category": model_inputs(BOUNDS, {1: 3}),
    "two categories": model_inputs(BOUNDS, {0: 3, 2: 4}),
    "in another order": model_inputs(BOUNDS, {2: 3, 0: 3}),
    "categories alone": model_inputs(BOUNDS, {0: 3, 1: 3, 2: 3, 3: 3}),
}


def transformed(transform: InputTransform | None, Z: torch.Tensor) -> torch.Tensor:
    return Z if transform is None else transform.eval()(Z)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_result_changes_with_its_source_alone(name: str) -> None:
    transform = TRANSFORMS[name]
    Z = torch.tensor([[0.2, 0.4, 1.6, 1.9]], dtype=torch.double)
    before = transformed(transform, Z)
    sources = column_sources(transform, D)
    assert sources is not None and len(sources) == before.shape[-1]
    for column in range(D):
        changed = Z.clone()
        changed[0, column] = 1.1  # another category, and another number
        differs = (transformed(transform, changed) != before)[0].nonzero().flatten()
        assert len(differs)
        assert {sources[i] for i in differs.tolist()} == {column}


def test_what_mixes_columns_has_no_sources() -> None:
    assert column_sources(Round(categorical_features={1: 2}), D) is None
    assert column_sources(AddedPerturbation(), D) is None


def test_results_come_in_the_order_of_the_columns_asked_for() -> None:
    sources = column_sources(TRANSFORMS["a category"], D)
    assert sources == [0, 1, 1, 1, 2, 3]
    assert columns_from(sources, [3, 1, 0]) == [5, 1, 2, 3, 0]


@pytest.mark.parametrize("method", ["exact", "product"])
def test_contexts_that_are_all_categories_have_slope_zero(method: str) -> None:
    """And moments of the model, though no context has a gradient."""
    model = make_model(
        RBFKernel(ard_num_dims=5),
        input_transform=model_inputs(BOUNDS[:, :3], {2: 3}),
    )
    X = uniform(4, 2, seed=3)
    contexts = torch.arange(3).repeat(20).unsqueeze(-1).double()  # copies: 60 of three
    here = marginal_posterior(model, [2], method=method).over(contexts).at(X)
    expected = model_moments(model, joined(X, contexts, [2]))
    for a, b in zip(here.moments(), expected, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-8, atol=1e-8)
    if method == "product":
        slopes = here.slopes(slice(3))
        assert not slopes.mean_slope.any() and not slopes.variance_slope.any()
