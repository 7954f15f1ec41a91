"""Surrogates by name; ensembles, and models of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import final

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_drbo._validation import Registry, did_you_mean
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.posterior.models import only_model, some_inputs
from botorch_drbo.surrogate.base import ModelData, Surrogate

ModelMaker = Callable[[Tensor, Tensor, Tensor | None, Tensor], Model]
"""From ``train_X``, ``train_Y``, ``train_Yvar`` and ``bounds`` to a fitted model."""


@final
@dataclass(frozen=True)
class GivenModel(Surrogate):
    r"""A function that makes the model.

    Args:
        function: It is called with ``train_X``, ``train_Y``, ``train_Yvar`` and
            ``bounds``, and returns a fitted BoTorch model of one output.
    """

    function: ModelMaker

    @property
    def is_refitted(self) -> bool:
        """Not: the function may take long, or draw at random."""
        return False

    def fit(self, data: ModelData) -> Model:
        r"""Call the function, and look at what it returns."""
        return make_model(
            self.function, data.inputs, data.outcomes, data.Yvar, data.bounds
        )


def check_model_maker(model: object) -> None:
    """Raise unless this is a function from data to a model, or None."""
    wanted = (
        "Give a function that takes (train_X, train_Y, train_Yvar, bounds) and returns "
        "a fitted BoTorch model"
    )
    if isinstance(model, Model):
        raise InputDataError(
            f"`model` is a {type(model).__name__}, but outcomes are still to come. "
            f"{wanted}."
        )
    if model is not None and not callable(model):
        raise InputDataError(
            f"`model` must be a function, got {type(model).__name__}. {wanted}."
        )


def make_model(
    maker: ModelMaker, X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor
) -> Model:
    """Call the user's function, and look at what it returns.

    Shapes: ``X``: ``t x d``, ``Y``: ``t x 1``, ``Yvar``: ``t x 1``, ``bounds``: ``2 x
    d``.
    """
    Yvar = None if Yvar is None else Yvar.clone()
    model = maker(X.clone(), Y.clone(), Yvar, bounds.clone())
    if not isinstance(model, Model):
        raise InputDataError(
            "The function `model` must return a fitted BoTorch model, got "
            f"{type(model).__name__}."
        )
    model, d = only_model(model), X.shape[-1]
    if model.num_outputs != 1:
        raise UnsupportedError(
            f"The function `model` returned a {type(model).__name__} of "
            f"{model.num_outputs} outputs. Return a model of one, the outcome."
        )
    inputs = some_inputs(model)
    if inputs is None:
        raise UnsupportedError(
            f"The function `model` returned a {type(model).__name__}, which has no "
            "training inputs. Return a model that was made of `train_X`."
        )
    if inputs.shape[-1] != d:
        raise BotorchTensorDimensionError(
            f"The function `model` was given `train_X` with {d} columns, and returned "
            f"a model of {inputs.shape[-1]} inputs. It has to take them all: decisions "
            "first, contexts last."
        )
    return model.eval()


def check_exact(model: Model, name: str) -> SingleTaskGP:
    """Return a model whose kernel, mean and noise can be put to other data."""
    if (
        not isinstance(model, SingleTaskGP)
        or not ExactPosterior.supports(model, None)
        or not isinstance(model.likelihood, GaussianLikelihood)
    ):
        likelihood = getattr(model, "likelihood", None)
        raise UnsupportedError(
            f"`{name}` puts the kernel and the noise of a model to other data: it "
            "takes a SingleTaskGP that learns its noise, got "
            f"{type(model).__name__} with {type(likelihood).__name__}. `gp_ucb` takes "
            "any model."
        )
    return model


DEFAULT_SURROGATE = "ensemble"
"""What recipes model outcomes by, if nothing else is said.

