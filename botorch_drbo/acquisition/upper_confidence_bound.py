"""Distributionally robust upper confidence bound, for any objective over contexts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._by_hand import Chain, by_hand
from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.base import (
    Joined,
    RobustAcquisitionFunction,
)
from botorch_drbo.acquisition.inputs import check_objective
from botorch_drbo.ambiguity import (
    ChiSquared,
    FullSimplex,
    RobustValue,
    TotalVariation,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.objectives.base import SolverByHand
from botorch_drbo.posterior import (
    DEFAULT_MEMORY_BUDGET,
    Path,
)

_BLIND = (TotalVariation, ChiSquared, FullSimplex)  # to where a context lies


class DistributionallyRobustUCB(RobustAcquisitionFunction):
    r"""An upper confidence bound that is good under every plausible distribution.

    .. math::
        \alpha(x) = g\big( \mu(x, c_1) + \sqrt\beta\,\sigma(x, c_1), \dots,
                           \mu(x, c_n) + \sqrt\beta\,\sigma(x, c_n);\ w \big)

    ``g`` is the objective: with ``NoAmbiguity`` the expectation under the reference
    weights ``w``, with ``FullSimplex`` the worst case, with any other ambiguity set
    the worst expectation over that set. It is applied to the confidence bound, not to
    samples: the value is optimistic about ``f`` and pessimistic about the context.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
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
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    [Kirschner2020drbo]_; the confidence bound is that of [Srinivas2010gpucb]_.
    """

    outside_contexts: Tensor | None

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        outside_contexts: Tensor | None = None,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        num_pending_contexts: int = 8,
        num_inputs: int | None = None,
        path: Path = "auto",
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Join a model, a context distribution and an objective.

        Args:
            model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
            beta: The squared width of the confidence bound, BoTorch's convention.
            context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
            objective: Collapses ``... x n`` scores and the weights to ``...``.
            outside_contexts: Contexts ``m x d_c`` beside the context set, of weight
                zero, to which the adversary may move probability as well. Of these
                only the one with the lowest score counts, decision by decision: so
                only for sets that know no distance between contexts,
                ``TotalVariation``, ``ChiSquared`` or ``FullSimplex``.
            context_indices: The model's input columns that hold the context; by
                default the last ``d_c``.
            posterior_transform: Makes one output of several, or changes the sign.
            X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
            num_pending_contexts: Contexts that stand for a pending decision's own.
            num_inputs: The columns of ``[x, c]``, for a model that does not tell.
            path: How the posterior is computed; see ``marginal_posterior``.
            memory_budget: Bytes for the temporaries of the posterior.

        Raises:
            InputDataError: A negative beta, a wrong context set or objective.
            BotorchTensorDimensionError: Context columns that do not fit the model, or
                an ambiguity set of other contexts.
            UnsupportedError: A model that is not single-output.
        """
        super().__init__(
            model,
            beta,
            context_set,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
            X_pending=X_pending,
            num_pending_contexts=num_pending_contexts,
            num_inputs=num_inputs,
            path=path,
            memory_budget=memory_budget,
        )
        self.objective = check_objective(objective, context_set)
        if outside_contexts is not None:
            if not isinstance(objective.ambiguity_set, _BLIND):
                raise InputDataError(
                    "`outside_contexts` needs a set that knows no distance between "
                    f"contexts ({', '.join(s.__name__ for s in _BLIND)}), got "
                    f"{type(objective.ambiguity_set).__name__}. Put the contexts into "
                    "the context set, with weight zero."
                )
            check_points(
                outside_contexts, "outside_contexts", num_columns=context_set.dim
            )
            outside_contexts = outside_contexts.detach().clone()
        self.register_buffer("outside_contexts", outside_contexts)
        self._padded: Joined | None = None

    def _values(self, X: Tensor) -> Tensor:
        contexts = self.context_set.points.to(X)
        if self.outside_contexts is not None:
            contexts = self._with_contexts(self.outside_contexts, X)
        rows = self._rows_by_hand(X, contexts)
        chain = None if rows is None else self._chain(contexts)
        if rows is None or chain is None:
            return self._by_autograd(X)
        return by_hand(chain, self._by_autograd, X, rows)

    def _chain(self, contexts: Tensor) -> Chain | None:
        """What does the same as ``_by_autograd``, if there is such a chain."""
        weights = self.context_set.weights.to(contexts)
        share = self.objective.expectation_weight
        if share is not None:  # no mass ever goes to outside contexts
            return partial(self._expectation, contexts, weights.numpy(), share)
        if self.outside_contexts is not None:
            weights = self._with_nothing(weights)
        solver = self.objective.solver_by_hand(weights)
        return None if solver is None else partial(self._worst_case, contexts, solver)

    def _by_autograd(self, X: Tensor) -> Tensor:
        share = self.objective.expectation_weight
        if share is not None:
            return share * self._expected_score(X)
        return self.objective(*self._scores_and_weights(X))

    def _expectation(
        self, contexts: Tensor, weights: Any, share: float, x: Any, wanted: bool
    ) -> tuple[Any, Any]:
        """A ``Chain``."""
        local = self._hand_interpolant(x, contexts, wanted=wanted)
        found = local.expected_bound(weights)
        gradient = share * local.pull(found.pull(_ones(x))) if wanted else None
        return share * found.value, gradient

    def _worst_case(
        self, contexts: Tensor, solver: SolverByHand, x: Any, wanted: bool
    ) -> tuple[Any, Any]:
        """A ``Chain``."""
        n = self.context_set.num_points
        local = self._hand_interpolant(x, contexts, wanted=wanted)
        bounds = local.confidence_bounds(slice(n))
        if self.outside_contexts is None:
            solved = solver(bounds.value, wanted)
            if not wanted:
                return solved.value, None
            return solved.value, local.pull(bounds.pull(solved.pull(_ones(x))))
        lowest, slope = local.lowest_bound(slice(n, None))
        scores = np.concatenate([bounds.value, lowest[:, None]], axis=-1)
        solved = solver(scores, wanted)
        if not wanted:
            return solved.value, None
        weights = solved.pull(_ones(x))  # b x (n + 1)
        gradient = bounds.pull(weights[:, :n]) + weights[:, n:] * slope
        return solved.value, local.pull(gradient)

    def _scores_and_weights(self, X: Tensor) -> tuple[Tensor, Tensor]:
        weights = self.context_set.weights.to(X)
        if self.outside_contexts is None:
            return self._scores(X, self.context_set.points), weights
        with_outside = self._with_nothing(weights)
        joined = self._with_contexts(self.outside_contexts, X)
        local = self._interpolant(X, joined)
        if local is not None:  # all contexts from one skeleton
            n, width = len(weights), self._width_for(local)
            scores = local.confidence_bounds(width, self.min_variance, slice(n))
            # Only the lowest score needs a gradient.
            lowest = local.lowest_contexts(width, self.min_variance, slice(n, None))
            column = local.interpolation.mT[n + lowest]  # ... x r
            mean, variance = (local.at_skeleton * column).sum(-1)
            lowest = mean + self._width(variance)
            return torch.cat([scores, lowest.unsqueeze(-1)], dim=-1), with_outside
        scores = self._scores(X, self.context_set.points)
        with torch.no_grad():  # only the lowest score needs a gradient
            lowest = self._scores(X, self.outside_contexts).argmin(-1)  # ... (x S)
        if self.ensemble:  # each model has a lowest context of its own
            contexts = self.outside_contexts[lowest]  # ... x S x d_c
            outside = self._scores(X, contexts).diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        else:
            outside = self._scores(X, self.outside_contexts[lowest].unsqueeze(-2))
        return torch.cat([scores, outside], dim=-1), with_outside

    def _with_nothing(self, weights: Tensor) -> Tensor:
        """The weights and a zero; always the same tensor, which is checked once."""
        if self._padded is None or not self._padded.holds(weights):
            with torch.inference_mode(False):  # it is kept
                padded = torch.cat([weights, weights.new_zeros(1)])
            self._padded = Joined.of((weights,), padded)
        return self._padded.whole

    def robust_value(self, X: Tensor) -> RobustValue:
        r"""The worst case behind the value: which distribution, and how bad.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            Worst-case value ``...``, worst-case weights ``... x n``, multiplier and
            status, of the scores at the context set (ensembles: ``... x S``). With
            outside contexts a last weight belongs to the lowest of them.
        """
        self._refresh()
        inner = self._in_model_dtype(X)
        return self.objective.ambiguity_set.worst_case(*self._scores_and_weights(inner))


def _ones(x: Any) -> Any:
    return np.ones(len(x), x.dtype)
