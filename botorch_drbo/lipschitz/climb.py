r"""Climb to where the slope of a function is steepest: Newton's method for its length.

With ``g`` the slope, ``J`` its Jacobian, and ``T`` the third derivatives of the
function,

.. math:: \nabla \log |g| = \frac{J g}{|g|^2}, \qquad
    \nabla^2 \log |g| = \frac{J J + \sum_k g_k T_k}{|g|^2}
    - 2 \, (\nabla \log |g|) (\nabla \log |g|)'

``J`` and ``T`` are symmetric in all their indices, so differences of ``g`` along few
directions tell all of them: no derivative of the slopes is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo._device import on_cpu

UnitSlopes = Callable[[Tensor], Tensor]
"""Points of the unit box, ``... x R x k x d``, to the slopes there, same shape."""

_WIDEST = 2e-3  # of the cross, in widths of the box: much narrower than a peak
_SURVIVORS = 2  # climbs that are never given up
_SAME_PEAK = (
    0.05  # so near, in widths of the box, the lower one of two climbs is given up
)
_ARRIVED = 3e-4  # after a Newton step as short as this, the error is about its square
_BEATEN = 0.05  # a climb that will end so much lower, in logarithms, need not arrive


class LogLength(NamedTuple):
    r"""The logarithm of the length of the slope near a place, to second order.

    Args:
        place: Where, in the unit box, ``... x R x d``.
        height: The logarithm there, ``... x R``.
        gradient: ``... x R x d``.
        hessian: ``... x R x d x d``.
    """

    place: Tensor
    height: Tensor
    gradient: Tensor
    hessian: Tensor

    def after(self, step: Tensor) -> Tensor:
        """The height that the parabola has after a step, ``... x R``."""
        rise = self.gradient + 0.5 * _times(self.hessian, step)
        return self.height + (step * rise).sum(-1)

    def top(self, radius: Tensor, margin: float) -> Tensor:
        r"""Find the top of the parabola within a distance, in the box.

        Along axes in which the parabola opens upwards the step goes uphill by the same
        rule, with the size of the curvature. From near a face of the box that lies
        uphill it goes to the face, and along it.

        Args:
            radius: The longest step, ``... x R``.
            margin: How near a face is near.

        Returns:
            ``... x R x d``.
        """
        face = (self.gradient > 0).to(self.place) - self.place
        stopped = face.abs() <= margin
        free = (~stopped).to(face)
        to_face = torch.where(stopped, face, 0.0)
        slope = free * (self.gradient + _times(self.hessian, to_face))
        bend, axes = torch.linalg.eigh(
            self.hessian * free.unsqueeze(-1) * free.unsqueeze(-2)
        )
        least = torch.finfo(slope.dtype).eps  # of a curvature; the step is cut anyway
        along = _times(axes.mT, slope) / bend.abs().clamp_min(least)
        share = (radius / along.norm(dim=-1).clamp_min(least)).clamp_max(1.0)
        step = to_face + free * _times(axes, share.unsqueeze(-1) * along)
        return (self.place + step).clamp(0.0, 1.0)


class SlopeClimb(Module):
    r"""Climbs from several starts, for all decisions at once.

    A step evaluates the slopes at a small cross and goes to the top of the parabola
    that they tell. A step that led downwards is taken back, and the next one from there
    is a quarter as long. After each step the half of the climbs that is expected to end
    lower is given up, until two are left. It ends where all have arrived that can win.

    Args:
        dim: Columns of the box, ``d``.
    """

    arms: Tensor
    third: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        arms = torch.eye(dim, dtype=torch.double)
        if dim > 2:  # one more, for third derivatives in three different columns
            arms = torch.cat([arms, torch.full_like(arms[:1], dim**-0.5)])
        self.register_buffer("arms", arms, persistent=False)
        self.register_buffer("third", _third_derivatives(arms), persistent=False)

    def forward(
        self, slopes: UnitSlopes, starts: Tensor, num_steps: int, radius: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Climb until every climb that can win has arrived.

        Args:
            slopes: The slopes.
            starts: ``... x R x d``.
            num_steps: The most steps, at least one.
            radius: The longest step.

        Returns:
            The ends of the climbs that were not given up, ``... x R' x d``; the
            steepest place on all ways, ``... x 1 x d``; and the length of the slope
            there, ``... x 1``.
        """
        # Where differences have lost as many digits as their error has; in float32 that
        # cross would be as wide as a peak, and its top another one.
        reach = min(torch.finfo(starts.dtype).eps ** 0.25, _WIDEST)
        here = self._look(slopes, starts, reach)
        radii = torch.full_like(here.height, radius)
        ends = here.top(radii, reach)
        for _ in range(num_steps - 1):
            expected = here.after(ends - here.place)
            if ends.shape[-2] > _SURVIVORS:
                index = _survivors(here.height, ends, expected)
                here = LogLength(*(_taken(part, index) for part in here))
                ends, radii = _taken(ends, index), _taken(radii, index)
                expected = _taken(expected, index)
            if on_cpu(ends) and _have_arrived(here.place, ends, expected):
                break
            there = self._look(slopes, ends, reach)
            lower = there.height < here.height
            radii = torch.where(lower, radii / 4, radii)
            here = LogLength(
                *(
                    torch.where(_beside(lower, old), old, new)
                    for old, new in zip(here, there, strict=True)
                )
            )
            ends = here.top(radii, reach)
        # Steps down are taken back, and the leader goes on: nothing higher was seen.
        highest, best = _highest(here)
        return ends, best, highest.exp()

    def _look(self, slopes: UnitSlopes, places: Tensor, reach: float) -> LogLength:
        """By differences over a cross with arms of length ``reach``, inside the box."""
        d, arms = places.shape[-1], reach * self.arms.to(places)
        centre = places.clamp(reach, 1.0 - reach)
        cross = torch.cat([torch.zeros_like(arms[:1]), arms, -arms])
        found = slopes(centre.unsqueeze(-2) + cross)  # ... x R x (1 + 2 p) x d
        lengths = found.norm(dim=-1)  # ... x R x (1 + 2 p)
        # At a place without a slope its logarithm has no derivatives.
        length = torch.maximum(lengths[..., 0], reach * lengths.amax(-1))
        length = length.clamp_min(torch.finfo(length.dtype).tiny)
        found = found / _beside(length, found)
        middle, up, down = found.split([1, len(arms), len(arms)], dim=-2)
        g = middle.squeeze(-2)
        J = ((up - down) / (2.0 * reach))[..., :d, :]
        J = 0.5 * (J + J.mT)
        second = (up + down - 2.0 * middle) / reach**2  # ... x R x p x d
        T = (second.flatten(-2) @ self.third.to(places)).unflatten(-1, (d, d, d))
        gradient = _times(J, g)
        hessian = J @ J + _times(T, g.unsqueeze(-2))
        hessian = hessian - 2.0 * gradient.unsqueeze(-1) * gradient.unsqueeze(-2)
        step = places - centre  # none but near a face
        height = LogLength(centre, length.log(), gradient, hessian).after(step)
        return LogLength(places, height, gradient + _times(hessian, step), hessian)


