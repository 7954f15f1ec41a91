"""A recipe as a product: an adversary, a policy, and the model that both work on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries import Adversary, FittedRound, WorstCaseProblem
from botorch_drbo.adversaries.empirical import Empirical
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import NamedObjective
from botorch_drbo.policies import Policy
from botorch_drbo.policies.bounds import ConfidenceBound
from botorch_drbo.recipes.base import Recipe
from botorch_drbo.recipes.description import Description, wrapped
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.options import (
    check_ensemble,
    check_names_differ,
    check_outcome_model,
    part_name,
    parts_of,
)
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.by_name import ModelMaker
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RobustRecipe(ModelBasedRecipe):
    r"""A recipe made of an adversary and a policy.

    .. math:: x_{t+1} = \arg\max_x\, \mathrm{policy}\big( s(x, \cdot), \;
        \mathrm{adversary}(c_1, \dots, c_t) \big)

    The options of both parts are options of the recipe: ``options`` contains them all,
    and ``with_options`` passes each to its part by name.

    Args:
        name: The key in the registry.
        adversary: Which contexts, and how their distribution may change.
        policy: How the next decision is found.
        description: A description of the method.

    Raises:
        InputDataError: Options that do not fit together.
        UnsupportedError: A policy that cannot use the adversary, or that needs several
            models.

    Example:
        >>> from botorch_drbo.adversaries import ADVERSARIES
        >>> from botorch_drbo.policies import POLICIES
        >>> from botorch_drbo.recipes import RobustRecipe
        >>> recipe = RobustRecipe(
        ...     adversary=ADVERSARIES["wasserstein"], policy=POLICIES["thompson"]
        ... )
        >>> recipe.with_options(radius=0.1, num_features=64).options["radius"]
        0.1
    """

    name: str = "composed"
    adversary: Adversary = field(default_factory=Empirical)
    policy: Policy = field(default_factory=ConfidenceBound)
    description: Description = Description(summary="A product of your own.")

    def __post_init__(self) -> None:
        """Check the options, and that the parts fit together."""
        super().__post_init__()
        check_names_differ(self)
        self.policy.check(self.adversary)
        if self.policy.needs_ensemble:
            check_ensemble(self, self.name)
        beta = getattr(self.policy, "beta", None)
        if self.model is not None and getattr(beta, "data_free", False):
            raise UnsupportedError(
                "`beta` with `data_free=True` takes no `model`: the largest "
                "information gain is that of the recipe's own kernel and inputs. Leave "
                "`data_free` out: then the width is that of the model's data."
            )

    def _method(self) -> str:
        """Sentence, formula, remarks, source, parts."""
        said = self.description
        parts = " and ".join(
            f"the {key} ``{part_name(key, part)}`` (``{type(part).__name__}``)"
            for key, part in parts_of(self).items()
        )
        told = (
            wrapped(said.summary),
            f".. math:: {said.formula}" if said.formula else "",
            wrapped(said.remarks),
            f"Source: {said.source}." if said.source else "",
            wrapped(f"It is made of {parts}."),
        )
        return "\n\n".join(filter(None, told))

    @property
    def default_surrogate(self) -> str:
        """The surrogate of the policy if it needs a particular one."""
        return self.policy.default_surrogate or super().default_surrogate

    @property
    def uses_contexts(self) -> bool:
        """Whether its decisions depend on the distribution of the context."""
        return self.policy.uses_contexts

    @property
    def context_order(self) -> str | None:
        """What requires numerical contexts, in words; None if nothing does."""
        return self.policy.context_order or self.adversary.context_order

    @property
    def maximises_worst_case(self) -> bool:
        """Whether a recommendation is the decision with the best worst case."""
        return self.policy.maximises_worst_case and not self.adversary.approximates

    @property
    def _has_own_objective(self) -> bool:
        """With a price the worst case counts, and no bound or approximation of it."""
        if self.give_up is None or self.against is not None:
            return super()._has_own_objective
        return not (self.policy.maximises_worst_case or self.policy.bounds_worst_case)

    @property
    def ranks_by_moments(self) -> bool:
        """Whether inducing points are accurate enough to rank decisions; as for the
        policy."""
        return self.policy.ranks_by_moments

    @property
    def conditions_in_place(self) -> bool:
        """Whether pending decisions change an acquisition function by
        ``set_X_pending``; as for the policy."""
        return self.policy.conditions_in_place

    def exploring(
        self, state: FittedRound, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The policy's, against the adversary."""
        return self.policy.exploring(state, self.adversary, X_pending)

    def exploiting(self, state: FittedRound) -> AcquisitionFunction:
        r"""The policy's, against the adversary."""
        return self.policy.exploiting(state, self.adversary)

    def _check_decides(self) -> None:
        """A price has a meaning where words say more than the mean."""
        named = self._named
        if named is None:
            return super()._check_decides()
        if self.against is not None or self.criterion != "worst_case":
            raise InputDataError(
                f"Got `objective='{named.words}'` beside "
                f"`{'criterion' if self.against is None else 'against'}`: both say "
                "what is decided for. Leave one out."
            )
        if self.give_up is not None and named.words == "mean":
            raise InputDataError(
                "`give_up` says what of the mean may be given up, and "
                "`objective='mean'` decides for it. Write for what, such as "
                "`objective='worst fifth'`."
            )

    @property
    def _named(self) -> NamedObjective | None:
        """The objective of the policy, if it was said in words."""
        return getattr(self.policy, "named", None)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The adversary's, or that of words around the same contexts."""
        problem = self.adversary.worst_case_problem(state)
        if (named := self._named) is None or (ball := named.ambiguity_set) is None:
            return problem
        return replace(problem, ball=ball.at)

    def worst_case_problem_of(
        self, ambiguity_set: AmbiguitySet, state: FittedRound
    ) -> WorstCaseProblem:
        r"""The adversary's."""
        return self.adversary.worst_case_problem_of(ambiguity_set, state)

    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The adversary's."""
        return self.adversary.chance_constraint_problem(state)

    def decision_model(self, state: FittedState) -> Model:
        r"""Fitted to all outcomes."""
        return state.model(self.judging_surrogate(), uses_contexts=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class DelegatingRecipe(Recipe):
    r"""Recommendations are those of another recipe on the same history.

    Args:
        reference: The context distribution if it is known, for the recommendation.
        half_life: After how many further contexts one counts half, for the
            recommendation; None: nothing is forgotten. Outcomes are not.
        surrogate: How outcomes are modelled, as for the other recipes.
        hyperparameters: Those of the model if they are known: then nothing is fitted.
        model: A function that makes the model, as for the other recipes.
        num_restarts: Starting points of the gradient ascent of the recommendation.
        raw_samples: Sobol points from which the starting points are picked.
        max_iterations: L-BFGS-B iterations per ascent.
    """

    recommender: ClassVar[RobustRecipe]
    """The other recipe, with its defaults."""

    reference: ContextSet | None = None
    half_life: float | None = None
    surrogate: Surrogate | str | ModelMaker | None = None
    hyperparameters: FixedHyperparameters | None = None
    model: ModelMaker | None = None
    num_restarts: int = 10
    raw_samples: int = 1024
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the model, and let the recommending recipe check what it shares."""
        check_outcome_model(self)
        _ = self.judge

    @property
    def judge(self) -> RobustRecipe:
        """The other recipe, with what it shares."""
        known = self.recommender.options
        shared = {name: value for name, value in self.options.items() if name in known}
        if self.surrogate is None and self.model is self.hyperparameters is None:
            shared["surrogate"] = self.default_surrogate
        return self.recommender.with_options(**shared)
