"""The result of a worst-case problem, with its gradients by the envelope theorem."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._device import beside


class SolverStatus(Enum):
    """How accurate a worst-case value is."""

    EXACT = "exact"
    """A closed form, or a solver that ended with a proof."""
    LOWER_BOUND = "lower bound"
    """The solver stopped early: the value is a certified lower bound."""


@dataclass(frozen=True)
class RobustValue:
    r"""The answer to one batch of worst-case problems.

    Attributes:
        value: The worst-case expectation ``v``, shape ``...``; differentiable once in
            the scores, the reference weights and the radius.
        weights: A worst-case distribution ``q*``, shape ``... x n``; detached.
        multiplier: ``-dv/d radius`` from the right, shape ``...``; detached.
        status: Whether the value is exact or a certified lower bound.
    """

    value: Tensor
    weights: Tensor
    multiplier: Tensor
    status: SolverStatus


@dataclass(frozen=True)
class Solution:
    r"""The result of ``AmbiguitySet.solve``: detached float64 tensors.

    .. math:: v(\epsilon) = \min_q q^\top f = q^{*\top} f

    Only ``weights`` and ``multiplier`` are required. Without a ``direction`` the
    gradient of the sensitivity uses a forward difference of ``q*``; without a
    ``reference_gradient`` a gradient in the reference weights raises an error (no
    recipe and no acquisition function needs it).

    Attributes:
        weights: The worst-case distribution ``q*``, ``... x n``; it sums to one.
        multiplier: ``-dv/d radius`` from the right, ``...``, in units of the scores by
            units of the radius. Not negative; zero where a larger radius changes
            nothing, infinite where the slope is.
        reference_gradient: Finds ``dv/dp`` up to an additive constant, ``... x n``; it
            is called only if that gradient is needed. None if it is not known.
        direction: ``dq*/d radius`` from the right, ``... x n``; None for a difference.
        gap: How far ``q* . f`` may lie above the exact value, ``...``; None for not at
            all. What is returned is the lower end, and the user is warned.
        infeasibility: How far the exact value may lie above ``q* . f``, because ``q*``
            is not quite feasible, ``...``; None for not at all.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import Solution
        >>> Solution(torch.tensor([0.75, 0.25]), torch.tensor(4.0)).weights
        tensor([0.7500, 0.2500])
    """

    weights: Tensor
    multiplier: Tensor
    reference_gradient: Callable[[], Tensor] | None = None
    direction: Tensor | None = None
    gap: Tensor | None = None
    infeasibility: Tensor | None = None

    def times(self, unit: Tensor) -> Solution:
        """The solution for scores that are ``unit`` times as large, one per row."""
        gradient, gap, left = self.reference_gradient, self.gap, self.infeasibility
        return replace(
            self,
            multiplier=unit * self.multiplier,
            reference_gradient=gradient and (lambda: unit.unsqueeze(-1) * gradient()),
            gap=None if gap is None else unit * gap,
            infeasibility=None if left is None else unit * left,
        )


class Once(torch.autograd.Function):
    """A gradient that must not be differentiated in what it was found from."""

    @staticmethod
    def forward(ctx: Any, found: Tensor, *inputs: Tensor) -> Tensor:
        return found.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "Worst-case values have first derivatives only (once_differentiable): a "
            "second derivative in scores, weights or radius is not available."
        )


class Envelope(torch.autograd.Function):
    """A number, as found, with gradients given by the envelope theorem.

    Danskin's theorem [Danskin1966]_: the derivative of a minimum is the partial
    derivative of its objective at the minimiser,
    ``dv = q.df + (reference gradient).dp - multiplier * d radius``.
    ``coefficients`` are the derivatives in the scores. The gradients hold to first
    order only. ``Once`` makes a second derivative an error, where plain autograd would
    return a silent zero. (Torch's ``once_differentiable`` is silent as well where the
    incoming gradient is a constant, as that of a sum.)
    """

    @staticmethod
    def forward(
        ctx: Any,
        found: Tensor,
        values: Tensor,
        coefficients: Tensor,
        weights: Tensor,
        reference_gradient: Tensor | None,
        radius: Tensor,
        multiplier: Tensor,
    ) -> Tensor:
        arguments = (values, weights, radius)
        ctx.save_for_backward(*arguments, coefficients, reference_gradient, multiplier)
        return found.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *arguments, coefficients, reference_gradient, multiplier = ctx.saved_tensors
        slopes = (coefficients, reference_gradient, -multiplier)
        # Danskin: the derivative is that of the Lagrangian at the optimum, which stays.
        needed = ctx.needs_input_grad[1:6:2]
        gradients: list[Tensor | None] = []
        with torch.no_grad():
            for need, argument, slope in zip(needed, arguments, slopes, strict=True):
                # Scores and weights have a last dimension over contexts.
                scale = grad if slope is slopes[2] else grad.unsqueeze(-1)
                part = (scale * slope).sum_to_size(argument.shape) if need else None
                gradients.append(part)
        if torch.is_grad_enabled():  # a graph of the gradients was asked for
            gradients = [
                g if g is None else Once.apply(g, grad, *arguments) for g in gradients
            ]
        in_values, in_weights, in_radius = gradients
        return None, in_values, None, in_weights, None, in_radius, None


_Found = TypeVar("_Found", Tensor, Solution)

_NOTHING = 1e-60  # of the largest score: it counts as zero, and its square is a number


def in_float64(
    solve: Callable[[Tensor, Tensor, Tensor], _Found],
    values: Tensor,
    weights: Tensor,
    radius: Tensor,
) -> _Found:
    """Call a solver in float64, without a graph, with scores of at most one.

    Each row is divided by a power of two, which costs no digits. What remains of a
    score next to nothing (:math:`10^{-60}` of the largest) is zero: the squares and
    reciprocals of all differences are then numbers.

    Shapes: ``solve``: ``... x n``, ``values``: ``... x n``, ``weights``: ``... x n``.
    """
    with torch.no_grad():
        shapes = values.shape[:-1], weights.shape[:-1], radius.shape
        try:
            batch = torch.broadcast_shapes(*shapes)
        except RuntimeError as error:
            raise BotorchTensorDimensionError(
                "The batches of `values`, `weights` and `radius` must broadcast, "
                f"got {', '.join(str(tuple(shape)) for shape in shapes)}."
            ) from error
        scores = values.detach().double()
        reference = beside(weights.detach(), scores)
        reference = reference / reference.sum(-1, keepdim=True)  # up to rounding
        unit = _unit(scores)
        scores = scores / unit
        scores = torch.where(scores.abs() < _NOTHING, 0.0, scores)
        found = solve(
            scores.expand(*batch, -1),
            reference.expand(*batch, -1),
            beside(radius.detach(), scores).expand(batch).unsqueeze(-1),
        )
        unit = unit.squeeze(-1).expand(batch)
        return found * unit if isinstance(found, Tensor) else found.times(unit)


def _unit(scores: Tensor) -> Tensor:
    """The power of two just above the largest score, ``... x n`` to ``... x 1``."""
    exponent = scores.abs().amax(-1, keepdim=True).frexp().exponent
    # So that neither it nor its inverse is infinite or subnormal.
    return exponent.clamp(-1000, 1000).double().exp2()


def robust_value(
    solution: Solution,
    values: Tensor,
    atoms: Tensor,
    reference: Tensor,
    radius: Tensor,
    *,
    name: str,
) -> RobustValue:
    """Join a solution to the graph, and warn if it is only a bound.

    Shapes: ``values``: ``... x n``, ``atoms``: ``... x m``, ``reference``: ``... x m``.
    """
    coefficients = solution.weights.to(values)
    value = Envelope.apply(
        (coefficients * atoms.detach()).sum(-1),
        atoms,
        coefficients,
        reference,
        _reference_gradient(solution, name).to(values)
        if reference.requires_grad
        else None,
        radius,
        solution.multiplier.to(values),
    )
    status = SolverStatus.EXACT
    if solution.gap is not None:
        status = SolverStatus.LOWER_BOUND
        value = value - solution.gap.to(values)
        left = solution.gap
        if solution.infeasibility is not None:
            left = left + solution.infeasibility
        warnings.warn(
            f"{name} of radius {radius.max().item()} did not "
            f"converge: a gap of up to {left.max().item():.3g} is left. "
            "The value is a certified lower bound.",
            BotorchWarning,
            stacklevel=3,
        )
    return RobustValue(
        value=value,
        weights=solution.weights[..., : values.shape[-1]].to(values),
        multiplier=solution.multiplier.to(values),
        status=status,
    )


def sensitivity(
    solution: Solution,
    values: Tensor,
    atoms: Tensor,
    reference: Tensor,
    radius: Tensor,
) -> Tensor:
    """Join the slope of a solution in the radius to the graph.

    Shapes: ``values``: ``... x n``, ``atoms``: ``... x m``, ``reference``: ``... x m``.
    """
    direction = _direction(solution)
    zero = torch.zeros_like(direction, dtype=values.dtype)
    return Envelope.apply(
        # direction . f, but without its cancellation, and right where it is -inf
        -solution.multiplier.to(values),
        atoms,
        direction.to(values),
        reference.detach(),
        zero,
        radius.detach(),
        zero[..., 0],
    )


def _reference_gradient(solution: Solution, name: str) -> Tensor:
    if solution.reference_gradient is None:
        raise UnsupportedError(
            f"{name} has no gradient in the reference weights: the "
            "solution of its `solve` has no `reference_gradient`. Detach the "
            "weights, or give the solution one."
        )
    return solution.reference_gradient()


def _direction(solution: Solution) -> Tensor:
    """The direction of a solution that must have one."""
    if solution.direction is None:
        raise RuntimeError("`solve_with_direction` returned no `direction`.")
    return solution.direction
