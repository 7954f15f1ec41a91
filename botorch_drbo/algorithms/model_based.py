"""Recipes that fit a Gaussian process and optimise an acquisition function."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import InputTransform
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo._validation import check_count, check_inside, check_positive
from botorch_drbo.acquisition import DistributionallyRobustUCB, FeasibilityWeighted
from botorch_drbo.algorithms.base import Algorithm, warn_beyond
from botorch_drbo.algorithms.candidates import best_row, score, without
from botorch_drbo.algorithms.chance_constraint import (
    ChanceConstraint,
    Effort,
    best_feasible,
)
from botorch_drbo.algorithms.data import (
    History,
    Recommendation,
    SearchSpace,
    check_values,
)
from botorch_drbo.algorithms.feasible import feasible, sample
from botorch_drbo.algorithms.fitting import minimise_in_logarithms
from botorch_drbo.algorithms.given_model import (
    ModelMaker,
    check_model_maker,
    make_model,
)
from botorch_drbo.algorithms.hyperparameters import FixedHyperparameters
from botorch_drbo.algorithms.mixed_search import climb
from botorch_drbo.algorithms.model_inputs import model_inputs
from botorch_drbo.algorithms.outcome_units import level_and_unit, scaled_model
from botorch_drbo.algorithms.profile import profile
from botorch_drbo.algorithms.randomness import isolated_rng
from botorch_drbo.algorithms.rivals import against_rivals
from botorch_drbo.algorithms.round import Round
from botorch_drbo.algorithms.separation import SEPARATION, best_apart
from botorch_drbo.algorithms.starts import hilltops
from botorch_drbo.algorithms.unit_cube import InUnitCube
from botorch_drbo.algorithms.worst_case import (
    Judge,
    Score,
    with_unlisted,
    worst_case,
)
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate import RobustnessProfile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.contexts.forgetting import half_life_weights
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior import (
    joint_moments,
    with_known_columns,
    with_perturbation,
)
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import Constant, ContextRule, as_rule

_MAX_ROUNDS = 5  # of a search for a decision and for the contexts that hurt it
_GAIN = 1e-4  # of the range of the outcome: a lower worst case is not worth a round
_PESSIMISM = 1.5  # deviations below the mean, by which a context is chosen
_CARRIES = 1e-6  # less mass in a worst case is a rounding error

# At a kink L-BFGS-B would spend most of its evaluations on digits that no one needs.
_LINE_SEARCH = {"maxls": 8, "factr": 1e9}


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelBasedAlgorithm(Algorithm):
    r"""Model the outcome of ``[x, c]``, maximise an acquisition function in ``x``.

    The model is BoTorch's ``SingleTaskGP`` with inputs normalised by the bounds,
    categories as one-hot vectors and outcomes standardised, fitted from scratch at each
    call: what a call returns does not depend on the calls before it. The ascent sees
    the box of decisions as the unit cube and the acquisition function in units of the
    model's prior: what a call returns does not depend on the units of ``x``, ``c`` and
    ``y`` either.

    Args:
        reference: The context distribution if it is known (the general setting);
            None to estimate it from the contexts seen (the data-driven setting).
        half_life: For a world that drifts: after how many further contexts one counts
            half. A context of age ``a`` (the newest has age 0) has a weight
            proportional to ``2^(-a / half_life)`` in the estimate, and a radius that
            follows a schedule in the number of contexts counts the effective sample
            size ``1 / sum_i p_i^2`` in its place, which stays below about
            ``2.9 half_life + 1``. Outcomes are not forgotten. None: nothing is.
        hyperparameters: Those of the model if they are known: then nothing is fitted,
            and outcomes are not standardised by their own spread.
        feasibility: Where outcome constraints are told: how surely a recommendation
            has to meet them, ``1 - delta``, under the worst distribution of the
            recipe's set. While searching, the acquisition function is weighted by that
            probability, see ``FeasibilityWeighted``.
        model: A function that makes the model in place of all this: it is called with
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
    reference: ContextSet | None = None
    half_life: float | None = None
    hyperparameters: FixedHyperparameters | None = None
    feasibility: float = 0.95
    model: ModelMaker | None = None
    num_restarts: int = 10
    raw_samples: int = 1024
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the options."""
        if self.reference is not None and not isinstance(self.reference, ContextSet):
            raise InputDataError(
                "`reference` must be a ContextSet or None, got "
                f"{type(self.reference).__name__}. See ContextSet.from_distribution."
            )
        if self.hyperparameters is not None and not isinstance(
            self.hyperparameters, FixedHyperparameters
        ):
            raise InputDataError(
                "`hyperparameters` must be FixedHyperparameters or None, got "
                f"{type(self.hyperparameters).__name__}."
            )
        check_model_maker(self.model)
        if self.model is not None and self.hyperparameters is not None:
            raise InputDataError(
                "Got `model` and `hyperparameters`, which are those of the recipe's "
                "own model. Give one of them."
            )
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
        for name in ("num_restarts", "raw_samples", "max_iterations"):
            check_count(getattr(self, name), name)
        if self.raw_samples < self.num_restarts:
            raise InputDataError(
                f"`raw_samples` ({self.raw_samples}) must be at least `num_restarts` "
                f"({self.num_restarts}): the restarts are picked from them."
            )

    @abstractmethod
    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""Build the acquisition function that finds the next decision.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            X_pending: Pending decisions, ``m x d_x``; within a batch also those that
                come before.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @property
    def maximises_its_worst_case(self) -> bool:
        """Whether a recommendation is the decision with the best ``worst_case_value``.

        If so, both are found on the same contexts; ``exploiting`` serves the search.
        """
        return False

    @abstractmethod
    def exploiting(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> AcquisitionFunction:
        r"""Build the objective of the posterior mean, for recommendations.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The reference distribution on a list of contexts, and the set around it.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution and the set around it.
        """

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""What the worst case of a recommendation is a minimum over.

        By default that of ``robust_set``, with the whole box of contexts in reach if
        the set lets mass go anywhere (``AmbiguitySet.reaches_unseen``). A recipe whose
        set knows its contexts by a matrix says here how it is made.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution, the set around it, and where mass may go.
        """
        return Judge.of(*self.robust_set(model, history, space, seed=seed), space)

    def chance_judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""What the smallest probability of meeting the constraints is a minimum over.

        By default that of ``judge``: the same adversary for outcome and constraints.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution, the set around it, and where mass may go.
        """
        return self.judge(model, history, space, seed=seed)

    def judge_of(
        self, ambiguity: AmbiguitySet, history: History, space: SearchSpace
    ) -> Judge:
        r"""What the worst case over another set is a minimum over.

        Args:
            ambiguity: The set, around the contexts seen or the reference.
            history: What has been observed.
            space: The boxes of decisions and contexts.

        Returns:
            The reference distribution, the set around it, and where mass may go.
        """
        return Judge.of(self.data_contexts(history, space), ambiguity, space)

    def robustness_profile(
        self,
        history: History,
        space: SearchSpace,
        x: Tensor,
        *,
        other: Tensor | None = None,
        target: float | None = None,
        radii: Tensor | None = None,
        ambiguity_set: AmbiguitySet | None = None,
        seed: int = 0,
        this_round: Round | None = None,
    ) -> RobustnessProfile:
        r"""The worst case of any decision as a recommendation has it, by radius.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            x: The decision, ``d_x``.
            other: A decision to compare with, ``d_x``.
            target: A value that the decision should reach.
            radii: Where to evaluate, ``k``, ascending; None for 25 equal steps from
                zero to four times the recipe's own radius.
            ambiguity_set: Another set around the same contexts, with the radius that
                ``radii`` follow if they are None; None for the recipe's own.
            seed: Decides every random draw.
            this_round: What is known about this round alone; None for nothing.

        Returns:
            The profile, in the sign of ``history.Y``.

        Raises:
            InputDataError: There is no outcome yet, a set without a radius, or radii
                that do not ascend.
            BotorchTensorDimensionError: A set that knows other contexts.
            UnsupportedError: The recipe can make nothing of what is known about the
                round.
        """
        self._check(history, space, needs_data=True)
        recipe, history, space = self.facing(this_round, history, space, decides=False)
        with isolated_rng(seed, space.bounds.device):
            model = recipe._model(history, space, True)
            if radii is not None and radii.numel():
                diameter, unit = recipe.diameter(space), recipe.radius_unit
                if ambiguity_set is not None:
                    diameter, unit = ambiguity_set.diameter, Algorithm.radius_unit
                warn_beyond(radii.max().item(), diameter, unit, "radii")
            if ambiguity_set is None:
                judge = recipe.judge(model, history, space, seed=seed)
            else:
                judge = recipe.judge_of(ambiguity_set, history, space)
            means = [_mean_at(model, row) for row in (x, other) if row is not None]
            return profile(judge, means, radii=radii, target=target, seed=seed)

    def data_contexts(self, history: History, space: SearchSpace) -> ContextSet:
        """The given reference distribution, or else the empirical one."""
        if self.reference is None:
            if len(history.contexts) == 0:
                raise InputDataError(
                    "The world has shown no context yet (those that were chosen in a "
                    "laboratory do not count), so there is no distribution to learn. "
                    "Give the algorithm a `reference`, or the round a `context_set`."
                )
            return ContextSet.empirical(history.contexts, self.half_life)
        if self.reference.dim != space.d_c:
            raise BotorchTensorDimensionError(
                f"`reference` has {self.reference.dim} context columns, "
                f"`context_bounds` has {space.d_c}."
            )
        points = self.reference.points.to(space.bounds)
        check_inside(points, space.context_bounds, "reference", "context_bounds")
        points = space.with_known(points)
        check_values(points, space.context_bounds, space.context_values, "reference")
        return ContextSet(points, self.reference.weights.to(space.bounds))

    def radius_of(
        self, rule: ContextRule | float, history: History, space: SearchSpace
    ) -> float:
        """What a rule for the radius says after the contexts seen, as they count."""
        rule = as_rule(rule)
        if isinstance(rule, Constant):  # also where the world has shown nothing yet
            return rule.value
        if len(history.contexts) == 0:
            raise InputDataError(
                "The world has shown no context yet, so a radius that follows from "
                f"them, {rule}, has no value. Give `radius` a number."
            )
        seen = space.embed_contexts(history.contexts)
        if self.half_life is None:
            return rule.of(seen)
        return rule.of(seen, half_life_weights(len(seen), self.half_life, seen))

    def _propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int,
        X_pending: Tensor | None,
        seed: int,
        candidates: Tensor | None,
    ) -> Tensor:
        model = self._model(history, space, self.uses_contexts)
        pending = (
            space.bounds.new_empty(0, space.d_x) if X_pending is None else X_pending
        )
        chance = self._chance(model, None, history, space, seed=seed)
        if chance is not None:
            history, reference = self._incumbents(chance, model, history, space, seed)
        chosen: list[Tensor] = []
        # One by one, each seeing those before it as pending. This is what
        # optimize_acqf(sequential=True) does, but it also serves analytic acquisition
        # functions, which take their pending decisions at construction only.
        for _ in range(q):
            acqf = self.exploring(
                model,
                history,
                space,
                X_pending=pending if len(pending) else None,
                seed=seed,
            )
            if chance is not None:
                acqf = FeasibilityWeighted(
                    acqf,
                    chance.feasibility,
                    reference=None if acqf._log else reference,
                    level=chance.aim,
                )
            if candidates is None:
                maxima, values = self._ascend(acqf, space, seed)
                x = best_apart(
                    acqf, maxima, values, pending, space, seed, self.raw_samples
                )
            else:
                x = best_row(candidates, score(acqf, candidates), pending)
                candidates = without(candidates, x)
            chosen.append(x)
            pending = torch.cat([pending, x])
        return torch.cat(chosen)

    def _recommend(
        self,
        history: History,
        space: SearchSpace,
        *,
        seed: int,
        candidates: Tensor | None,
    ) -> Recommendation:
        model = self._model(history, space, self.uses_contexts)
        joint = model if self.uses_contexts else self._model(history, space, True)
        chance = self._chance(joint, None, history, space, seed=seed)
        judge = self.judge(joint, history, space, seed=seed)
        x, value, feasible, listed = self._best(
            model, judge, chance, history, space, seed, candidates
        )
        mean = _mean_at(joint, x)
        with torch.no_grad():
            reference = judge.contexts
            expected = (reference.weights * mean(reference.points)).sum()
        contexts, robust = worst_case(judge, mean, seed=seed)
        reached = None if feasible is None else feasible >= self.feasibility
        if reached is False:
            warnings.warn(
                "No decision was found that meets the outcome constraints with "
                f"probability {self.feasibility} under every plausible distribution of "
                "the context. This is the one with the largest probability, "
                f"{feasible:.3g}, whatever its value. Go on asking and telling, or "
                "lower `feasibility` or the radius.",
                BotorchWarning,
                stacklevel=2,
            )
        rivals = _others(x, history, space)
        origin = f"told, more than {SEPARATION} of a side away; none nearer or untried"
        if candidates is not None:
            rivals, origin = without(candidates, x.unsqueeze(0)), "of the list"
        if chance is not None:  # others are no rivals
            rivals = rivals[chance.probability(rivals) >= chance.level]
            origin = f"that meet the constraints, {origin}"
        return Recommendation(
            x=x,
            objective=value.item(),
            expected_value=expected.item(),
            worst_case_value=robust.value.item(),
            worst_case_weights=robust.weights,
            context_set=contexts,
            worst_case_box=judge.box,
            worst_case_status=robust.status,
            feasibility=feasible,
            feasible=reached,
            stability=against_rivals(
                judge, listed or contexts, joint, x, rivals, origin, seed=seed
            ),
            searched=judge.searched(space),
            num_outcomes=history.t,
            held=None if history.constraints is None else history.constraints.held(),
        )

    def _best(
        self,
        model: SingleTaskGP,
        judge: Judge,
        chance: ChanceConstraint | None,
        history: History,
        space: SearchSpace,
        seed: int,
        candidates: Tensor | None,
    ) -> tuple[Tensor, Tensor, float | None, ContextSet | None]:
        """The decision with the best objective of the mean among those that may be.

        A search needs a list of contexts. If the worst case over the box is lower than
        on the list, the contexts that make it so are added, and the search starts
        again.

        Returns:
            The decision, ``d_x``, its value, how surely it meets the constraints, and
            the contexts on which it has the best worst case; None if it maximises
            something else.
        """
        search = (chance, history, space, seed, candidates)
        if not self.maximises_its_worst_case:
            acqf = self.exploiting(model, history, space, seed=seed)
            x, value, feasible = self._maximum(acqf, *search)
            return x, value, feasible, None
        contexts, ball = judge.on_a_full_list(seed)
        for _ in range(_MAX_ROUNDS):
            objective = UncertaintyObjective(ball)
            acqf = DistributionallyRobustUCB(model, 0.0, contexts, objective)
            x, value, feasible = self._maximum(acqf, *search)
            mean = _mean_at(model, x)
            with torch.no_grad():
                values = mean(contexts.points)
            harder, robust = worst_case(judge, mean, seed=seed)
            if value - robust.value <= _GAIN * (values.max() - values.min()):
                break
            contexts = with_unlisted(contexts, harder.points)
            ball = judge.ball(contexts.points)
        return x, value, feasible, contexts

    def _maximum(
        self,
        acqf: AcquisitionFunction,
        chance: ChanceConstraint | None,
        history: History,
        space: SearchSpace,
        seed: int,
        candidates: Tensor | None,
    ) -> tuple[Tensor, Tensor, float | None]:
        """The best decision for a function, its value, and how surely it is allowed."""
        if chance is not None:
            effort = Effort(
                self.num_restarts, self.raw_samples, self.max_iterations, seed
            )
            if candidates is not None:
                return best_feasible(acqf, chance, space, candidates, None)
            tried = self._tried(history, space)
            return best_feasible(acqf, chance, space, tried, effort)
        if candidates is None:
            # The best decision tried so far is a start too: the answer is never worse.
            tried = self._tried(history, space)
            start = None
            if len(tried):
                start = tried[score(acqf, tried).argmax()].reshape(1, 1, -1)
            maxima, values = self._ascend(acqf, space, seed, start)
            maxima = maxima.clamp(space.bounds[0], space.bounds[1])
        else:
            maxima, values = candidates, score(acqf, candidates)
        best = values.argmax()
        return maxima[best], values[best], None

    def _tried(self, history: History, space: SearchSpace) -> Tensor:
        """Decisions with an outcome that may be taken, ``m x d_x``; perhaps none."""
        tried = history.X.unique(dim=0).clamp(space.bounds[0], space.bounds[1])
        return tried[feasible(space, tried)]

    def _chance(
        self,
        model: SingleTaskGP,
        constraints: Model | None,
        history: History,
        space: SearchSpace,
        *,
        seed: int,
    ) -> ChanceConstraint | None:
        """The chance constraint of a round; None where there are no constraints."""
        if history.constraints is None:
            return None
        if constraints is None:
            constraints = self._fit_constraints(history, space)
        judge = self.chance_judge(model, history, space, seed=seed)
        members = cast(ModelListGP, constraints).models
        known = [_knowing(cast(SingleTaskGP, member), space) for member in members]
        return ChanceConstraint.of(ModelListGP(*known), judge, self.feasibility, seed)

    def _incumbents(
        self,
        chance: ChanceConstraint,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        seed: int,
    ) -> tuple[History, float]:
        """What a decision has to be better than: a history, and a value.

        Those tried that are feasible by the models; while there are none the worst one
        tried, so that any decision is a gain and feasibility decides.
        """
        tried = history.X.unique(dim=0)
        values = score(self.exploiting(model, history, space, seed=seed), tried)
        reached = chance.probability(tried) >= chance.level
        if not reached.any():
            reached[values.argmin()] = True
        history = replace(history, baseline=tried[reached])
        return history, values[reached].max().item()

    def _fit_constraints(self, history: History, space: SearchSpace) -> Model | None:
        data = history.constraints
        if data is None:
            return None
        inputs = space.model_inputs(data.X, data.C)
        bounds, categories = space.model_bounds, space.joint_categories
        models = []
        for column in data.G.split(1, dim=-1):
            transform = model_inputs(bounds, categories)
            model = _learnt(inputs, column, None, transform, "values of a constraint")
            models.append(_joint(model.requires_grad_(False), space))
        return ModelListGP(*models)

    def _fit(self, history: History, space: SearchSpace) -> SingleTaskGP:
        return self._model(history, space, True)

    def _decide(
        self,
        model: SingleTaskGP,
        constraints: Model | None,
        history: History,
        space: SearchSpace,
        *,
        seed: int,
    ) -> Tensor:
        model = _knowing(model, space)
        chance = self._chance(model, constraints, history, space, seed=seed)
        judge = self.judge(model, history, space, seed=seed)
        return self._best(model, judge, chance, history, space, seed, None)[0]

    def _choose_contexts(
        self, history: History, space: SearchSpace, x: Tensor, *, seed: int
    ) -> Tensor:
        model = self._fit(history, space)
        judge = self.judge(model, history, space, seed=seed)
        least = torch.finfo(x.dtype).tiny
        chosen = []
        for row in x:

            def pessimistic(contexts: Tensor, row: Tensor = row) -> Tensor:
                mean, variance = moments_at(model, row, contexts)
                return mean - _PESSIMISM * variance.clamp_min(least).sqrt()

            contexts, robust = worst_case(judge, pessimistic, seed=seed)
            points = contexts.points[robust.weights > _CARRIES]
            with torch.no_grad():
                variance = moments_at(model, row, points)[1]
            chosen.append(space.with_known(points[variance.argmax()]))
        return torch.stack(chosen)

    def _model(
        self, history: History, space: SearchSpace, uses_contexts: bool
    ) -> SingleTaskGP:
        """The fitted model; of ``[x, c]`` one that is constant in known columns."""
        # Of x alone the context is noise too, of a size that nobody knows.
        Yvar = history.Yvar if uses_contexts else None
        inputs, bounds, categories = history.X, space.bounds, space.categories
        if uses_contexts:
            inputs = space.model_inputs(history.X, history.C)
            bounds, categories = space.model_bounds, space.joint_categories
        if self.model is not None:
            made = make_model(self.model, inputs, history.Y, Yvar, bounds)
            model = cast(SingleTaskGP, made)
        elif self.hyperparameters is not None:
            model = self.hyperparameters.model(
                inputs,
                history.Y,
                bounds,
                space.model_bounds.shape[-1],
                Yvar,
                categories,
            )
        else:
            model = _learnt(
                inputs, history.Y, Yvar, model_inputs(bounds, categories), "outcomes"
            )
        model = model.requires_grad_(False)  # only x is differentiated from here on
        return _joint(model, space) if uses_contexts else model

    def _ascend(
        self,
        acqf: AcquisitionFunction,
        space: SearchSpace,
        seed: int,
        start: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Maximise from several starts: ``r x d_x`` candidates and ``r`` values."""
        cube = InUnitCube(acqf, space.bounds)
        if space.is_box:
            unit = sobol(self.raw_samples, space.d_x, seed).to(space.bounds)
        else:
            unit = cube.to_cube(sample(space, self.raw_samples, seed))
        ranking = cast(AcquisitionFunction, cube.ranking)  # it is called, no more
        starts = hilltops(ranking, unit, self.num_restarts)
        if start is not None:
            starts = torch.cat([starts, cube.to_cube(start)])
        if not space.is_box:
            maxima = climb(
                cube,
                space,
                starts,
                raw_samples=self.raw_samples,
                max_iterations=self.max_iterations,
            )
            return maxima, score(acqf, maxima)
        candidates, _ = optimize_acqf(
            cube,
            bounds=cube.bounds,
            q=1,
            num_restarts=len(starts),
            batch_initial_conditions=starts,
            return_best_only=False,
            # Robust objectives have kinks, at which a line search may give up. Where it
            # stopped is a candidate all the same: no reason to start all over.
            retry_on_optimization_warning=False,
            options={"maxiter": self.max_iterations, **_LINE_SEARCH},
        )
        maxima = cube.to_box(candidates).squeeze(-2)
        return maxima, score(acqf, maxima)


