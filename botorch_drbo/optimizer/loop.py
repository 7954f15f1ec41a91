"""The loop for people who want no loop: ask for a decision, tell what happened."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from botorch.exceptions.errors import (
    BotorchError,
    BotorchTensorDimensionError,
    InputDataError,
)
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_drbo._validation import check_bounds, coarser_eps
from botorch_drbo.algorithms import (
    ALGORITHMS,
    Algorithm,
    History,
    Recommendation,
    SearchSpace,
    algorithm_from_dict,
    derive_seed,
    standard_dtype,
)
from botorch_drbo.algorithms.candidates import best_rows, check_candidates, without
from botorch_drbo.optimizer.checks import (
    as_algorithm,
    as_count,
    as_outcomes,
    as_rows,
    check_can_be_modelled,
    compare_bounds,
    compare_environment,
    environment,
)
from botorch_drbo.optimizer.checksum import state_checksum
from botorch_drbo.optimizer.dtypes import (
    DTYPES,
    coarser_dtypes,
    dtype_name,
    stored_dtype,
)
from botorch_drbo.optimizer.events import as_matrix, read_event
from botorch_drbo.optimizer.journal import Journal
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.matching import recognised
from botorch_drbo.optimizer.trials import Trial

_STATE_FORMAT, _STATE_VERSION, _READS = "botorch_drbo state", 2, (1, 2)
_DESIGN, _PROPOSAL, _RECOMMENDATION = range(3)  # what a derived seed is for


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
        algorithm: The name of a recipe, see ``botorch_drbo.algorithms.ALGORITHMS``, or
            a recipe.
        bounds: Lower and upper bounds of the decision, ``2 x d_x``.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``.
        seed: Decides every random draw.
        journal: A new file for the run, or None.
        maximize: False if low outcomes are good. Outcomes and recommended values are
            in your sign either way; a worst case is then the highest expectation.
        num_initial: Size of the initial design; None for ``2 * (d_x + 1)``. With 0,
            tell data before the first ``ask`` (``random`` needs none).
        options: Options of the named recipe.

    Raises:
        InputDataError: An unknown algorithm or option, a value outside its range, or a
            journal that exists.
        BotorchTensorDimensionError: Bounds that are not ``2 x d``.

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

    def __init__(
        self,
        algorithm: str | Algorithm,
        bounds: Tensor,
        context_bounds: Tensor,
        *,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        maximize: bool = True,
        num_initial: int | None = None,
        **options: Any,
    ) -> None:
        check_bounds(bounds, "bounds")
        check_bounds(context_bounds, "context_bounds")
        if bounds.dtype not in (torch.float32, torch.float64):
            raise InputDataError(
                f"`bounds` must be float64 or float32, got {bounds.dtype}."
            )
        self._space = SearchSpace(
            bounds.detach().clone(), context_bounds.detach().clone().to(bounds)
        )
        self._context_bounds = context_bounds.detach().to(bounds.device)  # own dtype
        self._algorithm = as_algorithm(algorithm, options, _own_arguments())
        if not isinstance(maximize, bool):
            raise InputDataError(f"`maximize` must be True or False, got {maximize!r}.")
        self._maximize = maximize
        self._seed = as_count(seed, "seed")
        if num_initial is None:
            num_initial = 2 * (self._space.d_x + 1)
        self._num_initial = as_count(num_initial, "num_initial")
        self._ledger = Ledger(self._space)
        self._journal: Journal | None = None
        if journal is not None:
            self._journal = Journal.create(journal, self._config(), environment())

    def __repr__(self) -> str:
        """Name the recipe and count the trials."""
        return (
            f"RobustOptimizer({self._algorithm.name!r}, "
            f"outcomes={self._ledger.history.t}, pending={len(self.pending)})"
        )

    @property
    def algorithm(self) -> Algorithm:
        """The recipe."""
        return self._algorithm

    @property
    def space(self) -> SearchSpace:
        """The boxes of decisions and contexts."""
        return self._space

    @property
    def pending(self) -> Tensor:
        """Decisions without an outcome yet, ``m x d_x``, oldest first."""
        return self._ledger.X_pending.clone()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, also failed and withdrawn ones, by number: ``trials[k]`` is k."""
        return copy.deepcopy(self._ledger.trials)

    @property
    def history(self) -> History:
        """What has been told, in your sign."""
        history = self._ledger.history
        return History(
            X=history.X.clone(),
            C=history.C.clone(),
            Y=history.Y.clone(),
            contexts=history.contexts.clone(),
        )

    def ask(
        self,
        q: int = 1,
        candidates: Tensor | None = None,
        *,
        actions: Tensor | None = None,
    ) -> Tensor:
        r"""Propose the next decisions.

        They differ from each other and from the pending ones; with ``candidates`` from
        the pending ones as long as there are others. The list may be another at each
        call. A journal keeps what was asked, not the list.

        ``actions`` is such a list that binds: the world offers these decisions in this
        round and no others. ``tell`` refuses a decision that was none of them, and the
        journal keeps the list.

        Args:
            q: How many.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            actions: The round's action set, ``m x d_x``, in place of ``candidates``.

        Returns:
            Decisions, ``q x d_x``, in the dtype of ``bounds``; with ``candidates``
            rows of the list.

        Raises:
            InputDataError: ``q`` is not a positive integer, ``num_initial=0`` and
                there is no outcome yet, or the list is empty, has fewer than ``q``
                different rows, or leaves the bounds; both lists.
            BotorchTensorDimensionError: A list that is no matrix of decisions.
        """
        if isinstance(q, bool) or not isinstance(q, int) or q < 1:
            raise InputDataError(f"`q` must be a positive integer, got {q!r}.")
        if actions is not None:
            if candidates is not None:
                raise InputDataError(
                    "Got `candidates` and `actions`: give one list. `actions` also "
                    "binds what is told."
                )
            candidates = actions
        ledger, dtypes = self._ledger, {}
        num_design = self._design_size(q)
        if candidates is None:
            x = self._design(ledger.num_asked, num_design)
        else:
            may_repeat = self._algorithm.may_repeat
            different = max(num_design, 1) if may_repeat else q
            listed = check_candidates(candidates, self._space, different)
            dtypes = coarser_dtypes(self._space.bounds, x=candidates)
            eps = coarser_eps(candidates, self._space.bounds)
            candidates = recognised(listed, ledger.trials, self._space, eps)
            x = self._design_among(candidates, ledger.num_asked, num_design)
            if not may_repeat:
                candidates = without(candidates, x)
        if num_design < q:
            proposed = self._algorithm.propose(
                self._history_to_maximise(),
                self._space,
                q=q - num_design,
                X_pending=torch.cat([ledger.X_pending, x]),
                seed=derive_seed(self._seed, _PROPOSAL, ledger.num_asks),
                candidates=candidates,
            )
            x = torch.cat([x, proposed])
        event: dict[str, Any] = {"event": "ask", "x": x.tolist(), **dtypes}
        if actions is not None:
            event["actions"] = check_candidates(actions, self._space, q).tolist()
        self._record(event)
        return x

    def tell(
        self,
        x: Tensor,
        c: Tensor,
        y: Tensor | float | None = None,
        *,
        failed: bool = False,
        closes_pending: bool = True,
    ) -> None:
        r"""Report what happened.

        A row belongs to the pending decision that equals its ``x`` (up to 1e-9 of a
        side of the box, or the rounding of the coarser dtype), or else to the nearest
        one: the executed decision may differ from the asked one. A row without ``y``
        records the context, which informs the context distribution at once; the trial
        stays pending, and a later call with equal ``x`` and ``c`` and the outcome
        completes it. So does a call with ``failed=True`` if the outcome will never
        come: the context counts, and nothing is learnt of the outcome.

        Nothing is recorded if any row is wrong. What was told by mistake can be taken
        back: ``withdraw``.

        Args:
            x: The executed decision, ``d_x`` or ``m x d_x``.
            c: The contexts that occurred, ``d_c`` or ``m x d_c``.
            y: The outcomes, a number, ``m`` or ``m x 1``; None if still out.
            failed: True if these trials will never have an outcome.
            closes_pending: False for data from elsewhere, which no ``ask`` proposed.

        Raises:
            InputDataError: NaN or infinite entries, integers, rows out of bounds, a
                decision that was none of its round's ``actions``, an outcome of a
                failed trial, or one whose square the dtype of ``bounds`` cannot hold.
            BotorchTensorDimensionError: Shapes that do not fit.
        """
        for name, value in {"closes_pending": closes_pending, "failed": failed}.items():
            if not isinstance(value, bool):
                raise InputDataError(f"`{name}` must be True or False, got {value!r}.")
        if failed and y is not None:
            raise InputDataError(
                "Got `y` and `failed=True`: a failed trial has no outcome. Leave one "
                "out."
            )
        x, c = self._told_rows(x, c)
        if y is not None:
            y = as_outcomes(y, len(x))
            check_can_be_modelled(y, self._ledger.history.Y)
        dtypes = coarser_dtypes(self._space.bounds, x=x, c=c)
        self._record_told(x, c, y, failed, closes_pending, dtypes)

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
        self._record({"event": "withdraw", "trial": as_count(trial, "trial")})

    def recommend(self, candidates: Tensor | None = None) -> Recommendation:
        r"""The decision to implement now: best robust objective of the posterior mean.

        Calling it changes nothing: the decisions asked later are the same.

        Args:
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.

        Returns:
            The decision, its expected and worst-case value in your sign, and the
            contexts and weights of the worst case. Both values are the model's; see
            ``Recommendation`` for the distributions that the worst case is over.

        Raises:
            InputDataError: There is no outcome yet, or the list is empty or leaves the
                bounds.
            BotorchTensorDimensionError: A list that is no matrix of decisions.
        """
        best = self._algorithm.recommend(
            self._history_to_maximise(),
            self._space,
            seed=derive_seed(self._seed, _RECOMMENDATION, self._ledger.num_asks),
            candidates=candidates,
        )
        if self._maximize:
            return best
        return replace(
            best,
            objective=-best.objective,
            expected_value=-best.expected_value,
            worst_case_value=-best.worst_case_value,
        )

    def state_dict(self) -> dict[str, Any]:
        """Configuration and events in plain JSON types; see ``from_state_dict``."""
        state = {
            "format": _STATE_FORMAT,
            "version": _STATE_VERSION,
            "config": self._config(),
            "environment": environment(),
            "events": copy.deepcopy(list(self._ledger.events)),
        }
        return {**state, "check": state_checksum(state)}

    @classmethod
    def from_state_dict(
        cls,
        state: dict[str, Any],
        *,
        journal: str | os.PathLike[str] | None = None,
        device: torch.device | str = "cpu",
    ) -> RobustOptimizer:
        r"""Rebuild an optimizer that asks the same decisions.

        Args:
            state: From ``state_dict``, also after a trip through JSON.
            journal: A new file for the run, or None.
            device: Where to compute.

        Returns:
            The optimizer.

        Raises:
            InputDataError: Not a state, another version, or damaged.
        """
        if not isinstance(state, dict) or state.get("format") != _STATE_FORMAT:
            raise InputDataError(
                "`state` must be a dictionary from `RobustOptimizer.state_dict()`."
            )
        version = state.get("version")
        if type(version) is not int or version not in _READS:
            raise InputDataError(
                f"The state has version {version!r}; this library reads the versions "
                f"{_READS}. Load it with the library that made it."
            )
        # A state of version 1 has no checksum.
        if version > 1 and state.get("check") != state_checksum(state):
            raise InputDataError(
                "The state does not fit its checksum: it was damaged or edited after "
                "`state_dict()`. Restore it from a copy."
            )
        events = state.get("events")
        if not isinstance(events, list):
            raise InputDataError("The state has no list of `events`: it is damaged.")
        optimizer = cls._restored(state.get("config"), events, device, "the state")
        compare_environment(state.get("environment"), "the state")
        if journal is not None:
            optimizer._journal = Journal.create(
                journal, optimizer._config(), environment(), optimizer._ledger.events
            )
        return optimizer

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        bounds: Tensor | None = None,
        context_bounds: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> RobustOptimizer:
        r"""Go on with the run of a journal, which keeps being written.

        Args:
            path: The journal.
            bounds: If given, they must be the journal's: a check that it is the
                journal of this problem.
            context_bounds: The same for the contexts.
            device: Where to compute.

        Returns:
            The optimizer, with every observation of the run. Look at ``pending`` for
            decisions that were asked and have no outcome.

        Raises:
            InputDataError: The file is in use, damaged in any other way than by a
                write that was stopped midway, no journal, or the journal of another
                problem or version. It is left as it is.
            OSError: The file cannot be read.
        """
        journal, header, events = Journal.open(path)
        with ExitStack() as on_failure:
            on_failure.callback(journal.close)
            name = f"the journal {journal.path}"
            optimizer = cls._restored(
                header["config"], events, device, name, in_lines=True
            )
            space = optimizer.space
            compare_bounds(bounds, space.bounds, "bounds", name)
            compare_bounds(
                context_bounds, optimizer._context_bounds, "context_bounds", name
            )
            compare_environment(header.get("environment"), name)
            journal.repair()
            optimizer._journal = journal
            on_failure.pop_all()
        return optimizer

    def close(self) -> None:
        """Close the journal and unlock it; the optimizer can no longer ask or tell."""
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> RobustOptimizer:
        """Use as ``with RobustOptimizer(...) as opt``: the end closes the journal."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the journal."""
        self.close()

    def _design_size(self, q: int) -> int:
        """How many of the next ``q`` decisions belong to the initial design."""
        ledger = self._ledger
        waits = self._algorithm.needs_data and ledger.history.t == 0
        if waits and self._num_initial > 0:
            return q
        missing = self._num_initial - ledger.history.t - len(ledger.X_pending)
        return min(max(missing, 0), q)

    def _design(self, first: int, num: int) -> Tensor:
        """Points ``first, first + 1, ...`` of the Sobol design, ``num x d_x``."""
        lower, upper = self._space.bounds
        if num == 0:
            return lower.new_empty(0, self._space.d_x)
        seed = derive_seed(self._seed, _DESIGN, 0)
        with standard_dtype():  # the engine rounds its first point to the default
            engine = SobolEngine(self._space.d_x, scramble=True, seed=seed)
        unit = engine.fast_forward(first).draw(num, dtype=lower.dtype).to(lower)
        return (lower + unit * (upper - lower)).clamp(lower, upper)

    def _design_among(self, candidates: Tensor, first: int, num: int) -> Tensor:
        """The same for a list: it is shuffled once, and ``first`` rows are behind."""
        m = len(candidates)
        generator = torch.Generator().manual_seed(derive_seed(self._seed, _DESIGN, 0))
        place = torch.randperm(m, generator=generator)
        wait = ((place - first) % m).to(candidates.device)
        return best_rows(candidates, -wait, num, self._ledger.X_pending)

    def _history_to_maximise(self) -> History:
        history = self._ledger.history
        return history if self._maximize else replace(history, Y=-history.Y)

    def _told_rows(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Decisions and contexts in their own dtypes."""
        x = as_rows(x, self._space.bounds, "x", "bounds")
        c = as_rows(c, self._context_bounds, "c", "context_bounds")
        if len(x) != len(c):
            raise BotorchTensorDimensionError(
                f"`x` and `c` must have one row per trial, got {len(x)} and {len(c)}."
            )
        return x, c

    def _record_told(
        self,
        x: Tensor,
        c: Tensor,
        y: Tensor | None,
        failed: bool,
        closes_pending: bool,
        dtypes: dict[str, Any],
    ) -> None:
        space = self._space
        event = {
            "event": "fail" if failed else "tell",
            "x": x.to(space.bounds).clamp(*space.bounds).tolist(),
            "c": c.to(space.bounds).clamp(*space.context_bounds).tolist(),
            "closes_pending": closes_pending,
            **dtypes,
        }
        if not failed:
            event["y"] = None if y is None else y.to(space.bounds).tolist()
        self._record(event)

    def _record(self, event: dict[str, Any]) -> None:
        """Accept an event: first on the disk, then in memory, both or neither."""
        event["number"] = len(self._ledger.events) + 1
        ledger = self._ledger.after(event)
        if self._journal is not None:
            self._journal.append(event)
        self._ledger = ledger

    def _config(self) -> dict[str, Any]:
        if ALGORITHMS.get(self._algorithm.name) is not type(self._algorithm):
            raise InputDataError(
                f"A run of {type(self._algorithm).__name__} cannot be saved: a saved "
                "run names its algorithm. Register the class first: "
                "`ALGORITHMS[YourAlgorithm.name] = YourAlgorithm`."
            )
        bounds = self._space.bounds
        return {
            "algorithm": self._algorithm.to_dict(),
            "bounds": bounds.tolist(),
            "context_bounds": self._space.context_bounds.tolist(),
            "dtype": dtype_name(bounds),
            **coarser_dtypes(bounds, context_bounds=self._context_bounds),
            "seed": self._seed,
            "maximize": self._maximize,
            "num_initial": self._num_initial,
        }

    @classmethod
    def _restored(
        cls,
        config: object,
        events: Sequence[object],
        device: torch.device | str,
        source: str,
        *,
        in_lines: bool = False,
    ) -> RobustOptimizer:
        try:
            optimizer = cls._configured(config, device)
        except BotorchError as error:
            raise InputDataError(
                f"The configuration in {source} cannot be used: {error}"
            ) from error
        for number, event in enumerate(events, start=1):
            try:
                optimizer._replay(event)
            except BotorchError as error:
                line = f" (line {number + 1})" if in_lines else ""
                raise InputDataError(
                    f"Event {number}{line} of {source} does not fit its configuration: "
                    f"{error} It is damaged, or mixed with another run. Restore it "
                    "from a copy."
                ) from error
        return optimizer

    @classmethod
    def _configured(cls, config: object, device: torch.device | str) -> RobustOptimizer:
        if not isinstance(config, dict):
            raise InputDataError("it is no JSON object.")
        try:
            dtype = DTYPES[config["dtype"]]
            own = stored_dtype(config, "context_bounds", dtype)
            bounds = as_matrix(config["bounds"], "bounds")
            context_bounds = as_matrix(config["context_bounds"], "context_bounds")
            rest = {name: config[name] for name in ("seed", "maximize", "num_initial")}
            as_count(rest["num_initial"], "num_initial")  # None is not stored
            algorithm = algorithm_from_dict(config["algorithm"])
        except (  # whatever a recipe stumbles over in a damaged option
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise InputDataError(
                f"{error!r}. It is damaged: restore it from a copy."
            ) from error
        return cls(
            algorithm,
            bounds.to(device, dtype),
            context_bounds.to(device, own),
            **rest,
        )

    def _replay(self, event: object) -> None:
        """Apply a stored event, under the checks that it passed when it was new."""
        kind, fields = read_event(event, len(self._ledger.events) + 1)
        if kind == "withdraw":
            self.withdraw(**fields)
            return
        x, bounds = fields["x"], self._space.bounds
        dtypes = {"dtypes": fields["dtypes"]} if "dtypes" in fields else {}
        if kind == "ask":
            x = as_rows(x, bounds, "x", "bounds").to(bounds)
            asked = {"event": "ask", "x": x.tolist(), **dtypes}
            if "actions" in fields:
                actions = check_candidates(fields["actions"], self._space)
                asked["actions"] = actions.tolist()
            self._record(asked)
            return
        x, c = self._told_rows(x, fields["c"])
        y = fields.get("y")  # one that version 0.1.0 took may be too large for `tell`
        y = None if y is None else as_outcomes(y, len(x))
        self._record_told(x, c, y, kind == "fail", fields["closes_pending"], dtypes)


def _own_arguments() -> list[str]:
    """What an optimizer takes beside the options of a recipe."""
    parameters = inspect.signature(RobustOptimizer).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
