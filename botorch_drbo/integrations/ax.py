r"""Recipes inside Ax.

>>> from ax.api.client import Client
>>> from ax.api.configs import RangeParameterConfig
>>> from botorch_drbo.integrations import ax as robust
>>> client = Client()
>>> client.configure_experiment(
...     parameters=[
...         RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1)),
...         RangeParameterConfig(name="c", parameter_type="float", bounds=(0, 1)),
...     ]
... )
>>> client.configure_optimization(objective="-cost")
>>> client.set_generation_strategy(robust.generation_strategy(["c"], num_initial=2))
>>> ((index, decision),) = client.get_next_trials(max_trials=1).items()
>>> list(decision)  # the context has not come yet
['x']
>>> robust.tell(client, index, {"c": 0.4}, {"cost": 1.2})
1
>>> list(robust.recommend(client))
['x']

The context is a parameter of the experiment, with bounds; recipes never choose it. Ax
stores the trials and the data. At each call a ``NamedOptimizer`` is rebuilt from the
experiment, so it always matches the stored trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from ax.adapter.base import Adapter
from ax.analysis.analysis import Analysis
from ax.api.client import Client
from ax.core.analysis_card import AnalysisCard
from ax.core.base_trial import BaseTrial
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.core.types import TParameterization
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.storage.botorch_modular_registry import register_acquisition_function
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import check_count, did_you_mean
from botorch_drbo.acquisition import OverJointInputs
from botorch_drbo.integrations._ax_experiment import (
    NODE,
    ON_THE_WAY,
    UNMEASURED,
    RobustGenerationNode,
    goes_on,
    is_attached,
    is_number,
    keep_measured,
    keep_outcome,
    limits_of,
    metrics_of,
    objective_of,
)
from botorch_drbo.integrations._host import (
    FAILED,
    Outside,
    OutsideRule,
    check_names,
    check_outside,
    outcome,
)
from botorch_drbo.integrations.input_constructors import ACQUISITION_FUNCTIONS
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.optimizer.events import as_algorithm
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.options import names_of_functions

__all__ = [
    "RobustGenerationNode",
    "generation_strategy",
    "optimizer",
    "recommend",
    "tell",
]


def generation_strategy(
    context_names: Sequence[str],
    algorithm: str | Recipe = "wdrbo_exact",
    *,
    num_initial: int = 6,
    seed: int = 0,
    outside: Outside = "skip",
    **options: Any,
) -> GenerationStrategy:
    r"""A generation strategy for Ax's ``Client`` that proposes decisions only.

    Args:
        context_names: The parameters of the experiment that are contexts.
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``, or
            a recipe.
        num_initial: The number of decisions in the initial design (scrambled Sobol).
        seed: Determines all random draws.
        outside: What to do with a trial whose context is missing, not a number or
            outside its bounds, or whose outcome is not a finite number. "skip" warns
            and counts the trial as failed; "clip" does the same, but replaces a number
            beyond the bounds by the nearest bound; "raise" raises an error, and
            ``tell`` records nothing.
        options: Options of the named recipe. Outcomes are not standardised and contexts
            are not normalised beforehand: ``misspecification`` has the units of the
            outcome, and the points of a ``reference`` have those of the contexts. The
            radius has the units of the recipe; for ``wdrbo_exact`` it is a fraction of
            the range of each context, on the log scale for parameters with a log scale.

    Returns:
        The strategy; JSON and SQL storage keep it with the experiment. Import this
        module before you load one.

    Raises:
        InputDataError: No context names, an unknown algorithm or option, or an option
            outside its range or that cannot be saved.
    """
    if isinstance(context_names, str) or not context_names:
        raise InputDataError(
            f"`context_names` must be a list of names, got {context_names!r}. Write "
            "them in brackets."
        )
    if len(set(context_names)) < len(context_names):
        raise InputDataError(f"`context_names` must differ, got {list(context_names)}.")
    recipe = as_algorithm(algorithm, options, ["num_initial", "seed", "outside"])
    for name, function in names_of_functions(recipe.options).items():
        raise InputDataError(
            f"`{name}` is the function `{function.name}`, and Ax keeps the recipe with "
            "the experiment, which cannot hold a function. Leave it out, or take "
            "`RobustOptimizer`."
        )
    check_outside(outside)
    node = RobustGenerationNode(
        context_names=list(context_names),
        algorithm=recipe.to_dict(),
        num_initial=check_count(num_initial, "num_initial", 0),
        seed=check_count(seed, "seed", 0),
        outside=outside,
    )
    return GenerationStrategy(name=recipe.name, nodes=[node])


def tell(
    client: Client,
    trial_index: int,
    context: Mapping[str, float | str],
    raw_data: Mapping[str, float | tuple[float, float]] | None = None,
) -> int:
    r"""Report the context of a trial, and its outcome if it is known.

    Ax cannot add a context to a trial. Therefore the proposed trial is closed (as
    failed, with the reason), and decision, context and outcome are attached as a new
    trial. If the trial already has this context, it is completed.

    Without ``raw_data`` the context is used at once, and the trial continues: tell the
    outcome later, with the index that this call returns.

    Args:
        client: The client.
        trial_index: The trial, from ``get_next_trials`` or from an earlier ``tell``.
        context: The value of each context; values that the trial already has may be
            omitted.
        raw_data: The outcome by the name of its metric, a number or a pair of a number
            and its standard error, with the metrics of outcome constraints; None if it
            is not known yet.

    Returns:
        The index of the trial that continues.

    Raises:
        InputDataError: An unknown trial, one that has ended or has another context, an
            unknown context, or no outcome of the objective; with ``outside="raise"``
            also a missing context or one outside its bounds, or an outcome that is not
            a finite number. Nothing is recorded then.
    """
    experiment, node = _inside(client)
    if trial_index not in experiment.trials:
        raise InputDataError(
            f"There is no trial {trial_index!r}. The experiment has the trials "
            f"{list(experiment.trials)}."
        )
    trial, names = experiment.trials[trial_index], node.context_names
    check_names(context, names, "context", all_of_them=False)
    measured = None
    if raw_data is not None:
        measured = _measured(raw_data, objective_of(experiment)[0])
    parameters = trial.arms[0].parameters
    before = {name: v for name, v in parameters.items() if name in names}
    known: TParameterization = {**before, **context}
    whose = f"the context of trial {trial_index}"
    rule = OutsideRule(node.outside)
    kept = node.words(experiment).as_kept(known, whose, rule)
    _check_goes_on(trial, names, kept)
    missing = [name for name in names if name not in known]
    if missing:
        error = InputDataError(f"`context` lacks {missing}: tell all of {names}.")
        rule.refuse_or_warn(error, FAILED)
    of_use = measured is not None and _is_of_use(*measured, rule)
    limits = {} if raw_data is None else _constraints_told(experiment, raw_data, rule)
    if len(kept) < len(names):
        if raw_data is not None:
            _close(client, trial, f"it was {known}, {dict(raw_data)}")
        return trial_index
    if (whole := {**parameters, **kept}) != parameters:
        complete_index = client.attach_trial(whole)  # pyright: ignore[reportArgumentType]
        goes_on(trial, complete_index)
        _close(client, trial, f"its context came: see trial {complete_index}")
        trial_index, trial = complete_index, experiment.trials[complete_index]
    if raw_data is not None and measured is not None and of_use:
        keep_outcome(trial, *measured)
        keep_measured(trial, limits)
        client.complete_trial(trial_index, dict(raw_data))
    elif raw_data is not None:
        _close(client, trial, f"its outcome was {dict(raw_data)}")
    return trial_index


def recommend(
    client: Client, context: Mapping[str, float | str] | None = None
) -> TParameterization:
    r"""The decision with the best robust value of the posterior mean.

    This differs from ``Client.get_best_parameterization``, the trial with the best
    outcome, which may only have had a favourable context.

    Args:
        client: The client.
        context: What is known about the context; None for nothing.

    Returns:
        The decision. ``optimizer(client).recommend()`` also has its values.

    Raises:
        InputDataError: There is no outcome yet.
        UnsupportedError: The recipe cannot use what is known.
    """
    experiment, node = _inside(client)
    return node.recommend(experiment, {} if context is None else context)


def optimizer(client: Client) -> NamedOptimizer:
    r"""The experiment as a ``NamedOptimizer``: profiles, policies, predictions.

    Args:
        client: The client.

    Returns:
        A copy: the experiment does not receive what you tell it. Its columns have the
        names and units of the experiment.

    Raises:
        InputDataError: The client's strategy is not from ``generation_strategy``.
        UnsupportedError: The recipes do not support the experiment.
    """
    experiment, node = _inside(client)
    return node.optimizer(experiment)


CORE_DECODER_REGISTRY[RobustGenerationNode.__name__] = RobustGenerationNode
for _kind in (OverJointInputs, *ACQUISITION_FUNCTIONS):
    register_acquisition_function(_kind)


class _Visitor(Analysis):
    """The public access to what a client holds: an analysis is shown all of it."""

    experiment: Experiment | None = None
    strategy: GenerationStrategy | None = None

    def validate_applicable_state(self, *_: object, **__: object) -> None:
        """It always is."""

    def compute(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> AnalysisCard:
        """Remember what is shown."""
        self.experiment, self.strategy = experiment, generation_strategy
        return AnalysisCard(NODE, title="", subtitle="", df=pd.DataFrame(), blob="")


def _inside(client: Client) -> tuple[Experiment, RobustGenerationNode]:
    """The experiment of a client, and our node of its strategy."""
    visitor = _Visitor()
    client.compute_analyses([visitor], display=False)
    experiment, strategy = visitor.experiment, visitor.strategy
    assert experiment is not None and strategy is not None  # Ax has raised otherwise
    node = strategy.nodes_by_name.get(NODE)
    if not isinstance(node, RobustGenerationNode):
        raise InputDataError(
            f"The generation strategy of the client, {strategy.name!r}, is none of "
            "botorch_drbo. Call `client.set_generation_strategy(generation_strategy("
            "...))` before the first trial."
        )
    return experiment, node


def _measured(raw_data: Mapping[str, Any], metric: str) -> tuple[Any, Any]:
    """What was told of the objective: the outcome, and its standard error or None."""
    if not isinstance(raw_data, Mapping):
        raise InputDataError(
            f"`raw_data` must be a dictionary such as {{{metric!r}: 1.5}}, as Ax takes "
            f"it, got {raw_data!r}."
        )
    if metric not in raw_data:
        raise InputDataError(
            f"`raw_data` lacks the objective {metric!r}, got {list(raw_data)}."
            f"{did_you_mean(metric, raw_data)} Leave `raw_data` out if the outcome is "
            "still out."
        )
    return _mean_and_error(raw_data[metric])


def _mean_and_error(measurement: Any) -> tuple[Any, Any]:
    """A measurement as Ax takes it, a number or a pair."""
    if isinstance(measurement, tuple) and len(measurement) == 2:
        return measurement
    return measurement, None


def _constraints_told(
    experiment: Experiment, raw_data: Mapping[str, Any], rule: OutsideRule
) -> dict[str, float]:
    """The finite numbers told of the metrics of outcome constraints."""
    metrics = metrics_of(limits_of(experiment))
    if missing := [name for name in metrics if name not in raw_data]:
        error = InputDataError(
            f"`raw_data` lacks {missing}, which an outcome constraint needs, got "
            f"{list(raw_data)}.{did_you_mean(missing[0], raw_data)}"
        )
        OutsideRule("skip").refuse_or_warn(error, UNMEASURED)
    means = {
        name: _mean_and_error(raw_data[name])[0] for name in metrics if name in raw_data
    }
    return {
        name: mean
        for name, mean in means.items()
        if is_number(mean, f"{name!r} in `raw_data`", rule)
    }


def _is_of_use(mean: object, error: object, rule: OutsideRule) -> bool:
    """Whether an outcome and its standard error can be learnt from."""
    try:
        outcome(mean, "The outcome in `raw_data`")
        if error is not None and outcome(error, "The standard error in `raw_data`") < 0:
            raise InputDataError(
                f"The standard error in `raw_data` must not be negative, got {error}."
            )
    except InputDataError as refusal:
        rule.refuse_or_warn(refusal, FAILED)
        return False
    return True


def _close(client: Client, trial: BaseTrial, reason: str) -> None:
    """Close a trial as failed, also one that was completed without its context."""
    trial.mark_failed(reason, unsafe=True)
    client.mark_trial_failed(trial.index)  # saves it, where there is a database


def _check_goes_on(
    trial: BaseTrial, names: Sequence[str], context: Mapping[str, object]
) -> None:
    """Raise unless this context can be told of the trial."""
    if len(trial.arms) > 1:
        raise InputDataError(
            f"Trial {trial.index} has {len(trial.arms)} arms, each with its own "
            "context. Attach each as a separate trial with `client.attach_trial`."
        )
    shown = {n: v for n, v in trial.arms[0].parameters.items() if n in names}
    forgotten = trial.status is TrialStatus.COMPLETED and len(shown) < len(names)
    if trial.status not in ON_THE_WAY and not forgotten:
        reason = f": {trial.status_reason}" if trial.status_reason else ""
        raise InputDataError(
            f"Trial {trial.index} has ended as {trial.status.name}{reason}."
        )
    if is_attached(trial) and shown != dict(context):
        raise InputDataError(
            f"Trial {trial.index} has the context {shown} already. If that was a "
            f"mistake, `client.mark_trial_failed({trial.index})` and attach what "
            "happened with `client.attach_trial`."
        )
