"""Ax: the trials of an experiment as events, its limits, and the generation node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from ax.adapter.base import Adapter
from ax.adapter.registry import Generators
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun, GeneratorRunType
from ax.core.observation import ObservationFeatures
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.trial_status import TrialStatus
from ax.core.types import ComparisonOp, TParameterization
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo.codec import encode
from botorch_drbo.integrations._ax_parameters import Translation
from botorch_drbo.integrations._host import (
    FAILED,
    STRICT,
    Outside,
    OutsideRule,
    check_names,
    outcome,
)
from botorch_drbo.integrations._host import outcome as check_outcome
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.optimizer.journal import write_state
from botorch_drbo.problem import Round
from botorch_drbo.recipes import recipe_from_dict
from botorch_drbo.recipes.model_based import ModelBasedRecipe

_MEASURED = "botorch_drbo_constraints"  # in the metadata of a trial
_LOST = 1e-9  # more than what is lost by ten decimals
UNMEASURED = "Nothing is learnt about the outcome constraints from it."
IGNORED = "Until one has, the outcome constraints are ignored."


@dataclass(frozen=True)
class Limit:
    """One outcome constraint with an absolute bound."""

    # The weight of each metric in its left-hand side.
    weights: Mapping[str, float]
    # Its right-hand side.
    bound: float
    # Whether the left-hand side must not exceed the bound.
    is_upper: bool

    @classmethod
    def of(cls, constraint: OutcomeConstraint) -> Limit:
        """Read a constraint of Ax."""
        if constraint.relative:
            raise UnsupportedError(
                f"The outcome constraint {constraint.expression!r} is relative to a "
                "baseline, and recipes do not model one. Write its bound as a number, "
                "such as 'heat <= 3'."
            )
        weights = (weight for _, weight in constraint.metric_weights)
        return cls(
            weights=dict(zip(constraint.metric_names, weights, strict=True)),
            bound=constraint.bound,
            is_upper=constraint.op is ComparisonOp.LEQ,
        )

    def room(self, measured: Mapping[str, float]) -> float:
        """The distance to the bound, not negative where the constraint holds."""
        value = sum(weight * measured[name] for name, weight in self.weights.items())
        return self.bound - value if self.is_upper else value - self.bound


def limits_of(experiment: Experiment) -> list[Limit]:
    """The outcome constraints of an experiment, in their order."""
    config = experiment.optimization_config
    return [] if config is None else [Limit.of(c) for c in config.outcome_constraints]


def metrics_of(limits: Sequence[Limit]) -> list[str]:
    """The metrics that constraints need, each once."""
    return list(dict.fromkeys(name for limit in limits for name in limit.weights))


def rooms_of(
    experiment: Experiment, rule: OutsideRule
) -> dict[tuple[int, str], list[float]]:
    """The room to each limit, for each arm with finite numbers of all its metrics."""
    limits = limits_of(experiment)
    metrics = metrics_of(limits)
    measured: dict[tuple[int, str], dict[str, float]] = {}
    table = experiment.lookup_data().df
    table = table[table["metric_name"].isin(metrics)]
    columns = (table[name] for name in ("trial_index", "arm_name", "metric_name"))
    for index, arm, metric, mean in zip(*columns, table["mean"], strict=True):
        kept = experiment.trials[index].run_metadata.get(_MEASURED, {}).get(metric)
        if kept is not None and abs(kept - mean) < _LOST:  # else it came later
            mean = kept
        if is_number(mean, f"{metric!r} of trial {index}", rule):
            measured.setdefault((index, arm), {})[metric] = float(mean)
    rooms = {
        arm: [limit.room(values) for limit in limits]
        for arm, values in measured.items()
        if len(values) == len(metrics)
    }
    if limits and not rooms and not experiment.lookup_data().df.empty:
        error = InputDataError(f"No trial has all of {metrics}.")
        OutsideRule("skip", rule.said).refuse_or_warn(error, IGNORED)
    return rooms


def is_number(value: object, what: str, rule: OutsideRule) -> bool:
    """Whether a measurement is a number that a model can take."""
    try:
        outcome(value, what)
    except InputDataError as refusal:
        rule.refuse_or_warn(refusal, UNMEASURED)
        return False
    return True


def keep_measured(trial: BaseTrial, measured: Mapping[str, float]) -> None:
    """Keep all digits of constraint metrics: Ax's files have ten decimals."""
    if measured:
        trial.update_run_metadata({_MEASURED: dict(measured)})


