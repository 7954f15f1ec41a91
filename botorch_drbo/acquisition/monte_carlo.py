"""Batches of decisions, chosen jointly, by Monte Carlo over posterior sample paths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_count, check_nonnegative, check_scalar
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.inputs import PathOptions, check_objective
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.blocks import CACHE_BYTES, DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.freshness import Snapshot
from botorch_drbo.posterior.models import only_model
from botorch_drbo.sample_paths import sample_paths
from botorch_drbo.sample_paths.posterior_paths import supports_paths

_BYTES = 8  # of a float64
_COPIES = 24  # of the values: in the utility and its gradient, sorting included


class PathwiseBatchAcquisitionFunction(DecisionAcquisitionFunction, ABC):
    r"""The best decision of a batch on each posterior sample path, averaged.

    .. math::
        \alpha(x_1, \dots, x_q) = \frac1S \sum_{s=1}^S \max_{j \le q} u_s(x_j)

    ``u_s(x)`` is the utility of one decision on path ``f_s``: the path's values over
    the contexts, collapsed by the objective ``g``. The paths are drawn once, at
    construction, so the function is deterministic and ``optimize_acqf`` can maximise
    it. A path is a function of decision and context, so the covariance between the ``q
    n`` joint inputs is not needed: the cost is linear in ``q``, in the number of
    contexts and in the number of paths.

    *Pending decisions* join the maximum over ``j``, as in BoTorch.
    ``optimize_acqf(sequential=True)`` uses this too. Pending decisions are evaluated on
    the same paths, so no context is needed for them.

    ``num_features`` need not be large: with any number the mean and the covariance of
    the paths are those of the posterior; with more, joint distributions are closer to
    Gaussian. The time is proportional to ``num_paths * num_features``.

    With a ``posterior_transform`` of one weight, paths and means are multiplied by it:
    -1 minimises the outcome, and the objective then guards against high outcomes.

    *Changes of the model.* At the start of each call the training data, all parameters
    and buffers of the model and of the posterior transform, and given noise are
    compared with those from which the paths were drawn; after a change the paths are
    drawn again with the same seed. Changes that ``RobustAcquisitionFunction`` does not
    detect are not detected here either.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``, or a
            ``ModelEnsemble``, whose members have an equal share of the paths.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        options: The options of every average over paths:
            ``botorch_drbo.acquisition.inputs.PathOptions``.

    Raises:
        InputDataError: A wrong context set or objective, or a count below one.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an objective for another number of contexts.
        UnsupportedError: A model without sample paths.
    """

    batched_pending = True
    _pending_utility: Tensor | None

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int = 128,
        num_features: int = 64,
        seed: int | None = None,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        reason = supports_paths(only_model(model), posterior_transform)
        if reason is not None:
            raise UnsupportedError(
                f"{type(self).__name__} needs posterior sample paths, and this model "
                f"has none: {reason.rstrip('.')}. DistributionallyRobustUCB takes any "
                "single-output model, one decision at a time."
            )
        super().__init__(
            model,
            context_set,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
        )
        check_count(num_paths, "num_paths")
        check_count(num_features, "num_features")
        check_count(memory_budget, "memory_budget")
        if seed is not None:
            check_count(seed, "seed", minimum=0)
        self.objective = check_objective(objective, context_set)
        self.num_paths, self.num_features = num_paths, num_features
        self.seed = int(torch.randint(2**31, ())) if seed is None else seed
        self.memory_budget = memory_budget
        self._draw()
        self.register_buffer("_pending_utility", None, persistent=False)

    def _draw(self) -> None:
        """Draw the paths, and compute what else follows from the model."""
        made_of: list[Module] = [self.model]
        if self.posterior_transform is not None:
            made_of.append(self.posterior_transform)
        self.paths = sample_paths(
            self.model,
            self.context_indices,
            num_paths=self.num_paths,
            num_features=self.num_features,
            seed=self.seed,
            posterior_transform=self.posterior_transform,
            memory_budget=self.memory_budget,
        )
        self._prepare()
        self._made_of = Snapshot(*made_of)

    @abstractmethod
    def _prepare(self) -> None:
        """Compute what a utility needs beside the paths."""

    def _condition(self, pending: Tensor | None) -> None:
        # Constants for the optimiser: the best pending utility on each path.
        self._pending_utility = None
        if pending is not None:
            with torch.no_grad():
                if pending.ndim == 2:
                    pending = pending.unsqueeze(0)
                self._pending_utility = self._utilities(pending).amax(-1)  # S x b

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate batches of decisions.

        Args:
            X: Batches of decisions, ``b x q x d_x``.

        Returns:
            One value per batch, ``b``; higher is better.
        """
        self._check_decisions(X)
        if X.shape[-2] == 0:
            raise BotorchTensorDimensionError(
                f"`X` has no decisions (q = 0), got shape {tuple(X.shape)}. Evaluate "
                "`b x q x d_x` with q of at least 1."
            )
        self._refresh(X)
        return self._over_paths(self._utilities(X).amax(-1))

    def _refresh(self, X: Tensor) -> None:
        """Go to the device of the decisions; draw anew if the model has changed."""
        if self.context_set.points.device != X.device:
            self.to(X.device)  # not the dtype: that would round the user's model
        if not self._made_of.same():
            self._draw()
            self._condition(self.X_pending)

    def _over_paths(self, best: Tensor) -> Tensor:
        """From the utility of the batches on each path, ``S x b``, to their values."""
        if self._pending_utility is not None:
            best = torch.maximum(best, self._expand_like(self._pending_utility, best))
        return best.mean(0)

    @staticmethod
    def _expand_like(known: Tensor, best: Tensor) -> Tensor:
        """``S x b``, or ``S x 1`` for all batches, to go with ``S x ... x b``."""
        missing = [1] * (best.ndim - known.ndim)
        return known.to(best).reshape(len(known), *missing, *known.shape[1:])

    def _utilities(self, X: Tensor) -> Tensor:
        """The utility of each decision on each path: ``b x q x d_x`` to ``S x b x q``.

        In blocks of decisions and paths, whose values at all contexts fit the budget.
        """
        rows, S = X.reshape(-1, X.shape[-1]), self.paths.num_paths
        contexts = self.context_set.points.to(X)
        weights = self.context_set.weights.to(X)
        joint = torch.cat([rows, self._shared(rows, contexts)], dim=-1)
        bytes_per_path = _BYTES * _COPIES * len(contexts)  # and decision
        most = self.memory_budget // bytes_per_path
        # What the contexts are to all paths is kept: then only decisions are split.
        whole = most >= S and self.paths.keeps(len(contexts))
        num_paths = S
        if not whole:
            # Each block computes anew what the contexts are to its paths. Few paths, so
            # that this stays in the processor's cache.
            paths_in_cache = CACHE_BYTES // (
                _BYTES * self.paths.num_features * len(contexts)
            )
            num_paths = max(1, min(S, paths_in_cache, most // max(1, len(rows))))

        def utilities(first: int) -> Tensor:  # N x num_paths
            part = slice(first, first + num_paths)
            paths = self.paths if whole else self.paths.part(part)

            def of_rows(joint: Tensor) -> tuple[Tensor]:
                chunk, known = joint.tensor_split([X.shape[-1]], dim=-1)
                return (self._utility(paths(chunk, contexts), known, weights, part).mT,)

            bytes_per_row = bytes_per_path * num_paths
            (found,) = in_blocks(
                of_rows, joint, bytes_per_row, self.memory_budget, parts=num_paths
            )
            return found

        found = [utilities(first) for first in range(0, S, num_paths)]
        return torch.cat(found, dim=-1).mT.reshape(S, *X.shape[:-1])

    def _shared(self, X: Tensor, contexts: Tensor) -> Tensor:
        """What all paths share at decisions ``N x d_x``: ``N x k``, or nothing."""
        return X[:, :0]

    @abstractmethod
    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        """The utility of the values of some paths, ``S x N x n``, ``S x N``."""


class qDistributionallyRobustUCB(PathwiseBatchAcquisitionFunction):
    r"""The distributionally robust upper confidence bound of a batch, by Monte Carlo.

    .. math::
        \alpha(x_1, \dots, x_q) &= \frac1S \sum_{s=1}^S \max_{j \le q}
            g\big( a_s(x_j, c_1), \dots, a_s(x_j, c_n);\ w \big) \\
        a_s(x, c) &= \mu(x, c)
            + \sqrt{\beta \pi / 2}\; \lvert f_s(x, c) - \mu(x, c) \rvert

    ``f_s`` are posterior sample paths, ``mu`` is the exact posterior mean and ``g`` the
    objective. The factor makes the mean of ``a_s`` the confidence bound
    ``mu + sqrt(beta) sigma`` at every context. Hence, up to the Monte Carlo error,

    - with one context it is BoTorch's ``qUpperConfidenceBound`` at ``[x, c]``;
    - with q = 1 and the expectation as objective it is ``DistributionallyRobustUCB``;
    - with q = 1 and a concave objective (the worst case over any ambiguity set) it
      is *at most* that: the mean of a minimum is not more than the minimum of the
      mean. It is near, and equal only where the worst distribution is the same on
      every path.

    Applying BoTorch's bound to the robust value ``g(f_s)`` instead would, for the
    expectation, give its ``qUpperConfidenceBound`` of the expected outcome, but not
    ``DistributionallyRobustUCB``, which bounds every context separately.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        X_pending: Decisions ``m x d_x`` that are being evaluated.
        options: The options of every average over paths:
            ``botorch_drbo.acquisition.inputs.PathOptions``.

    Raises:
        InputDataError: A negative beta, a wrong context set or objective, or a
            count below one.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an objective for another number of contexts.
        UnsupportedError: A model without sample paths, or a transform that is not
            a ``ScalarizedPosteriorTransform`` of one weight.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import qDistributionallyRobustUCB
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = qDistributionallyRobustUCB(
        ...     model,
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.ro(),
        ...     seed=0,
        ... )
        >>> acqf(torch.rand(5, 4, 1, dtype=torch.double)).shape  # 5 batches of 4
        torch.Size([5])

    The bound of a batch is that of [Wilson2017reparam]_; joining it with robust
    objectives is ours.
    """

    beta: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        X_pending: Tensor | None = None,
        **options: Unpack[PathOptions],
    ) -> None:
        super().__init__(model, context_set, objective, **options)
        beta = check_scalar(check_nonnegative(beta, "beta"), "beta")
        self.register_buffer("beta", beta)
        self.set_X_pending(X_pending)

    def _prepare(self) -> None:
        posterior = marginal_posterior(
            self.model,
            self.context_indices,
            posterior_transform=self.posterior_transform,
            memory_budget=self.memory_budget,
        )
        self.view = posterior.over(self.context_set.points)

    def _shared(self, X: Tensor, contexts: Tensor) -> Tensor:
        return self.view.at(X).means()  # N x n

    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        width = (self.beta.to(values) * math.pi / 2).sqrt()
        return self.objective(shared + width * (values - shared).abs(), weights)
