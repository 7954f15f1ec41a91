"""Every view on every model that it takes, for the contract of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import ChainedInputTransform, Normalize, Warp
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import LinearMean
from torch import Tensor

from botorch_drbo.posterior import MarginalPosterior, marginal_posterior
from botorch_drbo.surrogate.base import model_inputs
from tests.contracts.view_case import Moments, PosteriorViewCase, model_moments
from tests.models import UNIT, ensemble, make_inputs, make_model, observations

EVERY = ("generic", "exact", "product")
DENSE = ("generic", "exact")
# So few bytes that each method works in blocks.
BUDGETS = {"generic": 250_000, "exact": 20_000, "product": 62_000}
PENDING = torch.tensor([[0.2, 0.4, 3.0], [0.9, 0.1, -5.0]], dtype=torch.double)
MINUS = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double(), offset=3.0)
SUM = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.5]).double())


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
    variance = model_moments(augmented, joint)[1]
    mean = model_moments(model, joint)[0]
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


def with_category(column: int, covar: Kernel | None = None) -> SingleTaskGP:
    """Half of the values of a column are one category, half another."""
    return make_model(
        RBFKernel(ard_num_dims=4) if covar is None else covar,
        t=9,
        input_transform=model_inputs(UNIT.expand(2, 3), {column: 2}),
    )


def rough_columns() -> Kernel:
    """A factor of each of four columns."""
    return ScaleKernel(
        MaternKernel(nu=2.5, active_dims=[0])
        * MaternKernel(nu=1.5, active_dims=[1])
        * MaternKernel(nu=2.5, active_dims=[2])
        * MaternKernel(nu=1.5, active_dims=[3])
    )


class Setting(NamedTuple):
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


SETTINGS = {
    "rbf": Setting(make_model),
    "units": Setting(
        lambda: make_model(ScaleKernel(RBFKernel(ard_num_dims=3)), units=True),
        units=True,
    ),
    "fixed noise": Setting(
        lambda: make_model(units=True, fixed_noise=True), units=True, derivatives=0
    ),
    "matern12": Setting(
        lambda: make_model(MaternKernel(nu=0.5, ard_num_dims=3)),
        DENSE,
        tolerance=1e-6,
        derivatives=0,
    ),
    "matern32": Setting(
        lambda: make_model(ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=3))),
        DENSE,
        derivatives=1,  # the second is rough near the data
    ),
    "matern52": Setting(
        lambda: make_model(MaternKernel(nu=2.5, ard_num_dims=3), units=True),
        DENSE,
        units=True,
    ),
    "rational quadratic": Setting(
        lambda: make_model(ScaleKernel(RQKernel(ard_num_dims=3))), DENSE
    ),
    "product of columns": Setting(
        lambda: make_model(
            ScaleKernel(
                MaternKernel(nu=2.5, active_dims=[0])
                * MaternKernel(nu=1.5, active_dims=[1])
                * MaternKernel(nu=2.5, active_dims=[2])
            ),
            units=True,
        ),
        units=True,
    ),
    "product of rough columns": Setting(
        lambda: make_model(
            RBFKernel(active_dims=[0, 1]) * MaternKernel(nu=0.5, active_dims=[2])
        ),
        tolerance=1e-6,
        derivatives=0,
    ),
    "linear": Setting(lambda: make_model(LinearKernel()), DENSE, derivatives=0),
    "linear mean": Setting(lambda: make_model(mean_module=LinearMean(3)), DENSE),
    "mixed sum": Setting(
        lambda: make_model(
            MaternKernel(active_dims=[0]) + MaternKernel(active_dims=[1, 2])
        ),
        DENSE,
        derivatives=1,
    ),
    "smooth sum": Setting(
        lambda: make_model(
            AdditiveKernel(
                ScaleKernel(RBFKernel(ard_num_dims=3)),
                ScaleKernel(MaternKernel(nu=2.5, active_dims=[0])),
                ScaleKernel(RBFKernel(active_dims=[2])),
            )
        )
    ),
    "rough in the context": Setting(
        lambda: make_model(
            ScaleKernel(
                RBFKernel(active_dims=[0, 1]) * MaternKernel(nu=2.5, active_dims=[2])
            ),
            t=6,
        )
    ),
    "rbf twice": Setting(
        lambda: make_model(RBFKernel(ard_num_dims=3) * RBFKernel(active_dims=[2])),
        derivatives=1,
    ),
    "warped": Setting(warped),
    "first column": Setting(make_model, columns=(0,), derivatives=0),
    "two columns": Setting(lambda: make_model(t=6), columns=(2, 0), derivatives=1),
    "category in the decision": Setting(
        lambda: with_category(1), columns=(2,), derivatives=1
    ),
    "category in the context": Setting(
        lambda: with_category(0), columns=(2, 0), derivatives=1
    ),
    "category in the decision, product": Setting(
        lambda: with_category(1, rough_columns()), columns=(2,), derivatives=1
    ),
    "category in the context, product": Setting(
        lambda: with_category(0, rough_columns()), columns=(2, 0), derivatives=1
    ),
    "pending": Setting(
        lambda: make_model(units=True),
        units=True,
        options={"pending": PENDING},
        oracle=with_pending,
    ),
    "pending, sum": Setting(
        lambda: make_model(
            ScaleKernel(RBFKernel(ard_num_dims=3)) + RBFKernel(active_dims=[2]),
            units=True,
        ),
        units=True,
        options={"pending": PENDING},
        oracle=with_pending,
        derivatives=0,
    ),
    "sign": Setting(
        lambda: make_model(units=True),
        units=True,
        options={"posterior_transform": MINUS},
        derivatives=0,
    ),
    "float32": Setting(
        lambda: make_model(dtype=torch.float), tolerance=1e-3, derivatives=0
    ),
    "ensemble": Setting(saas, ["generic"], derivatives=1),
    "two outputs": Setting(
        two_outputs, ["generic"], options={"posterior_transform": SUM}, derivatives=0
    ),
    "log outcomes": Setting(
        lambda: make_model(units=True, outcome_transform=Log()),
        ["generic"],
        units=True,
        derivatives=0,
    ),
}


def case(name: str, method: str) -> PosteriorViewCase:
    """The view of one method on one model."""
    setting, options = SETTINGS[name], SETTINGS[name].options
    thorough = name == "units"
    many = thorough and method == "product"  # it works off many at once
    X, contexts = make_inputs(
        20 if many else 6, columns=setting.columns, units=setting.units
    )

    def posterior(model: Model, memory_budget: int | None) -> MarginalPosterior:
        budget = {} if memory_budget is None else {"memory_budget": memory_budget}
        made = marginal_posterior(
            model, setting.columns, method=method, **options, **budget
        )
        assert made.over(contexts).method == method
        return made

    def moments(model: Model, joint: Tensor) -> Moments:
        if setting.oracle is not None:
            return setting.oracle(model, joint)
        return model_moments(model, joint, options.get("posterior_transform"))

    return PosteriorViewCase(
        f"{name}, {method}",
        setting.make,
        posterior,
        X=X,
        contexts=contexts,
        columns=setting.columns,
        moments=moments,
        tolerance=setting.tolerance,
        derivatives=setting.derivatives,
        memory_budget=BUDGETS[method] if thorough else None,
        thorough=thorough,
        jointly_gaussian=name != "log outcomes",
    )


CASES = [
    case(name, method)
    for name, setting in SETTINGS.items()
    for method in setting.methods
]
