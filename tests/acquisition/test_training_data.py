"""Other training data in the model count at the next call, in every class.

What a value should be is that of a model which was built on the other data from the
start; or BoTorch's own posterior.
"""

from __future__ import annotations

import copy
import math
import pickle
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from benchmarks.experiments.improvement import PlainExpectedImprovement
from botorch_drbo import ContextSet, _device
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FeasibilityWeighted,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    OverJointInputs,
    RobustFeasibility,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.freshness import Snapshot, TrainingData
from botorch_drbo.posterior.wrapped import with_perturbation
from tests.models import UNIT, ensemble, known_model, uniform

BETA, BALL = 2.25, TotalVariation(0.3)
SO, DRO = UncertaintyObjective.so(), UncertaintyObjective.dro(BALL)
X = uniform(4, 1, 2, seed=4)
PENDING = uniform(2, 2, seed=5)
PATHS = {"num_paths": 8, "num_features": 32, "seed": 3}


class Data(NamedTuple):
    Z: Tensor
    Y: Tensor
    Yvar: Tensor


def data(t: int = 10, seed: int = 1) -> Data:
    Z = uniform(t, 3, seed=seed)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:]
    return Data(Z, Y, 0.01 + 0.02 * Z[:, :1])


def gp(known: Data) -> SingleTaskGP:
    """Without transforms: what it is given is what it holds."""
    Z, Y, Yvar = (part.clone() for part in known)
    return known_model(Z, Y, normalise=False, train_Yvar=Yvar, outcome_transform=None)


def contexts(n: int) -> ContextSet:
    return ContextSet.empirical(uniform(n, 1, seed=2))


def dr_ucb(model: Model, method: str, **options) -> DistributionallyRobustUCB:
    points = contexts(200 if method == "product" else 5)
    return DistributionallyRobustUCB(model, BETA, points, DRO, method=method, **options)


def feasible(model: Model) -> RobustFeasibility:
    return RobustFeasibility(model, contexts(5), BALL)


def weighted(model: Model, constraint: Model) -> FeasibilityWeighted:
    base = DistributionallyRobustUCB(model, BETA, contexts(5), DRO)
    return FeasibilityWeighted(base, feasible(constraint), reference=-0.5)


MAKERS: dict[str, Callable[[Model], AcquisitionFunction]] = {
    "product": lambda m: dr_ucb(m, "product"),
    "exact": lambda m: dr_ucb(m, "exact"),
    "generic": lambda m: dr_ucb(m, "generic"),
    "product, pending": lambda m: dr_ucb(m, "product", X_pending=PENDING),
    "exact, pending": lambda m: dr_ucb(m, "exact", X_pending=PENDING),
    "generic, pending": lambda m: dr_ucb(m, "generic", X_pending=PENDING),
    "penalised": lambda m: LipschitzPenalizedUCB(m, BETA, contexts(60), 0.1, UNIT),
    "penalised, misspecified": lambda m: LipschitzPenalizedUCB(
        m, BETA, contexts(5), 0.1, UNIT, misspecification=0.02
    ),
    "finite difference": lambda m: FiniteDifferenceUCB(
        m, BETA, contexts(5), UncertaintyObjective.gen(BALL), step=0.1
    ),
    "enlarged": lambda m: EnlargedConfidenceUCB(m, BETA, 0.02, contexts(5), DRO),
    "batch": lambda m: qDistributionallyRobustUCB(m, BETA, contexts(5), DRO, **PATHS),
    "batch, pending": lambda m: qDistributionallyRobustUCB(
        m, BETA, contexts(5), DRO, X_pending=PENDING, **PATHS
    ),
    "improvement": lambda m: PlainExpectedImprovement(
        m, -0.5, contexts(5), DRO, **PATHS
    ),
    "log improvement": lambda m: qLogDistributionallyRobustNoisyExpectedImprovement(
        m, uniform(6, 2, seed=7), contexts(5), DRO, **PATHS
    ),
    "feasibility": feasible,
    "feasibility of a list": lambda m: feasible(ModelListGP(gp(data(seed=9)), m)),
    "weighted by what does not change": lambda m: weighted(m, gp(data(seed=9))),
    "weighted by what changes": lambda m: weighted(gp(data(seed=9)), m),
    "weighted by a list": lambda m: weighted(m, ModelListGP(gp(data(seed=9)), m)),
    "over joint inputs": lambda m: OverJointInputs(dr_ucb(m, "exact")),
}


