"""The door: derivatives of moments and slopes, once, twice and many at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.posterior import LocalMoments, View
from tests.posterior.model_views import ONE_OF_EACH, ModelView, model_views, weighted

pytestmark = pytest.mark.usefixtures("no_least_size")


@model_views(1)
def test_gradients_of_moments(model_view: ModelView) -> None:
    view, leaf = model_view.view(), model_view.X[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda X: weighted(view.at(X).moments()), leaf, fast_mode=True
    )


@model_views(2)
def test_second_derivatives_of_moments(model_view: ModelView) -> None:
    view, leaf = model_view.view(), model_view.X[:2].clone().requires_grad_()

    def moments(X: Tensor) -> Tensor:
        return weighted(view.at(X).moments(slice(20)))

    assert torch.autograd.gradgradcheck(moments, leaf, atol=1e-4, fast_mode=True)


@model_views(1)
@pytest.mark.parametrize("own", [False, True])
def test_gradients_of_slopes(model_view: ModelView, own: bool) -> None:
    view, leaf = model_view.view(), model_view.X[:2].clone().requires_grad_()
    contexts = model_view.own()[:2] if own else slice(4, 9)
    assert torch.autograd.gradcheck(
        lambda X: weighted(view.at(X).slopes(contexts)),
        leaf,
        atol=1e-4,
        fast_mode=True,
    )


@ONE_OF_EACH
def test_gradients_follow_from_one_look(model_view: ModelView) -> None:
    """Moments and slopes of one look may be used together, and again."""
    view, leaf = model_view.view(), model_view.X.clone().requires_grad_()

    def both(X: Tensor) -> Tensor:
        here = view.at(X)
        return torch.cat(
            [weighted(here.moments()), weighted(here.slopes(slice(4)))]
            + [
                weighted(here.slopes(model_view.own())),
                weighted(here.moments(slice(3))),
            ]
        )

    assert torch.autograd.gradcheck(both, leaf, atol=1e-4, fast_mode=True)


@ONE_OF_EACH
def test_jacobians_in_one_sweep(model_view: ModelView) -> None:
    """``is_grads_batched``: many vectors go through the backward pass at once."""
    view = model_view.view()
    for function in (
        lambda X: weighted(view.at(X).moments()),
        lambda X: weighted(view.at(X).slopes(slice(3))),
        lambda X: weighted(view.at(X).slopes(model_view.own())),
    ):
        expected = torch.autograd.functional.jacobian(function, model_view.X)
        found = torch.autograd.functional.jacobian(
            function, model_view.X, vectorize=True
        )
        torch.testing.assert_close(found, expected)


@ONE_OF_EACH
def test_hessians_in_one_sweep(model_view: ModelView) -> None:
    view = model_view.view()

    def function(X: Tensor) -> Tensor:
        return weighted(view.at(X).moments()).sum()

    expected = torch.autograd.functional.hessian(function, model_view.X)
    found = torch.autograd.functional.hessian(function, model_view.X, vectorize=True)
    torch.testing.assert_close(found, expected)


@ONE_OF_EACH
def test_no_graph_where_none_is_asked_for(model_view: ModelView) -> None:
    view, leaf = model_view.view(), model_view.X.clone().requires_grad_()

    def parts(X: Tensor) -> list[Tensor]:
        here = view.at(X)
        return [*here.moments(), *here.slopes(slice(3)), *here.slopes(model_view.own())]

    assert not any(part.requires_grad for part in parts(model_view.X))
    with torch.no_grad():
        assert not any(part.requires_grad for part in parts(leaf))
    assert all(part.requires_grad for part in parts(leaf))


@ONE_OF_EACH
def test_contexts_are_constants(model_view: ModelView) -> None:
    """Also where they are parameters: the way to their gradient is ``slopes``."""
    C, own = model_view.C.clone().requires_grad_(), model_view.own().requires_grad_()
    view, leaf = model_view.view(C), model_view.X.clone().requires_grad_()
    here = view.at(model_view.X)
    found = [*here.moments(), *here.slopes(), *here.slopes(own)]
    assert not any(part.requires_grad for part in found)
    here = view.at(leaf)
    for part in (*here.moments(), *here.slopes(), *here.slopes(own)):
        gradients = torch.autograd.grad(
            part.sum(), [leaf, C, own], retain_graph=True, allow_unused=True
        )
        assert gradients[0] is not None and gradients[1:] == (None, None)


@ONE_OF_EACH
def test_what_is_built_in_inference_mode_gives_gradients_later(
    model_view: ModelView,
) -> None:
    def parts(view: View) -> Tensor:
        X = model_view.X.clone().requires_grad_()
        here: LocalMoments = view.at(X)
        found = weighted(here.moments()), weighted(here.slopes(slice(4)))
        (first,) = torch.autograd.grad(torch.cat(found).sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), X)
        return second

    with torch.inference_mode():
        view = model_view.view()  # posterior and view
        here = view.at(model_view.X.clone())
        inside = [
            *here.moments(),
            *here.slopes(slice(4)),
            *here.slopes(model_view.own()),
        ]
    here = view.at(model_view.X)
    outside = [*here.moments(), *here.slopes(slice(4)), *here.slopes(model_view.own())]
    for a, b in zip(inside, outside, strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(parts(view), parts(model_view.view()))