def _third_derivatives(arms: Tensor) -> Tensor:
    r"""What takes second differences to third derivatives, ``(p d) x d^3``.

    Along an arm ``a`` the second difference of the slope is ``sum_ij a_i a_j T_ijk``:
    linear equations for the symmetric ``T``, solved by least squares. Up to four
    columns there are as many as unknowns.
    """
    d = arms.shape[-1]
    rows = []
    for i in range(d):
        for j in range(i, d):
            for k in range(j, d):
                row = arms.new_zeros(d, d, d)
                for place in permutations((i, j, k)):
                    row[place] = 1.0
                rows.append(row)
    basis = torch.stack(rows)  # unknowns x d x d x d
    seen = torch.einsum("nijk,pi,pj->npk", basis, arms, arms).flatten(1)
    return torch.linalg.pinv(seen) @ basis.flatten(1)


def _highest(here: LogLength) -> tuple[Tensor, Tensor]:
    """The highest place, and its height: ``... x 1`` and ``... x 1 x d``."""
    height, index = here.height.max(-1, keepdim=True)
    return height, _taken(here.place, index)


def _survivors(height: Tensor, ends: Tensor, expected: Tensor) -> Tensor:
    """Which climbs go on: the half that will end highest, of a peak's only one.

    Also the one that is highest now: so the highest place of all lies on a way that is
    walked to its end.
    """
    count = max(_SURVIVORS, (ends.shape[-2] + 1) // 2)
    leads = height == height.amax(-1, keepdim=True)
    hopes = torch.where(_beside_higher(ends, expected), -torch.inf, expected)
    return torch.where(leads, torch.inf, hopes).topk(count, -1).indices


def _have_arrived(place: Tensor, ends: Tensor, expected: Tensor) -> bool:
    """Whether all steps are short, but those of climbs that will not win."""
    short = (ends - place).abs().amax(-1) <= _ARRIVED
    beaten = expected < expected.amax(-1, keepdim=True) - _BEATEN
    return bool((short | beaten | _beside_higher(ends, expected)).all())


def _beside_higher(ends: Tensor, expected: Tensor) -> Tensor:
    """Which climbs end at the peak of a higher one, ``... x R``."""
    gaps = (ends.unsqueeze(-2) - ends.unsqueeze(-3)).norm(dim=-1)  # ... x R x R
    lower = expected.unsqueeze(-1) < expected.unsqueeze(-2)
    return ((gaps < _SAME_PEAK) & lower).any(-1)


def _taken(part: Tensor, index: Tensor) -> Tensor:
    """Some of ``... x R (x ...)``, by an index ``... x R'``."""
    return part.take_along_dim(_beside(index, part), dim=index.ndim - 1)


def _beside(scalars: Tensor, part: Tensor) -> Tensor:
    """``... x R`` to be broadcast along ``... x R x ...``."""
    return scalars.reshape(*scalars.shape, *(part.ndim - scalars.ndim) * [1])


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
