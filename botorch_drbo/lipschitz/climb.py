r"""Multistart trust-region Newton method with active bounds: where a slope is steepest.

It maximises the logarithm of the norm of a gradient field ``g`` over the unit box. With
``J`` the Jacobian of ``g`` (the Hessian of the function), and ``T`` the third
derivatives of the function,

.. math:: \nabla \log |g| = \frac{J g}{|g|^2}, \qquad
    \nabla^2 \log |g| = \frac{J J + \sum_k g_k T_k}{|g|^2}
    - 2 \, (\nabla \log |g|) (\nabla \log |g|)'

``J`` and ``T`` are symmetric in all their indices, so central differences of ``g``
along few directions determine them: no derivative of ``g`` is asked for.

Trust regions and active bounds are those of [NocedalWright2006]_, chapters 4 and 16.7;
the Newton step takes the absolute values of the Hessian's eigenvalues (saddle-free
Newton, [Dauphin2014saddlefree]_); the starts are reduced by successive halving
[Jamieson2016halving]_.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo._device import on_cpu

UnitSlopes = Callable[[Tensor], Tensor]
"""Points of the unit box, ``... x R x k x d``, to the slopes there, same shape."""

# All lengths are in widths of the box, all values logarithms of the norm.
_MAX_DIFFERENCE_STEP = 2e-3  # much narrower than a peak
_MIN_SURVIVORS = 2  # climbs that successive halving leaves
_SAME_PEAK_DISTANCE = 0.05  # of two climbs nearer than this the lower one is dominated
_STEP_TOLERANCE = 3e-4  # after a Newton step this short the error is about its square
_VALUE_MARGIN = 0.05  # a climb predicted to end this far below need not converge


class LogLength(NamedTuple):
    r"""A quadratic model of the logarithm of the gradient's norm, about a point.

    Args:
        point: Its centre, in the unit box, ``... x R x d``.
        value: The logarithm there, ``... x R``.
        gradient: Its gradient, ``... x R x d``.
        hessian: Its Hessian, ``... x R x d x d``.
    """

    point: Tensor
    value: Tensor
    gradient: Tensor
    hessian: Tensor

    def predicted(self, step: Tensor) -> Tensor:
        """The value after a step, ``v + s' (g + H s / 2)``, ``... x R``."""
        rise = self.gradient + 0.5 * _matvec(self.hessian, step)
        return self.value + (step * rise).sum(-1)

    def trust_region_step(self, radius: Tensor, margin: float) -> Tensor:
        r"""Take a Newton step within the trust region, with active bounds.

        .. math:: s = V |\Lambda|^{-1} V' g, \qquad H = V \Lambda V'

        on the free variables, cut to the radius. The absolute eigenvalues make every
        direction one of ascent, at saddle points too. A variable near a bound that lies
        uphill is active: it goes to the bound.

        Args:
            radius: The trust region's radius, ``... x R``.
            margin: A bound nearer than this is active.

        Returns:
            The trial points, ``... x R x d``.
        """
        # Active set: variables whose uphill bound is within the margin.
        to_bound = (self.gradient > 0).to(self.point) - self.point
        active = to_bound.abs() <= margin
        free = (~active).to(to_bound)
        to_face = torch.where(active, to_bound, 0.0)
        # Gradient on the free variables once the active ones are at their bounds.
        reduced_gradient = free * (self.gradient + _matvec(self.hessian, to_face))
        # Rows and columns of active variables are zero: their eigenvectors stay apart.
        eigenvalues, eigenvectors = torch.linalg.eigh(
            self.hessian * free.unsqueeze(-1) * free.unsqueeze(-2)
        )
        # V |Lambda|^-1 V' g; the floor is harmless, for the radius cuts the step.
        floor = torch.finfo(reduced_gradient.dtype).eps
        newton_step = _matvec(
            eigenvectors.mT, reduced_gradient
        ) / eigenvalues.abs().clamp_min(floor)
        # Shorter rather than turned: near a maximum Newton's direction is the right
        # one.
        shrinkage = (radius / newton_step.norm(dim=-1).clamp_min(floor)).clamp_max(1.0)
        step = to_face + free * _matvec(
            eigenvectors, shrinkage.unsqueeze(-1) * newton_step
        )
        return (self.point + step).clamp(0.0, 1.0)


