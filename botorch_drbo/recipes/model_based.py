"""Recipes that fit a Gaussian process and optimise an acquisition function."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import ClassVar, Self

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import (
    check_choice,
    check_options,
    check_positive,
    option,
)
from botorch_drbo.acquisition import FeasibilityWeighted
from botorch_drbo.adversaries import (
    Adversary,
    Danger,
    FittedRound,
    WorstCaseProblem,
)
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.exact import with_inducing_points
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.base import Recipe, warn_beyond
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.options import check_outcome_model, surrogate_of
from botorch_drbo.recommendation.best_decision import (
    CRITERIA,
    ChanceConstraint,
    Decided,
    decided,
    incumbents,
)
from botorch_drbo.recommendation.chosen_contexts import chosen_contexts
from botorch_drbo.recommendation.price import (
    GiveUp,
    belief_of_loss,
    check_give_up,
    price_of,
)
from botorch_drbo.recommendation.price_curve import PriceCurve, price_curve
from botorch_drbo.recommendation.promise import Promise
from botorch_drbo.recommendation.recommendation import Certainty, Recommendation
from botorch_drbo.recommendation.stability import against_rivals, profile, rivals_of
from botorch_drbo.recommendation.worst_case import worlds_of
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.search.candidates import (
    Plate,
    best_apart,
    best_row,
    everywhere,
    nearby,
    score,
    without,
)
from botorch_drbo.search.maximise import Effort, climbed_from, maximise
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.by_name import ModelMaker
from botorch_drbo.surrogate.fit import (
    each_with_known_context,
    with_known_context,
)
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters

FEW_POINTS = 256
"""Inducing points by which decisions are ranked ..."""
MANY_ROWS = 512
"""... where there are so many outcomes."""
FEW_NEAR, LEAST_FAR = 64, 256
"""Decisions near the first row of a plate, and at least so many anywhere, among which
the others are looked for."""


def with_few_points(state: FittedRound) -> FittedRound | None:
    """The round with a model that is far cheaper to search; None if there is none."""
    if state.history.t < MANY_ROWS:
        return None
    few = with_inducing_points(state.model, FEW_POINTS)
    return None if few is state.model else replace(state, model=few)


def weighted(
    acqf: AcquisitionFunction, chance: ChanceConstraint | None, reference: float | None
) -> AcquisitionFunction:
    """The objective, weighted by the probability of meeting constraints, if any."""
    if chance is None:
        return acqf
    return FeasibilityWeighted(
        acqf,
        chance.feasibility,
        reference=None if acqf._log else reference,
        level=chance.aim,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelBasedRecipe(Recipe):
    r"""Model the outcome of ``[x, c]``, maximise an acquisition function in ``x``.

    The model is a Gaussian process, or several side by side (``surrogate``), with
    inputs normalised by the bounds, categories as one-hot vectors and outcomes
    standardised, fitted from scratch at each call: what a call returns does not depend
    on the calls before it. The ascent sees the box of decisions as the unit cube and
    the acquisition function in units of the model's prior: what a call returns does not
    depend on the units of ``x``, ``c`` and ``y`` either.

    Args:
        reference: The context distribution if it is known (the general setting);
            None to estimate it from the contexts seen (the data-driven setting).
        half_life: For contexts that drift: the number of further contexts after which
            the weight of a context is halved. A context of age ``a`` (the newest has
            age 0) has a weight proportional to ``2^(-a / half_life)`` in the estimate.
            A radius that follows a schedule in the number of contexts then uses the
            effective sample size ``1 / sum_i p_i^2``, which stays below about
            ``2.9 half_life + 1``. All outcomes are still used. None for equal weights.
        surrogate: How outcomes are modelled: a key of ``SURROGATES`` ("botorch",
            "matern", "kernels", "ensemble", ...), a ``Surrogate`` such as
            ``EnsembleOf(["botorch", "rbf"])``, or a function (see ``model``). None for
            ``DEFAULT_SURROGATE``, an ensemble of four. Outcome constraints always use
            BoTorch's model.
        hyperparameters: The hyper-parameters of the model if they are known; then
            nothing is fitted, and outcomes are not standardised by their own spread.
        feasibility: With outcome constraints, the probability with which a
            recommendation must meet them, ``1 - delta``, under the worst distribution
            of the recipe's set. During the search the acquisition function is weighted
            by that probability, see ``FeasibilityWeighted``.
        against: Against what a recommendation is decided, if not against the recipe's
            own set: an adversary such as ``WassersteinBall(radius="sd")``, a danger
            such as ``MeanShift(1.0)``, or an ambiguity set. What is asked for next does
            not depend on it.
        give_up: What a recommendation may give up of the best expectation for a better
            worst case: a share of what there is to gain by choosing, ``0.1``, or an
            amount, ``{"profit": 20}``. None for all of it.
        criterion: ``"worst_case"``, or ``"regret"`` for the least regret in the worst
            of the distributions of a danger.
        model: A function that replaces the surrogate: it is called with
            ``train_X`` (``t x d``: decisions and contexts, or decisions alone if the
            recipe models nothing else), ``train_Y`` (``t x 1``, minus the outcome if
            you minimise), ``train_Yvar`` (``t x 1``, None if no variances were told)
            and ``bounds`` (``2 x d``), all in your own units, as BoTorch's models take
            them: use its ``Normalize(d, bounds=bounds)`` and ``Standardize(m=1)``. It
            returns a fitted BoTorch model of one output, an ensemble if you like, which
            the recipe keeps. What it draws at random is drawn under the seed. Outcome
            constraints keep models of the recipe's own.
        num_restarts: Starting points of the gradient ascent in ``x``, at most: one on
            each hill of the acquisition function.
        raw_samples: Sobol points among which the hills are looked for.
        max_iterations: L-BFGS-B iterations per ascent.

    Raises:
        InputDataError: An option outside its range.
    """

    takes_constraints: ClassVar[bool] = True
    maximises_worst_case: ClassVar[bool] = False
    """Whether a recommendation is the decision with the best worst case."""
    ranks_by_moments: ClassVar[bool] = False
    """Whether inducing points do to rank decisions by, of a model of many rows."""
    conditions_in_place: ClassVar[bool] = False
    """Whether pending decisions change an acquisition function by ``set_X_pending``."""

    reference: ContextSet | None = None
    half_life: float | None = None
    surrogate: Surrogate | str | ModelMaker | None = None
    hyperparameters: FixedHyperparameters | None = None
    feasibility: float = 0.95
    against: Adversary | AmbiguitySet | None = None
    give_up: GiveUp | None = None
    criterion: str = option("worst_case", partial(check_choice, choices=CRITERIA))
    model: ModelMaker | None = None
    num_restarts: int = 10
    raw_samples: int = 1024
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the reference, the hyperparameters and the effort of the search."""
        if self.reference is not None and not isinstance(self.reference, ContextSet):
            raise InputDataError(
                "`reference` must be a ContextSet or None, got "
                f"{type(self.reference).__name__}. See ContextSet.from_distribution."
            )
        check_outcome_model(self)
        if self.half_life is not None:  # a tensor cannot be saved
            half_life = check_positive(self.half_life, "half_life")
            object.__setattr__(self, "half_life", half_life)
        feasibility = check_positive(self.feasibility, "feasibility")
        if feasibility >= 1.0:
            raise InputDataError(
                f"`feasibility` must be a probability below 1, got {feasibility}: no "
                "model is ever certain. 0.95 allows a risk of one in twenty."
            )
        object.__setattr__(self, "feasibility", feasibility)
        check_options(self)
        check_give_up(self.give_up)
        if not isinstance(self.against, Adversary | None):
            try:
                around = AroundContexts(ambiguity_set=self.against)
            except InputDataError as error:
                raise InputDataError(
                    "`against` must be a danger such as MeanShift(1.0), an adversary "
                    "such as WassersteinBall(radius='sd') or an ambiguity set, got "
                    f"{self.against!r:.100}."
                ) from error
            object.__setattr__(self, "against", around)
        self._check_decides()
        self.effort(seed=0)  # checks its three options

    @abstractmethod
    def exploring(
        self, state: FittedRound, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""Build the acquisition function that finds the next decision.

        Args:
            state: The round; its model is one of ``[x, c]``, or of ``x`` (see
                ``uses_contexts``).
            X_pending: Pending decisions, ``m x d_x``; within a batch also those that
                come before.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def exploiting(self, state: FittedRound) -> AcquisitionFunction:
        r"""Build the objective of the posterior mean, for recommendations.

        Args:
            state: The round, as for ``exploring``.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distributions over which a recommendation's worst case is a minimum.

        Args:
            state: The round, with a model of ``[x, c]``.

        Returns:
            The reference, the set around it, and the contexts to which mass may move.
        """

    @abstractmethod
    def worst_case_problem_of(
        self, ambiguity_set: AmbiguitySet, state: FittedRound
    ) -> WorstCaseProblem:
        r"""The same for another ambiguity set.

        Args:
            ambiguity_set: The set, around the contexts seen or the reference.
            state: The round, with a model of ``[x, c]``.

        Returns:
            The reference distribution, the set around it, and the contexts to which
            mass may move.
        """

    @abstractmethod
    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""What the smallest probability of meeting the constraints is a minimum over.

        Args:
            state: The round, with a model of ``[x, c]``.

        Returns:
            The reference distribution, the set around it, and the contexts to which
            mass may move.
        """

    @abstractmethod
    def decision_model(self, state: FittedState) -> Model:
        r"""Fit the model of ``x`` alone, for a recipe that looks at no contexts.

        Args:
            state: What has been observed, and the boxes.

        Returns:
            The model, in evaluation mode.
        """

    def _check_decides(self) -> None:
        """Refuse a price, a danger or a regret where they have no meaning."""
        for name in ("against", "give_up"):
            if getattr(self, name) is not None:
                self.check_uses_contexts(name)
        feared = self.adversary if self.against is None else self.against
        alone = feared is None or getattr(feared, "believes_reference", False)
        if self.give_up is not None and alone:
            raise InputDataError(
                f"`give_up` says what a better worst case may cost, and `{self.name}` "
                "decides for the expectation alone. Say against what: "
                "`against=MeanShift(1.0)`, or `against=WassersteinBall(radius='sd')`."
            )
        if self.criterion == "regret" and not isinstance(feared, Danger):
            raise InputDataError(
                "`criterion='regret'` is the largest loss over a few distributions "
                "with names: say which, such as `against=MeanShift(1.0)`."
            )

    def decided_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distributions over which a recommendation is decided and its worst case.

        Args:
            state: The round, with a model of ``[x, c]``.
        """
        if isinstance(self.against, Adversary):
            return self.against.worst_case_problem(state)
        return self.worst_case_problem(state)

    def state_of(
        self, model: Model, history: History, space: SearchSpace, seed: int
    ) -> FittedRound:
        r"""The round as adversaries and policies see it."""
        return FittedRound(
            model=model,
            history=history,
            space=space,
            seed=seed,
            reference=self.reference,
            half_life=self.half_life,
        )

    def fitted(
        self, history: History, space: SearchSpace, *, uses_contexts: bool
    ) -> Model:
        r"""Fit the recipe's own kind of model to a history."""
        state = FittedState(history, space)
        return state.model(self.judging_surrogate(), uses_contexts=uses_contexts)

    def profiled(
        self,
        state: FittedState,
        x: Tensor,
        *,
        other: Tensor | None,
        target: float | None,
        radii: Tensor | None,
        ambiguity_set: AmbiguitySet | None,
    ) -> RobustnessProfile:
        r"""The worst-case value of any decision as a function of the radius.

        Args:
            state: From ``given``.
            x: The decision, ``d_x``.
            other: A decision to compare with, ``d_x``.
            target: A value that the decision should reach.
            radii: Where to evaluate, ``k``, ascending; None for 25 equal steps from
                zero to four times the recipe's own radius.
            ambiguity_set: Another set around the same contexts; if ``radii`` is None
                they are multiples of its radius. None for the recipe's own set.

        Returns:
            The profile, in the sign of the history.

        Raises:
            InputDataError: There is no outcome yet, a set without a radius, or radii
                that do not ascend.
            BotorchTensorDimensionError: A set made for other contexts.
        """
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            model = state.model(self.judging_surrogate())
            fitted = self._round_of(model, state)
            if radii is not None and radii.numel():
                diameter, unit = self.diameter(state.space), Adversary.radius_unit
                if ambiguity_set is not None:
                    diameter = ambiguity_set.diameter
                elif self.adversary is not None:
                    unit = self.adversary.unit
                warn_beyond(radii.max().item(), diameter, unit, "radii")
            if ambiguity_set is None:
                problem = self.decided_problem(fitted)
            else:
                problem = self.worst_case_problem_of(ambiguity_set, fitted)
            found = profile(
                problem, model, x, other, radii, target=target, seed=state.seed
            )
            own = self.adversary if ambiguity_set is None else None
            return found if own is None else replace(found, unit=own.unit)

    def _propose(
        self,
        state: FittedState,
        q: int,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> Tensor:
        space, seed, failed = state.space, state.seed, state.failed
        pending = space.bounds[:0] if X_pending is None else X_pending
        fitted, reference = self._round_of(self._search_model(state), state), None
        chance = self._chance(state.constraints(), fitted)
        if chance is not None:
            fitted, reference = incumbents(self.exploiting(fitted), chance, fitted)
        roughly = with_few_points(fitted) if self.ranks_by_moments else None
        num = self.raw_samples
        chosen: list[Tensor] = []
        acqf = rough = plate = None
        # One by one, each seeing those before it as pending. This is what
        # optimize_acqf(sequential=True) does, but it also serves analytic acquisition
        # functions, which take their pending decisions at construction only.
        for _ in range(q):
            seen = pending if len(pending) else None
            if acqf is None or not self.conditions_in_place:
                acqf = weighted(self.exploring(fitted, seen), chance, reference)
                if roughly is not None:
                    rough = weighted(self.exploring(roughly, seen), chance, reference)
            else:
                acqf.set_X_pending(seen)
            if candidates is not None:
                taken = torch.cat([pending, failed])
                x = best_row(candidates, score(acqf, candidates), taken)
                candidates = without(candidates, x)
            else:
                x = None
                if plate is not None and len(plate.rows):
                    # The more are pending the less one more changes: climbed again
                    # after 1, 2, 4, 8, ... rows.
                    if not len(chosen) & (len(chosen) - 1):
                        plate.add(*climbed_from(acqf, space, plate.rows, plate.bounds))
                    x = plate.best(acqf, pending, failed, space)
                if x is None:
                    found = maximise(acqf, space, self.effort(seed), rough=rough)
                    x = best_apart(acqf, *found, pending, failed, space, seed, num)
                    if q > 1 and self.conditions_in_place and plate is None:
                        near = nearby(x[0], failed, space, seed, FEW_NEAR)
                        far = everywhere(space, seed, max(num, LEAST_FAR))
                        others = torch.cat([near, far])
                        ranks = acqf if rough is None else rough
                        plate = Plate(ranks, found[0], others)
            chosen.append(x)
            pending = torch.cat([pending, x])
        return torch.cat(chosen)

    @property
    def judge(self) -> Self:
        """The recipe itself."""
        return self

    def recommendation(
        self, state: FittedState, candidates: Tensor | None
    ) -> Recommendation:
        r"""Recommend a decision by the models of a state."""
        history, space, seed = state.history, state.space, state.seed
        surrogate, model = self.judging_surrogate(), self._search_model(state)
        joint = model if self.uses_contexts else state.model(surrogate)
        fitted = self._round_of(model, state)
        of_contexts = replace(fitted, model=joint)
        chance = self._chance(state.constraints(), of_contexts)
        problem = self.decided_problem(of_contexts)
        best = self._best(fitted, problem, chance, candidates)
        x, value, feasible, *_ = best.found
        worst = best.worst(problem, joint, seed=seed)
        mean, contexts, robust = worst
        with torch.no_grad():
            reference = problem.contexts
            expected = (reference.weights * mean(reference.points)).sum()
        limit = best.limit

        def believed() -> tuple[Certainty, GaussianMixture | None]:
            check = state.check_if_closed(joint, surrogate, reference)
            widening = check and check.widening
            promise = Promise.of(
                joint, x, problem, worst.distribution, widening, seed=seed
            )
            if limit is None:
                return Certainty(promise, check), None
            loss = belief_of_loss(joint, reference, limit.best, x)
            return Certainty(promise, check), loss.widened(widening or 1.0)

        # Five folds are fitted for them: not before somebody looks at an interval.
        beliefs = state.later(believed)
        reached = None if feasible is None else feasible >= self.feasibility
        if reached is False:
            warnings.warn(
                "No decision was found that meets the outcome constraints with "
                f"probability {self.feasibility} under every plausible distribution of "
                f"the context. This is the one with the largest probability, "
                f"{feasible:.3g}, whatever its value. Try more decisions, or lower "
                "`feasibility` or the radius.",
                BotorchWarning,
                stacklevel=2,
            )
        rivals, origin = rivals_of(x, history.X, space, chance, candidates)
        if limit is not None:  # others are no rivals
            rivals = rivals[limit.allows(rivals)]
            origin = f"{origin}, within the price"
        return Recommendation(
            x=x,
            objective=value.item(),
            expected_value=expected.item(),
            worst_case_value=robust.value.item(),
            worst_case_weights=robust.weights,
            context_set=contexts,
            worst_case_box=problem.box,
            worst_case_status=robust.status,
            feasibility=feasible,
            feasible=reached,
            stability=against_rivals(
                problem,
                contexts,
                joint,
                x,
                rivals,
                origin,
                searched=best.found.searched and best.found.searched[0],
                seed=seed,
            ),
            radius=problem.radius,
            searched=problem.searched(space),
            num_outcomes=history.t,
            held=None if history.constraints is None else history.constraints.held(),
            certainty=beliefs.then(itemgetter(0)),
            price=limit
            and price_of(
                limit,
                problem,
                joint,
                x,
                expected,
                robust.value,
                beliefs.then(itemgetter(1)),
                seed=seed,
            ),
            worlds=worlds_of(problem, mean, best.best_in_each),
        )

    def _best(
        self,
        state: FittedRound,
        problem: WorstCaseProblem,
        chance: ChanceConstraint | None,
        candidates: Tensor | None,
        best: Tensor | None = None,
    ) -> Decided:
        """The decision with the best objective of the mean among those that may be."""
        return decided(
            state,
            problem,
            chance,
            candidates,
            self.effort(state.seed),
            self.exploiting if self._has_own_objective else None,
            give_up=self.give_up,
            criterion=self.criterion,
            best=best,
        )

    def priced(
        self, state: FittedState, level: float, outcome: str
    ) -> PriceCurve[Tensor]:
        r"""The worst case by what of the expectation is given up for it."""
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            surrogate = self.judging_surrogate()
            model = state.model(surrogate)
            fitted = self._round_of(model, state)
            chance = self._chance(state.constraints(), fitted)
            problem = self.decided_problem(fitted)
            check = state.check_if_closed(model, surrogate, problem.contexts)

            def decide(give_up: GiveUp | None, best: Tensor | None) -> Decided:
                own = replace(self, give_up=give_up)
                return own._best(fitted, problem, chance, None, best)

            return price_curve(
                decide,
                problem,
                model,
                widening=None if check is None else check.widening,
                level=level,
                outcome=outcome,
                seed=state.seed,
            )

    @property
    def _has_own_objective(self) -> bool:
        """Whether something else than a worst case is maximised."""
        return self.against is None and not self.maximises_worst_case

    def effort(self, seed: int) -> Effort:
        r"""The effort of the search for a maximum, under a seed."""
        return Effort(self.num_restarts, self.raw_samples, self.max_iterations, seed)

    def _chance(
        self, constraints: Model | None, state: FittedRound
    ) -> ChanceConstraint | None:
        """The chance constraint of a round; None where there are no constraints."""
        if constraints is None:
            return None
        problem = (
            self.against.chance_constraint_problem(state)
            if isinstance(self.against, Adversary)
            else self.chance_constraint_problem(state)
        )
        known = each_with_known_context(constraints, state.space)
        return ChanceConstraint.of(known, problem, self.feasibility, state.seed)

    def judging_surrogate(self) -> Surrogate:
        r"""The one of the options, or the recipe's default."""
        return surrogate_of(self)

    def _round_of(self, model: Model, state: FittedState) -> FittedRound:
        return self.state_of(model, state.history, state.space, state.seed)

    def _search_model(self, state: FittedState) -> Model:
        if self.uses_contexts:
            return state.model(self.judging_surrogate())
        return self.decision_model(state)

    def decision(
        self, model: Model, constraints: Model | None, state: FittedState
    ) -> Tensor:
        r"""Recommend ``d_x`` by models that are fitted."""
        fitted = self._round_of(with_known_context(model, state.space), state)
        chance = self._chance(constraints, fitted)
        return self._best(fitted, self.decided_problem(fitted), chance, None).found.x

    def informative_contexts(
        self, state: FittedState, x: Tensor, pending: Tensor, taken: Tensor
    ) -> Tensor:
        r"""Choose where the outcome of each decision, ``q x d_x``, teaches most."""
        model = state.model(self.judging_surrogate())
        problem = self.worst_case_problem(self._round_of(model, state))
        chosen = chosen_contexts(problem, model, x, pending, taken, seed=state.seed)
        return state.space.with_known(chosen)
