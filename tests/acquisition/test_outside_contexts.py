"""Contexts beside the context set: the same as in it with weight zero, but cheaper."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.model import Model

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    FullSimplex,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective


def single(Z: torch.Tensor, Y: torch.Tensor) -> Model:
    return SingleTaskGP(Z, Y).eval()


def ensemble(Z: torch.Tensor, Y: torch.Tensor) -> Model:
    """Three models that disagree about where the lowest context lies."""
    model = EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim and len(parameter) == 3:
                parameter.add_(torch.randn_like(parameter))
    return model


@pytest.fixture(params=[single, ensemble])
def model(request: pytest.FixtureRequest) -> Model:
    torch.manual_seed(0)
    Z = torch.rand(12, 3, dtype=torch.double)
    return request.param(Z, torch.sin(5 * Z.sum(-1, keepdim=True)))


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(
    "ambiguity",
    [TotalVariation(0.5), ChiSquared(0.5), FullSimplex()],
    ids=lambda s: type(s).__name__,
)
def test_same_as_contexts_of_weight_zero(
    model: Model, ambiguity: AmbiguitySet, pending: bool
) -> None:
    inside = ContextSet(torch.rand(6, 1, dtype=torch.double))
    outside = torch.rand(40, 1, dtype=torch.double)
    every = ContextSet(
        torch.cat([inside.points, outside]),
        torch.cat([inside.weights, torch.zeros(40, dtype=torch.double)]),
    )
    X_pending = torch.rand(2, 2, dtype=torch.double) if pending else None
    X = torch.rand(5, 1, 2, dtype=torch.double, requires_grad=True)
    answers = []
    for contexts, further in ((inside, outside), (every, None)):
        acqf = DistributionallyRobustUCB(
            model,
            2.0,
            contexts,
            UncertaintyObjective(ambiguity),
            outside_contexts=further,
            X_pending=X_pending,
        )
        value = acqf(X)
        answers.append((value, *torch.autograd.grad(value.sum(), X)))
        weights = acqf.robust_value(X.squeeze(-2)).weights
        assert weights.shape[-1] == (7 if further is not None else 46)
    torch.testing.assert_close(answers[0], answers[1])


def test_bad_outside_contexts(model: Model) -> None:
    contexts = ContextSet(torch.rand(2, 1, dtype=torch.double))
    blind = UncertaintyObjective(TotalVariation(0.1))
    cost = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    for objective, outside, error in (
        (blind, torch.rand(3, 2), BotorchTensorDimensionError),
        (blind, torch.rand(0, 1), BotorchTensorDimensionError),
        (blind, torch.tensor([[torch.nan]]), InputDataError),
        (
            UncertaintyObjective(Wasserstein(0.1, cost)),
            torch.rand(3, 1),
            InputDataError,
        ),
    ):
        with pytest.raises(error):
            DistributionallyRobustUCB(
                model, 2.0, contexts, objective, outside_contexts=outside
            )
