"""Thompson sampling: the objective of paths, as an acquisition function."""

from __future__ import annotations

import warnings

import pytest
import torch
from botorch.acquisition import FixedFeatureAcquisitionFunction
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from gpytorch.kernels import PeriodicKernel

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import RobustThompsonSampling
from botorch_drbo.ambiguity import (
    FullSimplex,
    MaximumMeanDiscrepancy,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.sample_paths import PosteriorPaths
from tests.models import known_model

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)


def contexts(n: int = 6) -> ContextSet:
    generator = torch.Generator().manual_seed(5)
    points = -1 + 4 * torch.rand(n, 1, generator=generator, dtype=torch.double)
    weights = torch.rand(n, generator=generator, dtype=torch.double)
    return ContextSet(points, weights)


def data(t: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    Z = torch.rand(t, 3, generator=generator, dtype=torch.double)
    Z[:, 2] = -1 + 4 * Z[:, 2]
    return Z, 3 + 9 * (Z[:, :1] * Z[:, 2:].sin() - (Z[:, 1:2] - 0.6).square())


def gp(order: tuple[int, ...] = (0, 1, 2), **options) -> SingleTaskGP:
    Z, Y = data()
    return known_model(Z[:, order], Y, noise=1e-3, **options)


def kernel_matrix(n: int = 6) -> torch.Tensor:
    points = contexts(n).points
    return torch.exp(-torch.cdist(points, points).square())


OBJECTIVES = {
    "so": UncertaintyObjective.so(),
    "ro": UncertaintyObjective.ro(),
    "dro": UncertaintyObjective.dro(TotalVariation(0.3)),
    "wcs": UncertaintyObjective.wcs(MaximumMeanDiscrepancy(0.3, kernel_matrix())),
    "gen": UncertaintyObjective.gen(MaximumMeanDiscrepancy(0.3, kernel_matrix())),
    "satisficing": RobustSatisficing(TotalVariation(0.01), target=2.0),
}


def rows(b: int = 5, q: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.rand(b, q, 2, generator=generator, dtype=torch.double)


def ts(objective="dro", model=None, **options) -> RobustThompsonSampling:
    model = gp() if model is None else model
    arguments = {"seed": 3, "context_set": contexts(), **options}
    if isinstance(objective, str):
        objective = OBJECTIVES[objective]
    return RobustThompsonSampling(model, objective=objective, **arguments)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_is_the_objective_of_the_path_values(name: str, q: int) -> None:
    context_set, objective, X = contexts(), OBJECTIVES[name], rows(4, q)
    acqf = ts(name, num_paths=q, num_features=64)
    paths = PosteriorPaths(gp(), [2], num_paths=q, num_features=64, seed=3)
    for x, found in zip(X, acqf(X), strict=True):
        expected = 0.0
        for j in range(q):
            f = torch.stack(
                [paths(x, c.reshape(1, 1))[j, j, 0] for c in contexts().points]
            )
            expected += objective(f, context_set.weights)
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-8)


def test_the_ranking_is_a_bound_for_which_no_ball_is_solved(monkeypatch) -> None:
    acqf, X = ts(UncertaintyObjective.dro(OBJECTIVES["wcs"].ambiguity_set)), rows(200)
    values = acqf(X)

    def solved(*_):
        raise AssertionError("a worst case was solved")

    monkeypatch.setattr(MaximumMeanDiscrepancy, "value", solved)
    monkeypatch.setattr(MaximumMeanDiscrepancy, "solve", solved)
    ranking = acqf.ranking(X.requires_grad_())
    assert not ranking.requires_grad
    assert (ranking <= values + 1e-9).all()
    ranks = torch.stack([x.argsort().argsort().double() for x in (values, ranking)])
    assert torch.corrcoef(ranks)[0, 1] > 0.97
    assert values.argmax() in ranking.topk(10).indices


def test_the_ranking_of_paths_that_are_too_old_is_refused() -> None:
    acqf = ts()
    Z, Y = data()
    acqf.model.set_train_data(Z + 0.01, Y.squeeze(-1), strict=False)
    with pytest.raises(UnsupportedError, match="redraw"):
        acqf.ranking(rows())


def test_paths_differ_between_seeds_and_stay_between_redraws() -> None:
    acqf, X = ts(), rows()
    first = acqf(X)
    assert torch.equal(acqf(X), first)
    assert torch.equal(ts()(X), first)
    acqf.redraw(4)
    assert not torch.allclose(acqf(X), first)
    assert torch.equal(acqf(X), ts(seed=4)(X))
    acqf.redraw(3)
    assert torch.equal(acqf(X), first)


def test_no_seed_draws_one_from_torch() -> None:
    torch.manual_seed(1)
    acqf = ts(seed=None)
    first, state = acqf.seed, torch.get_rng_state()
    ts(seed=5)  # a given seed leaves the generator alone
    assert torch.equal(torch.get_rng_state(), state)
    acqf.redraw()
    assert acqf.seed != first
    torch.manual_seed(1)
    assert ts(seed=None).seed == first


def test_paths_are_kept_when_the_model_changes_and_follow_at_redraw() -> None:
    model, X = gp(), rows()
    acqf = ts(model=model)
    first = acqf(X)
    model.covar_module.lengthscale = 0.2
    assert torch.equal(acqf(X), first)
    acqf.redraw(3)
    assert not torch.allclose(acqf(X), first)


def test_batch_is_the_sum_of_independent_paths() -> None:
    acqf, X = ts(num_paths=3), rows(7, 3)
    swapped = X.clone()
    swapped[:, 0] = X[:, 1]
    # Moving the decision of one path changes the value by the same, whatever the rest.
    moved = X.clone()
    moved[:, 2] = 0.5
    torch.testing.assert_close(
        acqf(moved) - acqf(X),
        acqf(torch.cat([swapped[:, :2], moved[:, 2:]], 1)) - acqf(swapped),
    )
    # The paths are different functions.
    same = rows(7).expand(7, 3, 2)
    alone = torch.stack([acqf(same.roll(k, 1)) for k in range(3)])
    torch.testing.assert_close(alone[0], alone[1])
    parts = acqf.objective(
        acqf.paths(rows(7).squeeze(1), contexts().points), contexts().weights
    )  # 3 x 7
    assert (parts[0] - parts[1]).abs().min() > 1e-6
    torch.testing.assert_close(parts.sum(0), acqf(same))


@pytest.mark.parametrize("name", ["so", "dro", "gen"])
def test_gradient(name: str) -> None:
    acqf = ts(name, num_paths=2, num_features=16)
    acqf.model.requires_grad_(False)
    X = rows(2, 2).requires_grad_()
    assert torch.autograd.gradcheck(acqf, X, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("q", [1, 2])
def test_optimize_acqf(q: int) -> None:
    acqf = ts("dro", num_paths=q, num_features=64)
    x, value = optimize_acqf(
        acqf, BOUNDS, q=q, num_restarts=2, raw_samples=64, options={"maxiter": 30}
    )
    assert x.shape == (q, 2)
    with torch.no_grad():
        assert value > acqf(rows(256, q)).max()


def test_pending_decisions_are_refused() -> None:
    acqf = ts()
    acqf.set_X_pending(None)
    with pytest.raises(UnsupportedError, match="num_paths"):
        acqf.set_X_pending(rows(2).squeeze(1))
    with pytest.raises(UnsupportedError, match="num_paths"):  # one path for both
        optimize_acqf(acqf, BOUNDS, q=2, num_restarts=1, raw_samples=4, sequential=True)


def test_no_grad_and_shapes() -> None:
    acqf = ts()
    with torch.no_grad():
        quiet = acqf(rows())
    assert not quiet.requires_grad
    torch.testing.assert_close(quiet, acqf(rows()))
    assert acqf(rows()[0]).shape == (1,)
    assert acqf(rows(6).reshape(2, 3, 1, 2)).shape == (2, 3)
    assert acqf._log is False and acqf.X_pending is None


def test_small_memory_budget_changes_nothing() -> None:
    X = rows(20).requires_grad_()
    plain, small = ts()(X), ts(memory_budget=20_000)(X)
    torch.testing.assert_close(small, plain)
    for value in (plain, small):
        value.sum().backward()
    assert X.grad is not None and torch.isfinite(X.grad).all()


def test_context_columns_in_front() -> None:
    # The draws belong to columns, so that it is another path of the same law: compare
    # where the law leaves nothing open, at the data.
    model, Z = gp(order=(2, 0, 1)), data()[0]
    model.likelihood.noise = 1e-4
    point = ContextSet(Z[:1, 2:])
    acqf = ts("so", model, context_set=point, context_indices=[0])
    found = acqf(Z[:1, :2].unsqueeze(0))
    assert found.item() == pytest.approx(data()[1][0].item(), abs=1.0)
    again = ts("so", model, context_set=point, context_indices=[-3])
    assert torch.equal(
        again(rows()), ts("so", model, context_set=point, context_indices=[0])(rows())
    )


def test_float32() -> None:
    Z, Y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BoTorch advises float64
        model = SingleTaskGP(Z.float(), Y.float(), input_transform=Normalize(3)).eval()
    points = ContextSet(contexts().points.float(), contexts().weights.float())
    value = ts("gen", model, context_set=points)(rows().float())
    assert value.dtype == torch.float and torch.isfinite(value).all()
    acqf = ts("gen")
    expected = acqf(rows())
    value = acqf.to(torch.float)(rows().float())
    assert value.dtype == torch.float
    torch.testing.assert_close(value.double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda() -> None:
    expected = ts("gen", num_paths=2)(rows(4, 2))
    model = gp().cuda()
    acqf = ts("gen", model, context_set=contexts().cuda(), num_paths=2)
    value = acqf(rows(4, 2).cuda())
    assert value.is_cuda
    torch.testing.assert_close(value.cpu(), expected, rtol=1e-6, atol=1e-7)
    moved = ts("gen", num_paths=2).cuda()
    torch.testing.assert_close(
        moved(rows(4, 2).cuda()).cpu(), expected, rtol=1e-6, atol=1e-7
    )


def test_fixed_features() -> None:
    acqf = FixedFeatureAcquisitionFunction(ts(), d=2, columns=[1], values=[0.3])
    expected = ts()(torch.tensor([[[0.2, 0.3]]], dtype=torch.double))
    found = acqf(torch.tensor([[[0.2]]], dtype=torch.double))
    torch.testing.assert_close(found, expected)


def no_paths(kind: str):
    Z, Y = data()
    if kind == "ensemble":
        return EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=2).eval()
    if kind == "outputs":
        return SingleTaskGP(Z, torch.cat([Y, Y], -1))
    return SingleTaskGP(Z, Y, covar_module=PeriodicKernel())


@pytest.mark.parametrize("kind", ["ensemble", "outputs", "kernel"])
def test_model_without_paths(kind: str) -> None:
    with pytest.raises(UnsupportedError, match=r"sample paths.*SingleTaskGP"):
        ts("so", no_paths(kind))


ONE = torch.tensor([[0.0]], dtype=torch.double)

BAD = {
    "objective": (dict(objective=FullSimplex()), InputDataError, "Objective"),
    "contexts": (dict(context_set=torch.rand(6, 1)), InputDataError, "ContextSet"),
    "kernel of other contexts": (
        dict(objective="gen", context_set=contexts(7)),
        BotorchTensorDimensionError,
        "6 contexts.*Build the MaximumMeanDiscrepancy from the 7 points",
    ),
    "cost of other contexts": (
        dict(objective=UncertaintyObjective(Wasserstein(0.1, ONE))),
        BotorchTensorDimensionError,
        "do not fit",
    ),
    "no paths": (dict(num_paths=0), InputDataError, "num_paths"),
    "no features": (dict(num_features=0), InputDataError, "num_features"),
    "part of a seed": (dict(seed=0.5), InputDataError, "seed"),
    "negative seed": (dict(seed=-1), InputDataError, "seed"),
    "column": (dict(context_indices=[3]), BotorchTensorDimensionError, "columns"),
    "budget": (dict(memory_budget=0), InputDataError, "memory_budget"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    arguments, error, text = BAD[case]
    with pytest.raises(error, match=text):
        ts(**arguments)


def test_bad_decisions() -> None:
    acqf = ts(num_paths=2)
    with pytest.raises(BotorchTensorDimensionError, match="num_paths=3"):
        acqf(rows(4, 3))
    with pytest.raises(BotorchTensorDimensionError, match="decisions alone"):
        acqf(torch.rand(4, 2, 3, dtype=torch.double))
    with pytest.raises(InputDataError, match="seed"):
        acqf.redraw(-1)
