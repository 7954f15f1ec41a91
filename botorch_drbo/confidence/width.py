r"""How many ``sigma`` a confidence interval has to be wide: the papers' ``beta_t``.

These widths multiply ``sigma``. The ``beta`` of this library and of BoTorch is the
square of that: ``mu + sqrt(beta) * sigma``. To use a width there, square it.
"""

from __future__ import annotations

import math

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_level,
    nonnegative_number,
)
from botorch_drbo.confidence.information_gain import model_information_gain
from botorch_drbo.posterior.training import outcome_map, training_system


def confidence_width(
    information_gain: float | Tensor,
    *,
    norm_bound: float,
    delta: float,
    noise_std: float,
    noise_ratio: float,
) -> float:
    r"""The multiplier of ``sigma`` in Lemma 1 of [Bogunovic2021misspecified]_.

    .. math:: w_t = \frac{\sigma}{\sqrt\lambda} \sqrt{ 2 \ln\frac1\delta
        + \sum_{s=1}^{t} \ln\Big( 1 + \frac{\sigma^2_{s-1}(x_s)}{\lambda} \Big) } + B

    With probability ``1 - delta``, for all ``x`` and all ``t`` simultaneously, also if
    each input was chosen based on earlier outcomes, :math:`|f(x) - \mu_t(x)| \le w_t \,
    \sigma_t(x)`. Here ``k(x, x) <= 1``, ``f`` has a norm of at most ``B`` in the space
    of ``k``, the prior mean is zero, and ``mu`` and ``sigma`` are the posterior's under
    ``k`` and noise variance ``lambda``. The sum is twice the information gain of the
    data. (The paper prints :math:`\sigma_{s-1}` in it without the square; its eq. 29
    shows that the square is meant.)

    ``beta`` of this library is ``w_t ** 2``. For a fitted model, whose kernel has an
    outputscale, use ``model_confidence_width``.

    Args:
        information_gain: Of the data, see ``information_gain``.
        norm_bound: ``B``, not negative.
        delta: The probability of failure, between 0 and 1.
        noise_std: ``sigma``: the noise is ``sigma``-sub-Gaussian.
        noise_ratio: ``lambda``, the noise variance of the model relative to the
            outputscale of its kernel.

    Returns:
        The width, in units of ``sigma_t``.

    Raises:
        InputDataError: A number outside its range.

    Example:
        >>> from botorch_drbo.confidence import confidence_width
        >>> options = dict(norm_bound=1.0, delta=0.1, noise_std=0.1, noise_ratio=0.01)
        >>> width = confidence_width(0.0, **options)  # before the first observation
        >>> round(width, 4), round(width**2, 4)  # the second one is a `beta`
        (3.146, 9.8971)
    """
    gain = _at_least_zero(information_gain, "information_gain")
    spread = math.sqrt(2.0 * math.log(1.0 / probability(delta)) + 2.0 * gain)
    ratio = _noise_factor(noise_std, noise_ratio)
    return ratio * spread + _at_least_zero(norm_bound, "norm_bound")


def abbasi_yadkori_width(
    information_gain: float | Tensor,
    *,
    norm_bound: float,
    delta: float,
    noise_std: float,
    noise_ratio: float,
) -> float:
    r"""The multiplier of WDRBO's ``sigma``, after [AbbasiYadkori2011]_.

    .. math:: \beta_t = \sigma \sqrt{ 2 \ln \frac{\det(I + K_t / \lambda)^{1/2}}
        {\delta} } + \sqrt\lambda \, B

    This is eq. 7 of [Micheli2025wdrbo]_. It multiplies the standard deviation of that
    paper's eq. 5, which is :math:`1 / \sqrt\lambda` times the posterior's. It is
    therefore :math:`\sqrt\lambda` times ``confidence_width``, and both describe the
    same interval; for models of this library use ``confidence_width``.

    Args:
        information_gain: Of the data, see ``information_gain``.
        norm_bound: ``B``, not negative.
        delta: The probability of failure, between 0 and 1.
        noise_std: ``sigma``: the noise is ``sigma``-sub-Gaussian.
        noise_ratio: ``lambda``.

    Returns:
        The width, in units of :math:`\sigma_t / \sqrt\lambda`.

    Raises:
        InputDataError: A number outside its range.

    Example:
        >>> from botorch_drbo.confidence import abbasi_yadkori_width
        >>> options = dict(norm_bound=1.0, delta=0.1, noise_std=0.1, noise_ratio=0.01)
        >>> round(abbasi_yadkori_width(0.0, **options), 4)  # 0.1 times the other
        0.3146
    """
    gain = _at_least_zero(information_gain, "information_gain")
    spread = math.sqrt(2.0 * (gain - math.log(probability(delta))))
    _noise_factor(noise_std, noise_ratio)
    root = math.sqrt(noise_ratio)
    return noise_std * spread + root * _at_least_zero(norm_bound, "norm_bound")


