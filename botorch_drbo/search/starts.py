"""Where ascents start: local maxima of a sample in the unit cube.

They are ranked by height and prominence, the 0-dimensional persistence of the
superlevel sets on the graph of nearest neighbours [Edelsbrunner2002persistence]_.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from scipy.spatial import KDTree
from torch import Tensor

from botorch_drbo.posterior.models import prior_variance
from botorch_drbo.search.candidates import ranking, score

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
    """

    box: Tensor
    # The box, ``2 x d_x``.
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
        """Evaluate the acquisition function.

        Shapes: ``U``: ``b x q x d_x``.
        """
        if U.requires_grad:
            U = U.clone()
            U.register_hook(lambda slope: slope.nan_to_num(0.0, 0.0, 0.0))
        values = self._in_units(self.acqf(self.to_box(U)))
        return values.nan_to_num(nan=_WORST, posinf=_WORST, neginf=-torch.inf)

    def ranking(self, U: Tensor) -> Tensor:
        """Evaluate what starts are picked by, without a gradient.

        Shapes: ``U``: ``b x q x d_x``.
        """
        return self._in_units(ranking(self.acqf, self.to_box(U)))

    def _in_units(self, values: Tensor) -> Tensor:
        return (values - self.level) / self.scale


def hilltops(acqf: AcquisitionFunction, unit: Tensor, num: int) -> Tensor:
    """The local maxima among samples, by height plus prominence.

    Of points that fill the unit cube, those that none of their nearest
    ``2 d_x + 2`` exceeds: fewer than ``num`` where there are fewer hills. They are
    ranked by height and prominence together,

    .. math:: h_i + (h_i - s_i)

    with :math:`s_i` the height of the saddle, the highest minimum of all paths from
    hill ``i`` to a higher one along neighbours; :math:`h_i - s_i` is its prominence,
    the persistence of its component of the superlevel sets
    [Edelsbrunner2002persistence]_. A hill that stands alone rises above its sample as
    it rises above its saddle; on a long ridge, along a variable that hardly counts,
    every other sample is a local maximum, but of small prominence: ranked by height
    alone they can take all starts.

    Shapes: ``acqf``: ``b x 1 x d_x``, ``unit``: ``m x d_x``, returns ``k x 1 x d_x``.
    """
    return unit[hills(unit, score(acqf, unit), num)].unsqueeze(-2)


def hills(unit: Tensor, values: Tensor, num: int) -> Tensor:
    """Local maxima among points, by height plus prominence.

    Shapes: ``unit``: ``m x d_x``.
    """
    num_samples, d_x = unit.shape
    # A function may be minus infinity where a decision is infeasible beyond doubt.
    finite = values[values.isfinite()]
    # Minus infinity becomes a floor just below the lowest finite value.
    floor = math.nextafter(finite.min().item(), -math.inf) if len(finite) else 0.0
    height = values.double().nan_to_num(neginf=floor).tolist()
    # Two neighbours for each side of each column make the graph connected enough for
    # ridges, and few enough that a hill is still a local maximum.
    num_neighbours = min(2 * d_x + 2, num_samples - 1)
    # A k-d tree: all distances of thousands of samples would take longer than the
    # function.
    # The first neighbour of a point is itself.
    coordinates = unit.cpu().numpy()
    _, neighbours = KDTree(coordinates).query(coordinates, k=num_neighbours + 1)
    saddles = _saddles(height, neighbours.reshape(num_samples, -1).tolist())
    # Largest h + (h - s) first.
    # Height alone would take all starts from one long ridge, prominence alone small
    # bumps far below the best.
    best = sorted(saddles, key=lambda i: saddles[i] - 2 * height[i])
    return torch.tensor(best[:num], device=values.device)


def _saddles(height: list[float], neighbours: list[list[int]]) -> dict[int, float]:
    """The local maxima, highest first, and the height of the saddle of each.

    0-dimensional persistence by union-find: points enter the superlevel set highest
    first. One without a neighbour in it is born as a component. One between components
    merges them: for all but the highest (elder rule) it is the saddle. The saddle of a
    component that is never merged is the lowest value.
    """
    saddles: dict[int, float] = {}
    lowest = min(height)
    # Towards the component's maximum; -1 outside the superlevel set.
    parent = [-1] * len(height)

    def find(i: int) -> int:
        while parent[i] != i:  # path halving
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    # Sweep the level downwards: the superlevel set grows by one point at a time.
    for i in sorted(range(len(height)), key=lambda i: -height[i]):
        # The components that this point touches: none is a birth, several are a merger.
        roots = {find(j) for j in neighbours[i] if parent[j] >= 0}
        # A birth: until it meets a higher component its saddle is the lowest value.
        if not roots:
            saddles[i] = lowest
        parent[i] = max(roots, key=height.__getitem__, default=i)
        # Elder rule: all but the highest component end at this saddle.
        for merged in roots - {parent[i]}:
            saddles[merged] = height[i]
            parent[merged] = parent[i]
    return saddles
