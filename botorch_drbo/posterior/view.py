"""The interface of the posterior: moments of ``f(x, c)`` over x and contexts.

::

    view = posterior.over(contexts)      # once
    here = view.at(X)                    # once for each evaluation
    mean, variance = here.moments()
    slopes = here.slopes()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.posterior.blocks import in_blocks

ALL = slice(None)
MEANS_ALONE_FROM, MANY_PAIRS = 256, 2**15
"""With fewer rows, and fewer pairs of row and context, means are those of the moments,
to the last bit."""


def means_alone_pay(num_rows: int, num_contexts: int) -> bool:
    """Whether means are found in a way of their own: their last bits may differ."""
    return num_rows >= MEANS_ALONE_FROM or num_rows * num_contexts >= MANY_PAIRS


class MomentSlopes(NamedTuple):
    r"""Moments and their slopes in the context.

    Args:
        mean: ``... x k``; with an ensemble of ``S`` models ``... x S x k``.
        variance: The same shape, not negative.
        mean_slope: ``... x k x d_c``.
        variance_slope: ``... x k x d_c``.
    """

    mean: Tensor
    variance: Tensor
    mean_slope: Tensor
    variance_slope: Tensor


class LocalMoments(ABC):
    r"""Moments of some decisions at the contexts of a view, and their slopes.

    Args:
        X: Decisions, ``... x d_x``, of any floating point type.
        dtype: In which the model computes; results have the dtype of ``X``.
    """

    num_rows: int = 0
    """Of the matrix by which kernel rows are multiplied for a variance."""
    num_contexts: int = 0
    """Of the view."""

    def __init__(self, X: Tensor, dtype: torch.dtype) -> None:
        self._batch, self._dtype = X.shape[:-1], X.dtype
        self.X = X.reshape(-1, X.shape[-1]).to(dtype)  # b x d_x

    def moments(self, part: slice = ALL) -> tuple[Tensor, Tensor]:
        r"""Evaluate the marginal moments, differentiable in ``X``.

        Args:
            part: Some of the view's contexts.

        Returns:
            The means and the variances, each ``... x n``; with an ensemble of ``S``
            models ``... x S x n``. In the units of the outcome, noise not included.
        """
        with self._graph():
            mean, variance = self._moments(part)
            return self._given_back(mean), self._given_back(variance)

    def means(self, part: slice = ALL) -> Tensor:
        r"""Evaluate the means alone, differentiable in ``X``.

        If a method does not need the variances, the cost per decision and context is
        ``O(t)`` instead of ``O(t^2)``.

        Args:
            part: Some of the view's contexts.

        Returns:
            ``... x n``; with an ensemble of ``S`` models ``... x S x n``.
        """
        with self._graph():
            if not self._means_alone:
                return self._given_back(self._means_of_moments(part))
            return self._given_back(self._means(part))

    def slopes(self, contexts: slice | Tensor = ALL) -> MomentSlopes:
        r"""Evaluate moments and their slopes in the context, differentiable in ``X``.

        Args:
            contexts: Some of the view's contexts; or constants ``... x k x d_c``,
                different for each decision (ensembles: ``... x S x k x d_c``), inside
                the box that the view's contexts span.

        Returns:
            Moments ``... x k`` and slopes ``... x k x d_c``; ensembles ``... x S``
            before.
        """
        with self._graph():
            found = self._slopes(self._of_rows(contexts))
            return MomentSlopes(*map(self._given_back, found))

    def mean_slopes(self, contexts: slice | Tensor = ALL) -> Tensor:
        r"""Evaluate the slopes of the means alone, differentiable in ``X``.

        As ``means``: where a method can do without the variances, it is ``O(t)``.

        Args:
            contexts: As for ``slopes``.

        Returns:
            ``... x k x d_c``; ensembles ``... x S`` before.
        """
        if not self._means_alone:
            return self.slopes(contexts).mean_slope
        with self._graph():
            return self._given_back(self._mean_slopes(self._of_rows(contexts)))

    @property
    def _means_alone(self) -> bool:
        return means_alone_pay(self.num_rows, self.num_contexts)

    def _graph(self) -> torch.set_grad_enabled:
        """Without inputs to differentiate in, a model's parameters keep no graph."""
        return torch.set_grad_enabled(torch.is_grad_enabled() and self.X.requires_grad)

    def _of_rows(self, contexts: slice | Tensor) -> slice | Tensor:
        """A decision's own contexts as constants, ``b (x S) x k x d_c``."""
        if isinstance(contexts, slice):
            return contexts
        own = contexts.shape[len(self._batch) :]
        return contexts.detach().reshape(len(self.X), *own).to(self.X)

    @abstractmethod
    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        """Means and variances, each ``b (x S) x n``."""

    def _means(self, part: slice) -> Tensor:
        """Means, ``b (x S) x n``."""
        return self._moments(part)[0]

    def _means_of_moments(self, part: slice) -> Tensor:
        """Those that ``_moments`` finds, to the last bit, ``b (x S) x n``."""
        return self._moments(part)[0]

    @abstractmethod
    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        """Moments and slopes, ``b (x S) x k`` and ``b (x S) x k x d_c``."""

    def _mean_slopes(self, contexts: slice | Tensor) -> Tensor:
        """Slopes of the means, ``b (x S) x k x d_c``."""
        return self._slopes(contexts).mean_slope

    def _given_back(self, found: Tensor) -> Tensor:
        if len(self._batch) != 1:
            found = found.reshape(*self._batch, *found.shape[1:])
        return found.to(self._dtype)


