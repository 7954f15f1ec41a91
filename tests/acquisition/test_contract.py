"""What BoTorch asks of an acquisition function; every member of the list passes it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from botorch.acquisition import AcquisitionFunction, FixedFeatureAcquisitionFunction
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.optim import optimize_acqf

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
)
from botorch_drbo.ambiguity import (
    FullSimplex,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import ensemble, known_model, member_of

X_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
C_BOUNDS = torch.tensor([[-1.0], [3.0]], dtype=torch.double)


@dataclass(frozen=True)
class Member:
    name: str
    make: Callable[..., AcquisitionFunction]


def contexts(dtype=torch.double, n: int = 6) -> ContextSet:
    generator = torch.Generator().manual_seed(5)
    points = -1 + 4 * torch.rand(n, 1, generator=generator, dtype=torch.double)
    weights = torch.rand(n, generator=generator, dtype=torch.double)
    return ContextSet(points.to(dtype), weights.to(dtype))


def dr_ucb(ambiguity):
    def make(model, *, beta=2.25, context_set=None, dtype=torch.double, **kwargs):
        context_set = contexts(dtype) if context_set is None else context_set
        objective = UncertaintyObjective(ambiguity(context_set))
        return DistributionallyRobustUCB(
            model, beta, context_set, objective, **kwargs
        ).to(dtype)

    return make


def penalized(model, *, beta=2.25, context_set=None, dtype=torch.double, **kwargs):
    context_set = contexts(dtype) if context_set is None else context_set
    bounds = C_BOUNDS.to(dtype)
    return LipschitzPenalizedUCB(model, beta, context_set, 0.1, bounds, **kwargs)


def enlarged(model, *, beta=2.25, context_set=None, dtype=torch.double, **kwargs):
    context_set = contexts(dtype) if context_set is None else context_set
    objective = UncertaintyObjective(TotalVariation(0.3))
    return EnlargedConfidenceUCB(
        model, beta, 0.02, context_set, objective, **kwargs
    ).to(dtype)


def enlarged_penalized(model, **kwargs):
    return penalized(model, misspecification=0.02, **kwargs)


def finite_difference(
    model, *, beta=2.25, context_set=None, dtype=torch.double, **kwargs
):
    context_set = contexts(dtype) if context_set is None else context_set
    objective = UncertaintyObjective.gen(TotalVariation(0.3))
    return FiniteDifferenceUCB(
        model, beta, context_set, objective, step=0.1, **kwargs
    ).to(dtype)


def ball(context_set: ContextSet) -> Wasserstein:
    return Wasserstein(0.2, torch.cdist(context_set.points, context_set.points))


MEMBERS = [
    Member("expectation", dr_ucb(lambda c: NoAmbiguity())),
    Member("worst_case", dr_ucb(lambda c: FullSimplex())),
    Member("wasserstein", dr_ucb(ball)),
    Member("lipschitz_penalized", penalized),
    Member("finite_difference", finite_difference),
    Member("enlarged_confidence", enlarged),
    Member("enlarged_penalized", enlarged_penalized),
]


@pytest.fixture(params=MEMBERS, ids=lambda member: member.name)
def make(request):
    return request.param.make


def data(t: int = 12, dtype=torch.double):
    generator = torch.Generator().manual_seed(7)
    Z = torch.rand(t, 3, generator=generator, dtype=torch.double)
    Z[:, 2] = -1 + 4 * Z[:, 2]
    Y = -(Z[:, :2] - 0.6).square().sum(-1, True) * 4 + Z[:, :1] * Z[:, 2:].sin()
    return Z.to(dtype), Y.to(dtype)


def gp(dtype=torch.double, **kwargs) -> SingleTaskGP:
    return known_model(*data(dtype=dtype), noise=1e-3, **kwargs)


def rows(b: int = 5, dtype=torch.double) -> torch.Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.rand(b, 1, 2, generator=generator, dtype=torch.double).to(dtype)


def test_shapes(make):
    acqf = make(gp())
    assert acqf(rows()).shape == (5,)
    assert acqf(rows()[0]).shape == (1,)  # 2-d X gets a t-batch of one
    assert acqf(rows(6).reshape(2, 3, 1, 2)).shape == (2, 3)
    with pytest.raises(UnsupportedError, match="sequential=True"):
        acqf(rows(4).reshape(2, 2, 2))
    with pytest.raises(ValueError, match="dimensions"):
        acqf(rows()[0, 0])
    with pytest.raises(BotorchTensorDimensionError, match="decisions alone"):
        acqf(torch.rand(5, 1, 3, dtype=torch.double))


def test_documented_and_drawn_as_botorch_does(make):
    acqf = make(gp())
    assert acqf.forward.__doc__ and "Returns" in acqf.forward.__doc__
    assert acqf._log is False
    assert acqf.X_pending is None


def test_rows_are_independent_and_deterministic(make):
    acqf, X = make(gp()), rows()
    together = acqf(X)
    alone = torch.cat([acqf(x[None]) for x in X])
    torch.testing.assert_close(together, alone, rtol=1e-7, atol=1e-8)
    assert torch.equal(acqf(X), together)
    torch.testing.assert_close(acqf(X[[3, 1]]), together[[3, 1]], rtol=1e-7, atol=1e-8)


def test_scored_under_no_grad(make):
    acqf = make(gp())
    with torch.no_grad():
        quiet = acqf(rows())
    assert not quiet.requires_grad
    torch.testing.assert_close(quiet, acqf(rows()), rtol=1e-7, atol=1e-8)


def test_gradient(make):
    model = gp()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    X = rows(3).requires_grad_()
    assert torch.autograd.gradcheck(make(model), X, atol=1e-4, rtol=1e-3)


def test_optimize_acqf(make):
    x, value = optimize_acqf(
        make(gp()), bounds=X_BOUNDS, q=1, num_restarts=3, raw_samples=32
    )
    assert x.shape == (1, 2) and bool(torch.isfinite(value))
    with torch.no_grad():
        best = make(gp())(rows(64)).max()
    assert value >= best - 1e-4


def test_sequential_batch_has_distinct_decisions(make):
    acqf = make(gp())
    x, _ = optimize_acqf(
        acqf, bounds=X_BOUNDS, q=3, num_restarts=3, raw_samples=32, sequential=True
    )
    assert x.shape == (3, 2)
    assert torch.pdist(x).min() > 1e-3
    assert acqf.X_pending is None


def test_the_value_of_a_batch_counts_what_was_pending_before(make):
    """Decision by decision, each with the earlier ones pending, and given back."""
    X, P = rows(3).squeeze(-2), rows(5).squeeze(-2)[3:]
    acqf = make(gp(), X_pending=P)
    expected = sum(
        make(gp(), X_pending=torch.cat([P, X[:j]]))(X[j : j + 1]) for j in range(3)
    )
    with torch.no_grad():
        torch.testing.assert_close(acqf(X), expected.detach())
    assert torch.equal(acqf.X_pending, P)
    torch.testing.assert_close(acqf(X[:1]), make(gp(), X_pending=P)(X[:1]))


def test_pending_lowers_the_value_there_and_is_forgotten(make):
    acqf, X = make(gp()), rows(1)
    plain = acqf(X)
    acqf.set_X_pending(X[0])
    assert torch.equal(acqf.X_pending, X[0])
    pending = acqf(X)
    assert pending < plain
    far = torch.tensor([[[1.0 - X[0, 0, 0].round(), 1.0 - X[0, 0, 1].round()]]])
    assert (plain - pending) > (make(gp())(far.double()) - acqf(far.double()))
    acqf.set_X_pending(None)
    torch.testing.assert_close(acqf(X), plain)
    constructed = make(gp(), X_pending=X[0])
    torch.testing.assert_close(constructed(X), pending, rtol=1e-7, atol=1e-8)


def test_pending_is_checked(make):
    with pytest.raises(BotorchTensorDimensionError, match="X_pending"):
        make(gp()).set_X_pending(torch.rand(2, 3, dtype=torch.double))
    with pytest.raises(InputDataError, match="X_pending"):
        make(gp(), X_pending=torch.tensor([[0, 1]]))


def test_minimisation_by_posterior_transform(make):
    """Minimising y and maximising -y are the same thing."""
    Z, Y = data()
    negate = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
    model, mirrored = gp(), SingleTaskGP(Z, -Y, input_transform=Normalize(3))
    mirrored.covar_module.lengthscale = 0.5
    mirrored.likelihood.noise = 1e-3
    torch.testing.assert_close(
        make(model, posterior_transform=negate)(rows()),
        make(mirrored)(rows()),
        rtol=1e-6,
        atol=1e-8,
    )


def test_multi_output_needs_a_transform(make):
    Z, Y = data()
    model = SingleTaskGP(Z, torch.cat([Y, -Y], dim=-1))
    with pytest.raises(UnsupportedError, match="posterior_transform"):
        make(model)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0], dtype=torch.double))
    assert make(model, posterior_transform=first)(rows()).shape == (5,)


def test_ensemble_averages_values(make):
    Z, Y = data()
    acqf = make(ensemble(Z, Y))
    X = rows()
    values = acqf.values(X.squeeze(-2))  # one robust value per member
    assert values.shape == (5, 3)
    assert (values.amax(-1) - values.amin(-1) > 1e-2).all()
    torch.testing.assert_close(acqf(X), values.mean(-1), rtol=1e-6, atol=1e-8)
    X = X.requires_grad_()
    (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
    assert torch.isfinite(gradient).all()
    acqf.set_X_pending(rows(2).squeeze(-2))
    assert (acqf(X) < values.mean(-1) + 1e-9).any()


@pytest.mark.parametrize("pending", [False, True])
def test_an_ensemble_is_the_mean_of_its_models(make, pending):
    """Each of them alone, a plain model on the path for those."""
    Z, Y = data()
    model = ensemble(Z, (Y - Y.mean()) / Y.std())
    options = {"X_pending": rows(2).squeeze(-2)} if pending else {}
    alone = torch.stack(
        [make(member_of(model, s), **options)(rows()) for s in range(3)]
    )
    assert (alone.amax(0) - alone.amin(0) > 1e-2).all()
    found = make(model, **options)(rows())
    torch.testing.assert_close(found, alone.mean(0), rtol=1e-5, atol=1e-6)


def test_decisions_in_float32_leave_a_float64_model_as_it_is(make):
    model = gp()
    acqf = make(model)
    before = acqf(rows())
    state = {name: value.clone() for name, value in model.state_dict().items()}
    value = acqf(rows(dtype=torch.float))
    assert value.dtype == torch.float
    torch.testing.assert_close(value.double(), before, rtol=1e-4, atol=1e-4)
    assert model.train_targets.dtype == torch.double
    for name, value in model.state_dict().items():
        assert value.dtype == state[name].dtype and torch.equal(value, state[name])
    assert torch.equal(acqf(rows()), before)


def test_float32(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch advises float64
        acqf = make(gp(torch.float), dtype=torch.float)
    value = acqf(rows(dtype=torch.float))
    assert value.dtype == torch.float
    expected = make(gp())(rows())
    torch.testing.assert_close(value.double(), expected, rtol=2e-2, atol=2e-2)


def test_buffers_follow_the_dtype(make):
    acqf = make(gp())
    expected = acqf(rows())
    value = acqf.to(torch.float)(rows(dtype=torch.float))
    assert value.dtype == torch.float
    torch.testing.assert_close(value.double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda(make):
    acqf = make(gp()).cuda()
    value = acqf(rows().cuda())
    assert value.is_cuda
    torch.testing.assert_close(value.cpu(), make(gp())(rows()), rtol=1e-6, atol=1e-8)


def test_context_columns_in_front(make):
    Z, Y = data()
    moved = SingleTaskGP(Z[:, [2, 0, 1]], Y, input_transform=Normalize(3))
    moved.covar_module.lengthscale = 0.5
    moved.likelihood.noise = 1e-3
    torch.testing.assert_close(
        make(moved, context_indices=[0])(rows()), make(gp())(rows())
    )
    torch.testing.assert_close(
        make(moved, context_indices=[-3])(rows()), make(gp())(rows())
    )


def test_paths_agree(make):
    torch.testing.assert_close(
        make(gp(), method="generic")(rows()),
        make(gp(), method="exact")(rows()),
        rtol=1e-6,
        atol=1e-8,
    )


@pytest.mark.parametrize("method, budget", [("exact", 2000), ("generic", 30_000)])
def test_small_memory_budget_changes_nothing(make, method, budget):
    if make in (penalized, enlarged_penalized):
        budget *= 10  # the slopes are looked for on a grid: many more pairs
    X = rows().requires_grad_()
    value = make(gp(), method=method, memory_budget=budget)(X)
    plain = make(gp())(X)
    torch.testing.assert_close(value, plain, rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(
        torch.autograd.grad(value.sum(), X)[0],
        torch.autograd.grad(plain.sum(), X)[0],
        rtol=1e-5,
        atol=1e-6,
    )


def test_fixed_features(make):
    acqf = FixedFeatureAcquisitionFunction(make(gp()), d=2, columns=[1], values=[0.3])
    expected = make(gp())(torch.tensor([[[0.2, 0.3]]], dtype=torch.double))
    torch.testing.assert_close(
        acqf(torch.tensor([[[0.2]]], dtype=torch.double)), expected
    )


BAD = {
    "negative beta": (dict(beta=-1.0), InputDataError, "beta"),
    "nan beta": (dict(beta=float("nan")), InputDataError, "beta"),
    "beta of many": (
        dict(beta=torch.ones(2).double()),
        BotorchTensorDimensionError,
        "beta",
    ),
    "not a context set": (
        dict(context_set=torch.rand(3, 1)),
        (InputDataError, AttributeError),
        "ContextSet|Tensor",
    ),
    "too many context columns": (
        dict(context_set=ContextSet(torch.rand(3, 3).double())),
        (BotorchTensorDimensionError, InputDataError),
        "columns|column|outside",
    ),
    "context columns that are not there": (
        dict(context_indices=[3]),
        BotorchTensorDimensionError,
        "context_indices",
    ),
    "context columns too many": (
        dict(context_indices=[1, 2]),
        BotorchTensorDimensionError,
        "context_indices",
    ),
    "no pending contexts": (dict(num_pending_contexts=0), InputDataError, "at least"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(make, case):
    arguments, error, text = BAD[case]
    with pytest.raises(error, match=text):
        make(gp(), **arguments)
