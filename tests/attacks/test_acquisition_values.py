"""Attacks on acquisition values: BoTorch's moments and a linear program as oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import ConditionalValueAtRisk, TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.attacks import certificates
from tests.attacks.counted import count, num_cases

NUM = num_cases(40, 2_000)


@dataclass(frozen=True)
class Case:
    """Data in some units, contexts, a decision or a few."""

    seed: int
    rows: int
    d_x: int
    d_c: int
    n: int
    unit: float
    radius: float
    beta: float
    repeated: bool
    cvar: bool

    def data(self) -> tuple[Tensor, Tensor]:
        chance = torch.Generator().manual_seed(self.seed)
        shape = (self.rows, self.d_x + self.d_c)
        Z = torch.rand(shape, generator=chance, dtype=torch.double)
        if self.repeated:
            Z = Z[torch.randint(self.rows, (self.rows,), generator=chance)]
        noise = torch.randn(self.rows, 1, generator=chance, dtype=torch.double)
        return Z, self.unit * ((4 * Z).sin().sum(-1, keepdim=True) + 0.1 * noise)

    def contexts(self) -> tuple[Tensor, Tensor]:
        chance = torch.Generator().manual_seed(self.seed + 1)
        points = torch.rand(self.n, self.d_c, generator=chance, dtype=torch.double)
        weights = torch.rand(self.n, generator=chance, dtype=torch.double) + 1e-3
        return points, weights / weights.sum()

    def decisions(self) -> Tensor:
        chance = torch.Generator().manual_seed(self.seed + 2)
        return torch.rand(2, 3, 1, self.d_x, generator=chance, dtype=torch.double)


@st.composite
def cases(draw) -> Case:
    return Case(
        seed=draw(st.integers(0, 2**31)),
        rows=draw(st.integers(2, 9)),
        d_x=draw(st.integers(1, 3)),
        d_c=draw(st.integers(1, 2)),
        n=draw(st.integers(1, 6)),
        # BoTorch's Standardize takes a deviation below 1e-8 for none.
        unit=10.0 ** draw(st.integers(-6, 8)),
        radius=draw(st.sampled_from([0.0, 0.05, 0.3, 1.0, 2.0])),
        beta=draw(st.sampled_from([0.0, 1.0, 9.0])),
        repeated=draw(st.booleans()),
        cvar=draw(st.booleans()),
    )


def acquisition(case: Case, model: SingleTaskGP, contexts: ContextSet, **options):
    chosen = (
        ConditionalValueAtRisk(case.radius / (1 + case.radius))
        if case.cvar
        else TotalVariation(case.radius)
    )
    objective = UncertaintyObjective.dro(chosen)
    return DistributionallyRobustUCB(model, case.beta, contexts, objective, **options)


def check(case: Case) -> None:
    Z, Y = case.data()
    points, weights = case.contexts()
    model = SingleTaskGP(Z, Y).eval()
    X = case.decisions()
    value = acquisition(case, model, ContextSet(points, weights))(X)
    assert value.shape == X.shape[:2]

    # The definition, decision by decision, in units of one: GPyTorch raises variances
    # below 1e-10, in whatever units, to that.
    plain = SingleTaskGP(Z, Y / case.unit).eval()
    expected = []
    for x in X.reshape(-1, case.d_x):
        joint = torch.cat([x.expand(case.n, -1), points], -1)
        with torch.no_grad():
            moments = plain.posterior(joint.unsqueeze(-2))
        sigma = moments.variance.clamp_min(0).sqrt()
        scores = (moments.mean + case.beta**0.5 * sigma).reshape(-1)
        f, p = scores.numpy(), weights.numpy()
        solve = (
            certificates.conditional_value_at_risk
            if case.cvar
            else certificates.total_variation
        )
        expected.append(solve(f, p, case.radius))
    found = value.detach().reshape(-1).numpy() / case.unit
    size = 1.0 + np.abs(expected).max()
    # A variance near zero is a rounding, of which a root is taken.
    assert np.abs(found - np.array(expected)).max() <= 2e-4 * size

    # Contexts in another order, and one that is listed twice with half of its weight.
    order = torch.randperm(case.n, generator=torch.Generator().manual_seed(case.seed))
    halves = weights[order].clone()
    halves[0] /= 2
    twice = ContextSet(
        torch.cat([points[order], points[order][:1]]), torch.cat([halves, halves[:1]])
    )
    again = acquisition(case, model, twice)(X).detach().reshape(-1).numpy() / case.unit
    assert np.abs(again - found).max() <= 1e-5 * size

    # To minimise is to maximise the mirrored outcomes.
    negate = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
    mirrored = SingleTaskGP(Z, -Y).eval()
    a, b = (
        acquisition(case, made, ContextSet(points, weights), **options)(X).detach()
        for made, options in (
            (model, {"posterior_transform": negate}),
            (mirrored, {}),
        )
    )
    assert (a - b).abs().max().item() <= 1e-5 * size * case.unit


FAST = [HealthCheck.too_slow]


@settings(max_examples=NUM, deadline=None, suppress_health_check=FAST)
@given(case=cases())
def test_values_are_those_of_the_definition(case):
    count("acquisition values")
    check(case)
