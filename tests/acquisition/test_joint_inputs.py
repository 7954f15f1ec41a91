"""BoTorch's utilities that speak of decision and context together."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import (
    FixedFeatureAcquisitionFunction,
    ProximalAcquisitionFunction,
    UpperConfidenceBound,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed
from botorch.optim.initializers import sample_points_around_best
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    OverJointInputs,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT, small_model, uniform

RO = UncertaintyObjective.ro()
X_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
BOUNDS = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], dtype=torch.double)
COLUMNS = [0, 2]  # of the decision: the context stands in the middle
EFFORT = {"num_restarts": 2, "raw_samples": 16}


def contexts() -> ContextSet:
    return ContextSet.empirical(uniform(5, 1, seed=2))


ANALYTIC = {
    "dr_ucb": lambda **o: DistributionallyRobustUCB(
        small_model(), 2.0, contexts(), RO, **o
    ),
    "lipschitz": lambda **o: LipschitzPenalizedUCB(
        small_model(), 2.0, contexts(), 0.1, UNIT, **o
    ),
    "enlarged": lambda **o: EnlargedConfidenceUCB(
        small_model(), 2.0, 0.02, contexts(), RO, **o
    ),
    "difference": lambda **o: FiniteDifferenceUCB(
        small_model(),
        2.0,
        contexts(),
        UncertaintyObjective.gen(TotalVariation(0.4)),
        step=0.1,
        **o,
    ),
}
ALL = ANALYTIC | {
    "qucb": lambda **o: qDistributionallyRobustUCB(
        small_model(), 2.0, contexts(), RO, num_paths=8, num_features=32, seed=0, **o
    ),
    "thompson": lambda **o: RobustThompsonSampling(
        small_model(), contexts(), RO, num_features=64, seed=0, **o
    ),
}
WITH_PENDING = {name: make for name, make in ALL.items() if name != "thompson"}


def over(make, **options) -> OverJointInputs:
    return OverJointInputs(make(context_indices=[1], **options))


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_reads_the_decision_columns(make):
    acqf, Z = over(make), uniform(4, 1, 3, seed=3).requires_grad_()
    plain = make(context_indices=[1])
    assert torch.equal(acqf(Z), plain(Z[..., COLUMNS]))
    (gradient,) = torch.autograd.grad(acqf(Z).sum(), Z)
    assert (gradient[..., 1] == 0).all() and (gradient[..., COLUMNS] != 0).any()
    assert acqf(Z.detach()[0]).shape == (1,)
    assert acqf.model is acqf.acq_function.model and acqf.X_pending is None


@pytest.mark.parametrize("make", WITH_PENDING.values(), ids=WITH_PENDING)
def test_forwards_pending_decisions(make):
    acqf, Z, P = over(make), uniform(4, 1, 3, seed=3), uniform(2, 3, seed=4)
    expected = make(context_indices=[1], X_pending=P[:, COLUMNS])(Z[..., COLUMNS])
    for pending in (P, P[:, COLUMNS], P.unsqueeze(0)):
        acqf.X_pending = None
        acqf.X_pending = pending
        torch.testing.assert_close(acqf(Z), expected)
        assert torch.equal(acqf.X_pending[:, COLUMNS], P[:, COLUMNS])
        assert acqf.X_pending.shape == (2, 3)
    acqf.set_X_pending(acqf.X_pending)  # as BoTorch's optimisers give it back
    torch.testing.assert_close(acqf(Z), expected)


def test_bad_input():
    acqf = over(ALL["dr_ucb"])
    with pytest.raises(BotorchTensorDimensionError, match="3 columns, decisions and"):
        acqf(uniform(4, 1, 2))
    with pytest.raises(BotorchTensorDimensionError, match="X_pending"):
        acqf.X_pending = uniform(2, 4)
    with pytest.raises(UnsupportedError, match="UpperConfidenceBound"):
        OverJointInputs(UpperConfidenceBound(small_model(), 2.0))
    with pytest.raises(UnsupportedError, match="redraw"):
        over(ALL["thompson"]).X_pending = uniform(2, 3)


def test_a_cast_leaves_the_model_as_it_is():
    acqf, Z = over(ALL["dr_ucb"]), uniform(4, 1, 3, seed=3)
    before = acqf(Z)
    value = acqf.float()(Z.float())
    assert value.dtype == torch.float
    assert acqf.model.train_targets.dtype == torch.double
    torch.testing.assert_close(value.double(), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_proximal_weighting(make):
    acqf, Z = over(make), uniform(4, 1, 3, seed=3)
    weights = torch.tensor([0.3, 2.0, 0.5], dtype=torch.double)
    proximal = ProximalAcquisitionFunction(
        acqf, weights, transformed_weighting=False, beta=1.0
    )
    last = uniform(10, 3, seed=1)[-1]
    distance = ((Z.squeeze(1) - last) / weights).square().sum(-1)
    positive = torch.nn.functional.softplus(acqf(Z))
    torch.testing.assert_close(proximal(Z), positive * (-distance / 2).exp())


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_sampling_around_the_best_rows(make):
    points = sample_points_around_best(
        over(make), n_discrete_points=6, sigma=1e-3, bounds=BOUNDS
    )
    rows = uniform(10, 3, seed=1)
    best = rows[small_model().posterior(rows).mean.argmax()]
    assert points.shape == (6, 3) and (points - best).abs().max() < 0.01


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_maximised_in_the_joint_space(make):
    """With the context fixed, and starts sampled around the best rows."""
    acqf = over(make)
    z, value = optimize_acqf(
        acqf,
        BOUNDS,
        q=1,
        fixed_features={1: 0.3},
        options={"sample_around_best": True},
        **EFFORT,
    )
    assert z[0, 1] == 0.3
    _, alone = optimize_acqf(make(context_indices=[1]), X_BOUNDS, q=1, **EFFORT)
    torch.testing.assert_close(value, alone, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", WITH_PENDING.values(), ids=WITH_PENDING)
def test_one_after_another_in_the_joint_space(make):
    acqf, P = over(make), uniform(1, 3, seed=4)
    acqf.X_pending = P
    given = acqf.X_pending
    z, _ = optimize_acqf(acqf, BOUNDS, q=2, sequential=True, **EFFORT)
    assert z.shape == (2, 3)
    assert torch.equal(acqf.X_pending, given)


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_fixed_features(make):
    Z = uniform(4, 1, 3, seed=3)
    fixed = FixedFeatureAcquisitionFunction(over(make), 3, [1, 2], [0.3, 0.7])
    at = torch.cat([Z[..., :1], torch.full_like(Z[..., :1], 0.7)], dim=-1)
    torch.testing.assert_close(fixed(Z[..., :1]), make(context_indices=[1])(at))


@pytest.mark.parametrize("make", WITH_PENDING.values(), ids=WITH_PENDING)
def test_pending_through_fixed_features(make):
    fixed = FixedFeatureAcquisitionFunction(over(make), 3, [1, 2], [0.3, 0.7])
    fixed.X_pending = torch.tensor([[0.4]], dtype=torch.double)
    known = torch.tensor([[0.4, 0.7]], dtype=torch.double)
    assert torch.equal(fixed.acq_func.acq_function.X_pending, known)
    assert fixed.X_pending.shape == (1, 3)


def value_of_batch(make, X, given=None):
    """Decision by decision, each with a new acquisition function."""
    total = 0.0
    for number, x in enumerate(X):
        earlier = X[:number] if given is None else torch.cat([given, X[:number]])
        pending = earlier if len(earlier) else None
        total += make(X_pending=pending)(x.unsqueeze(0)).item()
    return total


@pytest.mark.parametrize("given", [None, uniform(2, 2, seed=6)], ids=["", "pending"])
@pytest.mark.parametrize("make", ANALYTIC.values(), ids=ANALYTIC)
def test_the_value_of_a_batch_is_that_of_each_after_the_others(make, given):
    acqf, X = make(X_pending=given), uniform(3, 2, seed=5)
    value = acqf(X)
    assert value.shape == (1,)
    assert value.item() == pytest.approx(value_of_batch(make, X, given), rel=1e-6)
    assert acqf.X_pending is given or torch.equal(acqf.X_pending, given)
    assert acqf(X[:1]).item() == pytest.approx(value_of_batch(make, X[:1], given))


def test_several_batches_and_gradients_are_refused():
    acqf, X = ANALYTIC["dr_ucb"](), uniform(3, 2, seed=5)
    with pytest.raises(UnsupportedError, match="sequential=True"):
        acqf(X.expand(4, 3, 2))
    with pytest.raises(UnsupportedError, match="sequential=True"):
        acqf(X.clone().requires_grad_())
    with pytest.raises(UnsupportedError, match="sequential=True"):
        acqf(X[:0])
    with pytest.raises(UnsupportedError, match="sequential=True"):
        optimize_acqf(acqf, X_BOUNDS, q=3, **EFFORT)
    assert acqf.X_pending is None


@pytest.mark.parametrize("make", ANALYTIC.values(), ids=ANALYTIC)
def test_mixed_batches(make):
    acqf = make()
    X, value = optimize_acqf_mixed(
        acqf, X_BOUNDS, q=2, fixed_features_list=[{0: 0.2}, {0: 0.8}], **EFFORT
    )
    assert X.shape == (2, 2) and bool(((X[:, 0] == 0.2) | (X[:, 0] == 0.8)).all())
    assert value.item() == pytest.approx(value_of_batch(make, X), rel=1e-6)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("make", [ANALYTIC["dr_ucb"], WITH_PENDING["qucb"]])
def test_mixed_alternating_in_the_joint_space(make, q):
    acqf = over(make)
    z, value = optimize_acqf_mixed_alternating(
        acqf,
        BOUNDS,
        discrete_dims={0: [0.0, 0.5, 1.0]},
        fixed_features={1: 0.3},
        q=q,
        **EFFORT,
    )
    assert z.shape == (q, 3)
    assert set(z[:, 0].tolist()) <= {0.0, 0.5, 1.0}
    assert (z[:, 1] == 0.3).all()
    torch.testing.assert_close(value, acqf(z))


@pytest.mark.parametrize("make", ANALYTIC.values(), ids=ANALYTIC)
def test_discrete_batches(make):
    choices = uniform(12, 2, seed=7)
    X, values = optimize_acqf_discrete(make(), q=2, choices=choices)
    assert values.sum().item() == pytest.approx(value_of_batch(make, X), rel=1e-6)
