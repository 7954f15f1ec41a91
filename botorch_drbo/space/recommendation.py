"""A recommendation in the names and units of the problem."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, final

from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation.recommendation import Assessment
from botorch_drbo.space.space import Space
from botorch_drbo.space.table import to_frame

if TYPE_CHECKING:
    import pandas as pd

_REFERENCE, _WORST = "reference_weight", "worst_case_weight"


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NamedRecommendation(Assessment["pd.DataFrame"]):
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
        certainty: The model's distribution of both values, ``promise``, or None, and
            how well it predicts outcomes that it has not seen, ``model_check``, or
            None; made when one of them, or an interval, is first read.
        level: The level of ``expected_interval`` and ``worst_case_interval``.
        beyond: Which share of the worst distribution lies beyond the contexts that have
            an outcome, and how far, in words; empty if it is under 5%.
        moved: The context columns that the decisions predict, which no value here
            allows for.
        price: What of the expectation is given up, and what that buys, or None.
        worlds: What is expected in each distribution of a danger, the worst first.
        direction: Where the worst distribution moves the mean of the contexts.
        decided_for: What is maximised, where it was said in words.
    """

    contexts: pd.DataFrame
    outcome: str

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
        shared = {
            field.name: getattr(found, field.name) for field in fields(Assessment)
        }
        named = {
            "x": to_frame(found.x.unsqueeze(0), space.decisions),
            "stability": found.stability
            and replace(
                found.stability,
                rival=None
                if found.stability.rival is None
                else to_frame(found.stability.rival.unsqueeze(0), space.decisions),
            ),
            "price": found.price
            and replace(
                found.price,
                best=to_frame(found.price.best.unsqueeze(0), space.decisions),
            ),
        }
        best = cls(contexts=contexts, outcome=space.outcome, **{**shared, **named})
        return best.with_check(
            lambda check: replace(
                check,
                context_names=tuple(space.contexts),
                outcome_name=space.outcome,
            )
        )

    def _values(self, x: pd.DataFrame) -> dict[str, object]:
        return x.to_dict("records")[0]

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return self._headline(self._values(self.x))

    def __str__(self) -> str:
        """Decision, expected and worst-case value, and the contexts that hurt most."""
        return self._summary(
            self.outcome,
            self.contexts.drop(columns=[_REFERENCE, _WORST]).to_dict("records"),
            self.contexts[_REFERENCE].tolist(),
            self.contexts[_WORST].tolist(),
        )
