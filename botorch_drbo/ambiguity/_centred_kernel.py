"""A kernel matrix among vectors that sum to zero, by few eigenvectors where they do."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module

_LARGEST_RANK = 0.25  # share of the columns from which on all of them are taken
_ROUNDING = 4.0  # of the unit roundoff: a remaining diagonal that is rounding
_BACKWARD = 16.0  # of the unit roundoff and the matrix: as good as `eigh`
_FAR_BELOW = 1e-7  # of the jitter, that rounding may have


class CentredKernel(Module):
    r"""``K + jitter I``, seen by vectors ``d`` that sum to zero.

    .. math:: d^\top (K + j I) d = \|F^\top d\|^2 + \text{rest} \|d\|^2, \qquad
        F = V \,\mathrm{diag}(\sqrt{s})

    with orthonormal eigenvectors ``V``, ``n x r``, that sum to zero. Either these are
    all, ``r = n - 1``, the jitter is in the eigenvalues ``s``, and the rest is zero. Or
    they are those of the smooth part ``K`` alone, which has few: then the rest is the
    jitter, and products cost ``n r`` in place of ``n^2``.

    Attributes:
        factor: ``F``, ``n x r``.
        spectrum: ``s``, ``r``, falling.
        rest: A number.
    """

    factor: Tensor
    spectrum: Tensor

    def __init__(self, factor: Tensor, spectrum: Tensor, rest: float) -> None:
        super().__init__()
        self.rest = rest
        self.register_buffer("factor", factor)
        self.register_buffer("spectrum", spectrum)

    @classmethod
    def of_all_columns(cls, matrix: Tensor) -> CentredKernel:
        """All eigenvectors of a symmetric matrix, the jitter included."""
        # Vectors of sum zero see K as B'K B, with B an orthonormal basis of them.
        basis = _basis(matrix)
        inner = basis.mT @ matrix @ basis
        spectrum, vectors = torch.linalg.eigh(0.5 * (inner + inner.mT))
        spectrum = spectrum.flip(-1).clamp_min(0.0)
        # What is below rounding counts as rounding: no column vanishes, and one over an
        # eigenvalue is finite.
        if len(spectrum):
            spectrum = spectrum.clamp_min(torch.finfo(spectrum.dtype).eps * spectrum[0])
        return cls((basis @ vectors.flip(-1)) * spectrum.sqrt(), spectrum, 0.0)

    @classmethod
    def of_few_columns(cls, matrix: Tensor, jitter: float) -> CentredKernel | None:
        """The eigenvectors of ``matrix`` alone, or None if it takes many.

        What is left out of the matrix is computed: in norm it is a rounding error of
        the matrix, and far below the jitter. So the matrix is also positive
        semi-definite up to that error.
        """
        # Kernels of smooth functions on many contexts have few eigenvalues that are not
        # rounding, and the jitter makes up for the others.
        columns = _partial_cholesky(matrix, int(_LARGEST_RANK * len(matrix)))
        if columns is None:
            return None
        # A posteriori: what the columns miss must be far below the jitter.
        left_out = torch.addmm(matrix, columns, columns.mT, alpha=-1.0)
        rounding = _BACKWARD * torch.finfo(matrix.dtype).eps
        rounding = rounding * torch.linalg.matrix_norm(matrix).item()
        if not (left_out.norm().item() <= rounding <= _FAR_BELOW * jitter):
            return None
        # Vectors of sum zero see centred columns: a mean makes no difference.
        vectors, roots, _ = torch.linalg.svd(
            columns - columns.mean(0), full_matrices=False
        )
        # Without the columns whose sum is as uncertain as they are small.
        kept = roots.square() > rounding
        factor = (vectors * roots)[:, kept]
        return cls(factor, roots[kept].square(), jitter)

    @property
    def vectors(self) -> Tensor:
        """``V``, ``n x r``; a column without an eigenvalue is zero."""
        roots = self.spectrum.sqrt()
        return self.factor / torch.where(roots > 0, roots, torch.inf)

    def slope(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """``max { -f'd : 1'd = 0, d'(K + jI)d <= 1 }``, ``... x 1``, and that ``d``."""
        vectors = self.vectors.to(f)
        eigenvalues = self.spectrum.to(f) + self.rest
        eigenvalues = torch.where(eigenvalues > 0, eigenvalues, torch.inf)
        centred = f - f.mean(-1, keepdim=True)
        # |(K + jI)^-1/2 f| in the eigenvectors: a sum of squares over eigenvalues.
        inside = centred @ vectors  # ... x r
        slope = torch.linalg.vector_norm(inside / eigenvalues.sqrt(), 2, -1, True)
        raised = (inside / eigenvalues) @ vectors.mT
        if self.rest:
            # What the columns do not reach. It is divided by little: a difference of
            # squares would be rounding only.
            outside = centred - inside @ vectors.mT
            norm = torch.linalg.vector_norm(outside, 2, -1, True)
            slope = torch.hypot(slope, norm / self.rest**0.5)
            raised = raised + outside / self.rest
        return slope, -raised / torch.where(slope > 0, slope, 1.0)

    def squared_distances(self, p: Tensor) -> Tensor:
        """``d'(K + jI)d`` of ``d = p - e_i``, ``... x n``, up to a number per row."""
        factor = self.factor.to(p)
        squares = factor.square().sum(-1) - 2 * (p @ factor) @ factor.mT
        return squares - 2 * self.rest * p if self.rest else squares

    def distance(self, difference: Tensor) -> Tensor:
        """``sqrt(d'(K + jI)d)``, ``... x 1``, of ``d``, ``... x n``, that sum to zero.

        The norm of a product loses half as many digits as the root of a square.
        """
        factor = self.factor.to(difference)
        norm = torch.linalg.vector_norm(difference @ factor, 2, -1, True)
        if self.rest:
            own = torch.linalg.vector_norm(difference, 2, -1, True)
            norm = torch.hypot(norm, self.rest**0.5 * own)
        return norm

    def product(self, difference: Tensor) -> Tensor:
        """``(K + jI) d`` up to a number per row, of ``d``, ``... x n``."""
        factor = self.factor.to(difference)
        product = (difference @ factor) @ factor.mT
        return product + self.rest * difference if self.rest else product


def _partial_cholesky(matrix: Tensor, most: int) -> Tensor | None:
    """``B`` with ``B B' = matrix`` up to rounding, ``n x r``; None if ``r > most``.

    Diagonal pivots: the columns are those of the largest diagonal that remains.
    """
    # Harbrecht, Peters and Schneider (2012): of a positive matrix the largest entry
    # that remains is on the diagonal, so that alone has to be updated.
    remaining = matrix.diagonal().clone()
    tolerance = _ROUNDING * torch.finfo(matrix.dtype).eps * remaining.max()
    columns = matrix.new_zeros(len(matrix), most)
    for k in range(most):
        pivot = int(remaining.argmax())
        largest = remaining[pivot]
        if largest <= tolerance:
            return columns[:, :k]
        # One column of what is left; its square root is the next one of the factor.
        column = matrix[:, pivot] - columns[:, :k] @ columns[pivot, :k]
        columns[:, k] = column / largest.sqrt()
        remaining = remaining - columns[:, k].square()
    return None


def _basis(matrix: Tensor) -> Tensor:
    """An orthonormal basis ``n x (n - 1)`` of the vectors that sum to zero."""
    n = len(matrix)
    # Householder's reflection of the first axis onto the direction of ones.
    normal = torch.full_like(matrix[0], n**-0.5)
    normal[0] += 1.0
    eye = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    return (eye - 2 * torch.outer(normal, normal) / normal.square().sum())[:, 1:]
