r"""The work by formula: flops and bytes of one forward and backward pass.

Let ``N = b n`` be the pairs of decision and context, ``t`` the observations, ``d`` the
model's input columns. Counted are products and sums of matrices (a multiplication and
an addition are two flops); exponentials and what is done once per pair are not.
"""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT = 8  # bytes


@dataclass(frozen=True)
class Work:
    """Floating point operations, and bytes read or written."""

    flops: int
    bytes: int

    def __add__(self, other: Work) -> Work:
        """Both, one after the other."""
        return Work(self.flops + other.flops, self.bytes + other.bytes)


def gemm_work(rows: int, t: int) -> Work:
    """One bare product ``(rows x t) @ (t x t)``.

    Two flops for each of ``rows t t`` terms; both factors are read and the product is
    written, once.
    """
    return Work(2 * rows * t * t, _FLOAT * (2 * rows * t + t * t))


def dense_work(pairs: int, t: int, d: int) -> Work:
    r"""The dense method: each pair has a kernel row of its own.

    One product with a ``t x t`` matrix, ``2 N t^2`` flops: ``(K + noise)^-1 k`` for
    the variance and its gradient. Beside it ``2 N t d`` for the distances, ``2 N t``
    for the mean, ``2 N t (1 + d)`` for its gradient and ``2 N t d`` to sum up the
    variance's. Bytes: those of the product, if everything else stays in the cache.
    """
    return gemm_work(pairs, t) + Work(pairs * t * (6 * d + 4), 0)


def product_work(b: int, n: int, t: int, d: int, rank: int) -> Work:
    r"""The product-kernel path: ``rank`` contexts per decision, and interpolation.

    The dense method for ``b r`` pairs. Then mean and variance at ``n`` contexts are
    ``(2 b x r) @ (r x n)``, ``4 b r n`` flops; the backward pass takes as many. Bytes:
    factors read and products written, forward and backward.
    """
    interpolation = Work(
        2 * (2 * 2 * b * rank * n),
        2 * _FLOAT * (2 * b * rank + rank * n + 2 * b * n),
    )
    return dense_work(b * rank, t, d) + interpolation
