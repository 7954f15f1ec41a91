"""Attacks on acquisition functions: what must not change a value does not change it.

No oracle: the same question is asked in another way. Rows of the data and contexts in
another order, columns in another order, a context or an outcome that is listed twice,
outcomes in other units or mirrored, decisions in other batches, float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.kernels import MaternKernel, RBFKernel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    LogExpectedImprovementOfExpectation,
)
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective
from tests.attacks.counted import count, num_cases

NUM = num_cases(6, 150)  # of each of fourteen kinds: 2,100


@dataclass(frozen=True)
class Question:
    """Data, contexts, decisions and hyper-parameters."""

    kind: str
    Z: Tensor
    Y: Tensor
    Yvar: Tensor
    points: Tensor
    weights: Tensor
    X: Tensor
    lengthscales: Tensor
    context_indices: tuple[int, ...]
    smoothness: float
    method: str
    radius: float
    unit: float = 1.0
    standardised: bool = False
    negated: bool = False

    def model(self) -> SingleTaskGP:
        d = self.Z.shape[-1]
        if self.smoothness > 3:
            covar = RBFKernel(ard_num_dims=d)
        else:
            covar = MaternKernel(self.smoothness, ard_num_dims=d)
        # A deviation below 1e-8 would be none, by Standardize's default.
        transform = Standardize(1, min_stdv=0.0) if self.standardised else None
        model = SingleTaskGP(
            self.Z, self.Y, self.Yvar, covar_module=covar, outcome_transform=transform
        ).to(self.Z)
        covar.initialize(lengthscale=self.lengthscales)
        return model.eval()

    def contexts(self) -> ContextSet:
        return ContextSet(self.points, self.weights)

    def ambiguity_set(self) -> AmbiguitySet:
        radius, points = self.radius, self.points
        gaps = (points.unsqueeze(-2) - points.unsqueeze(-3)).abs().sum(-1)
        match self.kind:
            case "expectation":
                return NoAmbiguity()
            case "worst":
                return FullSimplex()
            case "cvar":
                return ConditionalValueAtRisk(radius / (1 + radius))
            case "kl":
                return KullbackLeibler(radius)
            case "chi":
                return ChiSquared(radius)
            case "modified chi":
                return ModifiedChiSquared(radius)
            case "mmd":
                return MaximumMeanDiscrepancy(radius, (-gaps).exp())
            case "wasserstein":
                return Wasserstein(radius, gaps)
        return TotalVariation(radius)

    def acquisition(self) -> AcquisitionFunction:
        model, contexts = self.model(), self.contexts()
        options: dict = {
            "context_indices": self.context_indices,
            "method": self.method,
        }
        if self.negated:
            minus = torch.tensor([-1.0]).to(self.Z)
            options["posterior_transform"] = ScalarizedPosteriorTransform(minus)
        decided = [i for i in range(self.Z.shape[-1]) if i not in self.context_indices]
        ball = self.ambiguity_set()
        match self.kind:
            case "penalised":
                box = torch.tensor([[0.0], [1.0]]).to(self.Z).repeat(1, contexts.dim)
                return LipschitzPenalizedUCB(
                    model, 2.0, contexts, self.radius, box, **options
                )
            case "enlarged":
                objective = UncertaintyObjective(ball)
                return EnlargedConfidenceUCB(
                    model, 2.0, 0.1 * self.unit, contexts, objective, **options
                )
            case "difference":
                objective = UncertaintyObjective.gen(ball)
                return FiniteDifferenceUCB(model, 2.0, contexts, objective, **options)
            case "improvement":
                seen = self.Z[:, decided]
                return LogExpectedImprovementOfExpectation(
                    model, seen, contexts, **options
                )
            case "mean and risk":
                objective = UncertaintyObjective.mean_risk(ball, 0.5)
            case _:
                objective = UncertaintyObjective(ball)
        return DistributionallyRobustUCB(model, 2.0, contexts, objective, **options)

    def answer(self) -> Tensor:
        """In units of one, one number per decision."""
        value = self.acquisition()(self.X).detach()
        if self.kind == "improvement":  # the logarithm
            return value - torch.tensor(self.unit).to(value).log()
        return value / self.unit


KINDS = (
    "expectation",
    "worst",
    "tv",
    "cvar",
    "kl",
    "chi",
    "modified chi",
    "mmd",
    "wasserstein",
    "mean and risk",
    "penalised",
    "enlarged",
    "difference",
    "improvement",
)


pytestmark = [
    pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32"),
    pytest.mark.filterwarnings("ignore:Negative variance values detected"),
]


@st.composite
def questions(draw, kind: str) -> Question:
    chance = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=chance, dtype=torch.double)

    t, n = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    d_x, d_c = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    Z, points = uniform(t, d_x + d_c), uniform(n, d_c)
    Y = (4 * Z).sin().sum(-1, keepdim=True)
    degenerate = draw(st.sampled_from(["no", "no", "rows", "constant", "contexts"]))
    if degenerate == "rows":  # one place, many outcomes
        Z = Z[:1].repeat(t, 1)
        Y = Y + uniform(t, 1)
    elif degenerate == "constant":
        Y = Y[:1].repeat(t, 1)
    elif degenerate == "contexts" and kind != "mmd":
        points = points[:1].repeat(n, 1)
    weights = uniform(n) ** draw(st.sampled_from([1, 6])) + 1e-6
    shape = draw(st.sampled_from([(1,), (3,), (2, 3), (2, 1, 2)]))
    return Question(
        kind=kind,
        Z=Z,
        Y=Y,
        Yvar=draw(st.sampled_from([1e-3, 1e-2, 1.0])) * (0.5 + uniform(t, 1)),
        points=points,
        weights=weights / weights.sum(),
        X=uniform(*shape, 1, d_x),
        lengthscales=0.2 + uniform(d_x + d_c),
        context_indices=tuple(range(d_x, d_x + d_c)),
        smoothness=draw(st.sampled_from([0.5, 1.5, 2.5, 9.0])),
        method=draw(st.sampled_from(["exact", "generic"])),
        radius=draw(st.sampled_from([0.01, 0.3, 1.0])),
    )


def same_questions(
    asked: Question, chance: torch.Generator
) -> Iterator[tuple[str, Question]]:
    """The same question in other ways."""
    t, n, d = len(asked.Z), len(asked.points), asked.Z.shape[-1]
    rows = torch.randperm(t, generator=chance)
    yield (
        "rows in another order",
        replace(asked, Z=asked.Z[rows], Y=asked.Y[rows], Yvar=asked.Yvar[rows]),
    )
    order = torch.randperm(n, generator=chance)
    yield (
        "contexts in another order",
        replace(asked, points=asked.points[order], weights=asked.weights[order]),
    )
    # The columns of the decisions keep their order among themselves: so does X.
    last = list(asked.context_indices)
    first = [i for i in range(d) if i not in last]
    columns = [*last[::-1], *first]
    yield (
        "the context's columns first, in another order",
        replace(
            asked,
            Z=asked.Z[:, columns],
            lengthscales=asked.lengthscales[columns],
            context_indices=tuple(range(len(last)))[::-1],
        ),
    )
    columns = [*first[::-1], *last]
    yield (
        "the decision's columns in another order",
        replace(
            asked,
            Z=asked.Z[:, columns],
            lengthscales=asked.lengthscales[columns],
            X=asked.X.flip(-1),
        ),
    )
    if asked.kind != "mmd":  # a kernel matrix that is singular: `test_mmd.py`
        halves = torch.cat([asked.weights, asked.weights[:1]])
        halves[[0, -1]] /= 2
        points = torch.cat([asked.points, asked.points[:1]])
        yield "a context twice", replace(asked, points=points, weights=halves)
    # Two outcomes with twice the variance are one.
    twice = {name: torch.cat([v := getattr(asked, name), v[:1]]) for name in "ZY"}
    Yvar = torch.cat([asked.Yvar, asked.Yvar[:1]])
    Yvar[[0, -1]] *= 2
    yield "an outcome twice", replace(asked, **twice, Yvar=Yvar)
    yield "mirrored", replace(asked, Y=-asked.Y, negated=True)
    yield "one batch", replace(asked, X=asked.X.reshape(-1, *asked.X.shape[-2:]))


def distance(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest value or to one."""
    difference = (found.reshape(expected.shape) - expected).abs().max()
    return (difference / (1.0 + expected.abs().max())).item()


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=NUM,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
@given(data=st.data())
def test_the_same_question_has_the_same_answer(kind, data):
    count(f"acquisition, {kind}")
    asked = data.draw(questions(kind))
    unit = 10.0 ** data.draw(st.integers(-8, 8))
    expected = asked.answer()
    assert expected.shape == asked.X.shape[:-2]
    assert expected.isfinite().all()
    chance = torch.Generator().manual_seed(len(asked.Z))
    for how, same in same_questions(asked, chance):
        assert distance(same.answer(), expected) <= 1e-6, how

    if torch.std(asked.Y, correction=0) > 1e-3:  # equal outcomes have no units
        one = replace(asked, standardised=True)
        Yvar = unit**2 * one.Yvar
        other = replace(one, Y=unit * one.Y, Yvar=Yvar, unit=unit)
        assert distance(other.answer(), one.answer()) <= 1e-6, unit

    names = ("Z", "Y", "Yvar", "points", "weights", "X", "lengthscales")
    single = {name: getattr(asked, name).float() for name in names}
    rounded = replace(asked, **single).answer()
    assert rounded.dtype == torch.float32
    assert distance(rounded, expected) <= 3e-2  # a factor of the covariance costs most
