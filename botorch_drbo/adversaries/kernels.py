"""Sets around smoothed contexts: DRBO-KDE's density, DRBO-MMD's kernel ball."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast, final

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import check_count, check_nonnegative, option
from botorch_drbo.adversaries.base import (
    Adversary,
    Between,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.ambiguity import (
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    NoAmbiguity,
    TotalVariation,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import KernelDensityRadius, MMDRadius, Schedule
from botorch_drbo.schedules.radii import as_size

_DENSITY = "it smooths the contexts seen to a density"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelDensity(Adversary):
    r"""A kernel density estimate of the contexts, and no other distribution.

    .. math:: \frac{1}{n} \sum_{i=1}^n s(x, \tilde c_i), \qquad
        \tilde c_i \sim \hat p_{\mathrm{KDE}}

    with Silverman's bandwidth and ``n`` quasi-random draws, made anew at each call.
    With ``reference`` there is nothing to estimate.

    Args:
        num_contexts: ``n``, the number of draws from the density estimate.
    """

    context_order: ClassVar[str | None] = _DENSITY
    believes_reference: ClassVar[bool] = True

    num_contexts: int = option(1024, check_count)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The density estimate, taken at its word."""
        contexts = density_estimate(state, self.num_contexts)
        return WorstCaseProblem.of(contexts, NoAmbiguity(), state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelDensityBall(Adversary):
    r"""A total variation ball around a kernel density estimate of the contexts.

    .. math:: \min \{ E_q[s(x, c)] : \| q - \hat p_{\mathrm{KDE}} \|_1 \le \epsilon_s \}

    The adversary takes probability from the draws with the highest scores, and may put
    it anywhere in the context bounds: on the lowest score of the draws and of a Sobol
    set beside them. For the worst case of a recommendation the lowest score of the box
    is searched for from there.

    Args:
        radius: A number, or a schedule in the number of contexts seen; None for the
            paper's ``KernelDensityRadius``, ``s^(-2 / (4 + d_c))``.
        num_contexts: Draws from the density estimate.
        num_outside: Sobol contexts in the context bounds, where the lowest score is
            looked for beside the draws.
    """

    context_order: ClassVar[str | None] = _DENSITY
    radius_unit: ClassVar[str] = "total variation, twice the share of mass that moves"

    radius: Schedule | float | None = option(
        None, lambda radius, name: radius is None or as_size(radius, name)
    )
    num_contexts: int = option(1024, check_count)
    num_outside: int = option(1024, check_count)

    def diameter(self, space: SearchSpace) -> float:
        r"""That of total variation."""
        return density_ball(0.0).diameter

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The draws and the ball; the Sobol contexts outside."""
        space = state.space
        outside = sobol_in_box(self.num_outside, space.context_support, state.seed)
        return SearchProblem(
            contexts=density_estimate(state, self.num_contexts),
            ambiguity_set=self._ball(state),
            outside=space.snap_contexts(outside),
        )

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The ball around the draws, with the whole box of contexts in reach."""
        contexts = self.search_problem(state).listed()
        return WorstCaseProblem.of(contexts, self._ball(state), state.space)

    def _ball(self, state: FittedRound) -> TotalVariation:
        schedule = KernelDensityRadius(state.space.d_c)
        return density_ball(
            state.radius(schedule if self.radius is None else self.radius)
        )


def density_ball(radius: float | Tensor) -> TotalVariation:
    """The ball of DRBO-KDE around a density estimate."""
    return TotalVariation(radius)


def density_estimate(state: FittedRound, num_contexts: int) -> ContextSet:
    """Draws from the density estimate, or the reference if there is one."""
    seen, space = state.contexts(), state.space
    if state.reference is not None:
        return seen
    density = ContextSet.kernel_density(
        seen.points if state.half_life is None else seen,
        num_samples=num_contexts,
        bounds=space.context_bounds,
        seed=state.seed,
    )
    if not space.context_values:
        return density
    return ContextSet(space.snap_contexts(density.points), density.weights)


_CHANCE_CONTEXTS = 100  # as many as the plain ball has


@dataclass(frozen=True, kw_only=True, eq=False)
class _KernelBall(Adversary):
    """A ball of the model's kernel around a grid of contexts."""

    context_order: ClassVar[str | None] = "it puts a grid of equal steps over them"
    uses_model_kernel: ClassVar[bool] = True
    radius_unit: ClassVar[str] = "the kernel of the model, scaled to one, far apart"

    radius: Schedule | float = option(MMDRadius(), as_size)

    def diameter(self, space: SearchSpace) -> float:
        r"""What it would be of a kernel that is zero at a distance."""
        return 2.0**0.5  # sqrt(k(c, c) + k(c', c') - 2 k(c, c')) at most


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class MMDBall(_KernelBall):
    r"""A ball of maximum mean discrepancy around the contexts seen, on a product grid.

    .. math:: \min \{ q^\top s(x, C) :
        \sqrt{(p - q)^\top K (p - q)} \le \epsilon_s \}

    ``C`` is a product grid over the context bounds with the same number of points in
    each dimension, at least ``num_contexts`` in all; ``p`` counts each context seen at
    its nearest grid point; ``K`` is the model's own kernel between contexts, scaled to
    variance one.

    By its schedule the radius is above one for the first 17 contexts, and the ball is
    then nearly the whole simplex.

    The worst case of a recommendation is not bound to the grid: contexts between its
    points are searched for too, with the same kernel.

    Args:
        radius: A number, or a schedule in the number of contexts seen.
        num_contexts: The size of the grid, rounded up to a power ``d_c``.
    """

    num_contexts: int = option(100, check_count)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The ball around the grid, with the whole box of contexts in reach."""
        return _kernel_ball(state, self.radius, self.num_contexts)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class MinimaxMMDBall(_KernelBall):
    r"""``MMDBall``, of which the search takes two lines in place of the worst case.

    The search uses :class:`MinimaxApproximation`; a recommendation is judged by the
    ball itself, without the jitter.

    Args:
        radius: A number, or a schedule in the number of contexts seen.
        num_contexts: The size of the grid, rounded up to a power ``d_c``; 1,024 in the
            experiments of [Huang2024sbokde]_, whose ``drbo_mmd`` has 100: two lines are
            cheap.
        jitter: Added to the diagonal of the kernel matrix. The slope at radius zero
            divides by its smallest eigenvalues: those of a smooth kernel on a grid are
            rounding errors, and so would be the slope.
    """

    approximates: ClassVar[bool] = True

    num_contexts: int = option(1024, check_count)
    jitter: float = option(1e-3, check_nonnegative)

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The grid, and two lines in place of the ball with the jitter."""
        ball = _kernel_ball(state, self.radius, self.num_contexts, self.jitter)
        contexts, exact = ball.on_its_list()
        return SearchProblem(
            contexts=contexts, ambiguity_set=MinimaxApproximation(exact)
        )

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The ball itself, with the whole box of contexts in reach."""
        return _kernel_ball(state, self.radius, self.num_contexts)

    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The same on a grid of at most 100: there are no two lines for it."""
        num = min(self.num_contexts, _CHANCE_CONTEXTS)
        return _kernel_ball(state, self.radius, num)


def _kernel_ball(
    state: FittedRound, rule: Schedule | float, num_contexts: int, jitter: float = 0.0
) -> WorstCaseProblem:
    """The weighted grid, and the ball of the model's kernel around it."""
    space = state.space
    known = space.known_columns  # one coordinate does for these
    free = space.d_c - len(known)
    # A root of 1e3 is 10.000000000000002: what is short of the next integer by
    # rounding is not rounded up.
    per_side = math.ceil(num_contexts ** (1 / free) - 1e-9) if free else 1
    counts = [1 if j in known else per_side for j in range(space.d_c)]
    grid = ContextSet.grid(space.context_bounds, counts, state.contexts())
    contexts = ContextSet(space.with_known(grid.points), grid.weights)
    if space.context_values:  # grid points that become one have their weights together
        rows = space.snap_contexts(contexts.points)
        rows, index = rows.unique(dim=0, return_inverse=True)
        weights = torch.zeros_like(rows[:, 0]).index_add(0, index, contexts.weights)
        contexts = ContextSet(rows, weights)
    size = state.radius(rule)
    kernel = context_kernel(state.model, space, contexts.points, state.columns)

    def ball(points: Tensor) -> MaximumMeanDiscrepancy:
        matrix = kernel(points, points)
        return grid_ball(size, 0.5 * (matrix + matrix.mT), jitter)

    return WorstCaseProblem(
        contexts=contexts,
        ball=ball,
        between=kernel,
        box=space.context_support,
        fills_box=True,
        values=space.context_values,
    )


def grid_ball(
    radius: float | Tensor, kernel_matrix: Tensor, jitter: float = 0.0
) -> MaximumMeanDiscrepancy:
    """The ball of DRBO-MMD around a distribution on a grid."""
    return MaximumMeanDiscrepancy(radius, kernel_matrix, jitter)


def context_kernel(
    model: Model,
    space: SearchSpace,
    contexts: Tensor,
    columns: Sequence[int] | None = None,
) -> Between:
    """The model's kernel between contexts at one decision, scaled to variance one.

    For a product of a kernel in ``x`` and one in ``c``, as BoTorch's default kernel is,
    this is the kernel in ``c``, whatever the decision. For an ensemble it is the mean
    of the kernels; of a ``ModelEnsemble`` that of the members' kernels, each scaled to
    variance one.

    Shapes: ``contexts``: ``n x d_c``, returns ``... a x d_c``.
    """
    if isinstance(model, ModelEnsemble):
        kernels = [context_kernel(m, space, contexts, columns) for m in model.members]
        return lambda first, second: torch.stack(
            [kernel(first, second) for kernel in kernels]
        ).mean(0)
    centre, ensemble = space.bounds.mean(0), is_ensemble(model)
    covar_module = getattr(model, "covar_module", None)
    if not isinstance(covar_module, Kernel):
        raise UnsupportedError(
            "The ball of `drbo_mmd` and its relatives is made of the kernel of the "
            f"model, and a {type(model).__name__} shows none. Take `wdrbo_exact` or "
            "`drbo_kde`, whose balls need no kernel."
        )
    # float32 distances would leave eigenvalues below zero.
    covariance = cast(Callable[..., Any], copy.deepcopy(covar_module).double())

    def joint(points: Tensor) -> Tensor:
        inputs = torch.cat([centre.expand(*points.shape[:-1], -1), points], dim=-1)
        if columns is not None:
            inputs = inputs[..., torch.tensor(columns).argsort()]
        # Of an ensemble each model has a kernel of its own: ... x S x n x d.
        inputs = inputs.unsqueeze(-3) if ensemble else inputs
        return model.transform_inputs(inputs).double()

    with torch.no_grad():
        scale = covariance(joint(contexts), diag=True).mean()

    def kernel(first: Tensor, second: Tensor) -> Tensor:
        matrix = covariance(joint(first), joint(second)).to_dense()
        return (matrix.mean(-3) if ensemble else matrix) / scale

    return kernel
