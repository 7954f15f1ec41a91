"""The link between a set and its solver: detached inputs, differentiable results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._device import beside
from botorch_drbo.ambiguity._envelope import Envelope
from botorch_drbo.ambiguity.solution import RobustValue, Solution, SolverStatus

_Found = TypeVar("_Found", Tensor, Solution)

_NOTHING = 1e-60  # of the largest score: it counts as zero, and its square is a number


def in_float64(
    solve: Callable[[Tensor, Tensor, Tensor], _Found],
    values: Tensor,
    weights: Tensor,
    radius: Tensor,
) -> _Found:
    r"""Call a solver in float64, without a graph, with scores of at most one.

    Each row is divided by a power of two, which costs no digits. What remains of a
    score next to nothing (:math:`10^{-60}` of the largest) is zero: the squares and
    reciprocals of all differences are then numbers.

    Args:
        solve: From scores ``... x n``, weights ``... x n`` that sum to one and radii
            ``... x 1``, of one batch; to a solution, or to values ``...``.
        values: Scores, ``... x n``.
        weights: Reference weights, ``n`` or ``... x n``.
        radius: A radius, or one for each row.

    Returns:
        What it found, in the units of ``values``.

    Raises:
        BotorchTensorDimensionError: The batches do not fit each other.
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
    r"""Join a solution to the graph, and warn if it is only a bound.

    Args:
        solution: What a solver found, in float64 and without a graph.
        values: Scores, ``... x n``, in whose dtype the value is asked.
        atoms: The scores and those of atoms off the list, ``... x m``.
        reference: Reference weights of the atoms, ``m`` or ``... x m``.
        radius: The radius, a scalar or one for each row.
        name: Of the set, for the messages.

    Returns:
        The worst case of the scores.

    Raises:
        UnsupportedError: Weights with a gradient, and a solution without one for them.

    Warns:
        BotorchWarning: A gap is left.
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
    r"""Join the slope of a solution in the radius to the graph.

    Args:
        solution: With a ``direction``, as ``solve_with_direction`` finds it.
        values: Scores, ``... x n``, in whose dtype the slope is asked.
        atoms: The scores and those of atoms off the list, ``... x m``.
        reference: Reference weights of the atoms, ``m`` or ``... x m``.
        radius: The radius, a scalar.

    Returns:
        The slope, ``...``, with a gradient in the scores alone.
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
