r"""The leaf area of a plant as a function of acidity and ammonia."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import check_points
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.data_files import (
    digest,
    find_data_file,
    load_entries,
)
from botorch_drbo.test_functions.gaussian_process import GaussianProcessMean
from botorch_drbo.test_functions.laws import discretised_normal, uniform_law
from botorch_drbo.test_functions.optimum import Optimum

_JITTER = 1e-6  # GPflow's, with which the surrogate was fitted
_KEYS = (
    "inducing_points",
    "whitened_mean",
    "lengthscales",
    "variance",
    "leaf_area_mean",
    "leaf_area_std",
)


class PlantGrowth(RobustTestFunction):
    r"""The largest leaf area of a plant: the pH is chosen, the ammonia is not.

    The function is the mean of a sparse GP fitted to laboratory measurements of
    [Tay2024bocu]_. With the decision ``x`` (pH in [2.5, 6.5]), the context ``c``
    (ammonia in [0, 30000]), the SE kernel ``k`` and its inducing points ``Z``,

    .. math:: f(x, c) = \bar a + s \, k([c, x], Z) \, L^{-\top} m, \quad
        L L^\top = k(Z, Z) + 10^{-6} I.

    The jitter is GPflow's, and belongs to the definition: of the 174 inducing points
    only 56 are distinct. Values are leaf areas, between 1 and 143;
    ``standardise=True`` gives :math:`(f - \bar a) / s` as the paper optimises it.

    Contexts are uniform; the optimiser is told N(.5, .2), on the context scaled to the
    unit interval, on a grid of 64 points.

    The data are not ours to share. The first found is used: ``path``, the folder in
    the variable ``BOTORCH_DRBO_DATA``, ``../shared/data`` beside a checkout.

    Args:
        context_law: A law of your own, on [0, 30000].
        path: The file ``plant_growth.npz``.
        standardise: Subtract the mean of the measurements, and divide by their
            deviation.
        noise_std: Standard deviation of the observation noise, in the units of the
            values (.01 in the paper, of standardised ones).

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry.
        BotorchTensorDimensionError: It has an entry of a wrong shape.

    Example:
        >>> PlantGrowth(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """

    _recompute: ClassVar[bool] = False  # the posterior mean keeps no large graph
    _DIGEST: ClassVar[str] = (
        "10b44d789ea235cb36255120fa4b4bcbed39c067e9e11d076a63dab7b768709a"
    )
    _OPTIMUM: ClassVar[Optimum] = Optimum(86.611034, (5.628737,))  # of leaf areas

    def __init__(
        self,
        *,
        context_law: Distribution | None = None,
        path: str | Path | None = None,
        standardise: bool = False,
        noise_std: float = 0.0,
    ) -> None:
        data = _load(path)
        shift = float(data["leaf_area_mean"])
        scale = float(data["leaf_area_std"])
        known = None
        if digest(data, _KEYS) == self._DIGEST and context_law is None:
            known = self._OPTIMUM
            if standardise:
                value = (known.value - shift) / scale
                known = Optimum(value, known.decision)
        if standardise:
            shift, scale = 0.0, 1.0
        self._mean = _sparse_mean(data, shift=shift, scale=scale)
        context_bounds = torch.tensor([[0.0], [30_000.0]], dtype=torch.double)
        super().__init__(
            "plant_growth",
            bounds=torch.tensor([[2.5], [6.5]], dtype=torch.double),
            context_bounds=context_bounds,
            context_law=context_law or uniform_law(context_bounds),
            noise_std=noise_std,
            optimum=known,
            reference=discretised_normal(context_bounds),
            separated=self._mean.separate(decision=[1], context=[0]),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return self._mean(torch.cat([c, x], dim=-1))  # the surrogate has ammonia first


def _load(path: str | Path | None) -> dict[str, Tensor]:
    place = find_data_file(
        "plant_growth.npz",
        path,
        source="It holds the sparse GP `NH3pH_gp_leaf` under data/plant of the public "
        "code of Tay et al. (2024), 'A Unified Framework for Bayesian Optimization "
        f"under Contextual Uncertainty', as the numpy entries {', '.join(_KEYS)}.",
    )
    data = load_entries(place, _KEYS)
    points = check_points(
        data["inducing_points"], f"inducing_points of {place}", num_columns=2
    )
    shapes = {"whitened_mean": (len(points),), "lengthscales": (2,)}
    for key in _KEYS[1:]:
        if data[key].shape != shapes.get(key, ()):
            raise BotorchTensorDimensionError(
                f"{key} of {place} must have shape {shapes.get(key, ())}, got "
                f"{tuple(data[key].shape)}."
            )
    positive = torch.stack([data["lengthscales"].min(), data["variance"]])
    if not (positive > 0).all() or not data["leaf_area_std"] > 0:
        raise InputDataError(
            f"lengthscales, variance and leaf_area_std of {place} must be positive."
        )
    return data


def _sparse_mean(
    data: dict[str, Tensor], *, shift: float, scale: float
) -> GaussianProcessMean:
    """Return ``shift + scale * k(z, Z) L^-T m``."""
    lengthscale, variance = data["lengthscales"], data["variance"]
    points = data["inducing_points"] / lengthscale  # n x 2
    difference = points.unsqueeze(-2) - points  # n x n x 2
    covariance = variance * (-0.5 * difference.square().sum(-1)).exp()
    covariance.diagonal().add_(_JITTER)
    factor = torch.linalg.cholesky(covariance)
    solved = torch.linalg.solve_triangular(
        factor.mT, data["whitened_mean"].unsqueeze(-1), upper=True
    )
    return GaussianProcessMean(
        points=points,
        weights=variance * solved.squeeze(-1),
        lengthscale=lengthscale,
        smooth=True,
        constant=0.0,
        shift=shift,
        scale=scale,
    )
