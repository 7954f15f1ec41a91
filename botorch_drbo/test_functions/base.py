"""The base of test functions: f(x, c), its domain, the true law, and its optimum.

A law here is a ``torch.distributions`` object over ``d_c`` independent coordinates
(event shape ``(d_c,)``) whose coordinates have an inverse cdf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, cast

import numpy as np
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from botorch.test_functions.base import BaseTestProblem
from scipy.optimize import minimize
from torch import Generator, Tensor
from torch.distributions import Distribution, Independent, Normal, Uniform
from torch.distributions.constraints import Constraint, nonnegative, positive
from torch.utils.checkpoint import checkpoint

from botorch_drbo._validation import (
    check_bounds,
    check_count,
    check_finite,
    check_nonnegative,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol, sobol_in_box

_SMALLEST = 2.0**-53  # keeps a uniform draw off 0 and 1, where quantiles are infinite


class BurrXII(Distribution):
    r"""The Burr XII law, :math:`F(c) = 1 - (1 + c^{a})^{-k}` for :math:`c \ge 0`."""

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        r"""What the parameters must satisfy."""
        return {"shape": positive, "power": positive}

    @property
    def support(self) -> Constraint:
        r"""Where the density is positive."""
        return nonnegative

    def __init__(self, shape: Tensor, power: Tensor) -> None:
        self.shape, self.power = torch.broadcast_tensors(shape, power)
        super().__init__(self.shape.shape)

    def cdf(self, value: Tensor) -> Tensor:
        r"""Return the probability of a draw at or below ``value``."""
        return -torch.expm1(-self.power * torch.log1p(value.clamp_min(0) ** self.shape))

    def icdf(self, value: Tensor) -> Tensor:
        r"""Return the quantile at the probability ``value``."""
        return torch.expm1(-torch.log1p(-value) / self.power) ** (1 / self.shape)

    def log_prob(self, value: Tensor) -> Tensor:
        r"""Return the logarithm of the density at ``value``."""
        log_constant = (self.shape * self.power).log()
        tail = (self.power + 1) * torch.log1p(value**self.shape)
        return log_constant + (self.shape - 1) * value.log() - tail

    def rsample(self, sample_shape: torch.Size | Sequence[int] = ()) -> Tensor:
        r"""Draw ``sample_shape`` times from torch's global generator."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(torch.rand(shape, dtype=self.shape.dtype))


def normal_law(mean: float, std: float, dim: int) -> Independent:
    """Return ``dim`` independent normal coordinates of one mean and deviation."""
    ones = torch.ones(dim, dtype=torch.double)
    return Independent(Normal(mean * ones, std * ones), 1)


def uniform_law(bounds: Tensor) -> Independent:
    """Return the uniform law on a box.

    Shapes: ``bounds``: ``2 x d_c``.
    """
    return Independent(Uniform(bounds[0], bounds[1]), 1)


def burr_law(shape: float, power: float) -> Independent:
    """Return the univariate Burr XII law."""
    parameters = torch.tensor([[shape], [power]], dtype=torch.double)
    return Independent(BurrXII(*parameters), 1)


def check_law(law: Distribution, dim: int) -> Independent:
    """Return ``law`` if it has ``dim`` independent coordinates with a quantile."""
    if not isinstance(law, Independent):
        raise UnsupportedError(
            "`context_law` must have independent coordinates, got "
            f"{type(law).__name__}. Wrap univariate laws of batch shape ({dim},) as "
            "`torch.distributions.Independent(law, 1)`."
        )
    if law.batch_shape or law.event_shape != (dim,):
        raise BotorchTensorDimensionError(
            f"`context_law` must have event shape ({dim},) and no batch shape, got "
            f"{tuple(law.event_shape)} and {tuple(law.batch_shape)}."
        )
    try:
        quantiles(law, torch.full((1, dim), 0.5, dtype=torch.double))
    except NotImplementedError as error:  # how torch says that a law has none
        raise UnsupportedError(
            f"`context_law` must have an inverse cdf, and {law.base_dist} has none. "
            "Choose another law, or give it an `icdf` method."
        ) from error
    return law


