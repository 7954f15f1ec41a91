"""Constraints of decisions, in the names and units of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import final

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import is_finite_number
from botorch_drbo.codec.objects import FunctionName, storable
from botorch_drbo.problem.equalities import Equalities, contradiction, in_units
from botorch_drbo.space.variables import Category, Variable

Function = Callable[[dict[str, Tensor]], Tensor]
"""Columns of decisions by name, ``n`` each, to ``n``: feasible where not negative."""


@final
@storable
@dataclass(frozen=True)
class LinearConstraint:
    r"""A bound on a weighted sum of decisions, in the user's units.

    .. math:: \mathrm{lower} \le \sum_j a_j x_j \le \mathrm{upper}

    With equal bounds the sum has to be right, as that of the parts of a mixture.

    Args:
        coefficients: The weight of each decision, by name.
        upper: The largest sum, or None.
        lower: The smallest sum, or None.

    Raises:
        InputDataError: No coefficient, no bound, something that is not finite, or
            bounds that are not in order.

    Example:
        >>> from botorch_drbo import LinearConstraint
        >>> print(LinearConstraint({"price": 1.0, "stock": 2.0}, upper=100.0))
        price + 2*stock <= 100
    """

    coefficients: Mapping[str, float]
    upper: float | None = None
    lower: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.coefficients or not any(self.coefficients.values()):
            raise InputDataError(
                "A LinearConstraint needs a coefficient that is not zero, got "
                f"{dict(self.coefficients)}."
            )
        if self.upper is None and self.lower is None:
            raise InputDataError(
                "A LinearConstraint needs `upper`, `lower` or both, got neither."
            )
        given = {**self.coefficients, "upper": self.upper, "lower": self.lower}
        for name, value in given.items():
            if value is not None and not is_finite_number(value):
                raise InputDataError(
                    f"A LinearConstraint takes finite numbers, got {name}={value!r}."
                )
        lower = -math.inf if self.lower is None else self.lower
        if self.upper is not None and lower > self.upper:
            raise InputDataError(
                f"`lower` ({self.lower}) must not be above `upper` ({self.upper})."
            )

    def __str__(self) -> str:
        """As it is typed: ``price + 2*stock <= 100``."""
        words = ""
        for name, a in self.coefficients.items():
            sign = ("-" if a < 0 else "+") if words else ("-" if a < 0 else "")
            size = "" if abs(a) == 1 else f"{abs(a):.15g}*"
            words += f" {sign} {size}{name}" if words else f"{sign}{size}{name}"
        if self.lower == self.upper:
            return f"{words} = {self.upper:.15g}"
        if self.upper is None:
            return f"{words} >= {self.lower:.15g}"
        below = "" if self.lower is None else f"{self.lower:.15g} <= "
        return f"{below}{words} <= {self.upper:.15g}"

    def margins(self) -> list[tuple[dict[str, float], float]]:
        """Each bound as weights whose sum is at least a number."""
        weights = dict(self.coefficients)
        found = [] if self.lower is None else [(weights, float(self.lower))]
        if self.upper is not None:
            opposite = {name: -a for name, a in weights.items()}
            found.append((opposite, -float(self.upper)))
        return found


Constraint = LinearConstraint | Function
Linear = tuple[Tensor, Tensor, float]


def function_name(constraint: Function) -> str:
    """By what name a journal knows a function."""
    return getattr(constraint, "__name__", type(constraint).__name__)


def check_constraint(
    constraint: object, decisions: Mapping[str, Variable], name: str
) -> None:
    """Refuse what is no constraint of these decisions."""
    if isinstance(constraint, LinearConstraint):
        unknown = [n for n in constraint.coefficients if n not in decisions]
        if unknown:
            raise InputDataError(
                f"`{name}` names {unknown}, which are no decisions. The decisions are "
                f"{list(decisions)}."
            )
        unordered = [
            n for n in constraint.coefficients if isinstance(decisions[n], Category)
        ]
        if unordered:
            raise InputDataError(
                f"`{name}` has coefficients of the categories {unordered}, which are "
                "no numbers. Write a function of the columns, where a category is its "
                "index."
            )
        return
    if isinstance(constraint, FunctionName):
        raise InputDataError(
            f"the constraint `{constraint.name}` is a function, which is not stored. "
            "Give the space again: `NamedOptimizer.resume(path, space=space)`."
        )
    if not callable(constraint):
        raise InputDataError(
            f"`{name}` must be a LinearConstraint or a function of named columns, got "
            f"{type(constraint).__name__}."
        )
    columns = {
        n: v.units(torch.tensor(v.bounds, dtype=torch.double))
        for n, v in decisions.items()
    }
    try:
        value = constraint(columns)
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise InputDataError(
            f"`{name}` cannot be evaluated: {error!r}. It is given the columns "
            f"{list(decisions)} as a dictionary of tensors, one entry for each "
            "decision, and returns as many numbers."
        ) from error
    if not isinstance(value, Tensor) or value.shape != (2,):
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise InputDataError(
            f"`{name}` must return one number for each decision, a tensor of shape "
            f"(2,) for two decisions, got {got}."
        )


def model_constraints(
    constraints: tuple[Constraint, ...],
    decisions: Mapping[str, Variable],
    bounds: Tensor,
    values: Mapping[int, Sequence[float]],
) -> tuple[
    tuple[Linear, ...], tuple[Callable[[Tensor], Tensor], ...], Equalities | None
]:
    """Constraints of a model's decisions: linear ones in BoTorch's form, and others.

    A sum with a logarithmic variable is not linear in what the model sees. Linear
    inequalities that leave no room, such as two opposite ones, are equalities.

    Shapes: ``bounds``: ``2 x d_x``.
    """
    equalities = _equalities(constraints, decisions, bounds, values)
    used = set() if equalities is None else set(equalities.used)
    columns = {name: j for j, name in enumerate(decisions)}
    linear: list[Linear] = []
    functions: list[Callable[[Tensor], Tensor]] = []
    margins = count()
    for constraint in constraints:
        if not isinstance(constraint, LinearConstraint):
            functions.append(_of_columns(constraint, decisions))
            continue
        for weights, least in constraint.margins():
            if next(margins) in used:
                continue
            if any(decisions[name].logarithmic for name in weights):
                functions.append(_of_columns(_margin(weights, least), decisions))
            else:
                indices = torch.tensor([columns[name] for name in weights])
                numbers = torch.tensor(list(weights.values()), dtype=torch.double)
                linear.append((indices, numbers, least))
    return tuple(linear), tuple(functions), equalities


def _equalities(
    constraints: tuple[Constraint, ...],
    decisions: Mapping[str, Variable],
    bounds: Tensor,
    values: Mapping[int, Sequence[float]],
) -> Equalities | None:
    """Those among the linear constraints; None if there are none."""
    linear = [c for c in constraints if isinstance(c, LinearConstraint)]
    rows = [(c, *margin) for c in linear for margin in c.margins()]
    if not rows:
        return None
    weights = np.array([[float(w.get(n, 0.0)) for n in decisions] for _, w, _ in rows])
    least = np.array([number for *_, number in rows])
    logarithms = [j for j, v in enumerate(decisions.values()) if v.logarithmic]
    box = in_units(bounds, logarithms)
    if conflict := contradiction(weights, least, box.numpy()):
        named = list(dict.fromkeys(f"`{rows[i][0]}`" for i in conflict))
        if len(named) > 1:
            raise InputDataError(
                f"None of the decisions within the bounds satisfies {', '.join(named)} "
                "together. Leave one out, correct a number, or widen the bounds."
            )
        sizes = rows[conflict[0]][0].coefficients
        own = box.new_tensor([sizes.get(name, 0.0) for name in decisions])
        terms = box * own  # 2 x d_x
        low, high = terms.amin(0).sum().item(), terms.amax(0).sum().item()
        raise InputDataError(
            f"None of the decisions within the bounds satisfies {named[0]}: the sum "
            f"lies between {low:.6g} and {high:.6g} there. Correct a number, or widen "
            "the bounds."
        )
    found = Equalities.of(weights, least, bounds, values, tuple(logarithms))
    if found is not None and not found.free:
        only = dict(zip(found.dependent, found.sums.tolist(), strict=True))
        words = [f"{name} = {only[j]:.6g}" for j, name in enumerate(decisions)]
        raise InputDataError(
            f"The constraints leave a single decision, {', '.join(words)}: there is "
            "nothing to choose. Leave a constraint out, or widen the bounds."
        )
    return found


def _margin(weights: Mapping[str, float], least: float) -> Function:
    """By how much a sum is above its least, relative to its terms."""
    size = sum(abs(a) for a in weights.values()) + abs(least)

    def margin(columns: dict[str, Tensor]) -> Tensor:
        terms = [a * columns[name] for name, a in weights.items()]
        return (torch.stack(terms).sum(0) - least) / size

    return margin


def _of_columns(
    function: Function, decisions: Mapping[str, Variable]
) -> Callable[[Tensor], Tensor]:
    def of_model(X: Tensor) -> Tensor:  # n x d_x -> n
        columns = {
            name: variable.units(X[:, j])
            for j, (name, variable) in enumerate(decisions.items())
        }
        return function(columns)

    return of_model
