"""Every path against ``model.posterior`` on q=1 batches, and its gradients."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms.input import AppendFeatures, Normalize
from botorch.models.transforms.outcome import Log, Standardize
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)

from botorch_drbo.posterior import GenericPosterior, fused, marginal_posterior

KERNELS = {
    "rbf": lambda: RBFKernel(ard_num_dims=3),
    "scaled_rbf": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "matern12": lambda: MaternKernel(nu=0.5, ard_num_dims=3),
    "matern32": lambda: ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=3)),
    "matern52": lambda: MaternKernel(nu=2.5, ard_num_dims=3),
    "rational_quadratic": lambda: ScaleKernel(RQKernel(ard_num_dims=3)),
    "additive": lambda: AdditiveKernel(
        ScaleKernel(RBFKernel(active_dims=[0, 1])),
        ScaleKernel(MaternKernel(nu=2.5, active_dims=[2])),
    ),
    "product": lambda: ScaleKernel(
        RBFKernel(active_dims=[0, 1]) * MaternKernel(nu=1.5, active_dims=[2])
    ),
    "linear": lambda: LinearKernel(ard_num_dims=3),
}


def make_model(
    kernel: str = "rbf",
    *,
    t: int = 25,
    fixed_noise: bool = False,
    transforms: bool = True,
    dtype: torch.dtype = torch.double,
) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(1)
    Z = torch.rand(t, 3, generator=generator, dtype=torch.double).to(dtype)
    Z[:, 2] = 40 * Z[:, 2] - 10  # a context in units of its own
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (Z[:, 2:] / 10).cos()
    Y = 100 + 7 * Y
    covar = KERNELS[kernel]()
    for module in covar.modules():
        if hasattr(module, "raw_lengthscale") and module.lengthscale is not None:
            module.lengthscale = 0.3 if transforms else 0.6
    return SingleTaskGP(
        Z,
        Y,
        train_Yvar=torch.full_like(Y, 0.05) * (1 + Z[:, :1]) if fixed_noise else None,
        covar_module=covar,
        input_transform=Normalize(3) if transforms else None,
        outcome_transform=Standardize(1) if transforms else None,
    ).to(dtype)


def make_inputs(dtype: torch.dtype = torch.double) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    X = torch.rand(4, 2, generator=generator, dtype=torch.double).to(dtype)
    C = 40 * torch.rand(6, 1, generator=generator, dtype=torch.double).to(dtype) - 10
    return X, C


def direct_moments(model, X, C, posterior_transform=None):
    """BoTorch's idiom: each (x, c) a q-batch of one."""
    joint = torch.cat(
        [X[:, None, :].expand(-1, len(C), -1), C.expand(len(X), -1, -1)], dim=-1
    )
    posterior = model.posterior(
        joint.unsqueeze(-2), posterior_transform=posterior_transform
    )
    return posterior.mean[..., 0, 0], posterior.variance[..., 0, 0]


