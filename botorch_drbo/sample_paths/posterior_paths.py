"""Sample paths of the posterior over decisions and contexts, by Matheron's rule."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Generator, Tensor
from torch.nn import Module, ModuleList

from botorch_drbo._validation import check_count
from botorch_drbo.kernels.components import kernel_components, prior_kernel
from botorch_drbo.kernels.stationary import KernelSide, SplitComponent
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.models import inputs_in_units, settle
from botorch_drbo.posterior.skeleton import (
    column_sources,
    columns_from,
    numerical_rank,
    pivoted_lu,
)
from botorch_drbo.posterior.training import conditioned_system, outcome_map
from botorch_drbo.posterior.view import columns_of, join_columns
from botorch_drbo.sample_paths.fourier_features import RandomFourierFeatures


def supports_paths(
    model: Model, posterior_transform: PosteriorTransform | None = None
) -> str | None:
    """Find out whether ``PosteriorPaths`` can draw sample paths of a model."""
    if isinstance(model, ModelEnsemble):
        reasons = [supports_paths(m, posterior_transform) for m in model.members]
        return next((f"of a member: {reason}" for reason in reasons if reason), None)
    if not isinstance(model, SingleTaskGP):
        return f"it is a {type(model).__name__}, not a SingleTaskGP"
    if model.num_outputs != 1:
        return f"it has {model.num_outputs} outputs"
    if model.train_targets.ndim != 1:
        return f"it is a batch of models (batch_shape {tuple(model.batch_shape)})"
    if type(posterior_transform) not in (type(None), ScalarizedPosteriorTransform):
        return (
            f"its posterior transform is {type(posterior_transform).__name__}, not a "
            "weight and an offset (ScalarizedPosteriorTransform)"
        )
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        num_weights = cast(Tensor, posterior_transform.weights).numel()
        if num_weights != 1:
            return f"its posterior transform has {num_weights} weights for one output"
    transform = getattr(model, "input_transform", None)
    if getattr(transform, "is_one_to_many", False):
        return f"its input transform {type(transform).__name__} adds points of its own"
    transform = getattr(model, "outcome_transform", None)
    if type(transform) not in (type(None), Standardize):
        return f"its outcome transform is {type(transform).__name__}, not Standardize"
    if not ExactPosterior.supports(model, None):
        return (
            f"its class {type(model).__name__} computes its own posterior, or its "
            f"likelihood {type(model.likelihood).__name__} is not Gaussian"
        )
    try:
        kernel_components(
            prior_kernel(cast(Kernel, model.covar_module)),
            get_train_inputs(model, transformed=True)[0].shape[-1],
        )
    except UnsupportedError as error:
        return str(error)
    return None


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
    """

    # The positions of these contexts, ``r``.
    chosen: Tensor
    # ``E``, ``n x r``.
    matrix: Tensor


