"""Worst cases by cvxpylayers: any convex set, row by row on the CPU, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError
from scipy.sparse import csc_matrix
from torch import Tensor

from botorch_drbo.ambiguity.numerics import scaled_scores
from botorch_drbo.ambiguity.solution import Solution

if TYPE_CHECKING:  # slow to import, and the exact solvers do without
    import cvxpy as cp

SETTINGS: dict[str, Any] = {
    "verbose": False,
    "max_iter": 200,
    "tol_gap_abs": 1e-10,
    "tol_gap_rel": 1e-10,
    "tol_feas": 1e-10,
}
"""What Clarabel is told. Scores reach it scaled to [0, 1]."""

_PROVED = 3e-7  # of the range of the scores: what is left open counts as converged
_ROUNDING = 1e-7  # a dual residual of auxiliary variables above it proves nothing


class ConvexSet(Protocol):
    """What the layer asks of an ambiguity set."""

    keeps_support: ClassVar[bool]
    """Whether atoms of reference weight zero get no mass."""

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        """Describe the set, beside the simplex, by cvxpy's DPP rules."""
        ...

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The numbers that the description is made of."""
        ...


@dataclass(frozen=True)
class _Certificate:
    """What one solve proves, for scores from zero to one."""

    empty: bool
    """No distribution satisfies the constraints."""
    lower: float
    """A lower bound of the value, from the dual variables."""
    violation: float
    """What the violated constraints may be worth, at the dual variables' prices."""