def quantiles(law: Independent, uniforms: Tensor) -> Tensor:
    """Map uniform draws to draws of the law, coordinate by coordinate.

    Shapes: ``uniforms``: ``n x d_c``, returns ``n x d_c``.
    """
    return law.base_dist.icdf(uniforms.clamp(_SMALLEST, 1 - _SMALLEST))


_TRUTH_SEED = 20_250  # scrambles the Sobol contexts of the true law; any fixed number
_NUM_TRUE_CONTEXTS = 2**13
_ROWS = 2**11  # whose features are computed at once
_SHRINK = 0.1  # each round of a search has a box this much smaller around the best
_NUM_POLISHED = 3  # rivals that the screening contexts may have put in a wrong order


@dataclass(frozen=True)
class Optimum:
    """The best expected value and a decision that attains it."""

    # The expected value, higher is better.
    value: float
    # The ``d_x`` coordinates of the decision.
    decision: tuple[float, ...]


@dataclass(frozen=True)
class Separated:
    r"""Two feature maps whose inner product is the function.

    .. math:: f(x, c) = \langle a(x), b(c) \rangle
    """

    # :math:`a`, ``N x d_x`` to ``N x k``.
    decision: Callable[[Tensor], Tensor]
    # :math:`b`, ``N x d_c`` to ``N x k``, of the same dtype.
    context: Callable[[Tensor], Tensor]


