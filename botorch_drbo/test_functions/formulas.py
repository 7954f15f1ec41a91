r"""The formulas of the papers' test functions: pairs ``N x d_x``, ``N x d_c`` to ``N``.

Higher is better: what is minimised in the literature is negated here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Of both Hartmann functions; the "2.0" printed in [Huang2024sbokde]_ is a slip.
_ALPHA = (1.0, 1.2, 3.0, 3.2)
_A6 = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_P6 = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)
_A3 = ((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35))
_P3 = (
    (0.3689, 0.1170, 0.2673),
    (0.4699, 0.4387, 0.7470),
    (0.1091, 0.8732, 0.5547),
    (0.0381, 0.5743, 0.8828),
)


def ackley(x: Tensor, c: Tensor) -> Tensor:
    r"""The negated Ackley function, of any number of columns.

    With :math:`z = 65.536\,[x, c] - 32.768` in :math:`d = d_x + d_c` dimensions,

    .. math::
        f = 20 e^{-0.2 \|z\| / \sqrt{d}} + e^{\frac1d \sum_i \cos 2 \pi z_i} - 20 - e.

    The optimum of the 2+1 function under N(.5, .2^2) is -12.531; the -12.78 in the
    public code of the papers is not.
    """
    z = 65.536 * torch.cat([x, c], dim=-1) - 32.768  # N x d
    radius = torch.linalg.vector_norm(z, dim=-1) / math.sqrt(z.shape[-1])
    ripple = (2 * math.pi * z).cos().mean(-1).exp()
    return 20 * (-0.2 * radius).exp() + ripple - 20 - math.e


def modified_branin(x: Tensor, c: Tensor) -> Tensor:
    r"""Two Branin functions joined across two decisions and two contexts.

    .. math::
        f = -\sqrt{h(15 x_1 - 5, 15 c_1) \, h(15 c_2 - 5, 15 x_2)}, \quad
        h(u, v) = (v - \tfrac{5.1}{4 \pi^2} u^2 + \tfrac5\pi u - 6)^2
        + 10 (1 - \tfrac1{8 \pi}) \cos u + 10.
    """
    first = _branin(15 * x[:, 0] - 5, 15 * c[:, 0])
    second = _branin(15 * c[:, 1] - 5, 15 * x[:, 1])
    return -(first * second).sqrt()  # h >= 0.397: the root is smooth


def _branin(u: Tensor, v: Tensor) -> Tensor:
    valley = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * u.cos() + 10


def hartmann(x: Tensor, c: Tensor) -> Tensor:
    r"""The Hartmann function of five decisions and one context, or of two and one.

    .. math:: f = \sum_{i=1}^4 \alpha_i e^{-\sum_j A_{ij} (z_j - P_{ij})^2},
        \quad z = [x, c], \quad \alpha = (1, 1.2, 3, 3.2).
    """
    z = torch.cat([x, c], dim=-1)
    scales, centres = (_A6, _P6) if z.shape[-1] == 6 else (_A3, _P3)
    alpha, a, p = (z.new_tensor(v) for v in (_ALPHA, scales, centres))
    squares = (a * (z.unsqueeze(-2) - p) ** 2).sum(-1)  # N x 4
    return (alpha * (-squares).exp()).sum(-1)


def newsvendor(x: Tensor, c: Tensor) -> Tensor:
    r"""The profit of ordering x units when c are asked for.

    .. math:: f(x, c) = 9 \min(x, c) + \max(0, x - c) - 5 x

    (price 9, salvage value 1, cost 5). The best order is the median of the demand.
    """
    sold, left = torch.minimum(x, c), (x - c).clamp_min(0)
    return (9 * sold + left - 5 * x).squeeze(-1)


def three_hump_camel(x: Tensor, c: Tensor) -> Tensor:
    r"""The negated three-hump camel; the decision is the first column.

    .. math:: f = -(2 x^2 - 1.05 x^4 + x^6 / 6 + x c + c^2)
    """
    u, v = x.squeeze(-1), c.squeeze(-1)
    return -(2 * u**2 - 1.05 * u**4 + u**6 / 6 + u * v + v**2)


def six_hump_camel(x: Tensor, c: Tensor) -> Tensor:
    r"""The negated six-hump camel; the decision is the first column.

    With :math:`z_1 = 4 x - 2 \in [-2, 2]` and :math:`z_2 = 2 c - 1 \in [-1, 1]`,

    .. math::
        f = -((4 - 2.1 z_1^2 + z_1^4 / 3) z_1^2 + z_1 z_2 + (4 z_2^2 - 4) z_2^2).
    """
    u, v = 4 * x.squeeze(-1) - 2, 2 * c.squeeze(-1) - 1
    return -((4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2)


def wasserstein_figure_1(x: Tensor, c: Tensor) -> Tensor:
    r"""The illustration of Figure 1 of [Micheli2025wdrbo]_.

    .. math:: f(x, c) = 1 - \frac{|c - .5|}{|x| + .2} - \sqrt{|x| + .05}

    Near x = 0 it is best at c = .5 and falls fastest with c, so trust in a reference
    around .5 is punished. It is even in x.
    """
    size = x.squeeze(-1).abs()
    distance = (c.squeeze(-1) - 0.5).abs()
    return 1 - distance / (size + 0.2) - (size + 0.05).sqrt()
