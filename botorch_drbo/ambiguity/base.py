"""The base class of ambiguity sets, and of what makes one of a radius."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _device
from botorch_drbo._validation import check_nonnegative
from botorch_drbo.ambiguity import cvxpy_layer
from botorch_drbo.ambiguity.numerics import check_simplex
from botorch_drbo.ambiguity.solution import (
    RobustValue,
    Solution,
    in_float64,
    robust_value,
    sensitivity,
)
from botorch_drbo.codec.objects import storable

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True)
class Prices:
    r"""Dual prices of contexts that are not on the list.

    With ``b`` the metric or kernel between contexts, a context ``c`` has the prices

    .. math:: a_k(c) = \sum_j A_{kj} \, b(c_{I_{kj}}, c), \qquad k = 1, \dots, K,

    and it lowers the worst case only if, for some ``k``, its score plus its price is
    below that of every context on the list: its reduced cost is negative.

    Attributes:
        coefficients: ``A``, ``K x a``.
        anchors: ``I``, positions on the list, ``K x a``.
    """

    coefficients: Tensor
    anchors: Tensor

    @classmethod
    def none(cls, like: Tensor) -> Prices:
        """Prices of zero: only the score counts."""
        empty = like.new_empty(1, 0)
        return cls(empty, empty.long())


@dataclass(frozen=True)
class Few:
    """A few contexts of a list that stand for all of them."""

    # Their positions on the list, ``k``.
    positions: Tensor
    # The reference weights, moved to them, ``k``.
    weights: Tensor
    # The set on them.
    ambiguity_set: AmbiguitySet


_LONGEST = 1000  # entries of a matrix that is printed in full, as torch does
_SHORT = 1024  # contexts without weight: up to here they cost next to nothing
_STEP = 1e-6  # in the radius, of a difference in place of a direction
Solver = Literal["exact", "cvxpylayers"]
"""Our own batched solver of the set, or a cvxpy program solved row by row."""


@storable
class AmbiguitySet(Module, ABC):
    r"""A set of context distributions around a reference distribution ``p``.

    .. math:: v(\epsilon) = \min \{ q^\top f : q \in \Delta,\ d(p, q) \le \epsilon \}

    A subclass defines ``d`` in ``solve`` and ``distance``, and also in ``constraints``
    if the set is convex and cvxpy should check it. It receives only numbers (scores,
    weights and a radius), never a model. Each argument of its constructor must be
    stored as an attribute of the same name, so that runs that use the set can be stored
    and restored.

    Gradients come from the envelope theorem: ``dv/df = q*`` and ``dv/d radius =
    -multiplier``; no solver is differentiated. Only first derivatives exist; asking for
    a second one raises an error.

    Args:
        radius: A non-negative scalar, in the units of the set's own distance.

    Raises:
        InputDataError: The radius is negative, NaN or infinite.
    """

    radius: Tensor
    keeps_support: ClassVar[bool] = False
    """Whether atoms of reference weight zero get no mass."""
    knows_positions: ClassVar[bool] = True
    """Whether the distance depends on where the contexts lie."""
    finite_at_zero: ClassVar[bool] = True
    """Whether the sensitivity at radius zero is finite."""
    reaches_unseen: ClassVar[bool] = False
    """Whether the adversary may use any context, on the list or not, for its score."""
    has_radius: ClassVar[bool] = True
    """Whether there is a size to choose."""
    holds_reference: bool = False
    """Whether the reference is plausible at every radius, so that the worst case never
    exceeds the expectation. Of a set of the user's own that is not known."""

    def __init__(self, radius: float | Tensor) -> None:
        super().__init__()
        self.register_buffer("radius", _as_radius(radius))

    @property
    def diameter(self) -> float | None:
        """The largest distance between two distributions; None if it is unknown.

        With a larger radius the set contains every distribution on the contexts.
        """
        return None

    def worst_case(
        self,
        values: Tensor,
        weights: Tensor,
        solver: Solver = "exact",
        *,
        radius: Tensor | None = None,
    ) -> RobustValue:
        r"""Find the worst distribution in the set for each row of scores.

        ``solver="cvxpylayers"`` solves the same problem independently, with cvxpy's
        description of the set and Clarabel, row by row on the CPU. Use it for checks,
        not for optimisation. Its value agrees to ``1e-6`` of the range of the scores.
        If the worst case is not unique, it may return another one; at a kink of the
        value (a radius of zero or on a breakpoint, a weight of zero) it may return
        another subgradient. It warns if it cannot certify its value: for the
        divergences at a radius of zero, or with weights below ``1e-6``.

        Args:
            values: Scores ``f``, ``... x n``: the last dimension runs over contexts.
            weights: Reference weights ``p``, ``n`` or ``... x n``; on the simplex.
            solver: ``"exact"`` or ``"cvxpylayers"``.
            radius: A radius for each row, ``...``; by default the set's own for all.

        Returns:
            The value ``...``, the worst-case weights ``... x n``, the multiplier
            ``...`` and the status. Solved in float64, returned in the dtype of
            ``values``.

        Raises:
            BotorchTensorDimensionError: The shapes do not fit each other.
            InputDataError: Weights off the simplex, a negative radius, an empty set, or
                another solver.
            UnsupportedError: cvxpylayers was asked for, and the set is not convex.
        """
        solve = self._solver(solver)
        self._check(values, weights)
        radius = self.radius if radius is None else check_nonnegative(radius, "radius")
        atoms = self._with_outside(values, weights)
        solution = in_float64(solve, *atoms, radius)
        return robust_value(solution, values, *atoms, radius, name=type(self).__name__)

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The worst-case value alone, which may be cheaper than all of ``worst_case``.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``, with the same gradients.
        """
        return self.worst_case(values, weights).value

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""A cheap lower bound of the worst-case value, to rank rows.

        Sets with an expensive value override this by a cheaper bound that ranks rows in
        nearly the same order. The default is the value itself.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            Lower bounds of the value, ``...``, without a gradient.
        """
        with torch.no_grad():
            return self.value(values, weights)

    def few(self, weights: Tensor, share: float = 1.0) -> Few | None:
        r"""A few contexts on which rows have nearly the same order, to rank them.

        Args:
            weights: Reference weights, ``n``.
            share: Of the usual number of contexts.

        Returns:
            The contexts, with the weights moved to them; by default None: the order
            needs the whole list.
        """
        return None

    def sensitivity(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The right derivative of the worst-case value in the radius, at the radius.

        .. math:: \delta(\epsilon) = dv / d\epsilon = (dq^* / d\epsilon)^\top f \le 0

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The sensitivity ``...``, differentiable once in ``values``; its gradients
            in the weights and the radius are not available.
        """
        self._check(values, weights)
        atoms = self._with_outside(values, weights)
        solution = in_float64(
            self._of_needed(self.solve_with_direction), *atoms, self.radius
        )
        return sensitivity(solution, values, *atoms, self.radius)

    def worst_case_and_sensitivity(
        self, values: Tensor, weights: Tensor
    ) -> tuple[RobustValue, Tensor]:
        r"""Both ``worst_case`` and ``sensitivity``, at the cost of one solve.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            What the two methods return, at the radius of the set.
        """
        self._check(values, weights)
        given = *self._with_outside(values, weights), self.radius
        solution = in_float64(self._of_needed(self.solve_with_direction), *given)
        robust = robust_value(solution, values, *given, name=type(self).__name__)
        return robust, sensitivity(solution, values, *given)

    def __repr__(self) -> str:
        """The call that makes an equal set; a long matrix is left to torch's print."""
        given = [
            (parameter, self._printed(parameter.name))
            for parameter in inspect.signature(type(self)).parameters.values()
        ]
        words = (
            f"{'' if p.default is p.empty else f'{p.name}='}{_in_words(value)}"
            for p, value in given
            if p.default is p.empty or (value is not p.default and value != p.default)
        )
        return f"{type(self).__name__}({', '.join(words)})"

    def _printed(self, name: str) -> object:
        """An argument as it is printed; where it is not kept, three points."""
        return getattr(self, name, ...)

    def with_radius(self, radius: float | Tensor) -> Self:
        r"""A copy of the set with another radius.

        Args:
            radius: A non-negative scalar.

        Returns:
            The copy; this set keeps its radius.

        Raises:
            InputDataError: The radius is negative, NaN or infinite.

        Example:
            >>> from botorch_drbo.ambiguity import TotalVariation
            >>> TotalVariation(0.1).with_radius(0.2).radius
            tensor(0.2000, dtype=torch.float64)
        """
        twin = copy.deepcopy(self)
        radius = _as_radius(radius).to(self.radius.device, self.radius.dtype)
        del twin.radius  # a buffer, or a parameter if someone made it one
        twin.register_buffer("radius", radius)
        return twin

    def at(self, points: Tensor) -> AmbiguitySet:
        r"""The set for contexts at these positions, if positions matter.

        Acquisition functions call this once, at construction, and
        ``WorstCaseProblem.of`` calls it for the worst case of a recommendation. A set
        without distances or a kernel matrix computes them here.

        Args:
            points: The contexts, ``n x d_c``, in their own units.

        Returns:
            By default the set itself.
        """
        return self

    def original(self) -> AmbiguitySet:
        r"""The set itself; for an approximation, the set that is approximated.

        Returns:
            A set whose worst case is a minimum over distributions.
        """
        return self

    def prices(self, robust: RobustValue, weights: Tensor) -> Prices:
        r"""The dual prices of contexts that are not on the list.

        Args:
            robust: The worst case on the list, ``worst_case(values, weights)``.
            weights: The reference weights of that call.

        Returns:
            The prices; by default zero, so that only the lowest score counts.
        """
        return Prices.none(weights)

    def _check(self, values: Tensor, weights: Tensor) -> None:
        sizes = (*values.shape[-1:], *weights.shape[-1:])
        if len(sizes) < 2 or 0 in sizes:
            raise BotorchTensorDimensionError(
                "`values` and `weights` must have a last dimension over contexts, got "
                f"shapes {tuple(values.shape)} and {tuple(weights.shape)}."
            )
        if not (values.is_floating_point() and weights.is_floating_point()):
            raise InputDataError(
                "`values` and `weights` must be floating point tensors, got "
                f"{values.dtype} and {weights.dtype}. Convert them with `.double()`."
            )
        self._check_sizes(values.shape[-1], weights.shape[-1])
        check_simplex(weights)

    def _solver(self, name: Solver) -> _Solve:
        if name == "exact":
            return self._of_needed(self.solve)
        if name == "cvxpylayers":
            return partial(cvxpy_layer.solve, self)
        raise InputDataError(f"`solver` must be one of {get_args(Solver)}, got {name}.")

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        if num_values != num_weights:
            raise BotorchTensorDimensionError(
                f"{type(self).__name__} needs one score per context: got {num_values} "
                f"scores and {num_weights} weights."
            )

    def _with_outside(self, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Append the atoms that the adversary may use beside the contexts; usually
        none.

        The solver treats these atoms like all others. The weights returned to the user
        do not contain them.
        """
        return values, weights

    def _of_needed(self, solve: _Solve) -> _Solve:
        """The same on a shorter list: without contexts that are known to get no mass.

        Of those without weight a set that keeps its support uses none, and one that
        asks for nothing but their scores only the lowest.
        """
        if self.knows_positions or not (self.keeps_support or self.reaches_unseen):
            return solve

        def found(values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
            n = weights.shape[-1]
            held = weights.reshape(-1, n).any(0) if _device.on_cpu(weights) else None
            # A shorter list has to be worth it; of an empty batch none is known.
            if held is None or not 0 < 2 * int(held.sum()) < n - _SHORT:
                return solve(values, weights, radius)
            at = held.nonzero().squeeze(-1).expand(*values.shape[:-1], -1)
            if self.reaches_unseen:
                others = values.masked_fill(held, torch.inf)
                at = torch.cat([at, others.argmin(-1, keepdim=True)], dim=-1)
            few = solve(values.gather(-1, at), weights.gather(-1, at), radius)

            def everywhere(part: Tensor) -> Tensor:
                return torch.zeros_like(values).scatter(-1, at, part)

            def gradient() -> Tensor:  # also in the weights that are zero
                whole = solve(values, weights, radius).reference_gradient
                assert whole is not None
                return whole()

            return replace(
                few,
                weights=everywhere(few.weights),
                direction=None if few.direction is None else everywhere(few.direction),
                reference_gradient=few.reference_gradient and gradient,
            )

        return found

    @abstractmethod
    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""Find a worst-case distribution of each row, in plain batched torch.

        ``worst_case`` calls this with checked, cast and expanded arguments, and makes
        the result differentiable.

        Args:
            values: Scores ``f``, ``... x n``: float64, detached, each row divided by a
                power of two so that none is above one.
            weights: Reference weights ``p``, ``... x n``, with the same batch: float64,
                on the simplex, some perhaps zero.
            radius: The radius of each row, ``... x 1``; not negative, in the units of
                ``distance``. It replaces ``self.radius``.

        Returns:
            The solution for these values; ``weights`` and ``multiplier`` are enough.
        """

    def solve_with_direction(
        self, values: Tensor, weights: Tensor, radius: Tensor
    ) -> Solution:
        r"""Like ``solve``, with the ``direction`` that a sensitivity needs.

        Override it only if the direction costs extra. The default is the direction from
        ``solve``, or, if that is None, a forward difference with a step of 1e-6:

        .. math:: dq^* / d\epsilon \approx (q^*(\epsilon + h) - q^*(\epsilon)) / h

        Args:
            values: As for ``solve``.
            weights: As for ``solve``.
            radius: As for ``solve``.

        Returns:
            The solution; its ``direction`` is not None.
        """
        here = self.solve(values, weights, radius)
        if here.direction is not None:
            return here
        there = self.solve(values, weights, radius + _STEP)
        return replace(here, direction=(there.weights - here.weights) / _STEP)

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The constraints that define the set, for cvxpy (DPP).

        Only ``solver="cvxpylayers"``, which checks ``solve``, needs them.

        Args:
            q: The variable ``q``, ``n``; already constrained to the simplex.
            p: The reference weights, ``n``.
            radius: The radius, a scalar.

        Returns:
            Convex constraints; parameters enter affinely.

        Raises:
            UnsupportedError: The set is not convex.
        """
        raise UnsupportedError(
            f'{type(self).__name__} is not a convex program. Use `solver="exact"`.'
        )

    @abstractmethod
    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The distance ``d(p, q)`` in which the radius is measured.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``.
        """


def check_ambiguity_set(ambiguity_set: AmbiguitySet) -> AmbiguitySet:
    """Return ``ambiguity_set`` if it is one."""
    if not isinstance(ambiguity_set, AmbiguitySet):
        raise InputDataError(
            "`ambiguity_set` must be an AmbiguitySet, got "
            f"{type(ambiguity_set).__name__}. For example TotalVariation(0.2), or "
            "NoAmbiguity() for the expectation."
        )
    return ambiguity_set


def _in_words(value: object) -> str:
    if isinstance(value, Tensor) and not value.ndim:
        return repr(value.item())
    if isinstance(value, Tensor) and value.numel() <= _LONGEST:
        return f"torch.tensor({value.tolist()}, dtype={value.dtype})"
    return getattr(value, "__name__", None) or repr(value)


def _as_radius(radius: float | Tensor) -> Tensor:
    radius = check_nonnegative(radius, "radius")
    if radius.ndim:
        raise BotorchTensorDimensionError(
            f"`radius` must be a scalar, got shape {tuple(radius.shape)}."
        )
    return radius.detach().clone()


_Solve = Callable[[Tensor, Tensor, Tensor], Solution]


SetOrMaker = AmbiguitySet | Callable[[Tensor], AmbiguitySet]
"""An ambiguity set; or, for one that knows where its contexts lie, a function that
makes it from contexts ``n x d_c``. Its own radius is ignored."""


def check_has_radius(ambiguity_set: AmbiguitySet) -> AmbiguitySet:
    """Return the set if there is a radius to choose."""
    if not isinstance(ambiguity_set, AmbiguitySet):
        raise InputDataError(
            "`ambiguity_set` must be an AmbiguitySet, or a function that makes one "
            f"from contexts, got {type(ambiguity_set).__name__}."
        )
    if not ambiguity_set.has_radius:
        raise InputDataError(
            f"{type(ambiguity_set).__name__} has no radius to choose. Give a set that "
            "has one, for example `ambiguity_set=TotalVariation(0.2)`."
        )
    return ambiguity_set


def bound_to_list(ambiguity_set: SetOrMaker) -> AmbiguitySet | None:
    """The set, if it knows the contexts of one list by a matrix; else None."""
    if isinstance(ambiguity_set, AmbiguitySet) and ambiguity_set.knows_positions:
        return ambiguity_set
    return None


def made_for(ambiguity_set: SetOrMaker, contexts: Tensor) -> AmbiguitySet:
    """The set itself, or what is made for contexts ``n x d_c``."""
    if not isinstance(ambiguity_set, AmbiguitySet) and callable(ambiguity_set):
        ambiguity_set = ambiguity_set(contexts)
    return check_has_radius(ambiguity_set)
