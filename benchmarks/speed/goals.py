"""What an answer costs against other ways, side by side in one process.

Each case takes the same rows to both sides and returns processor seconds, ours first.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.speed.iterations import make_history
from botorch_drbo import RobustOptimizer

_NUM_CONTEXTS = 32  # over which BoTorch's way takes the expectation

Pair = tuple[float, float]
"""Processor seconds of two sides."""


def against_optuna(t: int, seed: int) -> Pair:
    """A default ask, and one of Optuna's ``GPSampler`` of all inputs, fits included."""
    import optuna

    history, space = make_history(t, seed)
    low, high = space.joint_bounds.tolist()
    names = [f"z{j}" for j in range(len(low))]
    ranges: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(*ends)
        for name, *ends in zip(names, low, high, strict=True)
    }
    rows = torch.cat([history.X, history.C], -1).tolist()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for row, value in zip(rows, history.Y.flatten().tolist(), strict=True):
        params = dict(zip(names, row, strict=True))
        study.add_trial(
            optuna.create_trial(params=params, distributions=ranges, value=value)
        )
    ours = told(t, seed)
    return cpu(ours.ask), cpu(lambda: study.ask(ranges))


def against_botorch(t: int, seed: int) -> Pair:
    """A default ask, and BoTorch's way: expectation over 32 contexts, qLogNEI."""
    return cpu(told(t, seed).ask), cpu(lambda: _botorch_ask(t, seed))


def recommend_over_ask(t: int, seed: int) -> Pair:
    """A recommendation right after an ask, printed, and that ask."""
    ours = told(t, seed)
    asked = cpu(ours.ask)
    return cpu(lambda: str(ours.recommend())), asked


def told(t: int, seed: int, recipe: str = "wdrbo_exact") -> RobustOptimizer:
    """A run that was told random rows of Ackley 2+1."""
    history, space = make_history(t, seed)
    found = RobustOptimizer(
        recipe,
        bounds=space.bounds,
        context_bounds=space.context_bounds,
        num_initial=0,
        seed=seed,
    )
    found.tell(history.X, history.C, history.Y)
    return found


def cpu(function: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _botorch_ask(t: int, seed: int) -> None:
    history, space = make_history(t, seed)
    box = space.joint_bounds
    unit = (torch.cat([history.X, history.C], -1) - box[0]) / (box[1] - box[0])
    d_x = space.d_x
    # Drawn with replacement: as many at every number of outcomes.
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(t, [_NUM_CONTEXTS], generator=generator)
    appended = AppendFeatures(feature_set=unit[rows, d_x:])
    model = SingleTaskGP(unit, history.Y, input_transform=appended)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acqf = qLogNoisyExpectedImprovement(
        model,
        X_baseline=unit[:, :d_x],
        posterior_transform=ExpectationPosteriorTransform(n_w=_NUM_CONTEXTS),
    )
    ends = torch.tensor([[0.0], [1.0]]).to(unit).expand(2, d_x)
    optimize_acqf(acqf, ends, q=1, num_restarts=10, raw_samples=1024)
