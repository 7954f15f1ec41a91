"""How far the contexts may shift before another decision is the better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet

_TIMES = 4.0  # the recipe's own radius: as far as the default of a profile
_NUM_RADII = 7
_BISECTIONS = 8  # to two thousandths of the recipe's own radius
_ALIKE = 1e-6  # of the range of the values: what solvers and searches leave undecided
_ROUNDING = 16.0  # units in the last place of the largest value


_Row = TypeVar("_Row")


@dataclass(frozen=True, eq=False)
class Stability(Generic[_Row]):
    r"""The radius from which another decision has the better worst case.

    Attributes:
        radius: The recipe's own.
        until: The first radius, from the own one on, at which another decision has a
            better worst case; None if there is none up to ``searched``. It is the own
            radius where one is better already: the recipe maximises something else
            than this worst case.
        searched: The largest radius that was looked at, four times the own.
        rival: That decision, ``d_x``, with named variables a table of one row; None if
            there is none.
        num_rivals: How many decisions were compared.
        compared: Which ones, in words. Any other decision may be better earlier.
        by_column: Whether the radius is given by column, so that it is one, and the
            others are multiples of it.
    """

    radius: float
    until: float | None
    searched: float
    rival: _Row | None
    num_rivals: int
    compared: str = ""
    by_column: bool = False

    def words(self, rival: str) -> str:
        r"""Say it in a line.

        Args:
            rival: The rival, in words.

        Returns:
            What the report of a recommendation says.
        """
        return f"by the posterior mean {self._until(rival)}"

    def _until(self, rival: str) -> str:
        if self.by_column:
            now, beyond = "that radius", f"{self.searched:.3g} times that radius"
            until = f"{self.until or 0.0:.3g} times that radius"
        else:
            now = f"radius {self.radius:.3g}"
            beyond = f"radius {self.searched:.3g} (now {self.radius:.3g})"
            until = f"radius {self.until or 0.0:.3g} (now {self.radius:.3g})"
        if self.until is None:
            return f"beyond {beyond}"
        if self.until == self.radius:
            return f"not at {now} itself: {rival} has a better worst case"
        return f"up to {until}, then {rival}"


def overtaken(
    ball: AmbiguitySet,
    weights: Tensor,
    values: Tensor,
    rival_values: Tensor,
    rivals: Tensor,
) -> Stability[Tensor]:
    r"""The first of several decisions that overtakes one as the radius grows.

    Args:
        ball: The set on these contexts, with the recipe's own radius.
        weights: Of the reference, ``n``.
        values: The decision's outcome in each context, ``n``; of the dtype that they
            were computed in, whose rounding makes nobody better.
        rival_values: Those of the others, ``m x n``, of the same dtype.
        rivals: The others, ``m x d_x``.

    Returns:
        Where and by which.
    """
    everything = torch.cat([values.unsqueeze(0), rival_values])
    rounding = _ROUNDING * torch.finfo(everything.dtype).eps * everything.abs().max()
    slack = _ALIKE * (everything.max() - everything.min()).double() + rounding
    weights, values = weights.double(), values.double()
    rival_values = rival_values.double()

    # A worst case falls with the radius: what it was is a bound from above.
    bounds = torch.full_like(rival_values[:, 0], torch.inf)
    if ball.holds_reference:
        bounds = rival_values @ weights

    def worst_cases(rows: Tensor, radius: float) -> Tensor:
        radii = weights.new_full((len(rows),), radius)
        return ball.worst_case(rows, weights, radius=radii).value

    def against(which: Tensor, radius: float) -> tuple[Tensor, Tensor]:
        """Worst cases of rivals ``k``, and what they have to exceed to be better.

        Of a rival whose bound does not exceed it, the bound.
        """
        least = worst_cases(values.unsqueeze(0), radius) + slack
        found = bounds[which]
        close = (found > least).nonzero().squeeze(-1)
        if len(close):
            found[close] = worst_cases(rival_values[which[close]], radius)
        return found, least

    own = ball.radius.item()
    until, rival = None, None
    low, everyone = own, torch.arange(len(rivals), device=rivals.device)
    steps = torch.linspace(own, _TIMES * own, _NUM_RADII, dtype=torch.double)
    for high in steps.tolist():
        found, least = against(everyone, high)
        ahead = (found > least).nonzero().flatten()
        if not len(ahead):
            low, bounds = high, found
            continue
        for _ in range(_BISECTIONS if high > low else 0):
            middle = 0.5 * (low + high)
            found, least = against(ahead, middle)
            earlier = ahead[found > least]
            low, high, ahead = (
                (low, middle, earlier) if len(earlier) else (middle, high, ahead)
            )
        until = high
        rival = rivals[ahead[against(ahead, high)[0].argmax()]]
        break
    return Stability(own, until, _TIMES * own, rival, len(rivals))
