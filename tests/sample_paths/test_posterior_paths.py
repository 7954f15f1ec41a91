"""Sample paths: their moments are the exact posterior's; they are functions."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import ModelListGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms.input import (
    AppendFeatures,
    ChainedInputTransform,
    Normalize,
    Warp,
)
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import (
    AdditiveKernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, LinearMean, Mean, ZeroMean

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.sample_paths import PosteriorPaths, sample_paths
from botorch_drbo.sample_paths.posterior_paths import supports_paths
from botorch_drbo.surrogate.base import model_inputs
from tests import models
from tests.contracts.view_case import joined
from tests.models import observations, uniform


def k_x(kind=RBFKernel, **options):
    return kind(active_dims=[0, 1], ard_num_dims=2, **options)


def k_c(kind=RBFKernel, **options):
    return kind(active_dims=[2], **options)


KERNELS = {
    "rbf": lambda: RBFKernel(ard_num_dims=3),
    "scaled_rbf": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "matern12": lambda: ScaleKernel(MaternKernel(nu=0.5, ard_num_dims=3)),
    "matern32": lambda: MaternKernel(nu=1.5, ard_num_dims=3),
    "matern52": lambda: ScaleKernel(MaternKernel(nu=2.5)),
    "rational_quadratic": lambda: RQKernel(ard_num_dims=3),
    "product_of_columns": lambda: ScaleKernel(
        ProductKernel(*(MaternKernel(active_dims=[j]) for j in range(3)))
    ),
    "product": lambda: ScaleKernel(k_x() * k_c(MaternKernel, nu=2.5)),
    "x_and_interaction": lambda: (
        ScaleKernel(k_x())
        + ScaleKernel(k_c(MaternKernel, nu=0.5) * k_x(MaternKernel, nu=1.5))
    ),
    "product_of_sum": lambda: ScaleKernel(
        RBFKernel() * (ScaleKernel(k_x()) + ScaleKernel(k_c(MaternKernel, nu=1.5)))
    ),
    "mixed_product": lambda: (
        MaternKernel(nu=2.5, ard_num_dims=3) * MaternKernel(nu=1.5) * k_c() * k_x()
    ),
    "active_scale": lambda: AdditiveKernel(
        ScaleKernel(ScaleKernel(MaternKernel(nu=2.5, active_dims=[2, 0]))),
        ScaleKernel(RBFKernel(), active_dims=[1]),
    ),
    "context_alone": lambda: ScaleKernel(k_c()) + ScaleKernel(k_x(MaternKernel)),
}


class OpaqueNormalize(Normalize):
    """Not one of the transforms known to work column by column: the dense path."""


class SineMean(Mean):
    def forward(self, input):
        return torch.sin(3 * input).sum(-1)


BOUNDS = torch.tensor([[0.0, 0.0, -10.0], [1.0, 1.0, 30.0]]).double()


def make_model(kernel="rbf", *, transform=Normalize, t=8, noise=0.05, **options):
    return models.make_model(
        KERNELS[kernel](),
        t=t,
        noise=noise,
        units=True,
        input_transform=transform(3, bounds=BOUNDS) if transform else None,
        **options,
    )


def make_inputs(num=3, n=4):
    return models.make_inputs(num, n, units=True)


def joint(X, C):
    return joined(X, C, [2]).flatten(0, 1)


def assert_moments(paths, model, X, C, bound=4.0):
    """Mean and covariance of many paths, in standard errors of the sample.

    The bound is raised from 4 to what a Bonferroni correction asks of 4 standard
    errors (a chance of 6e-5) over all entries.
    """
    with torch.no_grad():
        values = paths(X, C).flatten(1)  # P x (N n)
        posterior = model.posterior(joint(X, C))
        mean, covariance = (
            posterior.mean[:, 0],
            posterior.distribution.covariance_matrix,
        )
    root = math.sqrt(len(values))
    centred = values - mean
    z_mean = centred.mean(0) / (centred.std(0) / root)
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)
    z_covariance = (products.mean(0) - covariance) / (products.std(0) / root)
    z = torch.cat([z_mean, z_covariance[torch.ones_like(covariance).tril().bool()]])
    tail = math.erfc(bound / math.sqrt(2.0)) / len(z)
    limit = -torch.special.ndtri(torch.tensor(tail / 2, dtype=torch.double)).item()
    assert z.abs().max() < limit
    # Errors of the right size, too: a bound that is never approached tests nothing.
    assert 0.4 < z.square().mean().sqrt() < 1.8


@pytest.mark.parametrize("kernel", KERNELS)
def test_moments_are_those_of_the_posterior(kernel):
    """With 6 features a path is far from Gaussian, and yet nothing is biased."""
    model = make_model(kernel)
    paths = PosteriorPaths(model, [2], num_paths=20_000, num_features=6, seed=3)
    assert_moments(paths, model, *make_inputs())


@pytest.mark.parametrize("kernel", ["rbf", "x_and_interaction"])
def test_moments_with_the_usual_number_of_features(kernel):
    model = make_model(kernel)
    paths = PosteriorPaths(model, [2], num_paths=2_000, num_features=512, seed=4)
    assert_moments(paths, model, *make_inputs(2, 3))


@pytest.mark.parametrize("mean", [ConstantMean, ZeroMean, LinearMean, SineMean])
@pytest.mark.parametrize("transform", [None, Normalize, OpaqueNormalize])
@pytest.mark.parametrize("fixed_noise", [False, True])
def test_moments_with_means_transforms_and_noise(mean, transform, fixed_noise):
    torch.manual_seed(0)
    module = mean(3) if mean is LinearMean else mean()
    if mean is ConstantMean:
        module.constant = 0.7
    model = make_model(mean_module=module, transform=transform, fixed_noise=fixed_noise)
    paths = PosteriorPaths(model, [2], num_paths=5_000, num_features=4, seed=5)
    assert_moments(paths, model, *make_inputs(2, 2))


def test_a_wrong_kernel_is_noticed():
    """The judge itself: paths of lengthscales 10 percent off do not pass."""
    model = make_model("product")
    other = copy.deepcopy(model)
    for module in other.covar_module.modules():
        if getattr(module, "has_lengthscale", False):
            module.lengthscale = 1.1 * module.lengthscale.detach()
    paths = PosteriorPaths(other, [2], num_paths=20_000, num_features=6, seed=3)
    with pytest.raises(AssertionError):
        assert_moments(paths, model, *make_inputs())


@pytest.mark.parametrize("kernel", KERNELS)
def test_with_tiny_noise_paths_go_through_the_data(kernel):
    model = make_model(kernel, t=6, noise=1e-7)
    model.likelihood.noise_covar.register_constraint(
        "raw_noise", type(model.likelihood.noise_covar.raw_noise_constraint)(1e-10)
    )
    model.likelihood.noise = 1e-9
    Z, Y = observations(model)
    paths = PosteriorPaths(model, [2], num_paths=3, num_features=64, seed=0)
    values = paths(Z[:, :2], Z[:, 2:])  # P x t x t: the diagonal is the data
    diagonal = values.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(
        diagonal, Y.T.expand(3, -1), rtol=0, atol=5e-3 * Y.std().item()
    )


def test_far_from_data_the_prior_remains():
    model = make_model("scaled_rbf", transform=None)
    paths = PosteriorPaths(model, [2], num_paths=4_000, num_features=64, seed=1)
    X, C = torch.full((1, 2), 1e3).double(), torch.full((1, 1), 1e3).double()
    values = paths(X, C).flatten()
    scale = model.outcome_transform.stdvs.item()
    prior = scale * model.covar_module.outputscale.sqrt().item()
    mean = model.outcome_transform.means.item()
    mean += scale * model.mean_module.constant.item()
    assert abs(values.mean() - mean) < 4 * prior / math.sqrt(4_000)
    assert abs(values.std() / prior - 1) < 4 / math.sqrt(2 * 4_000)


@pytest.mark.parametrize("kernel", KERNELS)
def test_factorised_equals_dense(kernel):
    X, C = make_inputs(5, 6)
    options = {"num_paths": 3, "num_features": 32, "seed": 7}
    fast = PosteriorPaths(make_model(kernel), [2], **options)
    dense = PosteriorPaths(
        make_model(kernel, transform=OpaqueNormalize), [2], **options
    )
    assert fast.columnwise and not dense.columnwise
    scale = fast(X, C).std()
    assert (fast(X, C) - dense(X, C)).abs().max() < 1e-10 * scale
    own = X[:3].expand(2, -1, -1)
    assert (fast.own(own, C) - dense.own(own, C)).abs().max() < 1e-10 * scale


@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_matherons_formula_term_by_term(kernel):
    """From the drawn features and GPyTorch's kernel, without any of our algebra."""
    model = make_model(kernel)
    X, C = make_inputs()
    paths = PosteriorPaths(model, [2], num_paths=2, num_features=16, seed=0)
    z = model.input_transform(joint(X, C))
    Z = model.train_inputs[0]
    with torch.no_grad():
        cross = model.covar_module(z, Z).to_dense()
        angles = (z - Z.mean(0)) @ paths.features.frequencies  # P x (N n) x m
        prior = (angles.cos() * paths.features.cosines[:, None]).sum(-1)
        prior = prior + (angles.sin() * paths.features.sines[:, None]).sum(-1)
        update = paths.weights @ cross.mT
        latent = model.mean_module(z) + prior + update
    transform = model.outcome_transform
    expected = transform.means + transform.stdvs * latent
    # GPyTorch's Matern takes the root of a rounded squared distance.
    tolerance = 1e-6 if "matern12" in kernel or "interaction" in kernel else 1e-10
    torch.testing.assert_close(
        paths(X, C).flatten(1), expected, rtol=tolerance, atol=0.0
    )


