"""What the contract tests share: small problems, known models, a test per case."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, TypeVar, cast

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.adversaries import Adversary, FittedRound
from botorch_drbo.codec import decode, encode
from botorch_drbo.policies import Policy
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate import (
    EnsembleOf,
    FixedHyperparameters,
)

PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-2)
SMALL: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 4}
"""Known hyper-parameters and a short search: what is tested is not how good it is."""


def small_problem(**kinds: Any) -> tuple[History, SearchSpace]:
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
    """Options of a recipe with which no hyper-parameters are fitted."""
    if not policy.needs_ensemble:
        return {"hyperparameters": prior}
    return {"surrogate": EnsembleOf([prior, replace(prior, lengthscale=0.6)])}


def state_against(
    adversary: Adversary,
    *,
    seed: int = 0,
    prior: FixedHyperparameters = PRIOR,
    **kinds: Any,
) -> FittedRound:
    """The round of ``small_problem``, as an adversary sees it."""
    history, space = small_problem(**kinds)
    recipe = RobustRecipe(adversary=adversary, hyperparameters=prior)
    return replace(fitted_round(recipe, history, space), seed=seed)


def fitted_round(
    recipe: RobustRecipe,
    history: History,
    space: SearchSpace,
    *,
    uses_contexts: bool | None = None,
) -> FittedRound:
    """A round of a recipe with a model of these data, by default its own."""
    joint = recipe.uses_contexts if uses_contexts is None else uses_contexts
    model = recipe.fitted(history, space, uses_contexts=joint)
    return recipe.state_of(model, history, space, 0)


Part = TypeVar("Part", Adversary, Policy)


def restored(part: Part, kind: type[Part]) -> Part:
    """The same part out of JSON, which says the same again."""
    stored = encode(part, "it")
    again = decode(json.loads(json.dumps(stored, allow_nan=False)), kind, "it")
    assert type(again) is type(part)
    assert encode(again, "it") == stored
    return again


def check_options_explained(part: Adversary | Policy) -> None:
    """The docstrings of its classes say what each option is."""
    documented = " ".join(kind.__doc__ or "" for kind in type(part).__mro__)
    for option in fields(part):
        assert f"{option.name}: " in documented, (
            f"{type(part).__name__} does not say what `{option.name}` is: "
            f"write `{option.name}: ...` below `Args:` in its docstring."
        )


def known_model(
    Z: Tensor,
    Y: Tensor,
    *,
    lengthscale: float = 0.5,
    noise: float | None = None,
    normalise: bool = True,
    **options: Any,
) -> SingleTaskGP:
    """A Gaussian process on given data, with fixed hyper-parameters.

    Shapes: ``Z``: ``t x d``, ``Y``: ``t x m``.
    """
    if normalise:
        options.setdefault("input_transform", Normalize(Z.shape[-1]))
    model = SingleTaskGP(Z, Y, **options)
    cast(Kernel, model.covar_module).initialize(lengthscale=lengthscale)
    if noise is not None:
        model.likelihood.initialize(noise=noise)
    return model.eval()


def ensemble(Z: Tensor, Y: Tensor, members: int = 3) -> EnsembleMapSaasSingleTaskGP:
    """Models of the same data, no two of which have a hyper-parameter in common.

    BoTorch's start out alike: their mean is each of them, and their minimum too.

    Shapes: ``Z``: ``t x d``, ``Y``: ``t x 1``.
    """
    model = EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=members).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            steps = torch.linspace(-0.9, 0.9, members).to(parameter)
            parameter.add_(steps.reshape(-1, *[1] * (parameter.ndim - 1)))
    return model


def member_of(model: EnsembleMapSaasSingleTaskGP, number: int) -> SingleTaskGP:
    """One model of an ensemble, as BoTorch's plain one, without transforms."""
    Z = model.train_inputs[0][number]
    alone = SingleTaskGP(
        Z,
        model.train_targets[number].unsqueeze(-1),
        covar_module=ScaleKernel(MaternKernel(ard_num_dims=Z.shape[-1])).double(),
        outcome_transform=None,
    )
    ensembled = cast(ScaleKernel, model.covar_module)
    base, level = cast(Kernel, ensembled.base_kernel), model.mean_module.constant
    kernel = cast(ScaleKernel, alone.covar_module)
    kernel.initialize(outputscale=ensembled.outputscale[number])
    cast(Kernel, kernel.base_kernel).initialize(lengthscale=base.lengthscale[number])
    alone.mean_module.initialize(constant=cast(Tensor, level)[number])
    alone.likelihood.initialize(noise=cast(Tensor, model.likelihood.noise)[number])
    return alone.eval()


class Named(Protocol):
    """What has a name, by which a failing test calls it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name."""


def run_for_each(metafunc: pytest.Metafunc, **cases: Sequence[Named]) -> None:
    """Run a test for each case."""
    for argument, listed in cases.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, listed, ids=[case.name for case in listed])
