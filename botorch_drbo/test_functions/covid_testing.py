r"""The allocation of COVID-19 tests to groups of people."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import check_finite, check_points
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.closed_form import unit_bounds
from botorch_drbo.test_functions.data_files import (
    digest,
    find_data_file,
    load_entries,
)
from botorch_drbo.test_functions.gaussian_process import GaussianProcessMean
from botorch_drbo.test_functions.laws import discretised_normal, uniform_law
from botorch_drbo.test_functions.optimum import Optimum

_LENGTHSCALE = 0.1
_RIDGE = 1e-6  # that of the public code of the paper
_KEYS = ("X", "y")


class COVIDTesting(RobustTestFunction):
    r"""How well an allocation of COVID-19 tests keeps infections down.

    The function is a kernel ridge regression of 4,085 runs of an epidemic simulator,

    .. math:: f(z) = k(z, Z) (k(Z, Z) + 10^{-6} I)^{-1} y, \quad
        k(z, z') = e^{-\|z - z'\|^2 / (2 \cdot .1^2)}, \quad z = [x, c],

    with the lengthscale and the ridge of [Tay2024bocu]_. The decision is the first two
    columns, the context the last three, of which the last is the probability that a
    contact transmits the disease. The outcomes of the runs are already negated and
    standardised (from -2.05 to 14.22), so f is maximised as it is, in their units.

    The runs fill only a quarter of the unit cube: the first two columns are shares of
    a whole, and so are the next two, hence :math:`z_1 + z_2 \le 1` and
    :math:`z_3 + z_4 \le 1` in all of them. Outside, the regression returns to zero,
    the mean of the runs. The paper optimises over the whole cube, and so do we.

    Contexts are uniform; the optimiser is told N(.5, .2 I) on a 4 x 4 x 4 grid.

    The data are not ours to share. The first found is used: ``path``, the folder in
    the variable ``BOTORCH_DRBO_DATA``, ``../shared/data`` beside a checkout.

    Args:
        context_law: A law of your own, on the unit cube.
        path: The file ``covid_infection.npz``.
        noise_std: Standard deviation of the observation noise (.01 in the paper).

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry, or has one of a wrong shape.

    Example:
        >>> COVIDTesting(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """

    _recompute: ClassVar[bool] = False  # the posterior mean keeps no large graph
    _DIGEST: ClassVar[str] = (
        "cd33a8214beceb83ee607bd5a9d90ac4965d9f0e985d96a410ab2708ee4fea7f"
    )
    _OPTIMUM: ClassVar[Optimum] = Optimum(0.330414, (0.288034, 0.422436))

    def __init__(
        self,
        *,
        context_law: Distribution | None = None,
        path: str | Path | None = None,
        noise_std: float = 0.0,
    ) -> None:
        data = _load(path)
        own = context_law is not None
        known = digest(data, _KEYS) == self._DIGEST and not own
        self._mean = GaussianProcessMean.fit(
            data["X"],
            data["y"],
            lengthscale=torch.full((5,), _LENGTHSCALE, dtype=torch.double),
            outputscale=1.0,
            noise=_RIDGE,
            constant=0.0,
            shift=0.0,
            scale=1.0,
            smooth=True,
        )
        context_bounds = unit_bounds(3)
        super().__init__(
            "covid_testing",
            bounds=unit_bounds(2),
            context_bounds=context_bounds,
            context_law=context_law or uniform_law(context_bounds),
            noise_std=noise_std,
            optimum=self._OPTIMUM if known else None,
            reference=discretised_normal(context_bounds),
            separated=self._mean.separate(decision=[0, 1], context=[2, 3, 4]),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return self._mean(torch.cat([x, c], dim=-1))


def _load(path: str | Path | None) -> dict[str, Tensor]:
    place = find_data_file(
        "covid_infection.npz",
        path,
        source="It holds the 4,085 runs of `infection_X_y` under data/infection of the "
        "public code of Tay et al. (2024), 'A Unified Framework for Bayesian "
        "Optimization under Contextual Uncertainty', as the numpy entries X (4085 x 5) "
        "and y.",
    )
    data = load_entries(place, _KEYS)
    check_points(data["X"], f"X of {place}", num_columns=5)
    if data["y"].shape != data["X"].shape[:1]:
        raise InputDataError(
            f"y of {place} must have one entry per row of X, got shapes "
            f"{tuple(data['y'].shape)} and {tuple(data['X'].shape)}."
        )
    check_finite(data["y"], f"y of {place}")
    return data
