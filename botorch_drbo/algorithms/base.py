r"""The contract of a recipe: a history goes in, decisions come out.

``Algorithm`` is what the optimizer knows. ``ModelBasedAlgorithm`` is the usual case:
fit a Gaussian process, build an acquisition function, optimise it. A new recipe is one
subclass in a file of its own, and one line in the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo._validation import check_inside
from botorch_drbo.algorithms.candidates import check_candidates
from botorch_drbo.algorithms.data import History, Recommendation, SearchSpace
from botorch_drbo.algorithms.hyperparameters import FixedHyperparameters
from botorch_drbo.algorithms.randomness import isolated_rng
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ambiguity_set_from_dict,
    ambiguity_set_to_dict,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.schedules import Rule, schedule_from_dict

# Said to those whose recipe cannot; a test compares it with the registry.
_TAKE_CATEGORIES = (
    "dro",
    "wdrbo_exact",
    "erbo",
    "ts_erbo",
    "ei_erbo",
    "ts_wdrbo",
    "ei_wdrbo",
    "ts_bocu",
    "ucb_bocu_1",
    "ucb_bocu_2",
    "ucb_so",
    "ucb_ro",
    "gp_ucb",
    "ec_gp_ucb",
    "random",
)

_SCHEDULE, _CONTEXT_SET = "__schedule__", "__context_set__"
_AMBIGUITY_SET, _HYPERPARAMETERS = "__ambiguity_set__", "__hyperparameters__"


@dataclass(frozen=True, kw_only=True, eq=False)
class Algorithm(ABC):
    r"""A recipe of one published method; its dataclass fields are its options.

    Both methods are deterministic in their arguments and ``seed``, and leave the
    caller's random number generators as they were.
    """

    name: ClassVar[str]
    """The key in the registry."""
    needs_data: ClassVar[bool] = True
    """Whether ``propose`` needs at least one outcome."""
    may_repeat: ClassVar[bool] = False
    """Whether a batch may hold a decision twice, or one that is pending."""
    context_order: ClassVar[str | None] = None
    """What needs contexts that are numbers, in words; None if categories will do."""
    needs_box: ClassVar[bool] = False
    """Whether decisions have to fill a box: none discrete, and no constraints."""

    def propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int = 1,
        X_pending: Tensor | None = None,
        seed: int = 0,
        candidates: Tensor | None = None,
    ) -> Tensor:
        r"""Propose the next decisions.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            q: How many decisions.
            X_pending: Decisions on their way that have no outcome yet, ``m x d_x``.
            seed: Decides every random draw.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.

        Returns:
            Decisions inside ``space.bounds``, ``q x d_x``, in its dtype. With
            ``candidates`` they are different rows of the list, and none that is
            pending as long as there are others, unless the recipe ``may_repeat``.

        Raises:
            InputDataError: The recipe needs data and there is none, ``q`` is not a
                positive integer, or the list is empty, too short, or leaves the box.
            BotorchTensorDimensionError: History, list and space do not fit.
        """
        self._check(history, space, self.needs_data)
        if isinstance(q, bool) or not isinstance(q, int) or q < 1:
            raise InputDataError(f"`q` must be a positive integer, got {q!r}.")
        if X_pending is not None and X_pending.shape[0] == 0:
            X_pending = None
        if X_pending is not None:
            check_inside(X_pending, space.bounds, "X_pending", "bounds")
        if candidates is not None:
            different = 1 if self.may_repeat else q
            candidates = check_candidates(candidates, space, different)
        with isolated_rng(seed, space.bounds.device):
            x = self._propose(
                history,
                space,
                q=q,
                X_pending=X_pending,
                seed=seed,
                candidates=candidates,
            ).detach()
        if candidates is not None:
            return x
        # L-BFGS-B may leave the box by a rounding error.
        return x.clamp(space.bounds[0], space.bounds[1])

    def recommend(
        self,
        history: History,
        space: SearchSpace,
        *,
        seed: int = 0,
        candidates: Tensor | None = None,
    ) -> Recommendation:
        r"""Recommend the decision with the best objective on the posterior mean.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.

        Returns:
            The decision and its values, in the sign of ``history.Y``.

        Raises:
            InputDataError: There is no outcome yet, or the list is empty or leaves the
                box.
            BotorchTensorDimensionError: History, list and space do not fit.
        """
        self._check(history, space, needs_data=True)
        if candidates is not None:
            candidates = check_candidates(candidates, space)
        with isolated_rng(seed, space.bounds.device):
            return self._recommend(history, space, seed=seed, candidates=candidates)

    @abstractmethod
    def _propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int,
        X_pending: Tensor | None,
        seed: int,
        candidates: Tensor | None,
    ) -> Tensor:
        """Propose ``q x d_x`` decisions, rows of the list; runs under ``seed``."""

    @abstractmethod
    def _recommend(
        self,
        history: History,
        space: SearchSpace,
        *,
        seed: int,
        candidates: Tensor | None,
    ) -> Recommendation:
        """Recommend a decision, a row of the list; runs under ``seed``."""

    def check_space(self, space: SearchSpace) -> None:
        r"""Refuse a space that the recipe cannot search.

        Args:
            space: The decisions and the contexts.

        Raises:
            UnsupportedError: Contexts are categories and the recipe needs numbers, or
                decisions fill no box and the recipe needs one.
        """
        if space.context_categories and self.context_order is not None:
            raise UnsupportedError(
                f"`{self.name}` needs contexts that are numbers: {self.context_order}, "
                "and categories know no order. These recipes take them: "
                f"{', '.join(_TAKE_CATEGORIES)}."
            )
        if not space.is_box and self.needs_box:
            raise UnsupportedError(
                f"`{self.name}` needs decisions that fill a box, without discrete ones "
                "and without constraints. Take another recipe, for example "
                "`ec_gp_ucb`, or give it a box and the decisions as `candidates`."
            )

    def _check(self, history: History, space: SearchSpace, needs_data: bool) -> None:
        self.check_space(space)
        if history.X.shape[1] != space.d_x or history.C.shape[1] != space.d_c:
            raise BotorchTensorDimensionError(
                f"The history has {history.X.shape[1]} decision and "
                f"{history.C.shape[1]} context columns, the bounds have {space.d_x} "
                f"and {space.d_c}."
            )
        if needs_data and history.t == 0:
            raise InputDataError(
                f"`{self.name}` fits a model and there is no outcome yet: tell at "
                "least one outcome first, or let the optimizer begin with a design "
                "(`num_initial`)."
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Describe the recipe in plain JSON types, exactly.

        Returns:
            ``{"name": ..., "options": {...}}``; ``algorithm_from_dict`` is the inverse.
        """
        options = {f.name: _encode(getattr(self, f.name), f.name) for f in fields(self)}
        return {"name": self.name, "options": options}