class SlopeClimb(Module):
    r"""Trust-region Newton ascents from several starts, for all decisions at once.

    A step evaluates the gradient field on a small stencil, fits the quadratic model to
    it and goes to the model's maximum in the trust region. A step that lowered the
    value is rejected, and the radius is divided by four. After each step successive
    halving gives up the half of the climbs with the lower predicted values, until two
    are left. It ends where all climbs that can win have converged.

    With ``scales`` the norm is that of ``S g``: then ``J S^2 g`` stands for ``J g``,
    ``J S^2 J`` for ``J J``, and ``S^2 g`` for ``g`` in the sum.

    Args:
        dim: Columns of the box, ``d``.
        scales: ``S``, by what the slope in each column is multiplied, ``d``; None for
            one.
    """

    directions: Tensor
    third_order: Tensor
    scales: Tensor

    def __init__(self, dim: int, scales: Tensor | None = None) -> None:
        super().__init__()
        scales = torch.ones(dim, dtype=torch.double) if scales is None else scales
        self.register_buffer("scales", scales, persistent=False)
        directions = torch.eye(dim, dtype=torch.double)
        if dim > 2:  # one more, for third derivatives in three different columns
            directions = torch.cat(
                [directions, torch.full_like(directions[:1], dim**-0.5)]
            )
        third_order = _third_derivatives(directions)
        for name, matrix in (("directions", directions), ("third_order", third_order)):
            self.register_buffer(name, matrix.to(scales.device), persistent=False)

    def forward(
        self, slopes: UnitSlopes, starts: Tensor, num_steps: int, radius: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Climb until every climb that can win has converged.

        Args:
            slopes: The gradient field.
            starts: In the unit box, ``... x R x d``.
            num_steps: The most steps, at least one.
            radius: The first trust region's radius.

        Returns:
            The last trial points of the surviving climbs, ``... x R' x d``; the best
            point of all that were evaluated, ``... x 1 x d``; and the gradient's norm
            there, ``... x 1``.
        """
        # h = eps^(1/4) balances rounding and truncation of a second difference; in
        # float32 that stencil would be as wide as a peak.
        difference_step = min(
            torch.finfo(starts.dtype).eps ** 0.25, _MAX_DIFFERENCE_STEP
        )
        # In logarithms: the maxima are the same, and no scale has to be known.
        current = self._quadratic_model(slopes, starts, difference_step)
        radii = torch.full_like(current.value, radius)
        trials = current.trust_region_step(radii, difference_step)
        for _ in range(num_steps - 1):
            predicted = current.predicted(trials - current.point)
            # Successive halving of the climbs.
            if trials.shape[-2] > _MIN_SURVIVORS:
                index = _survivors(current.value, trials, predicted)
                current = LogLength(*(_gathered(part, index) for part in current))
                trials, radii = _gathered(trials, index), _gathered(radii, index)
                predicted = _gathered(predicted, index)
            # On a GPU the question would wait for the device; the steps cost less.
            if on_cpu(trials) and _converged(current.point, trials, predicted):
                break
            trial = self._quadratic_model(slopes, trials, difference_step)
            # Accept what raises the value; else stay, with a quarter of the radius.
            rejected = trial.value < current.value
            radii = torch.where(rejected, radii / 4, radii)
            current = LogLength(
                *(
                    torch.where(_unsqueezed(rejected, old), old, new)
                    for old, new in zip(current, trial, strict=True)
                )
            )
            trials = current.trust_region_step(radii, difference_step)
        # Descents are rejected and the best climb always survives, so no point that was
        # evaluated is better than this one.
        value, best = _best(current)
        return trials, best, value.exp()

    def _quadratic_model(
        self, slopes: UnitSlopes, points: Tensor, difference_step: float
    ) -> LogLength:
        """Fit the model of each point by central differences inside the box."""
        d, directions = points.shape[-1], difference_step * self.directions.to(points)
        # The stencil stays inside the box; the model is moved to the point afterwards.
        centre = points.clamp(difference_step, 1.0 - difference_step)
        stencil = torch.cat([torch.zeros_like(directions[:1]), directions, -directions])
        gradients = slopes(centre.unsqueeze(-2) + stencil)
        scales = self.scales.to(gradients)
        # ... x R x (1 + 2 p), of p directions
        norms = (scales * gradients).norm(dim=-1)
        # log |g| has no derivatives at |g| = 0: keep the norm above rounding.
        norm = torch.maximum(norms[..., 0], difference_step * norms.amax(-1))
        norm = norm.clamp_min(torch.finfo(norm.dtype).tiny)
        gradients = gradients / _unsqueezed(norm, gradients)
        # Gradients at the point and on both sides of it, along each direction.
        middle, forward, backward = gradients.split(
            [1, len(directions), len(directions)], dim=-2
        )
        # J = (g(+h) - g(-h)) / 2h; T from (g(+h) - 2 g(0) + g(-h)) / h^2.
        g = middle.squeeze(-2)
        J = ((forward - backward) / (2.0 * difference_step))[..., :d, :]
        J = 0.5 * (J + J.mT)
        second = (forward + backward - 2.0 * middle) / difference_step**2
        T = (second.flatten(-2) @ self.third_order.to(points)).unflatten(-1, (d, d, d))
        # With |g| = 1: gradient J g, Hessian J J + sum_k g_k T_k - 2 (J g)(J g)'.
        squares = scales.square()
        gradient = _matvec(J, squares * g)
        hessian = J @ (squares.unsqueeze(-1) * J)
        hessian = hessian + _matvec(T, (squares * g).unsqueeze(-2))
        hessian = hessian - 2.0 * gradient.unsqueeze(-1) * gradient.unsqueeze(-2)
        step = points - centre  # zero but near a bound
        value = LogLength(centre, norm.log(), gradient, hessian).predicted(step)
        return LogLength(points, value, gradient + _matvec(hessian, step), hessian)


def _third_derivatives(directions: Tensor) -> Tensor:
    r"""The matrix from second differences to third derivatives, ``(p d) x d^3``.

    Along a direction ``a`` the second difference of ``g_k`` is
    ``sum_ij a_i a_j T_ijk``: linear equations for the symmetric ``T``, solved by least
    squares. Up to four columns there are as many equations as unknowns.
    """
    d = directions.shape[-1]
    # Third derivatives are symmetric: one unknown for each i <= j <= k.
    rows = []
    for triple in combinations_with_replacement(range(d), 3):
        row = directions.new_zeros(d, d, d)
        for index in permutations(triple):
            row[index] = 1.0
        rows.append(row)
    basis = torch.stack(rows)  # unknowns x d x d x d
    design = torch.einsum("nijk,pi,pj->npk", basis, directions, directions).flatten(1)
    return torch.linalg.pinv(design) @ basis.flatten(1)


def _best(current: LogLength) -> tuple[Tensor, Tensor]:
    """The largest value and its point: ``... x 1`` and ``... x 1 x d``."""
    value, index = current.value.max(-1, keepdim=True)
    return value, _gathered(current.point, index)


def _survivors(value: Tensor, trials: Tensor, predicted: Tensor) -> Tensor:
    """Indices of the climbs that go on: the half of the largest predicted values.

    Of the climbs to one peak only the highest counts. The climb with the largest
    current value always continues.
    """
    count = max(_MIN_SURVIVORS, (trials.shape[-2] + 1) // 2)
    # The highest climb goes on whatever is predicted: nothing that was found is lost.
    is_leader = value == value.amax(-1, keepdim=True)
    priority = torch.where(_dominated(trials, predicted), -torch.inf, predicted)
    return torch.where(is_leader, torch.inf, priority).topk(count, -1).indices


def _converged(point: Tensor, trials: Tensor, predicted: Tensor) -> bool:
    """Whether every climb that can win takes steps below the tolerance."""
    short = (trials - point).abs().amax(-1) <= _STEP_TOLERANCE
    beaten = predicted < predicted.amax(-1, keepdim=True) - _VALUE_MARGIN
    return bool((short | beaten | _dominated(trials, predicted)).all())


def _dominated(trials: Tensor, predicted: Tensor) -> Tensor:
    """Which climbs end near a climb of a larger predicted value, ``... x R``."""
    distances = (trials.unsqueeze(-2) - trials.unsqueeze(-3)).norm(dim=-1)
    lower = predicted.unsqueeze(-1) < predicted.unsqueeze(-2)
    return ((distances < _SAME_PEAK_DISTANCE) & lower).any(-1)


def _gathered(part: Tensor, index: Tensor) -> Tensor:
    """Gather rows of ``... x R (x ...)`` by an index ``... x R'``."""
    return part.take_along_dim(_unsqueezed(index, part), dim=index.ndim - 1)


def _unsqueezed(scalars: Tensor, part: Tensor) -> Tensor:
    """``... x R`` to be broadcast along ``... x R x ...``."""
    return scalars.reshape(*scalars.shape, *(part.ndim - scalars.ndim) * [1])


def _matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
