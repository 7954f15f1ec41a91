r"""Expected improvement of an expectation over contexts, in closed form."""

from __future__ import annotations

from typing import Unpack, final

import torch
from botorch.acquisition.analytic import _log_ei_helper
from botorch.models.model import Model
from botorch.utils.safe_math import logmeanexp
from torch import Tensor

from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.analytic import PosteriorAcquisitionFunction
from botorch_drbo.acquisition.options import MomentOptions
from botorch_drbo.contexts import ContextSet


@final
class LogExpectedImprovementOfExpectation(PosteriorAcquisitionFunction):
    r"""Log expected improvement of the expectation over the contexts, in closed form.

    .. math::
        g(x) = \sum_i w_i f(x, c_i) \sim N\big( m(x), s^2(x) \big), \qquad
        m(x) = w' \mu(x, C), \quad s^2(x) = w' \Sigma(x) w

    .. math::
        \alpha(x) = \log E\big[ (g(x) - g^\star)_+ \big]
            = \log s(x) + \log\big( \phi(u) + u\, \Phi(u) \big), \qquad
        u = \frac{m(x) - g^\star}{s(x)}, \quad g^\star = \max_j m(x_j)

    The expectation is itself Gaussian, so no sampling is needed. :math:`\Sigma(x)` is
    the joint posterior covariance over the contexts: model errors at different contexts
    partly cancel, while a bound that adds up their deviations, as
    ``DistributionallyRobustUCB`` does, overstates the uncertainty of the expectation.

    The incumbent :math:`g^\star` is the largest posterior mean of ``g`` among the
    decisions tried, because ``g`` itself is never observed: outcomes are noisy and
    belong to one context each. BoTorch's ``LogExpectedImprovement`` does the same for
    noisy data. ``qLogDistributionallyRobustNoisyExpectedImprovement`` uses the
    incumbent of each sample path instead, which is better if much is unknown at the
    decisions tried.

    For an ensemble, the value is the logarithm of the mean of its models' expected
    improvements, each with its own incumbent. If the units of the outcome change, all
    values change by the same constant.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        X_baseline: The decisions tried, ``t x d_x``.
        context_set: The distribution of the context, ``n`` contexts of ``d_c`` columns.
        X_pending: Decisions ``m x d_x`` that are being evaluated.
        options: The options of functions of posterior moments; see ``MomentOptions``.

    Raises:
        InputDataError: No decisions tried or bad entries, or a wrong context set.
        BotorchTensorDimensionError: Columns that do not fit the model.
        UnsupportedError: A model that is not single-output, or whose outcomes are not
            jointly Gaussian.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import LogExpectedImprovementOfExpectation
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = LogExpectedImprovementOfExpectation(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     X_baseline=Z[:, :1],
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    The logarithm is that of [Ament2023logei]_; the expected improvement of an
    integral over contexts is that of [Williams2000integrated]_.
    """

    _log = True
    X_baseline: Tensor

    def __init__(
        self,
        model: Model,
        X_baseline: Tensor,
        context_set: ContextSet,
        *,
        X_pending: Tensor | None = None,
        **options: Unpack[MomentOptions],
    ) -> None:
        super().__init__(model, context_set, **options)
        check_points(X_baseline, "X_baseline", num_columns=self.num_decision_columns)
        self.register_buffer("X_baseline", X_baseline.detach().clone())
        self.set_X_pending(X_pending)

    def _prepare(self, joint: Tensor | None) -> None:
        contexts, weights = self.context_set.points, self.context_set.weights
        self.integral = self.posterior.integral(contexts, weights)
        with torch.no_grad():  # pending decisions leave the mean as it is
            self._bar = self.integral(self.X_baseline)[0].amax(0)

    def values(self, X: Tensor) -> Tensor:
        r"""The logarithm of the expected improvement, of each model of an ensemble."""
        mean, variance = self.integral(X)  # b (x S)
        deviation = variance.clamp_min(self.min_variance).sqrt()
        gain = (mean - self._bar.to(mean)) / deviation
        return deviation.log() + _log_ei_helper(gain)

    def _over_models(self, values: Tensor) -> Tensor:
        return logmeanexp(values, dim=-1)
