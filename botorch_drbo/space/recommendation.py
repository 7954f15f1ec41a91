"""A recommendation in the names and units of the problem."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, final

from torch import Tensor

from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.problem.history import Held
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation.model_check import ModelCheck, known
from botorch_drbo.recommendation.moved_contexts import MovedContext
from botorch_drbo.recommendation.promise import LEVEL, Promise
from botorch_drbo.recommendation.stability import Stability
from botorch_drbo.recommendation.summary import summary
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
        worst_case_value: The expectation under the worst distribution found.
        contexts: The contexts of both, a table with their names and the columns
            ``reference_weight`` and ``worst_case_weight``, those with the largest
            worst-case weight first.
        outcome: The name of the outcome.
        worst_case_status: Whether ``worst_case_value`` is the exact worst case of the
            posterior mean on these contexts, or a bound.
        feasibility: The worst probability of meeting the outcome constraints, or None.
        feasible: Whether that reaches the recipe's level, or None.
        stability: The radius from which another decision has a better worst case; None
            for recipes without a radius.
        searched: Over which distributions the worst case was searched, in words.
        num_outcomes: The number of outcomes to which the model was fitted.
        held: The number of trials in which the outcome constraints held, or None.
        promise: The model's distribution of both values, or None.
        level: The level of ``expected_interval`` and ``worst_case_interval``.
        model_check: How well the model predicts outcomes that it has not seen; None if
            there is no closed form.
        beyond: Which share of the worst distribution lies beyond the contexts that have
            an outcome, and how far, in words; empty if it is under 5%.
        moved: The context columns that the decisions predict, which no value here
            allows for.
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
    stability: Stability[pd.DataFrame] | None = None
    searched: str = ""
    num_outcomes: int | None = None
    held: Held | None = None
    promise: Promise | None = None
    level: float = LEVEL
    model_check: ModelCheck | None = None
    beyond: str = ""
    moved: tuple[MovedContext, ...] = ()

    @property
    def expected_interval(self) -> tuple[float, float] | None:
        """The interval of the expected value with probability ``level``, by the model.

        Its lower and upper end in your units; None without a ``promise``.
        """
        return self.promise and self.promise.expected.interval(self.level)

    @property
    def worst_case_interval(self) -> tuple[float, float] | None:
        """The same of the worst-case value."""
        return self.promise and self.promise.worst_case.interval(self.level)

    @property
    def rival(self) -> pd.DataFrame | None:
        """The decision that is better at a larger radius, as a table, or None."""
        return None if self.stability is None else self.stability.rival

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
            stability=_named(found.stability, space),
            searched=found.searched,
            num_outcomes=found.num_outcomes,
            held=found.held,
            promise=found.promise,
            level=found.level,
            beyond=found.beyond,
            moved=found.moved,
            model_check=found.model_check
            and replace(found.model_check, context_names=tuple(space.contexts)),
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
            searched=self.searched,
            known=known(self.num_outcomes, self.model_check),
            held=self.held,
            promise=self.promise,
            level=self.level,
            stability=self.stability,
            rival=None if self.rival is None else _rows(self.rival)[0],
            beyond=self.beyond,
            moved=self.moved,
        )


def _named(
    stability: Stability[Tensor] | None, space: Space
) -> Stability[pd.DataFrame] | None:
    """The same with the rival in names and units."""
    if stability is None:
        return None
    known = {field.name: getattr(stability, field.name) for field in fields(stability)}
    if stability.rival is not None:
        known["rival"] = to_frame(stability.rival.unsqueeze(0), space.decisions)
    return Stability(**known)


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    """Its rows by name; each value as it stands in its column."""
    columns = [table[name].tolist() for name in table.columns]
    names = [str(name) for name in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
