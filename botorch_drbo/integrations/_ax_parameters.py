"""Ax's search space as a ``Space`` of named decisions and contexts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace
from ax.core.types import TParameterization, TParamValue
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.integrations._host import (
    Logarithmic,
    OutsideRule,
    as_plain,
    encode,
    own_name,
)
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Space,
    Variable,
)


@dataclass(frozen=True)
class Translation:
    """A ``Space``, and Ax's values for its variables."""

    # Decisions and contexts.
    space: Space
    # Parameters with a single value in Ax.
    fixed: TParameterization
    # Of each choice, Ax's value of what the space has.
    choices: Mapping[str, Mapping[float | str, TParamValue]]

    @classmethod
    def of(
        cls, space: SearchSpace, context_names: Sequence[str], outcome: str
    ) -> Translation:
        """Read Ax's search space, or say what recipes cannot do with it."""
        parameters = dict(space.parameters)
        for name in context_names:
            if name not in parameters:
                raise InputDataError(
                    f"There is no parameter {name!r} for the context."
                    f"{did_you_mean(name, parameters)} The experiment has "
                    f"{list(parameters)}: a context is a parameter of the experiment, "
                    "with bounds."
                )
        contexts = {name: _variable(parameters.pop(name)) for name in context_names}
        fixed: TParameterization = {
            name: p.value
            for name, p in parameters.items()
            if isinstance(p, FixedParameter)
        }
        decisions = {n: _variable(p) for n, p in parameters.items() if n not in fixed}
        if not decisions:
            raise InputDataError(
                f"Every parameter of the experiment is a context or fixed "
                f"({list(context_names)}, {list(fixed)}): none is left to decide."
            )
        choices = {
            name: {_as_ours(value, p): value for value in p.values}
            for name, p in space.parameters.items()
            if isinstance(p, ChoiceParameter)
        }
        constraints = [
            LinearConstraint(
                dict(c.constraint_dict),
                upper=c.bound,
                lower=c.bound if c.is_equality else None,
            )
            for c in space.parameter_constraints
        ]
        ours = Space(decisions, contexts, outcome=outcome, constraints=constraints)
        return cls(ours, fixed, choices)

    def decisions(
        self, values: Mapping[str, Any], owner: str, rule: OutsideRule
    ) -> list[float] | None:
        """Ax's values as recipes see them, ``d_x``; None if it is no such decision."""
        x = encode(self.named(values), self.space.decisions, owner, rule.of_decisions)
        return None if x.isnan().any() else x.tolist()

    def contexts(
        self, values: Mapping[str, Any], owner: str, rule: OutsideRule
    ) -> list[float | None]:
        """The same of contexts, ``d_c``; None where there is none of use."""
        c = encode(self.named(values), self.space.contexts, owner, rule).tolist()
        return [None if math.isnan(number) else number for number in c]

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Ax's values as those of the space: choices are known by their names."""
        return {
            name: own_name(as_plain(value), self.choices.get(name, {}))
            for name, value in values.items()
        }

    def as_kept(
        self, context: Mapping[str, Any], owner: str, rule: OutsideRule
    ) -> TParameterization:
        """A context as Ax keeps it: 1 is 1.0, or True, where the parameter has that."""
        kept: TParameterization = {}
        seen = self.contexts(context, owner, rule)
        for (name, variable), number in zip(
            self.space.contexts.items(), seen, strict=True
        ):
            if number is None:
                continue
            (value,) = variable.decode(torch.tensor([number], dtype=torch.double))
            if isinstance(variable, (Continuous, Log)):  # all its digits
                given = float(as_plain(context[name]))
                value = min(max(given, float(variable.lower)), float(variable.upper))
            kept[name] = self._as_ax(name, value)
        return kept

    def for_ax(self, row: Mapping[str, Any]) -> TParameterization:
        """A decision of the space as Ax has it."""
        values = {name: self._as_ax(name, value) for name, value in row.items()}
        return {**values, **self.fixed}

    def _as_ax(self, name: str, value: Any) -> TParamValue:
        """One value of the space as Ax has it."""
        if name in self.choices:
            return self.choices[name][value]
        variable = {**self.space.decisions, **self.space.contexts}[name]
        whole = variable.plain if isinstance(variable, Logarithmic) else variable
        return round(value) if isinstance(whole, Integer) else value


def _variable(parameter: Parameter) -> Variable:
    """The variable of a parameter, or why there is none."""
    name = parameter.name
    if parameter.is_fidelity or parameter.is_hierarchical:
        raise _refused(name, "a fidelity" if parameter.is_fidelity else "hierarchical")
    if isinstance(parameter, RangeParameter):
        if parameter.logit_scale:
            raise _refused(name, "on a logit scale")
        if parameter.parameter_type is not ParameterType.INT:
            kind = Log if parameter.log_scale else Continuous
            return kind(float(parameter.lower), float(parameter.upper))
        whole = Integer(int(parameter.lower), int(parameter.upper))
        return Logarithmic(whole) if parameter.log_scale else whole
    if not isinstance(parameter, ChoiceParameter):
        raise _refused(name, f"a {type(parameter).__name__}")
    if parameter.is_task:
        raise _refused(name, "a task")
    own = [_as_ours(value, parameter) for value in parameter.values]
    if _is_category(parameter):
        return Category([str(value) for value in own])
    if not parameter.is_numeric:
        raise _refused(
            name,
            f"an ordered choice among names ({parameter.values}). Leave "
            "`is_ordered` out, and it is a choice without order, or number its values",
        )
    listed = Ordinal([float(value) for value in own])
    return Logarithmic(listed) if parameter.log_scale else listed


def _is_category(choice: ChoiceParameter) -> bool:
    """Whether it has no order; Ax gives one to every choice of two values."""
    two_names = len(choice.values) == 2 and not choice.is_numeric
    return two_names or not choice.is_ordered


def _as_ours(value: TParamValue, choice: ChoiceParameter) -> float | str:
    """A choice as the space has it: Ax also has numbers without order."""
    if _is_category(choice) or not isinstance(value, (int, float)):
        return str(value)
    return float(value)


def _refused(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"The parameter {name!r} is {what}. Recipes know numbers between bounds (on a "
        "log scale too), whole and listed numbers, and choices without order."
    )
