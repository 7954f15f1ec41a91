"""Views of the posterior: what holds for every view, on every model that it takes."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from tests.models import join, make_inputs, make_model
from tests.posterior.model_views import (
    EVERY,
    ONE_OF_EACH,
    PENDING,
    ModelView,
    model_views,
    weighted,
)

pytestmark = pytest.mark.usefixtures("no_least_size")


@model_views()
def test_moments_are_those_of_the_model(model_view: ModelView) -> None:
    view = model_view.view()
    assert view.method == model_view.method
    model_view.assert_moments(
        view.at(model_view.X).moments(), model_view.expected(model_view.X, model_view.C)
    )


@pytest.mark.parametrize("method", EVERY)
def test_moments_are_the_textbooks(method: str) -> None:
    """Against plain algebra, so that no posterior is its own judge."""
    model, (X, C) = make_model(), make_inputs()
    Z, y = model.train_inputs[0], model.train_targets
    level, noise = model.mean_module.constant.item(), model.likelihood.noise.item()
    lengthscale = model.covar_module.lengthscale.detach()

    def k(a: Tensor, b: Tensor) -> Tensor:
        gaps = (a[:, None] - b[None]) / lengthscale
        return (-0.5 * gaps.square().sum(-1)).exp()

    K = k(Z, Z) + noise * torch.eye(len(Z), dtype=torch.double)
    cross = k(join(X, C, [2]).flatten(0, 1), Z)
    expected_mean = level + cross @ torch.linalg.solve(K, y - level)
    explained = (cross * torch.linalg.solve(K, cross.mT).mT).sum(-1)
    view = marginal_posterior(model, [2], method=method).over(C)
    assert view.method == method
    mean, variance = view.at(X).moments()
    torch.testing.assert_close(mean.flatten(), expected_mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(variance.flatten(), 1 - explained, rtol=0, atol=1e-9)


PARTS = [slice(0, 7), slice(50, None), slice(-9, -2), slice(0, 7, 2), slice(4, 4)]


@model_views()
def test_a_part_is_a_slice_of_the_whole(model_view: ModelView) -> None:
    here = model_view.view().at(model_view.X)
    whole, slopes = here.moments(), here.slopes()
    for part in PARTS:
        for a, b in zip(here.moments(part), whole, strict=True):
            torch.testing.assert_close(a, b[..., part], rtol=1e-5, atol=1e-9)
        for a, b in zip(here.slopes(part)[2:], slopes[2:], strict=True):
            expected = b[..., part, :]
            torch.testing.assert_close(a, expected, rtol=1e-4, atol=1e-5)


@model_views()
def test_slopes_at_the_views_contexts(model_view: ModelView) -> None:
    found = model_view.view().at(model_view.X).slopes(slice(3, 13))
    model_view.assert_slopes(
        found, model_view.expected_slopes(model_view.X, model_view.C[3:13])
    )


@model_views()
def test_slopes_at_contexts_of_each_decisions_own(model_view: ModelView) -> None:
    own = model_view.own()
    found = model_view.view().at(model_view.X).slopes(own)
    model_view.assert_slopes(found, model_view.expected_slopes(model_view.X, own))


def test_each_model_of_an_ensemble_has_contexts_of_its_own() -> None:
    model_view = ModelView("ensemble", "generic")
    own = torch.stack(
        [model_view.own(), model_view.own().flip(1), model_view.own() / 2], 1
    )
    found = model_view.view().at(model_view.X).slopes(own)  # b x S x k x d_c
    for s in range(3):
        expected = [
            part[:, s] for part in model_view.expected_slopes(model_view.X, own[:, s])
        ]
        model_view.assert_slopes([part[:, s] for part in found], expected)


@model_views()
def test_any_batch_shape(model_view: ModelView) -> None:
    X, _ = make_inputs(4, columns=model_view.case.columns, units=model_view.case.units)
    own = model_view.own()[:1].expand(4, -1, -1)
    view = model_view.view()

    def parts(X: Tensor, own: Tensor) -> list[Tensor]:
        here = view.at(X)
        return [*here.moments(), *here.slopes(slice(5)), *here.slopes(own)]

    expected = parts(X, own)
    for batch in ((), (0,), (2, 1, 2)):
        num = torch.Size(batch).numel()
        found = parts(
            X[:num].reshape(*batch, X.shape[-1]),
            own[:num].reshape(*batch, *own.shape[1:]),
        )
        for a, b in zip(found, expected, strict=True):
            assert a.shape == (*batch, *b.shape[1:])
            b = b[:num].reshape(a.shape)
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@ONE_OF_EACH
def test_blocks_change_nothing(model_view: ModelView) -> None:
    X, _ = make_inputs(20 if model_view.method == "product" else 6, units=True)
    X = X.requires_grad_()
    budget = {"generic": 250_000, "exact": 20_000, "product": 62_000}[model_view.method]
    whole, pieces = model_view.view(), model_view.view(memory_budget=budget)
    assert pieces.method == model_view.method
    for look in (
        lambda here: here.moments(),
        lambda here: here.slopes(slice(5)),
    ):
        a, b = (weighted(look(view.at(X))) for view in (whole, pieces))
        torch.testing.assert_close(a, b)
        with torch.no_grad():
            torch.testing.assert_close(weighted(look(pieces.at(X))), a)
        (grad_a,), (grad_b,) = (
            torch.autograd.grad(f.sum(), X, create_graph=True) for f in (a, b)
        )
        torch.testing.assert_close(grad_a, grad_b)
        (second_a,), (second_b,) = (
            torch.autograd.grad(g.square().sum(), X) for g in (grad_a, grad_b)
        )
        torch.testing.assert_close(second_a, second_b)


@ONE_OF_EACH
def test_contexts_are_copies(model_view: ModelView) -> None:
    contexts = model_view.C.clone()
    view = model_view.view(contexts)
    before = [*view.at(model_view.X).moments(), *view.at(model_view.X).slopes()]
    contexts += 5.0
    contexts.numpy()[:] = 0.0  # behind autograd's back
    after = [*view.at(model_view.X).moments(), *view.at(model_view.X).slopes()]
    assert all(map(torch.equal, before, after))


BOTH = [(name, method) for name in ("rbf", "float32") for method in EVERY]


@pytest.mark.parametrize("model_view", BOTH, ids=str, indirect=True)
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_results_have_the_dtype_of_the_decisions(
    model_view: ModelView, dtype: torch.dtype
) -> None:
    here = model_view.view(model_view.C.to(dtype)).at(model_view.X.to(dtype))
    expected = model_view.view().at(model_view.X)
    for a, b, scale in zip(
        [
            *here.moments(),
            *here.slopes(slice(4)),
            *here.slopes(model_view.own().to(dtype)),
        ],
        [
            *expected.moments(),
            *expected.slopes(slice(4)),
            *expected.slopes(model_view.own()),
        ],
        3 * [*model_view.scales, *model_view.scales],
        strict=False,
    ):
        assert a.dtype == dtype
        assert (a - b).abs().max() <= 1e-2 * max(scale, b.abs().max().item())


@pytest.mark.parametrize("method", EVERY)
def test_pending_among_outcomes_of_unequal_noise(method: str) -> None:
    """What is pending will be as noisy as the data were on average."""
    model, (X, C) = make_model(fixed_noise=True, units=True), make_inputs(units=True)
    model.likelihood.noise = model.likelihood.noise * torch.logspace(0, 3, 12).double()
    noise = model.likelihood.noise * model.outcome_transform.stdvs.square().squeeze()
    joint = join(X, C, [2]).reshape(-1, 1, 3)
    with torch.no_grad():  # conditioning of BoTorch's joint posterior
        both = torch.cat([joint, PENDING.expand(len(joint), -1, -1)], dim=-2)
        covariance = model.posterior(both).distribution.covariance_matrix
    cross, own = covariance[:, :1, 1:], covariance[:, 1:, 1:]
    own = own + noise.mean() * torch.eye(2, dtype=torch.double)
    explained = cross @ torch.linalg.solve(own, cross.mT)
    expected = (covariance[:, :1, :1] - explained).reshape(len(X), len(C))
    posterior = marginal_posterior(model, [2], pending=PENDING, method=method)
    view = posterior.over(C)
    assert view.method == method
    found = view.at(X).moments()[1]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", EVERY)
def test_contexts_of_another_shape_are_refused(method: str) -> None:
    posterior = marginal_posterior(make_model(), [2], method=method)
    for shape in ((60, 2), (60,), (2, 60, 1)):
        with pytest.raises(BotorchTensorDimensionError, match="n x 1"):
            posterior.over(torch.zeros(*shape, dtype=torch.double))


@pytest.mark.parametrize("method", EVERY)
def test_one_evaluation_without_a_view(method: str) -> None:
    model, (X, C) = make_model(), make_inputs()
    posterior = marginal_posterior(model, [2], method=method)
    for a, b in zip(posterior(X, C), posterior.over(C).at(X).moments(), strict=True):
        assert torch.equal(a, b)
