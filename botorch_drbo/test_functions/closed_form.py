r"""Test functions of one formula, with the settings of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, final

import torch
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import check_choice
from botorch_drbo.contexts import ContextSet
from botorch_drbo.test_functions.base import RobustTestFunction, Separated
from botorch_drbo.test_functions.optimum import Optimum

Value = TypeVar("Value")


@dataclass(frozen=True)
class Problem:
    r"""A formula on two boxes, with the law of the contexts.

    Args:
        name: The name that reports show.
        formula: :math:`f` at pairs: decisions ``N x d_x``, contexts ``N x d_c`` to
            outcomes ``N``; higher is better.
        bounds: Bounds of the decision, ``2 x d_x``.
        context_bounds: Bounds of the context, ``2 x d_c``.
        context_law: The law of the contexts before they are clipped to the bounds.
        optimum: The best decision under this law, or None if it is not known:
            ``benchmarks/find_optima.py`` prints every stored one.
        reference: The distribution that an optimiser is told, if there is one.
        separated: Feature maps whose inner product is the formula, if there are such.
        recompute: Whether a backward pass evaluates again rather than keep the graph
            of each chunk.
    """

    name: str
    formula: Callable[[Tensor, Tensor], Tensor]
    bounds: Tensor
    context_bounds: Tensor
    context_law: Distribution
    optimum: Optimum | None = None
    reference: ContextSet | None = None
    separated: Separated | None = None
    recompute: bool = True


@final
class ClosedForm(RobustTestFunction):
    r"""The test function of a problem.

    Args:
        problem: Formula, boxes and law.
        context_law: A law of your own in place of the problem's. The optimum under it
            is searched for when first asked for.
        noise_std: Standard deviation of the observation noise.

    Raises:
        InputDataError: Wrong bounds or a negative noise.
        UnsupportedError: A law without independent coordinates or an inverse cdf.

    Example:
        >>> from botorch_drbo.test_functions.laws import uniform_law
        >>> box = unit_bounds(1)
        >>> def formula(x, c):
        ...     return -(x - c).square().squeeze(-1)
        >>> function = ClosedForm(Problem("gap", formula, box, box, uniform_law(box)))
        >>> round(function.optimal_value, 3), function.optimal_decision
        (-0.083, tensor([0.5000], dtype=torch.float64))
    """

    def __init__(
        self,
        problem: Problem,
        *,
        context_law: Distribution | None = None,
        noise_std: float = 0.0,
    ) -> None:
        super().__init__(
            problem.name,
            bounds=problem.bounds,
            context_bounds=problem.context_bounds,
            context_law=context_law or problem.context_law,
            noise_std=noise_std,
            optimum=problem.optimum if context_law is None else None,
            reference=problem.reference,
            separated=problem.separated,
        )
        self._formula, self._recompute = problem.formula, problem.recompute

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return self._formula(x, c)


def unit_bounds(dim: int) -> Tensor:
    r"""Return the bounds of the unit cube, ``2 x dim``.

    Args:
        dim: The number of columns.
    """
    return torch.stack([torch.zeros(dim), torch.ones(dim)]).double()


def of_preset(values: Mapping[str, Value], preset: str) -> Value:
    r"""Return what a test function has under a preset.

    Args:
        values: Preset to value.
        preset: What the user asked for.

    Raises:
        InputDataError: There is no such preset.
    """
    check_choice(preset, "preset", values)
    return values[preset]
