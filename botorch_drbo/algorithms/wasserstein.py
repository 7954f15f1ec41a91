"""Wasserstein distributionally robust Bayesian optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition import LipschitzPenalizedUCB
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.robust_set import RobustSetAlgorithm
from botorch_drbo.algorithms.worst_case import Judge
from botorch_drbo.ambiguity import AmbiguitySet, Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import ContextRule, SpreadRadius, as_rule

_UNIT = "widths of `context_bounds`, whose diagonal it is"


@dataclass(frozen=True, kw_only=True, eq=False)
class LipschitzPenaltyAlgorithm(AcquisitionAlgorithm):
    r"""The expectation, less a Lipschitz penalty for a shifted distribution.

    .. math:: \sum_i p_i \, \mathrm{ucb}(x, c_i) - \epsilon_s L(x), \qquad
        L(x) = \max_c \| \partial_c\, \mathrm{ucb}(x, c) \|_2

    with ``p`` the empirical distribution of the ``s`` contexts seen so far, or
    ``reference``. The radius is in units of the context box scaled to ``[0, 1]^d_c``.

    A recommendation is judged by the ball itself: its worst case is over all
    distributions in the context box within the radius, which the penalty bounds from
    below (see ``Recommendation``).

    Args:
        radius: A number, a schedule in the number of contexts seen, or a rule in the
            contexts themselves: by default by their spread. The paper's experiments
            use ``InverseSquareRoot(0.3)`` when the distribution is learnt from data;
            give a number together with ``reference``.
    """

    context_order: ClassVar[str | None] = "it penalises the slope in the context"
    radius_unit: ClassVar[str] = _UNIT

    radius: ContextRule | float = SpreadRadius()

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        as_rule(self.radius, "radius")

    def diameter(self, space: SearchSpace) -> float:
        r"""The diagonal of the context box, in its sides."""
        return space.context_diameter

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
        r"""The penalised expected upper confidence bound."""
        return LipschitzPenalizedUCB(
            model,
            beta,
            self.data_contexts(history, space),
            self.current_radius(history, space),
            space.context_bounds,
            X_pending=X_pending,
        )

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The Wasserstein ball in normalised context units, on the data alone."""
        return self.judge(model, history, space, seed=seed).on_its_list()

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The Wasserstein ball, with the whole box of contexts in reach."""
        contexts = self.data_contexts(history, space)
        return _judge(contexts, space, self.current_radius(history, space))

    def current_radius(self, history: History, space: SearchSpace) -> float:
        """The radius of this round."""
        return self.radius_of(self.radius, history, space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WDRBO(LipschitzPenaltyAlgorithm):
    r"""``wdrbo``: the expectation, less a Lipschitz penalty for a shifted distribution.

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> wdrbo = WDRBO(radius=0.1, num_restarts=1, raw_samples=8)
        >>> wdrbo.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Micheli2025wdrbo]_, eq. 13.
    """

    name: ClassVar[str] = "wdrbo"


@dataclass(frozen=True, kw_only=True, eq=False)
class WassersteinBall(ModelBasedAlgorithm):
    r"""All distributions that moving the contexts a little, on average, can reach.

    Args:
        radius: A number, or a schedule in the number of contexts seen, in units of the
            context box scaled to ``[0, 1]^d_c``.
        num_candidates: Sobol contexts in the context bounds to which probability may
            move, beside the contexts of the distribution itself.
    """

    radius_unit: ClassVar[str] = _UNIT

    radius: ContextRule | float = SpreadRadius()
    num_candidates: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        as_rule(self.radius, "radius")
        check_count(self.num_candidates, "num_candidates", minimum=0)

    def diameter(self, space: SearchSpace) -> float:
        r"""The diagonal of the context box, in its sides."""
        return space.context_diameter

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The data, the Sobol contexts with weight zero, and the ball."""
        data = self.data_contexts(history, space)
        num = self.num_candidates  # none cannot be drawn, only left out
        candidates = sobol_in_box(max(1, num), space.context_reach, seed)[:num]
        if space.context_values:
            candidates = space.snap_contexts(candidates).unique(dim=0)
        contexts = ContextSet(
            torch.cat([data.points, candidates]),
            torch.cat([data.weights, torch.zeros_like(candidates[:, 0])]),
        )
        return self._around(contexts, history, space).on_its_list()

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""The same ball around the data, with the whole box of contexts in reach."""
        return self._around(self.data_contexts(history, space), history, space)

    def _around(
        self, contexts: ContextSet, history: History, space: SearchSpace
    ) -> Judge:
        return _judge(contexts, space, self.radius_of(self.radius, history, space))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WDRBOExact(WassersteinBall, RobustSetAlgorithm):
    r"""``wdrbo_exact``: the exact worst case over the Wasserstein ball.

    .. math:: \min \{ E_q[\mathrm{ucb}(x, c)] : W_1(p, q) \le \epsilon_s \}

    The adversary may move the contexts of ``p`` to each other and to a Sobol set in the
    context bounds. ``wdrbo`` replaces this minimum by a bound below it, which supposes
    that the steepest slope anywhere is met everywhere on the way; this one follows the
    scores as they are, and needs no slope at all. Two different categories are one
    apart, as far as the ends of the box of a number. For the worst case of a
    recommendation the best contexts of the whole box are searched for, so that it may
    be a little lower than the objective.

    Args:
        radius: As for ``wdrbo``, in units of the context box scaled to
            ``[0, 1]^d_c``.
        num_candidates: Sobol contexts to which probability may move.

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> exact = WDRBOExact(radius=0.1, num_restarts=1, raw_samples=8)
        >>> exact.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    The problem that [Micheli2025wdrbo]_ bounds, before the bound.
    """

    name: ClassVar[str] = "wdrbo_exact"

    num_candidates: int = 128


def _judge(contexts: ContextSet, space: SearchSpace, radius: float) -> Judge:
    def ball(points: Tensor) -> Wasserstein:
        return Wasserstein(radius, space.context_distances(points, points))

    return Judge(
        contexts=contexts,
        ball=ball,
        between=space.context_distances,
        box=space.context_reach,
        values=space.context_values,
        categories=tuple(space.context_categories),
    )
