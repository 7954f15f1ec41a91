"""The methods that WDRBO and its relatives are compared with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition import EnlargedConfidenceUCB
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.candidates import best_rows
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.feasible import sample
from botorch_drbo.algorithms.judged import JudgedAlgorithm
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.robust_set import RobustSetAlgorithm
from botorch_drbo.algorithms.worst_case import Judge
from botorch_drbo.ambiguity import AmbiguitySet, FullSimplex, NoAmbiguity
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol


@dataclass(frozen=True, kw_only=True, eq=False)
class EmpiricalDistribution(ModelBasedAlgorithm):
    r"""The contexts seen so far, or ``reference``, taken at their word."""

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The distribution itself: the worst case is the expectation."""
        return self.data_contexts(history, space), NoAmbiguity()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class EmpiricalRisk(EmpiricalDistribution, RobustSetAlgorithm):
    r"""``erbo``: believe the contexts seen so far, and maximise the expectation.

    .. math:: \sum_i p_i \, \mathrm{ucb}(x, c_i)

    with ``p`` the empirical distribution of the contexts, or ``reference``. It is WDRBO
    with radius 0, the baseline called ERBO in [Micheli2025wdrbo]_.

    Example:
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> erbo = EmpiricalRisk(num_restarts=1, raw_samples=8)
        >>> erbo.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])
    """

    name: ClassVar[str] = "erbo"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StableOpt(RobustSetAlgorithm):
    r"""``stable_opt``: the worst context within one standard deviation of the mean.

    .. math:: \min \{ \mathrm{ucb}(x, c) : m - s \le c \le m + s \}

    ``m`` and ``s`` are the mean and the population standard deviation, per coordinate,
    of the contexts seen so far, or of ``reference``. The box is clipped to the context
    bounds and filled with a Sobol set. (The public code of the two papers that compare
    with it samples ``[m - 3 s, m - s]`` instead.) In the spirit of
    [Bogunovic2018stableopt]_, as set up by [Huang2024sbokde]_. For the worst case of a
    recommendation the lowest score in the box is searched for from that set.

    Args:
        num_contexts: Sobol points in the box; 1,024 in the experiments.
    """

    name: ClassVar[str] = "stable_opt"
    context_order: ClassVar[str | None] = (
        "its contexts are a mean and a standard deviation around it"
    )

    num_contexts: int = 1024

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_count(self.num_contexts, "num_contexts")

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""A Sobol set in the box, and every distribution on it."""
        return self.judge(model, history, space, seed=seed).on_its_list()

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""Every distribution on the box of one standard deviation."""
        data = self.data_contexts(history, space)
        lower, upper = space.context_bounds
        # A mean of equal numbers may differ from them by rounding.
        low = space.with_known((data.mean - data.std).clamp(lower, upper))
        high = space.with_known((data.mean + data.std).clamp(lower, upper))
        unit = sobol(self.num_contexts, space.d_c, seed).to(low)
        box = space.snap_contexts(torch.stack([low, high]))
        ends = box.tolist()
        values = {
            j: column[
                bisect_left(column, ends[0][j]) : bisect_right(column, ends[1][j])
            ]
            for j, column in space.context_values.items()
        }
        return Judge(
            contexts=ContextSet(space.snap_contexts(low + unit * (high - low))),
            ball=lambda points: FullSimplex(),
            box=box,
            values=values,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class DecisionModelAlgorithm(AcquisitionAlgorithm):
    r"""A confidence bound of a model of ``x`` alone; the context is noise to it.

    .. math:: \mu(x) + \sqrt{\beta}\, \sigma(x)

    Pending decisions are hallucinated [Desautels2014bucb]_: the model is conditioned on
    its own mean there, which leaves the mean as it is and shrinks the variance.

    The values of a recommendation come from a second model, of ``[x, c]``, under the
    empirical contexts (or ``reference``), so that they compare with those of the other
    recipes.
    """

    uses_contexts: ClassVar[bool] = False

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
        r"""The upper confidence bound of the model of ``x``."""
        # Not BoTorch's class, which raises variances to 1e-12 in units of y.
        return EnlargedConfidenceUCB(model, beta, 0.0, X_pending=X_pending)

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The empirical contexts, taken at their word."""
        return self.data_contexts(history, space), NoAmbiguity()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GPUCB(DecisionModelAlgorithm):
    r"""``gp_ucb``: the plain upper confidence bound of a model of ``x`` alone.

    [Srinivas2010gpucb]_.
    """

    name: ClassVar[str] = "gp_ucb"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomSearch(JudgedAlgorithm):
    r"""``random``: decisions drawn uniformly from the box, or from the list.

    It needs no data. Its recommendation is that of ``erbo`` on the same history.

    Args:
        feasibility: How surely a recommendation has to meet outcome constraints.

    Example:
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> nothing = torch.empty(0, 1).double()
        >>> history = History(X=nothing, C=nothing, Y=nothing, contexts=nothing)
        >>> RandomSearch().propose(history, SearchSpace(unit, unit), q=3).shape
        torch.Size([3, 1])
    """

    name: ClassVar[str] = "random"
    needs_data: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = True
    judged_by: ClassVar[type[ModelBasedAlgorithm]] = EmpiricalRisk

    feasibility: float = 0.95

    def _propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int,
        X_pending: Tensor | None,
        seed: int,
        candidates: Tensor | None,
    ) -> Tensor:
        # Runs under the seed; drawn on the CPU, so that every device sees the same.
        if candidates is not None:
            order = torch.randperm(len(candidates)).to(candidates.device)
            return best_rows(candidates, order, q, X_pending)
        # One draw is skipped per pending decision: the same seed goes on, not again.
        skipped = 0 if X_pending is None else len(X_pending)
        if not space.is_box:
            return sample(space, skipped + q, seed)[skipped:]
        unit = torch.rand(skipped + q, space.d_x, dtype=torch.double)[skipped:]
        unit = unit.to(space.bounds)
        return space.bounds[0] + unit * (space.bounds[1] - space.bounds[0])
