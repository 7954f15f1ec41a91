"""Ax's search space as a space of ours: named variables, contexts apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from botorch_drbo.space.table import to_tensor


@dataclass(frozen=True)
class Translation:
    """A space of ours, and what Ax calls its values.

    Attributes:
        space: Decisions and contexts.
        fixed: Parameters that Ax holds at one value.
        choices: Of each choice, Ax's value of what the space has.
    """

    space: Space
    fixed: TParameterization
    choices: Mapping[str, Mapping[float | str, TParamValue]]

    @classmethod
    def of(
        cls, space: SearchSpace, context_names: Sequence[str], outcome: str
    ) -> Translation:
        """Read Ax's search space, or say what recipes cannot do with it.

        Args:
            space: The search space.
            context_names: Which of its parameters are contexts, in their order.
            outcome: The metric.

        Raises:
            InputDataError: There is no such parameter, no decision is left, or a
                constraint of contexts.
            UnsupportedError: A parameter of another kind.
        """
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
            LinearConstraint(dict(c.constraint_dict), upper=c.bound)
            for c in space.parameter_constraints
        ]
        ours = Space(decisions, contexts, outcome=outcome, constraints=constraints)
        return cls(ours, fixed, choices)

    def decisions(self, values: Mapping[str, Any], where: str) -> list[float]:
        """Ax's values as recipes see them, ``d_x``."""
        mine = {name: values[name] for name in self.space.decisions}
        return to_tensor(self.named(mine), self.space.decisions, where)[0].tolist()

    def contexts(self, values: Mapping[str, Any], where: str) -> list[float | None]:
        """The same of contexts, ``d_c``; None where there is none."""
        mine = {n: values[n] for n in self.space.contexts if n in values}
        if not mine:
            return [None] * len(self.space.contexts)
        row = to_tensor(self.named(mine), self.space.contexts, where, partly=True)
        numbers = row[0].tolist()
        return [
            number if name in mine else None
            for name, number in zip(self.space.contexts, numbers, strict=True)
        ]

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Ax's values as those of the space: categories are known by their names."""
        variables = {**self.space.decisions, **self.space.contexts}
        return {
            name: str(value) if isinstance(variables[name], Category) else value
            for name, value in values.items()
        }

    def for_ax(self, row: Mapping[str, Any]) -> TParameterization:
        """A decision of the space as Ax has it."""
        values = {
            name: self.choices[name][value] if name in self.choices else value
            for name, value in row.items()
        }
        return {**values, **self.fixed}


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
        if parameter.log_scale:
            raise _refused(name, "a whole number on a log scale")
        return Integer(int(parameter.lower), int(parameter.upper))
    if not isinstance(parameter, ChoiceParameter):
        raise _refused(name, f"a {type(parameter).__name__}")
    if parameter.is_task:
        raise _refused(name, "a task")
    if not parameter.is_ordered:
        return Category([str(_as_ours(v, parameter)) for v in parameter.values])
    if parameter.log_scale:
        raise _refused(name, "an ordered choice on a log scale")
    if not parameter.is_numeric:
        raise _refused(name, f"an ordered choice among names ({parameter.values})")
    return Ordinal([float(_as_ours(v, parameter)) for v in parameter.values])


def _as_ours(value: TParamValue, choice: ChoiceParameter) -> float | str:
    """A choice as the space has it: Ax also has numbers without order."""
    if choice.is_ordered and isinstance(value, (int, float)):
        return float(value)
    return str(value)


def _refused(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"The parameter {name!r} is {what}. Recipes know numbers between bounds (on a "
        "log scale too), whole numbers, ordered numbers, and names without order."
    )
