"""Sample paths at all contexts from their values at a few of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from botorch_drbo.posterior.skeleton import numerical_rank, pivoted_lu

_LEAST = 64  # contexts, below which there is nothing to save
_LARGEST = 0.5  # share of the contexts, above which it does not pay
_FIRST_SKETCH = 64  # random mixtures, and four times as many where these did not do
_NUM_CHECKS = 8  # random mixtures that are left out of the sketch
_TOLERANCE = 1e-12  # of the largest mixture: a pivot that is rounding
_CHECKED = 1e-10  # the same, of the error at any context
_SEED = 0


class Interpolation(NamedTuple):
    r"""Functions of the context by their values at some of the contexts.

    .. math:: f(c_i) = \sum_s E_{is} f(c_s)

    Attributes:
        chosen: The positions of these contexts, ``r``.
        matrix: ``E``, ``n x r``.
    """

    chosen: Tensor
    matrix: Tensor


def interpolation(functions: list[Tensor]) -> Interpolation | None:
    r"""A randomised interpolative decomposition of functions of the context.

    An LU factorisation with row pivots of random mixtures of the functions: the pivots
    are the contexts, the factors the interpolation. It is checked on mixtures of its
    own, at every context [Halko2011randomized]_.

    Args:
        functions: Tensors ``... x n``, float64, the functions of a kind in each: they
            are mixed in proportion to their size.

    Returns:
        The interpolation, or None where it takes too many contexts or is not right.
    """
    n = functions[0].shape[-1]
    generator = Generator().manual_seed(_SEED)
    width, most = _FIRST_SKETCH, int(_LARGEST * n)
    if n < _LEAST:
        return None
    while True:
        width = min(width, most + 1)
        # A sketch: mixtures of all functions span what they span, and the pivots of its
        # LU are the contexts that determine them.
        mixed = _mixtures(functions, width + _NUM_CHECKS, generator)  # n x k
        sketch, checks = mixed[:, :width], mixed[:, width:]
        pivots, factors = pivoted_lu(sketch)
        rank = numerical_rank(factors, _TOLERANCE * sketch.abs().max().item())
        # A pivot that is rounding: the span is found.
        if rank < width:
            break
        if width > most:
            return None
        width *= 4
    if not 0 < rank <= most:
        return None
    # P A = L U: the rows of L belong to the contexts in the order of the pivots.
    lower = factors[:, :rank].tril(-1)
    lower.diagonal().fill_(1.0)
    matrix = torch.empty_like(lower)
    matrix[pivots] = torch.linalg.solve_triangular(
        lower[:rank], lower, upper=False, left=False, unitriangular=True
    )
    chosen = pivots[:rank]
    # A posteriori, on mixtures that were no part of the sketch.
    error = (checks - matrix @ checks[chosen]).abs().max()
    if not bool(error <= _CHECKED * checks.abs().max()):
        return None
    return Interpolation(chosen, matrix)


def _mixtures(functions: list[Tensor], count: int, generator: Generator) -> Tensor:
    """Random mixtures of all functions, ``n x count``."""
    total = functions[0].new_zeros(functions[0].shape[-1], count)
    for each in functions:
        rows = each.reshape(-1, each.shape[-1])
        weights = torch.randn(len(rows), count, generator=generator, dtype=torch.double)
        total += rows.mT @ weights.to(rows)
    return total
