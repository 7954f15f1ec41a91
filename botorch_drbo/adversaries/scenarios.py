"""Dangers that are other distributions: from elsewhere, other levels, scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, final

import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import (
    check_inside,
    did_you_mean,
    is_finite_number,
    is_number,
    option,
)
from botorch_drbo.adversaries.dangers import (
    Danger,
    World,
    check_named,
    check_share,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import column_of, contexts_within
from botorch_drbo.problem.search_space import SearchSpace, check_values
from botorch_drbo.sampling import sobol

_NUM_IN_BOX = 256  # Sobol contexts that stand for the whole box

Elsewhere: TypeAlias = ContextSet | Mapping[str, object]
"""A distribution of contexts, or columns with the values that they take for sure."""


@final
@dataclass(frozen=True, eq=False)
class Mixture(Danger):
    r"""A share of the cases comes from elsewhere: a contamination neighbourhood.

    .. math:: (1 - \eta)\, p + \eta\, r

    Args:
        share: ``eta``, above 0 and at most 1.
        other: ``r``: a ``ContextSet`` such as a forecast; columns with the values that
            they have there, ``{"weather": "storm"}``, the others as in the reference;
            or ``"box"`` for anywhere within the bounds.

    Raises:
        InputDataError: A share outside its range, or no distribution.

    Example:
        >>> from botorch_drbo import Mixture
        >>> Mixture(0.1, {"weather": "storm"}).share
        0.1

    [Huber1964]_.
    """

    share: float = option(0.1, lambda value, name: check_share(value, name))
    other: Elsewhere | Literal["box"] = "box"

    def __post_init__(self) -> None:
        """Check the share and the kind of the other distribution."""
        super().__post_init__()
        if self.other != "box":
            _check_elsewhere(self.other, "other", " or 'box'")

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse columns and levels that do not exist.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: A wrong column or value.
        """
        _check_values_of(self.other, space, "Mixture")

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The reference with a share replaced."""
        other, name = _anywhere(space), "anywhere within the bounds"
        if not isinstance(self.other, str):
            other = _elsewhere(self.other, reference, space, "Mixture")
            name = _place(self.other, "the other distribution")
        points = torch.cat([reference.points, other.points])
        weights = [(1.0 - self.share) * reference.weights, self.share * other.weights]
        mixed = ContextSet(points, torch.cat(weights))
        return [World(f"{100 * self.share:.3g}% of cases from {name}", mixed)]


@final
@dataclass(frozen=True, eq=False)
class Weights(Danger):
    r"""Some levels of a column more or less often than seen.

    .. math:: Q(c) = w_l\, p(c \mid l) \quad \text{for a level } l \text{ with a weight}

    The other levels share what is left as they do in the reference. A level that was
    never seen comes with the other columns as they are in the reference.

    Args:
        weights: The column, and the share of cases of some of its levels:
            ``{"weather": {"rain": 0.6}}``. Where all levels are given they add up to
            one.

    Raises:
        InputDataError: Not one column; shares that are negative or add up to more than
            one.

    Example:
        >>> from botorch_drbo import Weights
        >>> Weights({"weather": {"rain": 0.6}}).weights
        {'weather': {'rain': 0.6}}
    """

    weights: Mapping[str, Mapping[object, float]]

    def __post_init__(self) -> None:
        """Check the shares."""
        super().__post_init__()
        check_named(self.weights, "weights", "{'weather': {'rain': 0.6}}")
        if len(self.weights) != 1:
            raise InputDataError(
                f"`weights` must name one column, got {list(self.weights)}. Join "
                "several: AnyOf(Weights({...}), Weights({...}))."
            )
        (column, shares), *_ = self.weights.items()
        if not isinstance(shares, Mapping) or not shares:
            raise InputDataError(
                f"`weights` of `{column}` must be shares by level, such as "
                f"{{'rain': 0.6}}, got {shares!r}."
            )
        for level, share in shares.items():
            if not is_number(share) or not 0.0 <= share <= 1.0:
                raise InputDataError(
                    f"`weights` of {level!r} must be a share of cases between 0 and 1, "
                    f"got {share!r}."
                )
        if sum(shares.values()) > 1.0 + 1e-6:
            raise InputDataError(
                f"`weights` of `{column}` add up to {sum(shares.values()):g}, more "
                "than 1. Give shares of cases."
            )

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse a column without levels, and levels that do not exist.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: A wrong column or level, or all levels with a sum below one.
        """
        (column, shares), *_ = self.weights.items()
        j = column_of(column, space, "Weights")
        levels = replace(space, known_context=None).context_values.get(j)
        if levels is None:
            raise InputDataError(
                f"Weights names `{column}`, which has no levels: it is a number of an "
                "interval. Take MeanShift, Spread or Mixture."
            )
        given = [_value(column, level, space, "Weights")[1] for level in shares]
        total = sum(shares.values())
        if len(set(given)) == len(levels) and abs(total - 1.0) > 1e-6:
            raise InputDataError(
                f"`weights` of `{column}` name all of its levels and add up to "
                f"{total:g}, not to 1."
            )

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The reference with the shares of these levels."""
        self.check_space(space)
        (column, shares), *_ = self.weights.items()
        j = column_of(column, space, "Weights")
        if j in space.known_columns:
            return []  # what is known does not change
        left, points, weights = 1.0, [reference.points], reference.weights.clone()
        new = []
        rest = torch.ones_like(weights, dtype=torch.bool)
        for level, share in shares.items():
            value = _value(column, level, space, "Weights")[1]
            left -= share
            held = reference.points[:, j] == value
            rest &= ~held
            now = weights[held].sum()
            if now > 0.0:
                weights[held] *= share / now
            elif share > 0.0:
                points.append(reference.points.clone())
                points[-1][:, j] = value
                new.append(share * reference.weights)
        now = weights[rest].sum()
        if left > 1e-9 and not now > 0.0:
            raise InputDataError(
                f"Weights leave {left:.3g} of the cases to other levels of "
                f"`{column}`, and none of those was seen. Give them a share too."
            )
        weights[rest] *= max(left, 0.0) / now if now > 0.0 else 0.0
        said = ", ".join(f"{level} in {100 * w:.3g}%" for level, w in shares.items())
        found = ContextSet(torch.cat(points), torch.cat([weights, *new]))
        return [World(f"{column}: {said} of cases", found)]


@final
@dataclass(frozen=True, eq=False)
class Scenarios(Danger):
    r"""Distributions that you give: forecasts, years of the past, single cases.

    .. math:: Q \in \{ p, Q_1, \dots, Q_K \}

    Args:
        scenarios: A list, or a dictionary by name, of ``ContextSet`` or of columns with
            the values that they take, ``{"weather": "storm"}``, where the others are as
            in the reference.

    Raises:
        InputDataError: An empty list, or something that is no distribution.

    Example:
        >>> from botorch_drbo import Scenarios
        >>> heat = Scenarios({"heat": {"temp": 35}, "storm": {"weather": "storm"}})
        >>> list(heat.scenarios)
        ['heat', 'storm']

    A finite ambiguity set: distributionally robust optimisation over scenarios.
    """

    scenarios: Sequence[Elsewhere] | Mapping[str, Elsewhere]

    def __post_init__(self) -> None:
        """Check that there are some, and what they are."""
        super().__post_init__()
        listed = isinstance(self.scenarios, Sequence | Mapping)
        if not listed or isinstance(self.scenarios, str) or not self.scenarios:
            raise InputDataError(
                "`scenarios` must be a list of ContextSets with at least one entry, or "
                f"a dictionary of them by name, got {self.scenarios!r:.200}."
            )
        for name, each in self._named():
            _check_elsewhere(each, name, "")

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse columns and levels that do not exist.

        Args:
            space: The decisions and the contexts.

        Raises:
            InputDataError: A wrong column or value.
        """
        for name, each in self._named():
            _check_values_of(each, space, name)

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""The distributions given."""
        return [
            World(name, _elsewhere(each, reference, space, name))
            for name, each in self._named()
        ]

    def _named(self) -> list[tuple[str, Elsewhere]]:
        if isinstance(self.scenarios, Mapping):
            return [*self.scenarios.items()]
        return [
            (_place(each, f"scenario {i}"), each)
            for i, each in enumerate(self.scenarios, start=1)
        ]


@final
@dataclass(frozen=True, eq=False, init=False)
class AnyOf(Danger):
    r"""Several dangers: the worst of all of them.

    .. math:: \bigcup_m \mathcal Q_m

    Args:
        dangers: Two or more.

    Raises:
        InputDataError: None, or something that is no danger.

    Example:
        >>> from botorch_drbo import AnyOf, MeanShift, Spread
        >>> len(AnyOf(MeanShift(1.0), Spread(2.0)).dangers)
        2
    """

    dangers: Sequence[Danger]

    def __init__(self, *members: Danger, dangers: Sequence[Danger] = ()) -> None:
        """Join them, each an argument of its own."""
        object.__setattr__(self, "dangers", (*members, *dangers))
        for each in self.dangers:
            if not isinstance(each, Danger):
                raise InputDataError(
                    "AnyOf joins dangers such as MeanShift(1.0), got "
                    f"{type(each).__name__}. A ball of distributions stands alone."
                )
        if not self.dangers:
            raise InputDataError("AnyOf() is empty. Name a danger: MeanShift(1.0).")

    def check_space(self, space: SearchSpace) -> None:
        r"""Let each of them look.

        Args:
            space: The decisions and the contexts.
        """
        for each in self.dangers:
            each.check_space(space)

    def changed(self, reference: ContextSet, space: SearchSpace) -> list[World]:
        r"""All of their distributions."""
        return [w for each in self.dangers for w in each.changed(reference, space)]


def _value(
    column: str, value: object, space: SearchSpace, name: str
) -> tuple[int, float]:
    """A column and one of its values, as the model sees it, known or not."""
    space = replace(space, known_context=None)
    j = column_of(column, space, name)
    levels = space.context_levels.get(j)
    if levels is not None:
        if value not in levels:
            raise InputDataError(
                f"{name} names {value!r}, which is no level of `{column}`. Its levels "
                f"are {list(levels)}.{did_you_mean(str(value), map(str, levels))}"
            )
        return j, float(levels.index(value))
    if not is_finite_number(value):
        raise InputDataError(
            f"{name} gives `{column}` the value {value!r}, which is no number."
        )
    number = float(value)
    if j in space.context_logarithms:
        if number <= 0.0:
            raise InputDataError(
                f"{name} gives `{column}` the value {number:g}: it must be positive."
            )
        number = math.log(number)
    row = space.context_bounds.mean(0, keepdim=True)
    row = space.snap_contexts(row)
    row[0, j] = number
    check_inside(row, space.context_bounds, name, "context_bounds")
    check_values(row, space.context_bounds, space.context_values, name)
    return j, number


def _elsewhere(
    given: Elsewhere, reference: ContextSet, space: SearchSpace, name: str
) -> ContextSet:
    """A distribution as the model sees it."""
    if isinstance(given, ContextSet):
        return contexts_within(given, space, "context_set")
    points = reference.points.clone()
    for column, value in given.items():
        j, number = _value(column, value, space, name)
        points[:, j] = number
    return ContextSet(points, reference.weights)


def _check_elsewhere(given: object, name: str, further: str) -> None:
    if isinstance(given, ContextSet):
        return
    if isinstance(given, Mapping):
        check_named(given, name, "{'weather': 'storm'}")
        return
    raise InputDataError(
        f"`{name}` must be a ContextSet, columns with their values such as "
        f"{{'weather': 'storm'}}{further}, got {type(given).__name__}. Of a table "
        "make one: `space.context_set(table)`."
    )


def _check_values_of(given: object, space: SearchSpace, name: str) -> None:
    if isinstance(given, ContextSet):
        contexts_within(given, space, "context_set")
    elif isinstance(given, Mapping):
        for column, value in given.items():
            _value(column, value, space, name)


def _place(given: Elsewhere, otherwise: str) -> str:
    """What people call a distribution."""
    if not isinstance(given, Mapping):
        return otherwise
    return ", ".join(f"{column} {value}" for column, value in given.items())


def _anywhere(space: SearchSpace) -> ContextSet:
    """Contexts that fill the box evenly; of a column with values each equally often."""
    unit = sobol(_NUM_IN_BOX, space.d_c, 0).to(space.context_bounds)
    lower, upper = space.context_bounds
    points = lower + unit * (upper - lower)
    for j, values in space.context_values.items():
        place = (unit[:, j] * len(values)).long().clamp_max(len(values) - 1)
        points[:, j] = points.new_tensor(list(values))[place]
    return ContextSet(space.with_known(points))
