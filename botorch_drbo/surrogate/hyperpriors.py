"""Priors of positive hyper-parameters, in their logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

Array = np.ndarray


class HyperPrior(Protocol):
    """The density of a positive number, up to a constant factor."""

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """The logarithm of the density in the number itself, and its slope in log."""
        ...


@final
@dataclass(frozen=True)
class Gamma:
    r"""``p(v) ~ v^(a - 1) exp(-b v)``, of mean ``a / b``.

    Args:
        concentration: ``a``.
        rate: ``b``.
    """

    concentration: float
    rate: float

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        scaled = self.rate * np.exp(logarithm)
        power = self.concentration - 1.0
        return power * logarithm - scaled, power - scaled


@final
@dataclass(frozen=True)
class LogNormal:
    r"""The logarithm is normal.

    Args:
        location: Its mean.
        scale: Its standard deviation.
    """

    location: float
    scale: float

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        gap = (logarithm - self.location) / self.scale
        return -0.5 * gap**2 - logarithm, -gap / self.scale - 1.0


def around(middle: float, scale: float) -> LogNormal:
    r"""A log-normal prior whose density, as of the number itself, is highest there.

    Args:
        middle: Where it is.
        scale: The standard deviation of the logarithm.

    Returns:
        The prior: up to a constant that of ``Normal(ln middle, scale)`` in logarithms.
    """
    return LogNormal(math.log(middle) + scale**2, scale)


@final
@dataclass(frozen=True)
class Flat:
    """Every number is as likely as any other."""

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        return np.zeros_like(logarithm), np.zeros_like(logarithm)