@pytest.mark.parametrize("kernel", ["rbf", "matern52", "x_and_interaction"])
def test_own_is_the_diagonal_of_all(kernel):
    X, C = make_inputs(12)
    paths = PosteriorPaths(make_model(kernel), [2], num_paths=3, seed=0)
    X = X.reshape(2, 2, 3, 2)
    every = paths(X, C)  # 3 x 2 x 2 x 3 x n
    assert every.shape == (3, 2, 2, 3, 4)
    own = paths.own(X, C)
    assert own.shape == (2, 2, 3, 4)
    torch.testing.assert_close(own, every.diagonal(dim1=0, dim2=3).movedim(-1, -2))
    torch.testing.assert_close(paths.own(X[0, 0], C), own[0, 0])
    assert paths(X[0, 0, 0], C).shape == (3, 4)


@pytest.mark.parametrize("transform", [Normalize, OpaqueNormalize])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients(kernel, transform):
    model = make_model(kernel, transform=transform)
    paths = PosteriorPaths(model, [2], num_paths=2, num_features=8, seed=0)
    X, C = make_inputs(2, 2)
    inputs = (X.requires_grad_(), C.requires_grad_())
    assert torch.autograd.gradcheck(paths, inputs)
    assert torch.autograd.gradcheck(paths.own, inputs)


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52"])
def test_gradient_at_a_training_input_is_finite(kernel):
    model = make_model(kernel, transform=None)
    paths = PosteriorPaths(model, [2], num_features=8, seed=0)
    Z = model.train_inputs[0][:1]
    X = Z[:, :2].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(paths(X, Z[:, 2:]).sum(), X)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("transform", [Normalize, OpaqueNormalize])
