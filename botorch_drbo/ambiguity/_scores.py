"""Scores are scaled to a range of one before they are solved."""

from __future__ import annotations

import torch
from torch import Tensor


def scaled_scores(values: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Shift scores by ``low`` and divide them by their range.

    Only differences of scores matter: a large offset would cost digits, and squares of
    very large or small scores would overflow.

    Args:
        values: Scores, ``... x n``.
        low: The score that becomes zero, ``... x 1``.

    Returns:
        The scaled scores ``... x n``, and the range ``... x 1``; one where it is zero.
    """
    span = values.amax(-1, keepdim=True) - values.amin(-1, keepdim=True)
    span = torch.where(span > 0, span, 1.0)
    return (values - low) / span, span
