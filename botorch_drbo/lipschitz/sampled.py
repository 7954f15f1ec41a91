r"""How fast a score can change with the context: a Lipschitz constant per decision.

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
from itertools import combinations_with_replacement, permutations, product
from typing import NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor
from torch.nn import Module

from botorch_drbo._device import on_cpu
from botorch_drbo._validation import (
    check_bounds,
    check_count,
    check_inside,
    check_nonnegative,
)
from botorch_drbo.sampling import sobol_in_box

UnitSlopes = Callable[[Tensor], Tensor]
"""Points of the unit box, ``... x R x k x d``, to the slopes there, same shape."""

# All lengths are in widths of the box, all values logarithms of the norm.
_MAX_DIFFERENCE_STEP = 2e-3  # much narrower than a peak
_MIN_SURVIVORS = 2  # climbs that successive halving leaves
_SAME_PEAK_DISTANCE = 0.05  # of two climbs nearer than this the lower one is dominated
_STEP_TOLERANCE = 3e-4  # after a Newton step this short the error is about its square
_VALUE_MARGIN = 0.05  # a climb predicted to end this far below need not converge


class LogLength(NamedTuple):
    """A quadratic model of the logarithm of the gradient's norm, about a point."""

    # Its centre, in the unit box, ``... x R x d``.
    point: Tensor
    # The logarithm there, ``... x R``.
    value: Tensor
    # Its gradient, ``... x R x d``.
    gradient: Tensor
    # Its Hessian, ``... x R x d x d``.
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

        Shapes: ``radius``: ``... x R``, returns ``... x R x d``.
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
    """Trust-region Newton ascents from several starts, for all decisions at once.

    A step evaluates the gradient field on a small stencil, fits the quadratic model to
    it and goes to the model's maximum in the trust region. A step that lowered the
    value is rejected, and the radius is divided by four. After each step successive
    halving gives up the half of the climbs with the lower predicted values, until two
    are left. It ends where all climbs that can win have converged.

    With ``scales`` the norm is that of ``S g``: then ``J S^2 g`` stands for ``J g``,
    ``J S^2 J`` for ``J J``, and ``S^2 g`` for ``g`` in the sum.
    """

    directions: Tensor
    third_order: Tensor
    # ``S``, by what the slope in each column is multiplied, ``d``; None for one.
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
        """Climb until every climb that can win has converged.

        Shapes: ``starts``: ``... x R x d``, returns ``... x R' x d``.
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


Slopes = Callable[[Tensor | None], Tensor]
"""``None -> ... x M x d_c`` at the candidates; ``... x k x d_c -> ... x k x d_c`` at
contexts of each decision's own.