@pytest.mark.parametrize("kernel", ["rbf", "matern52", "x_and_interaction"])
def test_blocks_change_nothing(kernel, transform):
    model, (X, C) = make_model(kernel, transform=transform), make_inputs(5, 7)
    options = {"num_paths": 3, "num_features": 16, "seed": 0}
    whole = PosteriorPaths(model, [2], **options)
    pieces = PosteriorPaths(model, [2], memory_budget=5_000, **options)
    X = X.requires_grad_()
    for f, g, x in ((whole, pieces, X), (whole.own, pieces.own, X[:3])):
        with torch.no_grad():
            torch.testing.assert_close(f(x, C), g(x, C))
        slope_f, slope_g = (
            torch.autograd.grad(h(x, C).square().sum(), X)[0] for h in (f, g)
        )
        torch.testing.assert_close(slope_f, slope_g)


@pytest.mark.parametrize("transform", [Normalize, OpaqueNormalize])
def test_a_part_has_the_same_paths(transform):
    paths = PosteriorPaths(
        make_model("x_and_interaction", transform=transform), [2], num_paths=5, seed=0
    )
    X, C = make_inputs(4)
    whole, part = paths(X, C), paths.part(slice(1, 4))
    assert part.num_paths == 3 and paths.num_paths == 5
    torch.testing.assert_close(part(X, C), whole[1:4])
    torch.testing.assert_close(
        part.own(X[:3], C), paths.own(X[[0, 0, 1, 2, 0]], C)[1:4]
    )
    assert torch.equal(paths(X, C), whole)
    torch.testing.assert_close(paths.part(slice(None, None, 2))(X, C), whole[::2])


@pytest.mark.parametrize("which", [slice(2, 6), slice(None, None, 3), slice(4, None)])
def test_a_part_of_the_paths_of_two_models(which):
    models = [make_model("x_and_interaction"), make_model("x_and_interaction")]
    paths = sample_paths(
        ModelEnsemble(models), [2], num_paths=7, num_features=8, seed=0
    )
    X, C = make_inputs(4)
    part = paths.part(which)
    assert part.num_paths == len(range(7)[which])
    torch.testing.assert_close(part(X, C), paths(X, C)[which])


