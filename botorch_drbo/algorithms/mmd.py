"""Distributionally robust Bayesian optimisation over a kernel ball."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.utils.transforms import is_ensemble
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import check_count, check_nonnegative
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.robust_set import RobustSetAlgorithm
from botorch_drbo.algorithms.worst_case import Between, Judge
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.schedules import MMDRadius, Schedule, as_schedule

_GRID = "it puts a grid of equal steps over them"


_UNIT = "the kernel of the model, scaled to one, far apart"
_CHANCE_CONTEXTS = 100  # as many as `drbo_mmd` has


@dataclass(frozen=True, kw_only=True, eq=False)
class MMDBall(ModelBasedAlgorithm):
    r"""A ball of the model's own kernel around the contexts seen, on a product grid.

    Args:
        radius: A number, or a schedule in the number of contexts seen.
        num_contexts: The size of the grid, rounded up to a power ``d_c``.
    """

    context_order: ClassVar[str | None] = _GRID
    radius_unit: ClassVar[str] = _UNIT

    radius: Schedule | float = MMDRadius()
    num_contexts: int = 100

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        as_schedule(self.radius, "radius")
        check_count(self.num_contexts, "num_contexts")

    def diameter(self, space: SearchSpace) -> float | None:
        r"""What it would be of a kernel that is zero at a distance."""
        return _diameter(self)

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The grid and the ball."""
        return self.judge(model, history, space, seed=seed).on_its_list()

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The ball around the grid, with the whole box of contexts in reach."""
        return _judge(self, self.radius, self.num_contexts, model, history, space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DRBOMMD(MMDBall, RobustSetAlgorithm):
    r"""``drbo_mmd``: the worst case over a maximum-mean-discrepancy ball on a grid.

    .. math:: \min \{ q^\top \mathrm{ucb}(x, C) :
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

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> drbo = DRBOMMD(radius=0.3, num_restarts=1, raw_samples=8)
        >>> drbo.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Kirschner2020drbo]_. Their code takes the diagonal of the grid if ``d_c > 1``.
    """

    name: ClassVar[str] = "drbo_mmd"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DRBOMMDMinimax(AcquisitionAlgorithm):
    r"""``drbo_mmd_minimax``: ``drbo_mmd`` with two lines in place of the worst case.

    The search uses :class:`MinimaxApproximation`; the recommendation is judged by the
    ball itself, without the jitter, as that of ``drbo_mmd`` is.

    Args:
        radius: A number, or a schedule in the number of contexts seen.
        num_contexts: The size of the grid, rounded up to a power ``d_c``; 1,024 in the
            experiments of [Huang2024sbokde]_, whose ``drbo_mmd`` has 100: two lines are
            cheap.
        jitter: Added to the diagonal of the kernel matrix. The slope at radius zero
            divides by its smallest eigenvalues: those of a smooth kernel on a grid are
            rounding errors, and so would be the slope.

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> drbo = DRBOMMDMinimax(radius=0.3, num_restarts=1, raw_samples=8)
        >>> drbo.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Tay2022minimax]_.
    """

    name: ClassVar[str] = "drbo_mmd_minimax"
    context_order: ClassVar[str | None] = _GRID
    radius_unit: ClassVar[str] = _UNIT

    radius: Schedule | float = MMDRadius()
    num_contexts: int = 1024
    jitter: float = 1e-3

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        as_schedule(self.radius, "radius")
        check_nonnegative(self.jitter, "jitter")
        check_count(self.num_contexts, "num_contexts")

    def diameter(self, space: SearchSpace) -> float | None:
        r"""What it would be of a kernel that is zero at a distance."""
        return _diameter(self)

    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The approximate worst confidence bound over the ball."""
        contexts, ball = self.robust_set(model, history, space, seed=seed)
        objective = UncertaintyObjective(MinimaxApproximation(ball))
        return DistributionallyRobustUCB(
            model, beta, contexts, objective, X_pending=X_pending
        )

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The grid and the ball, with the jitter."""
        settings = self.radius, self.num_contexts, model, history, space
        return _judge(self, *settings, self.jitter).on_its_list()

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The ball of ``drbo_mmd``, with the whole box of contexts in reach."""
        return _judge(self, self.radius, self.num_contexts, model, history, space)

    def chance_judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The same on a grid of at most 100: there are no two lines for it."""
        num = min(self.num_contexts, _CHANCE_CONTEXTS)
        return _judge(self, self.radius, num, model, history, space)


def _judge(
    algorithm: ModelBasedAlgorithm,
    radius: Schedule | float,
    num_contexts: int,
    model: SingleTaskGP,
    history: History,
    space: SearchSpace,
    jitter: float = 0.0,
) -> Judge:
    """The weighted grid, and the ball of the model's kernel around it."""
    known = space.known_columns  # one coordinate does for these
    free = space.d_c - len(known)
    # A root of 1e3 is 10.000000000000002: what is short of the next integer by
    # rounding is not rounded up.
    per_side = math.ceil(num_contexts ** (1 / free) - 1e-9) if free else 1
    counts = [1 if j in known else per_side for j in range(space.d_c)]
    data = algorithm.data_contexts(history, space)
    grid = ContextSet.grid(space.context_bounds, counts, data)
    contexts = ContextSet(space.with_known(grid.points), grid.weights)
    if space.context_values:  # grid points that become one have their weights together
        rows = space.snap_contexts(contexts.points)
        rows, place = rows.unique(dim=0, return_inverse=True)
        weights = torch.zeros_like(rows[:, 0]).index_add(0, place, contexts.weights)
        contexts = ContextSet(rows, weights)
    size = algorithm.radius_of(radius, history, space)
    kernel = context_kernel(model, space, contexts.points)

    def ball(points: Tensor) -> MaximumMeanDiscrepancy:
        matrix = kernel(points, points)
        matrix = 0.5 * (matrix + matrix.mT)
        matrix.diagonal().add_(jitter)
        return MaximumMeanDiscrepancy(size, matrix)

    return Judge(
        contexts=contexts,
        ball=ball,
        between=kernel,
        box=space.context_reach,
        fills_box=True,
        values=space.context_values,
    )