def _learnt(
    inputs: Tensor, Y: Tensor, Yvar: Tensor | None, transform: InputTransform, told: str
) -> SingleTaskGP:
    """A model fitted to values ``t x 1`` that were told under a name."""
    units = level_and_unit(Y, told)
    model = scaled_model(inputs, Y, *units, Yvar, input_transform=transform)
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(likelihood, optimizer=minimise_in_logarithms)
    return model.eval()


def _others(x: Tensor, history: History, space: SearchSpace) -> Tensor:
    """Decisions told that may be taken and are apart from ``x``, ``m x d_x``."""
    told = history.X.unique(dim=0)
    told = told[feasible(space, told)]
    lower, upper = space.bounds
    return told[((told - x).abs() > SEPARATION * (upper - lower)).any(-1)]


def _mean_at(model: Model, x: Tensor) -> Score:
    """The mean at one decision ``d_x``: contexts ``n x d_c`` to ``n``."""
    return lambda contexts: moments_at(model, x, contexts)[0]


def moments_at(model: Model, x: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance at one decision ``d_x`` and ``n x d_c`` contexts, ``n``."""
    return joint_moments(model, torch.cat([x.expand(len(contexts), -1), contexts], -1))


def _joint(model: SingleTaskGP, space: SearchSpace) -> SingleTaskGP:
    """A model of ``[x, c]``, that is constant in the known columns of the context."""
    return _knowing(with_perturbation(model) if space.perturbation else model, space)


def _knowing(model: SingleTaskGP, space: SearchSpace) -> SingleTaskGP:
    """A model of ``[x, c]`` that is constant in the known columns of the context."""
    known = space.known_context
    if known is None:
        return model
    columns = space.known_columns
    return with_known_columns(model, [space.d_x + j for j in columns], known[columns])
