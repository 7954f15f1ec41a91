"""A small problem in the middle of a run, to ask parts of recipes about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from botorch_drbo.adversaries import Adversary, FittedRound
from botorch_drbo.policies import Policy
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate import EnsembleOf, FixedHyperparameters

PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-2)
SMALL: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 4}
"""Known hyper-parameters and a short search: what is tested is not how good it is."""


def problem(**kinds: Any) -> tuple[History, SearchSpace]:
    r"""Eight trials, and one context whose outcome is still out.

    One decision in [-1, 3]; contexts in [10, 12] x [0, 2].

    Args:
        kinds: Options of ``SearchSpace``.

    Returns:
        The data and the space.
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


def nothing_fitted(
    policy: Policy, prior: FixedHyperparameters = PRIOR
) -> dict[str, Any]:
    r"""Options of a recipe with which no hyper-parameters are fitted.

    Args:
        policy: That of the recipe.
        prior: What is known.

    Returns:
        The prior; for a policy of several models an ensemble of it and another one.
    """
    if not policy.needs_ensemble:
        return {"hyperparameters": prior}
    other = replace(prior, lengthscale=0.6)
    return {"surrogate": EnsembleOf([prior, other])}


def state_against(
    adversary: Adversary,
    *,
    seed: int = 0,
    joint: bool = True,
    prior: FixedHyperparameters = PRIOR,
    **kinds: Any,
) -> FittedRound:
    r"""The round of ``problem``, as an adversary sees it.

    Args:
        adversary: Who asks.
        seed: Decides what is drawn.
        joint: Whether the model is one of decisions and contexts.
        prior: The hyper-parameters of its model.
        kinds: Options of ``SearchSpace``.

    Returns:
        The round, with a model of known hyper-parameters.
    """
    history, space = problem(**kinds)
    recipe = RobustRecipe(adversary=adversary, hyperparameters=prior)
    model = recipe.fitted(history, space, uses_contexts=joint)
    return recipe.state_of(model, history, space, seed)
