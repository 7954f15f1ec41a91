"""An optimizer: ask for a decision, tell what happened, recommend."""

from __future__ import annotations

import copy
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, Self, overload

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_count, check_flag
from botorch_drbo.adversaries import Adversary
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.codec.objects import Json
from botorch_drbo.contexts import ContextSet
from botorch_drbo.execution.engine import Executor
from botorch_drbo.optimizer.comparison import METHODS, Methods, Shifts, compared
from botorch_drbo.optimizer.configuration import Scope, read_scope
from botorch_drbo.optimizer.decisions import (
    DecidedBy,
    checked,
    design_of,
    fitted,
    next_decisions,
    predicted,
    priced,
    profiled,
    recommended,
)
from botorch_drbo.optimizer.evaluations import Evaluations
from botorch_drbo.optimizer.events import Ask, Tell, Withdraw, as_rows
from botorch_drbo.optimizer.journal import environment, write_state
from botorch_drbo.optimizer.run import Purpose, Run, of_state, resumed
from botorch_drbo.optimizer.translation import (
    Advice,
    Given,
    Observed,
    Outcomes,
    Predicted,
    Rows,
    Translation,
)
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.optimizer.wells import Plate
from botorch_drbo.policies.base import ObjectiveMaker
from botorch_drbo.problem import Round, SearchSpace
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.options import OwnFunctions
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.recommendation.price import GiveUp
from botorch_drbo.recommendation.price_curve import PriceCurve
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.space import Space
from botorch_drbo.surrogate.by_name import ModelMaker

if TYPE_CHECKING:
    import pandas as pd


