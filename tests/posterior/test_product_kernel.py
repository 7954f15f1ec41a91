"""The product path against ``model.posterior``, and where it steps aside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Normalize,
    Warp,
)
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import LinearMean
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.posterior import MarginalPosterior, ProductPosterior, product_kernel
from botorch_drbo.posterior import marginal_posterior as build

D_X = 2


@pytest.fixture(autouse=True, scope="module")
def no_least_size() -> Iterator[None]:
    """Small problems too, for which the exact path would be as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_kernel, "_MIN_PAIRS", 0)
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


def make_model(
    kernel: str = "rbf",
    *,
    t: int = 30,
    d_c: int = 1,
    noise: float = 1e-4,
    lengthscale: float = 0.5,
    seed: int = 0,
    contexts: Tensor | None = None,
    transforms: bool = False,
    dtype: torch.dtype = torch.double,
) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(seed)
    Z = torch.rand(t, D_X + d_c, generator=generator, dtype=torch.double)
    if contexts is not None:
        Z[:, D_X:] = contexts
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, D_X:]).cos().sum(-1, True)
    if transforms:
        Z[:, D_X:] = 40 * Z[:, D_X:] - 10
        Y = 100 + 7 * Y
    covar = KERNELS[kernel](d_c)
    for module in covar.modules():
        if isinstance(module, RBFKernel | MaternKernel):
            module.lengthscale = lengthscale
    model = SingleTaskGP(
        Z.to(dtype),
        Y.to(dtype),
        covar_module=covar,
        input_transform=Normalize(D_X + d_c) if transforms else None,
        outcome_transform=Standardize(1) if transforms else None,
    ).to(dtype)
    model.likelihood.initialize(noise=noise)
    return model


