"""The same loop for variables that have names, units and kinds: tables in and out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast, final, overload

from botorch.exceptions.errors import InputDataError

from botorch_drbo.optimizer.configuration import Configuration, Scope
from botorch_drbo.optimizer.events import as_algorithm
from botorch_drbo.optimizer.groups import Groups, check_group
from botorch_drbo.optimizer.optimizer import Optimizer, own_arguments
from botorch_drbo.optimizer.robust import RobustOptimizer
from botorch_drbo.optimizer.run import Run, begun, write_journal
from botorch_drbo.optimizer.tables import Limits, read_events
from botorch_drbo.optimizer.translation import Table, Tables
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.registry import DEFAULT
from botorch_drbo.space import NamedRecommendation, Space, Variable
from botorch_drbo.space.constraints import Constraint

if TYPE_CHECKING:
    import pandas as pd


@final
class NamedOptimizer(
    Optimizer[
        Table, "pd.DataFrame", "pd.DataFrame", NamedRecommendation, "pd.DataFrame"
    ]
):
    r"""A ``RobustOptimizer`` with the names and units of a ``Space``.

    Methods return DataFrames. They accept DataFrames, dictionaries of columns (or of
    one row), or tensors with the columns in order, where a category is its index. The
    method of the same name of ``RobustOptimizer`` documents what each method does.
    After some rounds ``print(recommend())`` shows the decision to implement, with
    intervals.

    Args:
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``, or
            a recipe.
        space: The decisions and contexts with their kinds, and the constraints.
        seed: Determines all random draws.
        journal: A new file for the run, or None.
        maximize: False to minimise (minimize) the outcome.
        num_initial: Size of the initial design; None for ``2 * (d_x + 1)``.
        initial_design: ``"sobol"`` or ``"sobol_joint"``.
        perturbation: True if the context is an execution error.
        scope: The contexts that the decision must serve, in place of those that were
            seen: a table with a row for each and perhaps a column ``weight``, a
            ``ContextSet``, or ``"uniform"`` for every combination of their levels. None
            for the contexts seen.
        options: Options of the named recipe.

    Raises:
        InputDataError: An unknown algorithm or option, a value outside its range, or a
            journal that exists.
        UnsupportedError: An algorithm that does not support such a space.

    Example:
        >>> from botorch_drbo import Category, Integer, NamedOptimizer, Space
        >>> space = Space(
        ...     {"stock": Integer(0, 40)}, {"weather": Category(["sun", "rain"])}
        ... )
        >>> opt = NamedOptimizer("wdrbo_exact", space)
        >>> opt.ask()
           stock
        0     21
        >>> opt.tell({"stock": 21}, {"weather": "rain"}, 3.5)
        >>> opt.history
               stock weather  outcome
        trial
        0         21    rain      3.5
    """

    _has_names = True

    def __init__(
        self,
        algorithm: str | Recipe,
        space: Space,
        *,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        maximize: bool = True,
        num_initial: int | None = None,
        initial_design: str = "sobol",
        perturbation: bool = False,
        scope: Scope | None = None,
        **options: object,
    ) -> None:
        if not isinstance(space, Space):
            raise InputDataError(
                f"`space` must be a Space, got {type(space).__name__}. For bounds that "
                "are tensors there is RobustOptimizer."
            )
        configuration = Configuration(
            as_algorithm(algorithm, options, own_arguments(NamedOptimizer)),
            space,
            None,
            seed=seed,
            maximize=maximize,
            num_initial=num_initial,
            initial_design=initial_design,
            perturbation=perturbation,
            scope=scope,
        )
        self._use(begun(configuration, journal))

    def _use(self, run: Run) -> None:
        if run.configuration.named is None:
            raise InputDataError("The run has no named variables.")
        self._run, self._translation = run, Tables(run.configuration.named)

    @property
    def named_space(self) -> Space:
        """The space of named variables."""
        return cast(Space, self._run.configuration.named)

    @property
    def tensors(self) -> RobustOptimizer:
        """The same run in tensors: both optimizers share their observations."""
        return RobustOptimizer.of_run(self._run)

    @overload
    @classmethod
    def from_dataframe(
        cls,
        df: pd.DataFrame,
        *,
        decisions: Mapping[str, Variable | tuple[float, float]],
        contexts: Mapping[str, Variable | tuple[float, float]],
        outcome: str,
        algorithm: str | Recipe | None = None,
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        group: None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
        scope: Scope | None = None,
        **options: object,
    ) -> NamedOptimizer: ...

    @overload
    @classmethod
    def from_dataframe(
        cls,
        df: pd.DataFrame,
        *,
        decisions: Mapping[str, Variable | tuple[float, float]],
        contexts: Mapping[str, Variable | tuple[float, float]],
        outcome: str,
        group: str,
        algorithm: str | Recipe | None = None,
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
        scope: Scope | None = None,
        **options: object,
    ) -> Groups[NamedOptimizer]: ...

    @classmethod
    def from_dataframe(
        cls,
        df: pd.DataFrame,
        *,
        decisions: Mapping[str, Variable | tuple[float, float]],
        contexts: Mapping[str, Variable | tuple[float, float]],
        outcome: str,
        algorithm: str | Recipe | None = None,
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        group: str | None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
        scope: Scope | None = None,
        **options: object,
    ) -> NamedOptimizer | Groups[NamedOptimizer]:
        r"""Start from a table of previous trials.

        Rows are told in the order of the table: the last one has the newest context,
        which matters for ``half_life``. A row without an outcome is pending; its
        context may be given, or be empty if it is not known yet. Other columns are
        ignored.

        ``outcome_constraints`` names columns that are measured like the outcome, each
        with a lower and an upper limit, one of which may be None:
        ``{"runoff": (None, 9), "ph": (5, 7)}``. They are told as in ``tell``, as the
        margin that was left, and each has its own model; two limits of a column are two
        constraints. They may be empty in a row, whose outcome is then still used. A row
        in which only some of them are measured gives a warning, and only its outcome is
        used.

        ``status`` names a column that contains ``failed`` in a row whose outcome will
        never come: its context and its measured limits are used, and the decision is
        not proposed again as long as there are others. ``withdrawn`` omits a row, and
        ``pending`` is the same as an empty cell. In a row with an outcome any other
        word is ignored, so the result of ``table()`` can be read.

        Args:
            df: The trials, one in each row; it may be empty.
            decisions: The columns that you choose, as for ``Space``.
            contexts: The columns that you observe but cannot choose, as for ``Space``.
            outcome: The column of the outcome.
            algorithm: The name of a recipe, or a recipe. None for the default: ``erbo``
                learns for the mean, and ``recommend`` decides against all distributions
                within one standard deviation of each context
                (``against=WassersteinBall(radius="sd")``), giving up at most a tenth of
                what there is to gain (``give_up=0.1``), unless other options are given;
                ``wdrbo_exact`` with a ``radius``, and the expectation alone with a
                ``scope``.
            constraints: Constraints on decisions, as for ``Space``. Rows may violate
                them.
            outcome_constraints: The limits of measured columns, ``(lower, upper)``.
            status: The column that says which trials have failed; None for none.
            group: The column that says to which group a row belongs, where each group
                is a problem of its own, such as a product; None if all rows are one.
            maximize: False to minimise (minimize) the outcome.
            seed: Determines all random draws.
            journal: A new file for the run, or None; not with ``group``.
            num_initial: Size of the initial design; the rows of the table count.
            perturbation: True if the context is an execution error.
            scope: The contexts that the decision must serve, as for the class.
            options: Options of the named recipe.

        Returns:
            The optimizer, after all rows have been told; with ``group`` one for each
            group, whose ``ask`` and ``recommend`` serve them all.

        Raises:
            InputDataError: A missing column, or a value that is missing or that its
                variable cannot take; the message names the row and the column.

        Example:
            >>> from botorch_drbo import NamedOptimizer
            >>> import pandas as pd
            >>> df = pd.DataFrame(
            ...     {"stock": [20.0, 60.0], "demand": [50.0, 30.0], "profit": [1, 3]}
            ... )
            >>> opt = NamedOptimizer.from_dataframe(
            ...     df,
            ...     decisions={"stock": (10, 90)},
            ...     contexts={"demand": (0, 100)},
            ...     outcome="profit",
            ... )
            >>> opt.ask().columns.tolist()
            ['stock']
        """
        if group is not None:
            if journal is not None:
                raise InputDataError(
                    "Got `journal` and `group`: a journal is of one run, and each "
                    "group is one. Leave `journal` out; or `group`, and make an "
                    "optimizer with a journal of its own of the rows of each group."
                )
            make = partial(
                cls.from_dataframe,
                decisions=decisions,
                contexts=contexts,
                outcome=outcome,
                algorithm=algorithm,
                constraints=constraints,
                outcome_constraints=outcome_constraints,
                status=status,
                maximize=maximize,
                seed=seed,
                num_initial=num_initial,
                perturbation=perturbation,
                scope=scope,
                **options,
            )
            measured = (outcome, status, *(outcome_constraints or ()))
            check_group(group, (*decisions, *contexts, *measured), "`group`")
            groups = Groups[NamedOptimizer](df, group, make)
            make(df[:0])  # what is wrong with all of them is said at once
            return groups
        feared = {"against", "give_up", "radius", "adversary"} & options.keys()
        if algorithm is None and scope is not None and not feared:
            algorithm = DEFAULT  # who says which contexts count fears no others
        space = Space(decisions, contexts, outcome=outcome, constraints=constraints)
        events = read_events(df, space, outcome_constraints, status)
        configuration = Configuration(
            as_algorithm(algorithm, options, own_arguments(NamedOptimizer)),
            space,
            None,
            seed=seed,
            maximize=maximize,
            num_initial=num_initial,
            perturbation=perturbation,
            scope=scope,
        )
        run = Run(configuration)
        for event in events:
            run.record(event)
        write_journal(run, journal)
        return cls.of_run(run)
