r"""Context laws with an exact inverse cdf: what quasi-Monte Carlo needs.

A law here is a ``torch.distributions`` object over ``d_c`` independent coordinates
(event shape ``(d_c,)``) whose coordinates have an inverse cdf.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal, Uniform
from torch.distributions.constraints import Constraint, nonnegative, positive

_SMALLEST = 2.0**-53  # keeps a uniform draw off 0 and 1, where quantiles are infinite


class BurrXII(Distribution):
    r"""The Burr XII law, :math:`F(c) = 1 - (1 + c^{a})^{-k}` for :math:`c \ge 0`.

    Args:
        shape: The inner exponent :math:`a > 0`, any shape.
        power: The outer exponent :math:`k > 0`, broadcast with ``shape``.

    Example:
        >>> import torch
        >>> law = BurrXII(torch.tensor([2.0]), torch.tensor([20.0]))
        >>> round(law.icdf(torch.tensor([0.5])).item(), 4)
        0.1878
    """

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        r"""What the parameters must satisfy."""
        return {"shape": positive, "power": positive}

    @property
    def support(self) -> Constraint:
        r"""Where the density is positive."""
        return nonnegative

    def __init__(self, shape: Tensor, power: Tensor) -> None:
        self.shape, self.power = torch.broadcast_tensors(shape, power)
        super().__init__(self.shape.shape)

    def cdf(self, value: Tensor) -> Tensor:
        r"""Return the probability of a draw at or below ``value``."""
        return -torch.expm1(-self.power * torch.log1p(value.clamp_min(0) ** self.shape))

    def icdf(self, value: Tensor) -> Tensor:
        r"""Return the quantile at the probability ``value``."""
        return torch.expm1(-torch.log1p(-value) / self.power) ** (1 / self.shape)

    def log_prob(self, value: Tensor) -> Tensor:
        r"""Return the logarithm of the density at ``value``."""
        log_constant = (self.shape * self.power).log()
        tail = (self.power + 1) * torch.log1p(value**self.shape)
        return log_constant + (self.shape - 1) * value.log() - tail

    def rsample(self, sample_shape: torch.Size | Sequence[int] = ()) -> Tensor:
        r"""Draw ``sample_shape`` times from torch's global generator."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(torch.rand(shape, dtype=self.shape.dtype))


def normal_law(mean: float, std: float, dim: int) -> Independent:
    r"""Return ``dim`` independent normal coordinates of one mean and deviation.

    Args:
        mean: The mean of each coordinate.
        std: The standard deviation of each coordinate.
        dim: The number of coordinates.

    Returns:
        A law of event shape ``(dim,)``.
    """
    ones = torch.ones(dim, dtype=torch.double)
    return Independent(Normal(mean * ones, std * ones), 1)


def uniform_law(bounds: Tensor) -> Independent:
    r"""Return the uniform law on a box.

    Args:
        bounds: The box, ``2 x d_c``.

    Returns:
        A law of event shape ``(d_c,)``.
    """
    return Independent(Uniform(bounds[0], bounds[1]), 1)


def burr_law(shape: float, power: float) -> Independent:
    r"""Return the univariate Burr XII law.

    Args:
        shape: The inner exponent.
        power: The outer exponent.

    Returns:
        A law of event shape ``(1,)``.
    """
    parameters = torch.tensor([[shape], [power]], dtype=torch.double)
    return Independent(BurrXII(*parameters), 1)


def check_law(law: Distribution, dim: int) -> Independent:
    r"""Return ``law`` if it has ``dim`` independent coordinates with a quantile.

    Args:
        law: The law to check.
        dim: The required number of coordinates.

    Returns:
        The same law.

    Raises:
        UnsupportedError: No independent coordinates, or one without an inverse cdf.
        BotorchTensorDimensionError: Not ``dim`` coordinates.
    """
    if not isinstance(law, Independent):
        raise UnsupportedError(
            "`context_law` must have independent coordinates, got "
            f"{type(law).__name__}. Wrap univariate laws of batch shape ({dim},) as "
            "`torch.distributions.Independent(law, 1)`."
        )
    if law.batch_shape or law.event_shape != (dim,):
        raise BotorchTensorDimensionError(
            f"`context_law` must have event shape ({dim},) and no batch shape, got "
            f"{tuple(law.event_shape)} and {tuple(law.batch_shape)}."
        )
    try:
        quantiles(law, torch.full((1, dim), 0.5, dtype=torch.double))
    except NotImplementedError as error:  # how torch says that a law has none
        raise UnsupportedError(
            f"`context_law` must have an inverse cdf, and {law.base_dist} has none. "
            "Choose another law, or give it an `icdf` method."
        ) from error
    return law


def quantiles(law: Independent, uniforms: Tensor) -> Tensor:
    r"""Map uniform draws to draws of the law, coordinate by coordinate.

    Args:
        law: A law of event shape ``(d_c,)``.
        uniforms: Points in the unit cube, ``n x d_c``.

    Returns:
        Quantiles, ``n x d_c``.
    """
    return law.base_dist.icdf(uniforms.clamp(_SMALLEST, 1 - _SMALLEST))
