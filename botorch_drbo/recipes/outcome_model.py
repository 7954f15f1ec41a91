"""The surrogate of a recipe: three options, of which one is given."""

from __future__ import annotations

from typing import Protocol

from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo.surrogate import SURROGATES, FixedHyperparameters, Surrogate
from botorch_drbo.surrogate.by_name import as_surrogate
from botorch_drbo.surrogate.given_model import GivenModel, ModelMaker, check_model_maker


class ModelsOutcomes(Protocol):
    """What a recipe that models outcomes has."""

    @property
    def default_surrogate(self) -> str: ...
    @property
    def surrogate(self) -> Surrogate | str | ModelMaker | None: ...
    @property
    def model(self) -> ModelMaker | None: ...
    @property
    def hyperparameters(self) -> FixedHyperparameters | None: ...


def check_outcome_model(recipe: ModelsOutcomes) -> None:
    r"""Check the options of the model; a function becomes the recipe's ``model``.

    Args:
        recipe: Its ``surrogate``, ``model`` and ``hyperparameters``.

    Raises:
        InputDataError: One that is none, or several of them.
    """
    if recipe.hyperparameters is not None and not isinstance(
        recipe.hyperparameters, FixedHyperparameters
    ):
        raise InputDataError(
            "`hyperparameters` must be FixedHyperparameters or None, got "
            f"{type(recipe.hyperparameters).__name__}."
        )
    check_model_maker(recipe.model)
    if recipe.model is not None and recipe.hyperparameters is not None:
        raise InputDataError(
            "Got `model` and `hyperparameters`, which are those of the recipe's "
            "own model. Give one of them."
        )
    if recipe.surrogate is None:
        return
    given = as_surrogate(recipe.surrogate)
    other = "model" if recipe.model is not None else "hyperparameters"
    if recipe.model is not None or recipe.hyperparameters is not None:
        raise InputDataError(
            f"Got `surrogate` and `{other}`, which both say how outcomes are modelled. "
            "Give one of them."
        )
    if isinstance(given, GivenModel):  # a function: journals store its name
        object.__setattr__(recipe, "model", given.function)
        object.__setattr__(recipe, "surrogate", None)


def surrogate_of(recipe: ModelsOutcomes) -> Surrogate:
    r"""The surrogate that a recipe models outcomes by.

    Args:
        recipe: Its ``surrogate``, ``model`` and ``hyperparameters``.

    Returns:
        What one of them says, or the recipe's default.
    """
    if recipe.model is not None:
        return GivenModel(recipe.model)
    if recipe.hyperparameters is not None:
        return recipe.hyperparameters
    named = recipe.surrogate
    return as_surrogate(recipe.default_surrogate if named is None else named)


def check_single_model(recipe: ModelsOutcomes, name: str) -> None:
    r"""Refuse an ensemble.

    Args:
        recipe: Its ``surrogate``, ``model`` and ``hyperparameters``.
        name: That of the recipe.

    Raises:
        UnsupportedError: Its surrogate is one.
    """
    if not surrogate_of(recipe).is_ensemble:
        return
    single = sorted(key for key, known in SURROGATES.items() if not known.is_ensemble)
    raise UnsupportedError(
        f"`{name}` puts the kernel and the noise of one model to other data, and "
        f"takes no ensemble, got `surrogate={recipe.surrogate!r}`. It takes "
        f"{', '.join(map(repr, single))}."
    )


def check_ensemble(recipe: ModelsOutcomes, name: str) -> None:
    r"""Refuse a single model; what a function makes is seen when it is made.

    Args:
        recipe: Its ``surrogate``, ``model`` and ``hyperparameters``.
        name: That of the recipe.

    Raises:
        UnsupportedError: Its surrogate is one model.
    """
    if recipe.model is not None or surrogate_of(recipe).num_models > 1:
        return
    given = "`hyperparameters`"
    if recipe.hyperparameters is None:
        given = f"`surrogate={recipe.surrogate!r}`"
    several = sorted(key for key, known in SURROGATES.items() if known.num_models > 1)
    raise UnsupportedError(
        f"`{name}` needs several models, whose disagreement it penalises, got {given}, "
        f"which is one. It takes {', '.join(map(repr, several))}, or `EnsembleOf` with "
        "two surrogates of your choice or more. For one model take "
        "`policy='confidence_bound'`."
    )
