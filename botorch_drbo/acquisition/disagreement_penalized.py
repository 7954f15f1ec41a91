r"""EDRBO: a confidence bound of an ensemble minus the disagreement of its models."""

from __future__ import annotations

from typing import Literal, Unpack, final, get_args

from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_choice, check_nonnegative
from botorch_drbo.acquisition.base import COARSER, RobustAcquisitionFunction
from botorch_drbo.acquisition.inputs import check_objective
from botorch_drbo.acquisition.options import ConfidenceBoundOptions
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior.view import ALL

_MANY_CONTEXTS = 30

PenaltyOver = Literal["decision", "batch"]
"""Whether each decision has its own penalty, or all of a call the largest."""


def check_penalty(penalty: float, penalty_over: str) -> None:
    """Raise if this is no weight, or no way to take the penalty.

    Raises:
        InputDataError: A negative weight, or another word.
    """
    check_nonnegative(penalty, "penalty")
    check_choice(penalty_over, "penalty_over", get_args(PenaltyOver))


@final
class DisagreementPenalizedUCB(RobustAcquisitionFunction):
    r"""The mean confidence bound of the models minus a penalty for disagreement.

    .. math::
        \alpha(x) = \frac1S \sum_{m=1}^S
            g\big( u_m(x, c_1), \dots, u_m(x, c_n);\ w \big)
            - \kappa\, \epsilon(x), \qquad
        u_m = \mu_m + \sqrt\beta\, \sigma_m

    .. math::
        \epsilon(x) = \max_m \sqrt{ (\bar\mu_m(x) - \bar\mu(x))^2
            + (\bar\sigma_m(x) - \bar\sigma(x))^2 }, \qquad
        \bar\mu_m = \sum_i w_i \mu_m(x, c_i), \quad
        \bar\sigma_m = \sum_i w_i \sigma_m(x, c_i)

    with :math:`\bar\mu` and :math:`\bar\sigma` the means over the ``S`` models. With
    the expectation as objective this is the paper's :math:`\bar\mu + \sqrt\beta\,
    \bar\sigma - \kappa\, \epsilon`: a decision is penalised if the models disagree
    about its value or about their uncertainty. Other objectives are an extension; the
    penalty always uses the reference distribution.

    *Units.* Both the bound and the penalty have the units of the outcome. (The paper's
    code uses standardised outcomes, which gives the same decisions.)

    *An error in the public code.* There the maximum is also taken over all decisions of
    a call. The penalty is then the same number for all rows of a batch, does not change
    their order, and has a gradient only for the row with the largest disagreement. Here
    each decision has its own penalty. ``penalty_over="batch"`` reproduces the code, for
    comparison; a value then depends on the other decisions in the call.

    Args:
        model: A fitted ensemble of single-output models of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention: 2.25 for
            the paper's 1.5 deviations.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        penalty: The weight :math:`\kappa` of the disagreement.
        penalty_over: "decision" for one penalty per decision, "batch" for the largest
            among all decisions of a call.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.options.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta, penalty or misspecification, another word for
            ``penalty_over``, or a wrong context set or objective.
        BotorchTensorDimensionError: Context columns that do not fit the model, or an
            ambiguity set of other contexts.
        UnsupportedError: A model that is no ensemble of two models or more, or not
            single-output.

    Example:
        >>> import torch
        >>> from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import DisagreementPenalizedUCB
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = DisagreementPenalizedUCB(
        ...     EnsembleMapSaasSingleTaskGP(Z, Z.sum(-1, keepdim=True), num_taus=4),
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.so(),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    [Ramazyan2026edrbo]_.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        penalty: float = 1.41,
        penalty_over: PenaltyOver = "decision",
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(model, beta, context_set, **options)
        if not self.ensemble or self.model.batch_shape[-1:] == (1,):
            raise UnsupportedError(
                f"{type(self).__name__} penalises what the models of an ensemble "
                f"disagree about, got one {type(self.model).__name__}. Give an "
                "ensemble of two models or more, for instance what the surrogate "
                "'kernels' makes, or take DistributionallyRobustUCB."
            )
        check_penalty(penalty, penalty_over)
        self.objective = check_objective(objective, context_set)
        self.penalty, self.penalty_over = float(penalty), penalty_over
        self._ranked = self._ranked_by()

    def values(self, X: Tensor) -> Tensor:
        r"""The objective of each model's bound, minus the penalty."""
        return self._penalized(X, ALL)

    def _ranking(self, X: Tensor) -> Tensor:
        return self._penalized(X, self._ranked)

    def _ranked_by(self) -> slice:
        """Every third context does for an expectation over many with like weights."""
        weights = self.context_set.weights
        many = len(weights) >= _MANY_CONTEXTS
        ball = self.objective.ambiguity_set
        is_expectation = ball.keeps_support and not ball.has_radius
        if many and is_expectation and weights.max() <= 2.0 * weights.min():
            return slice(None, None, COARSER)
        return ALL

    def _penalized(self, X: Tensor, part: slice) -> Tensor:
        mean, variance = self._view.at(X).moments(part)  # b x S x n
        weights = self._weights(mean, part)
        values = self.objective(self._bound(mean, variance), weights)  # b x S
        if self.penalty_over == "batch":
            return values
        spread = self._spread(mean, variance, weights)
        return values - self.penalty * spread.unsqueeze(-1)

    def _weights(self, like: Tensor, part: slice = ALL) -> Tensor:
        weights = self.context_set.weights.to(like)
        return weights if part == ALL else weights[part] / weights[part].sum()

    def disagreement(self, X: Tensor) -> Tensor:
        r"""The largest difference between a model and the mean of all models.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            :math:`\epsilon(x)`, ``...``, in the units of the outcome.
        """
        self._refresh()
        mean, variance = self._view.at(X).moments()
        return self._spread(mean, variance, self._weights(mean))

    def _spread(self, mean: Tensor, variance: Tensor, weights: Tensor) -> Tensor:
        """From moments ``b x S x n``, ``b``."""
        squared = mean.new_zeros(())
        for part in (mean, variance.clamp_min(self.min_variance).sqrt()):
            of_model = part @ weights  # b x S
            squared = squared + (of_model - of_model.mean(-1, keepdim=True)).square()
        # Where models agree the deviation has no slope.
        return squared.clamp_min(self.min_variance).sqrt().amax(-1)

    def _paid_by_all(self, X: Tensor) -> Tensor:
        if self.penalty_over == "decision":
            return X.new_zeros(())
        return self.penalty * self._in_blocks(self.disagreement, X).max()
