"""Batches over sample paths, against BoTorch and against joint posterior samples."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from botorch.acquisition import qExpectedImprovement, qUpperConfidenceBound
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.experiments.improvement import PlainExpectedImprovement
from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    best_robust_value,
    monte_carlo,
    qDistributionallyRobustUCB,
)
from botorch_drbo.ambiguity import FullSimplex, TotalVariation, Wasserstein
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.sample_paths.fourier_features import RandomFourierFeatures
from tests.models import ensemble, known_model

BETA, BEST = 2.25, 1.0
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
SO, RO = UncertaintyObjective.so(), UncertaintyObjective.ro()
DRO = UncertaintyObjective.dro(TotalVariation(0.6))
MANY = {"num_paths": 4096, "num_features": 64, "seed": 0}
FEW = {"num_paths": 8, "num_features": 64, "seed": 0}
KINDS = ("ucb", "ei")


def data(dtype=torch.double) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    Z = torch.rand(15, 3, generator=generator, dtype=torch.double)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (6 * Z[:, 2:]).cos()
    return Z.to(dtype), 2 + 3 * Y.to(dtype)


def gp(dtype=torch.double) -> SingleTaskGP:
    return known_model(*data(dtype), lengthscale=0.4, noise=1e-2)


def contexts(dtype=torch.double) -> ContextSet:
    points = torch.tensor([[0.1], [0.5], [0.55], [0.9]], dtype=dtype)
    return ContextSet(points, torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=dtype))


def batches(*shape: int, seed: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, 2, generator=generator, dtype=torch.double)


def make(kind: str, objective: Objective = DRO, **options):
    options = {"model": gp(), "context_set": contexts()} | FEW | options
    model, context_set = options.pop("model"), options.pop("context_set")
    if kind == "ucb":
        beta = options.pop("beta", BETA)
        return qDistributionallyRobustUCB(
            model, beta, context_set, objective, **options
        )
    best = options.pop("best_value", BEST)
    return PlainExpectedImprovement(model, best, context_set, objective, **options)


def agree(acqf, X: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal but for the Monte Carlo error of the paths, and of their features."""
    with torch.no_grad():
        found = acqf(X)
        by_path = acqf._utilities(X).amax(-1)  # S x b
    error = by_path.std(0) / math.sqrt(len(by_path))
    assert (error < 0.1).all()  # the bound below means something
    difference = (found - expected).abs()
    assert (difference <= 4 * error + 0.02).all(), (found, expected, error)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:qExpectedImprovement has known")
def test_one_context_is_botorchs_function_of_a_batch(kind, q):
    c = torch.tensor([0.3], dtype=torch.double)
    acqf = make(kind, SO, context_set=ContextSet.fixed(c), **MANY)
    X = batches(6, q)
    sampler = SobolQMCNormalSampler(torch.Size([2**13]), seed=1)
    if kind == "ucb":
        theirs = qUpperConfidenceBound(gp(), BETA, sampler)
    else:
        theirs = qExpectedImprovement(gp(), BEST, sampler)
    joint = torch.cat([X, c.expand(*X.shape[:-1], 1)], dim=-1)
    agree(acqf, X, theirs(joint).detach())


def joint_samples(model, X, points, context_first: bool) -> tuple[torch.Tensor, ...]:
    """Samples ``N x b x q x n`` from the joint covariance that the class avoids."""
    b, q, _ = X.shape
    n = len(points)
    parts = [X[:, :, None].expand(b, q, n, 2), points.expand(b, q, n, 1)]
    Z = torch.cat(parts[::-1] if context_first else parts, dim=-1)
    posterior = model.posterior(Z.reshape(b, q * n, 3))
    sampler = SobolQMCNormalSampler(torch.Size([2**13]), seed=2)
    samples = sampler(posterior).reshape(-1, b, q, n)
    return posterior.mean.reshape(b, q, n), samples


def by_hand(objective: Objective, f: torch.Tensor, weights: torch.Tensor):
    """The expectation, the worst context, and total variation by moving mass."""
    if objective is SO:
        return f @ weights
    if objective is RO:
        return f.amin(-1)
    order = f.argsort(dim=-1, descending=True)  # half the radius leaves the top
    sorted_f, mass = f.gather(-1, order), weights[order]
    before = mass.cumsum(-1) - mass
    taken = (0.3 - before).clamp_min(0).minimum(mass)
    return ((mass - taken) * sorted_f).sum(-1) + 0.3 * f.amin(-1)


