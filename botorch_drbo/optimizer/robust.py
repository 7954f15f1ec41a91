"""The loop for people who want no loop: ask for a decision, tell what happened."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, final, overload

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_count, check_flag
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate.profile import RobustnessProfile
from botorch_drbo.codec.objects import Json
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.checks import as_algorithm, as_rows
from botorch_drbo.optimizer.comparison import METHODS, Methods, Shifts, compared
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.decisions import (
    checked,
    design_of,
    fitted,
    next_decisions,
    policy_for,
    profiled,
    recommended,
)
from botorch_drbo.optimizer.environment import environment
from botorch_drbo.optimizer.events import Ask, Tell, Withdraw
from botorch_drbo.optimizer.restore import begun, of_state, resumed
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.state import write_state
from botorch_drbo.optimizer.tables import numbered_table
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.policies.objective import ObjectiveMaker
from botorch_drbo.posterior.joint import joint_moments
from botorch_drbo.problem import History, Round, SearchSpace
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.own_functions import OwnFunctions
from botorch_drbo.recommendation import ModelCheck, Recommendation
from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.space import Space
from botorch_drbo.surrogate.given_model import ModelMaker

if TYPE_CHECKING:
    import pandas as pd


@final
class RobustOptimizer:
    r"""Find a decision that is good under every plausible distribution of the context.

    In a round ``ask`` proposes a decision, the world shows a context that nobody chose,
    and ``tell`` reports decision, context and outcome. Rounds may overlap: decisions in
    batches, contexts and outcomes late and in any order.

    The first ``num_initial`` decisions are a scrambled Sobol design (as are all until
    the first outcome is told); then the algorithm proposes.

    **Mistakes.** ``withdraw`` takes back what was told of a trial, or a decision that
    will not be executed; ``trials`` lists the trials with their numbers.

    **Reproducible.** The decisions that ``ask`` returns are a function of the
    configuration and of the events (asks, tells, withdrawals) so far: same machine,
    same library versions, same number of threads, same decisions. The global random
    number generators and torch's default dtype are neither used nor changed.

    **Durable.** With ``journal`` each event is on the disk before the call returns.
    After a crash at any moment, ``RobustOptimizer.resume(path)`` has every observation
    and asks what the dead run would have asked next. A decision that was written when
    the process died but never reached you is in ``pending`` after ``resume``: execute
    it, leave it, or ``withdraw`` it. One process writes: in a forked child ``ask`` and
    ``tell`` raise. A damaged journal is refused and left as it is.

    Args:
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``, or
            a recipe.
        bounds: Lower and upper bounds of the decision, ``2 x d_x``. For variables with
            names and kinds there is ``NamedOptimizer``.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``.
        seed: Decides every random draw.
        journal: A new file for the run, or None.
        maximize: False if low outcomes are good. Outcomes and recommended values are
            in your sign either way; a worst case is then the highest expectation.
        num_initial: Size of the initial design; None for ``2 * (d_x + 1)``. With 0,
            tell data before the first ``ask`` (``random`` needs none).
        initial_design: ``"sobol"``: decisions fill their box, and the world shows the
            contexts. ``"sobol_joint"``: decisions and contexts fill theirs together, as
            in [Huang2024sbokde]_, where the first contexts are chosen; that takes a
            simulator, see ``design_contexts``.
        perturbation: True if the context is an error of execution, a tolerance: what
            is executed is ``x + c``. The model then knows the sum alone, and it may
            leave ``bounds`` by the bounds of the context. Tell the decision as it was
            meant, and the error as the context.
        options: Options of the named recipe.

    Raises:
        InputDataError: An unknown algorithm or option, a value outside its range, or a
            journal that exists.
        BotorchTensorDimensionError: Bounds that are not ``2 x d``, or other numbers of
            decisions and perturbations.
        UnsupportedError: An algorithm that can make nothing of such a space.

    Example:
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> options = {"num_restarts": 1, "raw_samples": 8}
        >>> opt = RobustOptimizer("erbo", unit, unit, num_initial=3, **options)
        >>> for _ in range(4):
        ...     x = opt.ask()  # 1 x 1
        ...     c = torch.rand(1, 1, dtype=torch.double)  # the world
        ...     opt.tell(x, c, -(x - c).square())
        >>> opt.recommend().x.shape
        torch.Size([1])
    """

    _fitted: tuple[int, Model] | None = None

    def __init__(
        self,
        algorithm: str | Recipe,
        bounds: Tensor,
        context_bounds: Tensor | None = None,
        *,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        maximize: bool = True,
        num_initial: int | None = None,
        initial_design: str = "sobol",
        perturbation: bool = False,
        **options: object,
    ) -> None:
        if isinstance(bounds, Space):
            raise InputDataError(
                "`bounds` is a Space of named variables, of which NamedOptimizer makes "
                "tables: `NamedOptimizer(algorithm, space)`."
            )
        configuration = Configuration(
            as_algorithm(algorithm, options, own_arguments(RobustOptimizer)),
            bounds,
            context_bounds,
            seed=seed,
            maximize=maximize,
            num_initial=num_initial,
            initial_design=initial_design,
            perturbation=perturbation,
        )
        self._run = begun(configuration, journal)

    @classmethod
    def of_run(cls, run: Run) -> RobustOptimizer:
        """The optimizer that goes on with a run."""
        optimizer = cls.__new__(cls)
        optimizer._run = run
        return optimizer

    def __repr__(self) -> str:
        """Name the recipe and count the trials."""
        ledger = self._run.ledger
        return (
            f"RobustOptimizer({self.algorithm.name!r}, "
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
    def pending(self) -> Tensor:
        """Decisions without an outcome yet, ``m x d_x``, oldest first."""
        return self._run.ledger.X_pending.clone()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, also failed and withdrawn ones, by number: ``trials[k]`` is k.

        Their tensors are as the model sees them: see ``SearchSpace``. ``table`` has
        them in your names and units.
        """
        return copy.deepcopy(tuple(self._run.ledger.trials))

    @property
    def history(self) -> History:
        """What has been told, in your sign."""
        history = self._run.ledger.history
        return History(
            X=history.X.clone(),
            C=history.C.clone(),
            Y=history.Y.clone(),
            contexts=history.contexts.clone(),
            Yvar=None if history.Yvar is None else history.Yvar.clone(),
            constraints=copy.deepcopy(history.constraints),
        )

    def table(self) -> pd.DataFrame:
        r"""All trials as a table, with their status.

        Returns:
            A row for each trial, labelled by its number, also for failed and withdrawn
            ones: its decision ``x1, x2, ...``, its context ``c1, c2, ...``, its
            outcome, the variance of its noise and the measured constraints if any were
            told (``constraint1, ...``), and its status: "pending", "complete", "failed"
            or "withdrawn" (with what had been told). What was not told is NaN.

        Example:
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
        return numbered_table(self._run.ledger.trials, self.space)

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Tensor | None = None,
        *,
        actions: Tensor | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
        choose_context: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Tensor | None = None,
        *,
        actions: Tensor | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
        choose_context: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...

    @overload
    def ask(
        self,
        q: int = 1,
        candidates: Tensor | None = None,
        *,
        actions: Tensor | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
        choose_context: bool,
    ) -> Tensor | tuple[Tensor, Tensor]: ...

    def ask(
        self,
        q: int = 1,
        candidates: Tensor | None = None,
        *,
        actions: Tensor | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
        choose_context: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        r"""Propose the next decisions.

        They differ from each other and from the pending ones; with ``candidates`` from
        the pending ones as long as there are others. The list may be another at each
        call. A journal keeps what was asked, not the list.

        ``actions`` is such a list that binds: the world offers these decisions in this
        round and no others. ``tell`` refuses a decision that was none of them, and the
        journal keeps the list.

        **What is known about this round.** ``context_set`` and ``radius`` take the
        place of the algorithm's own reference and radius, in this round alone: today's
        forecast. ``context`` is what is known of the context already; the columns that
        are not known keep their distribution and its ambiguity. Decisions of the
        initial design depend on neither. A pending decision that waits for another
        known context is not avoided.

        **A laboratory.** With ``choose_context=True`` the context is chosen too:
        evaluate there, and tell it. Such contexts are not among those that the world
        has shown: the algorithm needs a ``reference``, or the round a ``context_set``.
        In the initial design they fill their box; then it is the context about which
        the model knows least among those that carry the worst case of the decision.

        Args:
            q: How many.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            actions: The round's action set, ``m x d_x``, in place of ``candidates``.
            context_set: The distribution of this round's context; None for the
                algorithm's own.
            radius: That of this round's ambiguity set: a number in the algorithm's
                units; for a Wasserstein ball also a name, ``"spread"`` or ``"sd"``, or
                a radius for each column that may move, in its own units, such as
                ``{"c1": 6.0}``. None for its own.
            context: This round's context, ``d_c``, NaN in columns that are not known;
                None if none is.
            choose_context: Whether to choose the context too.

        Returns:
            Decisions, ``q x d_x``, in the dtype of ``bounds``; with ``candidates``
            rows of the list. With ``choose_context`` a pair: these, and their contexts,
            ``q x d_c``.

        Raises:
            InputDataError: ``q`` is not a positive integer, ``num_initial=0`` and
                there is no outcome yet, or the list is empty, has fewer than ``q``
                different rows, or leaves the bounds; both lists; a context set or a
                context outside the bounds; a negative radius; ``choose_context``
                together with ``context``, or without any reference.
            BotorchTensorDimensionError: A list that is no matrix of decisions, or
                other numbers of context columns.
            UnsupportedError: The algorithm can make nothing of what is known.

        Example:
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
        this_round = Round(context_set, radius, context)
        check_count(q, "q")
        if actions is not None:
            if candidates is not None:
                raise InputDataError(
                    "Got `candidates` and `actions`: give one list. `actions` also "
                    "binds what is told."
                )
            candidates = actions
        x, chosen = next_decisions(
            self._run, q, candidates, this_round, choose_context=choose_context
        )
        self._run.record(
            Ask(x=x, actions=actions, this_round=this_round, chosen_contexts=chosen)
        )
        return x if chosen is None else (x, chosen)

    def design_contexts(self, x: Tensor) -> Tensor:
        r"""The contexts at which a joint design wants its decisions evaluated.

        Evaluate there and tell these contexts: like all contexts told they stay in the
        context distribution that the algorithm learns, as in [Huang2024sbokde]_.

        Args:
            x: Decisions that ``ask`` has returned, ``q x d_x``.

        Returns:
            Contexts, ``q x d_c``; NaN where the world decides: after the design,
            with a list of decisions, and always if ``initial_design="sobol"``.

        Example:
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
        x = as_rows(x, self.space.bounds, "x", "bounds")
        design = design_of(self._run.configuration)
        num_asked = self._run.ledger.standing.num_asked
        return design.contexts(x, num_asked)

    def tell(
        self,
        x: Tensor,
        c: Tensor,
        y: Tensor | float | None = None,
        *,
        y_variance: Tensor | float | None = None,
        constraints: Tensor | float | None = None,
        failed: bool = False,
        closes_pending: bool = True,
    ) -> None:
        r"""Report what happened.

        A row belongs to the pending decision that equals its ``x`` (within a millionth
        of a side of the box, or the rounding of float32), or else to the nearest one:
        the executed decision may differ from the asked one. A row without ``y`` records
        the context, which informs the context distribution at once; the trial stays
        pending, and a later call with equal ``x`` and ``c`` and the outcome completes
        it. So does a call with ``failed=True`` if the outcome will never come: the
        context counts, nothing is learnt of the outcome, and the decision is avoided
        as pending ones are.

        ``y_variance`` is the variance of the noise in each outcome, where it is known
        (a squared standard error): the model takes it at its word. It is told with
        every outcome or with none. Trials that are repeated are rows as any others.

        ``constraints`` is what was measured of the outcome constraints, feasible where
        not negative: with the outcome, or with ``failed=True`` if there will be none
        because they were violated. Trials without are no matter. Decisions are then
        asked, and recommended, by how surely they meet the constraints under the worst
        plausible distribution of the context; see the option ``feasibility``.

        Nothing is recorded if any row is wrong. What was told by mistake can be taken
        back: ``withdraw``.

        Args:
            x: The executed decision, ``d_x`` or ``m x d_x``.
            c: The contexts that occurred, ``d_c`` or ``m x d_c``.
            y: The outcomes, a number, ``m`` or ``m x 1``; None if still out.
            y_variance: The variances of their noise, a number for all, ``m`` or
                ``m x 1``; None if they are not known.
            constraints: Values of the ``k`` constraints, ``m x k``; for one trial also
                ``k`` numbers, for one constraint also ``m``. None if not measured.
            failed: True if these trials will never have an outcome.
            closes_pending: False for data from elsewhere, which no ``ask`` proposed.

        Raises:
            InputDataError: NaN or infinite entries, integers, rows out of bounds, a
                decision that was none of its round's ``actions``, an outcome of a
                failed trial, or one whose square the dtype of ``bounds`` cannot hold,
                a variance that is negative, without an outcome, or known of some
                outcomes only, constraints of a trial that is still to be completed, or
                another number of them.
            BotorchTensorDimensionError: Shapes that do not fit.
            UnsupportedError: ``y_variance`` for an algorithm that models the decision
                alone, or ``constraints`` for one that would not heed them.

        Example:
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> options = {"num_restarts": 1, "raw_samples": 16}
            >>> opt = RobustOptimizer("erbo", unit, unit, feasibility=0.9, **options)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, X, constraints=1.2 - X - C)  # x + c <= 1.2
            >>> opt.recommend().feasible
            True
        """
        self._run.record(
            Tell(
                x=x,
                c=c,
                y=y,
                y_variance=y_variance,
                constraints=constraints,
                failed=failed,
                closes_pending=closes_pending,
            )
        )

    def withdraw(self, trial: int) -> None:
        r"""Take back what was told of a trial, or a decision that was asked.

        A told trial loses its context and its outcome. If ``ask`` had proposed its
        decision, that is pending again: tell what really happened, or withdraw it once
        more. A decision that is pending without a context is cancelled, and no longer
        avoided. Later decisions are as if it had never been told (the numbers of calls
        and of decisions asked still count). A journal keeps both events.

        Args:
            trial: Its number, see ``trials``.

        Raises:
            InputDataError: There is no such trial, or it is withdrawn already.

        Example:
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
        candidates: Tensor | None = None,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
        level: float = LEVEL,
    ) -> Recommendation:
        r"""The decision to implement now: best robust objective of the posterior mean.

        Calling it changes nothing: the decisions asked later are the same.

        Args:
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            context_set: The distribution of the context; None for the algorithm's own.
            radius: That of the ambiguity set, as for ``ask``; None for its own.
            context: What is known of the context, ``d_c``, NaN in columns that are not
                known; None if nothing is.
            level: Of the intervals of what is promised, a probability.

        Returns:
            The decision, its expected and worst-case value in your sign, and the
            contexts and weights of the worst case. Both values are the model's, and
            have intervals, ``expected_interval`` and ``worst_case_interval``; see
            ``Recommendation`` for the distributions that the worst case is over.

        Raises:
            InputDataError: There is no outcome yet, the list is empty or leaves the
                bounds, a context set or a context does, the radius is negative, or
                the level is not between 0 and 1.
            BotorchTensorDimensionError: A list that is no matrix of decisions, or
                other numbers of context columns.
            UnsupportedError: The algorithm can make nothing of what is known.
        """
        this_round = Round(context_set, radius, context)
        return recommended(self._run, candidates, this_round, level)

    def policy(
        self,
        contexts: Tensor,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
    ) -> Tensor:
        r"""The decision to implement in each of many contexts: a table to look up.

        Row by row what ``recommend(context=...)`` says; the model is fitted once.

        Args:
            contexts: ``m x d_c``, NaN where a context is not known.
            context_set: As for ``recommend``: the distribution of what is not known.
            radius: As for ``recommend``.

        Returns:
            Decisions, ``m x d_x``.

        Raises:
            InputDataError: There is no outcome yet, or a context leaves the bounds.
            BotorchTensorDimensionError: Contexts that are no matrix.
            UnsupportedError: The algorithm's decisions do not depend on the context.

        Example:
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> options = {"num_restarts": 1, "raw_samples": 8}
            >>> opt = RobustOptimizer("erbo", unit, unit, **options)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> opt.policy(ContextSet.grid(unit, 3).points).shape
            torch.Size([3, 1])
        """
        if not isinstance(contexts, Tensor) or contexts.ndim != 2 or not len(contexts):
            got = (
                f"shape {tuple(contexts.shape)}"
                if isinstance(contexts, Tensor)
                else type(contexts).__name__
            )
            raise BotorchTensorDimensionError(
                f"`contexts` must be `m x {self.space.d_c}`, one context in each row, "
                f"got {got}."
            )
        return policy_for(self._run, contexts, Round(context_set, radius))

    @property
    def model(self) -> Model:
        """The model of ``[x, c]`` that recommendations are judged by, a copy.

        Fitted to all outcomes so far; of minus the outcome with ``maximize=False``.
        """
        return copy.deepcopy(self._fitted_model())

    def predict(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        r"""What the model believes of the outcome, noise not included.

        Args:
            x: Decisions, ``d_x`` or ``m x d_x``.
            c: Contexts, ``d_c`` or ``m x d_c``; one row for each decision. A single
                row of one serves all rows of the other.

        Returns:
            Mean and variance, ``m`` each, in your sign and units.

        Raises:
            InputDataError: There is no outcome yet, or rows out of bounds.
            BotorchTensorDimensionError: Shapes that do not fit.

        Example:
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("erbo", unit, unit)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> mean, variance = opt.predict(X[:1], C)
            >>> mean.shape
            torch.Size([12])
        """
        space = self.space
        x = as_rows(x, space.bounds, "x", "bounds").to(space.bounds)
        c = as_rows(c, space.context_bounds, "c", "context_bounds").to(space.bounds)
        if len(x) != len(c) and 1 not in (len(x), len(c)):
            raise BotorchTensorDimensionError(
                f"`x` and `c` must have one row each, or as many as each other, got "
                f"{len(x)} and {len(c)}."
            )
        num = max(len(x), len(c))
        joint = torch.cat([x.expand(num, -1), c.expand(num, -1)], dim=-1)
        model = self._fitted_model()
        with torch.no_grad():
            mean, variance = joint_moments(model, joint)
        return (mean if self._run.configuration.maximize else -mean), variance

    def check(self, *, context_set: ContextSet | None = None) -> ModelCheck:
        r"""Look how far the model can be believed: print what this returns.

        Every outcome is predicted from all others, in closed form; nothing is recorded.

        Args:
            context_set: The contexts that the model is going to be asked for; None for
                the recipe's ``reference``, or else those that the world has shown.

        Returns:
            How much of the outcomes the model explains that it has not seen, how many
            lie outside their 95% intervals, which rows surprise most, whether outcomes
            look noisier than modelled, and whether the contexts lie outside those seen.

        Raises:
            InputDataError: There is no outcome yet, or a context outside the bounds.
            BotorchTensorDimensionError: Contexts of another number of columns.
            UnsupportedError: A model of your own without a closed form.

        Example:
            >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> opt = RobustOptimizer("erbo", unit, unit)
            >>> X, C = torch.rand(2, 12, 1).double()
            >>> opt.tell(X, C, -(X - C).square())
            >>> len(opt.check().worst)
            3
        """
        return checked(self._run, self._fitted_model(), context_set)

    def _fitted_model(self) -> Model:
        """Fitted once for each state of the run."""
        known = self._fitted
        num_events = self._run.ledger.num_events
        if known is None or known[0] != num_events:
            self._fitted = known = num_events, fitted(self._run)
        return known[1]

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
        r"""What recommendations of several methods are expected to earn, on your data.

        One model is fitted, the run's own: each method recommends by it, and all are
        judged by its joint posterior over contexts. Nothing is recorded.

        Args:
            methods: Names of recipes, with the options of the run as far as they have
                them, or recipes. The others are compared with the first.
            shifts: What you fear, by name: by how much columns of the contexts move,
                ``{"demand falls": {"c1": -0.3}}``, of a logarithmic variable by which
                factor; or the distribution that comes then, a ``ContextSet``. One shift
                alone needs no name: ``{"c1": -0.3}``.
            radii: As for ``ask``, of Wasserstein balls: the distribution in the ball
                that is worst for the decision, by the model's mean.
            clip: The share of the weight that a shift may move beyond the bounds, where
                it is left at them; beyond that share it is refused.
            level: Of the intervals, a probability.
            context_set: The distribution as things are; None for the run's own.

        Returns:
            For each method and world the expected outcome with its interval, by how
            much it is better than the first method's and how probably; ``table``,
            ``advice``, and ``print`` of both.

        Raises:
            InputDataError: Fewer than five outcomes, an unknown method, a shift of
                what is no context, beyond the bounds, or of a category.
            UnsupportedError: A method that can make nothing of such a space.

        Example:
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
            context_set=context_set,
        )

    def robustness_profile(
        self,
        x: Tensor,
        other: Tensor | None = None,
        *,
        target: float | None = None,
        radii: Tensor | None = None,
        ambiguity_set: AmbiguitySet | None = None,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        context: Tensor | None = None,
    ) -> RobustnessProfile:
        r"""How much any decision is still worth if the contexts shift, by radius.

        Worst cases are those of a recommendation, with other radii; like it they are
        the model's. ``plot_robustness_profile`` draws them. Nothing is recorded.

        Args:
            x: The decision, ``d_x``: for example ``opt.recommend().x``.
            other: A decision to compare with, ``d_x``.
            target: A value that the decision should reach, in your sign.
            radii: Where to evaluate, ``k``, ascending; None for 25 equal steps from
                zero to four times the recipe's own radius. Of a radius by column they
                are multiples.
            ambiguity_set: Another set around the same contexts than the recipe's own,
                which some do not have (``erbo``, ``gp_ucb``, ``stable_opt``).
            context_set: As for ``recommend``: the distribution of this round's context.
            radius: As for ``recommend``: that from which ``radii`` follow.
            context: As for ``recommend``: what is known of this round's context.

        Returns:
            The profile: the worst-case values, the expected value, and the radii from
            which the decision falls behind the other one and below the target.

        Raises:
            InputDataError: There is no outcome yet, a decision outside the bounds, a
                set without a radius, or radii that do not ascend.
            BotorchTensorDimensionError: Not one decision, or a set that knows other
                contexts.
            UnsupportedError: A recipe without a model of its own (``random``), or one
                that can make nothing of what is known.

        Example:
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
            x,
            other,
            Round(context_set, radius, context),
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
        model: ModelMaker | None = None,
        objective: ObjectiveMaker | None = None,
        device: torch.device | str = "cpu",
    ) -> RobustOptimizer:
        r"""Rebuild an optimizer that asks the same decisions.

        Args:
            state: From ``state_dict``, also after a trip through JSON.
            journal: A new file for the run, or None.
            model: The function that makes the model, if the run had one.
            objective: The function that makes the objective, if the run had one.
            device: Where to compute.

        Returns:
            The optimizer.

        Raises:
            InputDataError: Not a state, another version, damaged, or one of named
                variables.
        """
        return cls.of_run(
            of_state(
                state,
                has_names=False,
                journal=journal,
                functions=OwnFunctions(model=model, objective=objective),
                device=device,
            )
        )

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        bounds: Tensor | None = None,
        context_bounds: Tensor | None = None,
        model: ModelMaker | None = None,
        objective: ObjectiveMaker | None = None,
        device: torch.device | str = "cpu",
    ) -> RobustOptimizer:
        r"""Go on with the run of a journal, which keeps being written.

        Args:
            path: The journal.
            bounds: If given, they must be the journal's: a check that it is the
                journal of this problem.
            context_bounds: The same for the contexts.
            model: The function that makes the model, if the run had one: a journal
                cannot hold it, and cannot know whether it still is the same.
            objective: The function that makes the objective, if the run had one.
            device: Where to compute.

        Returns:
            The optimizer, with every observation of the run. Look at ``pending`` for
            decisions that were asked and have no outcome.

        Raises:
            InputDataError: The file is in use, damaged in any other way than by a
                write that was stopped midway, no journal, or the journal of another
                problem or version, of named variables, or of a run with a ``model``
                or ``objective`` that is not given. It is left as it is.
            OSError: The file cannot be read.
        """
        return cls.of_run(
            resumed(
                path,
                has_names=False,
                bounds=bounds,
                context_bounds=context_bounds,
                functions=OwnFunctions(model=model, objective=objective),
                device=device,
            )
        )

    def close(self) -> None:
        """Close the journal and unlock it; the optimizer can no longer ask or tell."""
        if self._run.journal is not None:
            self._run.journal.close()

    def __enter__(self) -> RobustOptimizer:
        """Use as ``with RobustOptimizer(...) as opt``: the end closes the journal."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.close()


def own_arguments(kind: type) -> list[str]:
    """What an optimizer takes beside the options of a recipe."""
    parameters = inspect.signature(kind).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
