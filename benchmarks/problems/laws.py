r"""Laws and references of the papers' problems that the library has no use for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Cauchy, Distribution, Independent, Normal
from torch.distributions.constraints import Constraint, real

from botorch_drbo._validation import check_count, check_weights
from botorch_drbo.contexts import ContextSet

_BISECTIONS = 70  # brackets are short except in a Cauchy tail, which bounds cut off


class UnivariateMixture(Distribution):
    r"""A mixture of univariate laws of any kinds, :math:`F = \sum_k w_k F_k`.

    The quantile is found by bisection. It lies between the smallest and the largest
    of the components' quantiles, so the bracket is exact.

    Args:
        components: Laws with a cdf and an inverse cdf, all of one batch shape.
        weights: Their weights, or None for equal ones.

    Example:
        >>> import torch
        >>> from torch.distributions import Cauchy, Normal
        >>> zero, one = torch.zeros(1), torch.ones(1)
        >>> law = UnivariateMixture([Normal(zero, one), Cauchy(zero, one)])
        >>> round(law.cdf(law.icdf(torch.tensor([0.9]))).item(), 4)
        0.9
    """

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        r"""No tensor parameters of its own."""
        return {}

    @property
    def support(self) -> Constraint:
        r"""The real line."""
        return real

    def __init__(
        self, components: Sequence[Distribution], weights: Tensor | None = None
    ) -> None:
        shapes = {component.batch_shape for component in components}
        if len(shapes) != 1:
            raise InputDataError(
                "`components` must be laws of one batch shape, at least one of them; "
                f"got {len(components)} laws of shapes {sorted(map(tuple, shapes))}."
            )
        if weights is None:
            weights = torch.ones(len(components), dtype=torch.double)
        self.components = tuple(components)
        self.weights = check_weights(weights, len(components))
        super().__init__(shapes.pop(), validate_args=False)

    def cdf(self, value: Tensor) -> Tensor:
        r"""Return the probability of a draw at or below ``value``."""
        parts = torch.stack([law.cdf(value) for law in self.components], dim=-1)
        return (parts * self.weights).sum(-1)

    def icdf(self, value: Tensor) -> Tensor:
        r"""Return the quantile at the probability ``value``."""
        parts = torch.stack([law.icdf(value) for law in self.components], dim=-1)
        low, high = parts.amin(-1), parts.amax(-1)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            below = self.cdf(middle) < value
            low, high = (
                torch.where(below, middle, low),
                torch.where(below, high, middle),
            )
        return (low + high) / 2

    def log_prob(self, value: Tensor) -> Tensor:
        r"""Return the logarithm of the density at ``value``."""
        parts = torch.stack([law.log_prob(value) for law in self.components], dim=-1)
        return torch.logsumexp(parts + self.weights.log(), dim=-1)

    def sample(self, sample_shape: torch.Size | Sequence[int] = ()) -> Tensor:
        r"""Draw ``sample_shape`` times from torch's global generator."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(torch.rand(shape, dtype=self.weights.dtype))


def complicated_mixture() -> Independent:
    r"""Return the eight-component context law of "complicated Hartmann".

    Six normals and two Cauchys, each with weight 1/8 [Huang2024sbokde]_.

    Returns:
        A law of event shape ``(1,)``.
    """
    normals = [(0.1, 0.02), (0.3, 0.075), (0.4, 0.1), (0.5, 0.1)]
    normals += [(0.7, 0.075), (0.8, 0.03)]
    cauchys = [(0.2, 0.02), (0.8, 0.02)]
    parts: list[Distribution] = [Normal(_column(m), _column(s)) for m, s in normals]
    parts += [Cauchy(_column(m), _column(s)) for m, s in cauchys]
    return Independent(UnivariateMixture(parts), 1)


def discretised_normal(
    bounds: Tensor, num_points: int = 64, *, variance: float = 0.2
) -> ContextSet:
    r"""Return a product grid on a box with the weights of a normal density.

    The grid has :math:`\lceil m^{1/d_c} \rceil` even points a side, the ends
    included. With the contexts scaled to the unit cube,

    .. math:: p_i \propto \exp(-\|u_i - .5\|^2 / (2 v)).

    The N(.5, .2 I) of [Tay2024bocu]_ is read with .2 as the variance ``v``, which is
    how their public code reads it: a deviation of .447, so that the density at a
    corner is still :math:`e^{-.625 d_c}` of that in the middle.

    Args:
        bounds: The box, ``2 x d_c``.
        num_points: The number of points m that the grid has at least.
        variance: The variance ``v`` of each scaled coordinate.

    Returns:
        The grid and its weights, in the units of ``bounds``.

    Example:
        >>> import torch
        >>> box = torch.tensor([[0.0, 0.0], [1.0, 30.0]]).double()
        >>> discretised_normal(box).num_points
        64
    """
    grid = ContextSet.grid(bounds, grid_side(num_points, bounds.shape[-1]))
    unit = grid.normalised(bounds)
    density = torch.exp(-((unit - 0.5) ** 2).sum(-1) / (2 * variance))
    return ContextSet(grid.points, density)


def grid_side(num_points: int, dim: int) -> int:
    r"""Return the smallest side of a product grid with at least ``num_points``.

    Args:
        num_points: The number of points wanted.
        dim: The number of dimensions.

    Returns:
        :math:`\lceil m^{1/d} \rceil`, in whole numbers: a root in floating point can
        end on the wrong side of one.
    """
    check_count(num_points, "num_points")
    side = 1
    while side**dim < num_points:
        side += 1
    return side


def _column(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.double)
