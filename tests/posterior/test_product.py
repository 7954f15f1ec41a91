"""The product view where interpolation is hard, and where it steps aside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import (
    AdditiveKernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.posterior import (
    View,
    marginal_posterior,
    product,
    skeleton,
)
from botorch_drbo.posterior.product import ProductView, SeparableView
from tests.contracts.view_case import joined, model_moments
from tests.models import make_inputs, make_model

D_X = 2


@pytest.fixture(autouse=True, scope="module")
def no_least_size() -> Iterator[None]:
    """Small problems too, for which the exact view would be as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "_MIN_PAIRS", 0)
        yield


KERNELS = {
    "rbf": lambda d_c: RBFKernel(ard_num_dims=D_X + d_c),
    "scaled_rbf": lambda d_c: ScaleKernel(RBFKernel(ard_num_dims=D_X + d_c)),
    "product": lambda d_c: ScaleKernel(
        MaternKernel(nu=2.5, active_dims=[0, 1])
        * RBFKernel(active_dims=list(range(D_X, D_X + d_c)), ard_num_dims=d_c)
    ),
    "additive": lambda d_c: AdditiveKernel(
        ScaleKernel(RBFKernel(ard_num_dims=D_X + d_c)),
        ScaleKernel(MaternKernel(nu=1.5, active_dims=[0])),
        ScaleKernel(RBFKernel(active_dims=[D_X])),
    ),
    "twice": lambda d_c: (
        RBFKernel(ard_num_dims=D_X + d_c) * RBFKernel(active_dims=[D_X])
    ),
}


def columns(d_c: int = 1) -> list[int]:
    return list(range(D_X, D_X + d_c))


def model_of(
    kernel: str = "rbf",
    *,
    t: int = 30,
    d_c: int = 1,
    noise: float = 1e-4,
    lengthscale: float = 0.5,
    last: Tensor | None = None,
    seed: int = 0,
) -> SingleTaskGP:
    return make_model(
        KERNELS[kernel](d_c),
        t=t,
        d=D_X + d_c,
        noise=noise,
        lengthscale=lengthscale,
        last=last,
        seed=seed,
    )


def inputs(b: int = 5, n: int = 200, d_c: int = 1, seed: int = 1):
    return make_inputs(b, n, d=D_X + d_c, columns=columns(d_c), seed=seed)


def view_of(model: SingleTaskGP, C: Tensor, method="auto", **options) -> View:
    indices = columns(C.shape[-1])
    return marginal_posterior(model, indices, method=method, **options).over(C)


def assert_right(view: View, model: SingleTaskGP, X: Tensor, C: Tensor) -> None:
    """Both moments, relative to the largest outcome and the prior's variance."""
    with torch.no_grad():
        mean, variance = view.at(X).moments()
        joint = joined(X, C, columns(C.shape[-1]))
        expected_mean, expected_variance = model_moments(model, joint)
        prior = model.covar_module(joint[:1, 0], diag=True)
    largest = model.train_targets.abs().max()
    assert (mean - expected_mean).abs().max() <= 1e-8 * largest
    assert (variance - expected_variance).abs().max() <= 1e-8 * prior
    assert (variance >= 0).all()


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_model_posterior(kernel: str, d_c: int) -> None:
    model, (X, C) = model_of(kernel, d_c=d_c), inputs(n=600, d_c=d_c)
    view = view_of(model, C)
    assert view.method == "product"
    assert_right(view, model, X, C)


def repeated(t: int, levels: int) -> Tensor:
    return (torch.arange(t) % levels)[:, None].double() / (levels - 1)


