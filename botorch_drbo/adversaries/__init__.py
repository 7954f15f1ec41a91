"""Adversaries: which contexts are expected, and how their distribution may change."""

from botorch_drbo._validation import Registry
from botorch_drbo.adversaries.around_contexts import AroundContexts
from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.adversaries.empirical import Empirical, EveryDistribution
from botorch_drbo.adversaries.kernel_density import KernelDensity, KernelDensityBall
from botorch_drbo.adversaries.mmd import MinimaxMMDBall, MMDBall
from botorch_drbo.adversaries.standard_deviation_box import StandardDeviationBox
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem

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
    },
)
"""Adversaries by name, with their defaults. Add your own under a name."""

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "FittedRound",
    "SearchProblem",
    "WorstCaseProblem",
]