_Arm = tuple[int, str]  # the index of its trial, its name
_Outcome = tuple[float, float | None]  # and the variance of its noise

_OUTCOME = "botorch_drbo_outcome"  # in the metadata of a trial
_GOES_ON = "botorch_drbo_goes_on"  # likewise
_NONE = (None, None)

ON_THE_WAY = {
    TrialStatus.CANDIDATE,
    TrialStatus.STAGED,
    TrialStatus.RUNNING,
    TrialStatus.ABANDONED,  # Ax promises not to ask for it again
}


def is_attached(trial: BaseTrial) -> bool:
    """Whether a person attached it, so that it holds what happened."""
    manual = GeneratorRunType.MANUAL.name
    return any(run.generator_run_type == manual for run in trial.generator_runs)


def events_of(
    experiment: Experiment,
    words: Translation,
    outcomes: Mapping[_Arm, _Outcome],
    rooms: Mapping[_Arm, Sequence[float]],
    rule: OutsideRule,
) -> list[dict[str, Any]]:
    """What was asked and told, as the events of a run."""
    events: list[dict[str, Any]] = []
    num_trials = 0  # of the run

    def record(kind: str, **fields: Any) -> None:
        stored = {name: encode(value, name) for name, value in fields.items()}
        events.append({"event": kind, "number": len(events) + 1, **stored})

    def tensor(numbers: Sequence[float | None]) -> Tensor:
        filled = [math.nan if number is None else number for number in numbers]
        return torch.tensor(filled, dtype=torch.double)

    for trial in experiment.trials.values():
        asked = not is_attached(trial)
        failed = trial.status is TrialStatus.FAILED
        for arm in trial.arms:
            outcome = None if failed else outcomes.get((trial.index, arm.name))
            pending = outcome is None and trial.status in ON_THE_WAY
            where = f"trial {trial.index}"
            x = words.decisions(arm.parameters, where, rule)
            if x is None:
                continue
            c = words.contexts(arm.parameters, where, rule)
            seen = None if None in c else tensor(c)
            lost = asked and seen is None  # it has failed before its context was seen
            if asked:
                known = tensor(c) if any(value is not None for value in c) else None
                this_round = Round(known_context=known)
                record("ask", x=tensor(x).unsqueeze(0), this_round=this_round)
                num_trials += 1
                if pending:
                    continue
                gone = _GOES_ON in trial.run_metadata
                gone = gone or trial.status is TrialStatus.STALE
                if gone or not lost:
                    record("withdraw", trial=num_trials - 1)
                if gone:  # what happened, if anything, is a trial of its own
                    continue
            if outcome is not None:
                outcome = _of_use(trial, arm.parameters, outcome, words, rule)
            if seen is None:
                if pending:
                    continue
                outcome = None
            observation = {"x": tensor(x), "c": seen, "closes_pending": lost}
            room = rooms.get((trial.index, arm.name))
            if seen is not None and room and not (pending and outcome is None):
                observation["constraints"] = tensor(room).unsqueeze(0)
            mean, variance = outcome or _NONE
            over = outcome is None and not pending
            record("tell", **observation, y=mean, y_variance=variance, failed=over)
            num_trials += not lost
    return events


def _of_use(
    trial: BaseTrial,
    parameters: Mapping[str, Any],
    outcome: _Outcome,
    words: Translation,
    rule: OutsideRule,
) -> _Outcome | None:
    """An outcome that says something of a decision and a context."""
    missing = [name for name in words.space.contexts if name not in parameters]
    try:
        if missing:
            raise InputDataError(
                f"Trial {trial.index} has an outcome and not its context ({missing}). "
                f"Say which one came: `tell(client, {trial.index}, context, raw_data)`."
            )
        check_outcome(outcome[0], f"the outcome of trial {trial.index}")
    except InputDataError as error:
        rule.refuse_or_warn(error, FAILED)
        return None
    return outcome