def make_inputs(
    b: int = 5, n: int = 200, d_c: int = 1, seed: int = 1
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(b, D_X, generator=generator, dtype=torch.double)
    C = torch.rand(n, d_c, generator=generator, dtype=torch.double)
    return X, C


def columns(d_c: int = 1) -> list[int]:
    return list(range(D_X, D_X + d_c))


def direct_moments(model: SingleTaskGP, X: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """BoTorch's idiom: each (x, c) a q-batch of one."""
    joint = torch.cat(
        [X[:, None, :].expand(-1, len(C), -1), C.expand(len(X), -1, -1)], dim=-1
    )
    posterior = model.posterior(joint.unsqueeze(-2))
    return posterior.mean[..., 0, 0], posterior.variance[..., 0, 0]


def assert_right(
    posterior: MarginalPosterior,
    model: SingleTaskGP,
    X: Tensor,
    C: Tensor,
    tolerance: float = 1e-8,
) -> None:
    """Both moments, relative to the largest outcome and the prior's variance."""
    mean, variance = posterior(X, C)
    with torch.no_grad():
        expected_mean, expected_variance = direct_moments(model, X, C)
        prior = model.covar_module(torch.zeros(1, D_X + C.shape[-1]).to(X), diag=True)
    transform = getattr(model, "outcome_transform", None)
    scale = 1.0 if transform is None else transform.stdvs.item()
    largest = scale * model.train_targets.abs().max()
    assert (mean - expected_mean).abs().max() <= tolerance * largest
    error = (variance - expected_variance).abs().max()
    assert error <= tolerance * scale**2 * prior.item()
    assert (variance >= 0).all()


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_model_posterior(kernel: str, d_c: int) -> None:
    model, (X, C) = make_model(kernel, d_c=d_c), make_inputs(n=600, d_c=d_c)
    posterior = build(model, columns(d_c))
    assert posterior.path == "product"
    assert posterior.path_of(X, C) == "product"
    assert_right(posterior, model, X, C)


def repeated(t: int, levels: int) -> Tensor:
    return (torch.arange(t) % levels)[:, None].double() / (levels - 1)


@pytest.mark.parametrize(
    ("t", "d_c", "n", "lengthscale", "contexts"),
    [
        (500, 1, 1024, 0.3, None),
        (500, 1, 1024, 0.3, repeated(500, 7)),
        (100, 1, 8192, 0.1, repeated(100, 3)),
        (120, 2, 1024, 0.7, None),
        (60, 1, 5000, 3.0, None),
    ],
)
def test_ill_conditioned(
    t: int, d_c: int, n: int, lengthscale: float, contexts: Tensor | None
) -> None:
    """Noise 1e-6, contexts observed again and again, many training inputs."""
    model = make_model(
        t=t, d_c=d_c, noise=1e-6, lengthscale=lengthscale, contexts=contexts
    )
    X, C = make_inputs(b=3, n=n, d_c=d_c)
    C[: n // 4] = C[0]  # and contexts asked for twice
    X[0] = model.train_inputs[0][0, :D_X]  # where the variance is smallest
    posterior = build(model, columns(d_c))
    assert posterior.path_of(X, C) == "product"
    with torch.no_grad():
        assert_right(posterior, model, X, C)


def test_units_transforms_and_sign() -> None:
    model, (X, C) = make_model(transforms=True), make_inputs()
    C = 40 * C - 10
    posterior = build(model, [2])
    assert posterior.path_of(X, C) == "product"
    assert_right(posterior, model, X, C)
    transform = ScalarizedPosteriorTransform(
        torch.tensor([-1.0], dtype=torch.double), offset=3.0
    )
    mean, variance = build(model, [2], posterior_transform=transform)(X, C)
    torch.testing.assert_close(mean, 3.0 - posterior(X, C)[0])
    torch.testing.assert_close(variance, posterior(X, C)[1])


def test_transforms_that_are_not_linear() -> None:
    Z = torch.rand(20, 3, dtype=torch.double)
    chain = ChainedInputTransform(
        standardize=InputStandardize(3),
        normalize=Normalize(3),
        warp=Warp(d=3, indices=[0, 2], bounds=torch.tensor([[0.0] * 3, [1.0] * 3])),
    )
    chain["warp"].concentration0.data.fill_(1.5)
    model = SingleTaskGP(Z, Z.sin().sum(-1, True), input_transform=chain).eval()
    X, C = Z[:4, :2], Z[:1, 2:] + 0.3 * torch.rand(100, 1).double().clamp(0, 0.1)
    posterior = build(model, [2])
    assert posterior.path_of(X, C) == "product"
    assert_right(posterior, model, X, C)


def test_context_columns_anywhere() -> None:
    model, (X, C) = make_model(), make_inputs()
    order = [2, 0, 1]
    moved = SingleTaskGP(
        model.train_inputs[0][:, order],
        model.train_targets[:, None],
        covar_module=RBFKernel(ard_num_dims=3),
        outcome_transform=None,
    )
    moved.covar_module.lengthscale = 0.5
    moved.likelihood.initialize(noise=1e-4)
    moved.mean_module.load_state_dict(model.mean_module.state_dict())
    mine, other = build(moved, [0]), build(model, [2], path="exact")
    assert mine.path_of(X, C) == "product"
    plain = SingleTaskGP(
        model.train_inputs[0],
        model.train_targets[:, None],
        covar_module=model.covar_module,
        likelihood=model.likelihood,
        outcome_transform=None,
    )
    other = build(plain, [2], path="exact")
    for a, b in zip(mine(X, C), other(X, C), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "additive"])
def test_pending(kernel: str) -> None:
    """The same as the exact path, which has an oracle of its own."""
    model, (X, C) = make_model(kernel), make_inputs()
    pending = torch.tensor([[0.2, 0.4, 0.3], [0.9, 0.1, 0.8]], dtype=torch.double)
    product = build(model, [2], pending=pending)
    exact = build(model, [2], pending=pending, path="exact")
    assert product.path_of(X, C) == "product"
    for a, b in zip(product(X, C), exact(X, C), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


def test_gradients() -> None:
    model, (X, C) = make_model(t=8), make_inputs(b=2, n=60)
    posterior = build(model, [2])
    assert posterior.path_of(X, C) == "product"
    leaf = X.clone().requires_grad_()
    weights = torch.rand(2, 2, 60, dtype=torch.double)

    def moments(x: Tensor) -> Tensor:
        return (torch.stack(posterior(x, C)) * weights).sum(-1)

    assert torch.autograd.gradcheck(moments, (leaf,))
    assert torch.autograd.gradgradcheck(moments, (leaf,), atol=1e-4)


def test_gradients_in_the_contexts() -> None:
    model, (X, C) = make_model(t=8), make_inputs(b=2, n=60)
    product, exact = build(model, [2]), build(model, [2], path="exact")
    leaf = C.clone().requires_grad_()
    assert product.path_of(X, leaf) == "exact"
    for a, b in zip(product(X, leaf), exact(X, leaf), strict=True):
        torch.testing.assert_close(
            *(torch.autograd.grad(v.sum(), leaf, retain_graph=True)[0] for v in (a, b))
        )
    with torch.no_grad():
        assert product.path_of(X, leaf) == "product"


def test_any_batch_shape() -> None:
    model, (X, C) = make_model(), make_inputs(b=6)
    posterior = build(model, [2])
    for moments, whole in zip(
        posterior(X.reshape(3, 1, 2, 2), C), posterior(X, C), strict=True
    ):
        assert moments.shape == (3, 1, 2, 200)
        torch.testing.assert_close(moments.reshape(6, 200), whole)
    assert posterior(X[0], C)[0].shape == (200,)
    assert posterior(X[:0], C)[0].shape == (0, 200)


def test_contexts_of_their_own_take_the_exact_path() -> None:
    model, (X, C) = make_model(), make_inputs(b=3)
    posterior = build(model, [2])
    own = torch.stack([C, C.flip(0), C + 0.1])
    assert posterior.path_of(X, own) == "exact"
    exact = build(model, [2], path="exact")
    for a, b in zip(posterior(X, own), exact(X, own), strict=True):
        torch.testing.assert_close(a, b)


def test_contexts_that_change_are_noticed() -> None:
    model, (X, C) = make_model(), make_inputs()
    posterior = build(model, [2])
    posterior(X, C)
    C.add_(0.05)  # in place
    assert_right(posterior, model, X, C)
    C.data[3] = 2.0  # behind autograd's back
    assert_right(posterior, model, X, C)
    C.numpy()[5] = 1.5
    assert_right(posterior, model, X, C)
    assert_right(posterior, model, X, C[:100])
    assert_right(posterior, model, X, C.flip(0))


def test_same_contexts_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (X, C) = make_model(), make_inputs()
    calls = []
    original = product_kernel.find_skeleton

    def spy(*arguments, **options):
        calls.append(len(arguments[1]))
        return original(*arguments, **options)

    monkeypatch.setattr(product_kernel, "find_skeleton", spy)
    posterior = build(model, [2])
    other = torch.rand(70, 1, dtype=torch.double)
    for _ in range(3):
        posterior(X, C)
        posterior(X[:1], C.clone())  # equal values, whichever tensor holds them
        posterior(X, other)
    assert calls == [200, 70]
    for k in range(6):  # more sets than are kept: memory stays bounded
        posterior(X, C + k)
    assert len(posterior._plans) <= 4


def test_chunks_change_nothing() -> None:
    model, (X, C) = make_model(t=10), make_inputs(n=300)
    whole = build(model, [2])
    pieces = build(model, [2], memory_budget=300_000)
    assert whole.path_of(X, C) == pieces.path_of(X, C) == "product"
    X = X.requires_grad_()
    for a, b in zip(whole(X, C), pieces(X, C), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(
            torch.autograd.grad(a.sum(), X, retain_graph=True)[0],
            torch.autograd.grad(b.sum(), X, retain_graph=True)[0],
            rtol=1e-8,
            atol=1e-8,
        )


class TestInterpolant:
    """Slopes in the context against autograd through the exact path."""

    def exact(self, model: SingleTaskGP, X: Tensor, contexts: Tensor) -> list[Tensor]:
        d_c = contexts.shape[-1]
        own = contexts.expand(*X.shape[:-1], -1, -1).clone().requires_grad_()
        mean, variance = build(model, columns(d_c), path="exact")(X, own)
        slopes = [
            torch.autograd.grad(m.sum(), own, create_graph=True)[0]
            for m in (mean, variance)
        ]
        return [mean, variance, *slopes]

    @pytest.mark.parametrize("kernel", ["rbf", "additive", "twice"])
    @pytest.mark.parametrize("transforms", [False, True])
    @pytest.mark.parametrize("d_c", [1, 2])
    def test_slopes(self, kernel: str, transforms: bool, d_c: int) -> None:
        model = make_model(kernel, d_c=d_c, transforms=transforms)
        X, C = make_inputs(n=500, d_c=d_c)
        shared, own = C[:7], C[10:40].reshape(5, 6, d_c)
        if transforms:
            C, shared, own = (40 * c - 10 for c in (C, shared, own))
        interpolant = build(model, columns(d_c)).interpolant(X, C)
        for contexts in (shared, own):
            expected = self.exact(model, X, contexts)
            for a, b in zip(interpolant.slopes(contexts), expected, strict=True):
                assert a.shape == b.shape
                assert (a - b).abs().max() <= 1e-7 * b.abs().max()

    def test_slopes_follow_the_decision(self) -> None:
        model, (X, C) = make_model(t=12), make_inputs(n=100)
        posterior = build(model, [2])
        own = C[:10].reshape(5, 2, 1)
        leaf = X.clone().requires_grad_()
        expected = self.exact(model, leaf, own)
        local = posterior.interpolant(leaf, C)
        for a, b in zip(local.slopes(own), expected, strict=True):
            gradients = [
                torch.autograd.grad(v.sum(), leaf, retain_graph=True)[0] for v in (a, b)
            ]
            torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-7)

    def test_shared_contexts_that_change_are_noticed(self) -> None:
        model, (X, C) = make_model(), make_inputs()
        posterior = build(model, [2])
        shared = C[:7].clone()
        posterior.interpolant(X, C).slopes(shared)
        shared.data += 0.01
        mean_slope = posterior.interpolant(X, C).slopes(shared).mean_slope
        torch.testing.assert_close(
            mean_slope, self.exact(model, X, shared)[2], rtol=1e-6, atol=1e-7
        )

    def test_none_where_the_exact_path_is_taken(self) -> None:
        model, (X, C) = make_model(), make_inputs(n=8)
        assert build(model, [2]).interpolant(X, C) is None


class TestStepsAside:
    """Where no small skeleton is right, the exact path does the work."""

    def check(self, model: SingleTaskGP, X: Tensor, C: Tensor, **options) -> None:
        d_c = C.shape[-1]
        posterior = build(model, columns(d_c), **options)
        exact = build(model, columns(d_c), path="exact")
        assert posterior.path == "product"
        assert posterior.path_of(X, C) == "exact"
        for a, b in zip(posterior(X, C), exact(X, C), strict=True):
            assert torch.equal(a, b)

    def test_few_contexts(self) -> None:
        self.check(make_model(), *make_inputs(n=8))

    def test_few_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(product_kernel, "_MIN_PAIRS", 2000)
        self.check(make_model(t=10), *make_inputs(n=199))

    def test_short_lengthscales(self) -> None:
        self.check(make_model(lengthscale=0.005), *make_inputs(n=60))

    def test_many_context_columns(self) -> None:
        self.check(make_model(t=60, d_c=4, lengthscale=0.6), *make_inputs(d_c=4))

    def test_rough_kernel_of_the_context(self) -> None:
        covar = RBFKernel(active_dims=[0, 1]) * MaternKernel(0.5, active_dims=[2])
        Z = torch.rand(150, 3, dtype=torch.double)
        model = SingleTaskGP(Z, Z.sum(-1, True), covar_module=covar)
        self.check(model, *make_inputs())

    def test_small_budget(self) -> None:
        """The interpolation matrix has to fit too."""
        self.check(make_model(), *make_inputs(n=4000), memory_budget=400_000)

    def test_what_the_check_sees(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A skeleton of far too few contexts is refused by its own check."""
        monkeypatch.setattr("botorch_drbo.posterior.skeleton._last_above", lambda *_: 4)
        self.check(make_model(), *make_inputs())

    @pytest.mark.parametrize("away", [0.4, 4.0, 5.0])
    def test_contexts_that_the_choice_did_not_see(self, away: float) -> None:
        """Of many contexts a subset is looked at; an outlier is found by the check.

        It feels one outcome that no other context feels, at a correlation of .9, 3e-4
        or 4e-6.
        """
        model = make_model(lengthscale=0.05)
        model.train_inputs[0][-1, 2] = 4.0
        X, C = make_inputs(b=2, n=6000)
        C[4321] = 4.0 + 0.05 * away
        assert_right(build(model, [2]), model, X, C)


class TestChoiceOfPath:
    """Which models factorise."""

    Z = torch.rand(12, 3, dtype=torch.double)

    def path(self, covar: Kernel | None = None, **options) -> str:
        model = SingleTaskGP(self.Z, self.Z[:, :1], covar_module=covar, **options)
        return build(model, [2]).path

    def test_automatic(self) -> None:
        split = MaternKernel(active_dims=[0]) * MaternKernel(active_dims=[2])
        assert self.path() == "product"
        assert self.path(ScaleKernel(split)) == "product"
        assert self.path(MaternKernel(ard_num_dims=3)) == "exact"
        assert self.path(RQKernel()) == "exact"
        assert self.path(split + MaternKernel(active_dims=[1, 2])) == "exact"
        assert self.path(mean_module=LinearMean(3)) == "exact"

    def test_asked_for(self) -> None:
        model = SingleTaskGP(self.Z, self.Z[:, :1])
        for path in ("product", "exact", "generic"):
            assert build(model, [2], path=path).path == path

    def test_refused(self) -> None:
        model = SingleTaskGP(self.Z, self.Z[:, :1], covar_module=MaternKernel())
        with pytest.raises(UnsupportedError, match="path='exact'"):
            build(model, [2], path="product")
        with pytest.raises(UnsupportedError, match="factorises"):
            ProductPosterior(model, [2])


def test_float32() -> None:
    model, (X, C) = make_model(dtype=torch.float, noise=1e-2), make_inputs()
    posterior = build(model, [2])
    X, C = X.float(), C.float()
    assert posterior.path_of(X, C) == "product"
    mean, variance = posterior(X, C)
    assert mean.dtype == variance.dtype == torch.float
    exact_mean, exact_variance = build(model, [2], path="exact")(X, C)
    torch.testing.assert_close(mean, exact_mean, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(variance, exact_variance, rtol=1e-3, atol=1e-3)


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
    model = make_model(t=t, d_c=d_c, noise=noise, lengthscale=lengthscale, seed=seed)
    X, C = make_inputs(b=3, n=n, d_c=d_c, seed=seed)
    assert_right(build(model, columns(d_c)), model, X, C)
