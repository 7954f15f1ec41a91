"""Every recipe as a sampler of `Optuna <https://optuna.org>`_ (extra ``[optuna]``).

The objective suggests a decision; then the context is observed, which is written to the
trial as user attributes of its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, final

from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna import Study, Trial
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.integrations import _host
from botorch_drbo.integrations._host import (
    Logarithmic,
    Outside,
    RobustDecision,
    as_plain,
    check_names,
    own_name,
)
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.run import Run
from botorch_drbo.problem import Round
from botorch_drbo.recipes import Recipe
from botorch_drbo.sampling import derive_seed
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    Log,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.space.table import to_tensor


@final
class Columns:
    """A decision or a context of a study: its distributions, and their variables."""

    def __init__(self, given: Mapping[str, BaseDistribution], what: str) -> None:
        if not isinstance(given, Mapping) or not given:
            raise InputDataError(
                f"`{what}` must be a dictionary from names to Optuna distributions, "
                f"with at least one entry, got {given!r}."
            )
        self.names = list(given)
        self._given = dict(given)
        self.variables = {
            name: _variable(values, f"`{what}` has {name!r}")
            for name, values in given.items()
        }
        self._choices = {
            name: dict(zip(variable.choices, values.choices, strict=True))
            for (name, values), variable in zip(
                given.items(), self.variables.values(), strict=True
            )
            if isinstance(values, CategoricalDistribution)
            and isinstance(variable, Category)
        }

    def named(self, values: Mapping[str, object]) -> dict[str, object]:
        """Those of the values that are columns; categories by their names."""
        return {
            name: own_name(values[name], self._choices.get(name, {}))
            for name in self.names
            if name in values
        }

    def values(self, x: Tensor) -> dict[str, Any]:
        """What Optuna knows of a model's row, ``d``; nothing where it is NaN."""
        return {
            name: self._value(name, number)
            for name, number in zip(self.names, x, strict=True)
            if not number.isnan()
        }

    def _value(self, name: str, number: Tensor) -> Any:
        values, variable = self._given[name], self.variables[name]
        if isinstance(values, CategoricalDistribution):
            return values.choices[int(number)]
        (value,) = variable.decode(number.unsqueeze(0))
        return round(value) if isinstance(values, IntDistribution) else value


def _variable(values: BaseDistribution, what: str) -> Variable:
    if not isinstance(
        values, FloatDistribution | IntDistribution | CategoricalDistribution
    ):
        raise UnsupportedError(
            f"{what}, a {type(values).__name__}: give a FloatDistribution, an "
            "IntDistribution or a CategoricalDistribution."
        )
    if values.single():
        raise InputDataError(f"{what} with one value only, {values}. Leave it out.")
    if isinstance(values, CategoricalDistribution):
        names = [str(choice) for choice in values.choices]
        if len(set(names)) < len(names):
            names = [repr(choice) for choice in values.choices]
        return Category(names)
    if isinstance(values, IntDistribution):
        if values.log:
            return Logarithmic(Integer(values.low, values.high))
        if values.step == 1:
            return Integer(values.low, values.high)
        return Ordinal(range(values.low, values.high + 1, values.step))
    if values.log:
        return Log(values.low, values.high)
    if values.step is None:
        return Continuous(values.low, values.high)
    num = round((values.high - values.low) / values.step)
    return Ordinal([values.low + i * values.step for i in range(num + 1)])


__all__ = ["RobustDecision", "RobustSampler", "recommend", "tell"]

_OUTCOME = "objective value"  # for reports
_UNKNOWN = {"(not known yet)": FloatDistribution(0.0, 1.0)}  # parameters
_PROPOSED = "botorch_drbo:"  # what was proposed, until the objective suggests it