def goes_on(trial: BaseTrial, index: int) -> None:
    """Say of a trial that is closed that it has not failed: another one continues."""
    trial.update_run_metadata({_GOES_ON: index})


def keep_outcome(trial: BaseTrial, mean: float, error: float | None) -> None:
    """Keep all digits of an outcome: Ax's files have ten decimals."""
    trial.update_run_metadata({_OUTCOME: [mean, error]})


def outcomes_of(experiment: Experiment, metric: str) -> dict[_Arm, _Outcome]:
    """The outcome of each arm, and the variance of its noise or None."""
    found: dict[_Arm, _Outcome] = {}
    table = experiment.lookup_data().df
    table = table[table["metric_name"] == metric]
    columns = (table[name] for name in ("trial_index", "arm_name", "mean", "sem"))
    for index, arm, mean, error in zip(*columns, strict=True):
        stored_mean, stored_error = experiment.trials[index].run_metadata.get(
            _OUTCOME, _NONE
        )
        if (
            stored_mean is not None and abs(stored_mean - mean) < _LOST
        ):  # else it came later
            mean = stored_mean
        if stored_error is not None and abs(stored_error - error) < _LOST:
            error = stored_error
        if error < 0:
            raise InputDataError(
                f"The standard error of {metric!r} in trial {index} is negative, "
                f"{error}. Correct it: `client.attach_data({index}, {{{metric!r}: "
                "(mean, error)})`."
            )
        variance = None if math.isnan(error) else float(error) ** 2
        found[index, arm] = float(mean), variance
    lacking = sorted({trial for (trial, _), (_, v) in found.items() if v is None})
    if 0 < len(lacking) < len({trial for trial, _ in found}):
        raise InputDataError(
            f"The trials {lacking} have no standard error of {metric!r}, and others "
            "have one. A model either knows the noise of every outcome or learns one "
            "size of it for all: give it with each outcome, or with none. To add it: "
            f"`client.attach_data({lacking[0]}, {{{metric!r}: (mean, error)}})`."
        )
    return found


def objective_of(experiment: Experiment) -> tuple[str, bool]:
    """The metric, and whether low outcomes are good."""
    config = experiment.optimization_config
    if config is None:
        raise InputDataError(
            "The experiment has no objective. Call `client.configure_optimization`."
        )
    objective = config.objective
    if not objective.is_single_objective:
        raise UnsupportedError(
            f"The experiment has the objective {objective.expression!r}. The recipes "
            "optimise one metric: report the one that counts."
        )
    return objective.metric_names[0], objective.minimize


NODE = "botorch_drbo"
"""Its name in a strategy."""