def _diameter(algorithm: ModelBasedAlgorithm) -> float | None:
    """``sqrt(k(c, c) + k(c', c') - 2 k(c, c'))`` of the recipe's own kernel at most."""
    return None if algorithm.model is not None else 2.0**0.5


def context_kernel(
    model: SingleTaskGP, space: SearchSpace, contexts: Tensor
) -> Between:
    r"""The model's kernel between contexts at one decision, scaled to variance one.

    For a product of a kernel in ``x`` and one in ``c``, as BoTorch's default kernel is,
    this is the kernel in ``c``, whatever the decision. Of an ensemble it is the mean of
    the kernels.

    Args:
        model: A model of ``[x, c]``, contexts last.
        space: Its centre is the decision.
        contexts: Where the variance is one in the mean, ``n x d_c``.

    Returns:
        A function of contexts ``... a x d_c`` and ``... b x d_c`` that returns the
        kernel matrix, ``... a x b``, float64.

    Raises:
        UnsupportedError: A model without a kernel.
    """
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
        fixed = centre.expand(*points.shape[:-1], -1)
        inputs = torch.cat([fixed, points], dim=-1)
        # Of an ensemble each model has a kernel of its own: ... x S x n x d.
        inputs = inputs.unsqueeze(-3) if ensemble else inputs
        return model.transform_inputs(inputs).double()

    with torch.no_grad():
        scale = covariance(joint(contexts), diag=True).mean()

    def kernel(first: Tensor, second: Tensor) -> Tensor:
        matrix = covariance(joint(first), joint(second)).to_dense()
        return (matrix.mean(-3) if ensemble else matrix) / scale

    return kernel