@final
class RobustSampler(BaseSampler):
    r"""Suggest decisions that are good under every plausible context distribution.

    **Contexts** are user attributes of the trial. An attribute set after the decision
    was suggested is the observed context. An attribute set before the first ``suggest``
    is a known context, and the decision is optimised for it.

    Running trials are avoided, and their contexts are used as soon as they are set. The
    context of a failed or pruned trial is used, its outcome is not. Suggestions depend
    only on the arguments and on the study: another process that opens the same storage
    with the same arguments suggests the same decisions.

    Args:
        contexts: The possible values of each context; the worst case may use all of
            them. With ``log=True`` its logarithm is modelled, and a radius is a
            fraction of the logarithmic range.
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``, or
            a recipe.
        search_space: The distribution of each parameter; None to infer them from the
            complete trials (suggestions are random until there is one).
        seed: Determines all random draws.
        num_initial: Size of the initial design; None for twice one more than the
            number of parameters.
        outside: What to do with a trial whose context is missing, not a number or
            outside its range, whose outcome is infinite, or whose decision is outside
            the search space. "skip" warns and counts the trial as failed; "clip" does
            the same, but replaces a number beyond its range by the nearest bound;
            "raise" raises an error at once and in every later call, because Optuna
            cannot change a finished trial. Stored values never change: a sampler with
            wider ranges, or another value of ``outside``, reads them again.
        options: Options of the named recipe. A ``reference`` has your units, and its
            columns have the order of ``contexts``.

    Raises:
        InputDataError: An unknown algorithm, option or name, or a value outside its
            range; with ``outside="raise"`` later also a trial that cannot be used.
        UnsupportedError: Categorical contexts for a recipe that needs numbers; later
            several objectives, or constraints.

    Example:
        >>> import optuna
        >>> from botorch_drbo.integrations.optuna import RobustSampler, tell
        >>> from optuna.distributions import FloatDistribution
        >>> sampler = RobustSampler({"demand": FloatDistribution(0, 100)}, radius=0.1)
        >>> study = optuna.create_study(direction="maximize", sampler=sampler)
        >>> trial = study.ask({"stock": FloatDistribution(10, 90)})
        >>> tell(study, trial, {"demand": 40.0}, value=1.5)
    """

    def __init__(
        self,
        contexts: Mapping[str, BaseDistribution],
        algorithm: str | Recipe = "wdrbo_exact",
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int = 0,
        num_initial: int | None = None,
        outside: Outside = "skip",
        **options: Any,
    ) -> None:
        self._contexts = Columns(contexts, "contexts")
        own = ["contexts", "search_space", "seed", "num_initial", "outside"]
        self._algorithm = _in_model_units(
            _host.recipe(algorithm, options, own), self._contexts
        )
        self._seed = seed
        self._num_initial = num_initial
        self._search_space = search_space
        _host.check_outside(outside)
        self._outside: Outside = outside
        self._rules: dict[str, _host.OutsideRule] = {}  # by the name of the study
        # All else is checked now, also where the parameters are not known yet.
        space = _UNKNOWN if search_space is None else search_space
        columns = Columns(space, "search_space")
        objective = self._algorithm.options.get("objective")
        low = getattr(objective, "low_is_good", False)  # of words; the study decides
        direction = StudyDirection.MINIMIZE if low else StudyDirection.MAXIMIZE
        self._configuration(columns, direction)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The given parameters, or those that all complete trials have in common."""
        if len(study.directions) > 1:
            raise UnsupportedError(
                f"The study has {len(study.directions)} objectives, RobustSampler "
                "decides by one. Weigh them into one value, or make a study for each."
            )
        if self._search_space is not None:
            return dict(self._search_space)
        common = intersection_search_space(study.get_trials(deepcopy=False))
        return {name: values for name, values in common.items() if not values.single()}

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Propose all parameters together; see the class."""
        if not search_space:
            return {}
        columns = Columns(search_space, "search_space")
        known = Round(known_context=_host.known(self._context(study, columns, trial)))
        with _host.ONE_AT_A_TIME:
            others = [t for t in _begun(study) if t.number != trial.number]
            run = self._run(study, columns, others, trial.number)
            params = columns.values(_host.decisions(run, 1, known)[0])
            for name, value in params.items():
                study._storage.set_trial_system_attr(  # as Optuna's own samplers do
                    trial._trial_id, _PROPOSED + name, value
                )
        return params

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw a parameter before the search space is known; raise an error for one
        that is not modelled."""
        space = self.infer_relative_search_space(study, trial)
        if space or study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            raise UnsupportedError(
                f"The parameter {param_name!r} ({param_distribution}) is not among "
                f"those that are modelled, {space}: the `search_space`, or what all "
                "complete trials have in common. A robust decision leaves none to "
                "chance. Suggest the same parameters with the same ranges in every "
                "trial, or pass them as `search_space`."
            )
        self._check_apart(Columns({param_name: param_distribution}, "search_space"))
        seed = derive_seed(self._seed, trial.number, zlib.crc32(param_name.encode()))
        return RandomSampler(seed=seed).sample_independent(
            study, trial, param_name, param_distribution
        )

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Check an outcome when its trial ends."""
        space = self._search_space or trial.distributions
        space = {name: given for name, given in space.items() if not given.single()}
        if state == TrialState.COMPLETE and values is not None and space:
            self._trial(0, study, trial, Columns(space, "search_space"), values[0])

    def _configuration(
        self, columns: Columns, direction: StudyDirection
    ) -> Configuration:
        self._check_apart(columns)
        return Configuration(
            self._algorithm,
            self._space(columns),
            None,  # the space says what the contexts are
            seed=self._seed,
            maximize=direction == StudyDirection.MAXIMIZE,
            num_initial=self._num_initial,
        )

    def _space(self, columns: Columns) -> Space:
        return Space(columns.variables, self._contexts.variables, outcome=_OUTCOME)

    def _check_apart(self, columns: Columns) -> None:
        both = sorted(set(columns.names) & set(self._contexts.names))
        if both:
            raise InputDataError(
                f"{both} are parameters and contexts. A context is never suggested: "
                "the world shows it, and it becomes a user attribute."
            )

    def _run(
        self,
        study: Study,
        columns: Columns,
        trials: Sequence[FrozenTrial],
        num_asked: int,
    ) -> Run:
        """The study as a run of ours."""
        ours = []
        for number, trial in enumerate(trials):
            if trial.constraints:
                raise UnsupportedError(
                    f"Trial {trial.number} has constraints {trial.constraints}, which "
                    "RobustSampler does not know. Leave infeasible decisions out of "
                    "the search space, or make them part of the objective."
                )
            outcome = trial.value if trial.state == TrialState.COMPLETE else None
            ours.append(self._trial(number, study, trial, columns, outcome))
        configuration = self._configuration(columns, study.direction)
        return _host.run_of(configuration, ours, num_asked)

    def _trial(
        self,
        number: int,
        study: Study,
        trial: FrozenTrial,
        columns: Columns,
        value: float | None,
    ) -> _host.Trial:
        params = {
            name.removeprefix(_PROPOSED): value
            for name, value in trial.system_attrs.items()
            if name.startswith(_PROPOSED)
        } | trial.params
        return self._reader(study, columns).trial(
            number,
            f"trial {trial.number}",
            columns.named(params),
            self._contexts.named(trial.user_attrs),
            value,
            remedy=f"Its user attributes are {sorted(trial.user_attrs)}. Set those of "
            "the context before the objective returns, `trial.set_user_attr(name, "
            "value)`, or use `botorch_drbo.integrations.optuna.tell`.",
            pending=trial.state == TrialState.RUNNING,
        )

    def _context(self, study: Study, columns: Columns, trial: FrozenTrial) -> Tensor:
        """What is known of a trial's context, ``d_c``, NaN where nothing is."""
        return self._reader(study, columns).context(
            self._contexts.named(trial.user_attrs), f"trial {trial.number}"
        )

    def _reader(self, study: Study, columns: Columns) -> _host.Reader:
        rule = self._rules.setdefault(
            study.study_name, _host.OutsideRule(self._outside)
        )
        return _host.Reader(columns.variables, self._contexts.variables, rule)


