"""The general objective, a worst case and its sensitivity weighted, and regret."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self, final, get_args

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_choice, check_nonnegative
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FiniteFamily,
    FullSimplex,
    NoAmbiguity,
)
from botorch_drbo.ambiguity.base import Few, Solver, check_ambiguity_set


class Objective(Module, ABC):
    r"""Collapses the scores over contexts to one number; higher is better.

    Args:
        ambiguity_set: Which context distributions are plausible.

    Raises:
        InputDataError: The argument is not an ambiguity set.
    """

    def __init__(self, ambiguity_set: AmbiguitySet) -> None:
        super().__init__()
        self.ambiguity_set = check_ambiguity_set(ambiguity_set)

    @abstractmethod
    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Collapse the scores over contexts.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            The objective, ``...``; differentiable once in ``values``.
        """

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Bound the objective from below, to rank rows by.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            Lower bounds of the objective, ``...``, without a gradient; by default the
            objective itself.
        """
        with torch.no_grad():
            return self(values, weights)

    def few(self, weights: Tensor, share: float = 1.0) -> tuple[Objective, Few] | None:
        r"""The objective on a few contexts that stand for all, to rank rows by.

        Args:
            weights: Reference weights, ``n``.
            share: Of the usual number of contexts.

        Returns:
            The objective of another set, and where this set is; by default None.
        """
        return None

    def upper_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Bound the objective from above, at little cost.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            Upper bounds of the objective, ``...``; by default infinity.
        """
        return torch.full_like(values[..., 0], torch.inf)


