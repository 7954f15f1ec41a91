"""A recommendation in the names and units of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from botorch_drbo.algorithms import Recommendation
from botorch_drbo.algorithms.stability import Stability
from botorch_drbo.algorithms.summary import summary
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.space.space import Space
from botorch_drbo.space.table import to_frame

if TYPE_CHECKING:
    import pandas as pd

_REFERENCE, _WORST = "reference_weight", "worst_case_weight"


@final
@dataclass(frozen=True, eq=False, repr=False)
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
        stability: From which radius another decision has the better worst case; None
            for recipes without a radius.
        rival: That decision, a table of one row; None if there is none.
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
    stability: Stability | None = None
    rival: pd.DataFrame | None = None

    @classmethod
    def of(cls, found: Recommendation, space: Space) -> NamedRecommendation:
        """Translate a recommendation."""
        import pandas as pd

        contexts = to_frame(found.context_set.points, space.contexts)
        contexts[_REFERENCE] = found.context_set.weights.tolist()
        contexts[_WORST] = found.worst_case_weights.tolist()
        # Contexts that were seen several times are one row.
        groups = contexts.groupby(list(space.contexts), sort=False)
        contexts = pd.DataFrame(groups[[_REFERENCE, _WORST]].sum()).reset_index()
        contexts = contexts.sort_values(_WORST, ascending=False, ignore_index=True)
        rival = None if found.stability is None else found.stability.rival
        if rival is not None:
            rival = to_frame(rival.unsqueeze(0), space.decisions)
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
            stability=found.stability,
            rival=rival,
        )

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return (
            f"NamedRecommendation(x={_rows(self.x)[0]}, "
            f"expected_value={self.expected_value:.6g}, "
            f"worst_case_value={self.worst_case_value:.6g}, "
            f"worst_case_status={self.worst_case_status.name})"
        )

    def __str__(self) -> str:
        """Decision, expected and worst-case value, and the contexts that hurt."""
        return summary(
            _rows(self.x)[0],
            self.outcome,
            self.expected_value,
            self.worst_case_value,
            _rows(self.contexts.drop(columns=[_REFERENCE, _WORST])),
            self.contexts[_REFERENCE].tolist(),
            self.contexts[_WORST].tolist(),
            exact=self.worst_case_status is SolverStatus.EXACT,
            feasibility=self.feasibility,
            feasible=self.feasible,
            stability=self.stability,
            rival=None if self.rival is None else _rows(self.rival)[0],
        )


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    """Its rows by name; each value as it stands in its column."""
    columns = [table[name].tolist() for name in table.columns]
    names = [str(name) for name in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
