r"""Moments interpolated over the context: a randomised interpolative decomposition.

With a kernel that factorises, the posterior mean as a function of the context lies, for
every decision, in the span of the rows ``b(c)`` of the context's side; the posterior
variance in the span of their products. Both spans are of low rank where ``b`` is
smooth. So ``r`` contexts, the *skeleton*, are chosen once such that all functions of
the span are interpolated from their values there,

.. math:: f(c) = \sum_s e_s(c)\, f(c_s),

and the GP is evaluated at ``r`` contexts instead of ``n``. The functions ``e_s`` equal
one at ``c_s`` and zero at the other skeleton contexts: an interpolative decomposition
of the rows of the matrix ``n x columns`` of all these functions. It is found from a
random sketch of the columns, by an LU factorisation with row pivots, and checked
a posteriori on random columns of their own [Halko2011randomized]_.

Accuracy: an error ``db`` in the rows becomes ``|alpha| |db|`` in the mean and
``2 |L^-1| |db|`` in the variance, so directions of ``b`` count by that amplification.
What is left after it is a quadratic form with bounded coefficients, and the products
need no more care than the tolerance itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Log10,
    Normalize,
    NumericToCategoricalEncoding,
    Round,
    Warp,
)
from torch import Generator, Tensor
from torch.nn import Module

from botorch_drbo.kernels.context_kernel import ContextKernel
from botorch_drbo.posterior.wrapped import AddedPerturbation, KnownColumns

# Contexts among which the skeleton is chosen: a few, and more where they did not do.
_CANDIDATES = (256, 2048)
_CANDIDATES_PER_PIVOT = 4  # the fewest candidates for each pivot
_FIRST_SKETCH = 48  # columns of the first sketch of the rows
_OVERSAMPLING = 4  # columns of the first sketch of the products, per feature
_NUM_CHECKS = 8  # random columns that are left out of the sketch, for the check
_CHECK_FACTOR = 500.0  # what the check may find, in tolerances
_SEED = 0


class Skeleton(NamedTuple):
    """The skeleton contexts, and how the functions ``e_s`` are evaluated."""

    # The context's side of the kernel.
    kernel: ContextKernel
    # Row numbers of the skeleton contexts, ``r``.
    chosen: Tensor
    # ``e_s(c_i)`` at all contexts, ``n x r``.
    interpolation: Tensor
    # What is added in the products of a row ``b``, ``2 r``.
    constants: Tensor
    # Products are ``(b @ mixing + constants)``, its first half times its second,
    # ``columns x 2 r``.
    mixing: Tensor
    # LU factors of the products at the skeleton, ``r x r``, in one matrix.
    factors: Tensor

    def values_and_slopes(self, contexts: Tensor, units: Tensor) -> Tensor:
        """Evaluate the functions ``e_s`` and their slopes, at any contexts.

        Shapes: ``contexts``: ``n x d_c``, ``units``: ``n x d_c``, returns ``(1 + d_c) x
        n x r``.
        """
        rows, changes = self.kernel.rows_and_slopes(contexts)
        r = len(self.chosen)
        # e(c) = (u(c) v(c)) (L U)^-1 and, by the product rule, its derivative.
        left, right = (rows @ self.mixing + self.constants).split(r, dim=-1)
        d_left, d_right = (changes @ self.mixing).split(r, dim=-1)  # d_c x n x r
        slopes = torch.addcmul(d_left * right, left, d_right) * units.mT.unsqueeze(-1)
        products = torch.cat([(left * right).unsqueeze(0), slopes])
        return _right_solve(products.flatten(0, 1), self.factors).unflatten(
            0, products.shape[:2]
        )

    def flops_per_context(self) -> int:
        """Count the work of ``values_and_slopes`` at one context."""
        columns, r = len(self.mixing), len(self.chosen)
        return (1 + self.kernel.points.shape[-1]) * (4 * columns * r + 2 * r * r)


def find_skeleton(
    kernel: ContextKernel,
    contexts: Tensor,
    *,
    amplification: float,
    tolerance: float,
    max_size: int,
    chunk: int,
) -> Skeleton | None:
    """Choose the skeleton by a randomised interpolative decomposition, and check it.

    Two LU factorisations with row pivots of random sketches: of the rows ``b``, which
    gives ``f`` features, each with the weight that it can have in a posterior; and of
    products of two features (one of them may be the constant). The pivots of the
    second are the skeleton. The check is on random products that were no part of the
    sketch: where their interpolation misses the tolerance at any context, there is no
    skeleton. [Halko2011randomized]_, sections 4.3 and 5.2.

    Shapes: ``contexts``: ``n x d_c``.
    """
    # Candidate rows: a random sample of the contexts, then a larger one.
    generator = Generator().manual_seed(_SEED)
    n, device = len(contexts), contexts.device
    order = torch.randperm(n, generator=generator).to(device)[: _CANDIDATES[-1]]
    # Rows in chunks: a block of them has temporaries for each of its columns.
    parts = contexts[order].split(min(chunk, len(order)))
    candidates = torch.cat([kernel(part) for part in parts])
    for count in _CANDIDATES:
        is_last = count >= len(order)
        decomposition = _decompose(
            candidates[:count],
            amplification=amplification,
            tolerance=tolerance,
            max_size=min(max_size, n - 1),
            generator=generator,
        )
        # So many pivots among so few candidates say that more are needed.
        if decomposition is not None and (
            is_last or _CANDIDATES_PER_PIVOT * len(decomposition.pivots) <= count
        ):
            # A posteriori: the interpolation error of random columns, at every context.
            error, interpolation = _check(decomposition, kernel, contexts, chunk)
            if bool(error <= _CHECK_FACTOR * tolerance):
                both = torch.cat([decomposition.left, decomposition.right], -1)
                return Skeleton(
                    kernel=kernel,
                    chosen=order[decomposition.pivots],
                    interpolation=interpolation,
                    constants=both[0],
                    mixing=decomposition.mixing @ both[1:],
                    factors=decomposition.factors,
                )
        if is_last:
            break
    return None


class _Truncation(NamedTuple):
    """The random check of the first decomposition, that of the rows."""

    mixing: Tensor  # columns x f
    factors: Tensor  # f x f
    weights: Tensor  # columns x k, random, amplified
    chosen: Tensor  # f x k, the columns at the pivots

    def error(self, rows: Tensor) -> Tensor:
        coefficients = _right_solve(rows @ self.mixing, self.factors)
        return (rows @ self.weights - coefficients @ self.chosen).abs().max()


class _Decomposition(NamedTuple):
    """A decomposition of the products, and the columns of its random check."""

    pivots: Tensor
    mixing: Tensor
    left: Tensor
    right: Tensor
    factors: Tensor
    check_factors: tuple[Tensor, Tensor]  # of products that are no part of it
    check_at_pivots: Tensor
    truncation: _Truncation | None


def _decompose(
    rows: Tensor,
    *,
    amplification: float,
    tolerance: float,
    max_size: int,
    generator: Generator,
) -> _Decomposition | None:
    """Decompose random products of features; None if their rank is too large."""
    # First decomposition: a few features span the rows, and moments, which are of
    # second degree in the rows, are in the span of products of two features.
    mixing, truncation = _range_basis(rows, amplification, tolerance, generator)
    features = _features(rows, mixing)  # n x (1 + f)
    size = features.shape[-1]
    # Products span at most size (size + 1) / 2 functions, and usually far fewer.
    max_width = min(size * (size + 1) // 2, max_size + 1, len(rows))
    width = min(max_width, _OVERSAMPLING * size)
    # Pivots below this are noise, or make less of a difference than is asked for.
    floor = max(0.1 * tolerance, _rounding_floor(amplification, features))
    while True:
        # Sketch: random columns of the n x size^2 matrix of all products.
        shape = [2, size, width + _NUM_CHECKS]
        left, right = _gaussian(shape, generator, features) / size**0.5
        products = (features @ left) * (features @ right)
        # P A = L U: the first rows in the order of the pivots interpolate the others.
        pivots, factors = pivoted_lu(products[:, :width])
        rank = numerical_rank(factors, floor)
        # A sketch of full rank may have missed some of the span: double it.
        if rank < width or width == max_width:
            break
        width = min(max_width, 2 * width)
    # More functions than are worth it: every context is evaluated instead.
    if rank > max_size:
        return None
    return _Decomposition(
        pivots=pivots[:rank],
        mixing=mixing,
        left=left[:, :rank],
        right=right[:, :rank],
        factors=factors[:rank, :rank],
        check_factors=(left[:, width:], right[:, width:]),
        check_at_pivots=products[pivots[:rank], width:],
        truncation=truncation,
    )


def _check(
    decomposition: _Decomposition, kernel: ContextKernel, contexts: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    """The largest error of the check, and the interpolation matrix ``n x r``."""
    errors, parts = [], []
    for part in contexts.split(chunk):
        rows = kernel(part)
        features = _features(rows, decomposition.mixing)
        # e(c) = (u(c) v(c)) (L U)^-1, and products that the sketch has not seen, which
        # it should interpolate if all of them are.
        products = (features @ decomposition.left) * (features @ decomposition.right)
        interpolation = _right_solve(products, decomposition.factors)
        checks = (features @ decomposition.check_factors[0]) * (
            features @ decomposition.check_factors[1]
        )
        errors.append(
            (checks - interpolation @ decomposition.check_at_pivots).abs().max()
        )
        # The rows themselves: what the features miss is in no product of them.
        if decomposition.truncation is not None:
            errors.append(decomposition.truncation.error(rows))
        parts.append(interpolation)
    return torch.stack(errors).max(), torch.cat(parts)


def _features(rows: Tensor, mixing: Tensor) -> Tensor:
    """A constant and the rows in the basis, ``n x (1 + f)``."""
    return torch.cat([rows.new_ones(len(rows), 1), rows @ mixing], dim=-1)


def _range_basis(
    rows: Tensor, amplification: float, tolerance: float, generator: Generator
) -> tuple[Tensor, _Truncation | None]:
    """A randomised basis of the rows' range: features as mixtures, ``columns x f``.

    With ``rows @ omega = P L U`` the columns of ``L`` are a basis with entries of at
    most one, and the pivots of ``U`` say how large the rows are in each direction. A
    direction that is small even when amplified gets that small weight.
    """
    n, columns = rows.shape
    if columns == 0:
        return rows.new_empty(0, 0), None
    # Randomised range finder: mixtures of the columns span their range, and the LU of a
    # sketch that is wide enough ends in pivots that are noise.
    width = min(n, columns, _FIRST_SKETCH)
    while True:
        omega = _gaussian([columns, width], generator, rows) / columns**0.5
        pivots, factors = pivoted_lu(rows @ omega)
        floor = max(tolerance / amplification, _rounding_floor(1.0, rows))
        rank = numerical_rank(factors, floor)
        if rank < width or width == min(n, columns):
            break
        # No such pivot yet: the rank is at least the width.
        width = min(n, columns, 4 * width)
    omega, factors = omega[:, :rank], factors[:rank, :rank]
    # L = rows omega U^-1, its columns scaled by min(1, amplification |U_jj|).
    scales = (factors.diagonal().abs() * amplification).clamp_max(1.0)
    mixing = scales * torch.linalg.solve_triangular(
        factors, omega, upper=True, left=False
    )
    # For the check: mixtures as large as a row's weights in a moment can be.
    weights = _gaussian([columns, _NUM_CHECKS], generator, rows)
    weights = weights * (amplification / weights.norm(dim=0))
    chosen = rows[pivots[:rank]] @ weights
    return mixing, _Truncation(omega, factors, weights, chosen)


def _right_solve(products: Tensor, factors: Tensor) -> Tensor:
    """``products @ (L U)^-1``."""
    products = torch.linalg.solve_triangular(factors, products, upper=True, left=False)
    return torch.linalg.solve_triangular(
        factors, products, upper=False, left=False, unitriangular=True
    )


def _gaussian(shape: list[int], generator: Generator, like: Tensor) -> Tensor:
    """Standard normals, drawn on the CPU: every device finds the same skeleton."""
    return torch.randn(*shape, generator=generator, dtype=torch.double).to(like)


def pivoted_lu(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in the order of the pivots, and ``L`` below and ``U`` above the diagonal."""
    factors, swaps, _ = torch.linalg.lu_factor_ex(matrix)  # singular is normal here
    # LAPACK's swaps one after the other, as one permutation.
    rows = np.arange(len(matrix))
    for i, j in enumerate(swaps.tolist()):
        rows[i], rows[j - 1] = rows[j - 1], rows[i]
    return torch.from_numpy(rows).to(matrix.device), factors


