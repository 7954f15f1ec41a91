r"""Test functions of one decision and one context."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo.contexts import ContextSet
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.laws import burr_law, normal_law, uniform_law
from botorch_drbo.test_functions.optimum import Optimum
from botorch_drbo.test_functions.synthetic import unit_bounds


class Newsvendor(RobustTestFunction):
    r"""The profit of ordering x units when c are asked for.

    .. math:: f(x, c) = 9 \min(x, c) + \max(0, x - c) - 5 x

    (price 9, salvage value 1, cost 5). The demand follows Burr XII(2, 20), clipped to
    [0, 1], which cuts off a probability of :math:`2^{-20}`; the decision lies in
    [0, 1] too [Huang2024sbokde]_. The best order is the median of the demand.

    Args:
        context_law: A law of your own in place of Burr XII(2, 20).
        noise_std: Standard deviation of the observation noise (none in the papers).

    Example:
        >>> round(Newsvendor().optimal_decision.item(), 3)
        0.188
    """

    _OPTIMUM: ClassVar[Optimum] = Optimum(0.463943, (0.187790,))

    def __init__(
        self, *, context_law: Distribution | None = None, noise_std: float = 0.0
    ) -> None:
        super().__init__(
            "newsvendor",
            bounds=unit_bounds(1),
            context_bounds=unit_bounds(1),
            context_law=context_law or burr_law(2.0, 20.0),
            noise_std=noise_std,
            optimum=self._OPTIMUM if context_law is None else None,
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        sold, left = torch.minimum(x, c), (x - c).clamp_min(0)
        return (9 * sold + left - 5 * x).squeeze(-1)


class ThreeHumpCamel(RobustTestFunction):
    r"""The negated three-hump camel; the decision is the first column.

    .. math::
        f = -(2 x^2 - 1.05 x^4 + x^6 / 6 + x c + c^2), \quad x, c \in [-1, 1]

    (the part of the usual :math:`[-5, 5]^2` that [Micheli2025wdrbo]_ uses). Contexts
    are uniform, and the expected value is largest at x = 0, where it is
    :math:`-E[c^2] = -1/3`.

    Args:
        context_law: A law of your own in place of the uniform one.
        noise_std: Standard deviation of the observation noise (none in the paper).

    Example:
        >>> round(ThreeHumpCamel().optimal_value, 3)
        -0.333
    """

    _OPTIMUM: ClassVar[Optimum] = Optimum(-1 / 3, (0.0,))

    def __init__(
        self, *, context_law: Distribution | None = None, noise_std: float = 0.0
    ) -> None:
        bounds = torch.tensor([[-1.0], [1.0]], dtype=torch.double)
        super().__init__(
            "three_hump_camel",
            bounds=bounds,
            context_bounds=bounds,
            context_law=context_law or uniform_law(bounds),
            noise_std=noise_std,
            optimum=self._OPTIMUM if context_law is None else None,
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        u, v = x.squeeze(-1), c.squeeze(-1)
        return -(2 * u**2 - 1.05 * u**4 + u**6 / 6 + u * v + v**2)


class SixHumpCamel(RobustTestFunction):
    r"""The negated six-hump camel; the decision is the first column.

    With :math:`z_1 = 4 x - 2 \in [-2, 2]` and :math:`z_2 = 2 c - 1 \in [-1, 1]`,

    .. math::
        f = -((4 - 2.1 z_1^2 + z_1^4 / 3) z_1^2 + z_1 z_2 + (4 z_2^2 - 4) z_2^2).

    Contexts follow N(.6, .2^2) in units of the unit interval, clipped to it, as in
    the public code of [Micheli2025wdrbo]_. That code optimises on this domain but
    measures regret on [-3, 3] x [-2, 2]; here one domain serves both.

    Args:
        context_law: A law of your own, on the unit interval.
        noise_std: Standard deviation of the observation noise (none in the paper).

    Example:
        >>> import torch
        >>> x, c = torch.tensor([[[0.522]], [[0.1437]]], dtype=torch.double)
        >>> round(SixHumpCamel().evaluate(x, c).item(), 2)  # the global maximum
        1.03
    """

    _OPTIMUM: ClassVar[Optimum] = Optimum(0.389129, (0.493847,))

    def __init__(
        self, *, context_law: Distribution | None = None, noise_std: float = 0.0
    ) -> None:
        super().__init__(
            "six_hump_camel",
            bounds=unit_bounds(1),
            context_bounds=unit_bounds(1),
            context_law=context_law or normal_law(0.6, 0.2, 1),
            noise_std=noise_std,
            optimum=self._OPTIMUM if context_law is None else None,
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        u, v = 4 * x.squeeze(-1) - 2, 2 * c.squeeze(-1) - 1
        return -((4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2)


class WassersteinFigure1(RobustTestFunction):
    r"""The illustration of Figure 1 of [Micheli2025wdrbo]_, in the general setting.

    .. math::
        f(x, c) = 1 - \frac{|c - .5|}{|x| + .2} - \sqrt{|x| + .05}, \quad
        x \in [-1, 1], \; c \in [0, 1].

    The optimiser is told the reference N(.5, .1); contexts follow N(.6, .2). We read
    .1 and .2 as standard deviations: as variances, a third of the true law would lie
    outside the unit interval. Near x = 0 the function is best at c = .5
    and falls fastest with c, so trust in the reference is punished. It is even in x;
    the stored optimum is the positive one. The paper prints no bounds for x that we
    could read: [-1, 1] is our choice.

    Args:
        context_law: A law of your own in place of N(.6, .2^2).
        noise_std: Standard deviation of the observation noise (default none).
        num_reference: The number of points of the reference distribution.

    Example:
        >>> function = WassersteinFigure1(num_reference=128)
        >>> function.reference.num_points
        128
    """

    _OPTIMUM: ClassVar[Optimum] = Optimum(0.058459, (0.235235,))

    def __init__(
        self,
        *,
        context_law: Distribution | None = None,
        noise_std: float = 0.0,
        num_reference: int = 256,
    ) -> None:
        bounds = unit_bounds(1)
        super().__init__(
            "wdrbo_figure1",
            bounds=torch.tensor([[-1.0], [1.0]], dtype=torch.double),
            context_bounds=bounds,
            context_law=context_law or normal_law(0.6, 0.2, 1),
            noise_std=noise_std,
            optimum=self._OPTIMUM if context_law is None else None,
            reference=ContextSet.from_distribution(
                normal_law(0.5, 0.1, 1), num_reference, bounds=bounds, seed=0
            ),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        size = x.squeeze(-1).abs()
        distance = (c.squeeze(-1) - 0.5).abs()
        return 1 - distance / (size + 0.2) - (size + 0.05).sqrt()