On fresh seeds of the development set it lost less than "botorch", the default of 0.2.0,
by a rule written down before (``benchmarks/development/claims_second.md``); the numbers
stand in ``docs/surrogates.md``. Runs stored before there were surrogates go on with
"botorch".
"""

SURROGATES: Registry[Surrogate] = Registry(Surrogate, {})
"""Surrogates by name. Add your own, and recipes and journals can name it."""


def as_surrogate(given: Surrogate | str | ModelMaker) -> Surrogate:
    """Turn a name or a function into a surrogate."""
    if isinstance(given, Surrogate):
        return given
    if isinstance(given, str):
        if given not in SURROGATES:
            raise InputDataError(
                f"There is no surrogate {given!r}.{did_you_mean(given, SURROGATES)} "
                f"The choices are {sorted(SURROGATES)}, a Surrogate of your own, or a "
                "function that makes a model."
            )
        return SURROGATES[given]
    if isinstance(given, type) and issubclass(given, Surrogate):
        raise InputDataError(
            f"`surrogate` is the class {given.__name__}. Give an object of it: "
            f"`{given.__name__}(...)`."
        )
    if isinstance(given, Model) or not callable(given):
        hint = ""
        if isinstance(given, Model):
            hint = ", and outcomes are still to come"
        raise InputDataError(
            f"A surrogate must be one of {sorted(SURROGATES)}, a Surrogate, or a "
            "function that takes (train_X, train_Y, train_Yvar, bounds) and returns a "
            f"fitted BoTorch model; got a {type(given).__name__}{hint}."
        )
    return GivenModel(given)


@final
@dataclass(frozen=True)
class EnsembleOf(Surrogate):
    r"""An ensemble of models with equal weights.

    Scores, slopes and worst cases are computed for each model, and the mean over the
    models is taken last. A member that is an ensemble contributes all of its members.
    An ensemble of one member is that member; recipes that need several models raise an
    error for it.

    Args:
        members: Surrogates, at least one; or their names, if ``SURROGATES`` knows them.
        max_exact: For each member: with more outcomes it uses inducing points. None for
            each member's own value.

    Raises:
        InputDataError: No members, a member that is neither a surrogate nor the name of
            one, or a ``max_exact`` for a member without this option.

    Example:
        >>> from botorch_drbo.surrogate import EnsembleOf, GaussianProcess
        >>> both = EnsembleOf(["botorch", GaussianProcess("matern32")], max_exact=500)
        >>> both.members[0]
        BoTorchDefault(max_exact=500)
    """

    members: Sequence[Surrogate | str]
    max_exact: int | None = None

    def __post_init__(self) -> None:
        """Check the members."""
        super().__post_init__()
        if isinstance(self.members, str) or not isinstance(self.members, Sequence):
            raise InputDataError(
                "`EnsembleOf` takes a list of surrogates or of their names, got "
                f"{self.members!r}. Write for instance `EnsembleOf(['botorch', "
                "'matern'])`."
            )
        if not self.members:
            raise InputDataError(
                "An ensemble needs at least one member, got none. Write for instance "
                "`EnsembleOf(['botorch', 'matern'])`."
            )
        members = tuple(as_surrogate(member) for member in self.members)
        if self.max_exact is not None:
            members = tuple(map(self._with_max_exact, members))
        object.__setattr__(self, "members", members)

    def _with_max_exact(self, member: Surrogate) -> Surrogate:
        if not is_dataclass(member) or not hasattr(member, "max_exact"):
            raise InputDataError(
                f"`max_exact` is an option of Gaussian processes, and the member "
                f"{member!r} has none. Leave `max_exact` out, and give it to the "
                "members that have it."
            )
        return replace(member, max_exact=self.max_exact)

    @property
    def is_ensemble(self) -> bool:
        """True."""
        return True

    @property
    def num_models(self) -> int:
        """Those of all members."""
        return sum(as_surrogate(member).num_models for member in self.members)

    @property
    def is_refitted(self) -> bool:
        """Whether checks may fit its members again to fewer outcomes."""
        members = [as_surrogate(member) for member in self.members]
        return all(member.is_refitted for member in members)

    def fit(self, data: ModelData) -> ModelEnsemble:
        r"""Fit each member to the same data."""
        return ModelEnsemble([as_surrogate(m).fit(data) for m in self.members])

    def predict_others(self, told: ModelData, every: ModelData) -> GaussianMixture:
        r"""Mix the predictions of the members."""
        each = [as_surrogate(m).predict_others(told, every) for m in self.members]
        return GaussianMixture(
            torch.cat([predicted.means for predicted in each]),
            torch.cat([predicted.deviations for predicted in each]),
        )
