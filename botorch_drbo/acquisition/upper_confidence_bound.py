"""Distributionally robust confidence bounds, for any objective; EC-GP-UCB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self, Unpack, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from botorch.utils.safe_math import logmeanexp
from torch import Tensor

from botorch_drbo._validation import (
    check_points,
    check_positive,
    finite_number,
)
from botorch_drbo.acquisition.analytic import COARSER, RobustAcquisitionFunction
from botorch_drbo.acquisition.feasibility import log_probability_of_feasibility
from botorch_drbo.acquisition.inputs import (
    ConfidenceBoundOptions,
    PosteriorOptions,
    check_objective,
    empty_context_set,
)
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import AmbiguitySet, RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.posterior.view import LocalMoments, MarginalPosterior, View

_TO_RANK = 0.5  # of the few contexts on which ascents begin


class _Few(NamedTuple):
    """A few contexts in place of all."""

    view: View
    objective: Objective
    weights: Tensor


class ObjectiveUCB(RobustAcquisitionFunction, ABC):
    r"""A base class: an objective of an upper confidence bound over contexts.

    .. math::
        \alpha(x) = g\big( s(x, c_1), \dots, s(x, c_n);\ w \big), \qquad
        s = \mu + \sqrt\beta\,\sigma

    Its members differ in ``g`` and ``w``, and in how these follow from contexts seen.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        outside_contexts: See ``DistributionallyRobustUCB``.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.
    """

    outside_contexts: Tensor | None
    weights: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        outside_contexts: Tensor | None = None,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(model, beta, context_set, **options)
        self.objective = check_objective(objective, context_set)
        self._few_of: dict[float, tuple[MarginalPosterior, _Few | None]] = {}
        weights = self.context_set.weights
        if outside_contexts is not None:
            ball = objective.ambiguity_set
            if ball.knows_positions or ball.keeps_support:
                raise InputDataError(
                    "`outside_contexts` needs a set that knows no distance between "
                    "contexts and may give unseen ones mass (TotalVariation, "
                    f"ChiSquared, FullSimplex), got {type(ball).__name__}. Put the "
                    "contexts into the context set, with weight zero."
                )
            check_points(
                outside_contexts, "outside_contexts", num_columns=context_set.dim
            )
            outside_contexts = outside_contexts.detach().clone()
            weights = torch.cat([weights, weights.new_zeros(1)])
        self.register_buffer("outside_contexts", outside_contexts)
        self.register_buffer("weights", weights, persistent=False)

    @classmethod
    @abstractmethod
    def from_contexts(
        cls, model: Model, contexts: Tensor, context_bounds: Tensor, **options: Any
    ) -> Self:
        r"""Build the acquisition function from the contexts seen.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``, the oldest first.
            context_bounds: The box of possible contexts, ``2 x d_c``.
            options: What else a member takes.
        """

    def _contexts(self) -> Tensor:
        points = self.context_set.points
        if self.outside_contexts is None:
            return points
        return torch.cat([points, self.outside_contexts.to(points)])

    def values(self, X: Tensor) -> Tensor:
        r"""The objective of the confidence bound."""
        return self.objective(self._scores(self._view.at(X)), self.weights.to(X))

    def _ranking(self, X: Tensor) -> Tensor:
        few = self._few(_TO_RANK)
        if few is not None:
            scores = self._at_contexts(few.view.at(X), slice(None))
            return few.objective.lower_bound(scores, few.weights.to(X))
        scores = self._scores(self._view.coarse().at(X), COARSER)
        return self.objective.lower_bound(scores, self.weights.to(X))

    def on_few(self) -> OnFewContexts | None:
        """The same on a few contexts; None where the list is short."""
        self._refresh()
        few = self._few(1.0)
        return None if few is None else OnFewContexts(self, few)

    def _few(self, share: float) -> _Few | None:
        """A few contexts to rank decisions on, where the list is long."""
        posterior, known = self.posterior, self._few_of.get(share)
        if known is None or known[0] is not posterior:
            made, found = None, self.objective.few(self.context_set.weights, share)
            if found is not None:
                objective, few = found
                points = self.context_set.points[few.positions]
                view = posterior.over(
                    points, means=self._has_no_width, coarse=share < 1.0
                )
                made = _Few(view, objective, few.weights)
            self._few_of[share] = known = posterior, made
        return known[1]

    def _scores(self, here: LocalMoments, step: int = 1) -> Tensor:
        """The scores, and the lowest of each ``step``-th outside: ``... x (n + 1)``."""
        n = self.context_set.num_points
        scores = self._at_contexts(here, slice(n))  # ... x n
        if self.outside_contexts is None:
            return scores
        outside = self._at_contexts(here, slice(n, None, step))  # ... x m
        return torch.cat([scores, outside.amin(-1, keepdim=True)], dim=-1)

    def robust_value(self, X: Tensor) -> RobustValue:
        r"""The worst-case distribution behind the value, and its expectation.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            Worst-case value ``...``, worst-case weights ``... x n``, multiplier and
            status, of the scores at the context set (ensembles: ``... x S``). With
            outside contexts, the last weight belongs to the one with the lowest score.
        """
        self._refresh()
        ball = self.objective.ambiguity_set
        return ball.worst_case(self._scores(self._view.at(X)), self.weights.to(X))


@final
class OnFewContexts(AcquisitionFunction):
    """A bound on a few contexts, whose ascents end near those of the bound on all."""

    def __init__(self, acqf: ObjectiveUCB, few: _Few) -> None:
        super().__init__(model=acqf.model)
        self.acqf, self._few_contexts = acqf, few

    def forward(self, X: Tensor) -> Tensor:
        """Evaluate decisions ``b x 1 x d_x``."""
        return self.acqf._evaluate(self._values, X)

    def ranking(self, X: Tensor) -> Tensor:
        """That of the bound on all contexts."""
        return self.acqf.ranking(X)

    def _values(self, X: Tensor) -> Tensor:
        view, objective, weights = self._few_contexts
        scores = self.acqf._at_contexts(view.at(X), slice(None))
        return objective(scores, weights.to(X))


@final
class DistributionallyRobustUCB(ObjectiveUCB):
    r"""An upper confidence bound that is good under every plausible distribution.

    .. math::
        \alpha(x) = g\big( \mu(x, c_1) + \sqrt\beta\,\sigma(x, c_1), \dots,
                           \mu(x, c_n) + \sqrt\beta\,\sigma(x, c_n);\ w \big)

    ``g`` is the objective: with ``NoAmbiguity`` the expectation under the reference
    weights ``w``, with ``FullSimplex`` the worst case, with any other ambiguity set
    the worst expectation over that set. It is applied to the confidence bound, not to
    samples: the value is optimistic about ``f`` and pessimistic about the context. With
    ``misspecification`` the confidence bound is enlarged, see
    ``EnlargedConfidenceUCB``.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        outside_contexts: Contexts ``m x d_c`` beside the context set, of weight zero,
            to which the adversary may move probability as well. For each decision only
            the one with the lowest score counts, so they are only for sets that ignore
            distances between contexts (``knows_positions`` is false).
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta, a wrong context set or objective, or outside
            contexts with a set that knows distances.
        BotorchTensorDimensionError: Context columns that do not fit the model, or an
            ambiguity set of other contexts.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import DistributionallyRobustUCB
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
        >>> from botorch.optim import optimize_acqf
        >>> box = torch.tensor([[0.0], [1.0]], dtype=torch.double)  # of decisions alone
        >>> x, _ = optimize_acqf(acqf, bounds=box, q=1, num_restarts=2, raw_samples=16)
        >>> x.shape
        torch.Size([1, 1])

    [Kirschner2020drbo]_; the confidence bound is that of [Srinivas2010gpucb]_.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        outside_contexts: Tensor | None = None,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(
            model, beta, context_set, objective, outside_contexts, **options
        )

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        ambiguity_set: AmbiguitySet | None = None,
        beta: float | Tensor = 2.25,
        seed: int = 0,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> Self:
        r"""The worst case over a set around the contexts seen, as the recipe ``dro``.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``, equally likely.
            context_bounds: The box of possible contexts, ``2 x d_c``. A set that lets
                mass go anywhere has a list that fills it in reach.
            ambiguity_set: The set; ``TotalVariation(0.2)`` by default.
            beta: The squared width of the confidence bound.
            seed: Decides the list.
            options: The options of every confidence bound.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
        """
        around = AroundContexts()
        if ambiguity_set is not None:
            around = AroundContexts(ambiguity_set=ambiguity_set)
        state = FittedRound.of_contexts(model, contexts, context_bounds, seed=seed)
        problem = around.search_problem(state)
        objective = UncertaintyObjective.dro(problem.ambiguity_set)
        return cls(model, beta, problem.contexts, objective, **options)


