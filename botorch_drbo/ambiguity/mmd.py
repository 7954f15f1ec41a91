"""The maximum-mean-discrepancy ball: distributions that a kernel cannot tell apart."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_finite, check_nonnegative
from botorch_drbo.ambiguity._interior_point import lower_bound
from botorch_drbo.ambiguity._kernel_ball import (
    Answers,
    CentredKernel,
    KernelBallProblem,
    WarmStart,
    in_unit_range,
)
from botorch_drbo.ambiguity.base import AmbiguitySet, Prices
from botorch_drbo.ambiguity.numerics import check_distributions
from botorch_drbo.ambiguity.solution import (
    RobustValue,
    Solution,
    in_float64,
    robust_value,
)

if TYPE_CHECKING:
    import cvxpy as cp

_SYMMETRY = 1e-10  # relative to the largest entry
_NEGATIVE = 1e-10  # relative to the largest eigenvalue
_EXACT_GAP = 1e-8  # of the scores' range: within the accuracy of the kernel matrix
_CHUNK_ELEMENTS = 2**21  # 16 MiB of float64 per temporary


class MaximumMeanDiscrepancy(AmbiguitySet):
    r"""All distributions whose kernel mean is near the reference's.

    .. math:: d(p, q) = \sqrt{(p - q)^\top K (p - q)} \le \epsilon

    The radius has the units of the square root of the kernel matrix: with a kernel of
    variance one, two distributions are at most ``sqrt(2)`` apart. Mass may move to
    atoms of reference weight zero.

    Each row is solved by the first of these methods that succeeds: a point mass on the
    lowest score, if it lies in the ball; the closed form without ``q >= 0``, if it has
    no negative weight (small radius, well-conditioned matrix); a primal-dual active-set
    method [Hintermuller2002activeset]_, started from the closed form or from a low-rank
    version of the next method; a primal-dual interior-point method
    ([NesterovTodd1997]_, [Mehrotra1992]_) with the dual

    .. math:: v = \max_{u \in R^r} \min_i (f + L u)_i - p^\top L u - \epsilon \|u\|

    where ``K = L L'`` and ``L`` has as many columns as differ from zero at the scale of
    the radius: about 20 for a smooth kernel on a grid of 100. Each result has a
    certificate, its duality gap: ``q`` bounds the value from above and ``u`` from
    below.

    Eigenvalues below ``2e-16`` of the largest are rounding errors of ``K`` and are
    raised to this value. At radius zero ``q`` is therefore ``p`` even if ``K`` is
    singular. For a radius below ``1e-7``, add more jitter to a nearly singular kernel
    matrix.

    Args:
        radius: The largest distance, a scalar ``>= 0``.
        kernel_matrix: The kernel between the contexts, ``n x n``.
        jitter: Added to the diagonal of that matrix. Given here and not in the matrix,
            it lets :class:`MinimaxApproximation` work with the few columns of a smooth
            kernel: 1,024 contexts then cost little more than 100.

    Raises:
        InputDataError: Not finite, not symmetric, with a negative eigenvalue, or
            a negative jitter.
        BotorchTensorDimensionError: Not a square matrix.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import MaximumMeanDiscrepancy
        >>> points = torch.tensor([[0.0], [0.5], [1.0]])
        >>> kernel_matrix = torch.exp(-torch.cdist(points, points).square())
        >>> ball = MaximumMeanDiscrepancy(radius=0.1, kernel_matrix=kernel_matrix)
        >>> weights = torch.full((3,), 1 / 3)
        >>> ball.worst_case(torch.tensor([0.0, 1.0, 4.0]), weights).value
        tensor(1.2131)

    The ball of [Kirschner2020drbo]_ and [Tay2022minimax]_.
    """

    holds_reference = True
    kernel_matrix: Tensor
    _last: WarmStart | None = None

    def __init__(
        self, radius: float | Tensor, kernel_matrix: Tensor, jitter: float = 0.0
    ) -> None:
        super().__init__(radius)
        check_finite(kernel_matrix, "kernel_matrix")
        shape = tuple(kernel_matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise BotorchTensorDimensionError(
                f"`kernel_matrix` must be an `n x n` matrix, got shape {shape}."
            )
        matrix = kernel_matrix.detach().double()
        # A kernel of the user's own is as symmetric as its rounding lets it be.
        lopsided = (matrix - matrix.mT).abs().max()
        if lopsided > _SYMMETRY * matrix.abs().max():
            raise InputDataError(
                "`kernel_matrix` must be symmetric, got entries that differ by "
                f"{lopsided.item():.3g}. Use `0.5 * (K + K.mT)` if that is rounding."
            )
        matrix = 0.5 * (matrix + matrix.mT)
        self.jitter = check_nonnegative(jitter, "jitter").item()
        self.register_buffer("kernel_matrix", matrix)
        # With a jitter few eigenvectors do for the distance, and those cost n r^2;
        # their number is found with them.
        few = None
        if self.jitter > 0:
            few = CentredKernel.of_few_columns(matrix, self.jitter)
        if few is None:
            _check_eigenvalues(matrix)
            few = CentredKernel.of_all_columns(self._with_jitter())
        self.centred = few

    def _with_jitter(self) -> Tensor:
        return self.kernel_matrix + torch.diag_embed(
            torch.full_like(self.kernel_matrix[0], self.jitter)
        )

    @property
    def _all_columns(self) -> CentredKernel:
        """With all eigenvectors, which the exact worst case needs."""
        return self._complete if self.centred.rest else self.centred

    @cached_property
    def _complete(self) -> CentredKernel:
        return CentredKernel.of_all_columns(self._with_jitter())

    @property
    def factor(self) -> Tensor:
        """``F`` with ``F F'`` the matrix among vectors of sum zero, ``n x (n - 1)``."""
        return self._all_columns.factor

    @property
    def spectrum(self) -> Tensor:
        """The squared norms of the columns of ``factor``, ``n - 1``, falling."""
        return self._all_columns.spectrum

    def __getstate__(self) -> dict[str, Any]:
        """Without the warm start: copies and pickles begin without it."""
        kept = ("_last", "_complete")
        return {k: v for k, v in self.__dict__.items() if k not in kept}

    @property
    def diameter(self) -> float:
        """The largest distance between two atoms."""
        return torch.cdist(self.factor, self.factor).max().item()

    def prices(self, robust: RobustValue, weights: Tensor) -> Prices:
        r"""One row: the multiplier times the slope of the distance, where mass arrives.

        .. math:: a(c) = \frac{\lambda}{d(p, q)} \sum_j (q_j - p_j) k(c_j, c)

        Args:
            robust: The worst case on the list, one row.
            weights: The reference weights, ``n``.

        Returns:
            The prices.
        """
        # Complementary slackness: a radius that is not used up has no price.
        distance = self.distance(weights, robust.weights)
        if robust.multiplier == 0 or distance == 0:
            return Prices.none(weights)
        difference = robust.weights - weights  # n
        anchors = difference.nonzero().mT  # 1 x a
        return Prices((robust.multiplier / distance * difference)[anchors], anchors)

    def lower_bound(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""A lower bound in closed form: the best of a few points of the dual.

        .. math:: \min_i (f + L u)_i - p^\top L u - \epsilon \|u\|, \qquad
            u = 0 \text{ or } -L_k^+ f, \quad k = 1, 2, 4, \dots, n - 1

        with ``L_k`` the ``k`` largest columns of ``L``. Each point bounds the value
        from below. The last is the minimum without ``q >= 0``, which for a smooth
        kernel and large radii lies far below the value; the first is the lowest score.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            Lower bounds of the value, ``...``, without a gradient.
        """
        self._check(values, weights)
        return in_float64(self._bound, values, weights, self.radius).to(values)

    def _bound(self, values: Tensor, weights: Tensor, radius: Tensor) -> Tensor:
        low = values.amin(-1, keepdim=True)
        f, factor = values - low, self.factor.to(values)
        # Any u bounds the value from below. That of the closed form, cut to its first
        # 1, 2, 4, ... columns, is near the optimal one for some number of them.
        u = -f @ (factor / self.spectrum.to(values))  # ... x (n - 1)
        best = torch.zeros_like(low)
        count, rank = 1, factor.shape[-1]
        while count < 2 * rank:
            point, columns = u[..., :count], factor[:, :count]
            found = lower_bound(f, weights, point, columns, radius)
            best = torch.maximum(best, found)
            count *= 2
        return (low + best).squeeze(-1)

    def free_slope(self, values: Tensor) -> tuple[Tensor, Tensor]:
        r"""The slope of the value in the radius if weights may be negative.

        .. math:: S = \max \{ -f^\top d : 1^\top d = 0,\ d^\top K d \le 1 \}

        Args:
            values: Scores, ``... x n``.

        Returns:
            The slope ``...``, and the direction ``d`` in which it is met, ``... x n``.
        """
        slope, direction = self.centred.slope(values)
        return slope.squeeze(-1), direction

    def _check_sizes(self, num_values: int, num_weights: int) -> None:
        super()._check_sizes(num_values, num_weights)
        if num_values != len(self.kernel_matrix):
            raise BotorchTensorDimensionError(
                f"The kernel matrix has {len(self.kernel_matrix)} contexts, got "
                f"{num_values} scores."
            )

    def value(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""The worst-case value alone, warm-started from earlier calls.

        Gradient ascent solves many nearly equal problems, so the active set of the
        most similar of the last 512 is the warm start. A value may differ from that of
        ``worst_case`` by its accuracy, 1e-10 of the range of the scores.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, ``n`` or ``... x n``.

        Returns:
            The value ``...``, with the gradients of ``worst_case``.
        """
        self._check(values, weights)
        solution = in_float64(self._solve_again, values, weights, self.radius)
        robust = robust_value(
            solution, values, values, weights, self.radius, name=type(self).__name__
        )
        return robust.value

    def _solve_again(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        # A search asks for neighbouring decisions, whose worst cases have nearly the
        # same active sets.
        solution = self._solve_from(values, weights, radius, self._last)
        self._last = WarmStart.of(values, solution.weights).after(self._last)
        return solution

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        r"""By an active set, else by an interior point."""
        return self._solve_from(values, weights, radius, None)

    def _solve_from(
        self, values: Tensor, weights: Tensor, radius: Tensor, last: WarmStart | None
    ) -> Solution:
        batch, n = values.shape[:-1], values.shape[-1]
        f, span = in_unit_range(values.reshape(-1, n))
        p = weights.reshape(-1, n)
        p = p / p.sum(-1, keepdim=True)
        # No scores to tell apart: the reference itself, at no price.
        flat, radius = span.squeeze(-1) == 0, radius.reshape(-1, 1)
        problem = KernelBallProblem(self.factor.to(f), self.spectrum.to(f))
        # The lowest score within reach settles a row without a search.
        settled, vertex = problem.saturated(f, p, radius)
        q = torch.where((settled & ~flat)[:, None], vertex, p)
        none, zero = torch.zeros_like(p), torch.zeros_like(span)
        found = Answers(q, zero, none, none.clone(), zero.clone())
        rows = (~settled & ~flat).nonzero().squeeze(-1)
        # Rounded up: the methods hold n x n numbers for each row.
        num_chunks = -(-len(rows) * n * n // _CHUNK_ELEMENTS)
        for part in rows.tensor_split(max(1, num_chunks)):
            if len(part):
                start = last and last.nearest(f[part])
                solved = problem.solve(f[part], p[part], radius[part], start)
                found.put(part, solved)
        proved = bool((found.gap <= _EXACT_GAP).all())
        return Solution(
            weights=found.q.reshape(*batch, n),
            multiplier=(span * found.multiplier).reshape(batch),
            reference_gradient=lambda: (span * found.gradient).reshape(*batch, n),
            direction=found.direction.reshape(*batch, n),
            gap=None if proved else (span * found.gap).reshape(batch),
        )

    def constraints(
        self, q: cp.Variable, p: cp.Parameter, radius: cp.Parameter
    ) -> list[cp.Constraint]:
        r"""The definition, for cvxpy."""
        import cvxpy as cp

        factor = self.factor.detach().cpu().numpy()
        return [cp.norm(factor.T @ (q - p)) <= radius]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        r"""The distance of the kernel means, ``sqrt((p - q)' K (p - q))``.

        Args:
            p: Reference weights, ``... x n``.
            q: Other weights, ``... x n``.

        Returns:
            The distances, ``...``, in float64.
        """
        p, q = check_distributions(p, q)
        self._check_sizes(q.shape[-1], p.shape[-1])
        return self.centred.distance(p - q).squeeze(-1)


def _check_eigenvalues(matrix: Tensor) -> None:
    eigenvalues = torch.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -_NEGATIVE * eigenvalues[-1].clamp_min(0.0):
        raise InputDataError(
            "`kernel_matrix` must be positive semi-definite, got a smallest "
            f"eigenvalue of {eigenvalues[0].item():.3g} and a largest of "
            f"{eigenvalues[-1].item():.3g}. Add jitter to its diagonal."
        )
