"""Acquisition functions of decisions, for code with joint decisions and contexts."""

from __future__ import annotations

from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor
from torch.nn import Module

from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.posterior.view import join_columns


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
