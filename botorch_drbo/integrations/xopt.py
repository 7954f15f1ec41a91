r"""Every recipe as a generator of `Xopt <https://xopt.xopt.org>`_ (extra ``[xopt]``).

Contexts are the ``ContextualVariable`` entries of the VOCS: the evaluator returns them.
Importing this module registers the generator for Xopt's YAML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self, final

import pandas as pd
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gest_api.vocs import (
    BaseVariable,
    ContextualVariable,
    ContinuousVariable,
    DiscreteVariable,
    ExploreObjective,
    MaximizeObjective,
)
from pydantic import (
    Field,
    PrivateAttr,
    field_serializer,
    field_validator,
    model_validator,
)
from torch import Tensor
from xopt.generator import Generator
from xopt.generators import generators

from botorch_drbo.codec import encode
from botorch_drbo.integrations import _host
from botorch_drbo.integrations._host import RobustDecision, check_names
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import Round
from botorch_drbo.recipes.registry import decode_options
from botorch_drbo.space import Continuous, Ordinal, Space, Variable

__all__ = ["RobustDecision", "RobustGenerator"]


@final
class RobustGenerator(Generator):
    r"""Generate decisions that are good under every plausible context distribution.

    Candidates contain decisions only; the evaluator returns the context. Candidates
    depend only on the fields and the data: they do not change until new data arrive,
    and differ from each other within one call. Ask in one call for all candidates that
    run in parallel.

    Each contextual variable needs a finite domain, all of which the worst case may use.
    If a row has no outcome because its evaluation failed, its context is still used.

    Attributes:
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``.
        outside: What to do with a row whose context is missing, not a number or outside
            its domain, whose outcome is infinite, or whose decision is outside its
            bounds. "skip" warns and counts the row as a failed evaluation; "clip" does
            the same, but replaces a context beyond its domain by the nearest bound;
            "raise" raises an error at the step that adds the row, and at every later
            one until ``X.remove_data``. The data keep the row unchanged, and a dump
            that contains it can be loaded.
        options: Options of the recipe. The columns of a ``reference`` are in
            alphabetical order of the names of the contexts.
        seed: Determines all random draws.
        num_initial: Size of the initial design; None for twice one more than the
            number of decisions.

    Raises:
        InputDataError: Unknown names, or an infinite domain; with ``outside="raise"``
            later also a row that cannot be used.
        UnsupportedError: No contextual variable, or an objective to explore.

    Example:
        >>> from botorch_drbo.integrations.xopt import RobustGenerator
        >>> from gest_api.vocs import VOCS, ContextualVariable
        >>> vocs = VOCS(
        ...     variables={
        ...         "stock": [10.0, 90.0],
        ...         "demand": ContextualVariable(domain=[0.0, 100.0]),
        ...     },
        ...     objectives={"profit": "MAXIMIZE"},
        ... )
        >>> generator = RobustGenerator(vocs=vocs, options={"radius": 0.1})
        >>> [list(candidate) for candidate in generator.generate(2)]
        [['stock'], ['stock']]
    """

    name: ClassVar[str] = "distributionally_robust"
    supports_batch_generation: bool = Field(True, frozen=True, exclude=True)
    supports_single_objective: bool = Field(True, frozen=True, exclude=True)
    supports_discrete_variables: bool = Field(True, frozen=True, exclude=True)
    supports_contextual_variables: bool = Field(True, frozen=True, exclude=True)

    algorithm: str = "wdrbo_exact"
    outside: _host.Outside = "skip"
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int = 0
    num_initial: int | None = None
    _rule: _host.OutsideRule = PrivateAttr(
        default_factory=lambda: _host.OutsideRule("skip")
    )

    @field_validator("options", mode="before")
    @classmethod
    def _read_options(cls, value: Any) -> Any:
        """From a dictionary, or from the text that a dump holds."""
        return decode_options(json.loads(value)) if isinstance(value, str) else value

    @field_serializer("options")
    def _write_options(self, value: dict[str, Any]) -> str:
        """As JSON text: Xopt's own dump drops what is None."""
        recipe = _host.recipe(self.algorithm, value, [])
        return json.dumps({name: encode(recipe.options[name], name) for name in value})

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._configuration()
        return self

    def ingest(self, results: list[dict]) -> None:
        """Add rows of new evaluations and check them.

        They are added to the data as Xopt's own generators do.
        """
        begin = 0 if self.data is None else len(self.data)
        super().ingest(results)
        for number, row in enumerate(results, begin):
            _check_has(self._space().outcome, row, number)
        self._trials(begin)

    def generate(self, n_candidates: int) -> list[dict[Hashable, Any]]:
        """The next decisions; constants are added by Xopt."""
        with _host.ONE_AT_A_TIME:
            found = _host.decisions(self._run(), n_candidates, Round())  # n x d_x
        return [{**self._named(x)} for x in found]

    def recommend(self, context: Mapping[str, float] | None = None) -> RobustDecision:
        r"""The decision with the best robust value of the posterior mean.

        Args:
            context: What is known about the next context; None for nothing.

        Returns:
            The decision by name, with its expected and worst-case value.

        Raises:
            InputDataError: There is no outcome yet, or an unknown name.
        """
        space = self._space()
        check_names(context or {}, list(space.contexts), "context", all_of_them=False)
        known = _host.encode(context or {}, space.contexts, "this context")
        with _host.ONE_AT_A_TIME:
            x, details = _host.recommendation(
                self._run(), space, Round(known_context=_host.known(known))
            )
        return RobustDecision(self._named(x), details)

    def _named(self, x: Tensor) -> dict[str, Any]:
        """A decision as Xopt knows it, ``d_x``."""
        variables = self._space().decisions
        return {
            name: variable.decode(number.unsqueeze(0))[0]
            for (name, variable), number in zip(variables.items(), x, strict=True)
        }

    def _space(self) -> Space:
        """Names in alphabetical order, as in a dump, which forgets any other."""
        variables = sorted(self.vocs.variables.items())
        contextual = {n for n, v in variables if isinstance(v, ContextualVariable)}
        if not contextual:
            raise UnsupportedError(
                f"None of the variables {self.vocs.variable_names} is contextual, so "
                "there is nothing to be robust against. Declare what the world decides "
                "as `ContextualVariable(domain=[lower, upper])`."
            )
        (objective,) = self.vocs.objectives
        return Space(
            {n: _variable(n, v) for n, v in variables if n not in contextual},
            {n: _variable(n, v) for n, v in variables if n in contextual},
            outcome=objective,
        )

    def _configuration(self) -> Configuration:
        space, (objective,) = self._space(), self.vocs.objectives
        goal = self.vocs.objectives[objective]
        if isinstance(goal, ExploreObjective):
            raise UnsupportedError(
                f"The objective {objective!r} is to be explored. A robust decision "
                "needs one to MINIMIZE or MAXIMIZE."
            )
        return Configuration(
            _host.recipe(self.algorithm, self.options, ["seed", "num_initial"]),
            space,
            None,  # the space says what the contexts are
            seed=self.seed,
            maximize=isinstance(goal, MaximizeObjective),
            num_initial=self.num_initial,
        )

    def _run(self) -> Run:
        trials = self._trials()
        return _host.run_of(self._configuration(), trials, len(trials))

    def _trials(self, begin: int = 0) -> list[Trial]:
        """Ours of the rows, from one of them on."""
        if self.data is None:
            return []
        rows, space = self.data.to_dict(orient="records"), self._space()
        if self._rule.outside != self.outside:  # it was assigned
            self._rule = _host.OutsideRule(self.outside)
        reader = _host.Reader(space.decisions, space.contexts, self._rule)
        return [
            _trial(number, row, space.outcome, reader)
            for number, row in enumerate(rows)
            if number >= begin
        ]


