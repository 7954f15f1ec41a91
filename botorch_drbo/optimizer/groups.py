"""Many problems in one table, one in each group of rows: nothing is shared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, final

import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import check_count, did_you_mean
from botorch_drbo.adversaries import Adversary
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.contexts import ContextSet
from botorch_drbo.execution.engine import Executor, in_parallel
from botorch_drbo.execution.processes import Outcome, Raised, Returned
from botorch_drbo.optimizer.decisions import DecidedBy
from botorch_drbo.optimizer.optimizer import Optimizer
from botorch_drbo.optimizer.tables import add_column
from botorch_drbo.optimizer.translation import Table
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recommendation.price import GiveUp
from botorch_drbo.space import NamedRecommendation
from botorch_drbo.space.table import cell, row_names

if TYPE_CHECKING:
    import pandas as pd


NamedLoop: TypeAlias = Optimizer[
    Table, "pd.DataFrame", "pd.DataFrame", NamedRecommendation, "pd.DataFrame"
]
"""What a group needs: the loop of a ``NamedOptimizer``, whose module knows groups."""
OfGroup = TypeVar("OfGroup", bound=NamedLoop)
Group = TypeVar("Group", bound=Hashable)
GroupRows = TypeVar("GroupRows")
_FEWEST = 2  # rows with an outcome: one says nothing of what makes a difference


@dataclass(frozen=True)
class GroupDecisions:
    """What was found for each group."""

    # The groups in the order of the table, in a column with their name, and what was
    # found: one row for each group, or several.
    table: pd.DataFrame
    # The groups for which nothing was found, and why.
    failures: Mapping[Hashable, str] = field(default_factory=dict)


@final
class Groups(Generic[OfGroup]):
    """The problems of a table that has one in each group of rows.

    ``NamedOptimizer.from_dataframe(..., group="sku")`` makes it. Each group has its own
    optimizer, with its own model: ``groups["A12"]`` is that of one. A group whose rows
    are wrong, or that has fewer than two outcomes, fails by itself.
    """

    def __init__(
        self, df: pd.DataFrame, column: str, make: Callable[[pd.DataFrame], OfGroup]
    ) -> None:
        if not hasattr(df, "columns") or not hasattr(df, "loc"):
            raise InputDataError(f"`df` must be a DataFrame, got {type(df).__name__}.")
        if column not in df.columns:
            raise InputDataError(
                f"`df` has no column `{column}`, which `group` names."
                f"{did_you_mean(column, df.columns)}"
            )
        positions: dict[Hashable, list[int]] = {}
        filled = df[column].notna().tolist()
        for i, name in enumerate(df[column].tolist()):
            if not filled[i]:
                raise InputDataError(
                    f"{cell('df', row_names(df), i, column)} is empty. Say to which "
                    "group the row belongs, or leave it out."
                )
            positions.setdefault(name, []).append(i)
        for name in getattr(df[column].dtype, "categories", ()):
            positions.setdefault(name, [])  # a group without rows
        if not positions:
            raise InputDataError("`df` has no row, and so no group.")
        self._column, self._make = column, make
        self._rows = {name: df.iloc[rows] for name, rows in positions.items()}

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._rows)

    def __iter__(self) -> Iterator[Hashable]:
        """Their names, in the order of the table."""
        return iter(self._rows)

    def __getitem__(self, name: Hashable) -> OfGroup:
        """A new optimizer that knows the rows of one group."""
        if name not in self._rows:
            raise InputDataError(
                f"There is no group {name!r} in `{self._column}`."
                f"{did_you_mean(str(name), self._rows)}"
            )
        return self._make(self._rows[name])

    def ask(
        self,
        q: int = 1,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        choose_context: bool = False,
        contexts_per_decision: int = 1,
        replicates: int = 1,
        at_most: Mapping[str, int] | None = None,
        parallel: int = 1,
        executor: Executor | None = None,
        callback: Callable[[Hashable], object] | None = None,
    ) -> GroupDecisions:
        """The next decisions of each group, and contexts that are chosen; see
        ``NamedOptimizer.ask``."""
        check_count(q, "q")
        answer = partial(
            _asked,
            q=q,
            context_set=context_set,
            radius=radius,
            context=context,
            choose_context=choose_context,
            contexts_per_decision=contexts_per_decision,
            replicates=replicates,
            at_most=at_most,
        )
        return self._each(answer, parallel, executor, callback)

    def recommend(
        self,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        against: Adversary | AmbiguitySet | None = None,
        give_up: GiveUp | None = None,
        criterion: str | None = None,
        objective: str | None = None,
        parallel: int = 1,
        executor: Executor | None = None,
        callback: Callable[[Hashable], object] | None = None,
    ) -> GroupDecisions:
        """The decision to implement in each group; see ``NamedOptimizer.recommend``."""
        answer = partial(
            _recommended,
            context_set=context_set,
            radius=radius,
            context=context,
            decided=DecidedBy(against, give_up, criterion, objective),
        )
        return self._each(answer, parallel, executor, callback)

    def _each(
        self,
        answer: Callable[[OfGroup], pd.DataFrame],
        parallel: int,
        executor: Executor | None,
        callback: Callable[[Hashable], object] | None,
    ) -> GroupDecisions:
        import pandas as pd

        check_count(parallel, "parallel")
        outcomes = each_group(
            partial(_answered, self._make, answer),
            self._rows,
            parallel=parallel,
            executor=executor,
            done=lambda name, failed: callback and callback(name),
        )
        tables: list[pd.DataFrame] = []
        for name, outcome in outcomes.items():
            if isinstance(outcome, Returned):
                table = outcome.value
                assert isinstance(table, pd.DataFrame)
                label = self._column + "_" * (self._column in table.columns)
                table.insert(0, label, [name] * len(table))
                tables.append(table)
        empty = pd.DataFrame({self._column: []})
        joined = pd.concat(tables, ignore_index=True) if tables else empty
        return GroupDecisions(joined, reasons(outcomes))


def each_group(
    work: Callable[[GroupRows], object],
    groups: Mapping[Group, GroupRows],
    *,
    parallel: int,
    executor: Executor | None,
    done: Callable[[Group, bool], object],
) -> dict[Group, Outcome]:
    """What comes of the rows of each group; `done` hears of each, and if it failed."""
    if executor is None and parallel > 1:  # they share this machine
        work = partial(_on_one_thread, work)
    found: dict[Group, Outcome] = {}
    for name, outcome in in_parallel(
        work, groups, parallel=parallel, executor=executor
    ):
        found[name] = outcome
        done(name, isinstance(outcome, Raised))
    return {name: found[name] for name in groups}


def reasons(outcomes: Mapping[Group, Outcome]) -> dict[Group, str]:
    """Why groups failed; the kind of an error in what the user wrote does not help."""
    return {
        name: outcome.summary.removeprefix("InputDataError: ")
        for name, outcome in outcomes.items()
        if isinstance(outcome, Raised)
    }


def _on_one_thread(work: Callable[[GroupRows], object], rows: GroupRows) -> object:
    torch.set_num_threads(1)
    return work(rows)


def _answered(
    make: Callable[[pd.DataFrame], OfGroup],
    answer: Callable[[OfGroup], pd.DataFrame],
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """The decisions of one group, in whichever process."""
    opt = make(rows)
    check_outcomes(opt, len(rows))
    return answer(opt)


def check_outcomes(opt: NamedLoop, num_rows: int) -> None:
    """Refuse a group of which a model would learn nothing."""
    num = int(opt.history.iloc[:, -1].notna().sum())
    if num < _FEWEST:
        rows = "no row" if not num_rows else f"{num_rows} row" + "s" * (num_rows > 1)
        raise InputDataError(
            f"The group has {rows} and {num or 'no'} outcome"
            f"{'' if num == 1 else 's'}: at least {_FEWEST} outcomes are needed."
        )


def check_group(column: str, names: Iterable[str | None], what: str) -> None:
    """Refuse to group by a column that the problem has already."""
    if column in names:
        raise InputDataError(
            f"The column `{column}` of {what} is a decision, a context, the outcome or "
            "another column of the problem. Name one that says to which group a row "
            "belongs, or leave it out of the variables."
        )


def _asked(
    opt: NamedLoop,
    q: int,
    context_set: ContextSet | None,
    radius: RoundRadius | None,
    context: Table | None,
    choose_context: bool,
    contexts_per_decision: int,
    replicates: int,
    at_most: Mapping[str, int] | None,
) -> pd.DataFrame:
    import pandas as pd

    found = opt.ask(
        q,
        context_set=context_set,
        radius=radius,
        context=context,
        choose_context=choose_context,
        contexts_per_decision=contexts_per_decision,
        replicates=replicates,
        at_most=at_most,
    )
    return pd.concat(found, axis=1) if isinstance(found, tuple) else found


def _recommended(
    opt: NamedLoop,
    context_set: ContextSet | None,
    radius: RoundRadius | None,
    context: Table | None,
    decided: DecidedBy,
) -> pd.DataFrame:
    best = opt.recommend(
        context_set=context_set,
        radius=radius,
        context=context,
        against=decided.against,
        give_up=decided.give_up,
        criterion=decided.criterion,
        objective=decided.objective,
    )
    table = best.x.copy()
    add_column(table, "expected_value", [best.expected_value])
    add_column(table, "worst_case_value", [best.worst_case_value])
    return table
