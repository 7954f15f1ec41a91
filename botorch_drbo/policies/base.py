"""The base class of policies: how the next decision is sought."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import (
    check_flag,
    check_nonnegative,
    check_options,
)
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import AmbiguitySet, NoAmbiguity
from botorch_drbo.codec.objects import storable
from botorch_drbo.confidence import (
    confidence_width,
    maximum_information_gain,
    model_confidence_width,
)
from botorch_drbo.confidence.information_gain import noise_std, with_noise_ratio
from botorch_drbo.objectives import NamedObjective, Objective, UncertaintyObjective
from botorch_drbo.posterior.ensemble import each_member, members_of
from botorch_drbo.problem.round import History
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import Schedule
from botorch_drbo.schedules.radii import Rule, as_schedule

_NUM_POINTS = 512  # of the box, among which the information gain is the largest


@final
@dataclass(frozen=True)
class ConfidenceWidth(Rule):
    r"""The ``beta`` of theory: Lemma 1 of [Bogunovic2021misspecified]_, squared.

    .. math:: \sqrt\beta = \frac{\sigma}{\sqrt\lambda} \sqrt{2 \ln\frac1\delta
        + 2 I(\text{data})} + B

    As ``beta`` of a recipe, it is computed in each round from the recipe's own model:
    its kernel, its noise and the observed inputs (see ``model_confidence_width``). It
    is the width of EC-GP-UCB and, in the units of this library, that of
    [Micheli2025wdrbo]_ too (its eq. 7). The theorems assume a known kernel
    (``hyperparameters``); fitted hyper-parameters are treated as known.

    :math:`\sigma` is the deviation of the real noise, :math:`\lambda` the noise
    variance that the posterior works with, relative to the outputscale of the kernel.
    In the paper they are two numbers; here both default to the noise of the model. With
    ``noise_ratio``, the mean and deviation of the bound are those of a model with that
    noise and the same kernel and prior mean. Recommendations do not change.

    Args:
        norm_bound: ``B``, in units of y, for the kernel scaled to at most 1. It bounds
            the norm of the outcome less the model's prior mean.
        delta: The probability of failure, between 0 and 1.
        noise_std: :math:`\sigma` in units of y; None if the model's noise is right.
        data_free: Whether to replace the information gain of the data by the largest
            one possible for that number of inputs: the looser width of eq. 30, which
            depends on the number of outcomes only. The maximum is approximated greedily
            on 512 points of the box.
        noise_ratio: :math:`\lambda`; None for the noise of the model.

    Raises:
        InputDataError: A number outside its range.

    Example:
        >>> from botorch_drbo.policies import ConfidenceWidth
        >>> from botorch_drbo.recipes import make_recipe
        >>> recipe = make_recipe("wdrbo", beta=ConfidenceWidth(norm_bound=2.0))
        >>> recipe.options["beta"].delta
        0.1
    """

    norm_bound: float
    delta: float = 0.1
    noise_std: float | None = None
    data_free: bool = False
    noise_ratio: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_flag(self.data_free, "data_free")
        std = 1.0 if self.noise_std is None else self.noise_std
        ratio = 1.0 if self.noise_ratio is None else self.noise_ratio
        confidence_width(  # checks the numbers
            0.0,
            norm_bound=self.norm_bound,
            delta=self.delta,
            noise_std=std,
            noise_ratio=ratio,
        )
        for name in ("norm_bound", "delta", "noise_std", "noise_ratio"):
            value = getattr(self, name)
            if value is not None:  # a tensor or a NumPy number cannot be saved
                object.__setattr__(self, name, float(value))

    def model(self, fitted: Model) -> Model:
        r"""The model whose posterior the width belongs to.

        Args:
            fitted: A recipe's model.

        Returns:
            The model itself, or with ``noise_ratio`` a copy with that noise.
        """
        ratio = self.noise_ratio
        if ratio is None:
            return fitted
        return each_member(
            fitted, lambda member: with_noise_ratio(cast(SingleTaskGP, member), ratio)
        )

    def beta(self, fitted: Model) -> float:
        r"""The squared width, in units of the posterior variance of ``model``.

        Args:
            fitted: A recipe's model: its inputs fill the unit cube.

        Returns:
            A non-negative number; for an ensemble the largest of its members'.
        """
        return max(self._beta(cast(SingleTaskGP, m)) for m in members_of(fitted))

    def _beta(self, fitted: SingleTaskGP) -> float:
        gain = None
        if self.data_free:
            gain = _largest_gain(cast(SingleTaskGP, self.model(fitted)))
        return self.width(fitted, gain) ** 2

    def width(
        self, fitted: SingleTaskGP, information_gain: float | None = None
    ) -> float:
        r"""The width itself, also for other data than the model's.

        Args:
            fitted: A recipe's model.
            information_gain: That of the data under ``model``; None for the model's
                own data.

        Returns:
            The width, in units of the posterior standard deviation of ``model``.
        """
        std = self.noise_std
        if std is None and self.noise_ratio is not None:
            std = noise_std(fitted)
        return model_confidence_width(
            cast(SingleTaskGP, self.model(fitted)),
            norm_bound=self.norm_bound,
            delta=self.delta,
            noise_std=std,
            information_gain=information_gain,
        )


def check_beta(beta: Schedule | ConfidenceWidth | float, name: str) -> None:
    """Raise if this is no ``beta``."""
    if not isinstance(beta, ConfidenceWidth):
        as_schedule(beta, name)


def current_bound(
    beta: Schedule | ConfidenceWidth | float, model: Model, history: History
) -> tuple[Model, float]:
    """The model and the ``beta`` of the bound that follows these outcomes."""
    if isinstance(beta, ConfidenceWidth):
        return beta.model(model), beta.beta(model)
    return model, as_schedule(beta, "beta")(history.t)


def _largest_gain(model: SingleTaskGP) -> float:
    """The largest gain of as many inputs as the model has, in the unit cube."""
    t, d = cast(tuple[Tensor, ...], model.train_inputs)[0].shape[-2:]
    points = sobol(_NUM_POINTS, d, 0)
    like = cast(Tensor, model.train_targets)
    noise = cast(Tensor, model.likelihood.noise).min().item()
    kernel = cast(Kernel, model.covar_module)
    return maximum_information_gain(kernel, points.to(like), t, noise).gains[-1].item()


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class Policy(ABC):
    r"""How the next decision is found: an acquisition function for any adversary.

    Its dataclass fields are options of every recipe that uses it.
    """

    uses_contexts: ClassVar[bool] = True
    """Whether it takes a model of ``[x, c]``; otherwise one of ``x`` alone."""
    context_order: ClassVar[str | None] = None
    """What needs contexts that are numbers, in words; None if categories will do."""
    needs_ensemble: ClassVar[bool] = False
    """Whether outcomes have to be modelled by several models side by side."""
    conditions_in_place: ClassVar[bool] = False
    """Whether ``exploring`` with pending decisions is the same as ``set_X_pending`` on
    what it returns without: then a batch needs one acquisition function."""
    default_surrogate: ClassVar[str | None] = None
    """How outcomes are modelled if nothing else is said; None for the recipe's."""

    def __post_init__(self) -> None:
        """Check the options by their declarations."""
        check_options(self)

    def check(self, adversary: Adversary) -> None:
        r"""Raise if the policy does not support an adversary.

        Args:
            adversary: That of the recipe.

        Raises:
            InputDataError: Incompatible options.
            UnsupportedError: An adversary that the policy does not support.
        """
        return

    @property
    def ranks_by_moments(self) -> bool:
        """Whether a model of inducing points ranks decisions nearly as its model does.

        True if ``exploring`` uses only means and deviations, neither sample paths nor
        quantities that need every row: of a confidence bound unless its width is found
        from every row.
        """
        beta = getattr(self, "beta", None)
        return not (beta is None or isinstance(beta, ConfidenceWidth))

    @property
    def maximises_worst_case(self) -> bool:
        """Whether a recommendation is the decision with the best worst case.

        If so, it is searched on the contexts of the reported worst case, and
        ``exploiting`` is only used for the search. The contract tests find where it is
        wrong.
        """
        return False

    bounds_worst_case: ClassVar[bool] = False
    """Whether ``exploiting`` is a lower bound of the worst case, made for it."""

    @abstractmethod
    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""Build the acquisition function that finds the next decision.

        Args:
            state: The round.
            adversary: The adversary whose worst case is used.
            X_pending: Pending decisions, ``m x d_x``; within a batch also those that
                come before.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""Build the objective of the posterior mean, for recommendations.

        Args:
            state: The round.
            adversary: The adversary whose worst case is used.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """


ObjectiveMaker = Callable[[AmbiguitySet], Objective]
"""From the ambiguity set of a round to the objective of its scores."""


def check_objective_maker(objective: object) -> None:
    """Raise unless this is a function from a set to an objective, or None."""
    if objective is None:
        return
    if isinstance(objective, Objective) or not callable(objective):
        raise InputDataError(
            "`objective` must be words such as 'worst fifth', or a function from an "
            f"ambiguity set to an Objective, got {type(objective).__name__}: the set "
            "is built anew in each round. For example "
            "`partial(RobustSatisficing, target=5.0)`."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectivePolicy(Policy):
    r"""A policy for the general objective of the scores over the contexts.

    .. math:: g = a\, v(\epsilon) + b\, \delta(\epsilon)

    with ``v`` the worst case over the adversary's set and :math:`\delta` its derivative
    in the radius. DRO is ``(a, b) = (1, 0)``, WCS ``(0, 1)`` with radius 0, mean-risk
    ``(1, b)`` with radius 0, and GEN ``(1, 1)``; see ``UncertaintyObjective``.
    [Tay2024bocu]_, Table 1.

    With ``objective`` it is any other one. The search and the choice of a recommended
    decision follow it; the worst case that a recommendation states stays that of the
    adversary's set, or is that of the words.

    Args:
        value_weight: ``a``, the weight of the worst-case value.
        sensitivity_weight: ``b``, the weight of the sensitivity to the radius.
        objective: What is maximised, in words: "mean", "worst fifth", "minimum" or
            "share above 60", see ``NamedObjective``; or a function from the ambiguity
            set of a round to the ``Objective`` that takes the place of ``g``, for
            example ``partial(RobustSatisficing, target=5.0)``. Its
            scores are in the units of y, and higher is better (with
            ``maximize=False`` they are those of ``-y``). A journal
            stores the name of a function, so that ``resume`` and ``from_state_dict``
            want it again; an object of a ``storable`` class that can be called is
            stored as it is. None for ``g``.

    Raises:
        InputDataError: An option outside its range, or an ``objective`` beside weights.
    """

    value_weight: float = 1.0
    sensitivity_weight: float = 0.0
    objective: ObjectiveMaker | str | None = None
    bounds_shares: ClassVar[bool] = False
    """Whether it takes ``share above ...``, which is of means and deviations."""

    def __post_init__(self) -> None:
        """Check that the weights leave something to maximise, and the objective."""
        super().__post_init__()
        for name in ("value_weight", "sensitivity_weight"):
            weight = check_nonnegative(getattr(self, name), name)
            object.__setattr__(self, name, float(weight))  # a tensor cannot be saved
        if self.value_weight == 0.0 and self.sensitivity_weight == 0.0:
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are both zero: nothing is "
                "left to maximise."
            )
        if self.objective is None:
            return
        if isinstance(self.objective, str):
            object.__setattr__(self, "objective", NamedObjective(self.objective))
        check_objective_maker(self.objective)
        if (self.value_weight, self.sensitivity_weight) != (1.0, 0.0):
            raise InputDataError(
                "`value_weight` and `sensitivity_weight` are those of the general "
                "objective, and `objective` takes its place. Leave one or the other "
                "out."
            )

    @property
    def named(self) -> NamedObjective | None:
        """What is maximised, if it was said in words."""
        given = self.objective
        return given if isinstance(given, NamedObjective) else None

    def check(self, adversary: Adversary) -> None:
        r"""Words are of one distribution; some sets have no finite sensitivity at
        zero."""
        if (named := self.named) is not None:
            if not adversary.believes_reference:
                raise UnsupportedError(
                    f"`objective='{named.words}'` is of the reference distribution, "
                    f"and {type(adversary).__name__} moves it. Take a recipe that "
                    f"does not, such as `erbo` or `ei_erbo`, or {named.later}."
                )
            if named.ambiguity_set is None and not self.bounds_shares:
                named(NoAmbiguity())  # raises, and names the policy that takes it
        if self.sensitivity_weight == 0.0 or not isinstance(adversary, AroundContexts):
            return
        if adversary.fixed_radius == 0.0:
            UncertaintyObjective.wcs(adversary.ambiguity_set)

    @property
    def maximises_worst_case(self) -> bool:
        """Not where the sensitivity counts too, nor with another objective."""
        weights = self.value_weight, self.sensitivity_weight
        worst = self.objective is None
        if self.named is not None:
            worst = self.named.ambiguity_set is not None
        return worst and weights == (1.0, 0.0)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        problem = adversary.search_problem(state)
        return DistributionallyRobustUCB(
            state.model, 0.0, problem.listed(), self.objective_over(problem)
        )

    def general_objective(self, problem: SearchProblem) -> UncertaintyObjective:
        """That of both weights."""
        return UncertaintyObjective(
            problem.ambiguity_set, self.value_weight, self.sensitivity_weight
        )

    def objective_over(self, problem: SearchProblem) -> Objective:
        """The objective over the set of a search problem.

        Raises:
            InputDataError: The function ``objective`` returned something else.
        """
        if self.objective is None or isinstance(self.objective, str):
            return self.general_objective(problem)
        made = self.objective(problem.ambiguity_set)
        if not isinstance(made, Objective):
            raise InputDataError(
                "The function `objective` must return an Objective, got "
                f"{type(made).__name__}."
            )
        return made