@pytest.mark.parametrize(
    ("objective", "context_first"),
    [(SO, False), (RO, False), (DRO, True)],
    ids=["so", "ro", "dro-context-first"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_samples_of_the_joint_posterior(kind, objective, context_first):
    model, context_set = gp(), contexts()
    if context_first:
        Z, Y = data()
        reordered = SingleTaskGP(Z[:, [2, 0, 1]], Y, input_transform=Normalize(3))
        reordered.covar_module.lengthscale = 0.4
        reordered.likelihood.noise = 1e-2
        model = reordered
    indices = [0] if context_first else None
    acqf = make(kind, objective, model=model, context_indices=indices, **MANY)
    X = batches(5, 2)
    with torch.no_grad():
        mean, f = joint_samples(model, X, context_set.points, context_first)
        if kind == "ucb":
            f = mean + math.sqrt(BETA * math.pi / 2) * (f - mean).abs()
        value = by_hand(objective, f, context_set.weights)
        value = value if kind == "ucb" else (value - BEST).clamp_min(0)
    agree(acqf, X, value.amax(-1).mean(0))


def test_one_decision_is_the_plain_ucb_or_less():
    """Equal for the expectation; less for a worst case, which is concave."""
    X = batches(12, 1)
    for objective in (SO, RO, DRO):
        batch = make("ucb", objective, **MANY)
        plain = DistributionallyRobustUCB(gp(), BETA, contexts(), objective)
        with torch.no_grad():
            expected = plain(X)
            if objective is SO:
                agree(batch, X, expected)
            else:
                gap = expected - batch(X)
                assert (gap > -0.1).all()
                assert gap.max() > 0.2  # not equal: the docstring does not claim it


@pytest.mark.parametrize("kind", KINDS)
def test_pending_decisions_are_part_of_the_batch(kind):
    X, pending = batches(4, 2), batches(3, seed=8)
    alone, acqf = make(kind), make(kind, X_pending=pending)
    together = torch.cat([X, pending.expand(4, 3, 2)], dim=-2)
    torch.testing.assert_close(acqf(X), alone(together))
    acqf.set_X_pending(pending[:0])
    assert acqf.X_pending is None
    torch.testing.assert_close(acqf(X), alone(X))
    acqf.set_X_pending(pending[:1])
    together = torch.cat([X, pending[:1].expand(4, 1, 2)], dim=-2)
    torch.testing.assert_close(acqf(X), alone(together))


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_t_batches(kind):
    acqf, X = make(kind), batches(2, 3, 4)
    value = acqf(X)
    assert value.shape == (2, 3)
    torch.testing.assert_close(acqf(X.reshape(6, 4, 2)).reshape(2, 3), value)
    torch.testing.assert_close(acqf(X[1, 2]), value[1, 2:])
    acqf.set_X_pending(batches(2, seed=8))
    pending = acqf(X)
    torch.testing.assert_close(acqf(X.reshape(6, 4, 2)).reshape(2, 3), pending)


@pytest.mark.parametrize("pending", [None, batches(1, seed=8)])
@pytest.mark.parametrize("objective", [SO, RO, DRO], ids=["so", "ro", "dro"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, objective, pending):
    acqf = make(kind, objective, X_pending=pending)
    X = batches(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(acqf, X)
    (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
    assert gradient.abs().max() > 1e-3


SHARED = {kind: make(kind) for kind in KINDS}


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), q=st.integers(1, 5), kind=st.sampled_from(KINDS))
def test_order_and_repetition_do_not_matter_and_more_is_never_worse(seed, q, kind):
    acqf, X = SHARED[kind], batches(1, q, seed=seed)
    with torch.no_grad():
        value = acqf(X)
        order = torch.randperm(q, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(acqf(X[:, order]), value)
        torch.testing.assert_close(acqf(torch.cat([X, X[:, :1]], dim=1)), value)
        fewer = acqf(X[:, 1:]) if q > 1 else value
        assert (fewer <= value + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_paths_stay_and_come_from_the_seed(kind):
    X = batches(3, 2)
    state = torch.get_rng_state()
    acqf = make(kind, seed=5)
    value = acqf(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(acqf(X), value)
    assert torch.equal(make(kind, seed=5)(X), value)
    assert not torch.allclose(make(kind, seed=6)(X), value)
    drawn = make(kind, seed=None)(X)
    assert not torch.allclose(make(kind, seed=None)(X), drawn)
    torch.manual_seed(0)
    first = make(kind, seed=None)(X)
    torch.manual_seed(0)
    assert torch.equal(make(kind, seed=None)(X), first)
    assert torch.equal(copy.deepcopy(acqf)(X), value)


@pytest.mark.parametrize(("kind", "sequential"), [("ucb", False), ("ei", True)])
def test_optimize_acqf(kind, sequential):
    acqf = make(kind, num_paths=32, num_features=256)
    chosen, value = optimize_acqf(
        acqf,
        bounds=BOUNDS,
        q=4,
        num_restarts=2,
        raw_samples=32,
        sequential=sequential,
        options={"seed": 0, "maxiter": 30, "nonnegative": kind == "ei"},
    )
    assert chosen.shape == (4, 2)
    assert ((chosen >= 0) & (chosen <= 1)).all()
    assert acqf.X_pending is None  # given back as it was
    with torch.no_grad():
        reached = acqf(chosen)
        assert (reached >= acqf(batches(64, 4)).max()).all()
    last = value[-1] if sequential else value
    torch.testing.assert_close(reached, last.reshape(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:The model inputs are of type")
def test_single_precision(kind):
    model = gp(torch.float32)
    acqf = make(kind, model=model, context_set=contexts(torch.float32))
    X = batches(3, 2).float()
    value = acqf(X)
    assert value.dtype == torch.float32
    acqf.set_X_pending(X[0])
    assert acqf(X).dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:The model inputs are of type")
def test_decisions_in_single_precision_leave_the_model_as_it_is(kind):
    model = gp()
    acqf, X = make(kind, model=model), batches(3, 2)
    before, state = acqf(X), copy.deepcopy(model.state_dict())
    found = acqf(X.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), before, rtol=1e-5, atol=1e-5)
    assert torch.equal(acqf(X), before)
    assert model.train_targets.dtype == torch.double
    for name, value in model.state_dict().items():
        assert value.dtype == state[name].dtype
        assert torch.equal(value, state[name])


def test_small_memory_budget_changes_nothing():
    """Blocks of paths, of decisions, and both, down to one of each.

    Of the function that has numbers of its own for each decision ("ucb").
    """
    kind = "ucb"
    X = batches(2, 3).requires_grad_()
    expected = make(kind, num_paths=3)(X)
    (slope,) = torch.autograd.grad(expected.sum(), X)
    for budget in (1, 4_000, 20_000):
        acqf = make(kind, num_paths=3, memory_budget=budget)
        found = acqf(X)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.sum(), X)[0], slope)
        with torch.no_grad():
            torch.testing.assert_close(acqf(X), expected)
        acqf.set_X_pending(batches(2, seed=8))
        pending = make(kind, num_paths=3, X_pending=acqf.X_pending)(X)
        torch.testing.assert_close(acqf(X), pending)


def test_a_cache_that_no_number_of_paths_fills_changes_nothing(monkeypatch):
    """Room for two and a half of eight paths: blocks of two, of the same values."""
    acqf, X = make("ucb", memory_budget=20_000), batches(2, 3)
    expected, blocks = make("ucb")(X), []
    utility = type(acqf)._utility

    def counted(self, values, *rest):
        blocks.append(len(values))
        return utility(self, values, *rest)

    monkeypatch.setattr(type(acqf), "_utility", counted)
    bytes_of_a_path = 8 * FEW["num_features"] * len(acqf.context_set.points)
    monkeypatch.setattr(monte_carlo, "CACHE_BYTES", int(2.5 * bytes_of_a_path))
    torch.testing.assert_close(acqf(X), expected)
    assert set(blocks) == {2}


@pytest.mark.parametrize("graph", [False, True])
def test_values_of_all_paths_are_never_there_together(graph, monkeypatch):
    """Neither for many decisions, nor for many contexts: blocks within the budget."""
    generator = torch.Generator().manual_seed(1)
    for n, b, budget in ((4, 200, 200_000), (300, 5, 2_000_000)):
        points = torch.rand(n, 1, generator=generator, dtype=torch.double)
        acqf = make("ucb", context_set=ContextSet(points), memory_budget=budget)
        sizes, angles = [], []
        utility, side = type(acqf)._utility, RandomFourierFeatures.side

        def counted(self, values, *rest, utility=utility, sizes=sizes):
            sizes.append(values.numel())
            return utility(self, values, *rest)

        def seen(self, c, side=side, angles=angles):
            angles.append(self.cosines.numel() * len(c))
            return side(self, c)

        monkeypatch.setattr(type(acqf), "_utility", counted)
        monkeypatch.setattr(RandomFourierFeatures, "side", seen)
        X = batches(b, 4).requires_grad_(graph)
        acqf(X)
        monkeypatch.undo()
        # Once, and with a graph one decision more for each path (see in_blocks).
        assert sum(sizes) in (8 * 4 * b * n, 8 * (4 * b + 1) * n)
        assert 8 * 20 * max(sizes) <= budget
        # Not once for each decision: the work of contexts is shared.
        assert sum(angles) <= 8 * 64 * n * (1 + 4 * b / 200)


def test_no_joint_covariance():
    """40,000 joint inputs: their covariance alone would take 12 GB."""
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(10_000, 1, generator=generator, dtype=torch.double)
    acqf = make("ucb", RO, context_set=ContextSet(points))
    X = batches(1, 4).requires_grad_()
    (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
    assert torch.isfinite(gradient).all()


def test_best_robust_value_by_hand():
    model, context_set = gp(), contexts()
    X = data()[0][:, :2]
    for objective in (SO, RO, DRO):
        rows = []
        for x in X:
            Z = torch.cat([x.expand(4, 2), context_set.points], dim=-1)
            mean = model.posterior(Z).mean.squeeze(-1)
            rows.append(by_hand(objective, mean, context_set.weights))
        found = best_robust_value(model, X, context_set, objective)
        assert not found.requires_grad
        torch.testing.assert_close(found, torch.stack(rows).max().detach())


def test_best_robust_value_of_an_ensemble():
    Z, Y = data()
    model = ensemble(Z, Y, members=2)
    context_set = contexts()
    X = Z[:5, :2]
    values = []
    for x in X:
        joint = torch.cat([x.expand(4, 2), context_set.points], dim=-1)
        mean = model.posterior(joint).mean.squeeze(-1)  # S x n
        values.append(mean.amin(-1).mean())
    found = best_robust_value(model, X, context_set, RO)
    torch.testing.assert_close(found, torch.stack(values).max().detach())


WRONG_SIZE = UncertaintyObjective(Wasserstein(0.1, 1 - torch.eye(3).double()))
BAD = {
    "objective of another size": (
        dict(objective=WRONG_SIZE),
        BotorchTensorDimensionError,
        "`objective` and `context_set` do not fit.*4 points of this context set",
    ),
    "no objective": (dict(objective=FullSimplex()), InputDataError, "Wrap"),
    "no context set": (
        dict(context_set=torch.rand(4, 1)),
        InputDataError,
        "must be a ContextSet",
    ),
    "no paths": (dict(num_paths=0), InputDataError, "num_paths"),
    "no features": (dict(num_features=0), InputDataError, "num_features"),
    "negative seed": (dict(seed=-1), InputDataError, "seed"),
    "no memory": (dict(memory_budget=0), InputDataError, "memory_budget"),
    "missing context column": (
        dict(context_indices=[3]),
        BotorchTensorDimensionError,
        "context_indices",
    ),
    "pending of other columns": (
        dict(X_pending=torch.rand(2, 3).double()),
        BotorchTensorDimensionError,
        "X_pending.*2 columns",
    ),
    "pending nan": (
        dict(X_pending=torch.full((1, 2), math.nan).double()),
        InputDataError,
        "X_pending",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(kind, case):
    arguments, error, text = BAD[case]
    with pytest.raises(error, match=text):
        make(kind, **arguments)


@pytest.mark.parametrize(
    ("beta", "error"),
    [
        (-1.0, InputDataError),
        (math.nan, InputDataError),
        (torch.ones(2).double(), BotorchTensorDimensionError),
    ],
)
def test_bad_parameters(beta, error):
    with pytest.raises(error, match="beta"):
        make("ucb", beta=beta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_paths(kind):
    Z, Y = data()
    model = EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=2)
    with pytest.raises(
        UnsupportedError, match=r"has none: .* DistributionallyRobustUCB takes"
    ):
        make(kind, model=model)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_batches(kind):
    acqf = make(kind)
    with pytest.raises(BotorchTensorDimensionError, match="q = 0"):
        acqf(torch.empty(3, 0, 2, dtype=torch.double))
    acqf.set_X_pending(batches(1))
    with pytest.raises(BotorchTensorDimensionError, match="q = 0"):
        acqf(torch.empty(3, 0, 2, dtype=torch.double))
    with pytest.raises(BotorchTensorDimensionError, match="decisions alone"):
        acqf(torch.rand(3, 2, 3, dtype=torch.double))


def test_bad_decisions_of_best_robust_value():
    with pytest.raises(BotorchTensorDimensionError, match="at least one row"):
        best_robust_value(gp(), torch.empty(0, 2).double(), contexts(), SO)
    with pytest.raises(BotorchTensorDimensionError, match="2 columns"):
        best_robust_value(gp(), torch.rand(2, 3).double(), contexts(), SO)
    with pytest.raises(BotorchTensorDimensionError, match="do not fit"):
        best_robust_value(gp(), batches(2), contexts(), WRONG_SIZE)
