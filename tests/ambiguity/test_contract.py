"""What every ambiguity set promises; a member passes by being listed once."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo import ambiguity as sets
from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    CvxpyAmbiguity,
    FiniteFamily,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.testing import AmbiguitySetCase, AmbiguitySetContract
from botorch_drbo.testing.ambiguity_sets import instance


def line_cost(n: int) -> Tensor:
    points = torch.linspace(0, 1, n, dtype=torch.double)[:, None]
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def box(q, p, radius):
    import cvxpy as cp

    return [cp.norm_inf(q - p) <= radius]


def smooth_kernel(n: int) -> Tensor:
    return torch.exp(-line_cost(n).square() / (2 * 0.2**2))


def two_halves(n: int) -> Tensor:
    """Even, the first half, the second half."""
    rows = torch.ones(3, n, dtype=torch.double)
    rows[1, (n + 1) // 2 :], rows[2, : n // 2] = 0.0, 0.0
    return rows / rows.sum(-1, keepdim=True)


MEMBERS = [
    AmbiguitySetCase(
        "finite_family",
        lambda radius, n: FiniteFamily(two_halves(n)),
        has_radius=False,
    ),
    AmbiguitySetCase(
        "no_ambiguity", lambda radius, n: NoAmbiguity(), has_radius=False, linear=True
    ),
    AmbiguitySetCase("full_simplex", lambda radius, n: FullSimplex(), has_radius=False),
    # The radius is alpha / (1 - alpha); the absolute value keeps a bad radius bad.
    AmbiguitySetCase(
        "cvar", lambda radius, n: ConditionalValueAtRisk(radius / (1 + abs(radius)))
    ),
    AmbiguitySetCase(
        "chi_squared", lambda radius, n: ChiSquared(radius), saturates=False
    ),
    AmbiguitySetCase("kullback_leibler", lambda radius, n: KullbackLeibler(radius)),
    AmbiguitySetCase(
        "modified_chi_squared", lambda radius, n: ModifiedChiSquared(radius)
    ),
    AmbiguitySetCase("total_variation", lambda radius, n: TotalVariation(radius)),
    AmbiguitySetCase(
        "mmd", lambda radius, n: MaximumMeanDiscrepancy(radius, smooth_kernel(n))
    ),
    AmbiguitySetCase(
        "minimax_total_variation",
        lambda radius, n: MinimaxApproximation(TotalVariation(radius)),
        feasible=False,
    ),
    AmbiguitySetCase(
        "minimax_mmd",
        lambda radius, n: MinimaxApproximation(
            MaximumMeanDiscrepancy(radius, smooth_kernel(n))
        ),
        feasible=False,
        precision=1e-6,  # that of the sensitivity at radius zero
    ),
    AmbiguitySetCase(
        "minimax_wasserstein",
        lambda radius, n: MinimaxApproximation(Wasserstein(radius, line_cost(n))),
        feasible=False,
    ),
    AmbiguitySetCase(
        "wasserstein", lambda radius, n: Wasserstein(radius, line_cost(n))
    ),
    AmbiguitySetCase(
        "cvxpy",
        lambda radius, n: CvxpyAmbiguity(box, radius),
        exact=False,
        function="problem_builder",
    ),
]


class TestOurSets(AmbiguitySetContract):
    cases = MEMBERS


def test_inference_weights_changed_in_place_are_looked_at_again():
    with torch.inference_mode():
        weights = torch.full((6,), 1 / 6)
        FullSimplex().worst_case(torch.zeros(6), weights)
        TotalVariation(0.1).value(torch.zeros(6), weights)
        weights.mul_(2)
        with pytest.raises(InputDataError, match="simplex"):
            FullSimplex().worst_case(torch.zeros(6), weights)
        with pytest.raises(InputDataError, match="simplex"):
            TotalVariation(0.1).value(torch.zeros(6), weights)


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
@pytest.mark.parametrize("radius", [0.0, 0.1, 1.5, 1 / 3])
def test_what_is_printed_makes_an_equal_set(
    case: AmbiguitySetCase, radius: float
) -> None:
    """Pasted into a script it is the same set, to the last digit."""
    for printed in (case.make(radius, 4), case.make(0.3, 4).with_radius(radius)):
        made = eval(repr(printed), {**vars(sets), "torch": torch, "box": box})
        assert type(made) is type(printed) and repr(made) == repr(printed)
        f, p = instance(0, 4)
        torch.testing.assert_close(
            made.worst_case(f, p).value, printed.worst_case(f, p).value
        )


def test_levels_and_floors_are_printed_as_given():
    for text in (
        "ConditionalValueAtRisk(0.6)",
        "ConditionalValueAtRisk(0.95)",
        "TotalVariation(0.2, floor=-8.0)",
        "MinimaxApproximation(Wasserstein(0.3))",
        "NoAmbiguity()",
        "FullSimplex()",
    ):
        assert repr(eval(text, vars(sets))) == text
    matrix = MaximumMeanDiscrepancy(0.1, smooth_kernel(50))
    assert "..." in repr(matrix) and len(repr(matrix)) < 1000


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.name)
def test_our_sets_know_the_gradient_in_the_weights(case: AmbiguitySetCase) -> None:
    """It is optional for a set of your own: the contract lets it be missing."""
    p = torch.full((1, 4), 0.25, dtype=torch.double)
    f = torch.tensor([[0.0, 2.0, 1.0, 4.0]], dtype=torch.double)
    found = case.make(0.2, 4).solve(f, p, torch.full_like(p[:, :1], 0.2))
    assert found.reference_gradient is not None
