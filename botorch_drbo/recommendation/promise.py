"""The uncertainty of the values that a recommendation reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.expectation import posterior_of_expectation
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.recommendation.numbers import widened

LEVEL = 0.9
"""Of the intervals that are shown where no other is asked for."""


@final
@dataclass(frozen=True, eq=False)
class Promise:
    r"""The distributions of the two values of a recommendation, by the model.

    Each is a mixture of Gaussians, of the expectation under one distribution of the
    context, from the model's joint posterior over contexts: see
    ``posterior_of_expectation``. If cross-validation shows that the model is
    overconfident, both are widened around their mean: see ``overconfidence``. They do
    not account for errors in the distributions of the context, nor for the selection of
    the decision by its predicted value.

    Attributes:
        expected: The value under the reference distribution.
        worst_case: Under the worst distribution found.
        widening: The factor by which both were widened; None if it is unknown because
            the model cannot be checked.
    """

    expected: GaussianMixture
    worst_case: GaussianMixture
    widening: float | None

    @classmethod
    def of(
        cls,
        model: Model,
        x: Tensor,
        reference: ContextSet,
        worst: ContextSet,
        widening: float | None,
    ) -> Promise:
        r"""Compute them from a model.

        Args:
            model: Of ``[x, c]``, fitted.
            x: The decision, ``d_x``.
            reference: The distribution of the context.
            worst: The worst distribution found.
            widening: The factor by which to widen; None if unknown.
        """
        expected, worst_case = (
            posterior_of_expectation(model, x, contexts.points, contexts.weights)
            for contexts in (reference, worst)
        )
        factor = 1.0 if widening is None else widening
        return cls(expected.widened(factor), worst_case.widened(factor), widening)

    def mirrored(self) -> Promise:
        """The same of minus the outcome."""
        expected, worst_case = self.expected.mirrored(), self.worst_case.mirrored()
        return Promise(expected, worst_case, self.widening)

    def words(self) -> str:
        """The source of the intervals, in words."""
        if self.widening is None:
            return "by the model, unchecked"
        stretched = widened(self.widening)
        return f"by the model, {stretched}" if stretched else "by the model"
