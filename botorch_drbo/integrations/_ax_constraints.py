"""Outcome constraints of an Ax experiment: how much room each arm left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ax.core.base_trial import BaseTrial
from ax.core.experiment import Experiment
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.types import ComparisonOp
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo.integrations._host import OutsideRule, outcome

_MEASURED = "botorch_drbo_constraints"  # in the metadata of a trial
_LOST = 1e-9  # more than what is lost by ten decimals
UNMEASURED = "Nothing is learnt about the outcome constraints from it."
IGNORED = "Until one has, the outcome constraints are ignored."


@dataclass(frozen=True)
class Limit:
    """One outcome constraint with an absolute bound.

    Attributes:
        weights: The weight of each metric in its left-hand side.
        bound: Its right-hand side.
        is_upper: Whether the left-hand side must not exceed the bound.
    """

    weights: Mapping[str, float]
    bound: float
    is_upper: bool

    @classmethod
    def of(cls, constraint: OutcomeConstraint) -> Limit:
        """Read a constraint of Ax.

        Raises:
            UnsupportedError: Its bound is relative to a baseline.
        """
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
    """The room to each limit, for each arm with finite numbers of all its metrics.

    Args:
        experiment: The experiment.
        rule: What to do with a measurement that is no finite number.

    Returns:
        By the index of the trial and the name of the arm; one number per constraint.
    """
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
