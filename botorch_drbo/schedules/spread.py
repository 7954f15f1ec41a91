"""A radius in proportion to the spread of the contexts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from torch import Tensor

from botorch_drbo.contexts.forgetting import effective_size, weighted_variance
from botorch_drbo.schedules._fields import NONNEGATIVE
from botorch_drbo.schedules.base import ContextRule


@final
@dataclass(frozen=True)
class SpreadRadius(ContextRule):
    r"""A Wasserstein radius proportional to the spread of the observed contexts.

    .. math:: \epsilon_t = a \sqrt{\frac{\operatorname{tr} \hat\Sigma_t}{t}}

    with :math:`\hat\Sigma_t` the covariance (divisor ``t - 1``) of the ``t`` contexts,
    in units of the context box; ``a`` is ``scale``. Two reasons for ``a = 1.25``:

    - *The distance of the data from their law.* In one dimension
      :math:`\sqrt t \, E W_1(\hat P_t, P) \to
      \sqrt{2 / \pi} \int \sqrt{F (1 - F)}`, which is 1.29 standard deviations for a
      normal law and 1.09 for a uniform one. (In more dimensions :math:`W_1` itself
      shrinks more slowly.)
    - *One function.* For one Lipschitz function of constant ``L``, the variance is at
      most :math:`L^2 \operatorname{tr} \Sigma` in any dimension: by the central limit
      theorem its mean over the data exceeds its true mean by more than
      :math:`\epsilon_t L` with a probability of at most 10.6 %.

    A radius that ignores the spread, such as ``0.3 / sqrt(t)`` in the experiments of
    [Micheli2025wdrbo]_, suits only one spread (about .24 of the box), and depends on
    how wide ``context_bounds`` were chosen; this one does not. It is a rule of thumb,
    not a bound; for a bound see ``WassersteinConfidenceRadius``.

    If old contexts have lower weights, the variance is weighted, and the effective
    sample size :math:`1 / \sum_i p_i^2` replaces ``t``.

    A single context has no spread; the largest possible spread in the box is used,
    :math:`\operatorname{tr} \Sigma = d_c / 4`.

    Args:
        scale: ``a``, not negative.

    Raises:
        InputDataError: Not a number, not finite or negative.

    Example:
        >>> import torch
        >>> from botorch_drbo.schedules import SpreadRadius
        >>> round(SpreadRadius().of(torch.tensor([[0.2], [0.4], [0.6], [0.8]])), 4)
        0.1614
    """

    scale: float = field(default=1.25, metadata=NONNEGATIVE)

    def of(self, contexts: Tensor, weights: Tensor | None = None) -> float:
        r"""The formula of the class.

        Args:
            contexts: The contexts seen, in units of the context box, ``t x d_c``.
            weights: By how much each counts, ``t``, summing to one.

        Returns:
            The radius, in the same units.
        """
        trace, size = _trace_and_size(contexts, weights, 0.25 * contexts.shape[1])
        return self.scale * math.sqrt(trace / size)


def deviations(
    contexts: Tensor, weights: Tensor | None, sizes: Sequence[int]
) -> Tensor:
    r"""The standard deviation of each column of the contexts seen.

    .. math:: r_j = \sqrt{\operatorname{tr} \hat\Sigma_j}

    with :math:`\hat\Sigma_j` the covariance of the entries that stand for the column
    ``j``: one for a number, and as many as there are categories for one of these. Of
    one context alone it counts as the widest, one half.

    Args:
        contexts: The contexts seen, in units of the context box, ``t x e``.
        weights: By how much each counts, ``t``, summing to one; None for equally.
        sizes: How many entries each column has, ``d_c`` with the sum ``e``.

    Returns:
        In the same units, ``d_c``.

    Example:
        >>> import torch
        >>> seen = torch.tensor([[0.2], [0.4], [0.6], [0.8]])
        >>> deviations(seen, None, [1]), seen.std()
        (tensor([0.2582]), tensor(0.2582))
    """
    parts = contexts.split(list(sizes), dim=-1)
    traces = [_trace_and_size(part, weights, 0.25)[0] for part in parts]
    return contexts.new_tensor(traces).sqrt()


def _trace_and_size(
    contexts: Tensor, weights: Tensor | None, unknown: float
) -> tuple[float, float]:
    """The trace of the covariance, and the effective number of contexts."""
    t = len(contexts)
    if weights is None:
        return (contexts.double().var(0).sum().item() if t > 1 else unknown), t
    size = effective_size(weights)
    known = size > 1.0 + 1e-9  # else one context has all the weight
    trace = weighted_variance(contexts, weights).sum().item()
    return (trace if known else unknown), size
