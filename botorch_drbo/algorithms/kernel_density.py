"""Bayesian optimisation under a kernel density estimate of the context distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.robust_set import RobustSetAlgorithm
from botorch_drbo.ambiguity import AmbiguitySet, NoAmbiguity, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import KernelDensityRadius, Schedule, as_schedule

_DENSITY = "it smooths the contexts seen to a density"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SBOKDE(RobustSetAlgorithm):
    r"""``sbo_kde``: the expectation over a kernel density estimate of the contexts.

    .. math:: \frac{1}{n} \sum_{i=1}^n \mathrm{ucb}(x, \tilde c_i), \qquad
        \tilde c_i \sim \hat p_{\mathrm{KDE}}

    with Silverman's bandwidth and ``n`` quasi-random draws, made anew at each call.
    With ``reference`` there is nothing to estimate, and the recipe is ``erbo``.

    Args:
        num_contexts: ``n``, the number of draws from the density estimate.

    [Huang2024sbokde]_.
    """

    name: ClassVar[str] = "sbo_kde"
    context_order: ClassVar[str | None] = _DENSITY

    num_contexts: int = 1024

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_count(self.num_contexts, "num_contexts")

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The density estimate, taken at its word."""
        return _density(self, history, space, self.num_contexts, seed), NoAmbiguity()


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelDensityBall(ModelBasedAlgorithm):
    r"""A total variation ball around a kernel density estimate of the contexts.

    Args:
        radius: A number, or a schedule in the number of contexts seen; None for the
            paper's ``KernelDensityRadius``, ``s^(-2 / (4 + d_c))``.
        num_contexts: Draws from the density estimate.
        num_outside: Sobol contexts in the context bounds, where the lowest score is
            looked for beside the draws.
    """

    context_order: ClassVar[str | None] = _DENSITY
    radius_unit: ClassVar[str] = "total variation, twice the share of mass that moves"

    radius: Schedule | float | None = None
    num_contexts: int = 1024
    num_outside: int = 1024

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.radius is not None:
            as_schedule(self.radius, "radius")
        check_count(self.num_contexts, "num_contexts")
        check_count(self.num_outside, "num_outside")

    def diameter(self, space: SearchSpace) -> float:
        r"""That of total variation."""
        return TotalVariation(0.0).diameter

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The draws, the Sobol contexts with weight zero, and the ball."""
        inside = _density(self, history, space, self.num_contexts, seed)
        outside = self._outside(space, seed)
        contexts = ContextSet(
            torch.cat([inside.points, outside]),
            torch.cat([inside.weights, torch.zeros_like(outside[:, 0])]),
        )
        return contexts, self._ball(history, space)

    def _ball(self, history: History, space: SearchSpace) -> TotalVariation:
        radius = KernelDensityRadius(space.d_c) if self.radius is None else self.radius
        return TotalVariation(self.radius_of(radius, history, space))

    def _outside(self, space: SearchSpace, seed: int) -> Tensor:
        outside = sobol_in_box(self.num_outside, space.context_reach, seed)
        return space.snap_contexts(outside)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DRBOKDE(KernelDensityBall, AcquisitionAlgorithm):
    r"""``drbo_kde``: the worst case over a total variation ball around the estimate.

    .. math:: \min \{ E_q[\mathrm{ucb}(x, c)] :
        \| q - \hat p_{\mathrm{KDE}} \|_1 \le \epsilon_s \}

    The adversary takes probability from the draws with the highest scores, and may put
    it anywhere in the context bounds: on the lowest score of the draws and of a Sobol
    set beside them. One sort solves what the paper solves as a two-dimensional convex
    program per decision (its Proposition 2 is the dual). For the worst case of a
    recommendation the lowest score of the box is searched for from there.

    Args:
        radius: A number, or a schedule in the number of contexts seen; None for the
            paper's ``KernelDensityRadius``, ``s^(-2 / (4 + d_c))``.
        num_contexts: Draws from the density estimate.
        num_outside: Sobol contexts in the context bounds, where the lowest score is
            looked for beside the draws.

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> drbo = DRBOKDE(num_contexts=64, num_restarts=1, raw_samples=8)
        >>> drbo.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Huang2024sbokde]_. Their code looks for the lowest score outside the bounds, and
    ignores it in the gradient.
    """

    name: ClassVar[str] = "drbo_kde"

    @property
    def maximises_its_worst_case(self) -> bool:
        """That of the ball, as its two relatives with sample paths."""
        return True

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
        r"""The worst confidence bound over the ball, with the whole box in reach."""
        return DistributionallyRobustUCB(
            model,
            beta,
            _density(self, history, space, self.num_contexts, seed),
            UncertaintyObjective(self._ball(history, space)),
            outside_contexts=self._outside(space, seed),
            X_pending=X_pending,
        )


def _density(
    algorithm: ModelBasedAlgorithm,
    history: History,
    space: SearchSpace,
    num_contexts: int,
    seed: int,
) -> ContextSet:
    """Draws from the density estimate, or the reference if there is one."""
    if algorithm.reference is not None:
        return algorithm.data_contexts(history, space)
    seen = algorithm.data_contexts(history, space)
    density = ContextSet.kernel_density(
        seen.points if algorithm.half_life is None else seen,
        num_samples=num_contexts,
        bounds=space.context_bounds,
        seed=seed,
    )
    if not space.context_values:
        return density
    return ContextSet(space.snap_contexts(density.points), density.weights)
