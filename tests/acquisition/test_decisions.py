"""Pending decisions and casts, for all acquisition functions."""

from __future__ import annotations

import copy

import pytest
import torch
from botorch.acquisition import FixedFeatureAcquisitionFunction
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT, small_model, uniform

RO = UncertaintyObjective.ro()
DRO = UncertaintyObjective.gen(TotalVariation(0.4))
FEW = {"num_paths": 8, "num_features": 32, "seed": 0}


def contexts(n: int = 5) -> ContextSet:
    return ContextSet.empirical(uniform(n, 1, seed=2))


def dr_ucb(model, n=5, **options):
    return DistributionallyRobustUCB(model, 2.0, contexts(n), RO, **options)


def lipschitz(model, n=5, **options):
    return LipschitzPenalizedUCB(model, 2.0, contexts(n), 0.1, UNIT, **options)


ANALYTIC = {
    "dr_ucb": dr_ucb,
    "many_contexts": lambda model, **o: dr_ucb(model, 200, **o),  # the product path
    "lipschitz": lipschitz,
    "many_slopes": lambda model, **o: lipschitz(model, 200, **o),
    "enlarged": lambda model, **o: EnlargedConfidenceUCB(
        model, 2.0, 0.02, contexts(), RO, **o
    ),
    "difference": lambda model, **o: FiniteDifferenceUCB(
        model, 2.0, contexts(), DRO, step=0.1, **o
    ),
}
MONTE_CARLO = {
    "qucb": lambda model, **o: qDistributionallyRobustUCB(
        model, 2.0, contexts(), RO, **FEW, **o
    ),
    "qlogei": lambda model, **o: qLogDistributionallyRobustNoisyExpectedImprovement(
        model, uniform(4, 2, seed=7), contexts(), RO, **FEW, **o
    ),
}
PENDING = ANALYTIC | MONTE_CARLO
ALL = PENDING | {
    "thompson": lambda model, **o: RobustThompsonSampling(
        model, contexts(), RO, num_features=64, seed=0, **o
    )
}


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING)
def test_assigned_pending_decisions_are_those_that_were_set(make):
    model, X, P = small_model(), uniform(4, 1, 2, seed=3), uniform(2, 2, seed=4)
    with_setter, assigned = make(model), make(model)
    plain = with_setter(X)
    with_setter.set_X_pending(P)
    assigned.X_pending = P
    assert torch.equal(assigned.X_pending, P)
    assert torch.equal(assigned(X), with_setter(X))
    assert not torch.equal(assigned(X), plain)
    assigned.X_pending = None
    assert assigned.X_pending is None
    torch.testing.assert_close(assigned(X), plain)


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING)
def test_pending_decisions_through_botorchs_fixed_features(make):
    model, X, P = small_model(), uniform(4, 1, 1, seed=3), uniform(2, 1, seed=4)
    fixed = FixedFeatureAcquisitionFunction(make(model), d=2, columns=[1], values=[0.3])
    fixed.set_X_pending(P)
    full = torch.cat([P, torch.full_like(P, 0.3)], dim=-1)
    assert torch.equal(fixed.X_pending, full)
    at = torch.cat([X, torch.full_like(X, 0.3)], dim=-1)
    torch.testing.assert_close(fixed(X), make(model, X_pending=full)(at))


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING)
def test_pending_decisions_of_one_t_batch(make):
    model, X, P = small_model(), uniform(4, 1, 2, seed=3), uniform(2, 2, seed=4)
    acqf = make(model)
    for shape in ((1, 2, 2), (1, 1, 2, 2)):
        acqf.X_pending = P.reshape(shape)
        assert torch.equal(acqf.X_pending, P)  # can be joined with candidates `q x d`
    assert torch.equal(acqf(X), make(model, X_pending=P)(X))
    acqf.X_pending = P[:0].unsqueeze(0)
    assert acqf.X_pending is None


