"""The state that a recipe decides in, and what was fitted to it: each model once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.model_check import ModelCheck
from botorch_drbo.recommendation.promise import Later
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.by_name import GivenModel
from botorch_drbo.surrogate.cross_validation import HeldOut, cross_validated
from botorch_drbo.surrogate.fit import (
    fit_constraints,
    fit_outcomes,
    with_known_context,
)

_Made = TypeVar("_Made")


class _Fit(NamedTuple):
    """What was made, for whom, and torch's generators before and after."""

    made: Any
    owner: object
    before: list[Tensor]
    after: list[Tensor]


@dataclass(frozen=True, eq=False)
class FittedState:
    """A history and its boxes before a decision, with all that was fitted to them.

    States that ``replace`` makes of one share its fits: they may differ in the seed and
    in what is known about the context, but not in the outcomes.
    """

    # What has been observed, to be maximised.
    history: History
    # The boxes of decisions and contexts.
    space: SearchSpace
    # Determines all random draws.
    seed: int = 0
    _fits: dict[tuple[str, int], _Fit] = field(default_factory=dict, repr=False)

    @property
    def failed(self) -> Tensor:
        """Decisions that are not proposed while there are others, ``m x d_x``."""
        failed = self.history.failed
        return self.space.bounds[:0] if failed is None else failed

    def once(self, kind: str, owner: object, make: Callable[[], _Made]) -> _Made:
        r"""What a function makes, which is called once for each owner.

        A fit that draws random numbers is another one under another seed. It is made
        again unless the generators are as they were, and then they go on as if it had
        been: an answer does not depend on the questions before it.
        """
        now = self._generators()
        known = self._fits.get((kind, id(owner)))
        if known is not None:
            drew = not _equal(known.before, known.after)
            if not drew or _equal(known.before, now):
                if drew:
                    self._set_generators(known.after)
                return known.made
        made = make()
        # The owner is kept, so that its identity is not given to another one.
        self._fits[kind, id(owner)] = _Fit(made, owner, now, self._generators())
        return made

    def model(self, surrogate: Surrogate, *, uses_contexts: bool = True) -> Model:
        r"""The model of ``[x, c]``, constant in what is known; or one of ``x``."""
        space = replace(self.space, known_context=None)
        # Surrogates of a user's function are made anew, the function is not.
        fitted = self.once(
            "joint" if uses_contexts else "decisions",
            surrogate.function if isinstance(surrogate, GivenModel) else surrogate,
            lambda: fit_outcomes(
                self.history, space, surrogate, uses_contexts=uses_contexts
            ),
        )
        return with_known_context(fitted, self.space) if uses_contexts else fitted

    def constraints(self) -> ModelListGP | None:
        """A model of ``[x, c]`` for each outcome constraint; None without any."""
        space = replace(self.space, known_context=None)
        return self.once(
            "constraints", None, lambda: fit_constraints(self.history, space)
        )

    def check(
        self, model: Model, surrogate: Surrogate, asked: ContextSet
    ) -> ModelCheck:
        """Check a model of ``[x, c]`` for some contexts; the folds are fitted once."""

        def validate(surrogate: Surrogate, data: ModelData) -> HeldOut | None:
            return self.once(
                "folds", surrogate, lambda: cross_validated(surrogate, data)
            )

        return ModelCheck.of(
            model, surrogate, self.history, self.space, asked, validate=validate
        )

    def check_if_closed(
        self, model: Model, surrogate: Surrogate, asked: ContextSet
    ) -> ModelCheck | None:
        """The same; None of a model that ``check`` refuses, of which reports say so."""
        try:
            return self.check(model, surrogate, asked)
        except UnsupportedError:
            return None

    def later(self, make: Callable[[], _Made]) -> Later[_Made]:
        """What a function makes when it is read, as if it were called now."""
        drawn = self._generators()

        def made() -> _Made:
            with isolated_rng(self.seed, self.space.bounds.device):
                self._set_generators(drawn)
                return make()

        return Later(made)

    def _generators(self) -> list[Tensor]:
        """The states of those that ``isolated_rng`` seeds."""
        device = self.space.bounds.device
        states = [torch.get_rng_state()]
        if device.type == "cuda":
            states.append(torch.cuda.get_rng_state(device))
        return states

    def _set_generators(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for state in states[1:]:
            torch.cuda.set_rng_state(state, self.space.bounds.device)


def _equal(some: list[Tensor], others: list[Tensor]) -> bool:
    return all(map(torch.equal, some, others))