class Optimizer(ABC, Generic[Given, Rows, Observed, Advice, Predicted]):
    r"""A run, spoken of in tensors or in tables.

    What a class says of tensors (``m x d_x``) holds for the tables of named variables
    too: they may be DataFrames, dictionaries of columns (or of one row), or tensors
    with the columns in order, where a category is its index.
    """

    _has_names: ClassVar[bool]
    """Whether the variables have names."""
    _run: Run
    _translation: Translation[Given, Rows, Observed, Advice, Predicted]

    @classmethod
    def of_run(cls, run: Run) -> Self:
        """The optimizer that continues a run."""
        optimizer = cls.__new__(cls)
        optimizer._use(run)
        return optimizer

    @abstractmethod
    def _use(self, run: Run) -> None:
        """Take up a run, and say how it is spoken of."""

    def __repr__(self) -> str:
        """Name the recipe and count the trials."""
        ledger = self._run.ledger
        return (
            f"{type(self).__name__}({self.algorithm.name!r}, "
            f"outcomes={len(ledger.standing.complete)}, pending={len(ledger.pending)})"
        )

    @property
    def algorithm(self) -> Recipe:
        """The recipe."""
        return self._run.configuration.algorithm

    @property
    def space(self) -> SearchSpace:
        """The boxes of decisions and contexts, as recipes see them."""
        return self._run.configuration.space

    @property
    def maximize(self) -> bool:
        """Whether high outcomes are good."""
        return self._run.configuration.maximize

    @property
    def pending(self) -> Rows:
        """Decisions without an outcome yet, ``m x d_x`` or a table, oldest first."""
        return self._translation.decisions(self._run.ledger.X_pending.clone())

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, also failed and withdrawn ones, by number: ``trials[k]`` is k.

        Their tensors have the units of the model: see ``SearchSpace``. ``table`` has
        your names and units.
        """
        return copy.deepcopy(tuple(self._run.ledger.trials))

    @property
    def history(self) -> Observed:
        """The observations so far, in your sign.

        Of named variables a table, with a row for each trial whose context is known,
        labelled by its number; an outcome that is not known yet, or will never be, is
        NaN.
        """
        return self._translation.history(self._run.ledger)

    def table(self) -> pd.DataFrame:
        r"""All trials as a table, with their status.

        Returns:
            A row for each trial, labelled by its number, including failed and withdrawn
            trials: its decision ``x1, x2, ...``, its context ``c1, c2, ...``, its
            outcome, the variance of its noise and the measured constraints if any were
            told (``constraint1, ...``), and its status: "pending", "complete", "failed"
            or "withdrawn" (with the values that had been told). Missing values are NaN.
            Of named variables it has their names and units; an additional column whose
            name is already that of a variable gets an underscore.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("random", unit, unit)
            >>> asked = opt.ask()
            >>> x, c = (torch.tensor([[v]], dtype=torch.double) for v in (0.25, 0.5))
            >>> opt.tell(x, c, 3.0, constraints=0.1, closes_pending=False)
            >>> opt.table().drop(columns="x1")
                    c1  outcome  constraint1    status
            trial
            0      NaN      NaN          NaN   pending
            1      0.5      3.0          0.1  complete
        """
        return self._translation.all_trials(self._run.ledger.trials)

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Given | None = None,
        *,
        actions: Given | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        choose_context: Literal[False] = False,
        contexts_per_decision: int = 1,
        replicates: int = 1,
        at_most: Mapping[str, int] | None = None,
    ) -> Rows: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Given | None = None,
        *,
        actions: Given | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        choose_context: Literal[True],
        contexts_per_decision: int = 1,
        replicates: int = 1,
        at_most: Mapping[str, int] | None = None,
    ) -> tuple[Rows, Rows]: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Given | None = None,
        *,
        actions: Given | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        choose_context: bool,
        contexts_per_decision: int = 1,
        replicates: int = 1,
        at_most: Mapping[str, int] | None = None,
    ) -> Rows | tuple[Rows, Rows]: ...

    def ask(
        self,
        q: int = 1,
        candidates: Given | None = None,
        *,
        actions: Given | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        choose_context: bool = False,
        contexts_per_decision: int = 1,
        replicates: int = 1,
        at_most: Mapping[str, int] | None = None,
    ) -> Rows | tuple[Rows, Rows]:
        r"""Propose the next decisions.

        They differ from each other and from the pending decisions, and are none that
        has failed, as long as there are others: of few values, or of ``candidates``,
        all of which are pending or have failed, the best is proposed again. You may
        pass a different list in each call. A journal stores the proposed decisions, not
        the list.

        ``actions`` is a binding list: only these decisions are available in this round.
        ``tell`` then raises an error for any other decision, and the journal stores the
        list.

        **What is known about this round.** ``context_set`` and ``radius`` replace the
        reference and the radius of the algorithm for this round only, for example by
        today's forecast. ``context`` is the known part of the context; unknown columns
        keep their distribution and its ambiguity. Decisions of the initial design do
        not depend on these. A pending decision for another known context is not
        avoided.

        **Contexts that you can set.** With ``choose_context=True`` the context is
        chosen too, as in a laboratory or a simulator: evaluate in it, and tell it. Such
        contexts do not count as observed, so the optimizer needs a ``scope``, its
        algorithm a ``reference``, or the round a ``context_set``. In the initial design
        they cover the scope, or their box. After that, the context is the one whose
        outcome most reduces the variance of the value of the decision, given what is
        pending and the rows before it: see ``choose_contexts``. No pair of a decision
        and a context is asked twice.

        Args:
            q: The number of decisions.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            actions: The round's action set, ``m x d_x``, instead of ``candidates``.
            context_set: The distribution of this round's context; None for the
                algorithm's own.
            radius: The radius of this round's ambiguity set: a number in the
                algorithm's units; for a Wasserstein ball also a name, ``"spread"`` or
                ``"sd"``, or a radius for each column that may move, in the units of
                that column, such as ``{"c1": 6.0}`` or ``{"temp": 6, "weather": 0.1}``.
                None for the algorithm's own.
            context: This round's context, ``d_c``, with NaN in unknown columns, or its
                known variables by name; None if nothing is known.
            choose_context: Whether to choose the context as well.
            contexts_per_decision: In how many contexts each decision is tried, if they
                are chosen: with ``q=24`` and 4, six decisions.
            replicates: How often each pair is asked, if contexts are chosen; ``q``
                counts all of them.
            at_most: For names of decisions how many values of them one call may use,
                ``{"solvent": 2}``; ``x1``, ``x2``, ... where they have no names.

        Returns:
            Decisions, ``q x d_x`` in the dtype of ``bounds``, or a table of ``q`` rows;
            with ``candidates``, rows of the list. With ``choose_context``, a pair of
            the decisions and their contexts, ``q x d_c``.

        Raises:
            InputDataError: ``q`` is not a positive integer, ``num_initial=0`` and
                there is no outcome yet, or the list is empty, has fewer than ``q``
                different rows, or leaves the bounds; both lists; a context set or a
                context outside the bounds; a value that its variable cannot take; a
                negative radius; ``choose_context`` together with ``context``, or
                without any reference; more pairs than are left, or more contexts for
                a decision than there are.
            BotorchTensorDimensionError: A list that is not a matrix of decisions, or a
                wrong number of context columns.
            UnsupportedError: The algorithm cannot use what is known.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet, RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("wdrbo", unit, unit)
            >>> forecast = ContextSet(torch.tensor([[0.2], [0.3]]).double())
            >>> opt.ask(context_set=forecast, radius=0.05).shape
            torch.Size([1, 1])
            >>> opt.ask(context=torch.tensor([0.25]).double()).shape
            torch.Size([1, 1])
        """
        check_flag(choose_context, "choose_context")
        if choose_context and context is not None:
            raise InputDataError(
                "Got `context` and `choose_context=True`: a context that is known "
                "cannot be chosen. Leave one out."
            )
        this_round = self._round(context_set, radius, context)
        check_count(q, "q")
        if actions is not None and candidates is not None:
            raise InputDataError(
                "Got `candidates` and `actions`: give one list. `actions` also "
                "binds what is told."
            )
        binding = self._rows(actions, "actions")
        listed = self._rows(candidates, "candidates") if binding is None else binding
        named = self._run.configuration.named
        names = [f"x{j + 1}" for j in range(self.space.d_x)]
        plate = Plate.of(
            q,
            contexts_per_decision,
            replicates,
            at_most,
            names if named is None else list(named.decisions),
            choose_context=choose_context,
        )
        x, chosen = next_decisions(
            self._run,
            q,
            listed,
            this_round,
            choose_context=choose_context,
            plate=plate,
        )
        self._run.record(
            Ask(x=x, actions=binding, this_round=this_round, chosen_contexts=chosen)
        )
        rows = self._translation.decisions(x)
        return rows if chosen is None else (rows, self._translation.contexts(chosen))

    def preview(
        self,
        q: int = 1,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
    ) -> Rows:
        r"""What ``ask`` would propose now. Nothing is asked, and nothing is recorded.

        Args:
            q: How many.
            context_set: The distribution of this round's context, as for ``ask``.
            radius: That of this round's ambiguity set, as for ``ask``.
            context: What is known of this round's context, as for ``ask``.

        Returns:
            Decisions, ``q x d_x`` or a table of ``q`` rows.

        Raises:
            InputDataError: As ``ask``.
            UnsupportedError: As ``ask``.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("erbo", unit, unit)
            >>> print(f"{opt.preview().item():.4f} {opt.ask().item():.4f}")
            0.5313 0.5313
        """
        check_count(q, "q")
        this_round = self._round(context_set, radius, context)
        x, _ = next_decisions(self._run, q, None, this_round, choose_context=False)
        return self._translation.decisions(x)

    def design_contexts(self, x: Given) -> Rows:
        r"""The contexts in which a joint design evaluates its decisions.

        Evaluate in these contexts and tell them. Like all contexts told, they are part
        of the distribution that the algorithm learns, as in [Huang2024sbokde]_.

        Args:
            x: Decisions that ``ask`` has returned, ``q x d_x``.

        Returns:
            Contexts, ``q x d_c``; NaN where the context is not chosen: after the
            design, with a list of decisions, and always if ``initial_design="sobol"``.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer(
            ...     "random", unit, unit, num_initial=2, initial_design="sobol_joint"
            ... )
            >>> for shown in torch.rand(3, 1, 1, dtype=torch.double):  # by the world
            ...     x = opt.ask()
            ...     wanted = opt.design_contexts(x)
            ...     c = torch.where(wanted.isnan(), shown, wanted)
            ...     opt.tell(x, c, -(x - c).square())
        """
        rows = self._translation.read_decisions(x, "x")
        rows = as_rows(rows, self.space.bounds, "x", "bounds")
        num_asked = self._run.ledger.standing.num_asked
        found = design_of(self._run.configuration).contexts(rows, num_asked)
        return self._translation.contexts(found)

    def tell(
        self,
        x: Given,
        c: Given | None,
        y: Outcomes | None = None,
        *,
        y_variance: Outcomes | None = None,
        constraints: Outcomes | None = None,
        failed: bool = False,
        closes_pending: bool = True,
        error: str | None = None,
    ) -> None:
        r"""Report what happened.

        A row belongs to the pending decision that equals its ``x`` (within a millionth
        of a side of the box, or the rounding of float32), or otherwise to the nearest
        one, because the executed decision may differ from the proposed one. A row
        without ``y`` records the context, which is used at once for the distribution of
        the context. The trial stays pending until a later call with equal ``x`` and
        ``c`` gives the outcome. If the outcome will never come, pass ``failed=True``:
        the context is used (``c=None`` if none was seen), nothing is learnt about the
        outcome, and the decision itself is not proposed as long as there are others.

        ``y_variance`` is the variance of the noise in each outcome (a squared standard
        error), if it is known; the model uses exactly this value. Pass it with every
        outcome or with none. Each repetition of a trial is a row of its own.

        ``constraints`` are the measured values of the outcome constraints, which hold
        where the value is not negative. Pass them with the outcome, or with
        ``failed=True`` if there will be no outcome because they were violated. Trials
        without measured constraints are accepted. ``ask`` and ``recommend`` then take
        into account the probability that a decision meets the constraints under the
        worst plausible distribution of the context; see the option ``feasibility``.

        Nothing is recorded if any row is invalid. Use ``withdraw`` to correct mistakes.

        Args:
            x: The executed decision, ``d_x`` or ``m x d_x``.
            c: The contexts that occurred, ``d_c`` or ``m x d_c``; None if the trials
                failed before a context was seen.
            y: The outcomes, a number, ``m`` or ``m x 1``, or of named variables also a
                list or a column; None if not known yet.
            y_variance: The variances of their noise, a number for all, ``m`` or
                ``m x 1``; None if they are not known.
            constraints: Values of the ``k`` constraints, ``m x k``; for one trial also
                ``k`` numbers, for one constraint also ``m``. None if not measured.
            failed: True if these trials will never have an outcome.
            closes_pending: False for data from elsewhere, which no ``ask`` proposed.
            error: Why the trials have failed, kept in ``trials``; None if not known.

        Raises:
            InputDataError: NaN or infinite entries, integers, rows out of bounds, a
                value that its variable cannot take, a decision that is not one of the
                round's ``actions``, an outcome of a failed trial, or one whose square
                the dtype of ``bounds`` cannot hold, a variance that is negative,
                without an outcome, or given for some outcomes only, constraints of a
                trial that has no outcome yet, or a wrong number of constraints.
            BotorchTensorDimensionError: Shapes that do not match.
            UnsupportedError: ``y_variance`` for an algorithm that models the decision
                only, or ``constraints`` for one that ignores them.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> options = {"num_restarts": 1, "raw_samples": 16}
            >>> opt = RobustOptimizer("erbo", unit, unit, feasibility=0.9, **options)
            >>> draw = torch.Generator().manual_seed(0)
            >>> X, C = torch.rand(2, 12, 1, generator=draw).double()
            >>> opt.tell(X, C, X, constraints=1.2 - X - C)  # x + c <= 1.2
            >>> best = opt.recommend()
            >>> print(f"{best.x.item():.1f}, feasible: {best.feasibility:.2f}")
            0.3, feasible: 0.9...
        """
        told = self._translation
        self._run.record(
            Tell(
                x=told.read_decisions(x, "x"),
                c=None if c is None else told.read_contexts(c, "c"),
                y=told.read_outcomes(y, "y"),
                y_variance=told.read_outcomes(y_variance, "y_variance"),
                constraints=told.read_constraints(constraints),
                failed=failed,
                closes_pending=closes_pending,
                error=error,
            )
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
        r"""Evaluate decisions with a function: ask, evaluate and tell, in parallel.

        Decisions are evaluated elsewhere, ``parallel`` at once: whenever one
        evaluation ends, its outcome is told and the next decision is asked, with the
        others pending. Decisions that are pending when the call begins are evaluated
        first (those whose context has been told already wait for their outcome).

        **Where.** Without ``executor``, in processes of this machine; a script then
        has to start its work under ``if __name__ == "__main__":``. With one, wherever
        it makes calls: a ``concurrent.futures.Executor``, a
        ``dask.distributed.Client``, or another object with
        ``submit(function, *arguments)`` that returns futures with ``done()`` and
        ``result()``. It stays yours: this call does not close it.

        **What may go wrong.** If ``evaluate`` raises an error, or returns something
        that cannot be told (a wrong shape, NaN), the trial is told as failed, with a
        warning; ``trials[k].error`` has the traceback. If its worker dies, the decision
        is submitted again, up to ``retries`` times, and then told as failed. After ten
        failures in a row the call ends: the error is then in ``evaluate``. An error of
        the executor itself ends the call; it names the trials that were under way. One
        that has ended three calls is withdrawn; where no executor is given, at once.

        **Interrupted.** Ctrl-C ends the call with ``KeyboardInterrupt``: outcomes that
        have come back are told, the other decisions stay pending. With a journal the
        same holds after the process was killed: ``resume`` the run and call ``run``
        again, and what was pending is evaluated first. Use ``total`` in a script that
        may be restarted.

        Args:
            evaluate: Called with one decision, ``d_x`` on the CPU or a dictionary; with
                ``choose_context`` with a decision and a context, the same. It returns
                ``(c, y)`` or ``(c, y, constraints)``: the context that occurred, the
                outcome, and the measured constraints; of a chosen context also ``y``
                alone.
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
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> def evaluate(x):
            ...     c = torch.rand(1)  # the world
            ...     return c, -(x - c).square().sum()
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("random", unit, unit)
            >>> with ThreadPoolExecutor() as threads:
            ...     opt.run(evaluate, num=6, parallel=2, executor=threads)
            >>> opt
            RobustOptimizer('random', outcomes=6, pending=0)
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
        ).carry_out(self._run, self._translation)

    def withdraw(self, trial: int) -> None:
        r"""Remove what was told about a trial, or cancel a proposed decision.

        The context and the outcome of the trial are removed. If ``ask`` had proposed
        its decision, the decision is pending again: tell what really happened, or
        withdraw it once more. A pending decision without a context is cancelled and no
        longer avoided. Later decisions are the same as if it had never been told
        (except that the calls and the proposed decisions still count). A journal stores
        both events.

        Args:
            trial: Its number, see ``trials``: the label of its row in ``table()``.

        Raises:
            InputDataError: There is no such trial, or it is withdrawn already.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("random", unit, unit)
            >>> x, c = opt.ask(), torch.tensor([[0.4]], dtype=torch.double)
            >>> opt.tell(x, c, 120.0)  # it was 1.2
            >>> opt.withdraw(0)
            >>> opt.tell(x, c, 1.2)
            >>> [(trial.number, trial.status, trial.y) for trial in opt.trials]
            [(0, 'complete', 1.2)]
        """
        self._run.record(Withdraw(trial))

    def recommend(
        self,
        candidates: Given | None = None,
        *,
        context_set: ContextSet | None = None,
        scope: Scope | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        level: float = LEVEL,
        against: Adversary | AmbiguitySet | None = None,
        give_up: GiveUp | None = None,
        criterion: str | None = None,
        objective: str | None = None,
    ) -> Advice:
        r"""The decision to implement now: best robust objective of the posterior mean.

        The call changes nothing: later proposals are the same with or without it.

        Args:
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            context_set: The distribution of the context; None for the algorithm's own.
            scope: The same in the words of the constructor, ``"uniform"`` or a table:
                the contexts that the decision must serve.
            radius: The radius of the ambiguity set, as for ``ask``; None for the
                algorithm's own.
            context: The context, ``d_c``, with NaN in unknown columns, or its known
                variables by name; None if nothing is known.
            level: The level of the intervals, a probability.
            against: What to decide against: a danger such as ``MeanShift(1.0)``, an
                adversary such as ``WassersteinBall(radius="sd")``, or an ambiguity set;
                None for the algorithm's own.
            give_up: How much of the best expectation may be given up for a better worst
                case: a share of what there is to gain by choosing, such as 0.1, or an
                amount of the outcome such as ``{"profit": 20}``; None for the
                algorithm's own limit, or none.
            criterion: ``"worst_case"``, or ``"regret"`` for the least regret in the
                worst distribution of a danger; None for the algorithm's own.
            objective: What is to be best, in words, in place of ``against``: "mean",
                "worst fifth", "minimum" or "share above 60"; see ``NamedObjective``.
                None for the algorithm's own.

        Returns:
            The decision, its expected and worst-case value in your sign, and the
            contexts and weights of the worst case. Both values are predictions of the
            model and have intervals, ``expected_interval`` and ``worst_case_interval``;
            see ``Recommendation`` for the distributions of the worst case.

        Raises:
            InputDataError: There is no outcome yet, the list is empty or leaves the
                bounds, a context set or a context does, the radius is negative, or
                the level is not between 0 and 1.
            BotorchTensorDimensionError: A list that is not a matrix of decisions, or a
                wrong number of context columns.
            UnsupportedError: The algorithm cannot use what is known.
        """
        if scope is not None:
            if context_set is not None:
                raise InputDataError(
                    "Got `context_set` and `scope`: both say which contexts count. "
                    "Leave one out."
                )
            context_set = read_scope(scope, self.space, self._run.configuration.named)
        this_round = self._round(context_set, radius, context)
        listed = self._rows(candidates, "candidates")
        decided = DecidedBy(against, give_up, criterion, objective)
        found = recommended(self._run, listed, this_round, level, decided)
        return self._translation.recommendation(found)

    def price_curve(
        self,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
        level: float = LEVEL,
        against: Adversary | AmbiguitySet | None = None,
        criterion: str | None = None,
    ) -> PriceCurve[Rows]:
        r"""What a better worst case costs: from nothing given up to all that it asks.

        .. math:: p \mapsto \max_x \{ v(x) : E(x) \ge \max E - p \}

        ``print`` shows a line for each price, ``plot_price`` the picture.

        Args:
            context_set: As for ``recommend``.
            radius: As for ``recommend``.
            context: As for ``recommend``.
            level: The level of the intervals, a probability.
            against: As for ``recommend``.
            criterion: As for ``recommend``.

        Returns:
            The decisions, their prices and worst cases, with intervals and the knee.

        Raises:
            InputDataError: There is no outcome yet, or as ``recommend``.
            UnsupportedError: The algorithm has no model of its own, or nothing is
                feasible yet.

        Example:
            >>> import torch
            >>> from botorch_drbo import MeanShift, RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> few = {"num_restarts": 2, "raw_samples": 64, "surrogate": "botorch"}
            >>> opt = RobustOptimizer("erbo", unit, unit, **few)
            >>> X, C = torch.rand(2, 12, 1, dtype=torch.double)
            >>> opt.tell(X, C, -(X - C).square())
            >>> curve = opt.price_curve(against=MeanShift(1.0, clip=1.0))
            >>> curve.decisions.shape, curve.paid[0].item()
            (torch.Size([7, 1]), 0.0)
        """
        this_round = self._round(context_set, radius, context)
        decided = DecidedBy(against, criterion=criterion)
        found = priced(self._run, this_round, level, decided)
        return found.with_decisions(self._translation.decisions(found.decisions))

    def policy(
        self,
        contexts: Given,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
    ) -> Rows:
        r"""The decision to implement in each of many contexts: a lookup table.

        Each row is the result of ``recommend(context=...)``; the model is fitted once.

        Args:
            contexts: ``m x d_c``, with NaN in unknown columns, or a table with the
                known ones.
            context_set: As for ``recommend``: the distribution of the unknown columns.
            radius: As for ``recommend``.

        Returns:
            Decisions, ``m x d_x``, or a table of contexts and decisions.

        Raises:
            InputDataError: There is no outcome yet, or a context leaves the bounds.
            BotorchTensorDimensionError: Contexts that are not a matrix.
            UnsupportedError: The algorithm's decisions do not depend on the context.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet, RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> options = {"num_restarts": 1, "raw_samples": 8}
            >>> opt = RobustOptimizer("erbo", unit, unit, **options)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> opt.policy(ContextSet.grid(unit, 3).points).shape
            torch.Size([3, 1])
        """
        known = self._translation.read_partly(contexts)
        this_round = self._round(context_set, radius)
        rounds = [
            replace(this_round, known_context=c).within(self.space) for c in known
        ]
        state = self._run.state(Purpose.RECOMMENDATION)
        found = self.algorithm.decided_for(state, rounds)
        return self._translation.policy(known, found)

    @property
    def model(self) -> Model:
        """A copy of the model of ``[x, c]`` that recommendations use.

        It is fitted to all outcomes so far; with ``maximize=False``, to their
        negatives.
        """
        return copy.deepcopy(fitted(self._run))

    def predict(self, x: Given, c: Given) -> Predicted:
        r"""Mean and variance of the outcome under the model, without noise.

        Args:
            x: Decisions, ``d_x`` or ``m x d_x``.
            c: Contexts, ``d_c`` or ``m x d_c``; one row for each decision. A single
                row of one is combined with all rows of the other.

        Returns:
            Mean and variance, ``m`` each, in your sign and units. Of named variables a
            table of the decisions and contexts, with the mean and the standard
            deviation in the columns ``mean`` and ``sd``; a column whose name is already
            that of a variable gets an underscore.

        Raises:
            InputDataError: There is no outcome yet, rows out of bounds, or a value that
                its variable cannot take.
            BotorchTensorDimensionError: Shapes that do not match.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("erbo", unit, unit)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> mean, variance = opt.predict(X[:1], C)
            >>> mean.shape
            torch.Size([12])
        """
        space, translation = self.space, self._translation
        rows = translation.read_decisions(x, "x"), translation.read_contexts(c, "c")
        X = as_rows(rows[0], space.bounds, "x", "bounds").to(space.bounds)
        C = as_rows(rows[1], space.context_bounds, "c", "context_bounds").to(X)
        if len(X) != len(C) and 1 not in (len(X), len(C)):
            raise BotorchTensorDimensionError(
                f"`x` and `c` must have one row each, or as many as each other, got "
                f"{len(X)} and {len(C)}."
            )
        num = max(len(X), len(C))
        X, C = X.expand(num, -1), C.expand(num, -1)
        return translation.predictions(X, C, *predicted(self._run, X, C))

    def check(self, *, context_set: ContextSet | None = None) -> ModelCheck:
        r"""Check how far the model can be trusted; print the result.

        Every outcome is predicted by a model that was fitted without its fold of five,
        or from all others in closed form: see ``ModelCheck``. Nothing is recorded.

        Args:
            context_set: The contexts for which the model will be used; None for the
                recipe's ``reference``, or otherwise the contexts observed so far.

        Returns:
            How much of the held-out outcomes the model explains, how many lie outside
            their 95% intervals, which rows are predicted worst, whether outcomes look
            noisier than modelled, and whether the contexts lie outside those observed.

        Raises:
            InputDataError: There is no outcome yet, or a context outside the bounds.
            BotorchTensorDimensionError: Contexts with a wrong number of columns.
            UnsupportedError: A model of your own without a closed form.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("erbo", unit, unit)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> len(opt.check().worst)
            3
        """
        return checked(self._run, self._round(context_set).context_set)

    def compare(
        self,
        methods: Methods = METHODS,
        *,
        shifts: Shifts | None = None,
        radii: Sequence[RoundRadius] = (),
        clip: float = 0.0,
        level: float = LEVEL,
        context_set: ContextSet | None = None,
    ) -> Comparison:
        r"""The expected outcomes of several methods' recommendations, on your data.

        All methods use one model, that of the run, for their recommendations, and all
        are evaluated with its joint posterior over contexts. Nothing is recorded.

        Args:
            methods: Names of recipes, which get the options of the run that they have,
                or recipes. Each of the others is compared with the first.
            shifts: Possible changes of the distribution, by name: by how much columns
                of the contexts move, ``{"demand falls": {"c1": -0.3}}`` (for a
                logarithmic variable, by which factor), or the new distribution, a
                ``ContextSet`` or a table whose rows are equally likely. A single shift
                needs no name: ``{"c1": -0.3}``.
            radii: As for ``ask``, for Wasserstein balls: adds the distribution in the
                ball that is worst for the decision, according to the model's mean.
                The methods decide with their own radius, which the result states.
            clip: The share of the weight that a shift may move beyond the bounds, where
                it is set to the bounds; a larger share raises an error.
            level: The level of the intervals, a probability.
            context_set: The distribution without a shift; None for that of the run.

        Returns:
            For each method and each distribution, the expected outcome with its
            interval, the difference from the first method, and the probability that it
            is better; with ``table`` and ``advice``. Printing shows both.

        Raises:
            InputDataError: Fewer than five outcomes, an unknown method, a shift of a
                column that is not a context or is a category, or beyond the bounds.
            UnsupportedError: A method that does not support such a space.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> few = {"num_restarts": 2, "raw_samples": 16}
            >>> opt = RobustOptimizer("erbo", unit, unit, **few)
            >>> x, c = torch.rand(2, 8, 1, dtype=torch.double)
            >>> opt.tell(x, c * 0.5, -(x - c).square(), closes_pending=False)
            >>> found = opt.compare(["erbo", "wdrbo_exact"], shifts={"c1": 0.3})
            >>> found.worlds
            ('as things are', 'c1 +0.3')
        """
        return compared(
            self._run,
            methods,
            {} if shifts is None else shifts,
            radii,
            clip=clip,
            level=level,
            context_set=self._round(context_set).context_set,
        )

    def robustness_profile(
        self,
        x: Given,
        other: Given | None = None,
        *,
        target: float | None = None,
        radii: Tensor | None = None,
        ambiguity_set: AmbiguitySet | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
    ) -> RobustnessProfile:
        r"""The worst-case value of a decision as a function of the radius.

        The values are those that ``recommend`` reports, at other radii, and they are
        predictions of the model. ``plot_robustness_profile`` draws them. Nothing is
        recorded.

        Args:
            x: The decision, ``d_x`` or one row: for example ``opt.recommend().x``.
            other: A decision to compare with.
            target: A value that the decision should reach, in your sign.
            radii: The radii, ``k``, ascending; None for 25 equal steps from zero to
                four times the recipe's own radius. With a radius by column, they are
                multiples of it.
            ambiguity_set: A set around the same contexts that replaces the recipe's
                own. Some recipes have none (``erbo``, ``gp_ucb``, ``stable_opt``).
            context_set: As for ``recommend``: the distribution of this round's context.
            radius: As for ``recommend``: the radius that the default of ``radii`` uses.
            context: As for ``recommend``: what is known about this round's context.

        Returns:
            The profile: the worst-case values, the expected value, and the radii from
            which the decision falls behind the other one and below the target.

        Raises:
            InputDataError: There is no outcome yet, a decision outside the bounds, a
                set without a radius, or radii that are not ascending.
            BotorchTensorDimensionError: Not a single decision, or a set made for other
                contexts.
            UnsupportedError: A recipe without a model (``random``), or one that cannot
                use what is known.

        Example:
            >>> import torch
            >>> from botorch_drbo import RobustOptimizer
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("wdrbo_exact", unit, unit, radius=0.1)
            >>> X, C = (torch.rand(6, 1, dtype=torch.double) for _ in range(2))
            >>> opt.tell(X, C, X * C, closes_pending=False)
            >>> profile = opt.robustness_profile(torch.tensor([0.9]), target=-1.0)
            >>> profile.radii[-1].item(), profile.values.shape, profile.falls_below
            (0.4, torch.Size([25]), None)
        """
        return profiled(
            self._run,
            self._translation.read_decisions(x, "x"),
            self._rows(other, "other"),
            self._round(context_set, radius, context),
            target=target,
            radii=radii,
            ambiguity_set=ambiguity_set,
        )

    def state_dict(self) -> dict[str, Json]:
        """Configuration and events in plain JSON types; see ``from_state_dict``."""
        config = self._run.configuration.to_dict()
        return write_state(config, environment(), self._run.events)

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
    ) -> Self:
        r"""Rebuild an optimizer that proposes the same decisions.

        Args:
            state: From ``state_dict``, also after a round trip through JSON.
            journal: A new file for the run, or None.
            space: The run's space of named variables, as for ``resume``.
            model: The function that makes the model, if the run had one.
            objective: The function that makes the objective, if the run had one.
            device: The device for all computations.

        Returns:
            The optimizer.

        Raises:
            InputDataError: Not a state, a different version, damaged, or the state of
                the other class of optimizer.
        """
        run = of_state(
            state,
            has_names=cls._has_names,
            journal=journal,
            space=space,
            functions=OwnFunctions(model=model, objective=objective),
            device=device,
        )
        return cls.of_run(run)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        bounds: Tensor | None = None,
        context_bounds: Tensor | None = None,
        space: Space | None = None,
        model: ModelMaker | None = None,
        objective: ObjectiveMaker | None = None,
        device: torch.device | str = "cpu",
    ) -> Self:
        r"""Continue the run of a journal; further events are appended to it.

        Args:
            path: The journal.
            bounds: If given, they must equal those of the journal: a check that it
                belongs to this problem.
            context_bounds: The same for the contexts.
            space: The same for named variables. It is required if a constraint is a
                function, which a journal cannot store: its name is checked, not what it
                computes.
            model: The function that makes the model, if the run had one. A journal
                cannot store it, and cannot check that it is still the same.
            objective: The function that makes the objective, if the run had one.
            device: The device for all computations.

        Returns:
            The optimizer, with every observation of the run. ``pending`` has the
            decisions that were proposed and have no outcome yet.

        Raises:
            InputDataError: The file is in use, is not a journal, is damaged (other than
                by an interrupted last write), or is the journal of another problem or
                version, of the other class of optimizer, or of a run with a ``model``
                or ``objective`` that is not given. The file is not changed.
            OSError: The file cannot be read.
        """
        run = resumed(
            path,
            has_names=cls._has_names,
            bounds=bounds,
            context_bounds=context_bounds,
            space=space,
            functions=OwnFunctions(model=model, objective=objective),
            device=device,
        )
        return cls.of_run(run)

    def close(self) -> None:
        """Close the journal and unlock it; the optimizer can no longer ask or tell."""
        if self._run.journal is not None:
            self._run.journal.close()

    def __enter__(self) -> Self:
        """Use as ``with RobustOptimizer(...) as opt``; it closes the journal."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.close()

    def _rows(self, given: Given | None, name: str) -> Tensor | None:
        """Decisions as the model sees them, if any are given."""
        return None if given is None else self._translation.read_decisions(given, name)

    def _round(
        self,
        context_set: ContextSet | None,
        radius: RoundRadius | None = None,
        context: Given | None = None,
    ) -> Round:
        """What is known about a round."""
        known = self._translation.read_round(context_set, radius, context)
        return known.within(self.space)


def own_arguments(kind: type) -> list[str]:
    """What an optimizer takes beside the options of a recipe."""
    parameters = inspect.signature(kind).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
