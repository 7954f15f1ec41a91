"""Batches of decisions, chosen jointly, by Monte Carlo over posterior sample paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_points,
)
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_decision_columns,
    check_objective,
    context_columns,
    num_inputs,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior.paths import PosteriorPaths, supports_paths


class PathwiseBatchAcquisitionFunction(AcquisitionFunction, ABC):
    r"""The best decision of a batch on each posterior sample path, averaged.

    .. math::
        \alpha(x_1, \dots, x_q) = \frac1S \sum_{s=1}^S \max_{j \le q} u_s(x_j)

    ``u_s(x)`` is the utility of one decision on path ``f_s``: the path's values over
    the contexts, collapsed by the objective ``g``. The paths are drawn once, when the
    object is made, and stay: the function is deterministic, and ``optimize_acqf`` can
    climb it. One path is a function of decision and context, so no covariance between
    the ``q n`` joint inputs is ever formed: the cost is linear in ``q``, in the number
    of contexts and in the number of paths.

    *Pending decisions* join the maximum over ``j``, as in BoTorch. That is also what
    ``optimize_acqf(sequential=True)`` uses. Since a pending decision sits on the same
    paths, no context has to be guessed for it.

    ``num_features`` need not be large: with any number the mean and the covariance of
    the paths are those of the posterior; with more, several values together come closer
    to being Gaussian. The time goes with ``num_paths * num_features``.

    The paths belong to the model as it is now: with new data or new hyper-parameters
    make a new acquisition function.
    """

    _pending_utility: Tensor | None

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int,
        num_features: int,
        seed: int | None,
        context_indices: Sequence[int] | None,
        memory_budget: int,
    ) -> None:
        r"""Check the arguments and draw the paths.

        Args:
            model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
            context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
            objective: Collapses ``... x n`` values and the weights to ``...``.
            num_paths: The number of sample paths ``S``.
            num_features: Random features of each path's prior part.
            seed: The seed of the paths; None draws one from torch's generator.
            context_indices: The model's input columns that hold the context.
            memory_budget: Bytes for the temporaries of paths and posterior.

        Raises:
            InputDataError: A wrong context set or objective, or a count below one.
            BotorchTensorDimensionError: Context columns that do not fit the model, or
                an objective for another number of contexts.
            UnsupportedError: A model without sample paths.
        """
        super().__init__(model=model)
        check_count(num_paths, "num_paths")
        check_count(num_features, "num_features")
        check_count(memory_budget, "memory_budget")
        if seed is not None:
            check_count(seed, "seed", minimum=0)
        check_objective(objective, check_context_set(context_set))
        self.num_joint = num_inputs(model)
        self.context_indices = context_columns(
            context_indices, self.num_joint, context_set.dim
        )
        reason = supports_paths(model)
        if reason is not None:
            raise UnsupportedError(
                f"{type(self).__name__} needs posterior sample paths, and this model "
                f"has none: {reason.rstrip('.')}. DistributionallyRobustUCB takes any "
                "single-output model, one decision at a time."
            )
        self.context_set = context_set
        self.objective = objective
        self.paths = PosteriorPaths(
            cast(SingleTaskGP, model),
            self.context_indices,
            num_paths=num_paths,
            num_features=num_features,
            seed=int(torch.randint(2**31, ())) if seed is None else seed,
            memory_budget=memory_budget,
        )
        self.register_buffer("_pending_utility", None, persistent=False)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Tell the acquisition function which decisions are being evaluated.

        Args:
            X_pending: Decisions ``m x d_x``, or None for none.

        Raises:
            BotorchTensorDimensionError: A wrong number of columns.
            InputDataError: NaN, infinite or integer entries.
        """
        if isinstance(X_pending, Tensor) and X_pending.numel() == 0:
            X_pending = None
        if X_pending is not None:
            check_points(X_pending, "X_pending", num_columns=self._num_decision_columns)
        super().set_X_pending(X_pending)
        # Constants for the optimiser: the best pending utility on each path.
        self._pending_utility = None
        if self.X_pending is not None:
            with torch.no_grad():
                utility = self._utility(self.X_pending.unsqueeze(0))  # S x 1 x m
            self._pending_utility = utility.amax(-1)  # S x 1

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate batches of decisions.

        Args:
            X: Batches of decisions, ``b x q x d_x``.

        Returns:
            One value per batch, ``b``; higher is better.
        """
        check_decision_columns(X, self._num_decision_columns)
        if X.shape[-2] == 0:
            raise BotorchTensorDimensionError(
                f"`X` has no decisions (q = 0), got shape {tuple(X.shape)}. Evaluate "
                "`b x q x d_x` with q of at least 1."
            )
        points = self.context_set.points
        if points.device != X.device or points.dtype != X.dtype:
            self.to(X)
        best = self._utility(X).amax(-1)  # S x b
        if self._pending_utility is not None:
            pending = self._pending_utility.to(X)
            best = torch.maximum(best, pending.reshape(-1, *[1] * (best.ndim - 1)))
        return best.mean(0)

    @property
    def _num_decision_columns(self) -> int:
        return self.num_joint - len(self.context_indices)

    @abstractmethod
    def _utility(self, X: Tensor) -> Tensor:
        """What each decision is worth on each path: ``b x q x d_x`` to ``S x b x q``"""
