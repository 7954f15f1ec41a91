r"""Every recipe as a generator of `Xopt <https://xopt.xopt.org>`_ (extra ``[xopt]``).

Contexts are the ``ContextualVariable`` entries of the VOCS: the world shows them, the
evaluator returns them. Importing this module makes the generator known to Xopt's YAML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self, final

import pandas as pd
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gest_api.vocs import ContextualVariable, ExploreObjective, MaximizeObjective
from pydantic import Field, field_serializer, field_validator, model_validator
from xopt.generator import Generator
from xopt.generators import generators

from botorch_drbo.algorithms import Round
from botorch_drbo.algorithms.base import decode_options
from botorch_drbo.integrations import _host
from botorch_drbo.integrations._host import (
    RobustDecision,
    check_names,
    number_within,
    row,
)
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.decisions import recommended
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.trials import Trial

__all__ = ["RobustDecision", "RobustGenerator"]


@final
class RobustGenerator(Generator):
    r"""Generate decisions that are good under every plausible context distribution.

    Candidates hold decisions only; the context is what the evaluator returns. They are
    a function of the fields and of the data: the same until data arrive, and different
    from each other within one call. What runs in parallel is asked for in one call.

    Each contextual variable needs a finite domain: the worst case may go anywhere in
    it. Of a row without an outcome (an evaluation that failed) the context counts.

    Attributes:
        algorithm: The name of a recipe, see ``botorch_drbo.algorithms.ALGORITHMS``.
        options: Options of the recipe. A ``reference`` has its columns in alphabetical
            order of the contexts' names.
        seed: Decides every random draw.
        num_initial: Size of the initial design; None for twice one more than the
            number of decisions.

    Raises:
        InputDataError: Unknown names, a domain without an end, or a row that has an
            outcome and no decision or context.
        UnsupportedError: No contextual variable, or an objective to explore.

    Example:
        >>> from gest_api.vocs import VOCS, ContextualVariable
        >>> vocs = VOCS(
        ...     variables={
        ...         "price": [10.0, 90.0],
        ...         "demand": ContextualVariable(domain=[0.0, 100.0]),
        ...     },
        ...     objectives={"profit": "MAXIMIZE"},
        ... )
        >>> generator = RobustGenerator(vocs=vocs, options={"radius": 0.1})
        >>> [list(candidate) for candidate in generator.generate(2)]
        [['price'], ['price']]
    """

    name: ClassVar[str] = "distributionally_robust"
    supports_batch_generation: bool = Field(True, frozen=True, exclude=True)
    supports_single_objective: bool = Field(True, frozen=True, exclude=True)
    supports_contextual_variables: bool = Field(True, frozen=True, exclude=True)

    algorithm: str = "wdrbo"
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int = 0
    num_initial: int | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _read_options(cls, value: Any) -> Any:
        """From a dictionary, or from the text that a dump holds."""
        if isinstance(value, str):
            value = json.loads(value)
        return decode_options(value) if isinstance(value, dict) else value

    @field_serializer("options")
    def _write_options(self, value: dict[str, Any]) -> str:
        """As JSON text: Xopt's own dump drops what is None."""
        written = _host.recipe(self.algorithm, value, []).to_dict()["options"]
        return json.dumps({name: written[name] for name in value})

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._configuration()
        return self

    def add_data(self, new_data: pd.DataFrame) -> None:
        """Check rows of decisions, contexts and outcomes, and add them."""
        self._trials(new_data)
        super().add_data(new_data)

    def generate(self, n_candidates: int) -> list[dict[Hashable, Any]]:
        """The next decisions; constants are added by Xopt."""
        with _host.ONE_AT_A_TIME:
            found = _host.decisions(self._run(), n_candidates, Round())
        names = self._names(contextual=False)
        return [dict(zip(names, x, strict=True)) for x in found.tolist()]

    def recommend(self, context: Mapping[str, float] | None = None) -> RobustDecision:
        r"""The decision with the best robust value of the posterior mean.

        Args:
            context: What is known of the context that is to come; None for nothing.

        Returns:
            The decision by its names, with its expected and worst-case value.

        Raises:
            InputDataError: There is no outcome yet, or an unknown name.
        """
        names = self._names(contextual=True)
        check_names(context or {}, names, "context", all_of_them=False)
        known = row(context, names) if context else None
        with _host.ONE_AT_A_TIME:
            best = recommended(self._run(), None, Round(known_context=known))
        params = zip(self._names(contextual=False), best.x.tolist(), strict=True)
        return RobustDecision(dict(params), tuple(names), best)

    def _names(self, *, contextual: bool) -> list[str]:
        """In alphabetical order, as in a dump, which forgets any other."""
        return sorted(
            name
            for name, variable in self.vocs.variables.items()
            if isinstance(variable, ContextualVariable) == contextual
        )

    def _configuration(self) -> Configuration:
        contexts, (objective,) = self._names(contextual=True), self.vocs.objectives
        if not contexts:
            raise UnsupportedError(
                f"None of the variables {self.vocs.variable_names} is contextual, so "
                "there is nothing to be robust against. Declare what the world decides "
                "as `ContextualVariable(domain=[lower, upper])`."
            )
        goal = self.vocs.objectives[objective]
        if isinstance(goal, ExploreObjective):
            raise UnsupportedError(
                f"The objective {objective!r} is to be explored. A robust decision "
                "needs one to MINIMIZE or MAXIMIZE."
            )
        own = ["seed", "num_initial"]
        return Configuration(
            _host.recipe(self.algorithm, self.options, own),
            self._box(self._names(contextual=False)),
            self._box(contexts),
            seed=self.seed,
            maximize=isinstance(goal, MaximizeObjective),
            num_initial=self.num_initial,
        )

    def _box(self, names: list[str]) -> torch.Tensor:
        """Bounds, ``2 x d``."""
        domains = {name: self.vocs.variables[name].domain for name in names}
        for name, domain in domains.items():
            if not all(map(math.isfinite, domain)):
                raise InputDataError(
                    f"The variable {name!r} has the domain {domain}. Give it two ends: "
                    "the worst case may go anywhere in it, and a radius is measured by "
                    "it, so it must not move with the data."
                )
        return torch.tensor(list(domains.values()), dtype=torch.double).mT.contiguous()

    def _run(self) -> Run:
        data = pd.DataFrame() if self.data is None else self.data
        return _host.run_of(self._configuration(), self._trials(data), len(data))

    def _trials(self, data: pd.DataFrame) -> list[Trial]:
        """Ours of the rows."""
        rows = data.to_dict(orient="records")
        return [self._trial(number, values) for number, values in enumerate(rows)]

    def _trial(self, number: int, values: Mapping[Hashable, Any]) -> Trial:
        (objective,) = self.vocs.objectives
        if objective not in values and not values.get("xopt_error"):
            raise InputDataError(
                f"Row {number} has no {objective!r}, only {list(values)}. A failed "
                "evaluation has NaN there, or a true `xopt_error`."
            )
        known = {str(name): v for name, v in values.items() if pd.notna(v)}
        for name, variable in self.vocs.variables.items():
            if name in known:
                what, (low, high) = f"{name!r} of row {number}", variable.domain
                number_within(known[name], low, high, what)
            elif objective in known:
                raise InputDataError(
                    f"Row {number} has {objective!r} and no {name!r}: an outcome "
                    "belongs to a decision and a context. A contextual variable is "
                    "part of what the evaluator returns."
                )
        y = known.get(objective)
        if y is not None:
            y = number_within(y, -math.inf, math.inf, f"{objective!r} of row {number}")
        x, c = (row(known, self._names(contextual=kind)) for kind in (False, True))
        return _host.trial_of(number, x, c, y)


generators[RobustGenerator.name] = RobustGenerator