def test_many_contexts_are_prepared_once_without_a_graph(monkeypatch):
    """More than the budget keeps, and many blocks of decisions."""
    paths = PosteriorPaths(
        make_model(), [2], num_paths=2, num_features=8, seed=0, memory_budget=40_000
    )
    X, C = make_inputs(400, 300)
    assert not paths.keeps(300) and paths.keeps(20)
    prepared = []
    side = type(paths.features).side

    def seen(self, c):
        prepared.append(len(c))
        return side(self, c)

    monkeypatch.setattr(type(paths.features), "side", seen)
    found = paths(X, C)
    assert sum(prepared) == 300
    monkeypatch.undo()
    whole = PosteriorPaths(make_model(), [2], num_paths=2, num_features=8, seed=0)
    torch.testing.assert_close(found, whole(X, C))


def test_chained_transforms_and_context_columns_anywhere():
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(7, 4, generator=generator, dtype=torch.double)
    chain = ChainedInputTransform(
        normalize=Normalize(4, bounds=torch.tensor([[-1.0], [2.0]]).expand(2, 4)),
        warp=Warp(d=4, indices=[0, 3]),
    )
    chain["warp"]._set_concentration(0, 1.7)
    model = SingleTaskGP(
        Z,
        Z.sin().sum(-1, keepdim=True),
        covar_module=MaternKernel(active_dims=[3, 1]) * RBFKernel(ard_num_dims=4),
        input_transform=chain.double(),
    ).eval()
    paths = PosteriorPaths(model, [3, 0], num_paths=20_000, num_features=4, seed=0)
    assert paths.columnwise
    X, C = torch.rand(2, 2).double(), torch.rand(2, 2).double()
    pairs = torch.stack(
        [torch.stack([c[1], x[0], x[1], c[0]]) for x in X for c in C]
    )  # the context's first column is the model's last
    with torch.no_grad():
        posterior = model.posterior(pairs)
        values = paths(X, C).flatten(1)
    error = (values.mean(0) - posterior.mean[:, 0]) / (values.std(0) / 20_000**0.5)
    assert error.abs().max() < 4.5
    ratio = values.var(0) / posterior.variance[:, 0] - 1
    assert ratio.abs().max() < 0.1


