"""The configuration of a run (recipe, boxes, seed) as objects and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_choice, check_count, check_flag
from botorch_drbo.codec import decode, encode
from botorch_drbo.codec.objects import decode_arguments
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import NamedObjective
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.round import contexts_within
from botorch_drbo.recipes import Recipe, recipe_from_dict
from botorch_drbo.recipes.options import NO_FUNCTIONS, OwnFunctions
from botorch_drbo.recipes.registry import check_can_be_saved
from botorch_drbo.recommendation.price import check_give_up_unit
from botorch_drbo.space import Space
from botorch_drbo.space.table import to_tensor, weight_column, with_weights

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

_PLAIN = ("seed", "maximize", "num_initial", "initial_design", "perturbation")
INITIAL_DESIGNS = ("sobol", "sobol_joint")
UNIFORM = "uniform"
"""A scope: each combination of the levels of the contexts, with one weight."""
Scope: TypeAlias = "ContextSet | pd.DataFrame | Mapping[str, Any] | Tensor | str"
"""The contexts that a decision must serve: a set, a table, or ``"uniform"``."""

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer", bound="DataclassInstance")


@dataclass(frozen=True)
class Outcome:
    """What is measured of a decision; recipes see it so that high is good."""

    # Whether high values are good for the user too.
    maximize: bool
    # That of the user.
    name: str = "value"

    def told(self, value: _Value) -> _Value:
        """A value in the other sign: from the user's to that of recipes, or back."""
        if self.maximize or value is None:
            return value
        turned: Any = value
        return turned.mirrored() if hasattr(turned, "mirrored") else -turned

    def turned(self, answer: _Answer, *fields: str) -> _Answer:
        """The same of some fields of an answer."""
        values = {name: self.told(getattr(answer, name)) for name in fields}
        return replace(answer, **values)


