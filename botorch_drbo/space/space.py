"""Named decisions and contexts, and the constraints of the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.codec.objects import FunctionName, storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.feasible import sample
from botorch_drbo.space.constraints import (
    Constraint,
    LinearConstraint,
    check_constraint,
    function_name,
    model_constraints,
)
from botorch_drbo.space.table import to_tensor, with_weights
from botorch_drbo.space.variables import (
    Category,
    Variable,
    as_variable,
)


@final
@storable
class Space:
    r"""Named decisions and contexts with their kinds, and constraints of decisions.

    Args:
        decisions: What you choose: for each name a pair ``(lower, upper)``, an
            ``Integer``, ``Ordinal``, ``Category`` or ``Log``.
        contexts: What you observe, in the same way.
        outcome: The name of the outcome.
        constraints: ``LinearConstraint``, or functions that take a dictionary with a
            column of numbers for each decision (in your units; a category is its
            index) and return a tensor that is not negative where the decision is
            allowed.

    Raises:
        InputDataError: No decision or no context, a duplicate name, an invalid variable
            or constraint, or no decision that satisfies the constraints.

    Example:
        >>> from botorch_drbo import Category, Integer, LinearConstraint, Space
        >>> space = Space(
        ...     decisions={"price": (10.0, 90.0), "stock": Integer(0, 40)},
        ...     contexts={"weather": Category(["sun", "rain", "snow"])},
        ...     outcome="profit",
        ...     constraints=[LinearConstraint({"price": 1, "stock": 2}, upper=100)],
        ... )
        >>> space
        Space(decisions=['price', 'stock'], contexts=['weather'], outcome='profit')
    """

    def __init__(
        self,
        decisions: Mapping[str, Variable | tuple[float, float]],
        contexts: Mapping[str, Variable | tuple[float, float]],
        *,
        outcome: str = "outcome",
        constraints: Sequence[Constraint] = (),
    ) -> None:
        self.decisions = _variables(decisions, "decisions")
        self.contexts = _variables(contexts, "contexts")
        self.outcome = outcome
        names = [*self.decisions, *self.contexts, outcome]
        if not isinstance(outcome, str) or not outcome:
            raise InputDataError(f"`outcome` must be a name, got {outcome!r}.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            given = (decisions, contexts, [outcome])
            roles = zip(("a decision", "a context", "the outcome"), given, strict=True)
            as_what = [role for role, named in roles if twice[0] in named]
            raise InputDataError(
                f"`{twice[0]}` is {' and '.join(as_what)}. A column has one role: "
                "decisions are chosen, contexts come, the outcome is the result."
            )
        if isinstance(constraints, LinearConstraint) or callable(constraints):
            raise InputDataError("`constraints` must be a list. Write it in brackets.")
        self.constraints = tuple(constraints)
        for i, constraint in enumerate(self.constraints):
            check_constraint(constraint, self.decisions, f"constraints[{i}]")
        functions = self.function_names
        if len(set(functions)) < len(functions):
            raise InputDataError(
                f"The functions among `constraints` must have names that differ, got "
                f"{functions}: a journal knows them by name."
            )
        if self.constraints:
            sample(self.search_space, 1, seed=0)  # raises if there is none

    def __repr__(self) -> str:
        """The names."""
        return (
            f"Space(decisions={list(self.decisions)}, contexts={list(self.contexts)}, "
            f"outcome={self.outcome!r})"
        )

    @property
    def function_names(self) -> list[str]:
        """The names of the constraints that are functions."""
        return [
            function_name(constraint)
            for constraint in self.constraints
            if not isinstance(constraint, LinearConstraint)
        ]

    @cached_property
    def search_space(self) -> SearchSpace:
        """What recipes see."""
        bounds = _bounds(self.decisions)
        discrete, categories = _kinds(self.decisions)
        linear, functions, equalities = model_constraints(
            self.constraints, self.decisions, bounds, discrete
        )
        context_discrete, context_categories = _kinds(self.contexts)
        return SearchSpace(
            bounds=bounds,
            context_bounds=_bounds(self.contexts),
            discrete=discrete,
            categories=categories,
            context_discrete=context_discrete,
            context_categories=context_categories,
            inequality_constraints=linear,
            nonlinear_inequality_constraints=functions,
            equalities=equalities,
            context_names=tuple(self.contexts),
            context_logarithms=tuple(
                j
                for j, variable in enumerate(self.contexts.values())
                if variable.logarithmic
            ),
            context_levels={
                j: tuple(variable.choices)
                for j, variable in enumerate(self.contexts.values())
                if isinstance(variable, Category)
            },
            features=_features(self.decisions),
            context_features=_features(self.contexts),
        )

    def context_set(
        self, contexts: Any, weights: Tensor | Sequence[float] | str | None = None
    ) -> ContextSet:
        r"""A distribution of contexts, from a table.

        Args:
            contexts: A DataFrame, a dictionary of columns, or a tensor in their order.
            weights: The weight of each row, with sum one; the name of a column whose
                numbers are in proportion to them; None for equal weights.

        Returns:
            What recipes take as ``reference``, and ``ask`` as ``context_set``.

        Raises:
            InputDataError: A value that a context cannot have, or no weight.

        Example:
            >>> from botorch_drbo import Category, Space
            >>> space = Space({"x": (0, 1)}, {"weather": Category(["sun", "rain"])})
            >>> space.context_set({"weather": ["rain", "sun"]}, [0.3, 0.7]).points
            tensor([[1.],
                    [0.]], dtype=torch.float64)
        """
        if isinstance(weights, str):
            contexts, weights = with_weights(contexts, weights, "contexts")
        points = to_tensor(contexts, self.contexts, "contexts")
        if weights is not None:
            weights = torch.as_tensor(weights, dtype=torch.double)
        return ContextSet(points, weights)

    def constructor_arguments(self) -> dict[str, object]:
        """The arguments of the constructor; of functions only the names."""
        return {
            "decisions": self.decisions,
            "contexts": self.contexts,
            "outcome": self.outcome,
            "constraints": [
                constraint
                if isinstance(constraint, LinearConstraint)
                else FunctionName(function_name(constraint))
                for constraint in self.constraints
            ],
        }


def _variables(given: object, name: str) -> dict[str, Variable]:
    if not isinstance(given, Mapping) or not given:
        listed = [*given] if isinstance(given, Iterable) else []
        example = next((word for word in listed if isinstance(word, str)), "demand")
        raise InputDataError(
            f"`{name}` must be a dictionary from names to variables with at least one "
            f"entry, got {given!r}. An example: {name}={{{example!r}: (0.0, 100.0)}}."
        )
    for key in given:
        if not isinstance(key, str) or not key:
            raise InputDataError(f"`{name}` must have strings as names, got {key!r}.")
    return {key: as_variable(value, key) for key, value in given.items()}


def _bounds(variables: Mapping[str, Variable]) -> Tensor:
    columns = [variable.bounds for variable in variables.values()]
    return torch.tensor(columns, dtype=torch.double).mT.contiguous()


def _features(variables: Mapping[str, Variable]) -> dict[int, Tensor]:
    """The features of the categories that have some."""
    return {
        j: variable.embedding
        for j, variable in enumerate(variables.values())
        if isinstance(variable, Category) and variable.embedding is not None
    }


def _kinds(
    variables: Mapping[str, Variable],
) -> tuple[dict[int, Sequence[float]], dict[int, int]]:
    """The discrete columns with their values, the categories with their numbers."""
    discrete: dict[int, Sequence[float]] = {}
    categories: dict[int, int] = {}
    for j, variable in enumerate(variables.values()):
        if isinstance(variable, Category):
            categories[j] = len(variable.choices)
        elif variable.values is not None:
            discrete[j] = variable.values
    return discrete, categories
