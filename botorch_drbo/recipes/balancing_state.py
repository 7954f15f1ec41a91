"""The state of regret bound balancing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BalancingState:
    r"""The plays and rewards of each base, and which bases are eliminated.

    Bases are numbered from 0; the paper's base ``i`` is ``i - 1`` here. Rewards,
    bounds and misspecifications are on the scale where rewards lie in ``[0, 1]``.

    Attributes:
        misspecifications: The guess of each base, largest first.
        information_gain: :math:`\gamma_T`, of the whole horizon.
        num_design: The outcomes at the beginning that no base played.
        played: The base of each outcome after these.
        num_plays: Outcomes of each base, ``n_i``.
        total_rewards: Their sum, ``S_i``.
        bounds: The candidate bound on each base's regret so far, ``R_i(n_i)``.
        eliminated_after: The number of plays at which the base was eliminated; None for
            active bases.
        upcoming: The bases of the pending decisions, in order, and that of the next
            decision.
    """

    misspecifications: tuple[float, ...]
    information_gain: float
    num_design: int
    played: tuple[int, ...]
    num_plays: tuple[int, ...]
    total_rewards: tuple[float, ...]
    bounds: tuple[float, ...]
    eliminated_after: tuple[int | None, ...]
    upcoming: tuple[int, ...]

    @property
    def active(self) -> tuple[int, ...]:
        """The bases that are not eliminated."""
        return tuple(i for i, out in enumerate(self.eliminated_after) if out is None)
