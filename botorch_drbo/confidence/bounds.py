r"""The regret bounds of the papers, to compare with measured regrets.

Everything is elementwise in tensors, one entry per round or horizon, and cumulated
where the theorem is a sum: a whole curve comes at once. Information gains are this
library's, with the factor 1/2 (see ``information_gain``); ``noise_ratio`` is that
:math:`\lambda` of the papers, relative to a kernel of size one, and ``norm_bound`` is
in units of the outcome for such a kernel. The bounds are loose: they show the rate.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_drbo._validation import check_nonnegative
from botorch_drbo.confidence.width import probability


def round_regret_bound(
    mean_width: float | Tensor,
    radius: float | Tensor,
    lipschitz: float | Tensor,
    slack: float | Tensor = 0.0,
) -> Tensor:
    r"""WDRBO's regret of one round: Theorem 4, and with ``slack`` Theorem 8.

    .. math:: r_t \le 2 E_{c \sim P}[w_t \sigma_{t-1}(x_t, c)]
        + 2 \epsilon_t L(x^*_t) + 2 \rho_t

    with probability ``1 - delta`` (Theorem 8: ``1 - 2 delta``), for a width ``w`` of
    that probability and a ball that holds the true law ``P``.

    Args:
        mean_width: :math:`E[w_t \sigma_{t-1}(x_t, c)]` under the true law.
        radius: :math:`\epsilon_t`.
        lipschitz: :math:`L`, of the confidence bound in the context, at the best
            decision under the true law.
        slack: :math:`\rho_t`, see ``WassersteinCoveringRadius.slack``; 0 if the radius
            is given (Theorem 4).

    Returns:
        The bound, in units of the outcome.

    Example:
        >>> round_regret_bound(0.5, 0.1, 3.0)
        tensor(1.6000, dtype=torch.float64)
    """
    mean_w, eps, L, rho = _as_nonnegative(
        mean_width=mean_width, radius=radius, lipschitz=lipschitz, slack=slack
    )
    return 2 * mean_w + 2 * eps * L + 2 * rho


def regret_bound(
    width: float | Tensor,
    information_gain: float | Tensor,
    radius: Tensor,
    lipschitz: float | Tensor,
    *,
    delta: float,
    slack: float | Tensor = 0.0,
) -> Tensor:
    r"""WDRBO's cumulative regret: Theorem 5, and with ``slack`` Theorem 9.

    .. math:: R_T \le 4 \beta_T \sqrt{T \big( \gamma_T + 4 \ln(6 / \delta) \big)}
        + \sum_{t \le T} \big( 2 \epsilon_t L(x^*_t) + 2 \rho_t \big)

    with probability ``1 - 2 delta`` (Theorem 9: ``1 - 3 delta``). Here
    :math:`\beta_T` multiplies that paper's sigma, see ``abbasi_yadkori_width``, and
    :math:`\gamma_T` is its log-determinant without 1/2: twice ``information_gain``. The
    main text prints the first root with ``T`` on :math:`\gamma_T` only (eq. 15); the
    proof has it on both terms, and so has this.

    Args:
        width: :math:`\beta_T`, one number or one for each horizon, ``n``.
        information_gain: The largest of ``T - 1`` observations, with the factor 1/2.
        radius: :math:`\epsilon_t` of rounds 1, ..., ``n``.
        lipschitz: :math:`L(x^*_t)`.
        delta: The probability of failure, between 0 and 1.
        slack: :math:`\rho_t`; 0 if the radii are given (Theorem 5).

    Returns:
        The bound for the horizons 1, ..., ``n``.

    Example:
        >>> radii = torch.full((3,), 0.1).double()
        >>> regret_bound(1.0, 2.0, radii, 3.0, delta=0.1)
        tensor([18.6565, 26.7358, 33.0748], dtype=torch.float64)
    """
    beta, gamma, eps, L, rho = _as_nonnegative(
        width=width,
        information_gain=information_gain,
        radius=radius,
        lipschitz=lipschitz,
        slack=slack,
    )
    horizons = torch.arange(1, len(eps) + 1, dtype=torch.double)
    learning = horizons * (2 * gamma + 4 * math.log(6 / probability(delta)))
    shift = (2 * eps * L + 2 * rho).expand(len(eps))
    return 4 * beta * learning.sqrt() + shift.cumsum(0)


def deviation_sum_bound(
    information_gain: float | Tensor, num: float | Tensor, noise_ratio: float
) -> Tensor:
    r"""Lemma 3 (31) of [Bogunovic2021misspecified]_: deviations at the data, summed.

    .. math:: \sum_{i \le t} \sigma_{i-1}(x_i) \le \sqrt{(2 \lambda + 1) \gamma_t t}

    Divided by ``t`` it bounds the largest deviation after ``t`` steps of uncertainty
    sampling (60).

    Args:
        information_gain: :math:`\gamma_t`, or that of the data.
        num: ``t``.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, in units of the square root of the kernel.

    Example:
        >>> deviation_sum_bound(2.0, 50, 0.5)
        tensor(14.1421, dtype=torch.float64)
    """
    gamma, t, lam = _as_nonnegative(
        information_gain=information_gain, num=num, lam=noise_ratio
    )
    return ((2 * lam + 1) * gamma * t).sqrt()


def misspecified_regret_bound(
    horizon: float | Tensor,
    information_gain: float | Tensor,
    width: float | Tensor,
    misspecification: float,
    noise_ratio: float,
) -> Tensor:
    r"""EC-GP-UCB's regret against the best in class: Theorem 1 with constants, (39).

    .. math:: R_T \le 2 w_T \sqrt{(2 \lambda + 1) \gamma_T T}
        + \frac{2 \epsilon}{\sqrt\lambda} T \sqrt{(2 \lambda + 1) \gamma_T}

    with the data-free width :math:`w_T` of (30), which is ``confidence_width`` of
    :math:`\gamma_T`. Against the best of the true function it is
    :math:`2 \epsilon T` more.

    Args:
        horizon: ``T``.
        information_gain: :math:`\gamma_T`.
        width: :math:`w_T`.
        misspecification: :math:`\epsilon`.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, in units of the outcome.

    Example:
        >>> misspecified_regret_bound(100, 2.0, 3.0, 0.0, 1.0)
        tensor(146.9694, dtype=torch.float64)
    """
    T, w, eps, lam = _as_nonnegative(
        horizon=horizon, width=width, epsilon=misspecification, lam=noise_ratio
    )
    sums = deviation_sum_bound(information_gain, T, noise_ratio)
    return 2 * sums * (w + eps * (T / lam).sqrt())


def candidate_regret_bound(
    plays: float | Tensor,
    information_gain: float | Tensor,
    width: float | Tensor,
    misspecification: float,
    noise_ratio: float,
) -> Tensor:
    r"""The candidate bound (22), (85) of a base of regret balancing.

    .. math:: R(n) = \min \big\{ c_1 \sqrt n + c_2 \epsilon n, \; n \big\}

    with the constants that (39) gives: :math:`c_1 = 2 w_T \sqrt{(2 \lambda + 1)
    \gamma_T}` and :math:`c_2 = 2 \lambda^{-1/2} \sqrt{(2 \lambda + 1) \gamma_T}`, both
    of the whole horizon. The paper leaves them open, and prints ``t`` in place of ``n``
    in the minimum. ``regret_balancing`` has a tighter one of its own.

    Args:
        plays: ``n``, of the base.
        information_gain: :math:`\gamma_T`, of the horizon.
        width: :math:`w_T`, of the horizon, for noise of deviation 1 in rewards.
        misspecification: What the base allows for, in rewards.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, for rewards in [0, 1].

    Example:
        >>> candidate_regret_bound(4.0, 2.0, 3.0, 0.0, 1.0)  # it promises nothing
        tensor(4., dtype=torch.float64)
    """
    (n,) = _as_nonnegative(plays=plays)
    promised = misspecified_regret_bound(
        n, information_gain, width, misspecification, noise_ratio
    )
    return torch.minimum(promised, n)


def elimination_loss_bound(
    information_gain: float | Tensor, misspecification: float, noise_ratio: float
) -> Tensor:
    r"""The largest loss of one elimination in phased uncertainty sampling (65).

    .. math:: 2 \epsilon \sqrt{(2 + 1 / \lambda) \gamma}

    Args:
        information_gain: :math:`\gamma` of the episode.
        misspecification: :math:`\epsilon`.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, in units of the outcome.

    Example:
        >>> elimination_loss_bound(3.0, 0.1, 1.0)
        tensor(0.6000, dtype=torch.float64)
    """
    gamma, eps, lam = _as_nonnegative(
        information_gain=information_gain, epsilon=misspecification, lam=noise_ratio
    )
    return 2 * eps * ((2 + 1 / lam) * gamma).sqrt()


def survivor_gap_bound(
    length: float | Tensor,
    information_gain: float | Tensor,
    width: float | Tensor,
    misspecification: float,
    noise_ratio: float,
) -> Tensor:
    r"""How far a survivor of an episode can be from the best survivor (69).

    .. math:: 2 \epsilon \sqrt{(2 + 1 / \lambda) \gamma}
        + 4 w \sqrt{\frac{(1 + 2 \lambda) \gamma}{m}}

    with ``m``, :math:`\gamma` and ``w`` of the episode before.

    Args:
        length: ``m``, its outcomes.
        information_gain: :math:`\gamma_m`.
        width: ``w``, Lemma 1's.
        misspecification: :math:`\epsilon`.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, in units of the outcome.

    Example:
        >>> survivor_gap_bound(3.0, 3.0, 1.0, 0.1, 1.0)
        tensor(7.5282, dtype=torch.float64)
    """
    m, w = _as_nonnegative(length=length, width=width)
    largest = deviation_sum_bound(information_gain, m, noise_ratio) / m
    lost = elimination_loss_bound(information_gain, misspecification, noise_ratio)
    return lost + 4 * w * largest


def phased_regret_bound(
    horizon: float | Tensor,
    information_gain: float | Tensor,
    width: float | Tensor,
    norm_bound: float,
    misspecification: float,
    noise_ratio: float,
) -> Tensor:
    r"""The cumulative regret of phased uncertainty sampling, (75) with (81).

    .. math:: R_T \le B + 32 w_T \sqrt{(1 + 2 \lambda) \gamma_T T}
        + 6 \epsilon T (1 + \ln T) \sqrt{(2 + 1 / \lambda) \gamma_T}

    Args:
        horizon: ``T``.
        information_gain: :math:`\gamma_T`.
        width: :math:`w_T`, the data-free one of (30).
        norm_bound: ``B``.
        misspecification: :math:`\epsilon`.
        noise_ratio: :math:`\lambda`.

    Returns:
        The bound, in units of the outcome.

    Example:
        >>> phased_regret_bound(100, 3.0, 1.0, 2.0, 0.0, 1.0)
        tensor(962., dtype=torch.float64)
    """
    T, w, B = _as_nonnegative(horizon=horizon, width=width, norm_bound=norm_bound)
    learning = 32 * w * deviation_sum_bound(information_gain, T, noise_ratio)
    lost = elimination_loss_bound(information_gain, misspecification, noise_ratio)
    return B + learning + 3 * T * (1 + T.log()) * lost


def _as_nonnegative(**numbers: float | Tensor) -> tuple[Tensor, ...]:
    """Float64 tensors of what the user gave, none negative."""
    return tuple(
        check_nonnegative(value, name).double() for name, value in numbers.items()
    )
