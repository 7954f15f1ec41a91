"""EC-GP-UCB: a confidence bound that allows for a model that is wrong."""

from __future__ import annotations

from typing import Self, Unpack, final

from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.acquisition.inputs import empty_context_set
from botorch_drbo.acquisition.options import PosteriorOptions
from botorch_drbo.acquisition.upper_confidence_bound import ObjectiveUCB
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective


@final
class EnlargedConfidenceUCB(ObjectiveUCB):
    r"""EC-GP-UCB: a confidence bound for a model that is wrong by at most ``epsilon``.

    The outcome is a function that the kernel can represent plus a perturbation of at
    most ``epsilon``. The data can then mislead the posterior mean, while more data make
    the posterior ever more certain. Therefore the confidence bound is enlarged:

    .. math::
        s(z) = \mu(z) + \Big(\sqrt\beta + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)
        \sigma(z), \qquad \alpha(x) = g\big(s(x, c_1), \dots, s(x, c_n);\ w\big)

    Without ``context_set`` the value is the score ``s`` of the model's own inputs. With
    a context set, ``g`` is any objective over the contexts, as in
    ``DistributionallyRobustUCB``. (The score with a Lipschitz penalty is
    ``LipschitzPenalizedUCB(misspecification=...)``.)

    *Units.* In the paper the kernel is at most 1, and :math:`\lambda` is the noise
    variance relative to it: :math:`\lambda = \sigma_n^2 / k_0` for a kernel of size
    :math:`k_0`, whose :math:`\sigma` is :math:`\sqrt{k_0}` times the paper's. In the
    product the size cancels, and the term added to the mean is

    .. math:: \epsilon \sqrt t\, \frac{\sigma(z)}{\sigma_n}

    with :math:`\sigma` and the noise :math:`\sigma_n` in one unit. Here this unit is
    that of y: the outcome transform is undone, and ``misspecification`` has the units
    of y as well. ``t`` and the noise are read from the model. ``t`` is the number of
    outcomes, which the proof needs; the paper's round ``t`` has one outcome fewer, so
    its root contains one more than ours.

    *Proof sketch.* A perturbation ``p`` of the ``t`` outcomes moves the mean by
    :math:`k(z, Z) (K + \Sigma)^{-1} p`, with :math:`\Sigma` the diagonal matrix of the
    noise variances. By Cauchy and Schwarz that is at most :math:`\lVert \Sigma^{1/2} (K
    + \Sigma)^{-1} k(Z, z) \rVert \, \lVert \Sigma^{-1/2} p \rVert`. The first norm is
    at most :math:`\sigma(z)`, the second at most :math:`\epsilon (\sum_i 1 /
    \sigma_i^2)^{1/2}`. This also holds for unequal noise and is the formula that is
    computed; with equal noise it reduces to the one above.

    Pending decisions shrink :math:`\sigma` and do not count in ``t``. With a
    ``ScalarizedPosteriorTransform`` of several independent outputs, ``epsilon`` is that
    of each output; the sum then runs over the outcomes of all outputs that it weighs.

    Args:
        model: A fitted single-output BoTorch model: of decisions, or with a context set
            of the joint input ``[x, c]``.
        beta: The squared width of the plain confidence bound, BoTorch's convention.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns; None
            for a model of decisions alone.
        objective: Collapses ``... x n`` scores and the weights to ``...``. It goes with
            a context set.
        options: The options of every confidence bound; see ``PosteriorOptions``.

    Raises:
        InputDataError: A negative beta or misspecification, a wrong context set or
            objective, or one of the two without the other.
        BotorchTensorDimensionError: Context columns that do not fit the model, or an
            ambiguity set of other contexts.
        UnsupportedError: A model that is not single-output, or whose noise is not
            known: only Gaussian likelihoods, ``Standardize`` and
            ``ScalarizedPosteriorTransform`` are covered.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.acquisition import EnlargedConfidenceUCB
        >>> X = torch.rand(8, 2, dtype=torch.double)
        >>> model = SingleTaskGP(X, X.sum(dim=-1, keepdim=True))
        >>> acqf = EnlargedConfidenceUCB(model, beta=2.25, misspecification=0.1)
        >>> acqf(torch.rand(5, 1, 2, dtype=torch.double)).shape
        torch.Size([5])

    [Bogunovic2021misspecified]_, eq. 14. There beta multiplies sigma itself.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        misspecification: float | Tensor,
        context_set: ContextSet | None = None,
        objective: Objective | None = None,
        **options: Unpack[PosteriorOptions],
    ) -> None:
        if (context_set is None) != (objective is None):
            given, missing = "context_set", "objective"
            if context_set is None:
                given, missing = missing, given
            raise InputDataError(
                f"Got `{given}` without `{missing}`. Pass both, or neither for a model "
                "of decisions alone."
            )
        if context_set is None or objective is None:
            context_set, objective = empty_context_set(), UncertaintyObjective.so()
        super().__init__(
            model,
            beta,
            context_set,
            objective,
            misspecification=misspecification,
            **options,
        )

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        misspecification: float | Tensor,
        objective: Objective | None = None,
        beta: float | Tensor = 2.25,
        **options: Unpack[PosteriorOptions],
    ) -> Self:
        r"""EC-GP-UCB over the contexts seen, each equally likely.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``.
            context_bounds: The box of possible contexts, ``2 x d_c``.
            misspecification: As for the class; you must choose it.
            objective: Collapses the scores; the expectation by default.
            beta: The squared width of the plain confidence bound.
            options: The options of every confidence bound.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
        """
        seen = FittedRound.of_contexts(model, contexts, context_bounds).contexts()
        objective = UncertaintyObjective.so() if objective is None else objective
        return cls(model, beta, misspecification, seen, objective, **options)