@pytest.mark.parametrize("path", ["exact", "generic"])
@pytest.mark.parametrize("fixed_noise", [False, True])
@pytest.mark.parametrize("transforms", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_model_posterior(kernel, transforms, fixed_noise, path):
    model = make_model(kernel, fixed_noise=fixed_noise, transforms=transforms)
    X, C = make_inputs()
    mean, variance = marginal_posterior(model, [2], path=path)(X, C)
    expected_mean, expected_variance = direct_moments(model, X, C)
    # GPyTorch takes the root of a rounded squared distance: 1e-16 becomes 1e-8, and
    # Matern-1/2 feels it to first order, in the model's own posterior too.
    tolerance = 1e-6 if kernel == "matern12" else 1e-10
    assert mean.shape == variance.shape == (4, 6)
    error = (mean - expected_mean).abs().max()
    assert error <= tolerance * expected_mean.abs().max()
    error = (variance - expected_variance).abs().max()
    assert error <= tolerance * expected_variance.max()


def test_equals_the_textbook_formula():
    """Against numpy-style algebra, so that no path is its own judge."""
    model = make_model("rbf", transforms=False)
    X, C = make_inputs()
    Z, y = model.train_inputs[0], model.train_targets
    mean_constant = model.mean_module.constant.item()
    ell = model.covar_module.lengthscale.detach()
    noise = model.likelihood.noise.item()

    def k(a, b):
        return torch.exp(-0.5 * ((a[:, None] - b[None]) / ell).square().sum(-1))

    K = k(Z, Z) + noise * torch.eye(len(Z), dtype=torch.double)
    joint = torch.cat([X.repeat_interleave(6, 0), C.repeat(4, 1)], dim=-1)
    cross = k(joint, Z)
    expected_mean = mean_constant + cross @ torch.linalg.solve(K, y - mean_constant)
    expected_variance = 1 - (cross * torch.linalg.solve(K, cross.T).T).sum(-1)
    for path in ("exact", "generic"):
        mean, variance = marginal_posterior(model, [2], path=path)(X, C)
        torch.testing.assert_close(mean.flatten(), expected_mean, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(
            variance.flatten(), expected_variance, rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_minimisation_by_posterior_transform(path):
    model, (X, C) = make_model(), make_inputs()
    transform = ScalarizedPosteriorTransform(
        torch.tensor([-1.0], dtype=torch.double), offset=3.0
    )
    mean, variance = marginal_posterior(
        model, [2], posterior_transform=transform, path=path
    )(X, C)
    plain_mean, plain_variance = direct_moments(model, X, C)
    torch.testing.assert_close(mean, 3.0 - plain_mean)
    torch.testing.assert_close(variance, plain_variance)


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_context_columns_anywhere(path):
    model, (X, C) = make_model(), make_inputs()
    Z = model.train_inputs[0]
    moved = SingleTaskGP(
        Z[:, [2, 0, 1]],
        model.outcome_transform.untransform(model.train_targets.unsqueeze(-1))[0],
        covar_module=KERNELS["rbf"](),
        input_transform=Normalize(3),
    )
    moved.covar_module.lengthscale = model.covar_module.lengthscale.detach()
    mean, variance = marginal_posterior(moved, [0], path=path)(X, C)
    expected_mean, expected_variance = marginal_posterior(model, [2], path=path)(X, C)
    torch.testing.assert_close(mean, expected_mean)
    torch.testing.assert_close(variance, expected_variance)


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_contexts_of_their_own_for_each_decision(path):
    model, (X, C) = make_model(), make_inputs()
    own = torch.stack([C[torch.randperm(6)] for _ in range(4)])  # 4 x 6 x 1
    posterior = marginal_posterior(model, [2], path=path)
    mean, variance = posterior(X, own)
    for row in range(4):
        row_mean, row_variance = posterior(X[row : row + 1], own[row])
        torch.testing.assert_close(mean[row : row + 1], row_mean)
        torch.testing.assert_close(variance[row : row + 1], row_variance)


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_any_batch_shape(path):
    model, (X, C) = make_model(), make_inputs()
    posterior = marginal_posterior(model, [2], path=path)
    mean, _ = posterior(X.reshape(2, 1, 2, 2), C)
    torch.testing.assert_close(mean.reshape(4, 6), posterior(X, C)[0])


def test_ensemble_keeps_its_members_apart():
    Z = torch.rand(8, 3, dtype=torch.double)
    model = EnsembleMapSaasSingleTaskGP(Z, Z.sum(-1, keepdim=True), num_taus=3).eval()
    X, C = torch.rand(4, 2, dtype=torch.double), torch.rand(5, 1, dtype=torch.double)
    posterior = marginal_posterior(model, [2])
    mean, variance = posterior(X, C)
    assert posterior.path == "generic"
    assert mean.shape == variance.shape == (4, 3, 5)
    for i in range(4):
        for j in range(5):
            direct = model.posterior(torch.cat([X[i], C[j]])[None, None])
            torch.testing.assert_close(mean[i, :, j], direct.mean[0, :, 0, 0])
            torch.testing.assert_close(variance[i, :, j], direct.variance[0, :, 0, 0])


@pytest.mark.parametrize("path", ["exact", "generic"])
@pytest.mark.parametrize("kernel", ["rbf", "matern52", "additive"])
def test_pending_is_conditioning_with_a_frozen_mean(kernel, path):
    """Oracle: a model that holds the pending inputs, with outcomes at its mean."""
    model, (X, C) = make_model(kernel, fixed_noise=False), make_inputs()
    pending = torch.tensor([[0.2, 0.4, 3.0], [0.9, 0.1, -5.0]], dtype=torch.double)
    plain = marginal_posterior(model, [2], path=path)
    posterior = marginal_posterior(model, [2], pending=pending, path=path)
    mean, variance = posterior(X, C)

    with torch.no_grad():
        Z = model.input_transform.untransform(model.train_inputs[0])
        believed = model.posterior(pending).mean
        Y = model.outcome_transform.untransform(model.train_targets[:, None])[0]
    augmented = SingleTaskGP(
        torch.cat([Z, pending]),
        torch.cat([Y, believed]),
        covar_module=model.covar_module,
        likelihood=model.likelihood,
        mean_module=model.mean_module,
        input_transform=model.input_transform,
        outcome_transform=None,
    )
    # Same hyper-parameters, same standardisation: swap in the transformed targets.
    transform = model.outcome_transform
    targets = ((torch.cat([Y, believed]) - transform.means) / transform.stdvs).squeeze()
    augmented.set_train_data(targets=targets, strict=False)
    augmented.eval()
    inside = augmented.posterior(posterior.join(X, C).flatten(0, 1).unsqueeze(-2))
    torch.testing.assert_close(mean, plain(X, C)[0])
    torch.testing.assert_close(
        variance.flatten(),
        inside.variance.flatten() * transform.stdvs.square().squeeze(),
        rtol=1e-6,
        atol=1e-7,
    )
    assert (variance < plain(X, C)[1]).all()


def noise_of_pending(noise: torch.Tensor) -> torch.Tensor:
    """The rule: what is pending will be as noisy as the data were on average."""
    return noise.mean()


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_pending_among_outcomes_of_unequal_noise(path):
    """Oracle: conditioning of BoTorch's joint posterior, in the units of y."""
    model, (X, C) = make_model(fixed_noise=True), make_inputs()
    model.likelihood.noise = model.likelihood.noise * torch.logspace(0, 3, 25).double()
    noise = model.likelihood.noise * model.outcome_transform.stdvs.square().squeeze()
    pending = torch.tensor([[0.2, 0.4, 3.0], [0.9, 0.1, -5.0]], dtype=torch.double)
    posterior = marginal_posterior(model, [2], pending=pending, path=path)
    joint = posterior.join(X, C).reshape(-1, 1, 3)
    with torch.no_grad():
        both = torch.cat([joint, pending.expand(len(joint), -1, -1)], dim=-2)
        covariance = model.posterior(both).distribution.covariance_matrix  # 24 x 3 x 3
    cross, own = covariance[:, :1, 1:], covariance[:, 1:, 1:]
    own = own + noise_of_pending(noise) * torch.eye(2, dtype=torch.double)
    explained = cross @ torch.linalg.solve(own, cross.mT)
    expected = (covariance[:, :1, :1] - explained).flatten()
    found = posterior(X, C)[1].flatten()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("path", ["exact", "generic"])
@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "additive"])
def test_gradients(kernel, path):
    model, (X, C) = make_model(kernel, t=8), make_inputs()
    posterior = marginal_posterior(model, [2], path=path)
    inputs = (X[:2].clone().requires_grad_(), C[:2].clone().requires_grad_())
    assert torch.autograd.gradcheck(posterior, inputs)
    if kernel != "matern32":  # its second derivative is rough near the data
        assert torch.autograd.gradgradcheck(posterior, inputs, atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52"])
def test_second_derivative_at_a_training_input(kernel):
    """At r = 0 GPyTorch's own Matern loses the second derivative; ours does not."""
    model = make_model(kernel, t=8, transforms=False)
    posterior = marginal_posterior(model, [2])
    z = model.train_inputs[0][:1]
    c = z[:, 2:].clone()

    def slope(context: torch.Tensor) -> torch.Tensor:
        context = context.requires_grad_()
        return torch.autograd.grad(
            posterior(z[:, :2], context)[0].sum(), context, create_graph=True
        )[0]

    at = c.clone().requires_grad_()
    (curvature,) = torch.autograd.grad(slope(at).sum(), at)
    h = 1e-4
    finite = (slope(c + h) - slope(c - h)) / (2 * h)
    torch.testing.assert_close(curvature, finite.detach(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_chunks_change_nothing(path):
    model, (X, C) = make_model(t=8), make_inputs()
    whole = marginal_posterior(model, [2], path=path)
    pieces = marginal_posterior(model, [2], path=path, memory_budget=4000)
    X = X.requires_grad_()
    for a, b in zip(whole(X, C), pieces(X, C), strict=True):
        torch.testing.assert_close(a, b)
        (grad_a,) = torch.autograd.grad(a.sum(), X, create_graph=True)
        (grad_b,) = torch.autograd.grad(b.sum(), X, create_graph=True)
        torch.testing.assert_close(grad_a, grad_b)
        torch.testing.assert_close(
            torch.autograd.grad(grad_a.square().sum(), X, retain_graph=True)[0],
            torch.autograd.grad(grad_b.square().sum(), X, retain_graph=True)[0],
        )


def test_float32_stays_float32():
    model, (X, C) = make_model(dtype=torch.float), make_inputs(torch.float)
    mean, variance = marginal_posterior(model, [2])(X, C)
    expected_mean, expected_variance = direct_moments(make_model(), *make_inputs())
    assert mean.dtype == variance.dtype == torch.float
    torch.testing.assert_close(mean.double(), expected_mean, rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(variance.double(), expected_variance, rtol=0, atol=1e-2)


def test_auto_path():
    assert marginal_posterior(make_model(), [2]).path == "product"
    assert marginal_posterior(make_model("matern52"), [2]).path == "exact"
    Z = torch.rand(6, 3, dtype=torch.double)
    logged = SingleTaskGP(Z, Z.sum(-1, keepdim=True), outcome_transform=Log())
    assert isinstance(marginal_posterior(logged, [2]), GenericPosterior)


def test_log_outcomes_keep_their_units():
    Z = torch.rand(6, 3, dtype=torch.double)
    model = SingleTaskGP(Z, Z.sum(-1, keepdim=True), outcome_transform=Log())
    X, C = torch.rand(2, 2, dtype=torch.double), torch.rand(3, 1, dtype=torch.double)
    mean, variance = marginal_posterior(model, [2])(X, C)
    expected_mean, expected_variance = direct_moments(model, X, C)
    torch.testing.assert_close(mean, expected_mean)
    torch.testing.assert_close(variance, expected_variance)


class TestRefusals:
    """Each refusal says what to do instead."""

    Z = torch.rand(6, 3, dtype=torch.double)

    def test_two_outputs(self):
        model = SingleTaskGP(self.Z, self.Z[:, :2])
        with pytest.raises(UnsupportedError, match="posterior_transform"):
            marginal_posterior(model, [2])
        transform = ScalarizedPosteriorTransform(
            torch.tensor([0.5, 0.5], dtype=torch.double)
        )
        posterior = marginal_posterior(model, [2], posterior_transform=transform)
        assert posterior(self.Z[:, :2], self.Z[:, 2:])[0].shape == (6, 6)

    def test_model_list(self):
        model = ModelListGP(
            SingleTaskGP(self.Z, self.Z[:, :1]), SingleTaskGP(self.Z, self.Z[:, 1:2])
        )
        with pytest.raises(UnsupportedError, match="2 outputs"):
            marginal_posterior(model, [2])

    def test_batch_of_models(self):
        model = SingleTaskGP(self.Z.expand(2, -1, -1), self.Z[:, :1].expand(2, -1, -1))
        with pytest.raises(UnsupportedError, match="batch of models"):
            marginal_posterior(model, [2])

    def test_append_features(self):
        transform = AppendFeatures(torch.rand(4, 1, dtype=torch.double))
        model = SingleTaskGP(self.Z, self.Z[:, :1], input_transform=transform)
        with pytest.raises(UnsupportedError, match="ContextSet"):
            marginal_posterior(model, [2])

    def test_exact_path_of_another_model(self):
        logged = SingleTaskGP(self.Z, self.Z[:, :1] + 1, outcome_transform=Log())
        with pytest.raises(UnsupportedError, match="path='auto'"):
            marginal_posterior(logged, [2], path="exact")

    def test_pending_with_a_posterior_that_is_not_gaussian(self):
        logged = SingleTaskGP(self.Z, self.Z[:, :1] + 1, outcome_transform=Log())
        with pytest.raises(UnsupportedError, match="Gaussian"):
            marginal_posterior(logged, [2], pending=self.Z[:1])(
                self.Z[:, :2], self.Z[:, 2:]
            )

    def test_wrong_transform(self):
        model = SingleTaskGP(self.Z, self.Z[:, :1])
        with pytest.raises(UnsupportedError, match="PosteriorTransform"):
            marginal_posterior(
                model,
                [2],
                posterior_transform=torch.nn.Identity(),  # pyright: ignore
            )


def test_large_training_set_is_exact():
    """Beyond 800 points GPyTorch iterates; ours is the Cholesky answer."""
    model = make_model("rbf", t=850, transforms=False)
    X, C = make_inputs()
    mean, variance = marginal_posterior(model, [2])(X, C)
    with gpytorch.settings.max_cholesky_size(2000):
        model.train().eval()
        expected_mean, expected_variance = direct_moments(model, X, C)
    torch.testing.assert_close(mean, expected_mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(variance, expected_variance, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "path", "function"),
    [
        ("rbf", "exact", "botorch_drbo.posterior.fused._slopes"),
        ("additive", "exact", "ExactPosterior._general_moments"),
        ("rbf", "generic", "GenericPosterior._chunk_moments"),
    ],
)
def test_no_chunk_is_larger_than_the_budget(kernel, path, function, monkeypatch):
    """And in the backward pass each chunk is computed again, not kept."""
    X, C = make_inputs()
    posterior = marginal_posterior(
        make_model(kernel, t=8), [2], path=path, memory_budget=5000
    )
    rows = []
    owner, name = (
        (type(posterior), function.split(".")[1])
        if "Posterior" in function
        else (fused, "_slopes")
    )
    original = getattr(owner, name)

    def spy(*arguments):
        rows.append(len(arguments[-1]))
        return original(*arguments)

    monkeypatch.setattr(owner, name, spy)
    mean, variance = posterior(X.requires_grad_(), C)
    warm_up = 0 if owner is fused else 1  # one row, without a graph
    assert sum(rows) == 24 + warm_up
    forward = len(rows) - warm_up
    assert forward > 1
    bytes_per_row = 8 * 8 * (8 if owner is fused else 12)  # t floats, temporaries
    assert max(rows) * bytes_per_row <= 5000
    (mean.sum() + variance.sum()).backward()
    again = 0 if owner is fused else forward  # the slopes are in hand already
    assert len(rows) == warm_up + forward + again