@final
class ShareAboveUCB(RobustAcquisitionFunction):
    r"""A confidence bound of the share of contexts with an outcome above a threshold.

    .. math::
        \alpha(x) = \ln \sum_{i=1}^n w_i \Big( P_i + \sqrt{\beta P_i (1 - P_i)} \Big),
        \qquad P_i = P\big( f(x, c_i) > \tau \big)
            = \Phi\Big( \frac{\mu(x, c_i) - \tau}{\sigma(x, c_i)} \Big)

    The share of contexts above ``tau`` is the mean of numbers that are 0 or 1, whose
    posterior means are ``P`` and whose deviations are the roots of ``P (1 - P)``: as
    for ``DistributionallyRobustUCB``, the bound is the mean of the bounds at each
    context. With ``beta`` zero it is the logarithm of the expected share. ``f`` is the
    outcome without noise.

    Values are logarithms, so that there is a gradient where every probability is tiny.
    The shares of the models of an ensemble are averaged before.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        threshold: ``tau``, in the units of y.
        options: The options of every confidence bound; ``misspecification`` widens it.

    Raises:
        InputDataError: A negative beta, or a threshold that is not a finite number.
        BotorchTensorDimensionError: Context columns that do not fit the model.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import ShareAboveUCB
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> contexts = ContextSet.empirical(Z[:, 1:])
        >>> share = ShareAboveUCB(model, 0.0, contexts, threshold=-9.0)
        >>> share(torch.rand(2, 1, 1, dtype=torch.double)).exp().round().tolist()
        [1.0, 1.0]
    """

    _log = True
    repulsion = 0.0  # the term has the units of the outcome

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        *,
        threshold: float,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(model, beta, context_set, **options)
        self.threshold = finite_number(threshold, "threshold")

    def values(self, X: Tensor) -> Tensor:
        r"""The logarithm of the bound of the share."""
        mean, variance = self._view.at(X).moments()  # b (x S) x n
        excess = mean - self.threshold
        log_p = log_probability_of_feasibility(excess, variance)
        log_sd = 0.5 * (log_p + log_probability_of_feasibility(-excess, variance))
        bound = torch.logaddexp(log_p, log_sd + self._bound.widths(mean).log())
        return (bound + self.context_set.weights.to(bound).log()).logsumexp(-1)

    def _over_models(self, values: Tensor) -> Tensor:
        return logmeanexp(values, dim=-1)