def interpolation(functions: list[Tensor]) -> Interpolation | None:
    """A randomised interpolative decomposition of functions of the context.

    An LU factorisation with row pivots of random mixtures of the functions: the pivots
    are the contexts, the factors the interpolation. It is checked on mixtures of its
    own, at every context [Halko2011randomized]_.

    Shapes: ``functions``: ``... x n``.
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


_BYTES = 8  # of a float64, in which paths are computed
# With more contexts than the budget can keep: so few that a block has many decisions.
_CONTEXTS_PER_BLOCK = 512


class _ContextSide(NamedTuple):
    """All that depends on the contexts alone, or on a representative few."""

    inputs: Tensor  # n x k, transformed
    features: tuple[Tensor, Tensor]  # P x m x n
    kernel: list[KernelSide]
    interpolation: Tensor | None = None  # all contexts by these, if these are a few


class PosteriorPaths(Module):
    r"""Sample paths of a model's posterior over ``z = [x, c]``.

    A path is a sample path of the prior, corrected by the data (Matheron's rule
    [Wilson2020pathwise]_):

    .. math:: f(z) = m(z) + g(z) + k(z, Z)\,(K + \sigma^2 I)^{-1}
        \big(y - m(Z) - g(Z) - \epsilon\big)

    with ``g`` a sum of random cosines whose frequencies come from the kernel's spectral
    density [RahimiRecht2007]_. Each path has its own frequencies, so the mean and the
    covariance over paths are exactly those of ``model.posterior`` for any number of
    features; with more features the distribution of a path is closer to a Gaussian
    process.

    A path is a function: the same inputs always give the same values, and has gradients
    in ``X`` and ``contexts``. Paths do not follow later changes of the model: after new
    data or new hyper-parameters, make a new object.

    Where decisions and contexts enter the kernel through one sum (``g``), or through
    factors of their own (RBF, and products like ``k_x * k_c``), all decisions at all
    contexts are one matrix product. The arithmetic is float64, for float32 models too
    (unless the paths themselves are cast); results have the dtype of ``X``.

    Args:
        model: A fitted ``SingleTaskGP`` with RBF and Matern kernels, also scaled,
            multiplied and added; see ``supports_paths``.
        context_indices: The model's input columns that hold the context.
        num_paths: How many paths ``P``.
        num_features: Frequencies of each path; each has a sine and a cosine.
        seed: Determines all random draws. The draws use a separate generator on the
            CPU, so equal seeds give equal paths on every device.
        posterior_transform: None or a ``ScalarizedPosteriorTransform`` of one weight:
            a path is multiplied by it, and shifted by the offset.
        memory_budget: Bytes for the temporaries of one evaluation.

    Raises:
        UnsupportedError: A model for which ``supports_paths`` gives a reason.
        InputDataError: Numbers that are not counts, or fewer features than the
            kernel has summands.
        BotorchTensorDimensionError: Context columns that the model does not have.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.sample_paths import PosteriorPaths
        >>> Z = torch.rand(5, 3, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z.sum(-1, keepdim=True))
        >>> paths = PosteriorPaths(model, [2], num_paths=4, seed=0)
        >>> contexts = torch.rand(7, 1, dtype=torch.double)
        >>> paths(Z[:, :2], contexts).shape  # every path at every decision
        torch.Size([4, 5, 7])
        >>> paths.own(Z[:4, :2], contexts).shape  # path p at decision p
        torch.Size([4, 7])
    """

    weights: Tensor
    centre: Tensor
    reference: Tensor
    columns: Tensor
    scale: Tensor
    offset: Tensor

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        num_paths: int = 1,
        num_features: int = 1024,
        seed: int,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__()
        reason = supports_paths(model, posterior_transform)
        if reason is not None:
            raise UnsupportedError(
                f"Sample paths cannot be drawn from this model: {reason}. Use a "
                "single-output SingleTaskGP with RBF or Matern kernels (scaled, "
                "multiplied or added) and at most a Standardize outcome transform."
            )
        self.num_paths = check_count(num_paths, "num_paths")
        self.num_features = num_features
        self.memory_budget = memory_budget
        generator = Generator().manual_seed(check_count(seed, "seed", 0))
        settle(model)
        system = conditioned_system(model)
        raw = inputs_in_units(model)
        self.context_indices = tuple(context_indices)
        decisions = _decision_columns(self.context_indices, raw.shape[-1])
        self.decision_indices = tuple(decisions)
        self.num_decisions = len(decisions)
        # Copies: a path must not change when the model does.
        self.input_transform = _frozen(getattr(model, "input_transform", None))
        self.mean_module = _frozen(model.mean_module)
        d = system.inputs.shape[-1]  # some transforms change the number of columns
        sources = column_sources(self.input_transform, raw.shape[-1])
        self.columnwise = sources is not None
        if sources is None:
            order, self.split = list(range(d)), d
        else:
            first = columns_from(sources, decisions)
            order = first + columns_from(sources, self.context_indices)
            self.split = len(first)

        Z = system.inputs.double()
        centre = Z.mean(0)  # distances and phases of centred points lose fewer digits
        centred = (Z - centre)[:, order]
        # Columns in the order of the two groups: decisions first, contexts last.
        components = [
            component._replace(
                factors=tuple(
                    factor._replace(weights=factor.weights[order])
                    for factor in component.factors
                )
            )
            for component in kernel_components(
                prior_kernel(cast(Kernel, model.covar_module)), d
            )
        ]
        check_count(num_features, "num_features", len(components))
        self.features = RandomFourierFeatures(
            components,
            num_paths=self.num_paths,
            num_features=num_features,
            split=self.split,
            generator=generator,
        ).to(Z.device)
        noise_draws = torch.randn(
            self.num_paths, len(Z), generator=generator, dtype=torch.double
        )

        scale, offset = outcome_map(model, posterior_transform)
        for name, buffer in {
            "centre": centre,
            "reference": raw[0].double(),  # an input at which the transform is defined
            "columns": torch.tensor(order),
            "scale": scale,
            "offset": offset,
        }.items():
            self.register_buffer(name, buffer.detach().to(Z.device), persistent=False)
        self.components = ModuleList(
            SplitComponent(component, centred, self.split) for component in components
        )
        # Matheron's rule: a posterior path is a prior path g plus k(., Z) times what
        # the data, less g and a draw of the noise there, ask for. Solved once, for all
        # paths.
        weights = system.path_weights(
            self.features.at(centred, memory_budget), noise_draws.to(Z)
        )  # P x t
        self.register_buffer("weights", weights.contiguous(), persistent=False)
        self._cache: tuple[Tensor, int, Tensor, _ContextSide] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the cache behind: copies and pickles make their own."""
        return {**self.__dict__, "_cache": None}

    def forward(self, X: Tensor, contexts: Tensor) -> Tensor:
        r"""Evaluate every path at every decision and every context.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c``.

        Returns:
            Values in the units of the outcome, ``P x ... x n``.

        Raises:
            BotorchTensorDimensionError: Wrong numbers of columns.
        """
        self._check(X, contexts)
        values = self._values(X.reshape(1, -1, X.shape[-1]), contexts)
        return values.reshape(self.num_paths, *X.shape[:-1], len(contexts))

    def own(self, X: Tensor, contexts: Tensor) -> Tensor:
        r"""Evaluate each path at its own decision and every context.

        Args:
            X: One decision per path, ``... x P x d_x``.
            contexts: Contexts, ``n x d_c``.

        Returns:
            Values in the units of the outcome, ``... x P x n``: row ``p`` is path
            ``p`` at decision ``p``.

        Raises:
            BotorchTensorDimensionError: Another number of decisions than of paths, or
                wrong numbers of columns.
        """
        self._check(X, contexts)
        if X.ndim < 2 or X.shape[-2] != self.num_paths:
            raise BotorchTensorDimensionError(
                f"`X` must be `... x {self.num_paths} x {self.num_decisions}`, one "
                f"decision for each path, got shape {tuple(X.shape)}."
            )
        rows = X.reshape(-1, *X.shape[-2:]).transpose(0, 1)  # P x N x d_x
        values = self._values(rows, contexts).transpose(0, 1)
        return values.reshape(*X.shape[:-1], len(contexts))

    def keeps(self, num_contexts: int) -> bool:
        r"""Whether results that depend on the contexts alone are cached.

        Args:
            num_contexts: How many there are.

        Returns:
            False if it would not fit the memory budget: then it is computed anew.
        """
        return self._contexts_per_block(num_contexts) >= num_contexts

    def part(self, which: slice) -> PosteriorPaths:
        r"""Some of the paths, as views that share memory.

        Args:
            which: The positions of the paths.

        Returns:
            Paths that have the same values as these.
        """
        part = copy.copy(self)  # without the cache
        part._buffers = {**self._buffers, "weights": self.weights[which]}
        part._modules = {**self._modules, "features": self.features.part(which)}
        part.num_paths = len(part.weights)
        return part

    def _check(self, X: Tensor, contexts: Tensor) -> None:
        if X.ndim == 0 or X.shape[-1] != self.num_decisions:
            raise BotorchTensorDimensionError(
                f"`X` must have {self.num_decisions} columns, got shape "
                f"{tuple(X.shape)}."
            )
        d_c = len(self.context_indices)
        if contexts.ndim != 2 or contexts.shape[-1] != d_c:
            raise BotorchTensorDimensionError(
                f"`contexts` must be `n x {d_c}`, got shape {tuple(contexts.shape)}."
            )

    def _values(self, X: Tensor, contexts: Tensor) -> Tensor:
        """``G x N x d_x`` to ``P x N x n``; ``G`` is 1 for shared decisions, or P."""
        # What depends on the contexts alone is computed once, and kept where it fits
        # into the memory budget; else the contexts go in groups, and decisions in
        # blocks.
        graph = torch.is_grad_enabled() and (X.requires_grad or contexts.requires_grad)
        groups = contexts.split(self._contexts_per_block(len(contexts)))
        is_cached = self.columnwise and len(groups) == 1 and not contexts.requires_grad

        def group_values(group: Tensor) -> Tensor:
            side: _ContextSide | None = None
            if is_cached:
                side = self._cached_side(contexts)
            elif self.columnwise and not graph:  # in a graph it would have to be kept
                side = self._context_side(group.to(self.weights.dtype))

            def row_values(rows: Tensor, group: Tensor) -> tuple[Tensor]:
                return (self._block(rows.movedim(1, 0), group, side).movedim(1, 0),)

            (found,) = in_blocks(
                row_values,
                X.movedim(1, 0),  # N x G x d_x
                self._bytes_per_row(len(X), len(group)),
                self.memory_budget,
                group,
                parts=max(1, self.num_paths // 4),
            )  # N x P x n
            return found.movedim(0, 1)

        with torch.set_grad_enabled(graph):
            values = torch.cat([group_values(group) for group in groups], -1)
            return (self.offset + self.scale * values).to(X.dtype)

    def _block(self, X: Tensor, group: Tensor, side: _ContextSide | None) -> Tensor:
        dtype = self.weights.dtype
        X, contexts = X.to(dtype), group.to(dtype)
        if self.columnwise:
            # No result depends on two columns: the decision's may be transformed at any
            # context.
            reference = columns_of(self.reference, self.context_indices).unsqueeze(0)
            joint = join_columns(X, reference, self.context_indices).squeeze(-2)
            x = self._transform(joint)[..., self.columns[: self.split]]
            return self._grid(x, self._context_side(contexts) if side is None else side)
        Z = self._transform(join_columns(X, contexts, self.context_indices))
        no_contexts = contexts.new_empty(1, 0)
        values = self._grid(Z.flatten(1, 2), self._context_side(no_contexts))
        return values.reshape(self.num_paths, X.shape[1], len(contexts))

    def _grid(self, x: Tensor, side: _ContextSide) -> Tensor:
        """Transformed decisions ``G x N x k`` against a side: ``P x N x n``."""
        centred = x - self.centre[self.columns[: self.split]]
        # f = m + g + sum_j s_j k_j(., Z) weights, a product of matrices if separable.
        values = self.features(centred, side.features)
        weights = self.weights.unsqueeze(-1)  # P x t x 1
        for module, second in zip(self.components, side.kernel, strict=True):
            component = cast(SplitComponent, module)
            first = component.side(centred, 0)
            # k_j = a_j(x) b_j(c) if separable: the weights join the context's side, and
            # the sum over the data is a product of matrices.
            row, column = first.correlation, second.correlation  # G x N x t, n x t
            if component.separable:
                right = weights if column is None else weights * column.mT  # P x t x n
                update = right.sum(1, keepdim=True) if row is None else row @ right
            else:
                # A factor that looks at both sides is evaluated at every pair.
                K = component.mixed(first, second)  # G x N x n x t
                K = K if row is None else K * row.unsqueeze(-2)
                K = K if column is None else K * column
                # Decisions that all paths share: one product of matrices for all of
                # them.
                if len(x) == 1:
                    update = (K.squeeze(0) @ self.weights.mT).movedim(-1, 0)
                else:
                    update = (K @ weights.unsqueeze(1)).squeeze(-1)
            values = values + component.variance * update
        # Values at a few contexts determine those at all.
        if side.interpolation is not None:
            values = values @ side.interpolation.mT
        return values + self._mean(x, side.inputs)

    def _mean(self, x: Tensor, contexts: Tensor) -> Tensor:
        """The prior mean, ``G x N x n``, or one number if it is the same everywhere."""
        if self._constant_mean:
            mean = cast(Callable[..., Tensor], self.mean_module)
            return mean(x.new_zeros(1, len(self.columns))).squeeze()
        decisions = x.unsqueeze(-2).expand(-1, -1, len(contexts), -1)
        contexts = contexts.expand(*x.shape[:-1], -1, -1)
        joint = torch.cat([decisions, contexts], dim=-1)  # G x N x n x d
        return cast(Module, self.mean_module)(joint[..., self.columns.argsort()])

    def _context_side(self, contexts: Tensor) -> _ContextSide:
        if self.columnwise:
            reference = self.reference[list(self.decision_indices)]
            joint = join_columns(reference, contexts, self.context_indices)
            contexts = self._transform(joint)[..., self.columns[self.split :]]
        centred = contexts - self.centre[self.columns[self.split :]]
        return _ContextSide(
            contexts,
            self.features.side(centred),
            [cast(SplitComponent, part).side(centred, 1) for part in self.components],
        )

    @property
    def _constant_mean(self) -> bool:
        return type(self.mean_module) in (ConstantMean, ZeroMean)

    def _thinned_side(self, contexts: Tensor) -> _ContextSide:
        """The side of a few representative contexts, where there are such."""
        side = self._context_side(contexts)
        parts = cast(Sequence[SplitComponent], self.components)
        separable = all(part.separable for part in parts)
        if contexts.dtype != torch.double or not (separable and self._constant_mean):
            return side
        # All that a path is made of, as functions of the context, each as large as its
        # weights can make it: what interpolates these interpolates the paths.
        functions = list(side.features)  # P x m x n each
        for part, second in zip(parts, side.kernel, strict=True):
            if second.correlation is not None:  # n x t
                size = part.variance * torch.linalg.vector_norm(self.weights, dim=0)
                functions.append((size * second.correlation).mT)
        found = interpolation(functions)
        if found is None:
            return side
        few = self._context_side(contexts[found.chosen])
        return few._replace(interpolation=found.matrix)

    def _cached_side(self, contexts: Tensor) -> _ContextSide:
        """Keep the side of the last contexts: an acquisition function has one set."""
        dtype = self.weights.dtype
        if self._cache is not None:
            cached, version, weights, side = self._cache
            was_cast = weights is not self.weights  # by `.to(device)`, `.float()`
            if cached is contexts and version == contexts._version and not was_cast:
                return side
        with torch.no_grad():
            side = self._thinned_side(contexts.to(dtype))
        self._cache = contexts, contexts._version, self.weights, side
        return side

    def _transform(self, Z: Tensor) -> Tensor:
        if self.input_transform is None:
            return Z
        if self.input_transform.training:  # it must not learn here
            self.input_transform.eval()
        return self.input_transform(Z)

    def _contexts_per_block(self, n: int) -> int:
        # Cosines and sines of each path, and a kernel row of each summand; three of
        # them for the temporaries.
        P, m = self.features.cosines.shape
        floats = 3 * P * (2 * m + len(self.components) * self.weights.shape[-1])
        limit = max(1, self.memory_budget // (_BYTES * floats))
        return limit if n <= limit else min(limit, _CONTEXTS_PER_BLOCK)

    def _bytes_per_row(self, G: int, n: int) -> int:
        """The temporaries of one decision, at ``n`` contexts."""
        P, m = self.features.cosines.shape
        parts, t = len(self.components), self.weights.shape[-1]
        pairs = n if self.columnwise else 1  # contexts per row of `_grid`
        floats = 8 * P * m + 6 * parts * G * t + (4 + parts) * P * pairs
        for part in cast(Sequence[SplitComponent], self.components):
            if not part.separable:
                floats += 8 * len(part.active) * G * pairs * t
        floats += 3 * G * pairs * len(self.columns)
        return _BYTES * floats * (n // pairs)


def _decision_columns(context_indices: tuple[int, ...], d: int) -> list[int]:
    """The columns of the model's inputs that hold no context."""
    unknown = [i for i in context_indices if not 0 <= i < d]
    if unknown or len(set(context_indices)) != len(context_indices):
        raise BotorchTensorDimensionError(
            f"`context_indices` must name different columns of the model's {d} inputs, "
            f"counted from 0, got {list(context_indices)}."
        )
    return [i for i in range(d) if i not in context_indices]


def _frozen(module: Any) -> Module | None:
    """A float64 copy that does not follow the original."""
    if module is None:
        return None
    return copy.deepcopy(module).double().eval().requires_grad_(False)
