"""The trials of an Ax experiment, as the events of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from ax.core.base_trial import BaseTrial
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRunType
from ax.core.trial_status import TrialStatus
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo.codec import encode
from botorch_drbo.integrations._ax_parameters import Translation
from botorch_drbo.integrations._host import FAILED, OutsideRule
from botorch_drbo.integrations._host import outcome as check_outcome
from botorch_drbo.problem import Round

_Arm = tuple[int, str]  # the index of its trial, its name
_Outcome = tuple[float, float | None]  # and the variance of its noise

_OUTCOME = "botorch_drbo_outcome"  # in the metadata of a trial
_NONE = (None, None)
_LOST = 1e-9  # more than what is lost by ten decimals

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
            if asked:
                known = tensor(c) if any(value is not None for value in c) else None
                this_round = Round(known_context=known)
                record("ask", x=tensor(x).unsqueeze(0), this_round=this_round)
                num_trials += 1
                if pending:
                    continue
                record("withdraw", trial=num_trials - 1)
                if failed:  # what happened, if anything, is a trial of its own
                    continue
            if outcome is not None:
                outcome = _of_use(trial, arm.parameters, outcome, words, rule)
            if None in c:
                continue
            observation = {"x": tensor(x), "c": tensor(c), "closes_pending": False}
            room = rooms.get((trial.index, arm.name))
            if room is not None and not (pending and outcome is None):
                observation["constraints"] = tensor(room).unsqueeze(0)
            mean, variance = outcome or _NONE
            over = outcome is None and not pending
            record("tell", **observation, y=mean, y_variance=variance, failed=over)
            num_trials += 1
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
