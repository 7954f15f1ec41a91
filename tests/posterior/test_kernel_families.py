"""The fast views against ``model.posterior``, by kernel and number of contexts."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import (
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior, product
from botorch_drbo.posterior.product import SeparableView
from botorch_drbo.posterior.view import View
from tests.contracts.view_case import joined, model_moments
from tests.models import make_inputs, make_model, uniform

D_X = 2
pytestmark = pytest.mark.usefixtures("no_least_size")


def matern(nu: float, *columns: int) -> Kernel:
    kernel = MaternKernel(nu, active_dims=columns, ard_num_dims=len(columns))
    return ScaleKernel(kernel)


def rational(*columns: int) -> Kernel:
    kernel = RQKernel(active_dims=columns, ard_num_dims=len(columns)).double()
    kernel.alpha = 0.7 + 0.2 * len(columns)
    return ScaleKernel(kernel)


X = (0, 1)
FACTORISING = {
    "rbf": lambda *c: ScaleKernel(RBFKernel(ard_num_dims=D_X + len(c))),
    "columns, 5/2": lambda *c: ProductKernel(*(matern(2.5, j) for j in (*X, *c))),
    "columns, 3/2": lambda *c: ProductKernel(*(matern(1.5, j) for j in (*X, *c))),
    "product": lambda *c: matern(2.5, *X) * matern(1.5, *c),
    "sum": lambda *c: matern(2.5, *X) + matern(2.5, *c),
    "product and sum": lambda *c: matern(2.5, *X) * matern(2.5, *c) + matern(1.5, *c),
    "product and two sums": lambda *c: (
        matern(2.5, *X) * matern(2.5, *c) + matern(1.5, *c) + matern(2.5, *X)
    ),
    "rational product": lambda *c: rational(*X) * rational(*c),
}
JOINT = {
    "rational": lambda *c: rational(*X, *c),
    "5/2": lambda *c: matern(2.5, *X, *c),
}


def columns(d_c: int) -> list[int]:
    return list(range(D_X, D_X + d_c))


def problem(name: str, d_c: int, dtype: torch.dtype = torch.double):
    make = {**FACTORISING, **JOINT}[name]
    torch.manual_seed(0)
    model = make_model(make(*columns(d_c)), t=15, d=D_X + d_c, dtype=dtype)
    return model, *make_inputs(6, 80, d=D_X + d_c, columns=columns(d_c), dtype=dtype)


def view_of(model, contexts: Tensor) -> View:
    return marginal_posterior(model, columns(contexts.shape[-1])).over(contexts)


@pytest.mark.parametrize("share", [0.5, 0.0])  # 0: no skeleton is small enough
@pytest.mark.parametrize("d_c", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [*FACTORISING, *JOINT])
def test_values_gradients_and_slopes(
    name: str, d_c: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product, "_MAX_SHARE", share)
    model, x, contexts = problem(name, d_c)
    view = view_of(model, contexts)
    assert view.method == ("product" if name in FACTORISING else "exact")
    if share == 0.0 and name in FACTORISING:
        assert isinstance(view, SeparableView)
    x.requires_grad_()
    contexts = contexts.clone().requires_grad_()
    expected = model_moments(model, joined(x, contexts, columns(d_c)))
    upstream = uniform(2, *expected[0].shape, seed=5)

    def gradients(moments, leaves):
        total = torch.stack(moments).mul(upstream).sum()
        return torch.autograd.grad(total, leaves, retain_graph=True)

    found = view.at(x).moments()
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-8)
    (of_x,) = gradients(found, [x])
    of_x_expected, of_contexts = gradients(expected, [x, contexts])
    torch.testing.assert_close(of_x, of_x_expected, rtol=1e-6, atol=1e-6)
    at = view.at(x).slopes()
    slopes = torch.einsum("bn,bnd->nd", upstream[0], at.mean_slope) + torch.einsum(
        "bn,bnd->nd", upstream[1], at.variance_slope
    )
    torch.testing.assert_close(slopes, of_contexts, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("d_c", [1, 3])
@pytest.mark.parametrize("name", [*FACTORISING, *JOINT])
def test_batches_of_any_shape(name: str, d_c: int) -> None:
    model, x, contexts = problem(name, d_c)
    view = view_of(model, contexts)
    for shape in ((2, 3), (1, 6), (6, 1)):
        at, flat = view.at(x.reshape(*shape, D_X)), view.at(x)
        for a, b in zip(at.moments(), flat.moments(), strict=True):
            assert a.shape == (*shape, len(contexts))
            assert torch.equal(a.flatten(0, 1), b)
        for a, b in zip(at.slopes(), flat.slopes(), strict=True):
            assert torch.equal(a.flatten(0, 1), b)
    alone = torch.stack([torch.stack(view.at(each).moments()) for each in x], 1)
    torch.testing.assert_close(
        alone, torch.stack(view.at(x).moments()), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("d_c", [1, 2, 4])
@pytest.mark.parametrize("name", [*FACTORISING, *JOINT])
def test_float32(name: str, d_c: int) -> None:
    """Against the same model in float64."""
    model, x, contexts = problem(name, d_c, torch.float)
    expected = model_moments(
        problem(name, d_c)[0], joined(x, contexts, columns(d_c)).double()
    )
    found = view_of(model, contexts).at(x).moments()
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == torch.float
        size = max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a.double(), b, rtol=0, atol=1e-3 * size)
