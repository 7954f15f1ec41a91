r"""Test functions that are the mean of a GP fitted to published data.

The data are not ours to share. The first found is used: ``path``, the folder in the
variable ``BOTORCH_DRBO_DATA``, ``../shared/data`` beside a checkout. A stored optimum
belongs to the data that we had; that of other data, or under a law of your own, is
searched for when first asked for (a minute or more with 3,000 runs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor
from torch.distributions import Distribution

from benchmarks.problems.data_files import DataFile
from benchmarks.problems.gaussian_process import GaussianProcessMean
from benchmarks.problems.laws import discretised_normal
from botorch_drbo._validation import check_finite, check_points
from botorch_drbo.test_functions.base import Optimum, normal_law, uniform_law
from botorch_drbo.test_functions.closed_form import (
    ClosedForm,
    Problem,
    of_preset,
    unit_bounds,
)

_TAY = (
    "of the public code of Tay et al. (2024), 'A Unified Framework for Bayesian "
    "Optimization under Contextual Uncertainty', as the numpy entries"
)
_PORTFOLIO = DataFile(
    "portfolio.npz",
    (
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
    ),
    "It holds the 3,000 runs under Benchmark/port_evals of the public code of Huang et "
    "al. (https://github.com/lamda-bbo/sbokde) or of BoRisk "
    "(https://github.com/saitcakmak/BoRisk), and the hyper-parameters fitted there, as "
    "the numpy entries",
    "7d0483942dd4cfe4e875a2f159e6784fdccf8a3487f888e6aca360168b2d8e49",
)
_PLANT = DataFile(
    "plant_growth.npz",
    (
        "inducing_points",
        "whitened_mean",
        "lengthscales",
        "variance",
        "leaf_area_mean",
        "leaf_area_std",
    ),
    f"It holds the sparse GP `NH3pH_gp_leaf` under data/plant {_TAY}",
    "10b44d789ea235cb36255120fa4b4bcbed39c067e9e11d076a63dab7b768709a",
)
_COVID = DataFile(
    "covid_infection.npz",
    ("X", "y"),
    f"It holds the 4,085 runs of `infection_X_y` under data/infection {_TAY}",
    "cd33a8214beceb83ee607bd5a9d90ac4965d9f0e985d96a410ab2708ee4fea7f",
)
_DEVIATIONS = {"wdrbo": 0.2, "sbo_kde": 0.1}  # of the portfolio's normal law
# benchmarks/find_optima.py prints them, by law, preset and `negate`.
_PORTFOLIO_OPTIMA = {
    ("normal", "wdrbo", False): Optimum(7.539857, (0.457930, 0.0, 0.0)),
    ("normal", "wdrbo", True): Optimum(19.749015, (0.0, 1.0, 0.096135)),
    ("normal", "sbo_kde", False): Optimum(9.150585, (0.460469, 0.0, 0.0)),
    ("normal", "sbo_kde", True): Optimum(21.586227, (0.0, 1.0, 0.082800)),
    ("uniform", "wdrbo", False): Optimum(5.614961, (0.448451, 0.0, 0.0)),
    ("uniform", "wdrbo", True): Optimum(18.083142, (0.0, 1.0, 0.556356)),
    ("uniform", "sbo_kde", False): Optimum(6.167466, (0.446168, 0.0, 0.0)),
    ("uniform", "sbo_kde", True): Optimum(19.325126, (0.0, 1.0, 0.599546)),
}
_PLANT_OPTIMUM = Optimum(86.611034, (5.628737,))  # of leaf areas
_COVID_OPTIMUM = Optimum(0.330414, (0.288034, 0.422436))
_GPFLOW_JITTER = 1e-6  # with which the plant's surrogate was fitted
_COVID_LENGTHSCALE, _COVID_RIDGE = 0.1, 1e-6  # the ridge is that of the public code


@dataclass(frozen=True)
class _Surrogate:
    """The mean at the columns of decision and context, put in its own order."""

    mean: GaussianProcessMean
    order: tuple[int, ...]  # of the columns of [x, c], as the mean takes them
    sign: float = 1.0

    def __call__(self, x: Tensor, c: Tensor) -> Tensor:
        return self.sign * self.mean(torch.cat([x, c], dim=-1)[:, self.order])


def portfolio(
    context_law: str | Distribution = "normal",
    *,
    preset: str = "wdrbo",
    path: str | Path | None = None,
    negate: bool = False,
    noise_std: float = 0.0,
) -> ClosedForm:
    r"""Return the yearly return of a trading strategy under unknown market costs.

    The function is the posterior mean of a GP given 3,000 runs of a market simulator
    (the return in percent per year; higher is better). The decisions are the weights
    of risk, of trading cost and of holding cost; the contexts are the bid-ask spread
    and the borrowing cost. All five are scaled to [0, 1]. The hyper-parameters are
    those of the papers' surrogates: RBF for "wdrbo" [Micheli2025wdrbo]_, Matern-5/2
    for "sbo_kde" [Huang2024sbokde]_. Contexts are uniform, or normal around .5 with
    deviation .2 ("wdrbo") or .1 ("sbo_kde"), clipped.

    The public code of both papers maximises *minus* this mean, although the runs
    record returns. ``negate=True`` gives their problem.

    Args:
        context_law: "normal", "uniform", or a law of your own on the unit square.
        preset: "wdrbo" or "sbo_kde": the kernel and the normal law's deviation.
        path: The file ``portfolio.npz``.
        negate: Maximise minus the return, as the papers' code does.
        noise_std: Standard deviation of the observation noise (none in the papers).

    Returns:
        The test function.

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry or has one of a wrong shape.

    Example:
        >>> portfolio(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """
    deviation = of_preset(_DEVIATIONS, preset)
    data, file, known = _PORTFOLIO.load(path)
    _check_runs(data, file)
    law_name = context_law if isinstance(context_law, str) else "own"
    if isinstance(context_law, str):
        laws: dict[str, Callable[[], Distribution]] = {
            "normal": lambda: normal_law(0.5, deviation, 2),
            "uniform": lambda: uniform_law(unit_bounds(2)),
        }
        if context_law not in laws:
            raise InputDataError(
                '`context_law` must be "normal", "uniform" or a distribution, got '
                f"{context_law!r}."
            )
        context_law = laws[context_law]()
    smooth = preset == "wdrbo"
    kernel = "rbf" if smooth else "matern52"
    mean = GaussianProcessMean.fit(
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
    problem = Problem(
        f"portfolio_{law_name}",
        _Surrogate(mean, (0, 1, 2, 3, 4), -1.0 if negate else 1.0),
        unit_bounds(3),
        unit_bounds(2),
        context_law,
        _PORTFOLIO_OPTIMA.get((law_name, preset, negate)) if known else None,
        recompute=False,
    )
    return ClosedForm(problem, noise_std=noise_std)


def plant_growth(
    *,
    context_law: Distribution | None = None,
    path: str | Path | None = None,
    standardise: bool = False,
    noise_std: float = 0.0,
) -> ClosedForm:
    r"""Return the largest leaf area of a plant: the pH is chosen, the ammonia is not.

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

    Args:
        context_law: A law of your own, on [0, 30000].
        path: The file ``plant_growth.npz``.
        standardise: Subtract the mean of the measurements, and divide by their
            deviation.
        noise_std: Standard deviation of the observation noise, in the units of the
            values (.01 in the paper, of standardised ones).

    Returns:
        The test function.

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry.
        BotorchTensorDimensionError: It has an entry of a wrong shape.

    Example:
        >>> plant_growth(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """
    data, file, known = _PLANT.load(path)
    _check_sparse(data, file)
    optimum = _PLANT_OPTIMUM if known else None
    shift, scale = float(data["leaf_area_mean"]), float(data["leaf_area_std"])
    if standardise:
        if optimum is not None:
            optimum = Optimum((optimum.value - shift) / scale, optimum.decision)
        shift, scale = 0.0, 1.0
    mean = _sparse_mean(data, shift=shift, scale=scale)
    context_bounds = torch.tensor([[0.0], [30_000.0]], dtype=torch.double)
    problem = Problem(
        "plant_growth",
        _Surrogate(mean, (1, 0)),  # the surrogate has ammonia first
        torch.tensor([[2.5], [6.5]], dtype=torch.double),
        context_bounds,
        uniform_law(context_bounds),
        optimum,
        discretised_normal(context_bounds),
        separated=mean.separate(decision=[1], context=[0]),
        recompute=False,
    )
    return ClosedForm(problem, context_law=context_law, noise_std=noise_std)


def covid_testing(
    *,
    context_law: Distribution | None = None,
    path: str | Path | None = None,
    noise_std: float = 0.0,
) -> ClosedForm:
    r"""Return how well an allocation of COVID-19 tests keeps infections down.

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

    Args:
        context_law: A law of your own, on the unit cube.
        path: The file ``covid_infection.npz``.
        noise_std: Standard deviation of the observation noise (.01 in the paper).

    Returns:
        The test function.

    Raises:
        FileNotFoundError: The data file is not there.
        InputDataError: It lacks an entry, or has one of a wrong shape.

    Example:
        >>> covid_testing(path="nowhere.npz")
        Traceback (most recent call last):
        FileNotFoundError: No data file at nowhere.npz...
    """
    data, file, known = _COVID.load(path)
    _check_runs(data, file)
    check_finite(data["y"], f"y of {file}")
    mean = GaussianProcessMean.fit(
        data["X"],
        data["y"],
        lengthscale=torch.full((5,), _COVID_LENGTHSCALE, dtype=torch.double),
        outputscale=1.0,
        noise=_COVID_RIDGE,
        constant=0.0,
        shift=0.0,
        scale=1.0,
        smooth=True,
    )
    problem = Problem(
        "covid_testing",
        _Surrogate(mean, (0, 1, 2, 3, 4)),
        unit_bounds(2),
        unit_bounds(3),
        uniform_law(unit_bounds(3)),
        _COVID_OPTIMUM if known else None,
        discretised_normal(unit_bounds(3)),
        separated=mean.separate(decision=[0, 1], context=[2, 3, 4]),
        recompute=False,
    )
    return ClosedForm(problem, context_law=context_law, noise_std=noise_std)


def _check_runs(data: dict[str, Tensor], file: Path) -> None:
    """Five columns, and an outcome for each row."""
    check_points(data["X"], f"X of {file}", num_columns=5)
    if data["y"].shape != data["X"].shape[:1]:
        raise InputDataError(
            f"y of {file} must have one entry per row of X, got shapes "
            f"{tuple(data['y'].shape)} and {tuple(data['X'].shape)}."
        )


def _check_sparse(data: dict[str, Tensor], file: Path) -> None:
    points = check_points(
        data["inducing_points"], f"inducing_points of {file}", num_columns=2
    )
    shapes: dict[str, Sequence[int]] = {
        "whitened_mean": (len(points),),
        "lengthscales": (2,),
    }
    for key in _PLANT.keys[1:]:
        wanted = shapes.get(key, ())
        if data[key].shape != wanted:
            raise BotorchTensorDimensionError(
                f"{key} of {file} must have shape {wanted}, got "
                f"{tuple(data[key].shape)}."
            )
    positive = torch.stack([data["lengthscales"].min(), data["variance"]])
    if not (positive > 0).all() or not data["leaf_area_std"] > 0:
        raise InputDataError(
            f"lengthscales, variance and leaf_area_std of {file} must be positive."
        )


def _sparse_mean(
    data: dict[str, Tensor], *, shift: float, scale: float
) -> GaussianProcessMean:
    """Return ``shift + scale * k(z, Z) L^-T m``."""
    lengthscale, variance = data["lengthscales"], data["variance"]
    points = data["inducing_points"] / lengthscale  # n x 2
    difference = points.unsqueeze(-2) - points  # n x n x 2
    covariance = variance * (-0.5 * difference.square().sum(-1)).exp()
    covariance.diagonal().add_(_GPFLOW_JITTER)
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
