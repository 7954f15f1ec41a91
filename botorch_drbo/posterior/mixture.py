"""The distribution of a predicted number: a mixture of Gaussians, one by model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from botorch.exceptions.errors import InputDataError
from scipy.special import ndtri_exp
from torch import Tensor

_MAX_HALVINGS = 80  # of a bracket: more than float64 can tell apart


@final
@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""The mixture of ``S`` equally likely Gaussians, of one number or of many.

    .. math:: F(v) = \frac1S \sum_s \Phi\Big( \frac{v - \mu_s}{\sigma_s} \Big)

    Of a single Gaussian process ``S`` is one. A deviation of zero is a point mass.

    Attributes:
        means: Those of the Gaussians, ``S x ...``.
        deviations: Their standard deviations, ``S x ...``.

    Example:
        >>> means = torch.tensor([-1.0, 1.0], dtype=torch.double)
        >>> belief = GaussianMixture(means, torch.ones(2, dtype=torch.double))
        >>> low, high = belief.interval(0.9)
        >>> round(low, 3), round(high, 3)
        (-2.284, 2.284)
    """

    means: Tensor
    deviations: Tensor

    @property
    def mean(self) -> Tensor:
        """The mean of the mixture, ``...``."""
        return self.means.mean(0)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation of the mixture, ``...``."""
        between = (self.means - self.mean).square()
        return (self.deviations.square() + between).mean(0).sqrt()

    def cdf(self, values: Tensor) -> Tensor:
        r"""The probability of no more than a value.

        Args:
            values: ``...``, in the units of the means.

        Returns:
            Probabilities, ``...``.
        """
        deviations = self.deviations.clamp_min(torch.finfo(self.means.dtype).tiny)
        return torch.special.ndtr((values - self.means) / deviations).mean(0)

    def normal_scores(self, values: Tensor) -> Tensor:
        r"""How surprising values are: standard normal if the mixture is right.

        :math:`\Phi^{-1}(F(v))`; of one Gaussian :math:`(v - \mu) / \sigma`.

        Args:
            values: ``...``, in the units of the means.

        Returns:
            Scores, ``...``.
        """
        z = (values - self.means) / self.deviations
        # By the logarithm of the nearer tail: far out the other one rounds to one.
        lower, upper = (
            torch.special.log_ndtr(side).logsumexp(0) - math.log(len(z))
            for side in (z, -z)
        )
        nearer = torch.minimum(lower, upper)
        size = torch.from_numpy(ndtri_exp(nearer.cpu().numpy())).to(nearer)
        return torch.where(lower < upper, size, -size)

    def quantile(self, probability: float) -> Tensor:
        r"""The value that the number stays below with a probability.

        Found by halving the bracket of the smallest and the largest quantile of the
        Gaussians, between which that of their mixture lies.

        Args:
            probability: Between 0 and 1.

        Returns:
            Values, ``...``, in the units of the means.

        Raises:
            InputDataError: No probability between 0 and 1.
        """
        probability = check_level(probability, "probability")
        deviations = self.deviations.double()
        standard = torch.special.ndtri(
            torch.tensor(probability, dtype=torch.double, device=deviations.device)
        )
        each = self.means.double() + standard * deviations
        precise = GaussianMixture(self.means.double(), deviations)
        # The mixture's quantile lies between those of its members; halved until float64
        # has no more between.
        low, high = each.amin(0), each.amax(0)
        for _ in range(_MAX_HALVINGS if len(each) > 1 else 0):
            middle = 0.5 * (low + high)
            below = precise.cdf(middle) < probability
            low, high = (
                torch.where(below, middle, low),
                torch.where(below, high, middle),
            )
        return (0.5 * (low + high)).to(self.means)

    def interval(self, level: float) -> tuple[float, float]:
        r"""The central interval that holds one number with a probability.

        Args:
            level: That probability, for example 0.9; as much of the rest lies below
                the interval as above it.

        Returns:
            Its lower and upper end.

        Raises:
            InputDataError: A level that is not between 0 and 1.
        """
        rest = 0.5 * (1.0 - check_level(level))
        return self.quantile(rest).item(), self.quantile(1.0 - rest).item()

    def __getitem__(self, index: int) -> GaussianMixture:
        """One of many numbers."""
        return GaussianMixture(self.means[:, index], self.deviations[:, index])

    def widened(self, factor: float) -> GaussianMixture:
        r"""The mixture with every distance from its mean multiplied.

        Args:
            factor: By what.
        """
        means = self.mean + factor * (self.means - self.mean)
        return GaussianMixture(means, factor * self.deviations)

    def mirrored(self) -> GaussianMixture:
        """What is believed of minus the number."""
        return GaussianMixture(-self.means, self.deviations)


def check_level(level: float, name: str = "level") -> float:
    r"""Return a probability that is neither 0 nor 1.

    Args:
        level: The probability.
        name: What the user calls it.

    Raises:
        InputDataError: Anything else.
    """
    wanted = f"`{name}` must be a number between 0 and 1, both excluded"
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        raise InputDataError(f"{wanted}, got {level!r}.")
    if not 0.0 < level < 1.0:
        percent = f": for {level:g}% give {level / 100:g}" if 1 < level < 100 else ""
        raise InputDataError(f"{wanted}, got {level!r}{percent}.")
    return float(level)
