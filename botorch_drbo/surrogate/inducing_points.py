"""Many outcomes: hyper-parameters from some of them, inducing points for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import cast

from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.kernels import InducingPointKernel, Kernel

from botorch_drbo.posterior.ensemble import each_member
from botorch_drbo.posterior.exact import inducing_points
from botorch_drbo.surrogate.base import ModelData

MAX_EXACT = 3000
"""So many outcomes are modelled exactly, if nothing else is said."""
NUM_FITTED = 1000
"""Rows to which hyper-parameters are fitted where there are more than ``max_exact``."""
NUM_INDUCING = 512
"""Inducing points, at most."""


def fit_rows(
    data: ModelData, max_exact: int, fit: Callable[[ModelData], Model]
) -> Model:
    """Fit a model to any number of rows; from ``max_exact`` on with inducing points.

    With more than ``max_exact`` rows hyper-parameters are fitted to 1,000 of them
    (fewer, if ``max_exact`` is less), drawn at random under a fixed seed. Up to 512 of
    these become inducing points: one after the other that of the largest variance
    given those before it [Burt2020convergence]_. Then *all* rows are conditioned on,
    through these points: GPyTorch's ``InducingPointKernel``, in time ``O(t m^2)``, with
    memory that grows with the data alone.
    """
    t = len(data.inputs)
    if t <= max_exact:
        return fit(data)
    # Hyper-parameters are few: a sample of rows determines them almost as well as all,
    # at a cost of the cube of their number.
    num = min(NUM_FITTED, max_exact)
    warnings.warn(
        f"There are more than {max_exact:,} {data.noun} (`max_exact`): "
        f"hyper-parameters are fitted to {num:,} of them, and all are summed up at "
        f"{min(NUM_INDUCING, num)} inducing points at most, which is less accurate and "
        "far faster. Give the surrogate a larger `max_exact` for the exact model, for "
        f"instance `EnsembleOf(['botorch', 'matern'], max_exact={10 * max_exact})`.",
        InputDataWarning,
        stacklevel=3,
    )
    # Then all rows are used with these hyper-parameters, by a kernel of low rank: the
    # cost is linear in the number of rows.
    return each_member(
        fit(data.sample(num)),
        lambda member: _of_all_rows(cast(SingleTaskGP, member), data),
    )


def _of_all_rows(fitted: SingleTaskGP, data: ModelData) -> SingleTaskGP:
    """The same hyper-parameters, and all rows, summed up at inducing points."""
    kernel = cast(Kernel, fitted.covar_module)
    likelihood = fitted.likelihood
    # Chosen from the rows that were fitted: greedily where the variance is largest.
    points = inducing_points(fitted, NUM_INDUCING)
    model = data.model(
        mean_module=fitted.mean_module,
        covar_module=InducingPointKernel(kernel, points, likelihood),
        likelihood=None if data.Yvar is not None else likelihood,
    )
    # That of known noise knows it row by row, and is made by the model.
    cast(InducingPointKernel, model.covar_module).likelihood = model.likelihood
    return model.to(data.inputs).eval()
