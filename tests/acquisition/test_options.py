"""Options that a family has in common: their names and types are stated once."""

from __future__ import annotations

import inspect
from typing import Unpack, get_type_hints

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    KernelDensityRobustUCB,
    LipschitzPenalizedUCB,
    MaximumMeanDiscrepancyRobustUCB,
    RobustAcquisitionFunction,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.acquisition.inputs import (
    ConfidenceBoundOptions,
    PathOptions,
    PosteriorOptions,
)
from botorch_drbo.acquisition.monte_carlo import PathwiseBatchAcquisitionFunction
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import small_model, uniform

CONTEXTS = ContextSet.empirical(uniform(5, 1, seed=2))
GEN = UncertaintyObjective.gen(TotalVariation(0.4))
X = uniform(4, 1, 2, seed=3)

FAMILIES = {
    RobustAcquisitionFunction: ConfidenceBoundOptions,
    PathwiseBatchAcquisitionFunction: PathOptions,
}
MEMBERS = [
    (DistributionallyRobustUCB, ConfidenceBoundOptions),
    (LipschitzPenalizedUCB, ConfidenceBoundOptions),
    (KernelDensityRobustUCB, ConfidenceBoundOptions),
    (MaximumMeanDiscrepancyRobustUCB, ConfidenceBoundOptions),
    (FiniteDifferenceUCB, ConfidenceBoundOptions),
    (qDistributionallyRobustUCB, PathOptions),
    (qLogDistributionallyRobustNoisyExpectedImprovement, PathOptions),
]


def keywords(kind: type) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(kind).parameters
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


@pytest.mark.parametrize("base", FAMILIES)
def test_the_statement_is_what_the_base_takes(base):
    stated = get_type_hints(FAMILIES[base])
    taken = get_type_hints(base.__init__)
    assert keywords(base).keys() == stated.keys()
    assert {name: taken[name] for name in stated} == stated


@pytest.mark.parametrize(("kind", "options"), MEMBERS)
def test_help_says_where_the_options_are(kind, options):
    place = f"``{options.__module__}.{options.__name__}``"
    assert place in " ".join(kind.__doc__.split())


@pytest.mark.parametrize(("kind", "options"), MEMBERS)
def test_a_signature_names_every_option_and_its_default(kind, options):
    above = next(base for base in FAMILIES if issubclass(kind, base))
    found, expected = keywords(kind), keywords(above)
    assert found.keys() >= expected.keys()
    for name in get_type_hints(options):
        assert found[name].default == expected[name].default
    kinds = {
        parameter.kind for parameter in inspect.signature(kind).parameters.values()
    }
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_a_class_of_ones_own_has_the_options_too():
    class Own(RobustAcquisitionFunction):
        def __init__(
            self,
            model,
            beta,
            context_set,
            *,
            power: float = 1.0,
            num_inputs: int = 3,
            **options: Unpack[ConfidenceBoundOptions],
        ) -> None:
            super().__init__(model, beta, context_set, num_inputs=num_inputs, **options)
            self.power = power

        def values(self, X):
            return self.power * self.scores(X).mean(-1)

    class Heir(Own):
        """Without a constructor of its own."""

    for kind in (Own, Heir):
        found = keywords(kind)
        assert list(found)[:2] == ["power", "num_inputs"]
        assert found["num_inputs"].default == 3
        assert found.keys() >= get_type_hints(ConfidenceBoundOptions).keys()
    so = UncertaintyObjective.so()
    expected = DistributionallyRobustUCB(small_model(), 2.0, CONTEXTS, so)(X)
    own = Own(small_model(), 2.0, CONTEXTS, power=2.0, method="exact")
    torch.testing.assert_close(own(X), 2.0 * expected)


@pytest.mark.parametrize("kind", [DistributionallyRobustUCB, FiniteDifferenceUCB])
def test_an_option_that_is_none_is_refused(kind):
    with pytest.raises(TypeError, match="metod"):
        kind(small_model(), 2.0, CONTEXTS, GEN, metod="exact")


def test_the_enlarged_bound_equals_an_option_of_the_plain_one():
    options: PosteriorOptions = {"X_pending": uniform(2, 2, seed=4)}
    thin = EnlargedConfidenceUCB(small_model(), 2.0, 0.1, CONTEXTS, GEN, **options)
    plain = DistributionallyRobustUCB(
        small_model(), 2.0, CONTEXTS, GEN, misspecification=0.1, **options
    )
    assert type(thin) is EnlargedConfidenceUCB
    assert torch.equal(thin(X), plain(X))
    assert torch.equal(thin.confidence_width(), plain.confidence_width())
    assert not torch.equal(
        plain(X), DistributionallyRobustUCB(small_model(), 2.0, CONTEXTS, GEN)(X)
    )


@pytest.mark.parametrize("step", [0.0, -0.1])
def test_the_finite_difference_needs_a_step(step: float) -> None:
    with pytest.raises(InputDataError, match="`step` must"):
        FiniteDifferenceUCB(small_model(), 2.0, CONTEXTS, GEN, step=step)


def test_the_finite_difference_takes_the_enlarged_bounds():
    """As if the width were that of the enlarged bound."""
    acqf = FiniteDifferenceUCB(
        small_model(), 2.0, CONTEXTS, GEN, step=0.1, misspecification=0.1
    )
    width = acqf.confidence_width()
    assert width > 1.1 * 2.0**0.5
    wider = FiniteDifferenceUCB(small_model(), width.square(), CONTEXTS, GEN, step=0.1)
    torch.testing.assert_close(acqf(X), wider(X))


def test_an_enlarged_bound_of_beta_zero_is_not_the_mean():
    """The width is then the enlargement alone, in values, ranking and slopes."""
    enlarged, plain = (
        DistributionallyRobustUCB(
            small_model(), 0.0, CONTEXTS, GEN, misspecification=misspecification
        )
        for misspecification in (0.1, 0.0)
    )
    width = enlarged.confidence_width()
    as_wide = DistributionallyRobustUCB(small_model(), width.square(), CONTEXTS, GEN)
    torch.testing.assert_close(enlarged(X), as_wide(X))
    assert width > 0.1 and not torch.allclose(enlarged(X), plain(X))
