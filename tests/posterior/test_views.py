"""The door: what holds for every view, on every model that it takes.

The judge is ``model.posterior`` on q-batches of one, and autograd through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import ChainedInputTransform, Normalize, Warp
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import LinearMean
from torch import Tensor

from botorch_drbo.posterior import LocalMoments, View, marginal_posterior, product
from tests.models import botorch_moments, join, make_inputs, make_model, observations

EVERY = ("generic", "exact", "product")
DENSE = ("generic", "exact")
PENDING = torch.tensor([[0.2, 0.4, 3.0], [0.9, 0.1, -5.0]], dtype=torch.double)
MINUS = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double(), offset=3.0)
SUM = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.5]).double())

Moments = tuple[Tensor, Tensor]


def with_pending(model: Model, joint: Tensor) -> Moments:
    """A model that holds the pending inputs, with outcomes at its mean."""
    assert isinstance(model, SingleTaskGP)
    Z, Y = observations(model)
    with torch.no_grad():
        believed = model.posterior(PENDING).mean
    transform = model.outcome_transform
    augmented = SingleTaskGP(
        torch.cat([Z, PENDING]),
        (torch.cat([Y, believed]) - transform.means) / transform.stdvs,
        covar_module=model.covar_module,
        likelihood=model.likelihood,
        mean_module=model.mean_module,
        input_transform=model.input_transform,
        outcome_transform=None,
    )
    variance = botorch_moments(augmented, joint)[1]
    mean = botorch_moments(model, joint)[0]
    return mean, transform.stdvs.square().squeeze() * variance


def warped() -> SingleTaskGP:
    bounds = torch.tensor([[-0.1], [1.1]]).expand(2, 3).double()
    chain = ChainedInputTransform(
        normalize=Normalize(3, bounds=bounds), warp=Warp(d=3, indices=[0, 2])
    )
    chain["warp"].concentration0.data.fill_(1.5)
    return make_model(input_transform=chain)


def saas() -> Model:
    Z, Y = observations(make_model(t=8))
    return EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=3).eval()


def two_outputs() -> Model:
    Z, Y = observations(make_model(t=8))
    return SingleTaskGP(Z, torch.cat([Y, Z.square().sum(-1, True)], -1)).eval()


class Case(NamedTuple):
    """A model, and what is special about it."""

    make: Callable[[], Model]
    methods: Sequence[str] = EVERY
    columns: tuple[int, ...] = (2,)
    units: bool = False
    options: dict[str, Any] = {}
    oracle: Callable[[Model, Tensor], Moments] | None = None
    # GPyTorch takes the root of a rounded squared distance: 1e-16 becomes 1e-8, and
    # Matern-1/2 feels it to first order, in the model's own posterior too.
    tolerance: float = 1e-8
    derivatives: int = 2  # how many there are in X, of the moments


CASES = {
    "rbf": Case(make_model),
    "units": Case(
        lambda: make_model(ScaleKernel(RBFKernel(ard_num_dims=3)), units=True),
        units=True,
    ),
    "fixed noise": Case(
        lambda: make_model(units=True, fixed_noise=True), units=True, derivatives=0
    ),
    "matern12": Case(
        lambda: make_model(MaternKernel(nu=0.5, ard_num_dims=3)),
        DENSE,
        tolerance=1e-6,
        derivatives=0,
    ),
    "matern32": Case(
        lambda: make_model(ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=3))),
        DENSE,
        derivatives=1,  # the second is rough near the data
    ),
    "matern52": Case(
        lambda: make_model(MaternKernel(nu=2.5, ard_num_dims=3), units=True),
        DENSE,
        units=True,
    ),
    "rational quadratic": Case(
        lambda: make_model(ScaleKernel(RQKernel(ard_num_dims=3))), DENSE
    ),
    "linear": Case(lambda: make_model(LinearKernel()), DENSE, derivatives=0),
    "linear mean": Case(lambda: make_model(mean_module=LinearMean(3)), DENSE),
    "mixed sum": Case(
        lambda: make_model(
            MaternKernel(active_dims=[0]) + MaternKernel(active_dims=[1, 2])
        ),
        DENSE,
        derivatives=1,
    ),
    "smooth sum": Case(
        lambda: make_model(
            AdditiveKernel(
                ScaleKernel(RBFKernel(ard_num_dims=3)),
                ScaleKernel(MaternKernel(nu=2.5, active_dims=[0])),
                ScaleKernel(RBFKernel(active_dims=[2])),
            )
        )
    ),
    "rough in the context": Case(
        lambda: make_model(
            ScaleKernel(
                RBFKernel(active_dims=[0, 1]) * MaternKernel(nu=2.5, active_dims=[2])
            ),
            t=6,
        )
    ),
    "rbf twice": Case(
        lambda: make_model(RBFKernel(ard_num_dims=3) * RBFKernel(active_dims=[2])),
        derivatives=1,
    ),
    "warped": Case(warped),
    "first column": Case(make_model, columns=(0,), derivatives=0),
    "two columns": Case(lambda: make_model(t=6), columns=(2, 0), derivatives=1),
    "pending": Case(
        lambda: make_model(units=True),
        units=True,
        options={"pending": PENDING},
        oracle=with_pending,
    ),
    "pending, sum": Case(
        lambda: make_model(
            ScaleKernel(RBFKernel(ard_num_dims=3)) + RBFKernel(active_dims=[2]),
            units=True,
        ),
        units=True,
        options={"pending": PENDING},
        oracle=with_pending,
        derivatives=0,
    ),
    "sign": Case(
        lambda: make_model(units=True),
        units=True,
        options={"posterior_transform": MINUS},
        derivatives=0,
    ),
    "float32": Case(
        lambda: make_model(dtype=torch.float), tolerance=1e-3, derivatives=0
    ),
    "ensemble": Case(saas, ["generic"], derivatives=1),
    "two outputs": Case(
        two_outputs, ["generic"], options={"posterior_transform": SUM}, derivatives=0
    ),
    "log outcomes": Case(
        lambda: make_model(units=True, outcome_transform=Log()),
        ["generic"],
        units=True,
        derivatives=0,
    ),
}


class Door:
    """One model behind one view, and the judge."""

    def __init__(self, name: str, method: str) -> None:
        self.case, self.method = CASES[name], method
        self.model = self.case.make()
        self.X, self.C = make_inputs(columns=self.case.columns, units=self.case.units)
        self.float32 = name == "float32"
        self.tolerance = self.case.tolerance
        with torch.no_grad():
            found = self.expected(self.X, self.C)
        # The largest outcome, and the prior's variance or nearly so.
        self.scales = [part.abs().max().item() for part in found]

    def view(self, contexts: Tensor | None = None, **options: Any) -> View:
        posterior = marginal_posterior(
            self.model,
            self.case.columns,
            method=self.method,
            **self.case.options,
            **options,
        )
        return posterior.over(self.C if contexts is None else contexts)

    def expected(self, X: Tensor, contexts: Tensor) -> Moments:
        """BoTorch's, and it looks at inputs in the model's dtype."""
        joint = join(X, contexts, self.case.columns)
        joint = joint.to(next(self.model.parameters()))
        if self.case.oracle is not None:
            return self.case.oracle(self.model, joint)
        transform = self.case.options.get("posterior_transform")
        return botorch_moments(self.model, joint, transform)

    def expected_slopes(self, X: Tensor, contexts: Tensor) -> list[Tensor]:
        """Moments, and autograd through them: ``b (x S) x k x d_c``."""
        own = contexts.expand(len(X), *contexts.shape[-2:]).clone().requires_grad_()
        found = self.expected(X, own)
        slopes = []
        for part in found:
            gradients = [
                torch.autograd.grad(member.sum(), own, retain_graph=True)[0]
                for member in (part.unbind(1) if part.ndim == 3 else [part])
            ]
            slopes.append(torch.stack(gradients, 1) if part.ndim == 3 else gradients[0])
        return [part.detach() for part in (*found, *slopes)]

    def assert_moments(self, found: Sequence[Tensor], expected: Sequence[Tensor]):
        for a, b, scale in zip(found, expected, self.scales, strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= self.tolerance * scale
        assert (found[1] >= 0).all()

    def assert_slopes(self, found: Sequence[Tensor], expected: Sequence[Tensor]):
        self.assert_moments(found[:2], expected[:2])
        for a, b in zip(found[2:], expected[2:], strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= 10 * self.tolerance * b.abs().max()
            assert b.abs().max() > 0

    def own(self, k: int = 4) -> Tensor:
        """Contexts of each decision's own, between those of the view."""
        _, C = make_inputs(
            n=len(self.X) * k, columns=self.case.columns, units=self.case.units, seed=5
        )
        middle = self.C.mean(0)  # inside the box that the view's contexts span
        return (middle + 0.9 * (C - middle)).reshape(len(self.X), k, -1)


