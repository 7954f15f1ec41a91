"""A recommendation in the names and units of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from botorch_drbo.algorithms import Recommendation
from botorch_drbo.algorithms.summary import said_of_feasibility
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.space.space import Space
from botorch_drbo.space.table import to_frame

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 3  # contexts that hurt most
_REFERENCE, _WORST = "reference_weight", "worst_case_weight"


@final
@dataclass(frozen=True, eq=False)
class NamedRecommendation:
    r"""The decision to implement, and what to expect of it, in the user's units.

    See ``Recommendation`` for what the values are, and for the distributions that the
    worst case is over. ``print`` shows it in a few lines.

    Attributes:
        x: The decision, a table of one row.
        objective: The recipe's own objective there.
        expected_value: The expectation under the reference distribution.
        worst_case_value: The same under the worst distribution found.
        contexts: The contexts of both, a table with their names and the columns
            ``reference_weight`` and ``worst_case_weight``, those with the largest
            worst-case weight first.
        outcome: The name of the outcome.
        worst_case_status: Whether ``worst_case_value`` is exact on these contexts.
        feasibility: The worst probability of meeting the outcome constraints, or None.
        feasible: Whether that reaches the recipe's level, or None.
    """

    x: pd.DataFrame
    objective: float
    expected_value: float
    worst_case_value: float
    contexts: pd.DataFrame
    outcome: str
    worst_case_status: SolverStatus
    feasibility: float | None = None
    feasible: bool | None = None

    @classmethod
    def of(cls, found: Recommendation, space: Space) -> NamedRecommendation:
        """Translate a recommendation."""
        contexts = to_frame(found.context_set.points, space.contexts)
        contexts[_REFERENCE] = found.context_set.weights.tolist()
        contexts[_WORST] = found.worst_case_weights.tolist()
        # Contexts that were seen several times are one row.
        names = list(space.contexts)
        contexts = contexts.groupby(names, as_index=False, sort=False).sum()
        contexts = contexts.sort_values(_WORST, ascending=False, ignore_index=True)
        return cls(
            x=to_frame(found.x.unsqueeze(0), space.decisions),
            objective=found.objective,
            expected_value=found.expected_value,
            worst_case_value=found.worst_case_value,
            contexts=contexts,
            outcome=space.outcome,
            worst_case_status=found.worst_case_status,
            feasibility=found.feasibility,
            feasible=found.feasible,
        )

    def __str__(self) -> str:
        """Decision, expected and worst-case value, and the contexts that hurt."""
        names = [n for n in self.contexts.columns if n not in (_REFERENCE, _WORST)]
        lines = [
            f"decision:   {_row(self.x.iloc[0].to_dict())}",
            f"expected {self.outcome}:   {self.expected_value:.6g}",
            f"worst-case {self.outcome}: {self.worst_case_value:.6g}",
        ]
        if self.feasibility is not None:
            said = said_of_feasibility(self.feasibility, self.feasible)
            lines.append(f"feasible:   {said}")
        more = self.contexts[_WORST] > self.contexts[_REFERENCE] + 1e-9
        for _, row in self.contexts[more].head(_SHOWN).iterrows():
            lines.append(
                f"  hurts: {_row(row[names].to_dict())} "
                f"({row[_REFERENCE]:.0%} -> {row[_WORST]:.0%})"
            )
        return "\n".join(lines)


def _row(values: dict[str, object]) -> str:
    shown = {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in values.items()
    }
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