def numerical_rank(factors: Tensor, floor: float) -> int:
    """The number of pivots up to the last one above the floor."""
    above = (factors.diagonal().abs() > floor).nonzero()
    return int(above.max()) + 1 if len(above) else 0


def _rounding_floor(amplification: float, like: Tensor) -> float:
    """The size below which a pivot is rounding noise."""
    return 32.0 * amplification * torch.finfo(like.dtype).eps


_COLUMNWISE = (
    type(None),
    InputStandardize,
    KnownColumns,
    Log10,
    Normalize,
    Warp,
)
_LINEAR = (type(None), AddedPerturbation, InputStandardize, KnownColumns, Normalize)


def column_sources(transform: Module | None, num_columns: int) -> list[int] | None:
    """Find which input column each column of the result depends on."""
    columns = list(range(num_columns))
    if type(transform) is ChainedInputTransform:
        for part in transform.values():
            found = column_sources(part, len(columns))
            if found is None:
                return None
            columns = [columns[source] for source in found]
        return columns
    if type(transform) is NumericToCategoricalEncoding:
        results = dict(
            zip(transform.new_numerical_idx, transform.numerical_idx, strict=True)
        )
        for source, encoded in zip(
            transform.ordinal_idx, transform.encoded_idx, strict=True
        ):
            results |= dict.fromkeys(encoded, source)
        return [results[column] for column in sorted(results)]
    # `Round` may also make a group of columns one-hot; then each depends on all of it.
    if type(transform) in _COLUMNWISE or (
        type(transform) is Round and not transform.categorical_features
    ):
        return columns
    return None


def columns_from(sources: Sequence[int], columns: Sequence[int]) -> list[int]:
    """The results that depend on some columns, in the order of these columns."""
    return [
        i for column in columns for i, source in enumerate(sources) if source == column
    ]


def keeps_differences(transform: Module | None, num_columns: int) -> bool:
    """Whether two contexts are known to differ by the same for every decision.

    So they do where no column of the result mixes decision and context, and where the
    transform is a linear one: then a stationary kernel between contexts does not depend
    on the decision.
    """
    apart = column_sources(transform, num_columns) is not None
    return apart or _flattened(transform) <= set(_LINEAR)


def _flattened(transform: Module | None) -> set[type]:
    """The classes of all parts of a transform."""
    if type(transform) is ChainedInputTransform:
        return set[type]().union(*map(_flattened, transform.values()))
    return {type(transform)}