class FiniteDifferenceUCB(RobustAcquisitionFunction):
    r"""An upper confidence bound of the general objective, by a finite difference.

    .. math::
        \alpha(x) = a\, v(u; \epsilon)
            + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}, \qquad
        u, l = \mu \pm \sqrt\beta\, \sigma

    ``v`` is the worst-case expectation of the scores over the ball of a radius, ``u``
    and ``l`` are the confidence bounds at each context (with ``misspecification`` the
    enlarged ones). For every ``h``, the second term bounds the difference quotient of
    any function between ``l`` and ``u``. The bound is loose: ``u - l`` is divided by a
    small ``h``, so the second term is nearly ``2 sqrt(beta) / h`` times a mean standard
    deviation until little is left to explore. ``DistributionallyRobustUCB`` with the
    same objective uses the exact sensitivity of ``u`` instead, which is not a bound.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: The ambiguity set and the weights ``a`` and ``b``.
        step: ``h``, in units of the radius.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta, a step that is not positive, a wrong
            context set or objective.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an ambiguity set of other contexts.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import FiniteDifferenceUCB
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = FiniteDifferenceUCB(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     beta=4.0,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.gen(TotalVariation(0.5)),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    UCB-BOCU-1 of [Tay2024bocu]_, Appendix C.2.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: UncertaintyObjective,
        *,
        step: float = 1e-3,
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        super().__init__(
            model,
            beta,
            context_set,
            **options,
        )
        if not isinstance(objective, UncertaintyObjective):
            raise InputDataError(
                "`objective` must be an UncertaintyObjective, got "
                f"{type(objective).__name__}: the difference is taken in the radius of "
                "its ambiguity set. Use DistributionallyRobustUCB for others."
            )
        self.objective = check_objective(objective, context_set)
        self.step = check_positive(step, "step")

    def values(self, X: Tensor) -> Tensor:
        r"""The upper bound of the objective with its finite difference."""
        moments, bound = self._view.at(X).moments(), self._bound
        lower, upper = bound.lower(*moments), bound(*moments)  # b (x S) x n
        weights = self.context_set.weights.to(X)
        ball = self.objective.ambiguity_set
        value = ball.value(upper, weights)  # b (x S)
        result = self.objective.value_weight * value
        if self.objective.sensitivity_weight == 0.0:
            return result
        wider = ball.worst_case(upper, weights, radius=ball.radius + self.step).value
        pessimistic = ball.value(lower, weights)
        slope = (wider - pessimistic) / self.step
        return result + self.objective.sensitivity_weight * slope


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
