"""The same loop for variables that have names, units and kinds: tables in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, final, overload

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate.profile import RobustnessProfile
from botorch_drbo.codec.objects import Json
from botorch_drbo.contexts import ContextSet
from botorch_drbo.execution.engine import Executor
from botorch_drbo.optimizer.checks import as_algorithm
from botorch_drbo.optimizer.comparison import METHODS, Methods, Shift
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.evaluation import Names
from botorch_drbo.optimizer.evaluations import Evaluations
from botorch_drbo.optimizer.groups import Groups, check_group
from botorch_drbo.optimizer.restore import begun, of_state, resumed, write_journal
from botorch_drbo.optimizer.robust import RobustOptimizer, own_arguments
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.tables import Outcomes, Table, Tables
from botorch_drbo.optimizer.trial_rows import Limits, read_events
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.policies.objective import ObjectiveMaker
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.own_functions import OwnFunctions
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.space import NamedRecommendation, Space, Variable
from botorch_drbo.space.constraints import Constraint
from botorch_drbo.surrogate.given_model import ModelMaker

if TYPE_CHECKING:
    import pandas as pd


@final
class NamedOptimizer:
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
        )
        self._use(begun(configuration, journal), space)

    def _use(self, run: Run, space: Space) -> None:
        self._run, self._tables = run, Tables(space)
        self._tensors = RobustOptimizer.of_run(run)

    @classmethod
    def _of_run(cls, run: Run) -> NamedOptimizer:
        """The optimizer that continues a run of named variables."""
        optimizer, space = cls.__new__(cls), run.configuration.named
        if space is None:
            raise InputDataError("The run has no named variables.")
        optimizer._use(run, space)
        return optimizer

    def __repr__(self) -> str:
        """Name the recipe and count the trials."""
        return repr(self._tensors).replace("RobustOptimizer", "NamedOptimizer", 1)

    @property
    def algorithm(self) -> Recipe:
        """The recipe."""
        return self._tensors.algorithm

    @property
    def named_space(self) -> Space:
        """The space of named variables."""
        return self._tables.space

    @property
    def space(self) -> SearchSpace:
        """The boxes of decisions and contexts, as recipes see them."""
        return self._tensors.space

    @property
    def tensors(self) -> RobustOptimizer:
        """The same run in tensors: both optimizers share their observations."""
        return self._tensors

    @property
    def maximize(self) -> bool:
        """Whether high outcomes are good."""
        return self._tensors.maximize

    @property
    def pending(self) -> pd.DataFrame:
        """Decisions without an outcome yet, oldest first."""
        return self._tables.decisions(self._tensors.pending)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, by number; their tensors have the units of the model."""
        return self._tensors.trials

    @property
    def history(self) -> pd.DataFrame:
        """The observations so far, in your sign.

        A row for each trial whose context is known, labelled by its number; an outcome
        that is not known yet, or will never be, is NaN.
        """
        return self._tables.history(self._run.ledger.trials)

    def table(self) -> pd.DataFrame:
        """All trials, in your names and units, with their status.

        Returns:
            As ``RobustOptimizer.table``, with your names. An additional column whose
            name is already that of a variable gets an underscore.
        """
        return self._tables.all_trials(self._run.ledger.trials)

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Table | None = None,
        *,
        actions: Table | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        choose_context: Literal[False] = False,
    ) -> pd.DataFrame: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Table | None = None,
        *,
        actions: Table | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        choose_context: Literal[True],
    ) -> tuple[pd.DataFrame, pd.DataFrame]: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Table | None = None,
        *,
        actions: Table | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        choose_context: bool,
    ) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]: ...

    def ask(
        self,
        q: int = 1,
        candidates: Table | None = None,
        *,
        actions: Table | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        choose_context: bool = False,
    ) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
        r"""Propose the next decisions; see ``RobustOptimizer.ask``.

        Args:
            q: The number of decisions.
            candidates: The decisions to choose from; None for all.
            actions: The round's action set, instead of ``candidates``.
            context_set: The distribution of this round's context, for example from
                ``Space.context_set``.
            radius: The radius of this round's ambiguity set: a number, or for a
                Wasserstein ball ``"spread"``, ``"sd"``, or a radius for each column
                that may move, in your units, such as ``{"temp": 6, "weather": 0.1}``.
            context: What is known about this round's context, by name.
            choose_context: Whether to choose the context as well.

        Returns:
            Decisions, a table of ``q`` rows; with ``choose_context``, a pair of this
            table and a table of their contexts.

        Raises:
            InputDataError: As for ``RobustOptimizer.ask``, or a value that its variable
                cannot take.
            UnsupportedError: The algorithm cannot use what is known.
        """
        tables = self._tables
        lists = {"candidates": candidates, "actions": actions}
        found = self._tensors.ask(
            q,
            **{
                name: None if given is None else tables.read_decisions(given, name)
                for name, given in lists.items()
            },
            context_set=_checked(context_set),
            radius=radius,
            context=self._known(context),
            choose_context=choose_context,
        )
        if isinstance(found, Tensor):
            return tables.decisions(found)
        return tables.decisions(found[0]), tables.contexts(found[1])

    def preview(
        self,
        q: int = 1,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
    ) -> pd.DataFrame:
        r"""What ``ask`` would propose now; see ``RobustOptimizer.preview``.

        Args:
            q: How many.
            context_set: The distribution of this round's context.
            radius: That of this round's ambiguity set, as for ``ask``.

        Returns:
            Decisions, a table of ``q`` rows. Nothing is recorded.

        Raises:
            InputDataError: As ``ask``.
            UnsupportedError: As ``ask``.
        """
        found = self._tensors.preview(
            q, context_set=_checked(context_set), radius=radius
        )
        return self._tables.decisions(found)

    def design_contexts(self, x: Table) -> pd.DataFrame:
        r"""The contexts in which a joint design evaluates its decisions.

        Args:
            x: Decisions that ``ask`` has returned.

        Returns:
            A context for each decision, empty where the context is not chosen.
        """
        found = self._tensors.design_contexts(self._tables.read_decisions(x, "x"))
        return self._tables.contexts(found)

    def tell(
        self,
        x: Table,
        c: Table | None,
        y: Outcomes | None = None,
        *,
        y_variance: Outcomes | None = None,
        constraints: Outcomes | None = None,
        failed: bool = False,
        closes_pending: bool = True,
        error: str | None = None,
    ) -> None:
        r"""Report what happened; see ``RobustOptimizer.tell``.

        Args:
            x: The executed decisions.
            c: The contexts that occurred, a row for each; None if the trials failed
                before a context was seen.
            y: The outcomes, a number for each; None if not known yet.
            y_variance: The variances of their noise; None if they are not known.
            constraints: Values of the outcome constraints, a column for each.
            failed: True if these trials will never have an outcome.
            closes_pending: False for data from elsewhere, which no ``ask`` proposed.
            error: Why the trials have failed, kept in ``trials``; None if not known.

        Raises:
            InputDataError: As for ``RobustOptimizer.tell``, or a value that its
                variable cannot take; the message names the row and the column.
            BotorchTensorDimensionError: Columns that do not match each other.
            UnsupportedError: The algorithm would ignore what was told.
        """
        tables = self._tables
        self._tensors.tell(
            tables.read_decisions(x, "x"),
            None if c is None else tables.read_contexts(c, "c"),
            tables.read_outcomes(y, "y"),
            y_variance=tables.read_outcomes(y_variance, "y_variance"),
            constraints=tables.read_constraints(constraints),
            failed=failed,
            closes_pending=closes_pending,
            error=error,
        )

    def run(
        self,
        evaluate: Callable[..., object],
        num: int | None = None,
        *,
        total: int | None = None,
        parallel: int = 1,
        executor: Executor | None = None,
        choose_context: bool = False,
        retries: int = 3,
        callback: Callable[[Trial], object] | None = None,
        progress: bool = False,
    ) -> None:
        r"""Evaluate decisions in parallel; see ``RobustOptimizer.run``.

        Args:
            evaluate: Called with one decision, a dictionary; with ``choose_context``
                with a decision and a context. It returns ``(c, y)`` or
                ``(c, y, constraints)``, the context as a dictionary; of a chosen
                context also ``y`` alone.
            num: How many evaluations end in this call, completed or failed.
            total: Instead of ``num``, how many trials of the run are over in the end,
                completed or failed, with those told before. Nothing is done if there
                are as many already.
            parallel: How many evaluations are under way at once.
            executor: What evaluates; None for processes of this machine.
            choose_context: Whether the contexts are chosen too, as in ``ask``.
            retries: How often a decision is submitted again whose worker died.
            callback: Called with each ``Trial`` that is over. An error in it ends the
                call as Ctrl-C does.
            progress: Whether to show a bar; needs ``rich``.

        Raises:
            InputDataError: A wrong argument; a function that cannot be sent to a
                process; an executor that is closed or broken; no worker that ever
                answers; ten failures in a row; pending decisions with a chosen context
                in a run without, or the other way around; or as ``ask``. No outcome is
                lost.
            UnsupportedError: As ``ask``, or constraints that the algorithm ignores.

        Example:
            >>> from botorch_drbo import NamedOptimizer, Space
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> opt = NamedOptimizer("random", Space({"x": (0, 1)}, {"c": (0, 1)}))
            >>> def evaluate(x):
            ...     return {"c": 0.5}, x["x"] - 0.5
            >>> with ThreadPoolExecutor() as threads:
            ...     opt.run(evaluate, num=4, parallel=2, executor=threads)
            >>> opt
            NamedOptimizer('random', outcomes=4, pending=0)
        """
        Evaluations(
            evaluate=evaluate,
            num=num,
            total=total,
            parallel=parallel,
            executor=executor,
            choose_context=choose_context,
            retries=retries,
            callback=callback,
            progress=progress,
        ).carry_out(self._run, Names(self._tables))

    def withdraw(self, trial: int) -> None:
        r"""Remove what was told about a trial, or cancel a proposed decision.

        Args:
            trial: Its number: the label of its row in ``table()``.

        Raises:
            InputDataError: There is no such trial, or it is withdrawn already.
        """
        self._tensors.withdraw(trial)

    def recommend(
        self,
        candidates: Table | None = None,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
        level: float = LEVEL,
    ) -> NamedRecommendation:
        r"""The decision to implement now; see ``RobustOptimizer.recommend``.

        Args:
            candidates: The decisions to choose from; None for all.
            context_set: The distribution of the context.
            radius: The radius of the ambiguity set, as for ``ask``.
            context: What is known about the context, by name.
            level: The level of the intervals, a probability.

        Returns:
            The decision and its expected and worst-case values, in your units.

        Raises:
            InputDataError: There is no outcome yet, or a value is invalid.
            UnsupportedError: The algorithm cannot use what is known.
        """
        if candidates is not None:
            candidates = self._tables.read_decisions(candidates, "candidates")
        found = self._tensors.recommend(
            candidates,
            context_set=_checked(context_set),
            radius=radius,
            context=self._known(context),
            level=level,
        )
        return NamedRecommendation.of(found, self.named_space)

    def policy(
        self,
        contexts: Table,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
    ) -> pd.DataFrame:
        r"""The decision to implement in each of many contexts.

        Args:
            contexts: A table with the columns that are known.
            context_set: The distribution of the unknown columns.
            radius: The radius of the ambiguity set, as for ``ask``.

        Returns:
            A table of the contexts and the decisions.

        Raises:
            InputDataError: There is no outcome yet, or a value is wrong.
            UnsupportedError: The algorithm's decisions do not depend on the context.
        """
        known = self._tables.read_known(contexts, "contexts")
        found = self._tensors.policy(
            known, context_set=_checked(context_set), radius=radius
        )
        return self._tables.policy(known, found)

    @property
    def model(self) -> Model:
        """A copy of the model that recommendations use, in the units of ``tensors``."""
        return self._tensors.model

    def predict(self, x: Table, c: Table) -> pd.DataFrame:
        r"""Mean and standard deviation of the outcome under the model, without noise.

        Args:
            x: Decisions.
            c: Contexts, one row for each decision, or one row for all.

        Returns:
            A table of the decisions and contexts, with the mean of the outcome and its
            standard deviation in the columns ``mean`` and ``sd``, in your sign and
            units. A column whose name is already that of a variable gets an underscore.

        Raises:
            InputDataError: There is no outcome yet, or a value is wrong.
            BotorchTensorDimensionError: Different numbers of rows.

        Example:
            >>> from botorch_drbo import NamedOptimizer, Space
            >>> opt = NamedOptimizer("erbo", Space({"x": (0, 1)}, {"c": (0, 1)}))
            >>> opt.tell({"x": [0.0, 1.0]}, {"c": [0.2, 0.4]}, [1.0, 2.0])
            >>> opt.predict({"x": 0.5}, {"c": [0.0, 1.0]}).columns.tolist()
            ['x', 'c', 'mean', 'sd']
        """
        tables = self._tables
        decisions = tables.read_decisions(x, "x")
        contexts = tables.read_contexts(c, "c")
        moments = self._tensors.predict(decisions, contexts)
        return tables.predictions(decisions, contexts, *moments)

    def compare(
        self,
        methods: Methods = METHODS,
        *,
        shifts: Mapping[str, Shift | pd.DataFrame] | Mapping[str, float] | None = None,
        radii: Sequence[RoundRadius] = (),
        clip: float = 0.0,
        level: float = LEVEL,
        context_set: ContextSet | None = None,
    ) -> Comparison:
        r"""The expected outcomes of several methods; see ``RobustOptimizer.compare``.

        Args:
            methods: Names of recipes, or recipes; the others are compared with the
                first.
            shifts: Possible changes of the distribution, by name, in your units:
                ``{"demand falls": {"demand": -30}}``; or the new contexts, as a
                ``ContextSet`` or a DataFrame whose rows are equally likely. A single
                shift needs no name: ``{"demand": -30}``.
            radii: Adds the worst distribution within each radius, such as
                ``{"demand": 30}``. The methods decide with their own radius.
            clip: The share of the weight that a shift may move beyond the bounds.
            level: The level of the intervals, a probability.
            context_set: The distribution without a shift.

        Returns:
            The comparison, with decisions in your names and units.

        Raises:
            InputDataError: As for ``RobustOptimizer.compare``.
            UnsupportedError: As for ``RobustOptimizer.compare``.
        """
        if isinstance(shifts, Mapping):
            known = {}
            for name, shift in shifts.items():
                is_table = not isinstance(shift, (Mapping, ContextSet)) and hasattr(
                    shift, "columns"
                )
                known[name] = self.named_space.context_set(shift) if is_table else shift
            shifts = known
        found = self._tensors.compare(
            methods,
            shifts=shifts,
            radii=radii,
            clip=clip,
            level=level,
            context_set=_checked(context_set),
        )
        decided = self._tables.decisions(found.decisions)
        columns = {str(name): decided[name].tolist() for name in decided.columns}
        return replace(found, columns=columns, outcome=self.named_space.outcome)

    def check(self, *, context_set: ContextSet | None = None) -> ModelCheck:
        r"""Check how far the model can be trusted; see ``RobustOptimizer.check``.

        Args:
            context_set: The contexts for which the model will be used.

        Returns:
            The check, in your sign and units; ``print`` shows it.

        Raises:
            InputDataError: There is no outcome yet, or a value is wrong.
            UnsupportedError: A model of your own without a closed form.
        """
        check = self._tensors.check(context_set=_checked(context_set))
        return replace(check, context_names=tuple(self.named_space.contexts))

    def robustness_profile(
        self,
        x: Table,
        other: Table | None = None,
        *,
        target: float | None = None,
        radii: Tensor | None = None,
        ambiguity_set: AmbiguitySet | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Table | None = None,
    ) -> RobustnessProfile:
        r"""The worst-case value of a decision as a function of the radius.

        Args:
            x: The decision, one row: for example ``opt.recommend().x``.
            other: A decision to compare with.
            target: A value that the decision should reach, in your sign.
            radii: The radii, ``k``, ascending; with a radius by column, multiples of
                it.
            ambiguity_set: A set around the same contexts, instead of the recipe's own.
            context_set: The distribution of this round's context.
            radius: The radius that the default of ``radii`` uses.
            context: What is known about this round's context, by name.

        Returns:
            As ``RobustOptimizer.robustness_profile``.

        Raises:
            InputDataError: There is no outcome yet, or a value is wrong.
            UnsupportedError: A recipe without a model of its own.
        """
        tables = self._tables
        return self._tensors.robustness_profile(
            tables.read_decisions(x, "x"),
            None if other is None else tables.read_decisions(other, "other"),
            target=target,
            radii=radii,
            ambiguity_set=ambiguity_set,
            context_set=_checked(context_set),
            radius=radius,
            context=self._known(context),
        )

    def state_dict(self) -> dict[str, Json]:
        """Configuration and events in plain JSON types; see ``from_state_dict``."""
        return self._tensors.state_dict()

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, object],
        *,
        journal: str | os.PathLike[str] | None = None,
        space: Space | None = None,
        model: ModelMaker | None = None,
        objective: ObjectiveMaker | None = None,
        device: torch.device | str = "cpu",
    ) -> NamedOptimizer:
        r"""Rebuild an optimizer that proposes the same decisions.

        Args:
            state: From ``state_dict``, also after a round trip through JSON.
            journal: A new file for the run, or None.
            space: The run's space, as for ``resume``.
            model: The function that makes the model, if the run had one.
            objective: The function that makes the objective, if the run had one.
            device: Where to compute.

        Returns:
            The optimizer.

        Raises:
            InputDataError: Not a state, a different version, damaged, or without names.
        """
        run = of_state(
            state,
            has_names=True,
            journal=journal,
            space=space,
            functions=OwnFunctions(model=model, objective=objective),
            device=device,
        )
        return cls._of_run(run)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        space: Space | None = None,
        model: ModelMaker | None = None,
        objective: ObjectiveMaker | None = None,
        device: torch.device | str = "cpu",
    ) -> NamedOptimizer:
        r"""Continue the run of a journal; further events are appended to it.

        Args:
            path: The journal.
            space: If given, it must equal that of the journal: a check that the journal
                belongs to this problem. It is required if a constraint is a function,
                which a journal cannot store: its name is checked, not what it computes.
            model: The function that makes the model, if the run had one.
            objective: The function that makes the objective, if the run had one.
            device: Where to compute.

        Returns:
            The optimizer, with every observation of the run.

        Raises:
            InputDataError: As ``RobustOptimizer.resume``, or a journal without names.
            OSError: The file cannot be read.
        """
        run = resumed(
            path,
            has_names=True,
            space=space,
            functions=OwnFunctions(model=model, objective=objective),
            device=device,
        )
        return cls._of_run(run)

    @overload
    @classmethod
    def from_dataframe(
        cls,
        df: pd.DataFrame,
        *,
        decisions: Mapping[str, Variable | tuple[float, float]],
        contexts: Mapping[str, Variable | tuple[float, float]],
        outcome: str,
        algorithm: str | Recipe = "wdrbo_exact",
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        group: None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
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
        algorithm: str | Recipe = "wdrbo_exact",
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
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
        algorithm: str | Recipe = "wdrbo_exact",
        constraints: Sequence[Constraint] = (),
        outcome_constraints: Limits | None = None,
        status: str | None = None,
        group: str | None = None,
        maximize: bool = True,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        perturbation: bool = False,
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
            algorithm: The name of a recipe, or a recipe.
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
                    "group is one. Leave one out."
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
                **options,
            )
            measured = (outcome, status, *(outcome_constraints or ()))
            check_group(group, (*decisions, *contexts, *measured), "`group`")
            groups = Groups[NamedOptimizer](df, group, make)
            make(df[:0])  # what is wrong with all of them is said at once
            return groups
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
        )
        run = Run(configuration)
        for event in events:
            run.record(event)
        write_journal(run, journal)
        return cls._of_run(run)

    def close(self) -> None:
        """Close the journal and unlock it; the optimizer can no longer ask or tell."""
        self._tensors.close()

    def __enter__(self) -> NamedOptimizer:
        """Use as ``with NamedOptimizer(...) as opt``; it closes the journal."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.close()

    def _known(self, context: Table | None) -> Tensor | None:
        """What is known of a context, NaN in the other columns."""
        if context is None:
            return None
        return self._tables.read_known(context, "context")


def _checked(context_set: ContextSet | None) -> ContextSet | None:
    """Refuse a table: its weights are not known."""
    if context_set is None or isinstance(context_set, ContextSet):
        return context_set
    raise InputDataError(
        f"`context_set` must be a ContextSet, got {type(context_set).__name__}. Make "
        "one of the table: `space.context_set(table, weights=...)`."
    )