def test_same_seed_same_path_and_global_generators_are_left_alone():
    model, (X, C) = make_model(), make_inputs()
    state = torch.get_rng_state()
    first = PosteriorPaths(model, [2], seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(first(X, C), PosteriorPaths(model, [2], seed=1)(X, C))
    assert not torch.allclose(first(X, C), PosteriorPaths(model, [2], seed=2)(X, C))


def test_copies_and_pickles_are_the_same_path():
    model, (X, C) = make_model("x_and_interaction"), make_inputs()
    paths = PosteriorPaths(model, [2], num_paths=2, seed=1)
    expected = paths(X, C)  # fills the cache
    assert torch.equal(copy.deepcopy(paths)(X, C), expected)
    assert torch.equal(pickle.loads(pickle.dumps(paths))(X, C), expected)


def test_paths_do_not_follow_the_model():
    model, (X, C) = make_model(), make_inputs()
    paths = PosteriorPaths(model, [2], seed=1)
    expected = paths(X, C)
    model.covar_module.lengthscale = 3.0
    model.mean_module.constant = 5.0
    model.input_transform._coefficient.mul_(2.0)
    model.train()
    paths.train()  # the transform must not learn its bounds from X
    assert torch.equal(paths(X.clone(), C.clone()), expected)


def test_contexts_that_change_in_place_are_noticed():
    model, (X, C) = make_model(), make_inputs()
    paths = PosteriorPaths(model, [2], seed=1)
    before = paths(X, C)
    C += 5.0
    assert not torch.allclose(paths(X, C), before)
    torch.testing.assert_close(paths(X, C), paths(X, C.clone()))


def test_float32_model():
    single, double = make_model(dtype=torch.float), make_model()
    X, C = make_inputs()
    options = {"num_paths": 2, "seed": 0}
    paths = PosteriorPaths(single, [2], **options)
    values = paths(X.float(), C.float())
    assert values.dtype == torch.float
    assert paths.own(X[:2].float(), C.float()).dtype == torch.float
    expected = PosteriorPaths(double, [2], **options)(X, C)
    torch.testing.assert_close(values.double(), expected, rtol=1e-3, atol=1e-2)


def test_paths_can_be_cast():
    paths = PosteriorPaths(make_model("matern52"), [2], num_paths=2, seed=0)
    X, C = make_inputs()
    expected = paths(X, C)  # fills the cache, which must not survive the cast
    single = paths.float()(X, C)
    assert single.dtype == torch.double
    assert not torch.equal(single, expected)
    torch.testing.assert_close(single, expected, rtol=1e-3, atol=1e-2)


class TestRefusals:
    """Each refusal gives the reason, and what to do instead."""

    Z = torch.rand(6, 3, dtype=torch.double)

    def refused(self, model, reason):
        assert reason in supports_paths(model)
        with pytest.raises(UnsupportedError, match="Use a single-output SingleTaskGP"):
            PosteriorPaths(model, [2], seed=0)

    def test_another_class(self):
        self.refused(SingleTaskVariationalGP(self.Z, self.Z[:, :1]), "VariationalGP")
        self.refused(ModelListGP(SingleTaskGP(self.Z, self.Z[:, :1])), "ModelListGP")

    def test_several_outputs(self):
        self.refused(SingleTaskGP(self.Z, self.Z[:, :2]), "2 outputs")

    def test_batch(self):
        model = SingleTaskGP(self.Z.expand(2, -1, -1), self.Z[:, :1].expand(2, -1, -1))
        self.refused(model, "batch of models")

    def test_own_posterior(self):
        class Other(SingleTaskGP):
            def posterior(self, *args, **kwargs):
                return super().posterior(*args, **kwargs)

        self.refused(Other(self.Z, self.Z[:, :1]), "Other computes its own posterior")

    def test_outcome_transform(self):
        model = SingleTaskGP(self.Z, self.Z[:, :1] + 1, outcome_transform=Log())
        self.refused(model, "Log")

    def test_append_features(self):
        transform = AppendFeatures(torch.rand(4, 1, dtype=torch.double))
        model = SingleTaskGP(self.Z, self.Z[:, :1], input_transform=transform)
        self.refused(model, "AppendFeatures")

    def test_kernel(self):
        kernel = ScaleKernel(RBFKernel() * (RBFKernel() + PeriodicKernel()))
        model = SingleTaskGP(self.Z, self.Z[:, :1], covar_module=kernel)
        self.refused(model, "PeriodicKernel")

    def test_supported(self):
        assert all(supports_paths(make_model(kernel)) is None for kernel in KERNELS)

    @pytest.mark.parametrize("columns", [[3], [-1], [2, 2]])
    def test_context_columns(self, columns):
        with pytest.raises(BotorchTensorDimensionError, match="context_indices"):
            PosteriorPaths(make_model(), columns, seed=0)

    def test_counts(self):
        model = make_model("x_and_interaction")
        for wrong in ({"num_paths": 0}, {"num_features": 1}, {"seed": -1}):
            with pytest.raises(InputDataError, match=next(iter(wrong))):
                PosteriorPaths(model, [2], **{"seed": 0, **wrong})

    def test_shapes(self):
        paths = PosteriorPaths(make_model(), [2], num_paths=2, seed=0)
        X, C = make_inputs()
        with pytest.raises(BotorchTensorDimensionError, match="2 columns"):
            paths(X[:, :1], C)
        with pytest.raises(BotorchTensorDimensionError, match="n x 1"):
            paths(X, C.expand(-1, 2))
        with pytest.raises(BotorchTensorDimensionError, match="one decision"):
            paths.own(X, C)


def test_categories_on_either_side_are_factorised_too() -> None:
    class Opaque(ChainedInputTransform):
        """What the package cannot look into."""

    bounds = torch.tensor([[0.0] * 4, [1.0, 2.0, 1.0, 2.0]], dtype=torch.double)
    encode = model_inputs(bounds, {1: 3, 3: 3})
    Z = bounds[1] * uniform(9, 4, seed=4)
    made = []
    for transform in (encode, Opaque(**dict(encode.items()))):
        kernel = MaternKernel(2.5, active_dims=[0, 2, 4]) * RBFKernel(ard_num_dims=8)
        model = SingleTaskGP(
            Z, Z.sin().sum(-1, keepdim=True), None, None, kernel, None, None, transform
        ).eval()
        made.append(PosteriorPaths(model, [2, 3], num_paths=3, num_features=32, seed=2))
    fast, dense = made
    assert fast.columnwise and not dense.columnwise
    X, C = 2.0 * uniform(5, 2, seed=5), torch.tensor([[0.3, 2.0], [0.9, 0.0]]).double()
    assert fast.split == 4 and (fast(X, C) - dense(X, C)).abs().max() < 1e-10
    own = X[:3].expand(3, -1, -1)
    assert (fast.own(own, C) - dense.own(own, C)).abs().max() < 1e-10
