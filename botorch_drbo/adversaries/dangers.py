"""Dangers by name: finite families of distributions, each the reference changed.

A user who fears something can say what: "three degrees warmer", "a tenth of the days
are from elsewhere", "rain on six days of ten". Each of these is the reference
distribution changed in a way that can be said, and the worst case over a few of them is
the least of as many expectations: exact, without a search, and with a name.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_drbo._validation import (
    check_positive,
    counted,
    is_finite_number,
    is_number,
    option,
    shown,
)
from botorch_drbo.adversaries.base import (
    Adversary,
    FittedRound,
    WorstCaseProblem,
    first_equal,
)
from botorch_drbo.ambiguity import FiniteFamily
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import column_of
from botorch_drbo.problem.search_space import SearchSpace

AS_SEEN = "as seen"
"""The name of the reference among the distributions of a danger."""
_EQUAL = " yet: the contexts seen do not vary"


class World(NamedTuple):
    """A distribution of the context, and what people call it."""

    name: str
    contexts: ContextSet


class Danger(Adversary):
    r"""What may become of the contexts, as a list of distributions with names.

    .. math:: \min_k \sum_i Q_{ki}\, s(x, c_i)

    The first of them is the reference itself: what is feared may not happen. So no
    worst case is above the expectation.
    """

    @abstractmethod
    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The reference changed in each way that is feared.

        Args:
            reference: The distribution of the contexts seen, or the one that was given.
            space: The boxes of decisions and contexts.

        Returns:
            The distributions, inside the bounds, with their names.

        Raises:
            InputDataError: A column or level that does not exist, or contexts beyond
                the bounds.
        """

    def worlds(self, state: FittedRound) -> list[World]:
        r"""The reference, and each way in which it is changed.

        Args:
            state: The round.

        Returns:
            The distributions with their names.
        """
        reference, space = state.contexts(), state.space
        return [World(AS_SEEN, reference)] + [
            World(name, ContextSet(space.with_known(each.points), each.weights))
            for name, each in self.changed(reference, space)
        ]

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distributions on one list of contexts, the reference first."""
        worlds = self.worlds(state)
        seen = worlds[0].contexts
        points = torch.cat([world.contexts.points for world in worlds])
        # The reference keeps its atoms in their order, repeated ones too; of all other
        # contexts the first of equal ones is listed behind them.
        n, first = seen.num_points, first_equal(points)
        new = first[first >= n].unique()
        listed = torch.cat([torch.arange(n, device=points.device), new])
        position = torch.zeros_like(first)
        position[listed] = torch.arange(len(listed), device=points.device)
        rows, start = [], 0
        for world in worlds:
            size = world.contexts.num_points
            at = position[first[start : start + size]]
            weights = world.contexts.weights
            rows.append(weights.new_zeros(len(listed)).index_add(0, at, weights))
            start += size
        rows[0] = torch.cat([seen.weights, seen.weights.new_zeros(len(new))])
        family = FiniteFamily(torch.stack(rows))
        return WorstCaseProblem(
            contexts=ContextSet(points[listed], rows[0]),
            ball=lambda points: family,
            within=f"{len(worlds)} distributions: "
            + "; ".join(world.name for world in worlds),
            family=family,
            worlds=tuple(world.name for world in worlds),
        )


@final
@dataclass(frozen=True, eq=False)
class MeanShift(Danger):
    r"""The contexts moved as a whole, up or down, in each column: a location family.

    .. math:: c_i \mapsto c_i \pm \delta_j e_j \quad (j = 1, \dots, d), \qquad
        c_i \mapsto c_i \pm \tfrac{1}{\sqrt d} (\delta_1, \dots, \delta_d)

    With a number, :math:`\delta_j` is so many standard deviations of the reference in
    the column ``j``; with a dictionary it is in the units of the column, of a
    logarithmic variable a factor. ``{"temp": (-3, 0)}`` moves one way only. Categories
    and columns that are known stay; whole and listed numbers take the nearest value.

    Args:
        shift: How far, in deviations, or by name of the column.
        clip: The share of cases that may leave the bounds and is then left at them.

    Raises:
        InputDataError: A number that is not positive, or something else.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet, MeanShift
        >>> from botorch_drbo.problem import SearchSpace
        >>> unit = torch.tensor([[0.0], [10.0]])
        >>> seen = ContextSet(torch.tensor([[4.0], [6.0]]))
        >>> space = SearchSpace(unit, unit)
        >>> for name, contexts in MeanShift({"c1": 3}).changed(seen, space):
        ...     print(name, contexts.mean.tolist())
        c1 3 higher [8.0]
        c1 3 lower [2.0]
    """

    shift: float | Mapping[str, float | tuple[float, float]] = 1.0
    clip: float = option(0.0, lambda value, name: check_share(value, name, least=0.0))

    def __post_init__(self) -> None:
        """Check the sizes; the names are checked with the space."""
        super().__post_init__()
        if not isinstance(self.shift, Mapping):
            check_positive(self.shift, "shift")
            return
        check_named(self.shift, "shift", "{'temp': 3}")
        for column, by in self.shift.items():
            ends = by if isinstance(by, tuple | list) else (by, by)
            if not all(map(is_finite_number, ends)) or len(ends) != 2:
                raise InputDataError(
                    f"`shift` of `{column}` must be a number, or the two ends "
                    f"(-3, 0), got {by!r}."
                )

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse columns that are no contexts, or categories.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: A wrong column, or nothing that could move.
        """
        if isinstance(self.shift, Mapping):
            for column, by in self.shift.items():
                for end in _ends(column, by, space):
                    shifted_column("MeanShift", column, end, space)
        else:
            check_has_numbers("MeanShift", space)

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The reference moved along each column and along the diagonal."""
        self.check_space(space)
        columns = space.context_columns
        up, down = self._ends(reference, space)
        moving = [j for j in _numbers(space) if up[j] != 0.0 or down[j] != 0.0]
        if not moving:
            named = isinstance(self.shift, Mapping)
            _warn_of_nothing(self, space, ": all its sizes are 0" if named else _EQUAL)
            return []
        steps = [(columns[j], [j], 1.0, ends) for j in moving for ends in (up, down)]
        if len(moving) > 1:
            name = f"{' and '.join(columns[j] for j in moving)} together"
            size = len(moving) ** -0.5
            steps += [(name, moving, size, up), (name, moving, size, down)]
        found = []
        for name, which, size, ends in steps:
            by = torch.zeros_like(up)
            by[which] = size * ends[which]
            if by.any():
                words = self._words(name, which, by, space, higher=ends is up)
                points = moved(words, by, reference, space, self.clip)
                points = space.snap_contexts(points)
                found.append(World(words, ContextSet(points, reference.weights)))
        return found

    def _ends(self, reference: ContextSet, space: SearchSpace) -> tuple[Tensor, Tensor]:
        """By how much each column moves up and down, ``d_c`` each."""
        if not isinstance(self.shift, Mapping):
            size = self.shift * reference.std
            return size, -size
        up, down = (torch.zeros_like(space.context_bounds[0]) for _ in range(2))
        for column, by in self.shift.items():
            low, high = _ends(column, by, space)
            j, up_by = shifted_column("MeanShift", column, high, space)
            up[j], down[j] = up_by, shifted_column("MeanShift", column, low, space)[1]
        return up, down

    def _words(
        self,
        name: str,
        which: Sequence[int],
        by: Tensor,
        space: SearchSpace,
        *,
        higher: bool,
    ) -> str:
        """What people call it."""
        way = "higher" if higher else "lower"
        together = f"{name} {way}"
        if len(which) > 1:
            if isinstance(self.shift, Mapping):
                return together
            return f"{name} {counted(self.shift, 'deviation')} {way}"
        (j,) = which
        way = "higher" if by[j] > 0 else "lower"
        units = shown(by[j].abs().item(), 3)
        if j in space.context_logarithms:
            units = f"{math.exp(by[j].item()):.3g} times"
            if isinstance(self.shift, Mapping):
                return f"{name} {units}"
        if isinstance(self.shift, Mapping):
            return f"{name} {units} {way}"
        return f"{name} {counted(self.shift, 'deviation')} {way} ({units})"


@final
@dataclass(frozen=True, eq=False)
class Spread(Danger):
    r"""The contexts further apart, around the same mean: a scale family.

    .. math:: c_i \mapsto \bar c + a\, (c_i - \bar c)

    Categories and columns that are known stay.

    Args:
        factor: ``a``; below one they are nearer together.
        clip: The share of cases that may leave the bounds and is then left at them.

    Raises:
        InputDataError: A factor that is not positive.

    Example:
        >>> from botorch_drbo import Spread
        >>> Spread(1.5).factor
        1.5
    """

    factor: float = option(2.0, check_positive)
    clip: float = option(0.0, lambda value, name: check_share(value, name, least=0.0))

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse contexts that are all categories.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: There is nothing to stretch.
        """
        check_has_numbers("Spread", space)

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The reference stretched."""
        self.check_space(space)
        columns = _numbers(space)
        if not reference.std[columns].any():
            _warn_of_nothing(self, space, _EQUAL)
            return []
        by = torch.zeros_like(reference.points)
        away = reference.points - reference.mean
        by[:, columns] = (self.factor - 1.0) * away[:, columns]
        name = f"spread {self.factor:g} times"
        points = space.snap_contexts(moved(name, by, reference, space, self.clip))
        return [World(name, ContextSet(points, reference.weights))]


def _warn_of_nothing(danger: Danger, space: SearchSpace, why: str) -> None:
    """Say that a danger is none; what is known does not move anyway."""
    if not space.known_columns:
        warnings.warn(
            f"{danger!r} moves nothing{why}. Say how far in units, such as "
            "MeanShift({'temp': 3}).",
            InputDataWarning,
            stacklevel=3,
        )


def moved(
    name: str, by: Tensor, today: ContextSet, space: SearchSpace, clip: float
) -> Tensor:
    """Contexts moved by ``d_c`` or ``n x d_c``, within the bounds, not snapped.

    What leaves the bounds is left at them if it is no more than the share ``clip``.
    """
    lower, upper = space.context_bounds
    points = today.points + by
    inside = points.clamp(lower, upper)
    outside = ((points - inside).abs() > 1e-9 * (upper - lower)).any(-1)
    share = today.weights[outside].sum().item()
    if share > clip:
        raise InputDataError(
            f"The shift {name!r} moves {100 * share:.3g}% of cases beyond the bounds "
            "of the contexts, where the model knows nothing. Give a smaller shift, "
            f"wider bounds, or `clip={math.ceil(100 * share) / 100:g}`, which leaves "
            "these contexts at the bounds."
        )
    return inside


def shifted_column(
    name: str, column: str, by: float, space: SearchSpace
) -> tuple[int, float]:
    """A column and by how much it moves, as the model sees it; of a logarithm a log."""
    j = column_of(column, space, name)
    if not is_finite_number(by):
        raise InputDataError(f"{name} moves `{column}` by a finite number, got {by!r}.")
    if j in space.context_categories:
        raise InputDataError(
            f"{name} moves `{column}`, which is a category. Say how often it has which "
            "level: Weights({'weather': {'rain': 0.6}}), or give the distribution that "
            "you fear, as a ContextSet or a table."
        )
    if j in space.context_logarithms:
        if by <= 0:
            raise InputDataError(
                f"{name} moves `{column}` by a positive factor, got {by:g}: 0.8 for a "
                "fifth less. The variable is logarithmic."
            )
        return j, math.log(by)
    return j, float(by)


def check_share(value: object, name: str, least: float | None = None) -> float:
    """A share of cases, up to 1, above zero or at least ``least``."""
    if is_number(value) and 0.0 <= value <= 1.0 and (value > 0.0 or least == 0.0):
        return float(value)
    low = "above 0 and at most 1" if least is None else "between 0 and 1"
    raise InputDataError(f"`{name}` must be a share of cases {low}, got {value!r}.")


def _ends(
    column: str, by: float | Sequence[float], space: SearchSpace
) -> tuple[float, float]:
    """The lower and upper end of a shift in units; of one number both ways."""
    if isinstance(by, Sequence):
        return min(by), max(by)
    size = float(by)
    if column_of(column, space, "MeanShift") in space.context_logarithms:
        return (1.0 / size, size) if size > 0.0 else (size, size)
    return -abs(size), abs(size)


def check_has_numbers(name: str, space: SearchSpace) -> None:
    """Refuse contexts that are all categories, where a danger moves numbers."""
    if not _numbers(space, known=True):
        raise InputDataError(
            f"{name} moves contexts that are numbers, and here all are categories. "
            "Take Weights, such as Weights({'weather': {'rain': 0.6}})."
        )


def _numbers(space: SearchSpace, *, known: bool = False) -> list[int]:
    """The columns that are no categories, and are not known."""
    fixed = () if known else space.known_columns
    held = (*fixed, *space.context_categories)
    return [j for j in range(space.d_c) if j not in held]


def check_named(given: Mapping[str, object], name: str, example: str) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InputDataError(
            f"`{name}` must name columns of the contexts, such as {example}, got "
            f"{given!r:.100}."
        )
