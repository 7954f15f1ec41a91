"""The regret bounds of the papers' theorems, to compare with measured regrets."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def round_regret_bound(mean_width: Tensor, radius: Tensor, lipschitz: Tensor) -> Tensor:
    r"""WDRBO's regret of one round: Theorem 4 of [Micheli2025wdrbo]_.

    .. math:: r_t \le 2 E_{c \sim P}[w_t \sigma_{t-1}(x_t, c)]
        + 2 \epsilon_t L(x^*_t)

    with probability ``1 - delta``, for a width ``w`` of that probability and a ball
    that holds the true law ``P``.
    """
    return 2 * mean_width + 2 * radius * lipschitz


def regret_bound(
    width: Tensor,
    information_gain: Tensor,
    radius: Tensor,
    lipschitz: Tensor,
    *,
    delta: float,
) -> Tensor:
    r"""WDRBO's cumulative regret, Theorem 5, for the horizons 1, ..., ``n``.

    .. math:: R_T \le 4 \beta_T \sqrt{T \big( \gamma_T + 4 \ln(6 / \delta) \big)}
        + \sum_{t \le T} 2 \epsilon_t L(x^*_t)

    with probability ``1 - 2 delta``. Here :math:`\beta_T` multiplies that paper's
    sigma, see ``abbasi_yadkori_width``, and :math:`\gamma_T` is its log-determinant
    without 1/2: twice the ``information_gain``. The main text prints the first root
    with ``T`` on :math:`\gamma_T` only (eq. 15); the proof has it on both terms, and so
    has this.
    """
    horizons = torch.arange(1, len(radius) + 1, dtype=torch.double)
    learning = horizons * (2 * information_gain + 4 * math.log(6 / delta))
    shift = (2 * radius * lipschitz).expand(len(radius))
    return 4 * width * learning.sqrt() + shift.cumsum(0)


def deviation_sum_bound(
    information_gain: Tensor, num: Tensor, noise_ratio: float
) -> Tensor:
    r"""Lemma 3 (31) of [Bogunovic2021misspecified]_: deviations at the data, summed.

    .. math:: \sum_{i \le t} \sigma_{i-1}(x_i) \le \sqrt{(2 \lambda + 1) \gamma_t t}
    """
    return ((2 * noise_ratio + 1) * information_gain * num).sqrt()


def misspecified_regret_bound(
    horizon: Tensor,
    information_gain: Tensor,
    width: Tensor,
    misspecification: float,
    noise_ratio: float,
) -> Tensor:
    r"""EC-GP-UCB's regret against the best in class: Theorem 1 with constants, (39).

    .. math:: R_T \le 2 w_T \sqrt{(2 \lambda + 1) \gamma_T T}
        + \frac{2 \epsilon}{\sqrt\lambda} T \sqrt{(2 \lambda + 1) \gamma_T}

    with the data-free width :math:`w_T` of (30), which is ``confidence_width`` of
    :math:`\gamma_T`. Against the best of the true function it is
    :math:`2 \epsilon T` more.
    """
    sums = deviation_sum_bound(information_gain, horizon, noise_ratio)
    return 2 * sums * (width + misspecification * (horizon / noise_ratio).sqrt())
