"""The distance between contexts that defines a Wasserstein ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_drbo.problem.column_radii import in_words
from botorch_drbo.problem.search_space import SearchSpace

_IMMOVABLE = 1e6  # a width of a column that may not move, in radii
_LEAST = 8  # contexts to which the mass of a fibre may go


@dataclass(frozen=True, eq=False)
class GroundMetric:
    r"""Distances between contexts, in widths of the box or in a radius by column.

    .. math:: d(c, c')^2 = \sum_j \Big( \frac{c_j - c'_j}{r_j} \Big)^2

    With a radius by column ``r`` the ball has the radius one: to move all of the mass
    by ``r_j`` in the column ``j`` alone uses all of it, and so does it to change the
    category of a share ``r_j``. In a column of radius zero no mass moves (but a
    millionth of it).

    Attributes:
        space: The contexts.
        radii: The radius of each column in widths of its bounds, ``d_c``; None for
            distances in widths.
    """

    space: SearchSpace
    radii: Tensor | None = None

    @property
    def fixed(self) -> tuple[int, ...]:
        """The columns that are not known and in which no mass may move."""
        if self.radii is None:
            return ()
        still = (self.radii == 0.0).nonzero().flatten().tolist()
        return tuple(j for j in still if j not in self.space.known_columns)

    @property
    def diameter(self) -> float | None:
        """The largest distance of two contexts that differ where they may.

        None where a radius by column lets none move.
        """
        if self.radii is None:
            return self.space.context_diameter
        stay = {*self.fixed, *self.space.known_columns}
        moving = [j for j in range(self.space.d_c) if j not in stay]
        if not moving:
            return None
        return torch.linalg.vector_norm(1.0 / self.radii[moving]).item()

    def distances(self, first: Tensor, second: Tensor) -> Tensor:
        r"""The formula of the class.

        Args:
            first: Contexts, ``... a x d_c``.
            second: Contexts, ``... b x d_c``.

        Returns:
            ``... a x b``.
        """
        space = self.space
        if self.radii is None:
            return space.context_distances(first, second)
        sizes = [space.context_categories.get(j, 1) for j in range(space.d_c)]
        scale = (1.0 / self.radii).clamp_max(_IMMOVABLE)
        scale = scale.repeat_interleave(torch.tensor(sizes).to(scale.device)).to(first)
        a, b = space.embed_contexts(first) * scale, space.embed_contexts(second) * scale
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")

    def words(self, radius: float) -> str:
        r"""How far a ball of this radius reaches, for people.

        Args:
            radius: That of the ball.
        """
        space = self.space
        if self.radii is not None:
            return f"{in_words(self.radii.tolist(), space)} (Wasserstein)"
        means = f": {in_words(space.d_c * [radius], space)}"
        return (
            f"radius {radius:.3g} (Wasserstein{means if space.context_names else ''})"
        )


def on_fibres(
    contexts: Tensor, sample: Tensor, fixed: Sequence[int], num: int
) -> Tensor:
    """Contexts to which mass may go if some columns are fixed.

    A fibre is what is left of the box where these columns have the values of one of the
    contexts. Each takes its turn of the sample.

    Args:
        contexts: Those with mass, ``n x d_c``.
        sample: Contexts of the whole box, ``m x d_c``.
        fixed: The columns.
        num: How many are wanted in all; each fibre has a few at least.

    Returns:
        ``k x d_c``.
    """
    columns = list(fixed)
    moving = [j for j in range(contexts.shape[-1]) if j not in fixed]
    if not moving:
        return contexts[:0]
    fibres = contexts[:, columns].unique(dim=0)  # u x f
    places = _different(sample[:, moving])  # p x (d_c - f)
    each = min(len(places), max(_LEAST, num // len(fibres)))
    turns = torch.arange(len(fibres) * each, device=places.device) % len(places)
    points = contexts.new_empty(len(turns), contexts.shape[-1])
    points[:, moving] = places[turns]
    points[:, columns] = fibres.repeat_interleave(each, dim=0)
    return points


def _different(rows: Tensor) -> Tensor:
    """The first of equal rows, in their order."""
    _, kind = rows.unique(dim=0, return_inverse=True)
    order = torch.arange(len(rows), device=rows.device)
    first = order.new_full((len(rows),), len(rows))
    first = first.scatter_reduce(0, kind, order, "amin")
    return rows[first[first < len(rows)].sort().values]