class UncertaintyObjective(Objective):
    r"""The general objective of Bayesian optimisation under contextual uncertainty.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon), \qquad \delta = dv/d\epsilon

    ``v`` is the worst-case expectation over an ambiguity set and ``delta <= 0`` its
    sensitivity to the radius. The special cases have constructors:

    ==================  ===  =========  ============  ================================
    constructor         a    b          radius        it maximises
    ==================  ===  =========  ============  ================================
    ``so()``            1    0          0             the expectation
    ``ro()``            1    0          all           the worst context
    ``dro(set)``        1    0          the set's     the worst plausible expectation
    ``wcs(set)``        0    1          0             minus what a small shift costs
    ``mean_risk(...)``  1    ``b``      0             the expectation less that cost
    ``gen(set)``        1    1          the set's     both, at the set's radius
    ==================  ===  =========  ============  ================================

    Args:
        ambiguity_set: Which context distributions are plausible.
        value_weight: ``a`` (the paper's alpha), not negative.
        sensitivity_weight: ``b`` (the paper's beta), not negative.
        solver: How a worst case is found. ``"cvxpylayers"`` solves cvxpy's description
            of the set row by row, ten to a thousand times slower: for checks.

    Raises:
        InputDataError: A negative weight, something that is no ambiguity set, a
            weighted sensitivity that is infinite at the radius of the set or asked of
            cvxpylayers, or another solver.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> f, p = torch.tensor([[1.0, 3.0], [5.0, 4.0]]), torch.tensor([0.5, 0.5])
        >>> UncertaintyObjective.ro()(f, p)
        tensor([1., 4.])
        >>> UncertaintyObjective.dro(TotalVariation(0.5))(f, p)
        tensor([1.5000, 4.2500])
        >>> UncertaintyObjective.mean_risk(TotalVariation(0.5), 0.5)(f, p)
        tensor([1.5000, 4.2500])

    [Tay2024bocu]_, Table 1.
    """

    def __init__(
        self,
        ambiguity_set: AmbiguitySet,
        value_weight: float = 1.0,
        sensitivity_weight: float = 0.0,
        solver: Solver = "exact",
    ) -> None:
        super().__init__(ambiguity_set)
        check_choice(solver, "solver", get_args(Solver))
        if sensitivity_weight > 0 and solver != "exact":
            raise InputDataError(
                f"A sensitivity has no gradient by `solver={solver!r}`. Leave its "
                'weight at zero, or use `solver="exact"`.'
            )
        check_nonnegative(value_weight, "value_weight")
        check_nonnegative(sensitivity_weight, "sensitivity_weight")
        if sensitivity_weight > 0 and ambiguity_set.radius == 0:
            _at_zero(ambiguity_set)
        self.value_weight = value_weight
        self.sensitivity_weight = sensitivity_weight
        self.solver: Solver = solver

    @classmethod
    def so(cls) -> Self:
        r"""Stochastic optimisation: the expectation under the reference."""
        return cls(NoAmbiguity())

    @classmethod
    def ro(cls) -> Self:
        r"""Robust optimisation: the worst context."""
        return cls(FullSimplex())

    @classmethod
    def dro(cls, ambiguity_set: AmbiguitySet, solver: Solver = "exact") -> Self:
        r"""Distributionally robust optimisation: the worst plausible expectation.

        Args:
            ambiguity_set: Which context distributions are plausible.
            solver: How it is found.
        """
        return cls(ambiguity_set, solver=solver)

    @classmethod
    def wcs(cls, ambiguity_set: AmbiguitySet) -> Self:
        r"""Worst-case sensitivity: how little a small shift of the reference costs.

        Args:
            ambiguity_set: Measures the shift. Its radius is ignored; zero is used.

        Raises:
            InputDataError: A set whose sensitivity at radius zero is infinite.
        """
        return cls(_at_zero(ambiguity_set), 0.0, 1.0)

    @classmethod
    def mean_risk(cls, ambiguity_set: AmbiguitySet, sensitivity_weight: float) -> Self:
        r"""The expectation less a multiple of what a small shift costs.

        Args:
            ambiguity_set: Measures the shift. Its radius is ignored; zero is used.
            sensitivity_weight: The weight of the sensitivity.

        Raises:
            InputDataError: A set whose sensitivity at radius zero is infinite, or a
                negative weight.
        """
        return cls(_at_zero(ambiguity_set), 1.0, sensitivity_weight)

    @classmethod
    def gen(cls, ambiguity_set: AmbiguitySet) -> Self:
        r"""The worst plausible expectation, and how little a wider set would cost.

        Args:
            ambiguity_set: Which context distributions are plausible.
        """
        return cls(ambiguity_set, 1.0, 1.0)

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Collapse the scores over contexts.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            The objective, ``...``; differentiable once in ``values``.
        """
        if self.value_weight == 0.0:
            return self.sensitivity_weight * self.ambiguity_set.sensitivity(
                values, weights
            )
        if self.solver != "exact":
            found = self.ambiguity_set.worst_case(values, weights, self.solver)
            return self.value_weight * found.value
        if self.sensitivity_weight == 0.0:
            return self.value_weight * self.ambiguity_set.value(values, weights)
        both = self.ambiguity_set.worst_case_and_sensitivity(values, weights)
        robust, sensitivity = both
        return self.value_weight * robust.value + self.sensitivity_weight * sensitivity

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""A cheap lower bound where the set has one for the value alone.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            ``a`` times the lower bound of the set if the sensitivity has no weight;
            else the objective.
        """
        if self.sensitivity_weight > 0.0:
            return super().lower_bound(values, weights)
        return self.value_weight * self.ambiguity_set.lower_bound(values, weights)

    def few(self, weights: Tensor, share: float = 1.0) -> tuple[Objective, Few] | None:
        r"""The same on the few contexts of the set, if the value alone counts.

        Args:
            weights: Reference weights, ``n``.
            share: Of the usual number of contexts.

        Returns:
            The objective and its contexts; None where the set has none.
        """
        found = self.ambiguity_set.few(weights, share)
        if found is None or self.sensitivity_weight > 0.0:
            return None
        return UncertaintyObjective(found.ambiguity_set, self.value_weight), found

    def upper_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The weighted expectation, if the set contains the reference.

        The sensitivity is not positive then.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``, on the simplex.

        Returns:
            Upper bounds of the objective, ``...``; infinity if the set may not contain
            the reference.
        """
        if not self.ambiguity_set.holds_reference:
            return super().upper_bound(values, weights)
        inside = values[..., : weights.shape[-1]]  # of a set with further candidates
        return self.value_weight * (inside * weights).sum(-1)


def _at_zero(ambiguity_set: AmbiguitySet) -> AmbiguitySet:
    if not check_ambiguity_set(ambiguity_set).finite_at_zero:
        raise InputDataError(
            f"{type(ambiguity_set).__name__} has no finite sensitivity at radius zero: "
            "its value falls like the square root of the radius there. Use "
            "UncertaintyObjective(ambiguity_set, ...) with a positive radius, or "
            "TotalVariation, MaximumMeanDiscrepancy or Wasserstein."
        )
    return ambiguity_set.with_radius(0.0)


@final
class WorstRegret(Objective):
    r"""Minus the largest regret: never far from the best, whichever world comes.

    .. math:: g = -\max_k \Big( \max_{x'} E_k(x') - E_k(x) \Big), \qquad
        E_k(x) = \sum_i Q_{ki}\, f_i(x)

    Minimax regret over a finite family [Savage1951]_: what a decision lacks in each
    world to the decision that would have been best there.

    Args:
        ambiguity_set: The family, ``K`` distributions.
        best: The best expectation in each of them, ``K``.

    Raises:
        BotorchTensorDimensionError: Another number of distributions.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FiniteFamily
        >>> from botorch_drbo.objectives import WorstRegret
        >>> worlds = FiniteFamily(torch.eye(2))
        >>> values, weights = torch.tensor([[3.0, 1.0], [2.0, 2.0]]), torch.ones(2) / 2
        >>> WorstRegret(worlds, torch.tensor([3.0, 2.0]))(values, weights)
        tensor([-1., -1.])
    """

    best: Tensor
    ambiguity_set: FiniteFamily

    def __init__(self, ambiguity_set: FiniteFamily, best: Tensor) -> None:
        super().__init__(ambiguity_set)
        if best.shape != ambiguity_set.distributions.shape[:1]:
            raise BotorchTensorDimensionError(
                f"`best` must have {len(ambiguity_set.distributions)} entries, one for "
                f"each distribution, got shape {tuple(best.shape)}."
            )
        self.register_buffer("best", best.detach().clone())

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Minus the largest regret of each row of scores.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, which do not matter.

        Returns:
            ``...``, zero or negative; differentiable in ``values``.
        """
        return (self.ambiguity_set.expectations(values) - self.best.to(values)).amin(-1)
