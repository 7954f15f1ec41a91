"""An ambiguity set of the user's own, described in cvxpy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.ambiguity import cvxpy_layer
from botorch_drbo.ambiguity.base import AmbiguitySet
from botorch_drbo.ambiguity.numerics import check_distributions
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:
    import cvxpy as cp

# In the radius: with Clarabel's errors of 1e-9 or so a difference keeps six digits.
_STEP = 1e-3


class CvxpyAmbiguity(AmbiguitySet):
    r"""All distributions that satisfy constraints of your own, written in cvxpy.

    .. math:: v(\epsilon) = \min \{ q^\top f : q \in \Delta,\ (q, p, \epsilon)
        \text{ satisfies the constraints} \}

    ``problem_builder(q, p, radius)`` returns a list of convex constraints on ``q``, a
    variable with ``n`` entries that is already constrained to the simplex. The
    reference weights ``p`` and the ``radius`` are parameters. The function may create
    further variables (for example a transport plan); everything else is a constant. It
    is called once for each number of contexts, and the objects that it refers to must
    not change afterwards.

    The constraints must satisfy cvxpy's rules for parameters (DPP): parameters enter
    affinely and are multiplied only by constants and variables, not by each other. For
    example, ``norm(q - p) <= radius`` is allowed, but ``sum_squares(q - p) <=
    radius**2`` is not.

    Clarabel solves it through cvxpylayers, row by row on the CPU: a few milliseconds
    per row, where the built-in sets take microseconds. There is no other solver, so
    both choices of ``solver`` are the same. Each value is certified to ``1e-6`` of the
    range of the scores. If that fails, a warning is given, and the value is a certified
    lower bound. If the auxiliary variables of the optimum are more than twice as large
    as those found, the certificate can be off by ``1e-7`` of the excess.

    The sensitivity is a forward difference with a step ``h = 1e-3`` in the radius,
    ``(v(radius + h) - v(radius)) / h``, and its gradient is that of ``q*``. If no
    constraint contains the radius, these derivatives are zero.

    Args:
        problem_builder: From ``q``, ``p`` and ``radius`` to a list of constraints.
        radius: The size of the set, in the units that the constraints define.

    Raises:
        InputDataError: The builder cannot be called, or the radius is bad.

    Example:
        >>> import cvxpy as cp
        >>> import torch
        >>> from botorch_drbo.ambiguity import CvxpyAmbiguity
        >>> def at_most_this_far_each(q, p, radius):
        ...     return [cp.norm_inf(q - p) <= radius]
        >>> ambiguity = CvxpyAmbiguity(at_most_this_far_each, radius=0.1)
        >>> f, p = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([0.25, 0.5, 0.25])
        >>> robust = ambiguity.worst_case(f, p)
        >>> robust.value, robust.weights
        (tensor(1.1000), tensor([0.3500, 0.5000, 0.1500]))

    The layers are those of [Agrawal2019cvxpylayers]_.
    """

    def __init__(
        self,
        problem_builder: Callable[[Any, Any, Any], list[cp.Constraint]],
        radius: float | Tensor,
    ) -> None:
        super().__init__(radius)
        if not callable(problem_builder):
            raise InputDataError(
                "`problem_builder` must be a function of (q, p, radius) that returns "
                f"a list of cvxpy constraints, got {type(problem_builder).__name__}."
            )
        self.problem_builder = problem_builder

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The constraints of ``problem_builder``, checked."""
        constraints = self._built(q, p, radius)
        for constraint in constraints:
            if not constraint.is_dcp():
                raise InputDataError(
                    f"The constraint `{constraint}` is not convex by cvxpy's rules "
                    "(DCP). Write it as `convex <= concave` or `affine == affine`."
                )
            if not constraint.is_dpp():
                raise InputDataError(
                    f"The constraint `{constraint}` breaks cvxpy's rules for "
                    "parameters (DPP): `p` and `radius` must enter affinely, and be "
                    "multiplied by constants and variables only, not by each other."
                )
            if others := {x.id for x in constraint.parameters()} - {p.id, radius.id}:
                raise InputDataError(
                    f"The constraint `{constraint}` has {len(others)} parameter(s) "
                    "beside `p` and `radius`. Make them constants."
                )
            if any(
                x.attributes["boolean"] or x.attributes["integer"]
                for x in constraint.variables()
            ):
                raise InputDataError(
                    f"The constraint `{constraint}` has an integer variable: the set "
                    "is not convex."
                )
        return constraints

    def _built(self, q: Any, p: Any, radius: Any) -> list[cp.Constraint]:
        from cvxpy.constraints.constraint import Constraint

        constraints = self.problem_builder(q, p, radius)
        if not isinstance(constraints, list | tuple):
            raise InputDataError(
                "`problem_builder` must return a list of cvxpy constraints, got "
                f"{type(constraints).__name__}."
            )
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise InputDataError(
                    "`problem_builder` must return a list of cvxpy constraints, got "
                    f"{type(constraint).__name__} in it: {constraint}."
                )
        return list(constraints)

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By Clarabel, row by row."""
        return cvxpy_layer.solve(self, values, weights, radius)

    def solve_with_direction(
        self, values: Tensor, weights: Tensor, radius: Tensor
    ) -> Solution:
        r"""Like ``solve``, with right differences in the radius."""
        here = self.solve(values, weights, radius)
        there = self.solve(values, weights, radius + _STEP)
        for solution in (here, there):
            if solution.gap is not None:
                warnings.warn(
                    f"CvxpyAmbiguity of radius {radius.max().item()} did not converge: "
                    "its sensitivity may be off by "
                    f"{solution.gap.max().item() / _STEP:.3g} of the scores' size.",
                    BotorchWarning,
                    stacklevel=4,
                )
        direction = (there.weights - here.weights) / _STEP
        low = values.amin(-1, keepdim=True)  # a large offset would cost digits
        slope = (direction * (values - low)).sum(-1)
        return replace(here, multiplier=-slope, direction=direction)

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The smallest radius whose set contains ``q``, by cvxpy, row by row.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``, to about 1e-8, on the CPU; infinite where no radius
            is large enough. Where the constraints ignore the radius, 0 or infinite.

        Raises:
            UnsupportedError: The constraints are not convex in the radius.
        """
        p, q = check_distributions(p, q)
        self._check_sizes(q.shape[-1], p.shape[-1])
        batch = torch.broadcast_shapes(p.shape[:-1], q.shape[:-1])
        rows = (x.expand(*batch, -1).reshape(-1, x.shape[-1]).cpu() for x in (p, q))
        found = [self._row_distance(*row) for row in zip(*rows, strict=True)]
        return torch.tensor(found, dtype=torch.double).reshape(batch)

    def _row_distance(self, p: Tensor, q: Tensor) -> float:
        import cvxpy as cp

        radius = cp.Variable(nonneg=True)
        constraints = self._built(
            cp.Constant(q.detach().numpy()), cp.Constant(p.detach().numpy()), radius
        )
        for constraint in constraints:
            if not constraint.is_dcp():
                raise UnsupportedError(
                    f"No distance: the constraint `{constraint}` is not convex in the "
                    "radius by cvxpy's rules."
                )
        problem = cp.Problem(cp.Minimize(radius), constraints)
        smallest = problem.solve(solver=cp.CLARABEL)
        if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            return math.inf
        if not isinstance(smallest, float):
            raise RuntimeError(f"No distance: Clarabel ended as {problem.status!r}.")
        return smallest