class View(ABC):
    r"""A posterior over one set of contexts, for any decisions.

    Args:
        contexts: The contexts, ``n x d_c``, in the dtype of the model.
    """

    method: ClassVar[str]
    """How moments are computed: "generic", "exact" or "product"."""

    def __init__(self, contexts: Tensor) -> None:
        self.contexts = contexts

    def points(self, contexts: slice | Tensor) -> Tensor:
        """Some of the view's contexts, or those that are given themselves."""
        return self.contexts[contexts] if isinstance(contexts, slice) else contexts

    @abstractmethod
    def at(self, X: Tensor) -> LocalMoments:
        r"""Evaluate decisions.

        Args:
            X: ``... x d_x``, of any floating point type.

        Returns:
            Their moments, in the dtype of ``X``.
        """

    def coarse(self) -> View:
        r"""A cheaper approximation of the same posterior, to rank decisions.

        Means are exact. Without a gradient, variances may be off by a share of ``1e-3``
        of the prior's.

        Returns:
            This view by default; a cheaper one where the subclass has one.
        """
        return self


class Integral(ABC):
    r"""The moments of one weighted sum of outcomes over contexts, for any decision.

    .. math:: g(x) = \sum_i w_i f(x, c_i)

    is Gaussian where ``f`` is, with mean :math:`w' \mu(x, C)` and variance
    :math:`w' \Sigma(x) w`. The covariances between contexts count here: the variance is
    at most the square of :math:`\sum_i |w_i| \sigma(x, c_i)`, and often far less.
    """

    def __init__(self, dtype: torch.dtype, memory_budget: int) -> None:
        self.dtype, self.memory_budget = dtype, memory_budget

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate mean and variance, differentiable in ``X``.

        Shapes: ``X``: ``... x d_x``, returns ``... x S``.
        """
        rows = X.reshape(-1, X.shape[-1]).to(self.dtype)
        with torch.set_grad_enabled(torch.is_grad_enabled() and X.requires_grad):
            mean, variance = (
                found.reshape(*X.shape[:-1], *found.shape[1:]).to(X.dtype)
                for found in in_blocks(
                    self._moments, rows, self._bytes_per_row(), self.memory_budget
                )
            )
        return mean, variance.clamp_min(0.0)

    @abstractmethod
    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of ``b x d_x`` decisions, ``b (x S)`` each."""

    @abstractmethod
    def _bytes_per_row(self) -> int:
        """The temporaries of one decision, forward and backward."""


