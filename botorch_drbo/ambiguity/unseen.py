"""The value to the adversary of contexts that are not on the list."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


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