@pytest.fixture(autouse=True, scope="module")
def no_least_size() -> Iterator[None]:
    """Small problems too, for which the exact view would be as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "_MIN_PAIRS", 0)
        yield


PAIRS = [(name, method) for name, case in CASES.items() for method in case.methods]


@pytest.fixture
def door(request: pytest.FixtureRequest) -> Door:
    return Door(*request.param)


def doors(least_derivatives: int = -1) -> Any:
    """All views of all models whose moments have that many derivatives in ``X``."""
    pairs = [pair for pair in PAIRS if CASES[pair[0]].derivatives >= least_derivatives]
    names = [", ".join(pair) for pair in pairs]
    return pytest.mark.parametrize("door", pairs, ids=names, indirect=True)


ONE_OF_EACH = pytest.mark.parametrize(
    "door", [("units", method) for method in EVERY], ids=EVERY, indirect=True
)


@doors()
def test_moments_are_those_of_the_model(door: Door) -> None:
    view = door.view()
    assert view.method == door.method
    door.assert_moments(view.at(door.X).moments(), door.expected(door.X, door.C))


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


@doors()
def test_a_part_is_a_slice_of_the_whole(door: Door) -> None:
    here = door.view().at(door.X)
    whole, slopes = here.moments(), here.slopes()
    for part in PARTS:
        for a, b in zip(here.moments(part), whole, strict=True):
            torch.testing.assert_close(a, b[..., part], rtol=1e-5, atol=1e-9)
        for a, b in zip(here.slopes(part)[2:], slopes[2:], strict=True):
            expected = b[..., part, :]
            torch.testing.assert_close(a, expected, rtol=1e-4, atol=1e-5)


@doors()
def test_slopes_at_the_views_contexts(door: Door) -> None:
    found = door.view().at(door.X).slopes(slice(3, 13))
    door.assert_slopes(found, door.expected_slopes(door.X, door.C[3:13]))


@doors()
def test_slopes_at_contexts_of_each_decisions_own(door: Door) -> None:
    own = door.own()
    found = door.view().at(door.X).slopes(own)
    door.assert_slopes(found, door.expected_slopes(door.X, own))


def test_each_model_of_an_ensemble_has_contexts_of_its_own() -> None:
    door = Door("ensemble", "generic")
    own = torch.stack([door.own(), door.own().flip(1), door.own() / 2], 1)
    found = door.view().at(door.X).slopes(own)  # b x S x k x d_c
    for s in range(3):
        expected = [part[:, s] for part in door.expected_slopes(door.X, own[:, s])]
        door.assert_slopes([part[:, s] for part in found], expected)


@doors()
def test_any_batch_shape(door: Door) -> None:
    X, _ = make_inputs(4, columns=door.case.columns, units=door.case.units)
    own = door.own()[:1].expand(4, -1, -1)
    view = door.view()

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


def weighted(parts: Sequence[Tensor]) -> Tensor:
    """A few numbers for each decision that show all of its moments or slopes."""
    generator = torch.Generator().manual_seed(7)
    sums = []
    for part in parts:
        shape = part.shape[1:]
        weights = torch.rand(*shape, generator=generator, dtype=torch.double)
        sums.append((part * weights / weights.sum()).flatten(1).sum(-1))
    return torch.stack(sums)


@doors(1)
def test_gradients_of_moments(door: Door) -> None:
    view, leaf = door.view(), door.X[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda X: weighted(view.at(X).moments()), leaf, fast_mode=True
    )


@doors(2)
def test_second_derivatives_of_moments(door: Door) -> None:
    view, leaf = door.view(), door.X[:2].clone().requires_grad_()

    def moments(X: Tensor) -> Tensor:
        return weighted(view.at(X).moments(slice(20)))

    assert torch.autograd.gradgradcheck(moments, leaf, atol=1e-4, fast_mode=True)


@doors(1)
@pytest.mark.parametrize("own", [False, True])
def test_gradients_of_slopes(door: Door, own: bool) -> None:
    view, leaf = door.view(), door.X[:2].clone().requires_grad_()
    contexts = door.own()[:2] if own else slice(4, 9)
    assert torch.autograd.gradcheck(
        lambda X: weighted(view.at(X).slopes(contexts)),
        leaf,
        atol=1e-4,
        fast_mode=True,
    )


@ONE_OF_EACH
def test_gradients_follow_from_one_look(door: Door) -> None:
    """Moments and slopes of one look may be used together, and again."""
    view, leaf = door.view(), door.X.clone().requires_grad_()

    def both(X: Tensor) -> Tensor:
        here = view.at(X)
        return torch.cat(
            [weighted(here.moments()), weighted(here.slopes(slice(4)))]
            + [weighted(here.slopes(door.own())), weighted(here.moments(slice(3)))]
        )

    assert torch.autograd.gradcheck(both, leaf, atol=1e-4, fast_mode=True)


@ONE_OF_EACH
def test_jacobians_in_one_sweep(door: Door) -> None:
    """``is_grads_batched``: many vectors go through the backward pass at once."""
    view = door.view()
    for function in (
        lambda X: weighted(view.at(X).moments()),
        lambda X: weighted(view.at(X).slopes(slice(3))),
        lambda X: weighted(view.at(X).slopes(door.own())),
    ):
        expected = torch.autograd.functional.jacobian(function, door.X)
        found = torch.autograd.functional.jacobian(function, door.X, vectorize=True)
        torch.testing.assert_close(found, expected)


@ONE_OF_EACH
def test_hessians_in_one_sweep(door: Door) -> None:
    view = door.view()

    def function(X: Tensor) -> Tensor:
        return weighted(view.at(X).moments()).sum()

    expected = torch.autograd.functional.hessian(function, door.X)
    found = torch.autograd.functional.hessian(function, door.X, vectorize=True)
    torch.testing.assert_close(found, expected)


@ONE_OF_EACH
def test_no_graph_where_none_is_asked_for(door: Door) -> None:
    view, leaf = door.view(), door.X.clone().requires_grad_()

    def parts(X: Tensor) -> list[Tensor]:
        here = view.at(X)
        return [*here.moments(), *here.slopes(slice(3)), *here.slopes(door.own())]

    assert not any(part.requires_grad for part in parts(door.X))
    with torch.no_grad():
        assert not any(part.requires_grad for part in parts(leaf))
    assert all(part.requires_grad for part in parts(leaf))


@ONE_OF_EACH
def test_blocks_change_nothing(door: Door) -> None:
    X, _ = make_inputs(20 if door.method == "product" else 6, units=True)
    X = X.requires_grad_()
    budget = {"generic": 250_000, "exact": 20_000, "product": 62_000}[door.method]
    whole, pieces = door.view(), door.view(memory_budget=budget)
    assert pieces.method == door.method
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
def test_contexts_are_copies(door: Door) -> None:
    contexts = door.C.clone()
    view = door.view(contexts)
    before = [*view.at(door.X).moments(), *view.at(door.X).slopes()]
    contexts += 5.0
    contexts.numpy()[:] = 0.0  # behind autograd's back
    after = [*view.at(door.X).moments(), *view.at(door.X).slopes()]
    assert all(map(torch.equal, before, after))


@ONE_OF_EACH
def test_contexts_are_constants(door: Door) -> None:
    """Also where they are parameters: the way to their gradient is ``slopes``."""
    C, own = door.C.clone().requires_grad_(), door.own().requires_grad_()
    view, leaf = door.view(C), door.X.clone().requires_grad_()
    here = view.at(door.X)
    found = [*here.moments(), *here.slopes(), *here.slopes(own)]
    assert not any(part.requires_grad for part in found)
    here = view.at(leaf)
    for part in (*here.moments(), *here.slopes(), *here.slopes(own)):
        gradients = torch.autograd.grad(
            part.sum(), [leaf, C, own], retain_graph=True, allow_unused=True
        )
        assert gradients[0] is not None and gradients[1:] == (None, None)


BOTH = [(name, method) for name in ("rbf", "float32") for method in EVERY]


@pytest.mark.parametrize("door", BOTH, ids=str, indirect=True)
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_results_have_the_dtype_of_the_decisions(
    door: Door, dtype: torch.dtype
) -> None:
    here = door.view(door.C.to(dtype)).at(door.X.to(dtype))
    expected = door.view().at(door.X)
    for a, b, scale in zip(
        [*here.moments(), *here.slopes(slice(4)), *here.slopes(door.own().to(dtype))],
        [*expected.moments(), *expected.slopes(slice(4)), *expected.slopes(door.own())],
        3 * [*door.scales, *door.scales],
        strict=False,
    ):
        assert a.dtype == dtype
        assert (a - b).abs().max() <= 1e-2 * max(scale, b.abs().max().item())


@ONE_OF_EACH
def test_what_is_built_in_inference_mode_gives_gradients_later(door: Door) -> None:
    def parts(view: View) -> Tensor:
        X = door.X.clone().requires_grad_()
        here: LocalMoments = view.at(X)
        found = weighted(here.moments()), weighted(here.slopes(slice(4)))
        (first,) = torch.autograd.grad(torch.cat(found).sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), X)
        return second

    with torch.inference_mode():
        view = door.view()  # posterior and view
        here = view.at(door.X.clone())
        inside = [*here.moments(), *here.slopes(slice(4)), *here.slopes(door.own())]
    here = view.at(door.X)
    outside = [*here.moments(), *here.slopes(slice(4)), *here.slopes(door.own())]
    for a, b in zip(inside, outside, strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(parts(view), parts(door.view()))


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