def joint(acqf: AcquisitionFunction) -> Tensor:
    if not isinstance(acqf, OverJointInputs):
        return X
    return torch.cat([X, X.new_zeros(len(X), 1, 1)], dim=-1)


def other_targets(model: SingleTaskGP, old: Data) -> Data:
    model.set_train_data(targets=old.Y.squeeze(-1).flip(0))
    return old._replace(Y=old.Y.flip(0))


def more_rows(model: SingleTaskGP, old: Data) -> Data:
    new = data(t=14, seed=6)
    model.set_train_data(new.Z, new.Y.squeeze(-1), strict=False)
    model.likelihood.noise_covar.noise = new.Yvar.squeeze(-1)
    return new


def targets_in_place(model: SingleTaskGP, old: Data) -> Data:
    model.train_targets.mul_(-2.0)
    return old._replace(Y=-2.0 * old.Y)


def targets_behind_autograd(model: SingleTaskGP, old: Data) -> Data:
    model.train_targets.data[3] = 4.0  # no version counts it
    Y = old.Y.clone()
    Y[3] = 4.0
    return old._replace(Y=Y)


def targets_by_numpy(model: SingleTaskGP, old: Data) -> Data:
    model.train_targets.numpy()[:2] = 3.0
    Y = old.Y.clone()
    Y[:2] = 3.0
    return old._replace(Y=Y)


def inputs_in_place(model: SingleTaskGP, old: Data) -> Data:
    (inputs,) = model.train_inputs
    inputs[:, 0].mul_(0.3)
    Z = old.Z.clone()
    Z[:, 0] *= 0.3
    return old._replace(Z=Z)


def noise_in_place(model: SingleTaskGP, old: Data) -> Data:
    model.likelihood.noise_covar.noise.mul_(30.0)
    return old._replace(Yvar=30.0 * old.Yvar)


def while_it_trains(model: SingleTaskGP, old: Data) -> Data:
    model.train()
    return other_targets(model, old)


def loaded(model: SingleTaskGP, old: Data) -> Data:
    """The data are no part of the state, which brings nothing back."""
    new = other_targets(model, old)
    model.load_state_dict(gp(old).state_dict())
    return new


