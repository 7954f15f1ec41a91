"""The base of acquisition functions over decisions: columns, pending decisions."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import Signature
from typing import Any, ClassVar, Self

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_decision_columns,
    context_columns,
    count_inputs,
    with_options,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.view import join_columns
from botorch_drbo.sample_paths import PosteriorPaths

# Belongs to the user, or was computed from what does.
_OF_MODEL = (Model, PosteriorTransform, PosteriorPaths)


class DecisionAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of decisions, for a model of decisions and contexts.

    ``set_X_pending(P)`` and ``acqf.X_pending = P`` are the same thing.

    Casts (``acqf.float()``) change the buffers of the acquisition function itself. The
    model keeps its dtype: values are computed in that dtype and returned in the dtype
    of ``X``. ``.to(device)`` moves everything.

    Args:
        model: A BoTorch model of the joint input ``[x, c]``; a ``ModelListGP`` of one
            model counts as that model.
        context_set: The reference distribution of the context.
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
        posterior_transform: Combines several outputs into one, or changes the sign.
        num_inputs: The number of columns of ``[x, c]``, for a model that does not state
            it.

    Raises:
        InputDataError: The context set has another type.
        BotorchTensorDimensionError: Context columns that do not fit the model.
        UnsupportedError: A model that does not state its inputs.
    """

    __signature__: ClassVar[Signature]
    batched_pending: ClassVar[bool] = False
    """Whether there may be other pending decisions for each t-batch of ``X``."""

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        *,
        context_indices: Sequence[int] | None,
        posterior_transform: PosteriorTransform | None,
        num_inputs: int | None = None,
    ) -> None:
        super().__init__(model=only_model(model))
        self.context_set = copy.deepcopy(check_context_set(context_set))
        self.num_joint = count_inputs(self.model, num_inputs)
        self.context_indices = context_columns(
            context_indices, self.num_joint, context_set.dim
        )
        self.posterior_transform = posterior_transform
        self._X_pending: Tensor | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Tools and hosts read off the signature which options a class takes."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__signature__ = with_options(cls)

    @property
    def num_decision_columns(self) -> int:
        """``d_x``."""
        return self.num_joint - len(self.context_indices)

    @property
    def X_pending(self) -> Tensor | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Decisions ``m x d_x`` that are being evaluated, or None."""
        return self._X_pending

    @X_pending.setter
    def X_pending(self, X_pending: Tensor | None) -> None:
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Tell the acquisition function which decisions are being evaluated.

        Args:
            X_pending: Decisions ``m x d_x``, or None for none. Leading dimensions of
                size one are dropped; Monte Carlo acquisition functions also take other
                ones for each t-batch, ``b x m x d_x``.

        Raises:
            BotorchTensorDimensionError: A wrong number of columns, or t-batches where
                there can be none.
            InputDataError: NaN, infinite or integer entries.
            UnsupportedError: Pending decisions where they have no meaning.
        """
        pending = None if X_pending is None else self._checked_pending(X_pending)
        self._condition(pending)
        self._X_pending = pending

    def _checked_pending(self, X_pending: Tensor) -> Tensor | None:
        if isinstance(X_pending, Tensor):
            if X_pending.numel() == 0:
                return None
            while X_pending.ndim > 2 and len(X_pending) == 1:
                X_pending = X_pending.squeeze(0)
            if X_pending.ndim > 2 and not self.batched_pending:
                raise BotorchTensorDimensionError(
                    f"`X_pending` must be `m x {self.num_decision_columns}`, the same "
                    f"decisions for every t-batch, got shape {tuple(X_pending.shape)}."
                )
            if X_pending.requires_grad:
                warnings.warn(
                    "`X_pending` requires a gradient, and none will flow to it.",
                    BotorchWarning,
                    stacklevel=3,
                )
            flat = X_pending.flatten(0, -2) if X_pending.ndim > 2 else X_pending
            check_points(flat, "X_pending", num_columns=self.num_decision_columns)
        else:
            check_points(X_pending, "X_pending")
        return X_pending.detach().clone()

    @abstractmethod
    def _condition(self, pending: Tensor | None) -> None:
        """Take pending decisions into account, ``m x d_x``, or none."""

    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            Numbers in nearly the order of the values, ``b``, without a gradient; by
            default the values themselves.
        """
        with torch.no_grad():
            return self(X)

    def on_few(self) -> AcquisitionFunction | None:
        """A cheaper function, whose ascents end near those of this one, if any."""
        return None

    def _check_decisions(self, X: Tensor) -> None:
        check_decision_columns(X, self.num_decision_columns)

    def _check_single(self, X: Tensor) -> None:
        """Raise unless ``X`` holds decisions one by one, ``b x 1 x d_x``."""
        self._check_decisions(X)
        if X.shape[-2] != 1:
            raise UnsupportedError(
                f"{type(self).__name__} evaluates one decision at a time, got `X` of "
                f"shape {tuple(X.shape)} with q = {X.shape[-2]}. Pass "
                "`sequential=True` to `optimize_acqf`."
            )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move all tensors to a device; do not change the dtype of the model."""

        def moved(tensor: Tensor) -> Tensor:
            return tensor.to(fn(tensor.new_empty(0)).device)

        super()._apply(fn, recurse=False)
        for child in self.children() if recurse else ():
            child._apply(moved if isinstance(child, _OF_MODEL) else fn)
        return self