class RobustTestFunction(BaseTestProblem, ABC):
    r"""A test function of decision and context, with a known context distribution.

    The quantity to maximise is the expected value under the true law,
    :math:`F(x) = E_{c \sim P}[f(x, \mathrm{clip}(c))]`; contexts are clipped to
    ``context_bounds``. Subclasses give ``_evaluate``.

    As a ``BaseTestProblem`` it is about the decision: ``dim``, ``bounds``,
    ``evaluate_true``, ``optimizers`` and ``optimal_value`` are those of ``F``, and
    ``function(X)`` adds noise to ``F``. Outcomes at a context are ``evaluate(X, C)``
    and ``observe(X, C)``, of the dtype and on the device of ``X``.

    Args:
        name: The name that reports show.
        bounds: Bounds of the decision, ``2 x d_x``.
        context_bounds: Bounds of the context, ``2 x d_c``.
        context_law: The true law before clipping, of event shape ``(d_c,)``: a
            ``torch.distributions.Independent`` of laws with an inverse cdf.
        noise_std: Standard deviation of the observation noise, in the units of f.
        optimum: The optimum of F if it is known; it is searched for otherwise.
        reference: The distribution that is given to the optimiser ("general setting");
            None if it must be learnt from the contexts.
        separated: Feature maps whose inner product is the function, if there are such:
            means and tables are then computed from them.

    Raises:
        InputDataError: Wrong bounds or a negative noise.
        UnsupportedError: A law without independent coordinates or an inverse cdf.
    """

    num_objectives: ClassVar[int] = 1
    _is_minimization_by_default = False
    bounds: Tensor
    context_bounds: Tensor
    # Pairs (x, c) evaluated at once: bounds the memory of large batches.
    _pairs_at_once: ClassVar[int] = 2**18
    # Whether a backward pass evaluates again rather than keep the graph of each chunk.
    _recompute: bool = True

    def __init__(
        self,
        name: str,
        *,
        bounds: Tensor,
        context_bounds: Tensor,
        context_law: Distribution,
        noise_std: float = 0.0,
        optimum: Optimum | None = None,
        reference: ContextSet | None = None,
        separated: Separated | None = None,
    ) -> None:
        check_bounds(bounds, "bounds")
        self.dim = bounds.shape[-1]
        self.continuous_inds = list(range(self.dim))
        self._bounds = [(low, high) for low, high in bounds.mT.tolist()]
        noise_std = float(check_nonnegative(noise_std, "noise_std"))
        super().__init__(noise_std=noise_std, dtype=bounds.dtype)
        self.name = name
        check_bounds(context_bounds, "context_bounds")
        self.register_buffer("context_bounds", context_bounds.detach().clone())
        self.context_law = check_law(context_law, self.d_c)
        self.reference = reference
        self._known_optimum = optimum
        self._separated = separated
        self._contexts: dict[tuple[int, int], Tensor] = {}
        self._mean_features: dict[int, Tensor] = {}

    @property
    def d_x(self) -> int:
        r"""The number of decision columns, BoTorch's ``dim``."""
        return self.dim

    @property
    def d_c(self) -> int:
        r"""The number of context columns."""
        return self.context_bounds.shape[-1]

    @cached_property
    def optimum(self) -> Optimum:
        r"""The stored optimum, or one searched for at the first use (seconds or more).

        The value comes from more contexts than ``expected_value`` takes by default,
        so a regret may fall below zero by the integration error.
        """
        if self._known_optimum is not None:
            return self._known_optimum
        return find_optimum(self)

    @property
    def optimal_value(self) -> float:
        r"""The largest expected value under the true law."""
        return self.optimum.value

    @property
    def optimal_decision(self) -> Tensor:
        r"""A decision that attains ``optimal_value``, ``d_x``."""
        return self.bounds.new_tensor(self.optimum.decision)

    @property
    def optimizers(self) -> Tensor:
        r"""The known optimum, as BoTorch stores it (one row)."""
        return self.optimal_decision.unsqueeze(0)

    def evaluate(self, X: Tensor, C: Tensor) -> Tensor:
        r"""Return the noise-free outcomes :math:`f(x, c)`; higher is better.

        Args:
            X: Decisions, ``... x d_x``.
            C: Contexts, ``... x d_c``; leading dimensions broadcast with those of X.

        Returns:
            Outcomes, ``...``.

        Raises:
            BotorchTensorDimensionError: A wrong number of columns.
            InputDataError: Not finite floating point tensors.
        """
        self._check_columns(X, self.d_x, "X")
        self._check_columns(C, self.d_c, "C")
        shape = torch.broadcast_shapes(X.shape[:-1], C.shape[:-1])
        x = X.expand(*shape, self.d_x).reshape(-1, self.d_x)  # N x d_x
        c = C.to(X).expand(*shape, self.d_c).reshape(-1, self.d_c)  # N x d_c
        rows = self._pairs_at_once
        if len(x) <= rows:
            return self._evaluate(x, c).reshape(shape)
        parts = [
            self._without_keeping(x[i : i + rows], c[i : i + rows])
            for i in range(0, len(x), rows)
        ]
        return torch.cat(parts).reshape(shape)

    def table(self, X: Tensor, C: Tensor) -> Tensor:
        r"""Return the noise-free outcomes at all pairs of a decision and a context.

        Args:
            X: Decisions, ``M x d_x``.
            C: Contexts, ``n x d_c``.

        Returns:
            Outcomes, ``M x n``: ``evaluate(X[:, None], C)``, faster where the function
            is known in a separated form.
        """
        if self._separated is None:
            return self.evaluate(X.unsqueeze(-2), C)
        self._check_columns(X, self.d_x, "X")
        self._check_columns(C, self.d_c, "C")
        left = self._separated.decision(X)  # M x k
        return (left @ self._separated.context(C.to(X)).mT).to(X.dtype)

    def observe(
        self, X: Tensor, C: Tensor, *, generator: Generator | None = None
    ) -> Tensor:
        r"""Return outcomes with Gaussian noise of deviation ``noise_std``.

        Args:
            X: Decisions, ``... x d_x``.
            C: Contexts, ``... x d_c``.
            generator: Where the noise comes from, or None for torch's global one.

        Returns:
            Noisy outcomes, ``...``.
        """
        value = self.evaluate(X, C)
        return value + cast(float, self.noise_std) * torch.randn(
            value.shape, generator=generator, dtype=value.dtype, device=value.device
        )

    def sample_contexts(self, num: int, seed: int) -> Tensor:
        r"""Draw independent contexts of the true law, clipped to the bounds.

        They depend on ``seed`` alone: neither the global generator nor an optimiser
        changes them, so that two optimisers can meet the same contexts. The first
        ``k`` of ``num`` draws equal ``k`` draws with the same seed.

        Args:
            num: The number of contexts.
            seed: The seed of the draws.

        Returns:
            Contexts, ``num x d_c``.
        """
        check_count(num, "num")
        generator = Generator().manual_seed(seed)
        uniforms = torch.rand(num, self.d_c, generator=generator, dtype=torch.double)
        return self._from_uniforms(uniforms).to(self.context_bounds)

    def true_contexts(
        self, num: int = _NUM_TRUE_CONTEXTS, *, seed: int = _TRUTH_SEED
    ) -> Tensor:
        r"""Return quasi-Monte Carlo contexts of the clipped true law.

        Args:
            num: The number of contexts; powers of two integrate best.
            seed: Scrambles the Sobol sequence.

        Returns:
            Contexts of equal weight, ``num x d_c``; the same at every call.
        """
        check_count(num, "num")
        return self._true_contexts(num, seed).to(self.context_bounds, copy=True)

    def _true_contexts(self, num: int, seed: int = _TRUTH_SEED) -> Tensor:
        """In float64 and on the CPU wherever the function is, and kept."""
        if (num, seed) not in self._contexts:
            self._contexts[num, seed] = self._from_uniforms(sobol(num, self.d_c, seed))
        return self._contexts[num, seed]

    def expected_value(self, X: Tensor, num: int = _NUM_TRUE_CONTEXTS) -> Tensor:
        r"""Return the expected outcome under the true law, by quasi-Monte Carlo.

        :math:`F(x) = \frac1n \sum_i f(x, c_i)` over ``true_contexts(num)``:
        deterministic, differentiable in X, and chunked at bounded memory.

        Args:
            X: Decisions, ``... x d_x``.
            num: The number of contexts n.

        Returns:
            Expected values, ``...``.
        """
        self._check_columns(X, self.d_x, "X")
        check_count(num, "num")
        contexts = self._true_contexts(num).to(X)  # n x d_c
        x = X.reshape(-1, self.d_x)  # B x d_x
        if self._separated is not None:
            if num not in self._mean_features:
                parts = contexts.double().split(_ROWS)
                sums = [self._separated.context(part).sum(0) for part in parts]
                self._mean_features[num] = torch.stack(sums).sum(0) / num  # k
            mean = self._mean_features[num]
            left = [self._separated.decision(rows) for rows in x.split(_ROWS)]
            total = torch.cat([rows @ mean.to(rows) for rows in left])
            return total.to(X.dtype).reshape(X.shape[:-1])
        columns = min(num, self._pairs_at_once)
        rows = max(1, self._pairs_at_once // columns)
        means = [
            torch.stack(
                [
                    self._sum_over_block(x[i : i + rows], contexts[j : j + columns])
                    for j in range(0, num, columns)
                ]
            ).sum(0)
            / num
            for i in range(0, len(x), rows)
        ]
        total = torch.cat(means) if means else x.new_zeros(0)
        return total.reshape(X.shape[:-1])

    def _evaluate_true(self, X: Tensor) -> Tensor:
        return self.expected_value(X)

    @abstractmethod
    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        """Return ``f`` at ``N`` pairs: ``N x d_x`` and ``N x d_c`` to ``N``."""

    def _sum_over_block(self, x: Tensor, contexts: Tensor) -> Tensor:
        """Return the sum over a block of contexts for a few decisions: ``r``."""
        rows, columns = len(x), len(contexts)
        pairs_x = x.repeat_interleave(columns, dim=0)  # (r * m) x d_x
        pairs_c = contexts.repeat(rows, 1)  # (r * m) x d_c
        return self._without_keeping(pairs_x, pairs_c).reshape(rows, columns).sum(-1)

    def _without_keeping(self, x: Tensor, c: Tensor) -> Tensor:
        """Evaluate a chunk at bounded memory, with or without a backward pass."""
        differentiated = x.requires_grad or c.requires_grad
        if self._recompute and torch.is_grad_enabled() and differentiated:
            value = checkpoint(self._evaluate, x, c, use_reentrant=False)
            assert isinstance(value, Tensor)
            return value
        return self._evaluate(x, c)

    def _from_uniforms(self, uniforms: Tensor) -> Tensor:
        contexts = quantiles(self.context_law, uniforms)
        low, high = self.context_bounds.to(contexts)
        return contexts.clamp(low, high)

    def _check_columns(self, points: Tensor, columns: int, name: str) -> None:
        check_finite(points, name)
        if points.ndim == 0 or points.shape[-1] != columns:
            raise BotorchTensorDimensionError(
                f"`{name}` must have {columns} columns for {self.name}, got shape "
                f"{tuple(points.shape)}."
            )


class HasExpectedValue(Protocol):
    """A box of decisions, and their expected values: what a search needs."""

    bounds: Tensor

    @abstractmethod
    def expected_value(self, X: Tensor, num: int) -> Tensor:
        """Over so many contexts, ``N x d_x`` to ``N``."""


def find_optimum(
    function: HasExpectedValue,
    *,
    num_contexts: int = 2**13,
    num_screening: int = 2**10,
    num_raw: int = 1024,
    num_starts: int = 8,
    num_rounds: int = 3,
    seed: int = 0,
) -> Optimum:
    """Maximise :math:`E_c f(x, c)` over the decisions of a test function.

    Each round scores Sobol points of a box and of its faces on a few contexts, climbs
    from the best of them with L-BFGS-B, and shrinks the box around the best point. At
    the end the best few points climb on all contexts. No global optimum is certified.
    """
    bounds = function.bounds.to("cpu", torch.double)
    num_screening = min(num_screening, num_contexts)
    box = bounds
    found = bounds.mean(0, keepdim=True)  # many test functions are symmetric there
    for number in range(num_rounds):
        raw = sobol_in_box(num_raw, box, seed + number)  # num_raw x d_x
        points = torch.cat([found, raw, _on_faces(raw, box)])
        with torch.no_grad():
            values = function.expected_value(points, num=num_screening)
        starts = points[values.topk(min(num_starts, len(points))).indices]
        climbed = torch.stack(
            [_climb(function, start, box, num_screening) for start in starts]
        )
        with torch.no_grad():
            values = function.expected_value(climbed, num=num_screening)
        found = climbed[values.topk(min(_NUM_POLISHED, len(climbed))).indices]
        side = _SHRINK ** (number + 1) * (bounds[1] - bounds[0])
        box = torch.stack([found[0] - side / 2, found[0] + side / 2])
        box = box.clamp(bounds[0], bounds[1])
    polished = torch.stack(
        [_climb(function, point, bounds, num_contexts) for point in found]
    )
    with torch.no_grad():
        values = function.expected_value(polished, num=num_contexts)
    best = int(values.argmax())
    return Optimum(float(values[best]), tuple(polished[best].tolist()))


def _on_faces(points: Tensor, box: Tensor) -> Tensor:
    """Stretch points to twice the box and back: half of each column is at a bound."""
    middle = box.mean(0)
    return (middle + 2 * (points - middle)).clamp(box[0], box[1])


def _climb(
    function: HasExpectedValue, start: Tensor, box: Tensor, num_contexts: int
) -> Tensor:
    """Return the end of an L-BFGS-B ascent from ``start`` (``d_x``) inside ``box``."""
    result = minimize(
        _negated(function, num_contexts),
        start.numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(box[0].tolist(), box[1].tolist(), strict=True)),
        options={"ftol": 1e-13, "gtol": 1e-9, "maxiter": 200},
    )
    # A line search can end above its start on a kinked function: keep the better one.
    end = torch.as_tensor(result.x, dtype=start.dtype)
    with torch.no_grad():
        pair = torch.stack([start, end])
        return pair[function.expected_value(pair, num=num_contexts).argmax()]


def _negated(
    function: HasExpectedValue, num_contexts: int
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    def negated(x: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.as_tensor(x, dtype=torch.double).requires_grad_(True)
        value = function.expected_value(point, num=num_contexts)
        (gradient,) = torch.autograd.grad(value, point)
        return -value.item(), -gradient.numpy()

    return negated