def tell(
    study: Study,
    trial: Trial | int,
    context: Mapping[str, float],
    value: float | None = None,
    state: TrialState | None = None,
) -> None:
    r"""Report the context of a trial, and its outcome.

    Args:
        study: The study, with a ``RobustSampler``.
        trial: The trial or its number.
        context: For each name its value.
        value: The outcome; None if it is not known yet: the context is used at once,
            and a later call reports the outcome.
        state: ``TrialState.FAIL`` or ``PRUNED`` for a trial that will never have an
            outcome.

    Raises:
        InputDataError: An unknown name or trial; with ``outside="raise"`` also a
            missing context, one outside its range, or an outcome that is no finite
            number. Nothing is recorded then.

    Example:
        >>> import optuna
        >>> from botorch_drbo.integrations.optuna import RobustSampler, tell
        >>> from optuna.distributions import FloatDistribution
        >>> sampler = RobustSampler({"demand": FloatDistribution(0, 100)}, "erbo")
        >>> study = optuna.create_study(sampler=sampler)
        >>> trial = study.ask({"stock": FloatDistribution(10, 90)})
        >>> tell(study, trial, {"demand": 40.0})  # in the morning
        >>> tell(study, trial, {"demand": 40.0}, value=7.5)  # in the evening
    """
    sampler, finished = _sampler(study), value is not None
    contexts, outside = sampler._contexts, sampler._outside
    strict = outside == "raise"
    check_names(context, contexts.names, "context", all_of_them=finished and strict)
    seen = {name: as_plain(given) for name, given in context.items()}
    if strict or not finished:  # else all is said when the trial ends
        owner = "this context"
        rule = _host.OutsideRule(outside)
        _host.encode(contexts.named(seen), contexts.variables, owner, rule)
    if finished and strict:
        _host.outcome(value, "The value")
    if isinstance(trial, int):
        known = {t.number: t._trial_id for t in study.get_trials(deepcopy=False)}
        if trial not in known:
            raise InputDataError(f"There is no trial {trial} among {list(known)}.")
        trial = Trial(study, known[trial])
    for name, given in seen.items():
        trial.set_user_attr(name, given)
    if finished or state is not None:
        study.tell(trial, value, state)


