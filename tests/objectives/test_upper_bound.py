"""What no objective exceeds, where the set is known to hold its reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    CvxpyAmbiguity,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective

POINTS = torch.linspace(0, 1, 6, dtype=torch.double).unsqueeze(-1)
GAPS = (POINTS - POINTS.mT).abs()


def problem() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(40, 6, generator=generator, dtype=torch.double)
    weights = torch.rand(6, generator=generator, dtype=torch.double)
    return values, weights / weights.sum()


def first_is_likely(q, p, radius):
    """The reference of ``problem`` does not satisfy it."""
    return [q[0] >= 0.9 + 0 * radius]


@pytest.mark.parametrize(
    "ball",
    [
        NoAmbiguity(),
        FullSimplex(),
        TotalVariation(0.3),
        TotalVariation(0.3, floor=-1.0),
        KullbackLeibler(0.2),
        ChiSquared(0.2),
        ModifiedChiSquared(0.2),
        ConditionalValueAtRisk(0.4),
        MaximumMeanDiscrepancy(0.2, (-GAPS.square()).exp()),
        Wasserstein(0.2, GAPS),
        MinimaxApproximation(Wasserstein(0.2, GAPS)),
    ],
    ids=lambda ball: type(ball).__name__,
)
@pytest.mark.parametrize("parts", [(1.0, 0.0), (0.5, 0.0)])
def test_no_worst_case_exceeds_the_expectation(ball: AmbiguitySet, parts) -> None:
    values, weights = problem()
    objective = UncertaintyObjective(ball, *parts)
    bound = objective.upper_bound(values, weights)
    torch.testing.assert_close(bound, parts[0] * (values @ weights))
    assert (objective(values, weights) <= bound + 1e-9).all()


def test_the_sensitivity_lowers_what_has_the_bound() -> None:
    values, weights = problem()
    objective = UncertaintyObjective.gen(TotalVariation(0.3))
    bound = objective.upper_bound(values, weights)
    assert (objective(values, weights) <= bound + 1e-9).all()


def test_a_set_of_the_users_own_may_not_hold_its_reference() -> None:
    values, weights = problem()
    objective = UncertaintyObjective(CvxpyAmbiguity(first_is_likely, 0.1))
    exact = objective(values[:8], weights)
    assert (exact > values[:8] @ weights + 0.1).any()
    assert (objective.upper_bound(values, weights) == torch.inf).all()


def test_transport_where_staying_costs_has_no_bound() -> None:
    values, _ = problem()
    atoms = torch.full((3,), 1 / 3, dtype=torch.double)
    objective = UncertaintyObjective(Wasserstein(0.5, GAPS[:3] + 0.1))
    assert (objective.upper_bound(values, atoms) == torch.inf).all()


def test_satisficing_has_no_bound() -> None:
    values, weights = problem()
    objective = RobustSatisficing(TotalVariation(0.6), target=1.0)
    assert (objective.upper_bound(values, weights) == torch.inf).all()
