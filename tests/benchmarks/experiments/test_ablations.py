"""The faults of the public code, put in on purpose."""

import torch

from benchmarks.experiments.ablations import (
    DRBO_MMD_DIAGONAL,
    STABLE_OPT_SHIFTED,
    WDRBO_DETACHED,
    DetachedPenalty,
)
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from tests.products import robust_set

GENERATOR = torch.Generator().manual_seed(0)
UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
X, C = (torch.rand(8, 2, generator=GENERATOR).double() for _ in range(2))
HISTORY = History(X=X, C=C, Y=(X - C).square().sum(-1, keepdim=True), contexts=C)
SPACE = SearchSpace(UNIT, UNIT)
MODEL = make_recipe("erbo").fitted(HISTORY, SPACE, uses_contexts=True)


def _built(recipe):
    return recipe.exploring(recipe.state_of(MODEL, HISTORY, SPACE, 0), None)


def test_without_its_gradient_wdrbo_has_its_values_and_erbos_gradient():
    at = torch.rand(4, 1, 2, generator=GENERATOR).double().requires_grad_(True)
    detached = _built(WDRBO_DETACHED.with_options(radius=0.1))
    assert isinstance(detached, DetachedPenalty)
    wdrbo, erbo = (
        _built(make_recipe("wdrbo", radius=0.1)),
        _built(make_recipe("erbo")),
    )
    torch.testing.assert_close(detached(at), wdrbo(at))
    (ours,) = torch.autograd.grad(detached(at).sum(), at)
    (expected,) = torch.autograd.grad(erbo(at).sum(), at)
    torch.testing.assert_close(ours, expected)


def test_the_shifted_interval_lies_one_to_three_deviations_below_the_mean():
    contexts, _ = robust_set(STABLE_OPT_SHIFTED, MODEL, HISTORY, SPACE, 0)
    mean, std = C.mean(0), C.std(0, correction=0)
    assert (contexts.points <= mean - std + 1e-9).all()
    assert (contexts.points >= mean - 3 * std - 1e-9).all()


def test_the_diagonal_has_ten_points():
    contexts, _ball = robust_set(DRBO_MMD_DIAGONAL, MODEL, HISTORY, SPACE, 0)
    along = torch.linspace(0, 1, 10).double().unsqueeze(-1)
    torch.testing.assert_close(contexts.points, along.expand(-1, 2))
    assert contexts.weights.sum().item() == 1.0
    # of the points of the diagonal, the nearest to a context has the nearest mean
    nearest = (C.mean(-1) * 9).round().long()
    counts = torch.bincount(nearest, minlength=10) / 8
    torch.testing.assert_close(contexts.weights, counts.double())
