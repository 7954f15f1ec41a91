"""Objectives: how the scores over contexts become one number per decision."""

from __future__ import annotations

from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.nn import Module

from botorch_drbo._validation import check_nonnegative
from botorch_drbo.ambiguity.base import AmbiguitySet


class UncertaintyObjective(Module):
    r"""The general objective of Bayesian optimisation under contextual uncertainty.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon), \qquad \delta = dv/d\epsilon

    ``v`` is the worst-case expectation over an ambiguity set and ``delta`` its
    sensitivity to the radius. With ``a = 1, b = 0`` it is the plain expectation for
    ``NoAmbiguity``, the worst case for ``FullSimplex``, and distributionally robust
    optimisation for any set between the two.

    Args:
        ambiguity_set: Which context distributions are plausible.
        value_weight: ``a`` (the paper's alpha), not negative.
        sensitivity_weight: ``b`` (the paper's beta).

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FullSimplex
        >>> objective = UncertaintyObjective(FullSimplex())
        >>> objective(torch.tensor([[1.0, 3.0], [5.0, 4.0]]), torch.tensor([0.5, 0.5]))
        tensor([1., 4.])

    [Tay2024bocu]_, Table 1.
    """

    def __init__(
        self,
        ambiguity_set: AmbiguitySet,
        value_weight: float = 1.0,
        sensitivity_weight: float = 0.0,
    ) -> None:
        r"""Join an ambiguity set and the two weights.

        Args:
            ambiguity_set: Which context distributions are plausible.
            value_weight: The weight of the worst-case value.
            sensitivity_weight: The weight of the sensitivity to the radius.

        Raises:
            InputDataError: A negative weight, or something that is no ambiguity set.
        """
        super().__init__()
        if not isinstance(ambiguity_set, AmbiguitySet):
            raise InputDataError(
                "`ambiguity_set` must be an AmbiguitySet, got "
                f"{type(ambiguity_set).__name__}. NoAmbiguity() gives the expectation."
            )
        check_nonnegative(value_weight, "value_weight")
        check_nonnegative(sensitivity_weight, "sensitivity_weight")
        self.ambiguity_set = ambiguity_set
        self.value_weight = value_weight
        self.sensitivity_weight = sensitivity_weight

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Collapse the scores over contexts.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The objective, ``...``.
        """
        value = self.value_weight * self.ambiguity_set.worst_case(values, weights).value
        if self.sensitivity_weight == 0.0:
            return value
        sensitivity = self.ambiguity_set.sensitivity(values, weights)
        return value + self.sensitivity_weight * sensitivity
