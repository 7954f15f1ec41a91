"""How wide the confidence bound of a round is: a number, a schedule, or a theorem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import check_flag, is_finite_number
from botorch_drbo.confidence import (
    confidence_width,
    maximum_information_gain,
    model_confidence_width,
)
from botorch_drbo.confidence.noise import noise_std, with_noise_ratio
from botorch_drbo.posterior.ensemble import each_member, members_of
from botorch_drbo.problem.history import History
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import Schedule
from botorch_drbo.schedules.base import Rule, as_schedule

_NUM_POINTS = 512  # of the box, among which the information gain is the largest


@final
@dataclass(frozen=True)
class ConfidenceWidth(Rule):
    r"""The ``beta`` of theory: Lemma 1 of [Bogunovic2021misspecified]_, squared.

    .. math:: \sqrt\beta = \frac{\sigma}{\sqrt\lambda} \sqrt{2 \ln\frac1\delta
        + 2 I(\text{data})} + B

    As ``beta`` of a recipe, it is computed in each round from the recipe's own model:
    its kernel, its noise and the observed inputs (see ``model_confidence_width``). It
    is the width of EC-GP-UCB and, in the units of this library, that of
    [Micheli2025wdrbo]_ too (its eq. 7). The theorems assume a known kernel
    (``hyperparameters``); fitted hyper-parameters are treated as known.

    :math:`\sigma` is the deviation of the real noise, :math:`\lambda` the noise
    variance that the posterior works with, relative to the outputscale of the kernel.
    In the paper they are two numbers; here both default to the noise of the model. With
    ``noise_ratio``, the mean and deviation of the bound are those of a model with that
    noise and the same kernel and prior mean. Recommendations do not change.

    Args:
        norm_bound: ``B``, in units of y, for the kernel scaled to at most 1. It bounds
            the norm of the outcome less the model's prior mean.
        delta: The probability of failure, between 0 and 1.
        noise_std: :math:`\sigma` in units of y; None if the model's noise is right.
        data_free: Whether to replace the information gain of the data by the largest
            one possible for that number of inputs: the looser width of eq. 30, which
            depends on the number of outcomes only. The maximum is approximated greedily
            on 512 points of the box.
        noise_ratio: :math:`\lambda`; None for the noise of the model.

    Raises:
        InputDataError: A number outside its range.

    Example:
        >>> from botorch_drbo.policies import ConfidenceWidth
        >>> from botorch_drbo.recipes import make_recipe
        >>> recipe = make_recipe("wdrbo", beta=ConfidenceWidth(norm_bound=2.0))
        >>> recipe.options["beta"].delta
        0.1
    """

    norm_bound: float
    delta: float = 0.1
    noise_std: float | None = None
    data_free: bool = False
    noise_ratio: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_flag(self.data_free, "data_free")
        std = 1.0 if self.noise_std is None else self.noise_std
        ratio = 1.0 if self.noise_ratio is None else self.noise_ratio
        confidence_width(  # checks the numbers
            0.0,
            norm_bound=self.norm_bound,
            delta=self.delta,
            noise_std=std,
            noise_ratio=ratio,
        )
        for name in ("norm_bound", "delta", "noise_std", "noise_ratio"):
            value = getattr(self, name)
            if value is not None:  # a tensor or a NumPy number cannot be saved
                object.__setattr__(self, name, float(value))

    def model(self, fitted: Model) -> Model:
        r"""The model whose posterior the width belongs to.

        Args:
            fitted: A recipe's model.

        Returns:
            The model itself, or with ``noise_ratio`` a copy with that noise.
        """
        ratio = self.noise_ratio
        if ratio is None:
            return fitted
        return each_member(
            fitted, lambda member: with_noise_ratio(cast(SingleTaskGP, member), ratio)
        )

    def beta(self, fitted: Model) -> float:
        r"""The squared width, in units of the posterior variance of ``model``.

        Args:
            fitted: A recipe's model: its inputs fill the unit cube.

        Returns:
            A non-negative number; for an ensemble the largest of its members'.
        """
        return max(self._beta(cast(SingleTaskGP, m)) for m in members_of(fitted))

    def _beta(self, fitted: SingleTaskGP) -> float:
        gain = None
        if self.data_free:
            gain = _largest_gain(cast(SingleTaskGP, self.model(fitted)))
        return self.width(fitted, gain) ** 2

    def width(
        self, fitted: SingleTaskGP, information_gain: float | None = None
    ) -> float:
        r"""The width itself, also for other data than the model's.

        Args:
            fitted: A recipe's model.
            information_gain: That of the data under ``model``; None for the model's
                own data.

        Returns:
            The width, in units of the posterior standard deviation of ``model``.
        """
        std = self.noise_std
        if std is None and self.noise_ratio is not None:
            std = noise_std(fitted)
        return model_confidence_width(
            cast(SingleTaskGP, self.model(fitted)),
            norm_bound=self.norm_bound,
            delta=self.delta,
            noise_std=std,
            information_gain=information_gain,
        )


def check_beta(beta: Schedule | ConfidenceWidth | float, name: str) -> None:
    """Raise if this is no ``beta``."""
    if not isinstance(beta, ConfidenceWidth):
        as_schedule(beta, name)


def check_misspecification(value: float, name: str) -> None:
    """Raise if this is no size of an error of the model."""
    if not is_finite_number(value) or value < 0.0:
        raise InputDataError(
            f"`{name}` must be a finite number that is not negative, got {value!r}."
        )


def current_bound(
    beta: Schedule | ConfidenceWidth | float, model: Model, history: History
) -> tuple[Model, float]:
    """The model and the ``beta`` of the bound that follows these outcomes."""
    if isinstance(beta, ConfidenceWidth):
        return beta.model(model), beta.beta(model)
    return model, as_schedule(beta, "beta")(history.t)


def _largest_gain(model: SingleTaskGP) -> float:
    """The largest gain of as many inputs as the model has, in the unit cube."""
    t, d = cast(tuple[Tensor, ...], model.train_inputs)[0].shape[-2:]
    points = sobol(_NUM_POINTS, d, 0)
    like = cast(Tensor, model.train_targets)
    noise = cast(Tensor, model.likelihood.noise).min().item()
    kernel = cast(Kernel, model.covar_module)
    found = maximum_information_gain(kernel, points.to(like), t, noise)
    return found.gains[-1].item()
