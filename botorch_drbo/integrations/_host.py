"""What every host needs: its record as a run of ours, and a decision with its names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from threading import Lock
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import did_you_mean
from botorch_drbo.algorithms import Algorithm, Recommendation, Round
from botorch_drbo.optimizer.checks import as_algorithm, check_can_be_modelled
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.decisions import next_decisions
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.trials import Trial

# GPyTorch's settings and torch's default dtype belong to the process, not to a thread.
ONE_AT_A_TIME = Lock()

_DIRECTIONS = ("minimize", "minimise", "maximize", "maximise")


@dataclass(frozen=True, eq=False, repr=False)
class RobustDecision:
    r"""The decision to implement now, by its names, and what to expect of it.

    Attributes:
        params: The decision, in your units.
        contexts: The names of the contexts.
        details: Expected and worst-case value in your sign, and the contexts of the
            worst case, in your units. See ``Recommendation`` for what they are.
    """

    params: Mapping[str, Any]
    contexts: tuple[str, ...]
    details: Recommendation

    @property
    def expected_value(self) -> float:
        """The expectation over the contexts seen, or over the reference."""
        return self.details.expected_value

    @property
    def worst_case_value(self) -> float:
        """The same under the worst distribution that the recipe guards against."""
        return self.details.worst_case_value

    def __str__(self) -> str:
        """The decision, its values, what hurts it, in about six lines."""
        return self.details.report(list(self.params), self.contexts)

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return (
            f"RobustDecision(params={dict(self.params)}, "
            f"expected_value={self.expected_value:.6g}, "
            f"worst_case_value={self.worst_case_value:.6g})"
        )


def recipe(
    algorithm: str | Algorithm, options: dict[str, Any], arguments: Sequence[str]
) -> Algorithm:
    """A recipe by name and options, or a ready-made one.

    Args:
        algorithm: A name or a recipe.
        options: Those of a named recipe.
        arguments: What the host's class itself takes, for the error message.
    """
    for name in _DIRECTIONS:
        if name in options:
            raise InputDataError(
                f"`{name}` is no option here: the host's own problem says whether low "
                "or high outcomes are good."
            )
    return as_algorithm(algorithm, options, arguments)


def trial_of(
    number: int, x: Tensor, c: Tensor, y: float | None, *, pending: bool = False
) -> Trial:
    """A trial of a host; NaN in ``x`` and ``c`` is what nobody knows.

    Args:
        number: Counts from 0.
        x: The decision, ``d_x``.
        c: The context as far as it is known, ``d_c``.
        y: The outcome, or None.
        pending: Whether the outcome is out.
    """
    status = "pending" if pending else "failed" if y is None else "complete"
    seen = not c.isnan().any()
    known = None if seen or c.isnan().all() else c
    return Trial(
        number=number,
        x=x,
        c=c if seen else None,
        y=y,
        status=status,
        known_context=known,
        x_eps=0.0,
    )


def run_of(
    configuration: Configuration, trials: Sequence[Trial], num_asked: int
) -> Run:
    """The run that has had these trials.

    Args:
        configuration: Recipe, boxes, seed.
        trials: Their numbers count from 0.
        num_asked: How many decisions were asked; it decides the next random draws.
    """
    complete = [trial.y for trial in trials if trial.y is not None]
    like = configuration.space.bounds
    check_can_be_modelled(like.new_tensor(complete), like.new_tensor([]))
    run = Run(configuration)
    run.ledger = Ledger(
        space=configuration.space,
        trials=tuple(trials),
        seen=tuple(trial.number for trial in trials if trial.c is not None),
        complete=tuple(trial.number for trial in trials if trial.y is not None),
        num_asks=num_asked,
        num_asked=num_asked,
    )
    return run


def decisions(run: Run, q: int, this_round: Round) -> Tensor:
    """The next ``q x d_x``."""
    x, _, _ = next_decisions(run, q, None, this_round, choose_context=False)
    return x


def number_within(value: object, low: float, high: float, what: str) -> float:
    """A finite number between bounds, or an error that names ``what``.

    Args:
        value: What the host has recorded.
        low: The lower bound.
        high: The upper bound.
        what: For the message, such as "'demand' of trial 3".
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputDataError(f"{what} must be a number, got {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise InputDataError(f"{what} must be finite, got {number}.")
    if not low <= number <= high:
        raise InputDataError(
            f"{what} is {number}, outside its bounds [{low}, {high}]. Correct it, "
            "or widen the bounds: they are all that the model and the worst case know."
        )
    return number


def check_names(
    given: Mapping[str, object], known: Sequence[str], what: str, *, all_of_them: bool
) -> None:
    """Refuse unknown names, and missing ones if ``all_of_them`` are needed."""
    for name in given:
        if name not in known:
            raise InputDataError(
                f"There is no {what} {name!r}.{did_you_mean(name, known)} They are "
                f"{list(known)}."
            )
    missing = [name for name in known if name not in given]
    if all_of_them and missing:
        raise InputDataError(f"The {what}s {missing} are missing. Give each a number.")


def row(values: Mapping[str, float], names: Sequence[str]) -> Tensor:
    """One number for each name, NaN where there is none."""
    return torch.tensor([values.get(n, torch.nan) for n in names], dtype=torch.double)