@pytest.mark.parametrize("make", MONTE_CARLO.values(), ids=MONTE_CARLO)
def test_other_pending_decisions_for_each_t_batch(make):
    """As BoTorch's Monte Carlo acquisition functions take them."""
    model, X, P = small_model(), uniform(3, 2, 2, seed=3), uniform(3, 4, 2, seed=4)
    batched = make(model, X_pending=P)
    for x, pending, value in zip(X, P, batched(X), strict=True):
        torch.testing.assert_close(make(model, X_pending=pending)(x)[0], value)
    repeated = X.expand(5, 3, 2, 2)  # of more dimensions than there are pending ones
    torch.testing.assert_close(batched(repeated), batched(X).expand(5, 3))


@pytest.mark.parametrize("make", ANALYTIC.values(), ids=ANALYTIC)
def test_one_posterior_has_one_set_of_pending_decisions(make):
    with pytest.raises(BotorchTensorDimensionError, match="same decisions"):
        make(small_model()).X_pending = uniform(3, 2, 2)


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING)
def test_wrong_pending_decisions_change_nothing(make):
    acqf, P, X = make(small_model()), uniform(2, 2, seed=4), uniform(4, 1, 2)
    acqf.X_pending = P
    before = acqf(X)
    with pytest.raises(BotorchTensorDimensionError, match=r"X_pending.*2 columns"):
        acqf.X_pending = uniform(2, 3)
    with pytest.raises(InputDataError, match="X_pending"):
        acqf.X_pending = [[0.1, 0.2]]
    assert torch.equal(acqf.X_pending, P) and torch.equal(acqf(X), before)
    with pytest.warns(BotorchWarning, match="gradient"):
        acqf.X_pending = P.clone().requires_grad_()
    assert not acqf.X_pending.requires_grad


def test_thompson_sampling_refuses_assigned_pending_decisions():
    acqf = ALL["thompson"](small_model())
    acqf.X_pending = None
    with pytest.raises(UnsupportedError, match="redraw"):
        acqf.X_pending = uniform(2, 2)
    assert acqf.X_pending is None


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_a_cast_leaves_the_model_as_it_is(make):
    model = small_model()
    negate = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
    acqf, X = make(model, posterior_transform=negate), uniform(4, 1, 2, seed=3)
    before, targets = acqf(X), model.train_targets.clone()
    state = copy.deepcopy(model.state_dict())
    value = acqf.float()(X.float())
    assert value.dtype == torch.float
    torch.testing.assert_close(value.double(), before, rtol=1e-4, atol=1e-5)
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == state[name].dtype and torch.equal(tensor, state[name])
    assert model.train_targets.dtype == torch.double
    assert torch.equal(model.train_targets, targets)
    assert negate.weights.dtype == torch.double
    assert all(tensor.dtype == torch.double for tensor in model.train_inputs)
    torch.testing.assert_close(acqf(X), before, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(acqf.double()(X), before, rtol=1e-5, atol=1e-6)


def distances(n: int) -> torch.Tensor:
    points = contexts(n).points
    return torch.cdist(points, points)


SETS = {
    "none": lambda n: NoAmbiguity(),
    "simplex": lambda n: FullSimplex(),
    "total variation": lambda n: TotalVariation(0.3),
    "mmd": lambda n: MaximumMeanDiscrepancy(0.3, torch.exp(-distances(n))),
    "chi2": lambda n: ChiSquared(0.3),
    "modified chi2": lambda n: ModifiedChiSquared(0.3),
    "kl": lambda n: KullbackLeibler(0.3),
    "wasserstein": lambda n: Wasserstein(0.2, distances(n)),
    "cvar": lambda n: ConditionalValueAtRisk(0.5),
    "minimax": lambda n: MinimaxApproximation(TotalVariation(0.3)),
}


@pytest.mark.parametrize("name", SETS)
def test_a_cast_acquisition_function_still_takes_a_float64_model(name):
    objective = UncertaintyObjective.dro(SETS[name](5))
    acqf = DistributionallyRobustUCB(small_model(), 2.0, contexts(), objective)
    X = uniform(4, 1, 2, seed=3)
    before = acqf(X)
    after = acqf.float()(X.float()).double()
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)
    X.requires_grad_()
    (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
    assert torch.isfinite(gradient).all()
