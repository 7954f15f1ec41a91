"""The node of an Ax generation strategy that runs a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from ax.adapter.base import Adapter
from ax.adapter.registry import Generators
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.types import TParameterization
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from botorch.exceptions.errors import UnsupportedError

from botorch_drbo.integrations._ax_experiment import (
    events_of,
    limits_of,
    objective_of,
    outcomes_of,
    rooms_of,
)
from botorch_drbo.integrations._ax_parameters import Translation
from botorch_drbo.integrations._host import STRICT, Outside, OutsideRule, check_names
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.optimizer.journal import write_state
from botorch_drbo.recipes import recipe_from_dict
from botorch_drbo.recipes.model_based import ModelBasedRecipe

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
        known = {} if fixed_features is None else dict(fixed_features.parameters)
        self._known = known
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