class OverJointInputs(AcquisitionFunction):
    r"""An acquisition function of joint inputs ``[x, c]`` that reads the decision only.

    .. math:: \alpha'([x_1, c_1], \dots, [x_q, c_q]) = \alpha(x_1, \dots, x_q)

    Ax, Xopt and many utilities of BoTorch (``ProximalAcquisitionFunction``,
    ``sample_around_best``, ``optimize_acqf_mixed_alternating``) require an acquisition
    function of all model inputs, such as this one. The value does not depend on the
    context columns, so those of a candidate have no meaning: fix them
    (``fixed_features={2: 0.0}``) or drop them.

    Args:
        acq_function: An acquisition function of decisions.

    Raises:
        UnsupportedError: An acquisition function that is not one of ours.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import (
        ...     DistributionallyRobustUCB,
        ...     OverJointInputs,
        ... )
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = DistributionallyRobustUCB(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.ro(),
        ... )
        >>> joint = OverJointInputs(acqf)
        >>> joint(torch.rand(5, 1, 2, dtype=torch.double)).shape
        torch.Size([5])
    """

    def __init__(self, acq_function: DecisionAcquisitionFunction) -> None:
        if not isinstance(acq_function, DecisionAcquisitionFunction):
            raise UnsupportedError(
                "`acq_function` must be an acquisition function of decisions from "
                f"botorch_drbo, got {type(acq_function).__name__}."
            )
        Module.__init__(self)  # the model belongs to what is wrapped
        self.acq_function = acq_function
        self._log = acq_function._log
        self.decision_columns = [
            column
            for column in range(acq_function.num_joint)
            if column not in acq_function.context_indices
        ]

    @property
    def model(self) -> Model:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The model of ``[x, c]``."""
        return self.acq_function.model

    @property
    def X_pending(self) -> Tensor | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Pending decisions as ``m x d`` joint inputs, or None.

        Their contexts are unknown; the mean of the context set is used.
        """
        decisions = self.acq_function.X_pending
        if decisions is None:
            return None
        mean = self.acq_function.context_set.mean.to(decisions).unsqueeze(0)
        columns = self.acq_function.context_indices
        return join_columns(decisions, mean, columns).squeeze(-2)

    @X_pending.setter
    def X_pending(self, X_pending: Tensor | None) -> None:
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Tell the acquisition function which decisions are being evaluated.

        Args:
            X_pending: Joint inputs ``m x d``, of which the decisions count, or
                decisions ``m x d_x``; None for none.

        Raises:
            BotorchTensorDimensionError: Another number of columns.
            InputDataError: NaN, infinite or integer entries.
            UnsupportedError: Pending decisions where they have no meaning.
        """
        if isinstance(X_pending, Tensor) and X_pending.shape[-1:] == (self._num_joint,):
            X_pending = X_pending[..., self.decision_columns]
        self.acq_function.set_X_pending(X_pending)

    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            X: Joint inputs, ``b x q x d``.

        Returns:
            One value per batch, ``b``; higher is better.

        Raises:
            BotorchTensorDimensionError: Another number of columns.
        """
        if X.shape[-1:] != (self._num_joint,):
            raise BotorchTensorDimensionError(
                f"`X` must have {self._num_joint} columns, decisions and contexts as "
                f"in the model's inputs, got shape {tuple(X.shape)}."
            )
        return self.acq_function(X[..., self.decision_columns])

    @property
    def _num_joint(self) -> int:
        return self.acq_function.num_joint