def _trial(
    number: int, values: Mapping[Hashable, Any], objective: str, reader: _host.Reader
) -> Trial:
    _check_has(objective, values, number)
    known = {str(name): v for name, v in values.items() if not _is_missing(v)}
    return reader.trial(
        number,
        f"row {number}",
        known,
        known,
        known.get(objective),
        remedy="A contextual variable is part of what the evaluator returns. "
        f"`X.remove_data([{number}])` takes the row out.",
    )


def _check_has(objective: str, values: Mapping[Hashable, Any], number: int) -> None:
    """Refuse another name of the outcome, by which every evaluation would fail."""
    if objective not in values and not values.get("xopt_error"):
        raise InputDataError(
            f"Row {number} has no {objective!r}, only {list(values)}. A failed "
            "evaluation has NaN there, or a true `xopt_error`. Take the row out with "
            f"`X.remove_data([{number}])`."
        )


def _is_missing(value: object) -> bool:
    """Whether a cell of a table is empty: None, NaN, or a marker of pandas."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _variable(name: str, variable: BaseVariable) -> Variable:
    if isinstance(variable, DiscreteVariable):
        return Ordinal(list(variable.values))  # Xopt evaluates numbers only
    if not isinstance(variable, ContinuousVariable):
        raise UnsupportedError(
            f"The variable {name!r} is a {type(variable).__name__}: give it a domain "
            "[lower, upper], or discrete values."
        )
    lower, upper = variable.domain
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputDataError(
            f"The variable {name!r} has the domain {variable.domain}. Give it two "
            "ends: the worst case may go anywhere in it, and a radius is measured by "
            "it, so it must not move with the data."
        )
    return Continuous(lower, upper)


generators[RobustGenerator.name] = RobustGenerator
