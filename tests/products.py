"""What tests ask of recipes."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.adversaries import Adversary, FittedRound
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Algorithm, RobustRecipe, make_algorithm
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate import FixedHyperparameters


def product(name: str, **options: Any) -> RobustRecipe:
    """A recipe of the table."""
    recipe = make_algorithm(name, **options)
    assert isinstance(recipe, RobustRecipe)
    return recipe


def robust_set(
    recipe: Algorithm,
    model: SingleTaskGP,
    history: History,
    space: SearchSpace,
    seed: int,
) -> tuple[ContextSet, AmbiguitySet]:
    """The list of contexts that the search of a recipe looks at, and the set around."""
    assert isinstance(recipe, RobustRecipe)
    state = recipe.state_of(model, history, space, seed)
    problem = recipe.adversary.search_problem(state)
    return problem.listed(), problem.ambiguity_set


def exploring(
    recipe: Algorithm,
    model: SingleTaskGP,
    history: History,
    space: SearchSpace,
    *,
    beta: float,
    seed: int,
    X_pending: Tensor | None = None,
) -> AcquisitionFunction:
    """What the search of a recipe maximises with a given ``beta``."""
    assert isinstance(recipe, RobustRecipe)
    recipe = recipe.with_options(beta=beta)
    return recipe.exploring(recipe.state_of(model, history, space, seed), X_pending)


PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-2)
SMALL: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 4}
"""Known hyper-parameters and a short search: what is tested is not how good it is."""


def problem(**kinds: Any) -> tuple[History, SearchSpace]:
    """Eight trials, and one context whose outcome is still out.

    One decision in [-1, 3]; contexts in [10, 12] x [0, 2].
    """
    bounds = torch.tensor([[-1.0], [3.0]], dtype=torch.double)
    context_bounds = torch.tensor([[10.0, 0.0], [12.0, 2.0]], dtype=torch.double)
    space = SearchSpace(bounds, context_bounds, **kinds)
    unit = sobol(9, 3, seed=3)
    X = (-1.0 + 4.0 * unit[:8, :1]).double()
    contexts = context_bounds[0] + 2.0 * unit[:, 1:].double()
    contexts = space.with_known(space.snap_contexts(contexts))
    C = contexts[:8]
    Y = -(X - 1.0).square() - (X - 1.0) * (C - context_bounds[0]).sum(-1, keepdim=True)
    return History(X=X, C=C, Y=Y, contexts=contexts), space


def state_against(
    adversary: Adversary, *, seed: int = 0, joint: bool = True, **kinds: Any
) -> FittedRound:
    """The round of ``problem``, as an adversary sees it."""
    history, space = problem(**kinds)
    recipe = RobustRecipe(adversary=adversary, hyperparameters=PRIOR)
    model = recipe.fitted(history, space, uses_contexts=joint)
    return recipe.state_of(model, history, space, seed)