def recommend(
    study: Study, context: Mapping[str, float] | None = None
) -> RobustDecision:
    r"""The decision with the best robust value of the posterior mean.

    This differs from ``study.best_trial``, the trial with the best outcome, which may
    only have had a favourable context.

    Args:
        study: The study, with a ``RobustSampler``.
        context: What is known about the next context; None for nothing.

    Returns:
        The decision by name, with its expected and worst-case value.

    Raises:
        InputDataError: No trial is complete, or an unknown name.

    Example:
        >>> import optuna
        >>> from botorch_drbo.integrations.optuna import RobustSampler, recommend, tell
        >>> from optuna.distributions import FloatDistribution
        >>> options = {"num_restarts": 1, "raw_samples": 8}
        >>> sampler = RobustSampler({"c": FloatDistribution(0, 1)}, "erbo", **options)
        >>> study = optuna.create_study(sampler=sampler)
        >>> for c in (0.1, 0.4, 0.3, 0.6):
        ...     trial = study.ask({"x": FloatDistribution(0, 1)})
        ...     tell(study, trial, {"c": c}, (trial.params["x"] - c) ** 2)
        >>> list(recommend(study).params)
        ['x']
    """
    sampler = _sampler(study)
    trials, contexts = _begun(study), sampler._contexts
    space = sampler.infer_relative_search_space(study, trials[-1]) if trials else {}
    if not space:
        raise InputDataError("No trial is complete: run the study first.")
    columns = Columns(space, "search_space")
    check_names(context or {}, contexts.names, "context", all_of_them=False)
    named = contexts.named(context or {})
    known = _host.known(_host.encode(named, contexts.variables, "this context"))
    with _host.ONE_AT_A_TIME:
        run = sampler._run(study, columns, trials, len(trials))
        x, details = _host.recommendation(
            run, sampler._space(columns), Round(known_context=known)
        )
    return RobustDecision(columns.values(x), details)


def _sampler(study: Study) -> RobustSampler:
    if not isinstance(study.sampler, RobustSampler):
        raise InputDataError(
            f"The study's sampler is a {type(study.sampler).__name__}. Load it with "
            "`sampler=RobustSampler(...)`, which knows the contexts and the recipe."
        )
    return study.sampler


def _begun(study: Study) -> list[FrozenTrial]:
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state != TrialState.WAITING]


def _in_model_units(algorithm: Recipe, contexts: Columns) -> Recipe:
    """The recipe, its distributions of contexts as the model sees them."""
    given = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    sets = {
        name: ContextSet(
            to_tensor(value.points, contexts.variables, name), value.weights.double()
        )
        for name, value in given.items()
        if isinstance(value, ContextSet)
    }
    return replace(algorithm, **sets) if sets else algorithm
