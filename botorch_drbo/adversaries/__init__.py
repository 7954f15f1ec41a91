"""Adversaries: which contexts are expected, and how their distribution may change."""

from botorch_drbo._validation import Registry
from botorch_drbo.adversaries.base import (
    Adversary,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.adversaries.dangers import Danger, MeanShift, Spread
from botorch_drbo.adversaries.empirical import (
    AroundContexts,
    Empirical,
    EveryDistribution,
    StandardDeviationBox,
)
from botorch_drbo.adversaries.kernels import (
    KernelDensity,
    KernelDensityBall,
    MinimaxMMDBall,
    MMDBall,
)
from botorch_drbo.adversaries.scenarios import AnyOf, Mixture, Scenarios, Weights
from botorch_drbo.adversaries.wasserstein import WassersteinBall

ADVERSARIES: Registry[Adversary] = Registry(
    Adversary,
    {
        "empirical": Empirical(),
        "every_distribution": EveryDistribution(),
        "standard_deviation_box": StandardDeviationBox(),
        "ambiguity_set": AroundContexts(),
        "wasserstein": WassersteinBall(),
        "kernel_density": KernelDensity(),
        "kernel_density_ball": KernelDensityBall(),
        "mmd": MMDBall(),
        "mmd_minimax": MinimaxMMDBall(),
        "mean_shift": MeanShift(clip=1.0),
        "spread": Spread(clip=1.0),
        "mixture": Mixture(),
    },
)
"""Adversaries by name, with their defaults. Add your own under a name."""

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "AnyOf",
    "Danger",
    "FittedRound",
    "MeanShift",
    "Mixture",
    "Scenarios",
    "SearchProblem",
    "Spread",
    "Weights",
    "WorstCaseProblem",
]
