"""What BoTorch asks of an acquisition function; every member of the list passes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.models.model import Model

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    KernelDensityRobustUCB,
    LipschitzPenalizedUCB,
    MaximumMeanDiscrepancyRobustUCB,
    RobustAcquisitionFunction,
)
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FullSimplex,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.testing import AcquisitionCase, AcquisitionContract
from botorch_drbo.testing.acquisition import C_BOUNDS

Maker = Callable[..., RobustAcquisitionFunction]


def ucb(ambiguity: Callable[[ContextSet], AmbiguitySet]) -> Maker:
    def make(
        model: Model, beta: float, contexts: ContextSet, **options: Any
    ) -> DistributionallyRobustUCB:
        objective = UncertaintyObjective(ambiguity(contexts))
        return DistributionallyRobustUCB(model, beta, contexts, objective, **options)

    return make


def wasserstein(contexts: ContextSet) -> Wasserstein:
    return Wasserstein(0.2, torch.cdist(contexts.points, contexts.points))


def enlarged(
    model: Model, beta: float, contexts: ContextSet, **options: Any
) -> EnlargedConfidenceUCB:
    objective = UncertaintyObjective(TotalVariation(0.3))
    return EnlargedConfidenceUCB(model, beta, 0.02, contexts, objective, **options)


def kernel_density(
    model: Model, beta: float, contexts: ContextSet, **options: Any
) -> KernelDensityRobustUCB:
    outside = C_BOUNDS.to(contexts.points)
    return KernelDensityRobustUCB(model, beta, contexts, 0.4, outside, **options)


def mean_discrepancy(
    model: Model, beta: float, contexts: ContextSet, **options: Any
) -> MaximumMeanDiscrepancyRobustUCB:
    kernel = torch.exp(-torch.cdist(contexts.points, contexts.points).square())
    return MaximumMeanDiscrepancyRobustUCB(
        model, beta, contexts, 0.2, kernel, **options
    )


def finite_difference(
    model: Model, beta: float, contexts: ContextSet, **options: Any
) -> FiniteDifferenceUCB:
    objective = UncertaintyObjective.gen(TotalVariation(0.3))
    return FiniteDifferenceUCB(model, beta, contexts, objective, step=0.1, **options)


def penalized(**own: float) -> Maker:
    def make(
        model: Model, beta: float, contexts: ContextSet, **options: Any
    ) -> LipschitzPenalizedUCB:
        bounds = C_BOUNDS.to(contexts.points)
        return LipschitzPenalizedUCB(
            model, beta, contexts, 0.1, bounds, **own, **options
        )

    return make


# The slopes are looked for on a grid: many more pairs.
GRID = {"exact": 20_000, "generic": 300_000}


class TestOurFunctions(AcquisitionContract):
    cases = [
        AcquisitionCase("expectation", ucb(lambda contexts: NoAmbiguity())),
        AcquisitionCase("worst_case", ucb(lambda contexts: FullSimplex())),
        AcquisitionCase("wasserstein", ucb(wasserstein)),
        AcquisitionCase("lipschitz_penalized", penalized(), memory_budgets=GRID),
        AcquisitionCase("finite_difference", finite_difference),
        AcquisitionCase("enlarged_confidence", enlarged),
        AcquisitionCase("kernel_density", kernel_density),
        AcquisitionCase("mean_discrepancy", mean_discrepancy, rounding=1e-9),
        AcquisitionCase(
            "enlarged_penalized", penalized(misspecification=0.02), memory_budgets=GRID
        ),
    ]
