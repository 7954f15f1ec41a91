"""Changed hyper-parameters, buffers, noise and misspecification count at once."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    LipschitzPenalizedUCB,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.freshness import Snapshot
from tests.models import UNIT, known_model, uniform

BETA = 2.25
SO = UncertaintyObjective.so()


X = uniform(4, 1, 2, seed=4)


def gp(scale: float = 1.0, *, given_noise: bool = False) -> SingleTaskGP:
    Z = scale * uniform(10, 3, seed=1)
    Y = 5 * scale + scale * (5 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:]
    noise = torch.full_like(Y, 0.02) if given_noise else None
    return known_model(Z, Y, lengthscale=0.5 * scale, train_Yvar=noise)


def contexts(n: int) -> ContextSet:
    return ContextSet.empirical(uniform(n, 1, seed=2))


def dr_ucb(model, path, **options):
    n = 200 if path == "product" else 5
    return DistributionallyRobustUCB(
        model, BETA, contexts(n), SO, method=path, **options
    )


def expected(model, points, sign: float = 1.0) -> torch.Tensor:
    """From BoTorch's posterior, with GPyTorch's caches left behind."""
    model = copy.deepcopy(model)
    model.prediction_strategy = None
    b, n = len(X), len(points)
    joint = torch.cat([X.expand(b, n, 2), points.expand(b, n, 1)], dim=-1)
    posterior = model.posterior(joint.reshape(-1, 1, 3))
    mean, sigma = posterior.mean, posterior.variance.sqrt()
    scores = sign * mean + math.sqrt(BETA) * sigma
    return scores.reshape(b, n).mean(-1).detach()


def fill(tensor: torch.Tensor, factor: float) -> None:
    with torch.no_grad():
        tensor.mul_(factor)


def replace_noise(model) -> None:
    covar = model.likelihood.noise_covar
    covar.noise = 30 * covar.noise


CHANGES = {
    "hyper-parameter": lambda m: m.covar_module.initialize(lengthscale=0.9),
    "loaded": lambda m: m.load_state_dict(gp(2.0).state_dict()),
    "loaded with transforms": lambda m: m.load_state_dict(
        gp(2.0).state_dict(), keep_transforms=False
    ),
    "scale of y": lambda m: fill(m.outcome_transform.stdvs, 3.0),
    "shift of y": lambda m: fill(m.outcome_transform.means, 3.0),
    "scale of z": lambda m: fill(m.input_transform._coefficient, 1.3),
    "input transform": lambda m: setattr(
        m, "input_transform", copy.deepcopy(gp(2.0).input_transform)
    ),
}
NOISE = {
    "noise in place": lambda m: fill(m.likelihood.noise_covar.noise, 30.0),
    "noise behind autograd's back": lambda m: fill(
        m.likelihood.noise_covar.noise.data, 30.0
    ),
    "noise replaced": replace_noise,
}


@pytest.mark.parametrize("path", ["product", "exact", "generic"])
@pytest.mark.parametrize("change", [*CHANGES, *NOISE])
def test_a_changed_model_is_noticed(path, change):
    model = gp(given_noise=change in NOISE)
    acqf = dr_ucb(model, path)
    before = acqf(X)
    points = acqf.context_set.points
    torch.testing.assert_close(before, expected(model, points), rtol=1e-6, atol=1e-8)
    (CHANGES | NOISE)[change](model)
    now = expected(model, points)
    assert (now - before).abs().max() > 1e-3
    torch.testing.assert_close(acqf(X), now, rtol=1e-6, atol=1e-8)
    with torch.no_grad():
        scores = acqf.scores(X.squeeze(1))
    torch.testing.assert_close(scores.mean(-1), now, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("change", [*CHANGES, *NOISE])
def test_a_changed_model_counts_in_the_penalty(change):
    model = gp(given_noise=change in NOISE)
    acqf = LipschitzPenalizedUCB(model, BETA, contexts(60), 0.1, UNIT)
    before, steepest = acqf(X), acqf.lipschitz_constant(X.squeeze(1))
    (CHANGES | NOISE)[change](model)
    again = LipschitzPenalizedUCB(
        copy.deepcopy(model), BETA, contexts(60), 0.1, UNIT, lipschitz=acqf.lipschitz
    )
    found = acqf.lipschitz_constant(X.squeeze(1))
    torch.testing.assert_close(found, again.lipschitz_constant(X.squeeze(1)))
    torch.testing.assert_close(acqf(X), again(X))
    assert not torch.allclose(acqf(X), before)
    if change != "shift of y":  # a shift has no slope
        assert not torch.allclose(found, steepest)


@pytest.mark.parametrize("path", ["product", "exact", "generic"])
def test_a_changed_posterior_transform_is_noticed(path):
    negate = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
    model = gp()
    acqf = dr_ucb(model, path, posterior_transform=negate)
    points = acqf.context_set.points
    torch.testing.assert_close(
        acqf(X), expected(model, points, sign=-1.0), rtol=1e-6, atol=1e-8
    )
    negate.weights.neg_()
    torch.testing.assert_close(acqf(X), expected(model, points), rtol=1e-6, atol=1e-8)


def test_pending_decisions_follow_the_model():
    model, P = gp(), uniform(2, 2, seed=5)
    acqf = dr_ucb(model, "exact", X_pending=P)
    acqf(X)
    model.covar_module.lengthscale = 0.9
    torch.testing.assert_close(acqf(X), dr_ucb(gp_of(model), "exact", X_pending=P)(X))


def gp_of(model):
    return copy.deepcopy(model)


def enlarged(model, misspecification, n=5):
    return EnlargedConfidenceUCB(model, BETA, misspecification, contexts(n), SO)


def width(model, misspecification: float, t: int = 10) -> float:
    """In the units of y: ``sqrt(beta) + eps sqrt(t) / noise``."""
    scale = model.outcome_transform.stdvs.square().squeeze()
    noise = model.likelihood.noise.reshape(-1)[0] * scale
    return math.sqrt(BETA) + misspecification * math.sqrt(t) / noise.sqrt().item()


@pytest.mark.parametrize("first", [0.0, 0.02])
@pytest.mark.parametrize("n", [5, 200])  # the exact and the product path
def test_misspecification_counts_at_once(first, n):
    model = gp()
    acqf = enlarged(model, first, n)
    before = acqf(X)
    acqf.misspecification.fill_(0.05)
    torch.testing.assert_close(acqf(X), enlarged(gp(), 0.05, n)(X))
    assert (acqf(X) > before).all()
    assert acqf.confidence_width().item() == pytest.approx(width(model, 0.05))
    acqf.misspecification = torch.tensor(0.1, dtype=torch.double)
    assert acqf.confidence_width().item() == pytest.approx(width(model, 0.1))
    acqf.misspecification.data.fill_(0.2)
    torch.testing.assert_close(acqf(X), enlarged(gp(), 0.2, n)(X))


def test_loaded_misspecification_and_beta_count_at_once():
    acqf, other = enlarged(gp(), 0.02), enlarged(gp(), 0.3)
    other.beta.fill_(9.0)
    acqf(X)
    acqf.load_state_dict(other.state_dict())
    torch.testing.assert_close(acqf(X), other(X))


def test_changed_noise_counts_in_misspecification():
    model = gp(given_noise=True)
    acqf = enlarged(model, 0.02)
    acqf(X)
    fill(model.likelihood.noise_covar.noise, 30.0)
    assert acqf.confidence_width().item() == pytest.approx(width(model, 0.02))
    torch.testing.assert_close(acqf(X), enlarged(gp_of(model), 0.02)(X))


def test_gradient_in_misspecification_can_be_taken_twice():
    acqf = enlarged(gp(), 0.02)
    acqf.misspecification.requires_grad_()
    first = torch.autograd.grad(acqf(X).sum(), acqf.misspecification)
    second = torch.autograd.grad(acqf(X).sum(), acqf.misspecification)
    assert torch.equal(first[0], second[0]) and first[0] > 0


@pytest.mark.parametrize("change", [*CHANGES, *NOISE])
def test_sample_paths_are_drawn_again(change):
    model = gp(given_noise=change in NOISE)
    options = {"num_paths": 8, "num_features": 32, "seed": 3}

    def make(model):
        return qDistributionallyRobustUCB(
            model, BETA, contexts(5), SO, X_pending=uniform(2, 2, seed=5), **options
        )

    acqf = make(model)
    before = acqf(X)
    (CHANGES | NOISE)[change](model)
    torch.testing.assert_close(acqf(X), make(gp_of(model))(X))
    assert not torch.allclose(acqf(X), before)
    assert torch.equal(acqf(X), acqf(X))


def test_a_thompson_path_stays_until_it_is_drawn_again():
    model = gp()
    acqf = RobustThompsonSampling(model, contexts(5), SO, seed=3)
    before = acqf(X)
    model.covar_module.lengthscale = 0.9
    assert torch.equal(acqf(X), before)
    acqf.redraw(3)
    assert not torch.allclose(acqf(X), before)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dr_ucb(gp(), "product"),
        lambda: dr_ucb(gp(), "exact"),
        lambda: LipschitzPenalizedUCB(gp(), BETA, contexts(60), 0.1, UNIT),
        lambda: LipschitzPenalizedUCB(gp(), BETA, contexts(5), 0.1, UNIT),
        lambda: enlarged(gp(), 0.02),
    ],
)
def test_compared_once_in_each_call(make, monkeypatch):
    acqf, calls, same = make(), [], Snapshot.same
    monkeypatch.setattr(Snapshot, "same", lambda self: calls.append(1) or same(self))
    acqf(X)
    assert len(calls) == 1


def test_nothing_is_computed_again_without_a_change():
    acqf = dr_ucb(gp(), "exact")
    posterior = acqf.posterior
    acqf.beta.fill_(4.0)
    acqf(X)
    acqf.model.train()
    acqf(X)
    assert acqf.posterior is posterior


def test_a_posterior_of_the_model_is_no_change():
    acqf = dr_ucb(gp(), "exact")
    posterior = acqf.posterior
    acqf.model.posterior(uniform(2, 3, seed=6))  # its transform holds new tensors now
    acqf(X)
    assert acqf.posterior is posterior


def test_snapshot_knows_a_tensor_by_its_memory():
    holder = torch.nn.Module()
    holder.register_buffer("buffer", torch.arange(4.0))
    snapshot = Snapshot(holder)
    holder.buffer = holder.buffer.detach()
    assert snapshot.same()
    holder.buffer[0] = 7.0  # seen through the new tensor as well
    assert not snapshot.same()
    for other in (holder.buffer[:2], holder.buffer.view(2, 2), holder.buffer.flip(0)):
        snapshot = Snapshot(holder)
        holder.buffer = other
        assert not snapshot.same()
    snapshot = Snapshot(holder)
    holder.buffer = holder.buffer.view(torch.int32)
    assert not snapshot.same()


def test_snapshot_sees_whatever_is_held():
    holder = torch.nn.Module()
    holder.register_buffer("nan", torch.tensor([math.nan, 1.0]))
    holder.register_buffer("spread", torch.ones(1).expand(3))
    holder.register_buffer("short", torch.ones(2, dtype=torch.float16))
    holder.plain = torch.zeros(2)
    snapshot = Snapshot(holder)
    assert snapshot.same()
    holder.short[0] = 2.0
    assert not snapshot.same()
    snapshot = Snapshot(holder)
    holder.plain[1] = 1.0
    assert not snapshot.same()
    snapshot = Snapshot(holder)
    holder.nan.data = holder.nan.data.clone()  # other memory
    assert not snapshot.same()
    snapshot = Snapshot(holder)
    holder.register_buffer("new", torch.zeros(1))
    assert not snapshot.same()
    assert not copy.deepcopy(Snapshot(holder)).same()  # a copy knows other tensors
