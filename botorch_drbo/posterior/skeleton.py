r"""A few contexts that speak for all: interpolation of moments over the context.

With a kernel that factorises, the posterior mean as a function of the context lies, for
every decision, in the span of the rows ``b(c)`` of the context's side; the posterior
variance in the span of their products. Both spans are small where ``b`` is smooth. So
``r`` contexts, the *skeleton*, are chosen once such that all functions of the span are
interpolated from their values there,

.. math:: f(c) = \sum_s e_s(c)\, f(c_s),

and the GP is evaluated at ``r`` contexts instead of ``n``. The functions ``e_s`` equal
one at ``c_s`` and zero at the other skeleton contexts.

What accuracy costs: an error ``db`` in the rows becomes ``|alpha| |db|`` in the mean
and ``2 |L^-1| |db|`` in the variance, so directions of ``b`` count by that
amplification. What is left after it is a quadratic form with bounded coefficients, and
the products need no more care than the tolerance itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from botorch_drbo.kernels import ContextKernel

# Contexts among which the skeleton is chosen: a few, and more where they did not do.
_CANDIDATES = (256, 2048)
_PER_PIVOT = 4  # candidates that there should be for each context that is chosen
_FIRST_SKETCH = 48
_WIDTH = 4  # random products per feature, to begin with
_SPARE = 8  # random columns that take no part in the choice, but check it
_CHECK_FACTOR = 500.0  # what the check may find, in tolerances
_SEED = 0


class Skeleton(NamedTuple):
    r"""Which contexts were chosen, and how the functions ``e_s`` are evaluated.

    Args:
        kernel: The context's side of the kernel.
        chosen: Row numbers of the skeleton contexts, ``r``.
        interpolation: ``e_s(c_i)`` at all contexts, ``n x r``.
        constants: What is added in the products of a row ``b``, ``2 r``.
        mixing: Products are ``(b @ mixing + constants)``, its first half times its
            second, ``columns x 2 r``.
        factors: LU factors of the products at the skeleton, ``r x r``, in one matrix.
    """

    kernel: ContextKernel
    chosen: Tensor
    interpolation: Tensor
    constants: Tensor
    mixing: Tensor
    factors: Tensor

    def values_and_slopes(self, contexts: Tensor, units: Tensor) -> Tensor:
        r"""Evaluate the functions ``e_s`` and their slopes, at any contexts.

        Args:
            contexts: ``n x d_c``, in the kernel's units, float64.
            units: What slopes are multiplied by, the kernel's units in terms of those
                that slopes are asked in, ``n x d_c``.

        Returns:
            Values first, then the slope in each column: ``(1 + d_c) x n x r``.
        """
        rows, changes = self.kernel.rows_and_slopes(contexts)
        r = len(self.chosen)
        left, right = (rows @ self.mixing + self.constants).split(r, dim=-1)
        d_left, d_right = (changes @ self.mixing).split(r, dim=-1)  # d_c x n x r
        slopes = torch.addcmul(d_left * right, left, d_right) * units.mT.unsqueeze(-1)
        products = torch.cat([(left * right).unsqueeze(0), slopes])
        return _divided(products.flatten(0, 1), self.factors).unflatten(
            0, products.shape[:2]
        )

    def flops_per_context(self) -> int:
        r"""Count the work of ``values_and_slopes`` at one context.

        Returns:
            Floating point operations, the kernel's rows not counted.
        """
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
    r"""Choose the skeleton among the contexts, and check that it speaks for all.

    Two LU factorisations with row pivots of random mixtures: of the rows ``b``, which
    gives ``f`` features, each with the weight that it can have in a posterior; and of
    products of two features (one of them may be the constant). The pivots of the
    second are the skeleton. Then random products that took no part are interpolated at
    every context: where that misses the tolerance, there is no skeleton.

    Args:
        kernel: The context's side of the kernel.
        contexts: ``n x d_c``, in the kernel's units, float64.
        amplification: What an error in a row is multiplied by in the moments.
        tolerance: Error of the moments that is aimed at, relative to the prior's.
        max_size: A larger skeleton does not pay.
        chunk: Contexts to check at a time.

    Returns:
        The skeleton, or None if there is none that pays or none that is right.
    """
    generator = Generator().manual_seed(_SEED)
    n, device = len(contexts), contexts.device
    order = torch.randperm(n, generator=generator).to(device)[: _CANDIDATES[-1]]
    parts = contexts[order].split(min(chunk, len(order)))
    candidates = torch.cat([kernel(part) for part in parts])
    for count in _CANDIDATES:
        last = count >= len(order)
        choice = _choose(
            candidates[:count],
            amplification=amplification,
            tolerance=tolerance,
            max_size=min(max_size, n - 1),
            generator=generator,
        )
        if choice is None or (_PER_PIVOT * len(choice.pivots) > count and not last):
            if last:
                return None
            continue
        error, interpolation = _check(choice, kernel, contexts, chunk)
        if bool(error <= _CHECK_FACTOR * tolerance):
            return Skeleton(
                kernel=kernel,
                chosen=order[choice.pivots],
                interpolation=interpolation,
                constants=torch.cat([choice.left[0], choice.right[0]]),
                mixing=choice.mixing @ torch.cat([choice.left, choice.right], -1)[1:],
                factors=choice.factors,
            )
        if last:
            return None
    return None


class _Truncation(NamedTuple):
    """Random mixtures of a row, less their interpolation from some of the rows."""

    mixing: Tensor  # columns x f
    factors: Tensor  # f x f
    weights: Tensor  # columns x k, amplified
    chosen: Tensor  # f x k, the mixtures at the chosen rows

    def error(self, rows: Tensor) -> Tensor:
        known = _divided(rows @ self.mixing, self.factors)
        return (rows @ self.weights - known @ self.chosen).abs().max()


class _Choice(NamedTuple):
    """A skeleton that has not been checked, and what checks it."""

    pivots: Tensor
    mixing: Tensor
    left: Tensor
    right: Tensor
    factors: Tensor
    spare: tuple[Tensor, Tensor]  # factors of products that took no part
    spare_chosen: Tensor  # those products at the skeleton
    truncation: _Truncation | None


def _choose(
    rows: Tensor,
    *,
    amplification: float,
    tolerance: float,
    max_size: int,
    generator: Generator,
) -> _Choice | None:
    """The pivots of random products of features; None if there are too many."""
    mixing, truncation = _mixing(rows, amplification, tolerance, generator)
    features = _features(rows, mixing)  # n x (1 + f)
    size = features.shape[-1]
    # Products span at most size (size + 1) / 2 functions, and usually far fewer.
    most = min(size * (size + 1) // 2, max_size + 1, len(rows))
    width = min(most, _WIDTH * size)
    floor = max(0.1 * tolerance, _rounding(amplification, features))
    while True:
        shape = [2, size, width + _SPARE]
        left, right = _normal(shape, generator, features) / size**0.5
        products = (features @ left) * (features @ right)
        pivots, factors = _pivoted_lu(products[:, :width])
        rank = _last_above(factors, floor)
        if rank < width or width == most:
            break
        width = min(most, 2 * width)
    if rank > max_size:
        return None
    return _Choice(
        pivots=pivots[:rank],
        mixing=mixing,
        left=left[:, :rank],
        right=right[:, :rank],
        factors=factors[:rank, :rank],
        spare=(left[:, width:], right[:, width:]),
        spare_chosen=products[pivots[:rank], width:],
        truncation=truncation,
    )


def _check(
    choice: _Choice, kernel: ContextKernel, contexts: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    """The worst of what is lost at any context; and the interpolation, ``n x r``."""
    errors, parts = [], []
    for part in contexts.split(chunk):
        rows = kernel(part)
        features = _features(rows, choice.mixing)
        products = (features @ choice.left) * (features @ choice.right)
        interpolation = _divided(products, choice.factors)
        spare = (features @ choice.spare[0]) * (features @ choice.spare[1])
        errors.append((spare - interpolation @ choice.spare_chosen).abs().max())
        if choice.truncation is not None:
            errors.append(choice.truncation.error(rows))
        parts.append(interpolation)
    return torch.stack(errors).max(), torch.cat(parts)


def _features(rows: Tensor, mixing: Tensor) -> Tensor:
    """A constant and the mixed rows, ``n x (1 + f)``."""
    return torch.cat([rows.new_ones(len(rows), 1), rows @ mixing], dim=-1)


def _mixing(
    rows: Tensor, amplification: float, tolerance: float, generator: Generator
) -> tuple[Tensor, _Truncation | None]:
    """Which mixtures of a row's entries are the features, ``columns x f``.

    With ``rows @ omega = P L U`` the columns of ``L`` are a basis with entries of at
    most one, and the pivots of ``U`` say how large the rows are in each direction. A
    direction that is small even when amplified gets that small weight.
    """
    n, columns = rows.shape
    if columns == 0:
        return rows.new_empty(0, 0), None
    width = min(n, columns, _FIRST_SKETCH)
    while True:
        omega = _normal([columns, width], generator, rows) / columns**0.5
        pivots, factors = _pivoted_lu(rows @ omega)
        floor = max(tolerance / amplification, _rounding(1.0, rows))
        rank = _last_above(factors, floor)
        if rank < width or width == min(n, columns):
            break
        width = min(n, columns, 4 * width)
    omega, factors = omega[:, :rank], factors[:rank, :rank]
    sizes = (factors.diagonal().abs() * amplification).clamp_max(1.0)
    mixing = sizes * torch.linalg.solve_triangular(
        factors, omega, upper=True, left=False
    )
    weights = _normal([columns, _SPARE], generator, rows)
    weights = weights * (amplification / weights.norm(dim=0))
    chosen = rows[pivots[:rank]] @ weights
    return mixing, _Truncation(omega, factors, weights, chosen)


def _divided(products: Tensor, factors: Tensor) -> Tensor:
    """``products @ (L U)^-1``."""
    products = torch.linalg.solve_triangular(factors, products, upper=True, left=False)
    return torch.linalg.solve_triangular(
        factors, products, upper=False, left=False, unitriangular=True
    )


def _normal(shape: list[int], generator: Generator, like: Tensor) -> Tensor:
    """Drawn on the CPU, so that every device finds the same skeleton."""
    return torch.randn(*shape, generator=generator, dtype=torch.double).to(like)


def _pivoted_lu(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in the order of the pivots, and ``L`` below and ``U`` above the diagonal."""
    factors, swaps, _ = torch.linalg.lu_factor_ex(matrix)  # singular is normal here
    rows = np.arange(len(matrix))
    for i, j in enumerate(swaps.tolist()):
        rows[i], rows[j - 1] = rows[j - 1], rows[i]
    return torch.from_numpy(rows).to(matrix.device), factors


def _last_above(factors: Tensor, floor: float) -> int:
    """How many pivots, up to the last one above the floor."""
    above = (factors.diagonal().abs() > floor).nonzero()
    return int(above.max()) + 1 if len(above) else 0


def _rounding(amplification: float, like: Tensor) -> float:
    """Below this a pivot is rounding noise."""
    return 32.0 * amplification * torch.finfo(like.dtype).eps
