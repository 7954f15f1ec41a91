"""Distributionally robust upper confidence bound, for any objective over contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self, Unpack, final

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.base import COARSER, RobustAcquisitionFunction
from botorch_drbo.acquisition.inputs import check_objective
from botorch_drbo.acquisition.options import ConfidenceBoundOptions
from botorch_drbo.adversaries.around_contexts import AroundContexts
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.ambiguity import AmbiguitySet, RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.posterior.view import LocalMoments


class ObjectiveUCB(RobustAcquisitionFunction, ABC):
    r"""A base class: an objective of an upper confidence bound over contexts.

    .. math::
        \alpha(x) = g\big( s(x, c_1), \dots, s(x, c_n);\ w \big), \qquad
        s = \mu + \sqrt\beta\,\sigma

    Its members differ in ``g`` and ``w``, and in how these follow from contexts seen.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        outside_contexts: See ``DistributionallyRobustUCB``.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.options.ConfidenceBoundOptions``.
    """

    outside_contexts: Tensor | None
    weights: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        outside_contexts: Tensor | None = None,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(model, beta, context_set, **options)
        self.objective = check_objective(objective, context_set)
        weights = self.context_set.weights
        if outside_contexts is not None:
            ball = objective.ambiguity_set
            if ball.knows_positions or ball.keeps_support:
                raise InputDataError(
                    "`outside_contexts` needs a set that knows no distance between "
                    "contexts and may give unseen ones mass (TotalVariation, "
                    f"ChiSquared, FullSimplex), got {type(ball).__name__}. Put the "
                    "contexts into the context set, with weight zero."
                )
            check_points(
                outside_contexts, "outside_contexts", num_columns=context_set.dim
            )
            outside_contexts = outside_contexts.detach().clone()
            weights = torch.cat([weights, weights.new_zeros(1)])
        self.register_buffer("outside_contexts", outside_contexts)
        self.register_buffer("weights", weights, persistent=False)

    @classmethod
    @abstractmethod
    def from_contexts(
        cls, model: Model, contexts: Tensor, context_bounds: Tensor, **options: Any
    ) -> Self:
        r"""Build the acquisition function from the contexts seen.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``, the oldest first.
            context_bounds: The box of possible contexts, ``2 x d_c``.
            options: What else a member takes.
        """

    def _contexts(self) -> Tensor:
        points = self.context_set.points
        if self.outside_contexts is None:
            return points
        return torch.cat([points, self.outside_contexts.to(points)])

    def values(self, X: Tensor) -> Tensor:
        r"""The objective of the confidence bound."""
        return self.objective(self._scores(self._view.at(X)), self.weights.to(X))

    def _ranking(self, X: Tensor) -> Tensor:
        scores = self._scores(self._view.coarse().at(X), COARSER)
        return self.objective.lower_bound(scores, self.weights.to(X))

    def _scores(self, here: LocalMoments, step: int = 1) -> Tensor:
        """The scores, and the lowest of each ``step``-th outside: ``... x (n + 1)``."""
        n = self.context_set.num_points
        scores = self._at_contexts(here, slice(n))  # ... x n
        if self.outside_contexts is None:
            return scores
        outside = self._at_contexts(here, slice(n, None, step))  # ... x m
        return torch.cat([scores, outside.amin(-1, keepdim=True)], dim=-1)

    def robust_value(self, X: Tensor) -> RobustValue:
        r"""The worst-case distribution behind the value, and its expectation.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            Worst-case value ``...``, worst-case weights ``... x n``, multiplier and
            status, of the scores at the context set (ensembles: ``... x S``). With
            outside contexts, the last weight belongs to the one with the lowest score.
        """
        self._refresh()
        ball = self.objective.ambiguity_set
        return ball.worst_case(self._scores(self._view.at(X)), self.weights.to(X))


@final
class DistributionallyRobustUCB(ObjectiveUCB):
    r"""An upper confidence bound that is good under every plausible distribution.

    .. math::
        \alpha(x) = g\big( \mu(x, c_1) + \sqrt\beta\,\sigma(x, c_1), \dots,
                           \mu(x, c_n) + \sqrt\beta\,\sigma(x, c_n);\ w \big)

    ``g`` is the objective: with ``NoAmbiguity`` the expectation under the reference
    weights ``w``, with ``FullSimplex`` the worst case, with any other ambiguity set
    the worst expectation over that set. It is applied to the confidence bound, not to
    samples: the value is optimistic about ``f`` and pessimistic about the context. With
    ``misspecification`` the confidence bound is enlarged, see
    ``EnlargedConfidenceUCB``.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        outside_contexts: Contexts ``m x d_c`` beside the context set, of weight zero,
            to which the adversary may move probability as well. For each decision only
            the one with the lowest score counts, so they are only for sets that ignore
            distances between contexts (``knows_positions`` is false).
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.options.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta, a wrong context set or objective, or outside
            contexts with a set that knows distances.
        BotorchTensorDimensionError: Context columns that do not fit the model, or an
            ambiguity set of other contexts.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import DistributionallyRobustUCB
        >>> from botorch_drbo.ambiguity import FullSimplex
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = DistributionallyRobustUCB(
        ...     model,
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective(FullSimplex()),
        ... )
        >>> from botorch.optim import optimize_acqf
        >>> box = torch.tensor([[0.0], [1.0]], dtype=torch.double)  # of decisions alone
        >>> x, _ = optimize_acqf(acqf, bounds=box, q=1, num_restarts=2, raw_samples=16)
        >>> x.shape
        torch.Size([1, 1])

    [Kirschner2020drbo]_; the confidence bound is that of [Srinivas2010gpucb]_.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        outside_contexts: Tensor | None = None,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(
            model, beta, context_set, objective, outside_contexts, **options
        )

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        ambiguity_set: AmbiguitySet | None = None,
        beta: float | Tensor = 2.25,
        seed: int = 0,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> Self:
        r"""The worst case over a set around the contexts seen, as the recipe ``dro``.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``, equally likely.
            context_bounds: The box of possible contexts, ``2 x d_c``. A set that lets
                mass go anywhere has a list that fills it in reach.
            ambiguity_set: The set; ``TotalVariation(0.2)`` by default.
            beta: The squared width of the confidence bound.
            seed: Decides the list.
            options: The options of every confidence bound.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
        """
        around = AroundContexts()
        if ambiguity_set is not None:
            around = AroundContexts(ambiguity_set=ambiguity_set)
        state = FittedRound.of_contexts(model, contexts, context_bounds, seed=seed)
        problem = around.search_problem(state)
        objective = UncertaintyObjective.dro(problem.ambiguity_set)
        return cls(model, beta, problem.contexts, objective, **options)