@dataclass(init=False, eq=False)  # Ax stores the fields
class RobustGenerationNode(ExternalGenerationNode):
    """A node of an Ax generation strategy that runs a recipe.

    A generated trial contains the decision, and the contexts passed as
    ``fixed_parameters`` because they are already known.

    Args:
        context_names: The parameters of the experiment that are contexts.
        algorithm: The recipe, from ``Recipe.to_dict``.
        num_initial: The number of decisions in the initial design.
        seed: Determines all random draws.
        outside: What to do with a trial that cannot be used.
    """

    context_names: list[str]
    algorithm: dict[str, Any]
    num_initial: int
    seed: int
    outside: Outside = "skip"

    def __init__(
        self,
        context_names: list[str],
        algorithm: dict[str, Any],
        num_initial: int,
        seed: int,
        outside: Outside = "skip",  # files of version 0.2.0 have none
    ) -> None:
        super().__init__(name=NODE, should_deduplicate=False)
        self.context_names = context_names
        self.algorithm = algorithm
        self.num_initial = num_initial
        self.seed = seed
        self.outside = outside
        self._rule = OutsideRule(outside)
        self._experiment: Experiment | None = None
        self._surrogate: tuple[pd.DataFrame, Adapter] | None = None
        self._known: TParameterization = {}
        self._current: tuple[Translation, NamedOptimizer] | None = None

    def gen(
        self, *, fixed_features: ObservationFeatures | None = None, **arguments: Any
    ) -> GeneratorRun | None:
        """Ax's call for a trial; parameters that are fixed are known contexts."""
        self._known = {} if fixed_features is None else dict(fixed_features.parameters)
        return super().gen(fixed_features=fixed_features, **arguments)

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Read the experiment as it is now."""
        self._experiment = experiment
        self._current = self.words(experiment), self.optimizer(experiment)

    def get_next_candidate(
        self, pending_parameters: list[TParameterization]
    ) -> TParameterization:
        """The next decision; earlier ones of the same call count as pending."""
        assert self._current is not None  # Ax updates first
        words, current = self._current
        for name in self._known:
            if name not in self.context_names:
                raise UnsupportedError(
                    f"{name!r} cannot be held fixed: it is no context, and a recipe "
                    "chooses all of the decision. What can be known before are the "
                    f"contexts {self.context_names}."
                )
        known = words.as_kept(self._known, "`fixed_parameters`", STRICT)
        x = current.ask(context=words.named(known) or None)
        return {**words.for_ax(x.to_dict("records")[0]), **known}

    def recommend(
        self, experiment: Experiment, known: Mapping[str, float | str]
    ) -> TParameterization:
        """The decision with the best robust value, given what is known."""
        words = self.words(experiment)
        check_names(known, self.context_names, "context", all_of_them=False)
        known = words.named(words.as_kept(known, "`context`", STRICT))
        best = self.optimizer(experiment).recommend(context=known or None)
        return words.for_ax(best.x.to_dict("records")[0])

    def words(self, experiment: Experiment) -> Translation:
        """The search space of the experiment, as a `Space`."""
        metric, _ = objective_of(experiment)
        return Translation.of(experiment.search_space, self.context_names, metric)

    def optimizer(self, experiment: Experiment) -> NamedOptimizer:
        """An optimizer with the data of the experiment."""
        words = self.words(experiment)
        metric, minimize = objective_of(experiment)
        recipe = recipe_from_dict(self.algorithm)
        if limits_of(experiment):
            recipe.check_takes_constraints()
        if isinstance(recipe, ModelBasedRecipe) and recipe.reference is not None:
            given = recipe.reference
            reference = words.space.context_set(given.points, given.weights)
            recipe = replace(recipe, reference=reference)
        fresh = NamedOptimizer(
            recipe,
            words.space,
            seed=self.seed,
            maximize=not minimize,
            num_initial=self.num_initial,
        ).state_dict()
        outcomes = outcomes_of(experiment, metric)
        if any(variance is not None for _, variance in outcomes.values()):
            recipe.check_uses_contexts("a standard error")
        rooms = rooms_of(experiment, self._rule)
        events = events_of(experiment, words, outcomes, rooms, self._rule)
        return NamedOptimizer.from_state_dict(
            write_state(fresh["config"], fresh["environment"], events),
            space=words.space,
        )

    @property
    def _fitted_adapter(self) -> Adapter | None:
        """Ax's own model of what has happened, for its predictions and analyses.

        It treats decision and context as one parameterization; recipes do not use it.
        """
        experiment = self._experiment
        if experiment is None:
            return None
        data = experiment.lookup_data()
        if self._surrogate is None or not self._surrogate[0].equals(data.df):
            arms = data.df["arm_name"].unique()
            whole = [arm for arm in arms if _is_whole(experiment, arm)]
            # Of fewer Ax has no analysis; a random design says so, none does not.
            kind = Generators.BOTORCH_MODULAR if len(whole) > 1 else Generators.SOBOL
            self._surrogate = data.df, kind(experiment=experiment, data=data)
        return self._surrogate[1]


def _is_whole(experiment: Experiment, arm: str) -> bool:
    """Whether an arm is inside the bounds and has its contexts."""
    parameters = experiment.arms_by_name[arm].parameters
    return experiment.search_space.check_membership(parameters)
