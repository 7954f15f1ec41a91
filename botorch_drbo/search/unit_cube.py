"""An acquisition function scaled for optimisers with absolute tolerances."""

from __future__ import annotations

import math
from typing import cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.posterior.prior import prior_variance
from botorch_drbo.search.candidates import ranking

_WORST = -1e9  # in units of the prior: what is not a number counts as that


class InUnitCube(AcquisitionFunction):
    r"""The same function, with decisions in the unit cube and values of order one.

    .. math:: \tilde\alpha(u) = \frac{\alpha\big(l + u\,(h - l)\big) - \alpha(m)}
        {\bar\sigma_0}

    with ``l`` and ``h`` the bounds, ``m`` the middle of the box and
    :math:`\bar\sigma_0` the prior standard deviation of the model's outcome, or one
    where ``alpha`` is a logarithm. L-BFGS-B stops where no gradient is above ``1e-5``,
    in whatever units: climbing ``alpha`` itself it stops where it starts as soon as
    ``|y|`` per width of the box is small. A value that is NaN or plus infinity counts
    as -1e9, and a slope that is not finite as zero, so that an ascent turns back there
    or stops: neither ends a search.

    Args:
        acqf: A function of ``b x q x d_x`` decisions.
        bounds: The box, ``2 x d_x``.
        q: How many decisions it takes together.
    """

    box: Tensor
    bounds: Tensor
    level: Tensor

    def __init__(self, acqf: AcquisitionFunction, bounds: Tensor, q: int = 1) -> None:
        model = cast(Model, acqf.model)
        super().__init__(model)
        self.acqf = acqf
        self.register_buffer("box", bounds)
        unit = torch.stack([torch.zeros_like(bounds[0]), torch.ones_like(bounds[0])])
        self.register_buffer("bounds", unit)
        with torch.no_grad():
            level = acqf(self.to_box(unit.mean(0).expand(1, q, -1)))  # 1
        # Where the middle is infinitely bad there is no level to take off.
        self.register_buffer("level", level.nan_to_num(0.0, 0.0, 0.0))
        # A logarithm has no units: only its level depends on those of y.
        self.scale = 1.0 if acqf._log else math.sqrt(prior_variance(model))

    def to_box(self, U: Tensor) -> Tensor:
        """From the unit cube to decisions, ``... x d_x``; never outside the bounds."""
        lower, upper = self.box
        return (lower + U * (upper - lower)).clamp(lower, upper)

    def to_cube(self, X: Tensor) -> Tensor:
        """From decisions, ``... x d_x``, to the unit cube."""
        lower, upper = self.box
        return ((X - lower) / (upper - lower)).clamp(0.0, 1.0)

    def forward(self, U: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            U: Decisions in the unit cube, ``b x q x d_x``.

        Returns:
            Values of order one, ``b``.
        """
        if U.requires_grad:
            U = U.clone()
            U.register_hook(lambda slope: slope.nan_to_num(0.0, 0.0, 0.0))
        values = self._in_units(self.acqf(self.to_box(U)))
        return values.nan_to_num(nan=_WORST, posinf=_WORST, neginf=-torch.inf)

    def ranking(self, U: Tensor) -> Tensor:
        r"""Evaluate what starts are picked by, without a gradient.

        Args:
            U: Decisions in the unit cube, ``b x q x d_x``.

        Returns:
            Values in nearly the same order as those of ``forward``, ``b``.
        """
        return self._in_units(ranking(self.acqf, self.to_box(U)))

    def _in_units(self, values: Tensor) -> Tensor:
        return (values - self.level) / self.scale