class _WorstCase:
    """``min q.f`` over the simplex and one set's constraints, as a layer.

    The interface to Clarabel that cvxpylayers comes with (DIFFCP) neither looks at the
    solver's status nor lets others look. It also differentiates the solution, by a
    linear system that is singular wherever the solution is not unique. So the layer
    gets ours. Only the derivative of the optimal value is needed here, and it is in the
    dual variables: for the program ``min c'x : b - Ax in K`` with dual variables ``y``,
    it is ``x`` in ``c``, ``-y`` in ``b``, and ``y x'`` in ``A``.
    """

    def __init__(self, ambiguity: ConvexSet, num_values: int, num_weights: int):
        # cvxpy is slow to import, and the exact solvers do without.
        import cvxpy as cp
        from cvxpylayers.interfaces.base import SolverInterface
        from cvxpylayers.torch.cvxpylayer import CvxpyLayer

        q = cp.Variable(num_values, nonneg=True, name="q")
        f = cp.Parameter(num_values, name="scores")
        p = cp.Parameter(num_weights, nonneg=True, name="p")
        radius = cp.Parameter(nonneg=True, name="radius")
        support = cp.Parameter(num_weights, nonneg=True, name="support")
        constraints = [cp.sum(q) == 1, *ambiguity.constraints(q, p, radius)]
        if ambiguity.keeps_support:
            constraints.append(q <= support)
        problem = cp.Problem(cp.Minimize(f @ q), constraints)
        used = {parameter.id for parameter in problem.parameters()}
        parameters = (f, p, radius, support)
        self._used = [parameter.id in used for parameter in parameters]
        self._layer = CvxpyLayer(
            problem,
            parameters=[p for p, u in zip(parameters, self._used, strict=True) if u],
            variables=[q],
            solver=SolverInterface.from_functions(
                self._solve_row, self._differentiate_row, canon_solver="CLARABEL"
            ),
        )
        context: Any = self._layer.ctx
        self._q: slice = context.var_recover[0].primal
        # Where the entries of the constraints lie, which cvxpy stores as [-A, b].
        self._rows, self._pointers, self._shape = context.reduced_A.problem_data_index
        self._columns = np.repeat(np.arange(self._shape[1]), np.diff(self._pointers))
        self._certificates: list[_Certificate] = []
        self._lock = Lock()  # the solver leaves the certificates here

    def __call__(
        self, f: Tensor, p: Tensor, radius: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, list[_Certificate]]:
        """Return weights, slopes in ``p`` and the radius, and proofs of each row."""
        with self._lock, torch.enable_grad():
            self._certificates = certificates = []
            inputs = [f.clone(), p.clone(), radius.clone(), (p > 0).to(p)]
            for reference in inputs[1:3]:
                reference.requires_grad_()
            (q,) = self._layer(
                *(x for x, used in zip(inputs, self._used, strict=True) if used)
            )
            slopes = torch.zeros_like(p), torch.zeros_like(radius)
            if q.requires_grad:
                slopes = torch.autograd.grad(
                    (q * inputs[0]).sum(), inputs[1:3], materialize_grads=True
                )
        return q.detach(), slopes[0], slopes[1], certificates

    def _solve_row(
        self,
        quadratic: None,
        objective: np.ndarray,
        entries: np.ndarray,
        dims: Any,
        arguments: dict[str, Any],
        needs_grad: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve one canonical program; the layer gives and takes what it needs."""
        from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import (
            dims_to_solver_cones,
        )

        clarabel: Any = import_module("clarabel")  # compiled: no types to be seen
        settings = clarabel.DefaultSettings()
        for name, value in SETTINGS.items():
            setattr(settings, name, value)
        c = objective[:-1]  # the last entry is an offset
        stacked = csc_matrix((entries, self._rows, self._pointers), shape=self._shape)
        A, b = csc_matrix(-stacked[:, :-1]), stacked[:, -1].toarray().ravel()
        nothing = csc_matrix((len(c), len(c)))
        cones = dims_to_solver_cones(dims)
        solved = clarabel.DefaultSolver(nothing, c, A, b, cones, settings).solve()
        x, y, s = (np.nan_to_num(v) for v in (solved.x, solved.z, solved.s))
        # Clarabel's y lies in the dual cone, so weak duality needs no more than the
        # dual residual: exactly so in q, which lies on the simplex.
        residual = A.T @ y + c
        on_q, others = residual[self._q], np.delete(residual, self._q)
        size = np.abs(np.delete(x, self._q))
        proves = np.abs(others).max(initial=0.0) <= _ROUNDING
        lower = on_q.min() - b @ y - 2 * np.abs(others) @ (1 + size)
        self._certificates.append(
            _Certificate(
                empty="PrimalInfeasible" in str(solved.status),
                # No score is below zero.
                lower=max(0.0, float(lower)) if proves else 0.0,
                violation=float(np.abs(y) @ np.abs(A @ x + s - b)),
            )
        )
        return x, y

    def _differentiate_row(
        self,
        primal_slope: np.ndarray,
        dual_slope: np.ndarray,
        state: tuple[np.ndarray, np.ndarray],
    ) -> tuple[None, np.ndarray, np.ndarray]:
        """Differentiate the optimal value: ``primal_slope`` is always its objective."""
        x, y = state
        slope = -y[self._rows] * np.append(x, 1.0)[self._columns]
        return None, np.append(x, 0.0), slope


_Constants = list[tuple[Tensor, int]]  # what a layer was built from, and its version
_Layers = dict[tuple[int, int], tuple[_Constants, _WorstCase]]
_LAYERS: WeakKeyDictionary[ConvexSet, _Layers] = WeakKeyDictionary()
"""Outside the sets: a copy, a pickle or a state dict of a set knows nothing of it."""


def _layer(ambiguity: ConvexSet, num_values: int, num_weights: int) -> _WorstCase:
    constants = [
        (buffer, buffer._version)
        for name, buffer in ambiguity.named_buffers()
        if name != "radius"  # a parameter of the layer, like scores and weights
    ]
    layers = _LAYERS.setdefault(ambiguity, {})
    built, layer = layers.get((num_values, num_weights), (None, None))
    fresh = (
        built is not None
        and len(built) == len(constants)
        and all(
            old is new and version == now
            for (old, version), (new, now) in zip(built, constants, strict=True)
        )
    )
    if layer is None or not fresh:
        layer = _WorstCase(ambiguity, num_values, num_weights)
        layers[num_values, num_weights] = constants, layer
    return layer


def solve(
    ambiguity: ConvexSet, values: Tensor, weights: Tensor, radius: Tensor
) -> Solution:
    """Solve the worst case over a set from its description for cvxpy.

    Where the worst case is not unique (ties), ``q`` lies in the middle of all of them,
    not on a vertex. Where the value has a kink (in the radius, at zero and on a
    breakpoint; in the weights, at zero), the slopes are subgradients. ``direction`` is
    not found.

    Shapes: ``values``: ``... x n``, ``weights``: ``... x m``, ``radius``: ``... x 1``.
    """
    if not values.isfinite().all():
        raise InputDataError(
            "A convex solver needs finite scores, got NaN or infinite ones."
        )
    batch, n, m = values.shape[:-1], values.shape[-1], weights.shape[-1]
    f, span = scaled_scores(values, values.amin(-1, keepdim=True))
    # Constant scores have no slopes: their range, unlike their scale, is zero.
    span = torch.where(f.amax(-1, keepdim=True) > 0, span, 0.0).reshape(-1, 1)
    f, p, r = f.reshape(-1, n), weights.reshape(-1, m), radius.reshape(-1)
    if not len(f):
        zeros = torch.zeros_like(values)
        return Solution(zeros, zeros[..., 0], lambda: torch.zeros_like(weights))
    p = p / p.sum(-1, keepdim=True)  # one, up to the rounding of the user's dtype
    q, slope, multiplier, certificates = _layer(ambiguity, n, m)(
        f.cpu(), p.cpu(), r.cpu()
    )
    for certificate, size in zip(certificates, r.tolist(), strict=True):
        if certificate.empty:
            raise InputDataError(
                f"{type(ambiguity).__name__} of radius {size} is empty: no "
                "distribution satisfies its constraints. Enlarge the radius, or check "
                "the constraints against the reference weights."
            )
    q, slope, multiplier = q.to(values), slope.to(values), multiplier.to(values)
    q = q.clamp_min(0.0)
    if ambiguity.keeps_support:
        q = torch.where(p > 0, q, 0.0)
    total = q.sum(-1, keepdim=True)
    q = torch.where(total > 0, q / total, 1.0 / n)
    lower = f.new_tensor([c.lower for c in certificates])
    violation = f.new_tensor([c.violation for c in certificates])
    gap = ((q * f).sum(-1) - lower).abs()
    proved = bool((gap + violation <= _PROVED).all())
    span = span.squeeze(-1)
    return Solution(
        weights=q.reshape(values.shape),
        multiplier=(-span * multiplier).reshape(batch),
        reference_gradient=lambda: (span[:, None] * slope).reshape(*batch, m),
        gap=None if proved else (span * gap).reshape(batch),
        infeasibility=None if proved else (span * violation).reshape(batch),
    )