The slope of a score in the context, for decisions that are fixed; differentiable in
them. With an ensemble of ``S`` models ``... x S x k x d_c``, contexts too."""

_MAX_CORNER_DIMENSIONS = 6
# Between climbs, in spacings of the samples. On a line those are much closer.
_START_DISTANCE, _START_DISTANCE_ON_LINE = 1.2, 12.0
_COUNTS = {"num_sobol": 1, "num_starts": 1, "num_ascent_steps": 0}  # the least
# By context columns; with more than three as with three.
_DEFAULTS = {1: (128, 2, 4), 2: (256, 12, 12), 3: (512, 24, 12)}
_NEWTON_STEPS = 2
_MAX_NEWTON_STEP = 8.0  # in steps of the grid: longer than the stencil
# Lagrange interpolation on -2..2: values times this are the coefficients of 1, t, t^2
# and t^3 of the derivative of the quartic through them.
_STENCIL = (
    (1 / 12, -1 / 12, -1 / 4, 1 / 6),
    (-2 / 3, 4 / 3, 1 / 2, -2 / 3),
    (0.0, -5 / 2, 0.0, 1.0),
    (2 / 3, 4 / 3, -1 / 2, -2 / 3),
    (-1 / 12, -1 / 12, 1 / 4, 1 / 6),
)


class LipschitzConstant(Module):
    r"""The largest gradient norm of a score in the context, for each decision.

    .. math:: L(x) = \max_{c \in C} \lVert \nabla_{\tilde c}\, s(x, c) \rVert_2

    where ``c~`` is the context scaled to the unit cube by ``context_bounds``, so that
    contexts in different units can be compared.

    The maximum is searched by a multistart local search. The norm is computed at the
    support of the reference, a fixed Sobol set and the corners of the box. Then ascents
    start from the best ``num_starts`` contexts of each decision, apart from each other:
    a trust-region Newton method with active bounds (``SlopeClimb``), which gives up the
    worse half of them after each step, down to two. The best context evaluated counts,
    hence the result is a *lower* bound of the true ``L(x)``, never below the sampled
    maximum.
    ``lipschitz_upper_bound`` bounds it from the other side.

    On a line the Sobol set is an even grid, and the first step goes to the maximum of
    the quartic interpolant through five points of it: that takes no more norms, and
    where the score is smooth it is enough (``num_starts=1, num_ascent_steps=1``).

    ``L`` is differentiable in ``x``: by the envelope theorem its gradient is the
    partial derivative of the norm in ``x`` at the maximising context, a second
    derivative of the score. That theorem asks for a context at which the norm is
    stationary in the box, which is why climbs go all the way. It speaks of the first
    derivative only: a second one by autograd holds the maximising context fixed.
    """

    bounds: Tensor
    candidates: Tensor
    widths: Tensor
    # By what the slope in each column of the unit cube is multiplied, not negative,
    # ``d_c``; None for one. With ``r_j`` the slope is that per radius ``r_j`` of the
    # column, in widths of its bounds.
    scales: Tensor
    stencil: Tensor
    stencil_offsets: Tensor
    positions: Tensor

    def __init__(
        self,
        context_bounds: Tensor,
        support: Tensor | None = None,
        *,
        num_sobol: int | None = None,
        num_starts: int | None = None,
        num_ascent_steps: int | None = None,
        scales: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        bounds = check_bounds(context_bounds, "context_bounds").detach().clone()
        d_c = bounds.shape[-1]
        scales = bounds.new_ones(d_c) if scales is None else scales.detach().to(bounds)
        if scales.shape != (d_c,):
            raise BotorchTensorDimensionError(
                f"`scales` must have one entry for each of {d_c} columns, got shape "
                f"{tuple(scales.shape)}."
            )
        check_nonnegative(scales, "scales")
        given = (num_sobol, num_starts, num_ascent_steps)
        defaults = _DEFAULTS.get(d_c, _DEFAULTS[3])
        counts = [
            check_count(default if count is None else count, name, minimum=minimum)
            for count, default, (name, minimum) in zip(
                given, defaults, _COUNTS.items(), strict=True
            )
        ]
        self.num_sobol, self.num_starts, self.num_ascent_steps = counts
        self.spacing = self.num_sobol ** (-1 / d_c)  # in widths of the box
        # Two starts nearer than this are taken to climb the same peak.
        distance = _START_DISTANCE_ON_LINE if d_c == 1 else _START_DISTANCE
        self.start_distance = distance * self.spacing
        if d_c == 1:
            # On a line an even grid: its values are differentiated by a stencil. Else
            # Sobol points, and the corners, which they leave out.
            unit = torch.linspace(0.0, 1.0, self.num_sobol, dtype=torch.double)
            parts = [torch.lerp(bounds[0], bounds[1], unit.to(bounds).unsqueeze(-1))]
        else:
            parts = [sobol_in_box(self.num_sobol, bounds, seed)]
        if 1 < d_c <= _MAX_CORNER_DIMENSIONS:
            unit = torch.tensor(list(product((0.0, 1.0), repeat=d_c))).to(bounds)
            parts.append(bounds[0] + unit * (bounds[1] - bounds[0]))
        if support is not None:
            check_inside(support, bounds, "support", "context_bounds")
            parts.append(support.detach().to(bounds))
        self.register_buffer("bounds", bounds)
        self.register_buffer("candidates", torch.cat(parts))
        offsets = torch.arange(len(_STENCIL), device=bounds.device)
        derived = {
            "widths": bounds[1] - bounds[0],
            "scales": scales,
            "stencil": torch.tensor(_STENCIL, dtype=torch.double).to(bounds),
            "stencil_offsets": offsets - len(_STENCIL) // 2,
        }
        # In steps of the grid on a line, between its first and its last point.
        unit_points = (self.candidates - bounds[0]) / derived["widths"]
        derived["positions"] = (self.num_sobol - 1) * unit_points.squeeze(-1)
        for name, tensor in derived.items():
            self.register_buffer(name, tensor, persistent=False)
        self.climb = SlopeClimb(d_c, scales)

    def forward(self, slopes: Slopes) -> Tensor:
        """Evaluate ``L(x)``.

        Shapes: returns ``... x S``.
        """
        return self.steepest(slopes(self.maximizers(slopes)))

    def steepest(self, slopes: Tensor) -> Tensor:
        """The largest of some slopes, in units of the box.

        Shapes: ``slopes``: ``... x k x d_c``.
        """
        return self._norm(slopes).amax(-1)

    def maximizers(self, slopes: Slopes) -> Tensor:
        """Contexts among which the steepest one found is.

        Shapes: returns ``... (x S) x k x d_c``.
        """
        with torch.no_grad():
            # Danskin: L(x) has the gradient of the slope at the steepest context, which
            # is a constant. So the search needs no graph.
            norms = self._norm(slopes(None))  # ... (x S) x M
            starts, best = self._starts(norms)
            num_steps = self.num_ascent_steps - self._uses_grid_step
            if num_steps == 0:
                return torch.cat([best, starts], dim=-2)
            lower, upper = self.bounds.to(norms)
            widths = self.widths.to(norms)

            def unit_slopes(points: Tensor) -> Tensor:
                contexts = torch.lerp(lower, upper, points.flatten(-3, -2))
                return (slopes(contexts) * widths).reshape(points.shape)

            ends, maximizer, highest = self.climb(
                unit_slopes, (starts - lower) / widths, num_steps, self.spacing
            )
            # The climb ends at a point that was evaluated: it cannot be worse than
            # claimed.
            higher = (highest > norms.amax(-1, keepdim=True)).unsqueeze(-1)
            best = torch.where(higher, torch.lerp(lower, upper, maximizer), best)
            return torch.cat([best, torch.lerp(lower, upper, ends)], dim=-2)

    @property
    def _uses_grid_step(self) -> bool:
        """Whether the first step interpolates the norms of the grid."""
        on_line = self.bounds.shape[-1] == 1 and self.num_sobol >= len(_STENCIL)
        return on_line and self.num_ascent_steps > 0

    def _starts(self, norms: Tensor) -> tuple[Tensor, Tensor]:
        """The steepest candidates at least ``start_distance`` apart (greedy).

        Shapes: returns ``... (x S) x R x d_c``.
        """
        # Greedy: the steepest candidate, and then the steepest not near one of those.
        points = self.candidates.to(norms)  # M x d_c
        indices, available = [], norms
        for remaining in reversed(range(min(self.num_starts, len(points)))):
            index = available.argmax(-1)  # ... (x S)
            indices.append(index)
            if remaining:
                unit = points / self.widths.to(norms)
                offsets = unit - unit[index].unsqueeze(-2)  # ... (x S) x M x d_c
                near = offsets.square().sum(-1) < self.start_distance**2
                available = torch.where(near, 0.0, available)
        index = torch.stack(indices, -1)  # ... (x S) x R
        starts = points[index]  # ... (x S) x R x d_c
        best = starts[..., :1, :]
        if self._uses_grid_step:
            starts = self._grid_newton_step(norms, index)
        return starts, best

    def _grid_newton_step(self, norms: Tensor, index: Tensor) -> Tensor:
        """Newton's method on the quartic interpolant of five points of the grid.

        The points of the grid are the first candidates.
        """
        last, half_width = self.num_sobol - 1, len(_STENCIL) // 2
        # ... (x S) x R, in steps of the grid
        # A quartic through five norms, about the middle one; near an end the stencil is
        # moved inwards.
        position = self.positions.to(norms)[index]
        middle = position.round().clamp(half_width, last - half_width)
        stencil_offsets = self.stencil_offsets.to(middle.device)
        points = middle.long().unsqueeze(-1) + stencil_offsets  # ... (x S) x R x 5
        stencil_norms = norms.gather(-1, points.flatten(-2)).reshape(points.shape)
        derivative = stencil_norms @ self.stencil.to(norms)
        first, second, third, fourth = derivative.unbind(-1)  # ... (x S) x R
        third_twice, fourth_thrice = 2.0 * third, 3.0 * fourth
        position = position - middle
        low, high = (
            (position - 1.0).clamp_min(-half_width),
            (position + 1.0).clamp(-half_width, half_width),
        )
        tiny = torch.finfo(position.dtype).tiny
        for _ in range(_NEWTON_STEPS):
            # Horner: p' = c1 + c2 t + c3 t^2 + c4 t^3, p'' = c2 + 2 c3 t + 3 c4 t^2.
            slope = torch.addcmul(third, position, fourth)
            slope = torch.addcmul(second, position, slope)
            slope = torch.addcmul(first, position, slope)
            curvature = torch.addcmul(third_twice, position, fourth_thrice)
            curvature = torch.addcmul(second, position, curvature)
            # Newton: t - p' / p''. Where p'' >= 0 go uphill to the end of the interval.
            floor = (slope.abs() / _MAX_NEWTON_STEP).clamp_min(tiny)
            position = torch.addcdiv(position, slope, torch.maximum(-curvature, floor))
            position = position.clamp(low, high)
        fraction = ((middle + position) / last).clamp(0.0, 1.0).unsqueeze(-1)
        bounds = self.bounds.to(norms)
        return torch.lerp(bounds[0], bounds[1], fraction)

    def _norm(self, gradient: Tensor) -> Tensor:
        """Norm in the unit cube; its derivative at zero is zero, not NaN."""
        widths = self.widths.to(gradient) * self.scales.to(gradient)
        return torch.linalg.vector_norm(gradient * widths, dim=-1)