class MarginalPosterior(ABC):
    r"""Means and variances of ``f(x, c)`` for each decision and each context.

    Robust objectives need only marginals, not the covariance between contexts, so each
    pair ``(x, c)`` is a separate test point; only ``integral`` uses the contexts
    jointly. Pairs are processed in blocks whose temporaries fit into ``memory_budget``
    bytes, forward and backward, in addition to the inputs and results themselves (a few
    numbers per pair).

    It is the posterior of the model at construction.

    ``smooth`` says whether its moments are known to have derivatives of every order in
    the context.

    Args:
        model: A single-output BoTorch model of the joint input.
        context_indices: The model's input columns that hold the context.
        memory_budget: Bytes for the temporaries of one block.
    """

    smooth: bool = False

    def __init__(
        self, model: Model, context_indices: Sequence[int], memory_budget: int
    ) -> None:
        self.model = model
        self.context_indices = tuple(context_indices)
        self.memory_budget = memory_budget

    def over(
        self, contexts: Tensor, *, means: bool = False, coarse: bool = False
    ) -> View:
        r"""Prepare for a set of contexts.

        Args:
            contexts: ``n x d_c``; a copy is kept.
            means: Whether means are all that will be asked for: what speeds up
                variances alone is left out.
            coarse: Whether it is to rank decisions: see ``View.coarse``.

        Returns:
            The view.

        Raises:
            BotorchTensorDimensionError: Not ``n x d_c``.
        """
        with torch.no_grad():
            own = self._own(contexts)
            if means:
                return self._over_for_means(own)
            return self._over_coarsely(own) if coarse else self._over(own)

    @abstractmethod
    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> MarginalPosterior:
        r"""Condition on outcomes that equal their means.

        The variances become what they would be had the inputs been observed, and the
        means stay [Desautels2014bucb]_.

        Args:
            pending: Joint inputs ``p x d`` that are being evaluated.
            noise: Their noise variance, as a share of the model's.

        Returns:
            The conditioned posterior; this one is not changed.

        Raises:
            UnsupportedError: A model whose posterior is not Gaussian.
        """

    def integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        r"""Prepare for the weighted sum of the outcomes over contexts.

        Everything that does not depend on the decision is computed once, here. For
        kernels that separate decision and context, a decision then costs ``O(t^2)``,
        independently of the number of contexts; for other stationary kernels ``O(n t +
        t^2)``.

        Args:
            contexts: ``n x d_c``; a copy is kept.
            weights: ``n``, of an expectation or arbitrary.

        Returns:
            The function from decisions to mean and variance.

        Raises:
            BotorchTensorDimensionError: Not ``n x d_c``, or not a weight for each.
            UnsupportedError: A model whose outcomes are not jointly Gaussian.

        Example:
            >>> import torch
            >>> from botorch.models import SingleTaskGP
            >>> from botorch_drbo.posterior import marginal_posterior
            >>> Z = torch.rand(5, 2, dtype=torch.double)
            >>> posterior = marginal_posterior(SingleTaskGP(Z, Z.sum(-1, True)), [1])
            >>> equal = torch.full((5,), 0.2, dtype=torch.double)
            >>> mean, variance = posterior.integral(Z[:, 1:], equal)(Z[:, :1])
            >>> mean.shape, variance.shape
            (torch.Size([5]), torch.Size([5]))
        """
        contexts = self._own(contexts)
        if weights.shape != contexts.shape[:1]:
            raise BotorchTensorDimensionError(
                f"There must be one weight for each of the {len(contexts)} contexts, "
                f"got shape {tuple(weights.shape)}."
            )
        with torch.no_grad():
            return self._integral(contexts, weights.detach().clone().to(contexts))

    def _own(self, contexts: Tensor) -> Tensor:
        """A checked copy of ``n x d_c`` contexts, in the dtype of the model."""
        d_c = len(self.context_indices)
        if contexts.ndim != 2 or contexts.shape[-1] != d_c:
            raise BotorchTensorDimensionError(
                f"Contexts must be `n x {d_c}`, got shape {tuple(contexts.shape)}."
            )
        return contexts.detach().clone().to(self.dtype)

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """The dtype of the model."""

    @abstractmethod
    def _over(self, contexts: Tensor) -> View:
        """The view of contexts that are not shared."""

    def _over_coarsely(self, contexts: Tensor) -> View:
        """Prepare to rank decisions."""
        return self._over(contexts).coarse()

    def _over_for_means(self, contexts: Tensor) -> View:
        """The same where means alone are asked for."""
        return self._over(contexts)

    @abstractmethod
    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        """See ``integral``."""

    def __call__(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the marginal moments once: ``over(contexts).at(X).moments()``.

        Shapes: ``X``: ``... x d_x``, ``contexts``: ``n x d_c``.
        """
        return self.over(contexts).at(X).moments()

    def join(self, X: Tensor, contexts: Tensor) -> Tensor:
        r"""Put decisions and contexts into the model's column order.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: ``n x d_c``, or ``... x n x d_c`` with contexts of its own for
                each decision.

        Returns:
            Joint inputs, ``... x n x d``.
        """
        return join_columns(X, contexts, self.context_indices)


def join_columns(X: Tensor, contexts: Tensor, context_indices: Sequence[int]) -> Tensor:
    """Put decisions and contexts into a model's column order.

    Shapes: ``X``: ``... x d_x``, ``contexts``: ``n x d_c``, returns ``... x n x d``.
    """
    num_contexts, d_c = contexts.shape[-2:]
    if d_c != len(context_indices):
        raise BotorchTensorDimensionError(
            f"Contexts must have {len(context_indices)} columns, got {d_c}."
        )
    d = X.shape[-1] + d_c
    decisions = X.unsqueeze(-2).expand(*X.shape[:-1], num_contexts, -1)
    contexts = contexts.expand(*X.shape[:-1], -1, -1)
    joint = torch.cat([decisions, contexts], dim=-1)  # ... x n x d
    order = [i for i in range(d) if i not in context_indices]
    order += context_indices  # the column in which each joint column belongs
    if order == list(range(d)):
        return joint
    return columns_of(joint, [order.index(i) for i in range(d)])


def columns_of(inputs: Tensor, columns: Sequence[int]) -> Tensor:
    """Columns ``... x k`` of ``... x d``.

    By number and not by an index tensor, which would have to travel to the device.
    """
    return torch.stack([inputs[..., i] for i in columns], dim=-1)


def slopes_by_autograd(
    moments: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    X: Tensor,
    contexts: Tensor,
) -> MomentSlopes:
    """Differentiate moments in the context, for models of any kind.

    Shapes: ``moments``: ``b x d_x``, ``X``: ``b x d_x``, ``contexts``: ``k x d_c``.
    """
    graph = torch.is_grad_enabled() and X.requires_grad
    members = contexts.shape[1] if contexts.ndim == 4 else 1
    with torch.enable_grad():
        flat = contexts.flatten(1, 2) if contexts.ndim == 4 else contexts
        # Each pair of decision and context has a copy of its own: the gradient of the
        # sum over all pairs is that of each.
        leaf = flat.detach().expand(len(X), -1, -1).clone().requires_grad_()
        found = moments(X, leaf)  # b (x S) x (members k), twice
        if contexts.ndim == 4:  # each model looks at contexts of its own
            # Every model was asked at all models' contexts: it keeps those at its own.
            found = tuple(
                part.unflatten(-1, (members, -1)).diagonal(dim1=1, dim2=2).mT
                for part in found
            )  # b x S x k
        slopes = []
        for part in found:
            models = part.unbind(1) if part.ndim == 3 else [part]
            gradients = [_gradient(model, leaf, graph) for model in models]
            if contexts.ndim == 4:
                gradients = [
                    gradient.unflatten(1, (members, -1))[:, s]
                    for s, gradient in enumerate(gradients)
                ]
            slopes.append(torch.stack(gradients, 1) if part.ndim == 3 else gradients[0])
    if graph:
        return MomentSlopes(*found, *slopes)
    return MomentSlopes(*(part.detach() for part in (*found, *slopes)))


def _gradient(values: Tensor, leaf: Tensor, graph: bool) -> Tensor:
    """Zero where the values do not depend on the leaf at all."""
    if not values.requires_grad:
        return torch.zeros_like(leaf)
    (gradient,) = torch.autograd.grad(
        values.sum(),
        leaf,
        retain_graph=True,
        create_graph=graph,
        materialize_grads=True,
    )
    return gradient
