"""What every host needs: its record as a run of ours, and a decision with its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, final

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import did_you_mean
from botorch_drbo.algorithms import Algorithm, Round
from botorch_drbo.optimizer.checks import as_algorithm, check_can_be_modelled
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.decisions import next_decisions, recommended
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.space import NamedRecommendation, Space, Variable
from botorch_drbo.space.variables import finite_numbers

# GPyTorch's settings and torch's default dtype belong to the process, not to a thread.
ONE_AT_A_TIME = Lock()

_DIRECTIONS = ("minimize", "minimise", "maximize", "maximise")


@final
@dataclass(frozen=True, eq=False, repr=False)
class RobustDecision:
    r"""The decision to implement now, by its names, and what to expect of it.

    Attributes:
        params: The decision, in your units.
        details: Expected and worst-case value in your sign, and the contexts of the
            worst case, in your units. See ``Recommendation`` for what they are.
    """

    params: Mapping[str, Any]
    details: NamedRecommendation

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
        return str(self.details)

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
    seen = not c.isnan().any()
    return Trial(
        number=number,
        x=x,
        c=c if seen else None,
        y=y,
        status="pending" if pending else "failed" if y is None else "complete",
        known_context=None if seen else known(c),
        x_eps=0.0,
    )


def known(context: Tensor) -> Tensor | None:
    """A context that is known in some column, ``d_c``; None if it is in none."""
    return None if context.isnan().all() else context


def run_of(configuration: Configuration, trials: Sequence[Trial], asked: int) -> Run:
    """The run that has had these trials.

    Args:
        configuration: Recipe, space, seed.
        trials: Their numbers count from 0.
        asked: How many decisions were asked; it decides the next random draws.
    """
    complete = [trial.y for trial in trials if trial.y is not None]
    like = configuration.space.bounds
    check_can_be_modelled(like.new_tensor(complete), like.dtype)
    run = Run(configuration)
    run.ledger = Ledger(configuration.space, trials, num_asked=asked)
    return run


def decisions(run: Run, q: int, this_round: Round) -> Tensor:
    """The next ``q x d_x``."""
    x, _, _ = next_decisions(run, q, None, this_round, choose_context=False)
    return x


def recommendation(
    run: Run, space: Space, this_round: Round
) -> tuple[Tensor, NamedRecommendation]:
    """The decision to implement now: as the model sees it, ``d_x``, and by name."""
    best = recommended(run, None, this_round)
    return best.x, NamedRecommendation.of(best, space)


def encode(
    values: Mapping[str, object], variables: Mapping[str, Variable], owner: str
) -> Tensor:
    """What a model sees of named values, ``d``; NaN where there is none.

    Args:
        values: In the user's units.
        variables: The columns.
        owner: Whose they are, for the error message, such as "trial 3".
    """
    numbers = torch.full((len(variables),), torch.nan, dtype=torch.double)
    for j, (name, variable) in enumerate(variables.items()):
        if name in values:
            cell = f"{name!r} of {owner}"
            numbers[j] = variable.encode([values[name]], lambda _, c=cell: c)[0]
    return numbers


def outcome(value: object, what: str) -> float:
    """A finite number, or an error that names ``what``."""
    return finite_numbers([value], lambda _: what).item()


def check_names(
    given: Mapping[str, object], names: Sequence[str], what: str, *, all_of_them: bool
) -> None:
    """Refuse unknown names, and missing ones if ``all_of_them`` are needed."""
    for name in given:
        if name not in names:
            raise InputDataError(
                f"There is no {what} {name!r}.{did_you_mean(name, names)} They are "
                f"{list(names)}."
            )
    missing = [name for name in names if name not in given]
    if all_of_them and missing:
        raise InputDataError(f"The {what}s {missing} are missing. Give each a value.")