CHANGES = [
    other_targets,
    more_rows,
    targets_in_place,
    targets_behind_autograd,
    targets_by_numpy,
    inputs_in_place,
    noise_in_place,
    while_it_trains,
    loaded,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", MAKERS)
def test_other_data_count_at_the_next_call(name, change):
    make, model = MAKERS[name], gp(data())
    acqf = make(model)
    before = acqf(joint(acqf))
    new = change(model, data())
    now = make(gp(new))(joint(acqf))
    assert (now - before).abs().max() > 1e-3
    torch.testing.assert_close(acqf(joint(acqf)), now, rtol=1e-7, atol=1e-9)
    assert torch.equal(acqf(joint(acqf)), acqf(joint(acqf)))


@pytest.mark.parametrize("change", CHANGES)
def test_other_data_count_in_whatever_can_be_asked(change):
    model, rows = gp(data()), X.squeeze(-2)
    options = {"misspecification": 0.02, "X_pending": PENDING}

    def asked(model: Model) -> list[Callable[[], Tensor]]:
        """Each from an object of its own, so that none can help another."""

        def make() -> LipschitzPenalizedUCB:
            return LipschitzPenalizedUCB(model, BETA, contexts(5), 0.1, UNIT, **options)

        def robust() -> DistributionallyRobustUCB:
            return dr_ucb(model, "exact", **options)

        functions = [
            lambda acqf: acqf.scores(rows),
            lambda acqf: acqf.confidence_width(),
            lambda acqf: acqf.ranking(X),
            lambda acqf: acqf.view.at(rows).moments()[1],
            lambda acqf: acqf.observed_view.at(rows).moments()[0],
            lambda acqf: acqf.bound.width,
        ]
        pairs = [(f, made()) for f in functions for made in (make, robust)]
        pairs.append((lambda acqf: acqf.lipschitz_constant(rows), make()))
        pairs.append((lambda acqf: acqf.robust_value(rows).value, robust()))
        limit = feasible(model)
        pairs.append((lambda acqf: acqf.probability(rows), limit))
        pairs.append((lambda acqf: acqf.probabilities(rows), feasible(model)))
        return [lambda f=f, acqf=acqf: f(acqf) for f, acqf in pairs]

    with torch.no_grad():
        functions = asked(model)
        for function in functions:
            function()
        new = change(model, data())
        for function, expected in zip(functions, asked(gp(new)), strict=True):
            torch.testing.assert_close(function(), expected(), rtol=1e-7, atol=1e-9)


def expected(model: Model, points: Tensor) -> Tensor:
    """The expectation of the bound from BoTorch's posterior, caches left behind."""
    model = copy.deepcopy(model)
    model.prediction_strategy = None
    b, n = len(X), len(points)
    at = torch.cat([X.expand(b, n, 2), points.expand(b, n, 1)], dim=-1)
    posterior = model.posterior(at.reshape(-1, 1, 3))
    scores = posterior.mean + math.sqrt(BETA) * posterior.variance.sqrt()
    return scores.reshape(b, n, -1).mean(1).mean(-1).detach()


def expectation(model: Model, method: str) -> DistributionallyRobustUCB:
    points = contexts(200 if method == "product" else 5)
    return DistributionallyRobustUCB(model, BETA, points, SO, method=method)


@pytest.mark.parametrize("method", ["product", "exact", "generic"])
@pytest.mark.parametrize("training", [False, True])
def test_behind_transforms_it_is_what_botorch_says(method, training):
    """The inputs of a model in evaluation mode are transformed, in BoTorch too."""
    Z, Y, _ = data()
    model = known_model(20 * Z, 100 + 7 * Y, lengthscale=0.6)
    acqf = expectation(model, method)
    points = acqf.context_set.points
    before = acqf(X)
    model.train(training)
    model.set_train_data(targets=torch.linspace(-1, 1, 10).double())
    now = expected(model, points)
    assert (now - before).abs().max() > 1e-3
    torch.testing.assert_close(acqf(X), now, rtol=1e-6, atol=1e-8)
    model.train(training)
    model.set_train_data(Z[:6] / 3, torch.linspace(1, -1, 6).double(), strict=False)
    again = expected(model, points)
    assert (again - now).abs().max() > 1e-3
    torch.testing.assert_close(acqf(X), again, rtol=1e-6, atol=1e-8)


def test_an_ensemble_follows():
    Z, Y, _ = data()
    model = ensemble(Z, Y)
    acqf = expectation(model, "auto")
    before = acqf(X)
    model.train_targets.mul_(-1.0)
    model.prediction_strategy = None
    now = expected(model, acqf.context_set.points)
    assert (now - before).abs().max() > 1e-3
    torch.testing.assert_close(acqf(X), now, rtol=1e-6, atol=1e-8)


def test_only_one_member_of_a_list_has_other_data():
    first, second = gp(data()), gp(data(seed=9))
    acqf = feasible(ModelListGP(first, second))
    acqf(X)
    second.set_train_data(targets=-second.train_targets)
    again = feasible(
        ModelListGP(gp(data()), gp(data(seed=9)._replace(Y=-data(seed=9).Y)))
    )
    torch.testing.assert_close(acqf(X), again(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("normalise", [False, True])
def test_a_conditioned_model_leaves_its_parent_alone_and_has_data_of_its_own(normalise):
    Z, Y, _ = data()
    model = known_model(Z, Y, normalise=normalise)
    acqf = expectation(model, "exact")
    before, posterior = acqf(X), acqf.posterior
    model.posterior(Z)
    child = model.condition_on_observations(*data(t=3, seed=8)[:2])
    torch.testing.assert_close(acqf(X), before)
    assert acqf.posterior is posterior
    acqf = expectation(child, "exact")
    before = acqf(X)
    torch.testing.assert_close(
        before, expected(child, acqf.context_set.points), rtol=1e-6, atol=1e-8
    )
    child.set_train_data(targets=-child.train_targets)
    now = expected(child, acqf.context_set.points)
    assert (now - before).abs().max() > 1e-3
    torch.testing.assert_close(acqf(X), now, rtol=1e-6, atol=1e-8)


def thompson(model: Model) -> RobustThompsonSampling:
    return RobustThompsonSampling(model, contexts(5), DRO, seed=3)


@pytest.mark.parametrize("change", [c for c in CHANGES if c is not noise_in_place])
def test_thompson_sampling_refuses_until_it_draws_again(change):
    model = gp(data())
    acqf = thompson(model)
    acqf(X)
    new = change(model, data())
    with pytest.raises(UnsupportedError, match=r"training data .* `redraw\(\)`"):
        acqf(X)
    acqf.redraw(3)
    torch.testing.assert_close(acqf(X), thompson(gp(new))(X), rtol=1e-6, atol=1e-8)


def test_a_copy_of_thompson_sampling_has_the_same_data():
    acqf = thompson(known_model(*data()[:2]))
    for other in (copy.deepcopy(acqf), pickle.loads(pickle.dumps(acqf))):
        assert torch.equal(other(X), acqf(X))
        other.model.train_targets.mul_(2.0)
        with pytest.raises(UnsupportedError, match="training data"):
            other(X)
    acqf(X)


@pytest.mark.parametrize("on_cpu", [True, False])
def test_a_change_of_the_mode_is_none_of_the_data(on_cpu, monkeypatch):
    model = known_model(*data()[:2])
    if not on_cpu:  # as for a tensor on a GPU, where values are not read at each call
        monkeypatch.setattr(_device, "on_cpu", lambda tensor: False)
    known = TrainingData(model)
    for mode in (True, False, True, False):
        assert known.same()
        model.train(mode)
    assert known.same()
    model.set_train_data(targets=model.train_targets.clone())
    assert known.same()  # what counts are values
    model.train_targets.add_(1.0)
    assert not known.same()
    known = TrainingData(model)
    model.train()
    model.set_train_data(2 * data().Z)
    assert not known.same()


@pytest.mark.parametrize("change", [other_targets, more_rows, targets_in_place])
def test_other_data_are_noticed_where_values_are_not_read(change, monkeypatch):
    monkeypatch.setattr(_device, "on_cpu", lambda tensor: False)
    model = gp(data())
    snapshot, known = Snapshot(model), TrainingData(model)
    assert snapshot.same() and known.same()
    change(model, data())
    assert not snapshot.same() and not known.same()
    assert not known.same()  # to look does not make it so


def test_a_model_without_data_can_be_given_some():
    model = gp(data())
    model.train_inputs = model.train_targets = None
    known = TrainingData(model)
    assert known.same()
    model.set_train_data(data().Z, data().Y.squeeze(-1), strict=False)
    assert not known.same()


def test_looking_at_the_data_takes_microseconds():
    known = TrainingData(ModelListGP(*[gp(data(t=200, seed=s)) for s in range(3)]))
    times = []
    for _ in range(200):
        start = time.perf_counter()
        assert known.same()
        times.append(time.perf_counter() - start)
    assert min(times) < 200e-6  # 15 where nothing else runs


def test_a_perturbation_is_put_on_the_data_that_the_model_has_now():
    Z, Y, _ = data()
    model = known_model(Z[:, :2], Y)
    model.train()
    new = uniform(6, 2, seed=7)
    model.set_train_data(new, Y[:6].squeeze(-1), strict=False)
    perturbed = with_perturbation(model)
    at = uniform(5, 2, seed=8)
    torch.testing.assert_close(
        perturbed.posterior(torch.cat([at, torch.zeros_like(at)], -1)).mean,
        model.posterior(at).mean,
    )
