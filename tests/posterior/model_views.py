"""Every view of the posterior on every model that it takes, and the oracle.

The oracle is ``model.posterior`` on q-batches of one, and autograd through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
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

from botorch_drbo.posterior import View, marginal_posterior
from tests.models import (
    botorch_moments,
    ensemble,
    join,
    make_inputs,
    make_model,
    observations,
)

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
    return ensemble(Z, Y)


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


class ModelView:
    """One model behind one view, and the oracle."""

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


PAIRS = [(name, method) for name, case in CASES.items() for method in case.methods]


def model_views(least_derivatives: int = -1) -> Any:
    """All views of all models whose moments have that many derivatives in ``X``."""
    pairs = [pair for pair in PAIRS if CASES[pair[0]].derivatives >= least_derivatives]
    names = [", ".join(pair) for pair in pairs]
    return pytest.mark.parametrize("model_view", pairs, ids=names, indirect=True)


ONE_OF_EACH = pytest.mark.parametrize(
    "model_view", [("units", method) for method in EVERY], ids=EVERY, indirect=True
)


def weighted(parts: Sequence[Tensor]) -> Tensor:
    """A few numbers for each decision that show all of its moments or slopes."""
    generator = torch.Generator().manual_seed(7)
    sums = []
    for part in parts:
        shape = part.shape[1:]
        weights = torch.rand(*shape, generator=generator, dtype=torch.double)
        sums.append((part * weights / weights.sum()).flatten(1).sum(-1))
    return torch.stack(sums)