@pytest.mark.parametrize(
    ("t", "d_c", "n", "lengthscale", "last"),
    [
        (500, 1, 1024, 0.3, None),
        (500, 1, 1024, 0.3, repeated(500, 7)),
        (100, 1, 8192, 0.1, repeated(100, 3)),
        (120, 2, 1024, 0.7, None),
        (60, 1, 5000, 3.0, None),
    ],
)
def test_ill_conditioned(
    t: int, d_c: int, n: int, lengthscale: float, last: Tensor | None
) -> None:
    """Noise 1e-6, contexts observed again and again, many training inputs."""
    model = model_of(t=t, d_c=d_c, noise=1e-6, lengthscale=lengthscale, last=last)
    X, C = inputs(b=3, n=n, d_c=d_c, seed=3)
    C[: n // 4] = C[0]  # and contexts asked for twice
    X[0] = model.train_inputs[0][0, :D_X]  # where the variance is smallest
    view = view_of(model, C)
    assert view.method == "product"
    assert_right(view, model, X, C)


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "additive", "twice"])
@pytest.mark.parametrize("interpolated", [True, False])
def test_slopes_are_those_of_the_exact_view(
    kernel: str, d_c: int, interpolated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where slopes at a decision's own contexts are cheaper in closed form."""
    monkeypatch.setattr(product, "_FREE_FLOPS", 2**40 if interpolated else 0)
    # With few observations interpolation costs more than the 8 t^2 flops without it.
    model = model_of(kernel, d_c=d_c, t=30 if interpolated else 4)
    X, C = inputs(n=500, d_c=d_c)
    view, exact = view_of(model, C), view_of(model, C, method="exact")
    assert isinstance(view, ProductView)
    assert view.has_slopes(own=False)
    assert view.has_slopes(own=True) == interpolated
    for contexts in (slice(7), C[10:40].reshape(5, 6, d_c)):
        found, expected = (v.at(X).slopes(contexts) for v in (view, exact))
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= 1e-7 * b.abs().max()


def test_slopes_of_a_rough_kernel_are_not_interpolated() -> None:
    covar = RBFKernel(active_dims=[0, 1]) * MaternKernel(2.5, active_dims=[2])
    model, (X, C) = make_model(covar, t=8), inputs()
    view = view_of(model, C)
    assert isinstance(view, ProductView)
    assert not view.has_slopes(own=False)
    exact = view_of(model, C, method="exact")
    for a, b in zip(view.at(X).slopes(), exact.at(X).slopes(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_where_the_variance_is_cut_off_it_has_no_slope() -> None:
    X, C = inputs()
    here = view_of(model_of(), C).at(X)
    here.at_skeleton[1] -= here.at_skeleton[1].median()  # as rounding would, a little
    at = here.slopes()
    torch.testing.assert_close(at.variance, here.moments()[1], rtol=0, atol=1e-10)
    cut = at.variance == 0.0
    assert 0 < cut.sum() < cut.numel()
    assert (at.variance_slope[cut] == 0.0).all()
    assert (at.variance_slope[~cut] != 0.0).all()


def test_what_depends_on_the_contexts_alone_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    for owner, name in (
        (product, "find_skeleton"),
        (skeleton.Skeleton, "values_and_slopes"),
    ):
        original = getattr(owner, name)

        def spy(*args, original=original, name=name, **options):
            calls.append(name)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, spy)
    X, C = inputs()
    view = view_of(model_of(), C)
    for x in X:
        view.at(x).moments()
        view.at(x).slopes(slice(7, None))
    assert calls == ["find_skeleton", "values_and_slopes"]


class TestStepsAside:
    """Where no small skeleton is right, nothing is interpolated."""

    def check(self, model: SingleTaskGP, X: Tensor, C: Tensor, **options) -> None:
        view = view_of(model, C, "product", **options)
        assert view.method == "exact"
        exact = view_of(model, C, "exact", **options)
        for a, b in zip(view.at(X).moments(), exact.at(X).moments(), strict=True):
            assert torch.equal(a, b)

    def check_separable(self, model: SingleTaskGP, X: Tensor, C: Tensor) -> None:
        """The two sides are computed once each, the slopes in closed form."""
        view, exact = view_of(model, C, "product"), view_of(model, C, "exact")
        assert isinstance(view, SeparableView)
        for a, b in zip(view.at(X).moments(), exact.at(X).moments(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
        means = view.at(X).mean_slopes(), exact.at(X).mean_slopes()
        slopes = view.at(X).slopes(), exact.at(X).slopes()
        for a, b in [means, *zip(*slopes, strict=True)]:
            assert torch.equal(a, b)

    def test_few_contexts(self) -> None:
        self.check(model_of(), *inputs(n=8))

    def test_few_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(product, "_MIN_PAIRS", 2000)
        self.check(model_of(t=10), *inputs(n=199))
        _X, C = inputs(n=201)
        assert view_of(model_of(t=10), C).method == "product"

    def test_short_lengthscales(self) -> None:
        self.check_separable(model_of(lengthscale=0.005), *inputs(n=60))

    def test_many_context_columns(self) -> None:
        # From 256 observations on means alone have slopes of their own.
        model = model_of(t=256, d_c=4, lengthscale=0.6)
        self.check_separable(model, *inputs(d_c=4))

    def test_rough_kernel_of_the_context(self) -> None:
        covar = RBFKernel(active_dims=[0, 1]) * MaternKernel(0.5, active_dims=[2])
        model, (X, C) = make_model(covar, t=150), inputs()
        view = view_of(model, C)
        assert isinstance(view, SeparableView)
        exact = view_of(model, C, method="exact")
        for a, b in zip(view.at(X).moments(), exact.at(X).moments(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)

    def test_small_budget(self) -> None:
        """The interpolation matrix has to fit too, and the context's side."""
        self.check(model_of(), *inputs(n=4000), memory_budget=400_000)

    def test_what_the_check_sees(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A skeleton of far too few contexts is refused by its own check."""
        monkeypatch.setattr(skeleton, "numerical_rank", lambda *_: 4)
        self.check_separable(model_of(), *inputs())


@pytest.mark.parametrize("away", [0.4, 4.0, 5.0])
def test_contexts_that_the_choice_did_not_see(away: float) -> None:
    """Of many contexts a subset is looked at; an outlier is found by the check.

    It feels one outcome that no other context feels, at a correlation of .9, 3e-4 or
    4e-6.
    """
    model = model_of(lengthscale=0.05)
    model.train_inputs[0][-1, 2] = 4.0
    X, C = inputs(b=2, n=6000)
    C[4321] = 4.0 + 0.05 * away
    assert_right(view_of(model, C), model, X, C)


@settings(max_examples=25, deadline=None)
@given(
    t=st.integers(1, 60),
    n=st.integers(48, 400),
    d_c=st.integers(1, 3),
    noise=st.sampled_from([1e-6, 1e-4, 1e-1]),
    lengthscale=st.sampled_from([0.1, 0.4, 2.0]),
    seed=st.integers(0, 1000),
)
def test_any_size(
    t: int, n: int, d_c: int, noise: float, lengthscale: float, seed: int
) -> None:
    model = model_of(t=t, d_c=d_c, noise=noise, lengthscale=lengthscale, seed=seed)
    X, C = inputs(b=3, n=n, d_c=d_c, seed=seed)
    assert_right(view_of(model, C), model, X, C)


@pytest.mark.parametrize("n", [1200, 60_000])
def test_means_alone_need_no_skeleton_where_a_side_fits(n: int) -> None:
    """Within 64 MB: of 60,000 contexts the side has 19 MB, more than a quarter."""
    model, (X, C) = model_of(t=40), inputs(b=3, n=n)
    posterior = marginal_posterior(model, columns(1), memory_budget=2**26)
    view = posterior.over(C, means=True)
    assert isinstance(view, SeparableView) == (n == 1200)
    leaf = X.clone().requires_grad_()
    found, expected = view.at(leaf).means(), posterior.over(C).at(leaf).moments()[0]
    scale = model.train_targets.abs().max().item()
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8 * scale)
    slopes = [torch.autograd.grad(each.sum(), leaf)[0] for each in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5 * scale)
    few = marginal_posterior(model_of(), columns(1)).over(C[:100], means=True)
    assert isinstance(few, ProductView)  # few pairs: means are those of the moments
