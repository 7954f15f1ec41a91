"""The events of a run, and the checks of each, whether new or stored."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TypeAlias

from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_count, check_flag
from botorch_drbo.optimizer.checks import (
    as_constraints,
    as_outcomes,
    as_rows,
    as_variances,
    check_can_be_modelled,
)
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.standing import OutcomeRange
from botorch_drbo.problem import Round
from botorch_drbo.problem.search_space import check_values
from botorch_drbo.search.candidates import check_candidates


@dataclass(frozen=True, eq=False, kw_only=True)
class Ask:
    """Decisions were asked.

    Attributes:
        x: The decisions, ``q x d_x``.
        actions: The round's actions, ``m x d_x``, if they bind.
        this_round: Its reference, radius and context, as far as given.
        chosen_contexts: For a laboratory, ``q x d_c``.
    """

    x: Tensor
    actions: Tensor | None = None
    this_round: Round = field(default_factory=Round)
    chosen_contexts: Tensor | None = None

    def within(self, configuration: Configuration) -> Ask:
        """The same as a run keeps it.

        Raises:
            InputDataError: It is no ask of such a run.
            BotorchTensorDimensionError: Shapes that do not match.
        """
        space = configuration.space
        x = as_rows(self.x, space.bounds, "x", "bounds").to(space.bounds)
        check_values(x, space.bounds, space.values, "x")
        actions = self.actions
        if actions is not None:
            actions = check_candidates(actions, space, len(x))
        chosen = self.chosen_contexts
        if chosen is not None:
            chosen = as_rows(chosen, space.context_bounds, "c", "context_bounds")
            if len(chosen) != len(x):
                raise BotorchTensorDimensionError(
                    f"There are {len(x)} decisions and {len(chosen)} chosen contexts."
                )
            check_values(chosen, space.context_bounds, space.context_values, "c")
            chosen = chosen.to(space.bounds)
        # Copies: later changes of these tensors by the user have no effect.
        return copy.deepcopy(
            Ask(
                x=x,
                actions=actions,
                this_round=self.this_round,
                chosen_contexts=chosen,
            )
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckedTell:
    """What happened was told: contexts, outcomes, or that there will be none.

    Attributes:
        x: The executed decisions, ``m x d_x``.
        c: The contexts, ``m x d_c``; None if the trials failed before one was seen.
        y: The outcomes, ``m``; None if they are still out, or never come.
        y_variance: The variances of their noise, ``m``; None if not known.
        constraints: What was measured of the outcome constraints, ``m x k``, or None.
        failed: Whether there will be no outcomes.
        closes_pending: False for data from elsewhere.
        error: Why there will be none, if that is known.
    """

    x: Tensor
    c: Tensor | None
    y: Tensor | None = None
    y_variance: Tensor | None = None
    constraints: Tensor | None = None
    failed: bool = False
    closes_pending: bool = True
    error: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Tell:
    """The arguments of ``RobustOptimizer.tell``, not checked yet.

    Attributes:
        x: The executed decisions, ``d_x`` or ``m x d_x``.
        c: The contexts, ``d_c`` or ``m x d_c``; None if the trials failed before one
            was seen.
        y: The outcomes, a number, ``m`` or ``m x 1``, or None.
        y_variance: The variances of their noise, the same, or None.
        constraints: Values of the outcome constraints, or None.
        failed: Whether there will be no outcomes.
        closes_pending: False for data from elsewhere.
        error: Why there will be no outcomes, if that is known.
        outcome: How the user knows the outcome, for error messages.
    """

    x: Tensor
    c: Tensor | None
    y: Tensor | float | None = None
    y_variance: Tensor | float | None = None
    constraints: Tensor | float | None = None
    failed: bool = False
    closes_pending: bool = True
    error: str | None = None
    outcome: str = "y"

    def within(
        self, configuration: Configuration, earlier: OutcomeRange | None = None
    ) -> CheckedTell:
        """The same as a run keeps it.

        Args:
            configuration: That of the run.
            earlier: The outcomes so far, which say whether a model can take these;
                None for a stored event, which was checked when it was told.

        Raises:
            InputDataError: It is nothing that can be told to such a run.
            BotorchTensorDimensionError: Shapes that do not match.
            UnsupportedError: The recipe does not use variances or constraints.
        """
        self._check_together()
        space, box = configuration.space, configuration.space.context_bounds
        like = space.bounds
        x = as_rows(self.x, space.bounds, "x", "bounds")
        check_values(x, space.bounds, space.values, "x")
        c = None
        if self.c is not None:
            c = as_rows(self.c, configuration.context_bounds, "c", "context_bounds")
            check_values(c, box, space.context_values, "c")
            if len(x) != len(c):
                raise BotorchTensorDimensionError(
                    f"`x` and `c` must have one row per trial, got {len(x)} and "
                    f"{len(c)}."
                )
            c = space.snap_contexts(c.to(like).clamp(*box))
        num = len(x)
        y = None if self.y is None else as_outcomes(self.y, num)
        if y is not None and earlier is not None:
            check_can_be_modelled(y, like.dtype, earlier, self.outcome)
        variance = constraints = None
        if self.y_variance is not None:
            variance = as_variances(self.y_variance, num)
            configuration.algorithm.check_uses_contexts("y_variance")
        if self.constraints is not None:
            constraints = as_constraints(self.constraints, num)
            if earlier is not None:
                for column in constraints.T:
                    check_can_be_modelled(column, like.dtype, name="constraints")
            configuration.algorithm.check_takes_constraints()
        return CheckedTell(
            x=space.snap(x.to(like).clamp(*like)),
            c=c,
            y=_copied(y, like),
            y_variance=_copied(variance, like),
            constraints=_copied(constraints, like),
            failed=self.failed,
            closes_pending=self.closes_pending,
            error=self.error,
        )

    def _check_together(self) -> None:
        """Check that the arguments of one ``tell`` fit each other."""
        for name in ("closes_pending", "failed"):
            check_flag(getattr(self, name), name)
        if self.failed and self.y is not None:
            raise InputDataError(
                "Got `y` and `failed=True`: a failed trial has no outcome. Leave one "
                "out."
            )
        if self.error is not None and not (self.failed and isinstance(self.error, str)):
            raise InputDataError(
                "`error` must be a text that says why trials have failed, together "
                f"with `failed=True`, got {self.error!r:.80}."
            )
        if self.c is None and (not self.failed or self.constraints is not None):
            raise InputDataError(
                "Got no `c`: only a trial that failed before its context was seen has "
                "none, and nothing was measured of it. Tell the context, or pass "
                "`failed=True` without `constraints`."
            )
        if self.y is None and self.y_variance is not None:
            raise InputDataError(
                "Got `y_variance` without `y`: it belongs to an outcome. Tell both "
                "together."
            )
        if self.y is None and self.constraints is not None and not self.failed:
            raise InputDataError(
                "Got `constraints` without `y`: they are told when a trial is over. "
                "Tell them together with the outcome, or with `failed=True` if there "
                "will be none."
            )


@dataclass(frozen=True)
class Withdraw:
    """What was told of a trial, or asked, was taken back.

    Attributes:
        trial: Its number.
    """

    trial: int

    def within(self, configuration: Configuration) -> Withdraw:
        """The same as a run keeps it.

        Raises:
            InputDataError: It is no number of a trial.
        """
        return Withdraw(check_count(self.trial, "trial", 0))


def _copied(values: Tensor | None, like: Tensor) -> Tensor | None:
    """The numbers in the dtype of a run; copied, so later changes have no effect."""
    return None if values is None else values.to(like, copy=True)


Event: TypeAlias = Ask | CheckedTell | Withdraw
"""Whatever can happen to a run, checked."""
