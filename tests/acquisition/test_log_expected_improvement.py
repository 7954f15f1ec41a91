"""The expected improvement over sample paths, each with a bar of its own."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor
from torch.autograd import gradcheck

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    qLogDistributionallyRobustNoisyExpectedImprovement as LogNEI,
)
from botorch_drbo.ambiguity import CvxpyAmbiguity, TotalVariation, Wasserstein
from botorch_drbo.objectives import Objective, RobustSatisficing, UncertaintyObjective
from botorch_drbo.posterior.ensemble import ModelEnsemble

SO, RO = UncertaintyObjective.so(), UncertaintyObjective.ro()
DRO = UncertaintyObjective.dro(TotalVariation(0.6))
MANY = {"num_paths": 4096, "num_features": 64, "seed": 0}
FEW = {"num_paths": 8, "num_features": 64, "seed": 0}
POINTS = torch.tensor([[0.1], [0.5], [0.55], [0.9]], dtype=torch.double)
CONTEXTS = ContextSet(POINTS, torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.double))


def decisions(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 2, generator=generator, dtype=torch.double)


TRIED, X = decisions(5, 1), decisions(6, 3)


def gp(unit: float = 3.0) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(11)
    Z = torch.rand(15, 3, generator=generator, dtype=torch.double)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (6 * Z[:, 2:]).cos()
    model = SingleTaskGP(Z, 2 + unit * Y, input_transform=Normalize(3))
    model.covar_module.lengthscale = 0.4
    model.likelihood.noise = 1e-2
    return model


def make(objective: Objective = DRO, **options) -> LogNEI:
    settings = {"model": gp(), "X_baseline": TRIED, "context_set": CONTEXTS}
    return LogNEI(**(settings | FEW | options), objective=objective)


def by_hand(objective: Objective, f: Tensor) -> Tensor:
    """The expectation, the worst context, and total variation by moving mass."""
    weights = CONTEXTS.weights
    if objective is SO:
        return f @ weights
    if objective is RO:
        return f.amin(-1)
    order = f.argsort(dim=-1, descending=True)  # half the radius leaves the top
    mass = weights[order]
    taken = (0.3 - (mass.cumsum(-1) - mass)).clamp_min(0).minimum(mass)
    return ((mass - taken) * f.gather(-1, order)).sum(-1) + 0.3 * f.amin(-1)


@pytest.mark.parametrize("objective", [SO, RO, DRO], ids=["so", "ro", "dro"])
def test_is_the_mean_improvement_over_joint_samples(objective: Objective) -> None:
    both = torch.cat([X, TRIED])  # 11 x 2
    n = len(POINTS)
    Z = torch.cat([both[:, None].expand(-1, n, -1), POINTS.expand(11, n, 1)], dim=-1)
    sampler = SobolQMCNormalSampler(torch.Size([2**13]), seed=2)
    with torch.no_grad():
        samples = sampler(gp().posterior(Z.reshape(-1, 3))).reshape(-1, 11, n)
        values = by_hand(objective, samples)
        gain = (values[:, :6] - values[:, 6:].amax(-1, keepdim=True)).clamp_min(0.0)
        found = make(objective, **MANY)(X.unsqueeze(1)).exp()
    error = gain.std(0) / math.sqrt(4096)
    assert (gain.mean(0) > 0.005).any()
    assert ((found - gain.mean(0)).abs() <= 4 * error + 0.005).all()


def test_one_context_is_botorchs_log_noisy_expected_improvement() -> None:
    c = torch.tensor([0.3], dtype=torch.double)
    acqf = make(SO, context_set=ContextSet.fixed(c), **MANY)
    theirs = qLogNoisyExpectedImprovement(
        gp(),
        torch.cat([TRIED, c.expand(5, 1)], dim=-1),
        SobolQMCNormalSampler(torch.Size([2**12]), seed=1),
        prune_baseline=False,
    )
    joint = torch.cat([X, c.expand(6, 1)], dim=-1).unsqueeze(1)
    found, expected = acqf(X.unsqueeze(1)).exp(), theirs(joint).exp()
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.01)


class Unbounded(UncertaintyObjective):
    """The same objective, of which no bound is known."""

    def upper_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        return Objective.upper_bound(self, values, weights)


def test_what_cannot_improve_need_not_be_solved() -> None:
    ball = Wasserstein(0.2, torch.cdist(POINTS, POINTS))
    many = decisions(200, 5).unsqueeze(1)
    quick, full = make(UncertaintyObjective(ball)), make(Unbounded(ball))
    found, expected = quick(many), full(many)
    improves = expected > math.log(1e-9)  # some path does
    assert 20 < improves.sum() < 200
    assert torch.allclose(found[improves], expected[improves], rtol=0, atol=1e-6)
    assert (found[~improves] < math.log(1e-9)).all()


def test_a_decision_that_was_tried_improves_on_nothing() -> None:
    """On no path it exceeds the bar, of which it is a part; nor does it nearly."""
    for objective in (SO, DRO, RO):
        gain = make(objective, num_paths=64)(TRIED.unsqueeze(1)).exp()
        assert (gain < 1e-5).all()


def test_a_set_without_its_reference_is_solved_everywhere() -> None:
    """Its worst case may exceed the expectation, which used to rule decisions out."""

    def one_context(q, p, radius):
        return [q[0] >= 0.9 + 0 * radius]

    ball, some = CvxpyAmbiguity(one_context, 0.1), X[:3].unsqueeze(1)
    options = {"num_paths": 8}
    found = make(UncertaintyObjective(ball), **options)(some)
    expected = make(Unbounded(ball), **options)(some)
    torch.testing.assert_close(found, expected)


def test_satisficing_has_no_bound_and_is_solved_everywhere() -> None:
    objective = RobustSatisficing(TotalVariation(0.6), target=1.0)
    assert make(objective)(X.unsqueeze(1)).isfinite().all()


def test_pending_decisions_are_a_bar_like_those_tried() -> None:
    pending = decisions(2, 9)
    waiting = make(X_pending=pending)(X.unsqueeze(1))
    torch.testing.assert_close(
        waiting, make(X_baseline=torch.cat([TRIED, pending]))(X.unsqueeze(1))
    )
    acqf = make()
    before = acqf(X.unsqueeze(1))
    acqf.set_X_pending(pending)
    torch.testing.assert_close(acqf(X.unsqueeze(1)), waiting)
    acqf.set_X_pending(None)
    assert torch.equal(acqf(X.unsqueeze(1)), before)
    assert (waiting <= before + 1e-9).all()


def test_a_batch_improves_by_its_best_on_each_path() -> None:
    acqf = make(**MANY)
    together = acqf(X.reshape(3, 2, 2))
    alone = acqf(X.unsqueeze(1)).reshape(3, 2)
    assert (together >= alone.amax(-1) - 1e-9).all()
    assert (together <= alone.logsumexp(-1) + 1e-9).all()


def test_a_unit_of_the_outcome_adds_a_constant() -> None:
    double = ScalarizedPosteriorTransform(torch.tensor([2.0], dtype=torch.double))
    found = make(posterior_transform=double)(X.unsqueeze(1))
    torch.testing.assert_close(found, make()(X.unsqueeze(1)) + math.log(2.0))


def test_gradients_are_right_and_point_somewhere_where_nothing_improves() -> None:
    acqf = make()
    near = X[:2].unsqueeze(1).requires_grad_()
    assert gradcheck(acqf, (near,), eps=1e-7, atol=1e-4)
    far = decisions(200, 5).unsqueeze(1).requires_grad_()
    values = acqf(far)
    hopeless = values < math.log(1e-9)
    assert hopeless.any()
    (slope,) = torch.autograd.grad(values.sum(), far)
    assert (slope[hopeless].abs().amax(-1) > 0).all()


def test_blocks_make_no_difference() -> None:
    acqf, small = make(X_pending=X[:1]), make(X_pending=X[:1], memory_budget=20_000)
    some = decisions(30, 7).unsqueeze(1)
    torch.testing.assert_close(acqf(some), small(some))


def test_follows_the_model() -> None:
    model = gp()
    acqf = make(model=model)
    before = acqf(X.unsqueeze(1))
    model.likelihood.noise = 0.5
    after = acqf(X.unsqueeze(1))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, make(model=model)(X.unsqueeze(1)))


@pytest.mark.parametrize(
    ("tried", "error"),
    [
        (TRIED[:, :1], BotorchTensorDimensionError),
        (TRIED[:0], (BotorchTensorDimensionError, InputDataError)),
        (TRIED * math.nan, InputDataError),
    ],
)
def test_bad_decisions_tried(tried: Tensor, error: type[Exception]) -> None:
    with pytest.raises(error, match="X_baseline"):
        make(X_baseline=tried)


@pytest.mark.parametrize("pending", [None, decisions(2, 8)], ids=["free", "pending"])
@pytest.mark.parametrize("members", [1, 2])
def test_decisions_are_ranked_on_every_third_path(
    members: int, pending: Tensor | None
) -> None:
    """The improvement by hand, on the paths 0, 3, 6, ... of all models together."""
    model = gp() if members == 1 else ModelEnsemble([gp(), gp(unit=2.0)])
    tried = TRIED.repeat(5, 1)
    options = {"model": model, "num_paths": 61, "X_pending": pending}
    acqf = make(SO, X_baseline=tried, **options)
    bars = tried if pending is None else torch.cat([tried, pending])
    with torch.no_grad():
        found = acqf.ranking(X.unsqueeze(1)).exp()
        f, bar = (
            by_hand(SO, acqf.paths(points, POINTS)[::3]) for points in (X, bars)
        )  # 7 x 6
        values = acqf(X.unsqueeze(1)).exp()
    gain = (f - bar.amax(-1, keepdim=True)).clamp_min(0.0).mean(0)
    assert len(f) == 21 and gain.max() > 0.05
    torch.testing.assert_close(found, gain, rtol=2e-2, atol=1e-3)
    assert not torch.allclose(found, values, rtol=2e-2, atol=1e-3)
    torch.testing.assert_close(acqf(X.unsqueeze(1)).exp(), values)  # nothing changed
    fewer = make(SO, X_baseline=tried[:24], **options)
    with torch.no_grad():
        assert torch.equal(fewer.ranking(X.unsqueeze(1)), fewer(X.unsqueeze(1)))