def decode_options(options: dict[str, Any]) -> dict[str, Any]:
    """Turn the options of ``Algorithm.to_dict`` back into objects."""
    return {name: _decode(value) for name, value in options.items()}


def _encode(value: object, name: str) -> Any:
    if isinstance(value, Rule):
        return {_SCHEDULE: value.to_dict()}
    if isinstance(value, ContextSet):
        return {_CONTEXT_SET: value.to_dict()}
    if isinstance(value, AmbiguitySet):
        return {_AMBIGUITY_SET: ambiguity_set_to_dict(value)}
    if isinstance(value, FixedHyperparameters):
        return {_HYPERPARAMETERS: value.to_dict()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):  # comes back as a list: the recipe makes a tuple of it
        return [_encode(entry, name) for entry in value]
    raise InputDataError(
        f"The option `{name}` of type {type(value).__name__} cannot be saved. Use a "
        "number, a string, a tuple, a Schedule, a ContextSet, an AmbiguitySet or "
        "FixedHyperparameters."
    )


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and _SCHEDULE in value:
        return schedule_from_dict(value[_SCHEDULE])
    if isinstance(value, dict) and _CONTEXT_SET in value:
        return ContextSet.from_dict(value[_CONTEXT_SET])
    if isinstance(value, dict) and _AMBIGUITY_SET in value:
        return ambiguity_set_from_dict(value[_AMBIGUITY_SET])
    if isinstance(value, dict) and _HYPERPARAMETERS in value:
        return FixedHyperparameters.from_dict(value[_HYPERPARAMETERS])
    return value
