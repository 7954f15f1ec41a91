"""The paired world of a run: what happens depends on salt, problem, seed and step.

Two algorithms that run with one seed meet the same initial decisions, the same contexts
and the same noise, whatever they decide and however much randomness they use
themselves. Differences between them are then differences of decisions, not of luck.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from benchmarks.problems import PROBLEMS, make
from benchmarks.run.config import ConfigError, ProblemConfig, did_you_mean
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.test_functions.base import RobustTestFunction

# Begun before worlds had a salt: any two experiments of a group share worlds.
SHARED = (
    (
        "ablations",
        "batches",
        "claims",
        "demo",
        "development",
        "tournament",
        "wdrbo",
    ),
    (
        "edrbo",
        "edrbo_batch",
        "edrbo_detached",
        "edrbo_diagonal",
        "edrbo_slips",
        "sbo_kde",
    ),
    ("calibration", "search"),
)


@dataclass(frozen=True)
class World:
    """One problem under one seed.

    Args:
        problem: The test function.
        name: Its name: part of every random seed.
        seed: The seed of the run.
        initial_design: One of ``INITIAL_DESIGNS``. ``"uniform"``: uniform decisions,
            and contexts of the true law. ``"sobol"``: a Sobol sequence of decisions,
            and contexts of the true law, as in EDRBO's study. ``"sobol_joint"``: a
            Sobol sequence over decision and context together, as in SBO-KDE's
            experiments; its contexts are no draws of the law.
        salt: The name of the experiment, so that no two share a world unawares; empty
            for those begun before salts (``SHARED``).
    """

    problem: RobustTestFunction
    name: str
    seed: int
    initial_design: str = "uniform"
    salt: str = field(kw_only=True)

    def initial(self, step: int) -> tuple[Tensor, Tensor]:
        """The decision ``1 x d_x`` and the context ``1 x d_c`` of an initial step."""
        if self.initial_design == "uniform":
            return self.initial_decision(step), self.context(step)
        seed = self._derived_seed(0, "design")
        if self.initial_design == "sobol":
            x = sobol_in_box(1, self.problem.bounds, seed, skip=step)
            return x, self.context(step)
        bounds = torch.cat([self.problem.bounds, self.problem.context_bounds], dim=-1)
        point = sobol_in_box(1, bounds, seed, skip=step)
        x, c = point.split([self.problem.d_x, self.problem.d_c], dim=-1)
        return x, c

    def initial_decision(self, step: int) -> Tensor:
        """A uniform decision in the bounds, ``1 x d_x``."""
        low, high = self.problem.bounds
        draw = torch.rand(
            1, low.numel(), dtype=low.dtype, generator=self._generator(step, "x")
        )
        return low + (high - low) * draw

    def context(self, step: int) -> Tensor:
        """The context that the world shows at this step, ``1 x d_c``."""
        return self.problem.sample_contexts(1, seed=self._derived_seed(step, "context"))

    def outcome(self, step: int, x: Tensor, c: Tensor) -> Tensor:
        """The noisy outcome (``1 x 1``) of ``x`` (``1 x d_x``), ``c`` (``1 x d_c``)."""
        noise = self._generator(step, "noise")
        return self.problem.observe(x, c, generator=noise).reshape(1, 1)

    def _derived_seed(self, step: int, purpose: str) -> int:
        # Hashed, so that neighbouring seeds and steps are unrelated; 31 bits suit every
        # generator that a test function may use.
        salt = f"{self.salt}|" if self.salt else ""
        text = f"{salt}{self.name}|{self.seed}|{step}|{purpose}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1

    def _generator(self, step: int, purpose: str) -> torch.Generator:
        return torch.Generator().manual_seed(self._derived_seed(step, purpose))


def make_problem(config: ProblemConfig) -> RobustTestFunction:
    """The test function of a config.

    Raises:
        ConfigError: No test function has this name, it does not take these options, or
            its data is not there.
    """
    if config.name not in PROBLEMS:
        raise ConfigError(
            f"There is no problem {config.name!r}."
            f"{did_you_mean(config.name, PROBLEMS)} `python -m benchmarks list` "
            "shows them."
        )
    try:
        return make(config.name, **config.options)
    except (InputDataError, TypeError) as error:
        raise ConfigError(f"Problem {config.label!r}: {error}") from error