def nonadaptive_confidence_width(
    num_decisions: int,
    *,
    norm_bound: float,
    delta: float,
    noise_std: float,
    noise_ratio: float,
    episode: int = 1,
) -> float:
    r"""The multiplier of ``sigma`` for data chosen without a look at their outcomes.

    .. math:: w = \frac{\sigma}{\sqrt\lambda} \sqrt{2 \ln \frac{1}{\delta'}} + B, \qquad
        \delta' = \frac{\delta}{2 \, |D| \, e (e + 1)}

    No information gain: given the inputs, :math:`\mu(x)` is a fixed weighted sum of the
    noises beside its bias. The bias is at most :math:`B \sigma_m(x)`, and the sum is
    sub-Gaussian with :math:`\sigma \, \sigma_m(x) / \sqrt\lambda`. That gives a width
    for one side of one interval; it holds for both sides of all :math:`|D|` decisions
    in all episodes at once, with probability ``1 - delta``, by a union bound in which
    episode ``e`` gets :math:`\delta / (e (e + 1))`, which sums to ``delta``.

    It is ours, for Phased GP uncertainty sampling of [Bogunovic2021misspecified]_. The
    paper has no union bound: it applies Lemma 1, with its information gain, to each
    episode with the same ``delta``, on any compact domain.
    """
    check_count(num_decisions, "num_decisions")
    check_count(episode, "episode")
    # 1 / delta' = 2 |D| e (e + 1) / delta, of the union bound.
    inverse_delta = 2.0 * num_decisions * episode * (episode + 1) / probability(delta)
    ratio = _noise_factor(noise_std, noise_ratio)
    spread = math.sqrt(2.0 * math.log(inverse_delta))
    return ratio * spread + _at_least_zero(norm_bound, "norm_bound")


def model_confidence_width(
    model: SingleTaskGP,
    *,
    norm_bound: float,
    delta: float,
    noise_std: float | None = None,
    information_gain: float | Tensor | None = None,
) -> float:
    r"""Lemma 1 as a multiplier of a fitted model's own posterior ``sigma``.

    .. math:: w = \max_i \frac{\sigma}{\sqrt{v_i}} \sqrt{ 2 \ln\frac1\delta
        + 2 I(\text{data}) } + \frac{B}{\sqrt s}

    with ``v`` the noise variances and ``s`` the outputscale of the model, both in the
    units of ``y``. The model's sigma is :math:`\sqrt s` times that of the normalised
    kernel, so this is ``confidence_width`` divided by :math:`\sqrt s`; the product of
    width and sigma is the same. The outputscale is read as the largest prior variance
    at the training inputs, the outcome transform is undone.

    ``UpperConfidenceBound(model, beta=width ** 2)`` is then the bound of the lemma, if
    the fitted kernel, noise and mean are correct and ``f`` minus the model's prior mean
    has a norm of at most ``B``. The lemma does not cover fitted hyper-parameters.

    Args:
        model: A ``SingleTaskGP`` with a Gaussian likelihood. It goes to eval mode.
        norm_bound: ``B``, in units of ``y``, for the kernel scaled to at most 1.
        delta: The probability of failure, between 0 and 1.
        noise_std: ``sigma`` in units of ``y``; None if the model's noise is right.
        information_gain: Replaces the gain of the model's own data: the maximum over
            all inputs gives the data-free width of eq. 30.

    Returns:
        The width, in units of the model's posterior standard deviation.

    Raises:
        InputDataError: A number outside its range.
        UnsupportedError: Another model.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.confidence import model_confidence_width
        >>> Z = torch.linspace(0.0, 1.0, 16, dtype=torch.double).reshape(8, 2)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True))
        >>> print(f"{model_confidence_width(model, norm_bound=2.0, delta=0.1):.2f}")
        8.83
    """
    if information_gain is None:
        information_gain = model_information_gain(model)
    system = training_system(model)
    unit = outcome_map(model, None)[0].item()  # y per unit of the model's outcome
    prior = (system.covariance.diagonal() - system.noise).max()
    if noise_std is None:
        noise_std = unit * system.noise.min().sqrt().item()
    return confidence_width(
        information_gain,
        norm_bound=_at_least_zero(norm_bound, "norm_bound")
        / unit
        / prior.sqrt().item(),
        delta=delta,
        noise_std=noise_std / unit,
        noise_ratio=system.noise.min().item(),
    )


def _noise_factor(noise_std: float, noise_ratio: float) -> float:
    """Return ``sigma / sqrt(lambda)``."""
    if _at_least_zero(noise_ratio, "noise_ratio") == 0.0:
        raise InputDataError(
            "`noise_ratio` must be positive, got 0. For outcomes without noise set "
            "`noise_std=0` and give the small variance that the model works with."
        )
    return _at_least_zero(noise_std, "noise_std") / math.sqrt(noise_ratio)


def probability(delta: float) -> float:
    """Return a probability of failure, strictly between 0 and 1."""
    return check_level(_at_least_zero(delta, "delta"), "delta")


def _at_least_zero(value: float | Tensor, name: str) -> float:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return nonnegative_number(value, name)
