"""Bayesian optimisation under contextual uncertainty: any objective, and its rivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import check_nonnegative
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    FiniteDifferenceUCB,
)
from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.exploration import ConfidenceWidth
from botorch_drbo.algorithms.path_search import ThompsonSearch
from botorch_drbo.algorithms.robust_set import AmbiguityOptions, RobustSetAlgorithm
from botorch_drbo.algorithms.worst_case import Judge
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FullSimplex,
    NoAmbiguity,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.schedules import Schedule

_BETA = 2.0  # of the experiments: 1.414 standard deviations


@dataclass(frozen=True, kw_only=True, eq=False)
class UncertaintyObjectiveOptions(AmbiguityOptions):
    r"""The general objective as options, so that a recipe can be saved.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon)

    DRO is ``(a, b) = (1, 0)``, WCS ``(0, 1)`` with radius 0, mean-risk ``(1, b)`` with
    radius 0, and GEN ``(1, 1)``; see ``UncertaintyObjective``.

    Args:
        contexts_complete: As for ``dro``, but True by default: the paper's contexts are
            a finite list, and probability moves among them.
        value_weight: ``a``, the weight of the worst-case value.
        sensitivity_weight: ``b``, the weight of the sensitivity to the radius.

    Raises:
        InputDataError: An option outside its range.
    """

    contexts_complete: bool = True  # the paper's contexts are a finite list
    value_weight: float = 1.0
    sensitivity_weight: float = 0.0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for name in ("value_weight", "sensitivity_weight"):
            weight = check_nonnegative(getattr(self, name), name)
            object.__setattr__(self, name, float(weight))  # a tensor cannot be saved
        if self.value_weight == 0.0 and self.sensitivity_weight == 0.0:
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are both zero: nothing is "
                "left to maximise."
            )
        size = self.ambiguity_set.radius if self.radius is None else self.radius
        if self.sensitivity_weight > 0.0 and not isinstance(size, Schedule):
            if float(size) == 0.0:  # some sets have no finite sensitivity there
                UncertaintyObjective.wcs(self.ambiguity_set)

    @property
    def maximises_its_worst_case(self) -> bool:
        """Not where the sensitivity counts too."""
        return (self.value_weight, self.sensitivity_weight) == (1.0, 0.0)

    def _contexts_and_objective(
        self, model: SingleTaskGP, history: History, space: SearchSpace, seed: int
    ) -> tuple[ContextSet, UncertaintyObjective]:
        contexts, ball = self.robust_set(model, history, space, seed=seed)
        objective = UncertaintyObjective(
            ball, self.value_weight, self.sensitivity_weight
        )
        return contexts, objective


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonSampling(UncertaintyObjectiveOptions, ThompsonSearch):
    r"""``ts_bocu``: the decision that is best for one posterior sample path.

    .. math:: x = \arg\max_x g\big( f(x, c_1), \dots, f(x, c_n);\ p \big), \qquad
        f \sim \text{posterior}

    with ``p`` the empirical distribution of the contexts seen so far, or ``reference``,
    and ``g`` the general objective. Each decision has a path of its own: a batch of
    ``q``, or one asked while others are pending, follows independent guesses. There is
    no ``beta`` to choose.

    The recommendation is best for ``g`` of the posterior mean.

    Args:
        num_features: Random Fourier features of a path.

    Example:
        >>> import torch
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> gen = ThompsonSampling(sensitivity_weight=1.0)
        >>> listed = torch.linspace(0, 1, 11).double().unsqueeze(-1)
        >>> gen.propose(history, SearchSpace(unit, unit), candidates=listed).shape
        torch.Size([1, 1])

    TS-BOCU [Tay2024bocu]_, Algorithm 1.
    """

    name: ClassVar[str] = "ts_bocu"

    def robust_objective(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, Objective]:
        r"""The general objective, around the contexts seen or the reference."""
        return self._contexts_and_objective(model, history, space, seed)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class UCBBOCU1(UncertaintyObjectiveOptions, AcquisitionAlgorithm):
    r"""``ucb_bocu_1``: an upper bound of the general objective.

    .. math:: a\, v(u; \epsilon) + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}

    with ``u`` and ``l`` the upper and lower confidence bounds at each context and a
    small ``h``; see ``FiniteDifferenceUCB``.

    Args:
        beta: As for all recipes; by default 2, as in the paper's experiments.
        step: ``h``, in units of the radius.

    [Tay2024bocu]_, Appendix C.2, version 1.
    """

    name: ClassVar[str] = "ucb_bocu_1"

    beta: Schedule | ConfidenceWidth | float = _BETA
    step: float = 1e-3

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if not check_nonnegative(self.step, "step") > 0:
            raise InputDataError(f"`step` must be positive, got {self.step}.")

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
        r"""The value of the upper bound, and the difference of both bounds."""
        contexts, objective = self._contexts_and_objective(model, history, space, seed)
        return FiniteDifferenceUCB(
            model, beta, contexts, objective, step=self.step, X_pending=X_pending
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class UCBBOCU2(UncertaintyObjectiveOptions, AcquisitionAlgorithm):
    r"""``ucb_bocu_2``: the general objective of the upper confidence bound.

    .. math:: a\, v(u; \epsilon) + b\, \delta(u; \epsilon)

    with ``u`` the upper confidence bound at each context. It is optimistic about the
    value only: the sensitivity of ``u`` bounds nothing.

    Args:
        beta: As for all recipes; by default 2, as in the paper's experiments.

    [Tay2024bocu]_, Appendix C.2, version 2.
    """

    name: ClassVar[str] = "ucb_bocu_2"

    beta: Schedule | ConfidenceWidth | float = _BETA

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
        r"""The objective of the upper confidence bound."""
        contexts, objective = self._contexts_and_objective(model, history, space, seed)
        return DistributionallyRobustUCB(
            model, beta, contexts, objective, X_pending=X_pending
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class UCBSO(RobustSetAlgorithm):
    r"""``ucb_so``: the expected upper confidence bound.

    .. math:: \sum_i p_i u(x, c_i)

    with ``p`` the empirical distribution of the contexts, or ``reference``. It is
    ``erbo`` with a ``beta`` of 2 by default. [Tay2024bocu]_, Appendix C.2.
    """

    name: ClassVar[str] = "ucb_so"

    beta: Schedule | ConfidenceWidth | float = _BETA

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The distribution itself."""
        return self.data_contexts(history, space), NoAmbiguity()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class UCBRO(RobustSetAlgorithm):
    r"""``ucb_ro``: the lowest upper confidence bound.

    .. math:: \min_i u(x, c_i)

    over the contexts seen so far, or those of ``reference``, whatever their weights;
    ``beta`` is 2 by default. Contexts that are not among them do not count,
    also not for the worst case of a recommendation, unless each context column takes
    some values only: then every combination counts. [Tay2024bocu]_, Appendix C.2.
    """

    name: ClassVar[str] = "ucb_ro"

    beta: Schedule | ConfidenceWidth | float = _BETA

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""Every distribution on the contexts."""
        contexts = self.data_contexts(history, space)
        return Judge.of(contexts, FullSimplex(), space).on_its_list()