class Configuration:
    """All that a run depends on beside its events.

    Shapes: ``bounds``: ``2 x d_x``, ``context_bounds``: ``2 x d_c``.
    """

    def __init__(
        self,
        algorithm: Recipe,
        bounds: Tensor | Space,
        context_bounds: Tensor | None,
        *,
        seed: int,
        maximize: bool,
        num_initial: int | None,
        initial_design: str = "sobol",
        perturbation: bool = False,
        scope: Scope | None = None,
    ) -> None:
        self.named = bounds if isinstance(bounds, Space) else None
        space = None
        if isinstance(bounds, Space):
            if context_bounds is not None:
                raise InputDataError(
                    "Got a Space and `context_bounds`: a Space says what the contexts "
                    "are. Leave out `context_bounds`."
                )
            space = bounds.search_space
            bounds, context_bounds = space.bounds, space.context_bounds
        if context_bounds is None:
            raise InputDataError(
                "`context_bounds` is missing. Give both bounds, or make a "
                "NamedOptimizer of a Space of named variables."
            )
        check_bounds(bounds, "bounds")
        check_bounds(context_bounds, "context_bounds")
        if bounds.dtype not in (torch.float32, torch.float64):
            raise InputDataError(
                f"`bounds` must be float64 or float32, got {bounds.dtype}."
            )
        check_flag(maximize, "maximize")
        self.space = space or SearchSpace(
            bounds.detach().clone(), context_bounds.detach().clone().to(bounds)
        )
        check_flag(perturbation, "perturbation")
        self.perturbation = perturbation
        if perturbation:
            self.space = replace(self.space, perturbation=True)
        # What a journal keeps: the scope is an entry of its own.
        self._without_scope, self.scope = algorithm, None
        if scope is not None:
            self.scope = read_scope(scope, self.space, self.named)
            algorithm = _serving(algorithm, self.scope)
        self.algorithm = algorithm
        algorithm.check_space(self.space)
        algorithm.check_radius(self.space)
        self.context_bounds = context_bounds.detach().to(bounds.device)  # own dtype
        self.maximize = maximize
        names = () if self.named is None else (self.named.outcome,)
        self.outcome = Outcome(maximize, *names)
        self.check_decided(algorithm)
        self.seed = check_count(seed, "seed", 0)
        if num_initial is None:
            num_initial = 2 * (self.space.d_x + 1)
        self.num_initial = check_count(num_initial, "num_initial", 0)
        check_choice(initial_design, "initial_design", INITIAL_DESIGNS)
        self.initial_design = initial_design

    def check_decided(self, algorithm: Recipe) -> None:
        """Refuse a price in another unit, and a danger of other contexts."""
        check_give_up_unit(algorithm.options.get("give_up"), self.outcome.name)
        named = algorithm.options.get("objective")
        if isinstance(named, NamedObjective):
            named.check_direction(maximize=self.maximize)
        against = algorithm.options.get("against")
        if against is not None:
            against.check_space(self.space)

    def to_dict(self) -> dict[str, Any]:
        """Describe it in plain JSON types, exactly."""
        check_can_be_saved(self.algorithm)
        boxes = (
            {"space": self.named}
            if self.named is not None
            else {"bounds": self.space.bounds, "context_bounds": self.context_bounds}
        )
        return {
            "algorithm": self._without_scope.to_dict(),
            **{name: encode(value, name) for name, value in boxes.items()},
            **({} if self.scope is None else {"scope": encode(self.scope, "scope")}),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    @classmethod
    def from_dict(
        cls,
        config: object,
        device: torch.device | str,
        named: Space | None = None,
        functions: OwnFunctions = NO_FUNCTIONS,
    ) -> Configuration:
        """Read what ``to_dict`` has written."""
        if not isinstance(config, dict):
            raise InputDataError("it is no JSON object.")
        boxes = ("bounds", "context_bounds") if "bounds" in config else ("space",)
        entries = {"algorithm", *boxes, *_PLAIN, *({"scope"} & set(config))}
        if set(config) != entries:
            raise InputDataError(
                f"it has the entries {sorted(entries)}; unknown or missing: "
                f"{sorted(set(config) ^ entries)}. It was damaged, or written by a "
                "later version of this library."
            )
        algorithm = recipe_from_dict(
            config["algorithm"], functions.model, functions.objective
        )
        plain = {name: config[name] for name in _PLAIN}
        check_count(plain["num_initial"], "num_initial", 0)  # None is not stored
        if "scope" in config:
            plain["scope"] = decode(config["scope"], ContextSet, "scope")
        space = _stored_space(config.get("space"), named)
        if space is not None:
            return cls(algorithm, space, None, **plain)
        bounds, context_bounds = (
            decode(config[name], Tensor, name).to(device) for name in boxes
        )
        return cls(algorithm, bounds, context_bounds, **plain)


def read_scope(given: Scope, space: SearchSpace, named: Space | None) -> ContextSet:
    """The contexts that a decision must serve, with their weights."""
    if isinstance(given, str):
        levels = space.listed_contexts
        if levels is None and given == UNIFORM:
            raise InputDataError(
                f"`scope` is {UNIFORM!r}, every combination of the levels, and a "
                "context takes any number of an interval, or there are too many. Give "
                "a table of the contexts, a row for each, or a ContextSet."
            )
        if given != UNIFORM or levels is None:
            raise InputDataError(
                f"`scope` is {given!r}: the one word for a scope is {UNIFORM!r}, every "
                "combination of the levels where each context is a category or takes "
                "a few values. Give a table of the contexts, a row for each, or a "
                "ContextSet."
            )
        return ContextSet(levels)
    if isinstance(given, Tensor) and named is None:
        given = ContextSet(given)
    if isinstance(given, ContextSet):
        return contexts_within(given, space, "scope")
    if named is None:
        raise InputDataError(
            f"`scope` must be a ContextSet or a tensor of contexts, got "
            f"{type(given).__name__}. Tables are for a NamedOptimizer."
        )
    weights = None
    labelled = isinstance(given, Mapping) or hasattr(given, "columns")
    column = weight_column(given if labelled else (), named.contexts)
    if column is not None:
        given, weights = with_weights(given, column, "scope")
    points = to_tensor(given, named.contexts, "scope")
    if not len(points):
        raise InputDataError(
            "`scope` has no rows. Give a row for each context that the decision must "
            "serve."
        )
    return ContextSet(points, weights)


def _serving(algorithm: Recipe, scope: ContextSet) -> Recipe:
    """The algorithm with a scope in the place of the contexts seen."""
    algorithm.check_uses_contexts("scope")
    if "reference" not in algorithm.options:
        raise UnsupportedError(
            f"`{algorithm.name}` takes no `scope`. Recipes that do are for instance "
            "`erbo`, `ei_integral` and `dro`."
        )
    if algorithm.options["reference"] is not None:
        raise InputDataError(
            "Got `scope` and `reference`: both say which contexts count. Leave one out."
        )
    if algorithm.options.get("half_life") is not None:
        raise InputDataError(
            "Got `scope` and `half_life`: a half-life weighs the contexts seen, and a "
            "scope takes their place. Leave one out."
        )
    return algorithm.with_options(reference=scope)


def _stored_space(stored: object, named: Space | None) -> Space | None:
    """The space of a stored run; one that is given must be the same."""
    if named is None:
        return None if stored is None else decode(stored, Space, "space")
    if not isinstance(named, Space):
        raise InputDataError(f"`space` must be a Space, got {type(named).__name__}.")
    if stored is None:
        raise InputDataError(
            "`space` was given, but the run has no named variables. Leave it out."
        )
    then = decode_arguments(stored, Space, "space")
    for key, now in named.constructor_arguments().items():
        if encode(now, key) != encode(then.get(key), key):
            raise InputDataError(
                f"it is the journal of another problem: its {key} are "
                f"{then.get(key)}, not {now}."
            )
    return named
