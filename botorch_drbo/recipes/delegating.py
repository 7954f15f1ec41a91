"""Recipes with their own proposals and the recommendations of another recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from botorch_drbo.contexts import ContextSet
from botorch_drbo.recipes.base import Recipe
from botorch_drbo.recipes.outcome_model import check_outcome_model
from botorch_drbo.recipes.robust_recipe import RobustRecipe
from botorch_drbo.surrogate.base import Surrogate
from botorch_drbo.surrogate.given_model import ModelMaker
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters


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
