r"""Test functions that are the posterior mean of a GP fitted to simulated runs."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import check_points
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.closed_form import of_preset, unit_bounds
from botorch_drbo.test_functions.data_files import (
    digest,
    find_data_file,
    load_entries,
)
from botorch_drbo.test_functions.gaussian_process import GaussianProcessMean
from botorch_drbo.test_functions.laws import normal_law, uniform_law
from botorch_drbo.test_functions.optimum import Optimum

_PORTFOLIO_KEYS = (
    "X",
    "y",
    "y_mean",
    "y_std",
    "rbf_lengthscale",
    "rbf_noise",
    "rbf_mean_constant",
    "matern52_lengthscale",
    "matern52_outputscale",
    "matern52_noise",
    "matern52_mean_constant",
)


class Portfolio(RobustTestFunction):
    r"""The yearly return of a trading strategy under unknown market costs.

    The function is the posterior mean of a GP given 3,000 runs of a market simulator
    (the return in percent per year; higher is better). The decisions are the weights
    of risk, of trading cost and of holding cost; the contexts are the bid-ask spread
    and the borrowing cost. All five are scaled to [0, 1]. The hyper-parameters are
    those of the papers' surrogates: RBF for "wdrbo" [Micheli2025wdrbo]_, Matern-5/2
    for "sbo_kde" [Huang2024sbokde]_. Contexts are uniform, or normal around .5 with
    deviation .2 ("wdrbo") or .1 ("sbo_kde"), clipped.

    The public code of both papers maximises *minus* this mean, although the runs
    record returns. ``negate=True`` gives their problem.

    The optimum of other data, or under a law of your own, is searched for when first
    asked for: with 3,000 runs that takes a minute or more.

    The data are not ours to share. The first found is used: ``path``, the folder in
    the variable ``BOTORCH_DRBO_DATA``, ``../shared/data`` beside a checkout.

    Args:
        context_law: "normal", "uniform", or a law of your own on the unit square.
        preset: "wdrbo" or "sbo_kde": the kernel and the normal law's deviation.
        path: The file ``portfolio.npz``.
        negate: Maximise minus the return, as the papers' code does.
        noise_std: Standard deviation of the observation noise (none in the papers).

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry or has one of a wrong shape.

    Example:
        >>> Portfolio(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """

    _recompute: ClassVar[bool] = False  # the posterior mean keeps no large graph
    _DEVIATIONS: ClassVar[dict[str, float]] = {"wdrbo": 0.2, "sbo_kde": 0.1}
    # Of the data with this digest only; others are searched when first asked for.
    _DIGEST: ClassVar[str] = (
        "7d0483942dd4cfe4e875a2f159e6784fdccf8a3487f888e6aca360168b2d8e49"
    )
    _OPTIMA: ClassVar[dict[tuple[str, str, bool], Optimum]] = {
        ("normal", "wdrbo", False): Optimum(7.539857, (0.457930, 0.0, 0.0)),
        ("normal", "wdrbo", True): Optimum(19.749015, (0.0, 1.0, 0.096135)),
        ("normal", "sbo_kde", False): Optimum(9.150585, (0.460469, 0.0, 0.0)),
        ("normal", "sbo_kde", True): Optimum(21.586227, (0.0, 1.0, 0.082800)),
        ("uniform", "wdrbo", False): Optimum(5.614961, (0.448451, 0.0, 0.0)),
        ("uniform", "wdrbo", True): Optimum(18.083142, (0.0, 1.0, 0.556356)),
        ("uniform", "sbo_kde", False): Optimum(6.167466, (0.446168, 0.0, 0.0)),
        ("uniform", "sbo_kde", True): Optimum(19.325126, (0.0, 1.0, 0.599546)),
    }

    def __init__(
        self,
        context_law: str | Distribution = "normal",
        *,
        preset: str = "wdrbo",
        path: str | Path | None = None,
        negate: bool = False,
        noise_std: float = 0.0,
    ) -> None:
        deviation = of_preset(self._DEVIATIONS, preset)
        data = _load_portfolio(path)
        law_name = context_law if isinstance(context_law, str) else "own"
        if isinstance(context_law, str):
            context_law = self._law(context_law, deviation)
        known = None
        if digest(data, _PORTFOLIO_KEYS) == self._DIGEST:
            known = self._OPTIMA.get((law_name, preset, negate))
        self._mean = _portfolio_mean(data, smooth=preset == "wdrbo")
        self._sign = -1.0 if negate else 1.0
        super().__init__(
            f"portfolio_{law_name}",
            bounds=unit_bounds(3),
            context_bounds=unit_bounds(2),
            context_law=context_law,
            noise_std=noise_std,
            optimum=known,
        )

    @staticmethod
    def _law(name: str, deviation: float) -> Distribution:
        if name == "normal":
            return normal_law(0.5, deviation, 2)
        if name == "uniform":
            return uniform_law(unit_bounds(2))
        raise InputDataError(
            '`context_law` must be "normal", "uniform" or a distribution, got '
            f"{name!r}."
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return self._sign * self._mean(torch.cat([x, c], dim=-1))


def _load_portfolio(path: str | Path | None) -> dict[str, Tensor]:
    """Return the entries of ``portfolio.npz`` as float64 tensors."""
    place = find_data_file(
        "portfolio.npz",
        path,
        source="It holds the 3,000 runs under Benchmark/port_evals of the public code "
        "of Huang et al. (https://github.com/lamda-bbo/sbokde) or of BoRisk "
        "(https://github.com/saitcakmak/BoRisk), and the hyper-parameters fitted "
        f"there, as the numpy entries {', '.join(_PORTFOLIO_KEYS)}.",
    )
    data = load_entries(place, _PORTFOLIO_KEYS)
    check_points(data["X"], f"X of {place}", num_columns=5)
    if data["y"].shape != data["X"].shape[:1]:
        raise InputDataError(
            f"y of {place} must have one entry per row of X, got shapes "
            f"{tuple(data['y'].shape)} and {tuple(data['X'].shape)}."
        )
    return data


def _portfolio_mean(data: dict[str, Tensor], *, smooth: bool) -> GaussianProcessMean:
    kernel = "rbf" if smooth else "matern52"
    return GaussianProcessMean.fit(
        data["X"],
        data["y"],
        lengthscale=data[f"{kernel}_lengthscale"],
        outputscale=1.0 if smooth else float(data["matern52_outputscale"]),
        noise=float(data[f"{kernel}_noise"]),
        constant=float(data[f"{kernel}_mean_constant"]),
        shift=float(data["y_mean"]),
        scale=float(data["y_std"]),
        smooth=smooth,
    )
