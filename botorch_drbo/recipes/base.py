r"""The contract of a recipe: a history goes in, decisions come out.

``Recipe`` is what the optimizer knows. ``ModelBasedRecipe`` is the usual case:
fit a Gaussian process, build an acquisition function, optimise it. A new recipe is one
subclass in a file of its own, and one line in the registry.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_count, check_inside
from botorch_drbo.adversaries import Adversary
from botorch_drbo.codec import encode
from botorch_drbo.codec.objects import tag_of
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import History, Round
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.description import HelpText, help_text, method_text
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.options import (
    names_of_functions,
    option_values,
    own_values,
    parts_of,
    with_options,
)
from botorch_drbo.recommendation.recommendation import Recommendation
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.search.candidates import check_candidates
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE

# Said to those whose recipe cannot; a test compares it with the registry.
_TAKE_CATEGORIES = (
    "dro",
    "wdrbo_exact",
    "mean_shift",
    "contamination",
    "erbo",
    "edrbo",
    "ts_erbo",
    "ei_erbo",
    "ei_integral",
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

_ROUNDED_UP = 1.0 + 1e-6


class Judge(Protocol):
    """What recommends, under the seed of the state."""

    @abstractmethod
    def judging_surrogate(self) -> Surrogate:
        """The surrogate of the model that evaluates recommendations."""

    @abstractmethod
    def recommendation(
        self, state: FittedState, candidates: Tensor | None
    ) -> Recommendation:
        """Recommend a decision, a row of the list."""

    @abstractmethod
    def decision(
        self, model: Model, constraints: Model | None, state: FittedState
    ) -> Tensor:
        """Recommend ``d_x`` by models that are fitted."""

    @abstractmethod
    def informative_contexts(
        self, state: FittedState, x: Tensor, pending: Tensor, taken: Tensor
    ) -> Tensor:
        """Choose a context for each decision, ``q x d_x`` to ``q x d_c``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(ABC):
    r"""A published method that maps a history to the next decision; its fields are its
    options.

    Both methods are deterministic in their arguments and ``seed``, and leave the
    caller's random number generators as they were.
    """

    name: ClassVar[str]
    """The key in the registry."""
    needs_data: ClassVar[bool] = True
    """Whether ``propose`` needs at least one outcome."""
    uses_contexts: ClassVar[bool] = True
    """Whether its decisions depend on the distribution of the context."""
    may_repeat: ClassVar[bool] = False
    """Whether a batch may hold a decision twice, or one that is pending."""
    context_order: ClassVar[str | None] = None
    """What needs contexts that are numbers, in words; None if categories will do."""
    needs_box: ClassVar[bool] = False
    """Whether decisions have to fill a box: none discrete, and no constraints."""
    takes_constraints: ClassVar[bool] = False
    """Whether it takes outcome constraints into account."""
    adversary: ClassVar[Adversary | None] = None
    """Which contexts, and how their distribution may change; None if nothing may."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """``help`` of a recipe is about the recipe, of a class about the class."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = HelpText(cls.__doc__)

    def describe(self) -> str:
        r"""What ``help`` shows of the recipe.

        Returns:
            The method with its formula, each option with its value and meaning, and a
            loop to copy, in reStructuredText.
        """
        return help_text(self, self.name, self._method())

    def _method(self) -> str:
        """What it does: the docstring of its class."""
        return method_text(type(self))

    @property
    def default_surrogate(self) -> str:
        """The name of the surrogate if no option chooses one."""
        return DEFAULT_SURROGATE

    @property
    def options(self) -> dict[str, Any]:
        """The values of all options by name, those of the recipe's parts with them."""
        return option_values(self)

    def with_options(self, **options: Any) -> Self:
        r"""The same recipe with other options.

        Args:
            options: Values by name. ``adversary`` and ``policy``, of a recipe that has
                them, are names or objects, and come with their own defaults.

        Returns:
            A new recipe.

        Raises:
            InputDataError: An unknown option, or a value outside its range.
        """
        return with_options(self, options)

    def propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int = 1,
        X_pending: Tensor | None = None,
        seed: int = 0,
        candidates: Tensor | None = None,
        this_round: Round | None = None,
    ) -> Tensor:
        r"""Propose the next decisions.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            q: How many decisions.
            X_pending: Pending decisions, without an outcome yet, ``m x d_x``.
            seed: Determines all random draws.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            this_round: What is known about this round only; None for nothing.

        Returns:
            Decisions inside ``space.bounds``, ``q x d_x``, in its dtype. With
            ``candidates`` they are different rows of the list, and none that is
            pending as long as there are others, unless the recipe ``may_repeat``. None
            is in ``history.failed`` as long as there are others.

        Raises:
            InputDataError: The recipe needs data and there is none, ``q`` is not a
                positive integer, or the list is empty, too short, or leaves the box.
            BotorchTensorDimensionError: History, list, round and space do not fit.
            UnsupportedError: The recipe cannot use what is known about the round.
        """
        recipe, state = self._begin(history, space, seed, this_round, decides=True)
        return recipe.proposed(state, q, X_pending, candidates)

    def proposed(
        self,
        state: FittedState,
        q: int,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> Tensor:
        """``propose`` in a state that ``given`` has returned."""
        if self.needs_data:
            self.check_has_outcomes(state.history)
        space = state.space
        check_count(q, "q")
        if X_pending is not None and not len(X_pending):
            X_pending = None
        if X_pending is not None:
            check_inside(X_pending, space.bounds, "X_pending", "bounds")
        if candidates is not None:
            different = 1 if self.may_repeat else q
            candidates = check_candidates(candidates, space, different)
        with isolated_rng(state.seed, space.bounds.device):
            x = self._propose(state, q, X_pending, candidates).detach()
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
        this_round: Round | None = None,
    ) -> Recommendation:
        r"""Recommend the decision with the best objective on the posterior mean.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            seed: Determines all random draws.
            candidates: The decisions to choose from, ``m x d_x``; None for the whole
                box.
            this_round: What is known about this round only; None for nothing.

        Returns:
            The decision and its values, in the sign of ``history.Y``.

        Raises:
            InputDataError: There is no outcome yet, or the list is empty or leaves the
                box.
            BotorchTensorDimensionError: History, list, round and space do not fit.
            UnsupportedError: The recipe cannot use what is known about the round.
        """
        recipe, state = self._begin(history, space, seed, this_round, decides=False)
        return recipe.recommended(state, candidates)

    def recommended(
        self, state: FittedState, candidates: Tensor | None
    ) -> Recommendation:
        """``recommend`` in a state that ``given`` has returned."""
        self.check_has_outcomes(state.history)
        space = state.space
        if candidates is not None:
            candidates = check_candidates(candidates, space)
        with isolated_rng(state.seed, space.bounds.device):
            best = self.judge.recommendation(state, candidates)
        if space.known_context is None:
            return best
        shown = best.context_set  # a density estimate spreads a little in each column
        known = ContextSet(space.with_known(shown.points), shown.weights)
        return replace(best, context_set=known)

    def recommend_for(
        self,
        history: History,
        space: SearchSpace,
        contexts: Tensor,
        *,
        seed: int = 0,
        this_round: Round | None = None,
    ) -> Tensor:
        r"""Recommend a decision for each of many contexts.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            contexts: ``m x d_c``; NaN where a context is not known.
            seed: Determines all random draws.
            this_round: What else is known about this round; None for nothing.

        Returns:
            Decisions, ``m x d_x``: the result of ``recommend`` for each context.

        Raises:
            InputDataError: There is no outcome yet, or a context leaves its box.
            BotorchTensorDimensionError: History, contexts and space do not fit.
            UnsupportedError: The recipe's decisions do not depend on the context.
        """
        _, state = self._begin(history, space, seed, None, decides=True)
        this_round = this_round or Round()
        rounds = [replace(this_round, known_context=c).within(space) for c in contexts]
        return self.decided_for(state, rounds)

    def decided_for(self, state: FittedState, rounds: Sequence[Round]) -> Tensor:
        """A decision for each round, ``m x d_x``; the models are fitted once."""
        given = [self.given(state, each, decides=True) for each in rounds]
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            model = state.model(self.judge.judging_surrogate())
            constraints = state.constraints()
            decisions = [
                recipe.judge.decision(model, constraints, known)
                for recipe, known in given
            ]
        return torch.stack(decisions)

    def decided_by(self, model: Model, state: FittedState) -> Tensor:
        r"""The decision ``d_x`` by a model that is already fitted.

        A recipe that models the decision only ignores it and fits its own.
        """
        if not self.uses_contexts:
            return self.recommended(state, None).x
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            return self.judge.decision(model, state.constraints(), state)

    def choose_contexts(
        self,
        history: History,
        space: SearchSpace,
        x: Tensor,
        *,
        pending: Tensor | None = None,
        seed: int = 0,
        this_round: Round | None = None,
    ) -> Tensor:
        r"""Choose where a laboratory should evaluate decisions.

        .. math:: \arg\max_c \frac{(w^\top S\, e_c)^2}{S_{cc} + \sigma_n^2}

        with ``S`` the posterior covariance of the outcomes of the decision over
        contexts, conditioned on the pairs that are pending and on the rows before it,
        and ``w`` the weights of the contexts in the worst case, over the distributions
        of the recipe's recommendations, of the pessimistic outcome
        :math:`\mu - 1.5\, \sigma`. It is the context whose outcome most reduces the
        variance of the value of the decision [Williams2000integrated]_. No pair is
        chosen twice.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            x: Decisions, ``q x d_x``.
            pending: Decisions and contexts whose outcomes are still out,
                ``p x (d_x + d_c)``.
            seed: Determines all random draws.
            this_round: What is known about this round only; None for nothing.

        Returns:
            A context for each decision, ``q x d_c``.

        Raises:
            InputDataError: There is no outcome yet, no reference distribution, or no
                context left in which a decision is not pending.
            BotorchTensorDimensionError: History, round and space do not fit.
            UnsupportedError: The recipe models the decision alone.
        """
        self.check_uses_contexts("choose_context")
        recipe, state = self._begin(history, space, seed, this_round, decides=True)
        pairs = space.joint_bounds[:0] if pending is None else pending
        return recipe.chosen_contexts(state, x, pairs, pairs)

    def chosen_contexts(
        self, state: FittedState, x: Tensor, pending: Tensor, taken: Tensor
    ) -> Tensor:
        """``choose_contexts`` in a state that ``given`` has returned.

        Shapes: ``pending``, ``taken``: pairs ``... x (d_x + d_c)``.
        """
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            chosen = self.judge.informative_contexts(state, x, pending, taken)
        return chosen.clamp(*state.space.context_bounds)

    def fitted_model(
        self, history: History, space: SearchSpace, *, seed: int = 0
    ) -> Model:
        r"""The fitted model of ``[x, c]`` that evaluates recommendations.

        Args:
            history: What has been observed, to be maximised.
            space: The boxes of decisions and contexts.
            seed: Determines all random draws.

        Returns:
            The model, in evaluation mode; its outcome is to be maximised.

        Raises:
            InputDataError: There is no outcome yet.
            BotorchTensorDimensionError: History and space do not fit.
            UnsupportedError: The recipe has no model.
        """
        _, state = self._begin(history, space, seed, None, decides=False)
        return self.judging_model(state)

    def judging_model(self, state: FittedState) -> Model:
        """``fitted_model`` in a state."""
        self.check_has_outcomes(state.history)
        with isolated_rng(state.seed, state.space.bounds.device):
            return state.model(self.judge.judging_surrogate())

    def _begin(
        self,
        history: History,
        space: SearchSpace,
        seed: int,
        this_round: Round | None,
        *,
        decides: bool,
    ) -> tuple[Self, FittedState]:
        """The recipe and the state of a round that nothing is known of but this."""
        if history.X.shape[1] != space.d_x or history.C.shape[1] != space.d_c:
            raise BotorchTensorDimensionError(
                f"The history has {history.X.shape[1]} decision and "
                f"{history.C.shape[1]} context columns, the bounds have {space.d_x} "
                f"and {space.d_c}."
            )
        this_round = Round() if this_round is None else this_round.within(space)
        return self.given(
            FittedState(history, space, seed), this_round, decides=decides
        )

    def given(
        self, state: FittedState, this_round: Round, *, decides: bool
    ) -> tuple[Self, FittedState]:
        r"""The recipe and the state with what is known about a round.

        A reference and a radius replace options of the recipe. Known columns of the
        context are inserted into every context seen and into the reference; the
        adversary cannot change them, and the model no longer depends on them.

        Args:
            state: What has been observed, and the boxes.
            this_round: What is known about this round only, within the boxes.
            decides: True for the search of a decision, False for the evaluation of one.

        Returns:
            The recipe and the state of this round.

        Raises:
            UnsupportedError: The recipe does not support the space or the constraints,
                or cannot use what is known.
        """
        space, history = state.space, state.history
        self.check_space(space)
        if history.constraints is not None:
            self.check_takes_constraints()
        options: dict[str, Any] = {}
        if this_round.context_set is not None:
            if decides:
                self.check_uses_contexts("context_set")
            options["reference"] = this_round.context_set
        if this_round.radius is not None:
            options["radius"] = this_round.radius
        lacking = set(options) - set(self.options)
        if lacking:
            raise UnsupportedError(
                f"`{self.name}` has no {' and no '.join(sorted(lacking))} that a round "
                "could change. Recipes with both are for instance `wdrbo`, `drbo_kde` "
                "and `dro`."
            )
        recipe = self.with_options(**options) if options else self
        if this_round.known_context is not None:
            self.check_uses_contexts("context")
            space = replace(space, known_context=this_round.known_context)
            seen = space.with_known(history.contexts)
            state = replace(state, history=replace(history, contexts=seen), space=space)
        if this_round.radius is not None:
            recipe.check_radius(space)
        return recipe, state

    def check_uses_contexts(self, argument: str) -> None:
        r"""Raise if the recipe ignores contexts and an argument needs them.

        Args:
            argument: What the user calls it.

        Raises:
            UnsupportedError: The recipe models the outcome of the decision alone.
        """
        if not self.uses_contexts:
            raise UnsupportedError(
                f"`{argument}` is no use to `{self.name}`: it models the outcome of "
                "the decision alone, and the context is noise to it. Use a recipe that "
                "models decision and context, such as `erbo`, `wdrbo` or `drbo_kde`."
            )

    @abstractmethod
    def _propose(
        self,
        state: FittedState,
        q: int,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> Tensor:
        """Propose ``q x d_x`` decisions, rows of the list; runs under ``seed``."""

    @property
    @abstractmethod
    def judge(self) -> Judge:
        """Who recommends: the recipe itself, or another one."""

    def check_space(self, space: SearchSpace) -> None:
        r"""Raise if the recipe cannot search a space.

        Args:
            space: The decisions and the contexts.

        Raises:
            UnsupportedError: Contexts are categories and the recipe needs numbers,
                decisions do not fill a box and the recipe needs one, or contexts
                perturb the decision and the recipe ignores contexts.
        """
        if self.adversary is not None:
            self.adversary.check_space(space)
        if space.perturbation:
            self.check_uses_contexts("perturbation")
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

    def diameter(self, space: SearchSpace) -> float | None:
        r"""The largest distance between two distributions of the context.

        Args:
            space: The decisions and the contexts.

        Returns:
            The distance in the unit of the recipe's radius; None if there is no radius
            or the distance is unknown.
        """
        adversary = self.adversary
        if adversary is None:
            return None
        if adversary.uses_model_kernel and self.options.get("model") is not None:
            return None
        return adversary.diameter(space)

    def check_radius(self, space: SearchSpace) -> None:
        r"""Warn if the radius exceeds the largest possible distance.

        Args:
            space: The decisions and the contexts.

        Warns:
            InputDataWarning: The radius exceeds the largest distance.
        """
        if self.adversary is None:
            return
        radius = self.adversary.fixed_radius
        if radius is not None:
            warn_beyond(radius, self.diameter(space), self.adversary.unit)

    def check_takes_constraints(self) -> None:
        r"""Raise if the recipe does not support outcome constraints.

        Raises:
            UnsupportedError: The recipe does not support them.
        """
        if not self.takes_constraints:
            raise UnsupportedError(
                f"`{self.name}` does not support outcome constraints: it chooses "
                "decisions by the uncertainty of the outcome alone. Use another "
                "recipe, for example `gp_ucb`, `dro` or `wdrbo`."
            )

    def check_has_outcomes(self, history: History) -> None:
        r"""Raise if there is nothing that a model could be fitted to.

        Raises:
            InputDataError: There is no outcome yet.
        """
        if history.t == 0:
            raise InputDataError(
                f"`{self.name}` fits a model and there is no outcome yet: tell at "
                "least one outcome first, or let the optimizer begin with a design "
                "(`num_initial`)."
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Describe the recipe in plain JSON types, exactly.

        Returns:
            Its name, its class, and its options; ``recipe_from_dict`` is the inverse.
            Functions are stored by name.

        Raises:
            InputDataError: An option that cannot be stored.
        """
        names = names_of_functions(self.options)
        plain = self.with_options(**dict.fromkeys(names)) if names else self
        options = {**parts_of(plain), **own_values(plain), **names}
        if "surrogate" in options and not says_how_to_model(options):
            # By name: another default of a later version does not affect a journal.
            options["surrogate"] = self.default_surrogate
        return {
            "name": self.name,
            "class": tag_of(type(self)),
            "options": {name: encode(value, name) for name, value in options.items()},
        }


def says_how_to_model(options: Mapping[str, object]) -> bool:
    """Whether one of the options says how outcomes are modelled."""
    names = ("surrogate", "model", "hyperparameters")
    return any(options.get(name) is not None for name in names)


def warn_beyond(
    radius: float, diameter: float | None, unit: str, name: str = "radius"
) -> None:
    """Warn of a radius that is larger than every distance."""
    if diameter is None or radius <= diameter * _ROUNDED_UP:
        return
    warnings.warn(
        f"`{name}` of {radius:g} is larger than the largest distance between two "
        f"distributions of the context, {diameter:.4g} (in {unit}): every distribution "
        "is plausible then, whatever contexts were seen. Give a smaller radius; the "
        "page *Which radius?* of the documentation says how to find one.",
        InputDataWarning,
        stacklevel=2,
    )
