"""The probability of meeting constraints, and acquisition functions weighted by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast, get_args

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model, ModelList
from botorch.utils.safe_math import log_fatplus, logmeanexp
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_drbo._validation import (
    check_choice,
    check_count,
    check_finite,
    check_positive,
    check_scalar,
)
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.inputs import ambiguity_set_at
from botorch_drbo.ambiguity import AmbiguitySet, RobustValue
from botorch_drbo.ambiguity.base import check_ambiguity_set
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import MarginalPosterior, marginal_posterior
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.freshness import Snapshot
from botorch_drbo.posterior.models import only_model, prior_variance, some_inputs

_MOST_DEVIATIONS = 1e6  # that a mean counts as being away from zero: log P is finite
_TEMPORARIES, _WITHOUT_GRAPH = 24, 6  # of b x n, forward and backward or forward alone


class RobustFeasibility(DecisionAcquisitionFunction):
    r"""The smallest probability of being feasible, over all plausible distributions.

    .. math::
        \alpha(x) = \log \pi(x), \qquad
        \pi(x) = \min_{q \in \mathcal U} \sum_{i=1}^n q_i\, P(x, c_i), \qquad
        P(x, c) = \prod_{j=1}^k
            \Phi\!\left( \frac{\mu_j(x, c)}{\sigma_j(x, c)} \right)

    A decision is feasible in a context if every constraint is: ``g_j(x, c) >= 0``.
    ``P`` is the posterior probability of this (each output of the model is a
    constraint, and constraints are treated as independent; for an ensemble ``P`` is the
    mean of the models' probabilities). Neither the context nor its distribution is
    known: ``pi`` is the probability under the worst distribution in the set. A
    *distributionally robust chance constraint* requires it to be at least ``1 - delta``
    [Inatsu2022chance]_.

    Values are logarithms, so that there is a gradient even if every probability is
    tiny. Worst cases scale with the scores, ``v(a P) = a v(P)``, so each row is solved
    relative to its largest probability; smaller ratios than e^-700 are raised to it.

    Pending decisions have no effect.

    Args:
        model: A fitted BoTorch model of the joint input ``[x, c]``, each output of
            which is a constraint, feasible where it is not negative: for several a
            ``ModelListGP``. For ``g(x, c) <= limit`` model ``limit - g``.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        ambiguity_set: Which distributions of the context are plausible.
            ``NoAmbiguity()`` for the probability under the reference.
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
        num_inputs: The number of columns of ``[x, c]``, for a model that does not state
            it.
        method: How moments are computed; see ``marginal_posterior``.
        memory_budget: Bytes for the temporaries of the posterior.

    Raises:
        InputDataError: Not a context set or ambiguity set, or a set whose worst case of
            a probability is not a probability (a ``floor`` other than zero).
        BotorchTensorDimensionError: Context columns that do not fit the model, or an
            ambiguity set of other contexts.
        UnsupportedError: A model without marginal moments.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import RobustFeasibility
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> feasible = RobustFeasibility(
        ...     SingleTaskGP(Z, 1 - Z.sum(dim=-1, keepdim=True)),  # x + c <= 1
        ...     ContextSet.empirical(Z[:, 1:]),
        ...     TotalVariation(0.2),
        ... )
        >>> X = torch.rand(5, 1, dtype=torch.double)
        >>> feasible.probability(X).shape
        torch.Size([5])

    For the best decision that meets a chance constraint::

        optimize_acqf(
            acqf,
            ...,
            nonlinear_inequality_constraints=[
                (lambda x: feasible.probability(x) - 0.95, True)
            ],
            batch_initial_conditions=...,  # that meet it
            options={"batch_limit": 1},
        )
    """

    _log = True

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        ambiguity_set: AmbiguitySet,
        *,
        context_indices: Sequence[int] | None = None,
        num_inputs: int | None = None,
        method: Method = "auto",
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(
            model,
            context_set,
            context_indices=context_indices,
            posterior_transform=None,
            num_inputs=num_inputs,
        )
        check_ambiguity_set(ambiguity_set)
        ambiguity_set = ambiguity_set_at(ambiguity_set, context_set, "ambiguity_set")
        self.ambiguity_set = ambiguity_set
        _check_scales(ambiguity_set, self.context_set.weights)
        check_choice(method, "method", get_args(Method))
        self.method: Method = method
        self.memory_budget = check_count(memory_budget, "memory_budget")
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the posterior of each constraint at the contexts."""
        contexts = self.context_set.points
        self._views = [
            posterior.over(contexts) for posterior in self._posteriors(self.model)
        ]
        self._made_of = Snapshot(self.model)

    def _posteriors(self, model: Model) -> list[MarginalPosterior]:
        """One for each output; those of a list by the ways of its members."""
        if isinstance(model, ModelList):
            return [
                posterior
                for member in model.models
                for posterior in self._posteriors(only_model(cast(Model, member)))
            ]
        # Each output is a constraint of its own: a unit vector picks it.
        transforms: list[PosteriorTransform | None] = [None]
        if model.num_outputs > 1:
            transforms = [
                ScalarizedPosteriorTransform(weights)
                for weights in torch.eye(model.num_outputs, dtype=torch.double)
            ]
        return [
            marginal_posterior(
                model,
                self.context_indices,
                posterior_transform=transform,
                method=self.method,
                memory_budget=self.memory_budget,
            )
            for transform in transforms
        ]

    def _condition(self, pending: Tensor | None) -> None:
        """Pending decisions change nothing."""

    def probability(self, X: Tensor) -> Tensor:
        r"""The robust probability of being feasible.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            ``pi`` of each decision, ``...``; differentiable in ``X``.
        """
        return self._of(X, self._log_probability).exp().clamp_max(1.0)

    def probabilities(self, X: Tensor) -> Tensor:
        r"""The probability of being feasible in each context.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            ``P`` at the contexts of the context set, ``... x n``.
        """
        return self._of(X, self._log_feasible).exp()

    def robust_value(self, X: Tensor) -> RobustValue:
        r"""The worst-case distribution behind the probability, and its value.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            Robust probability ``...``, worst-case weights ``... x n``, multiplier and
            status.
        """
        found = self.probabilities(X)
        return as_probability(
            self.ambiguity_set.worst_case(found, self.context_set.weights.to(found))
        )

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the logarithm of the robust probability.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            ``log pi`` of each, ``b``; higher is better.

        Raises:
            BotorchTensorDimensionError: Other columns.
            UnsupportedError: Several decisions in a batch.
        """
        self._check_single(X)
        return self._of(X.squeeze(-2), self._log_probability)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            Numbers in nearly the order of the values, ``b``, without a gradient.
        """
        self._check_single(X)
        with torch.no_grad():
            return self._of(X.squeeze(-2), self._ranking)

    def _log_probability(self, X: Tensor) -> Tensor:
        """The logarithm of ``pi`` at ``b x d_x`` decisions, ``b``."""
        return self._collapsed(X, self.ambiguity_set.value)

    def _ranking(self, X: Tensor) -> Tensor:
        return self._collapsed(X, self.ambiguity_set.lower_bound)

    def _collapsed(
        self, X: Tensor, value: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        # Worst case of probabilities from their logs. Sets are homogeneous in the
        # scores, so the largest is taken out as a factor: no underflow far from
        # feasibility.
        log = self._log_feasible(X)  # b x n
        largest = log.amax(-1, keepdim=True)
        worst = value((log - largest).exp(), self.context_set.weights.to(log))
        least = torch.finfo(log.dtype).tiny
        return largest.squeeze(-1) + worst.clamp_min(least).log()

    def _log_feasible(self, X: Tensor) -> Tensor:
        """The logarithm of ``P`` at all contexts, ``b x d_x`` to ``b x n``."""
        total = X.new_zeros(())
        for view in self._views:
            log = log_probability_of_feasibility(*view.at(X).moments())  # b (x S) x n
            # Independent constraints: logs add up. The models of an ensemble are
            # averaged as probabilities.
            total = total + (logmeanexp(log, dim=-2) if log.ndim > X.ndim else log)
        return total

    def _of(self, X: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of ``b x d_x`` at ``... x d_x``, in blocks of bounded memory."""
        self._check_decisions(X)
        if self.context_set.points.device != X.device:
            self.to(X.device)
        if not self._made_of.same():
            self._prepare()
        contexts = self._views[0].contexts
        graph = torch.is_grad_enabled() and X.requires_grad
        copies = _TEMPORARIES if graph else _WITHOUT_GRAPH
        (found,) = in_blocks(
            lambda rows: (function(rows),),
            X.reshape(-1, X.shape[-1]).to(contexts.dtype),
            copies * contexts.element_size() * len(contexts),
            self.memory_budget,
        )
        return found.reshape(X.shape[:-1] + found.shape[1:]).to(X)


def log_probability_of_feasibility(mean: Tensor, variance: Tensor) -> Tensor:
    r"""The logarithm of the probability that a normal number is not negative.

    .. math:: \log \Phi(\mu / \sigma)
    """
    least = torch.finfo(variance.dtype).tiny
    # P(g >= 0) = Phi(mu / sigma); log_ndtr keeps digits in the far tail.
    deviations = mean / variance.clamp_min(least).sqrt()
    return torch.special.log_ndtr(deviations.clamp(-_MOST_DEVIATIONS, _MOST_DEVIATIONS))


def as_probability(robust: RobustValue) -> RobustValue:
    """Without what rounding adds to a probability of one."""
    return replace(robust, value=robust.value.clamp_max(1.0))


def _check_scales(ambiguity_set: AmbiguitySet, weights: Tensor) -> None:
    """Refuse a set with scores of its own: it says nothing about probabilities."""
    with torch.no_grad():
        levels = torch.tensor([[1.0], [2.0]]).to(weights)
        # A homogeneous set doubles with the scores; one with a floor of its own does
        # not.
        found = ambiguity_set.value(levels.expand(-1, len(weights)), weights)
    if (found[1] - 2 * found[0]).abs() > 1e-6:
        raise InputDataError(
            "The worst cases of scores that are all 1 and all 2 by this "
            f"{type(ambiguity_set).__name__} are {found.tolist()}: it has scores of "
            "its own (a `floor`), which are no probabilities. Build one without."
        )


_POWER = 20.0  # of a share of the level: nine tenths of it count a tenth
_SMOOTHING = 1e-6  # in prior standard deviations: BoTorch's TAU_RELU


class FeasibilityWeighted(DecisionAcquisitionFunction):
    r"""An acquisition function, weighted by the robust probability of being feasible.

    .. math::
        \alpha_w(x) = \log \pi(x) + \begin{cases}
            \alpha(x) & \text{if } \alpha \text{ is a logarithm} \\
            \log \big( \alpha(x) - r \big)_+ & \text{otherwise}
        \end{cases}

    with ``pi`` from ``RobustFeasibility`` and a reference ``r``, the value of an
    infeasible outcome. The positive part is BoTorch's smooth ``fatplus``
    [Ament2023logei]_, increasing and positive everywhere.

    *Why not the product with the value.* A confidence bound may be negative, and
    ``alpha pi`` would then be larger for less feasible decisions. A probability should
    weight a gain. If infeasible outcomes are worth ``r``, a decision is worth ``pi
    alpha + (1 - pi) r = r + pi (alpha - r)``, and ``alpha_w`` is the logarithm of its
    gain over ``r``, as the expected improvement over an incumbent ``r`` is weighted in
    [Gardner2014constraints]_. With ``h`` the smooth positive part, the slopes of ``log
    pi + log h(alpha - r)`` are ``1 / pi > 0`` in ``pi`` and ``h' / h > 0`` in
    ``alpha``, whatever the signs of ``alpha`` and ``alpha - r``. So

    - of two decisions with equal values, the more feasible one is better;
    - of two equally feasible decisions, the one with the larger value is better; if all
      are certainly feasible, the maximiser is that of ``alpha``;
    - in other units, ``a alpha + b`` and ``a r + b``, the maximiser is the same.

    If the base function is the logarithm of an expected improvement, it already
    contains ``r``.

    *Which reference.* The best robust value among decisions known to be feasible; if
    there is none yet, the lowest value of any decision tried, so that every other
    decision is a gain and feasibility decides.

    *With a level*, that of a chance constraint ``pi(x) >= level``, the weight is

    .. math:: \min\{ \pi(x) / \ell,\ 1 \}^{20}

    instead of ``pi``. If a decision is known to be feasible with probability .6 and .8
    is required, it is useless however large its gain, and trying it teaches nothing;
    the plain weight would still favour it. A decision whose feasibility is uncertain,
    and whose probability is therefore intermediate, keeps a weight on a logarithmic
    scale. Above the level the order is that of ``alpha``.

    To find the best decision that meets a chance constraint, see ``RobustFeasibility``.

    Args:
        acq_function: An acquisition function of decisions, ``b x 1 x d_x``: ours, or
            any of a model of decisions alone. Its pending decisions stay.
        feasibility: The robust probability of being feasible.
        reference: ``r``, in the units of the values; None for a logarithm.
        level: The probability that is required; None to weight by the probability
            itself.

    Raises:
        InputDataError: Arguments of other types, a level that is not a probability, a
            reference for a logarithm, or no reference for another function.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import (
        ...     DistributionallyRobustUCB,
        ...     FeasibilityWeighted,
        ...     RobustFeasibility,
        ... )
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> contexts, ball = ContextSet.empirical(Z[:, 1:]), TotalVariation(0.2)
        >>> feasible = RobustFeasibility(
        ...     SingleTaskGP(Z, 1 - Z.sum(dim=-1, keepdim=True)), contexts, ball
        ... )
        >>> ucb = DistributionallyRobustUCB(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     2.25,
        ...     contexts,
        ...     UncertaintyObjective(ball),
        ... )
        >>> acqf = FeasibilityWeighted(ucb, feasible, reference=0.3)
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])
    """

    _log = True
    reference: Tensor | None

    def __init__(
        self,
        acq_function: AcquisitionFunction,
        feasibility: RobustFeasibility,
        *,
        reference: float | Tensor | None = None,
        level: float | None = None,
    ) -> None:
        if not isinstance(acq_function, AcquisitionFunction):
            raise InputDataError(
                "`acq_function` must be an AcquisitionFunction, got "
                f"{type(acq_function).__name__}."
            )
        if not isinstance(feasibility, RobustFeasibility):
            raise InputDataError(
                "`feasibility` must be a RobustFeasibility, got "
                f"{type(feasibility).__name__}."
            )
        super().__init__(
            feasibility.model,
            feasibility.context_set,
            context_indices=feasibility.context_indices,
            posterior_transform=None,
            num_inputs=feasibility.num_joint,
        )
        self.acq_function, self.feasibility = acq_function, feasibility
        self.register_buffer("reference", _as_reference(acq_function, reference))
        if level is not None and check_positive(level, "level") > 1.0:
            raise InputDataError(
                f"`level` must be a probability in (0, 1], got {level!r}."
            )
        self.level = level
        self._find_smoothing()
        self._X_pending = getattr(acq_function, "X_pending", None)

    def _find_smoothing(self) -> None:
        """The width of the smooth positive part, in units of the outcome."""
        model = self.acq_function.model
        known = some_inputs(model) is not None
        variance = prior_variance(model) if known else 0.0
        # A function that is certain has no scale of its own.
        self.smoothing = _SMOOTHING * (math.sqrt(variance) if variance > 0.0 else 1.0)
        self._made_of = Snapshot(model)

    def _condition(self, pending: Tensor | None) -> None:
        self.acq_function.set_X_pending(pending)

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the weighted acquisition function.

        Args:
            X: Decisions, ``b x 1 x d_x``; a batch of several is chosen one by one
                (``sequential=True``).

        Returns:
            One value per decision, ``b``; higher is better.

        Raises:
            BotorchTensorDimensionError: Other columns.
            UnsupportedError: Several decisions in a batch.
        """
        self._check_single(X)
        return self._weighted(X, self.acq_function, self.feasibility)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            Numbers in nearly the order of the values, ``b``, without a gradient.
        """
        self._check_single(X)
        base = self.acq_function
        if isinstance(base, DecisionAcquisitionFunction):
            base = base.ranking
        with torch.no_grad():
            return self._weighted(X, base, self.feasibility.ranking)

    def _weighted(
        self,
        X: Tensor,
        value: Callable[[Tensor], Tensor],
        log_probability: Callable[[Tensor], Tensor],
    ) -> Tensor:
        found = value(X)
        if self.reference is not None:
            if not self._made_of.same():
                self._find_smoothing()
            found = log_fatplus(found - self.reference.to(found), tau=self.smoothing)
        log = log_probability(X).to(found)
        if self.level is not None:
            log = _POWER * (log - math.log(self.level)).clamp_max(0.0)
        return found + log


def _as_reference(
    acq_function: AcquisitionFunction, reference: float | Tensor | None
) -> Tensor | None:
    name = type(acq_function).__name__
    if acq_function._log:
        if reference is not None:
            raise InputDataError(
                f"The values of {name} are logarithms, which need no `reference`, got "
                f"{reference}. Leave it out."
            )
        return None
    if reference is None:
        raise InputDataError(
            f"The values of {name} may be negative, and a probability weighs gains. "
            "Pass `reference`, what an infeasible outcome is worth: the best value "
            "among decisions known to be feasible, or a low one while there is none."
        )
    if not isinstance(reference, Tensor):
        reference = torch.tensor(float(reference), dtype=torch.double)
    return check_scalar(check_finite(reference, "reference"), "reference")
