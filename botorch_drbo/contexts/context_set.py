r"""Weighted point sets: the one form in which the library knows a context distribution.

A :class:`ContextSet` holds atoms ``points`` (``n x d_c``) and ``weights`` (``n``, on
the simplex). Observed contexts, a kernel density estimate, a grid, a known law and a
single known context all become one, so that nothing further down asks where it came
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import (
    check_bounds,
    check_count,
    check_finite,
    check_inside,
    check_points,
    check_weights,
)
from botorch_drbo.codec.objects import storable
from botorch_drbo.contexts.sources import (
    effective_size,
    grid_counts,
    half_life_weights,
    kernel_density_samples,
    law_samples,
    nearest_on_grid,
    product_grid,
)


@final
@storable
class ContextSet(torch.nn.Module):
    r"""A discrete distribution of contexts, with atoms in ``R^{d_c}``.

    .. math:: P = \sum_{i=1}^n p_i \, \delta_{c_i}, \qquad p_i \ge 0, \ \sum_i p_i = 1.

    The atoms and weights are buffers, so ``.to(...)`` and ``state_dict`` work. They are
    detached copies: no gradient flows to a context set. Atoms may coincide.

    Args:
        points: An ``n x d_c`` tensor of atoms, in the user's units.
        weights: An ``n``-dim tensor of non-negative weights with a positive sum;
            they are scaled to sum to one and take the dtype and device of
            ``points``. None means ``1 / n`` each.

    Raises:
        InputDataError: ``points`` or ``weights`` not floating point or not finite,
            a negative weight, or weights that sum to zero.
        BotorchTensorDimensionError: Wrong shapes.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> contexts = ContextSet(points, torch.tensor([1.0, 3.0]))
        >>> contexts
        ContextSet(num_points=2, dim=1, dtype=torch.float32)
        >>> contexts.weights
        tensor([0.2500, 0.7500])
        >>> contexts.mean
        tensor([0.7500])
    """

    points: Tensor
    weights: Tensor

    def __init__(self, points: Tensor, weights: Tensor | None = None) -> None:
        super().__init__()
        points = check_points(points, "points").detach().clone()
        num_points = points.shape[0]
        if weights is None:
            weights = points.new_full((num_points,), 1.0 / num_points)
        else:
            if check_finite(weights, "weights").ndim != 1:
                raise BotorchTensorDimensionError(
                    f"`weights` must be one-dimensional, got shape "
                    f"{tuple(weights.shape)}. A context set holds one distribution."
                )
            # The scaling is done in the dtype that is stored, so that the stored
            # weights sum to one to its precision.
            weights = check_weights(weights.detach().to(points), num_points)
        self.register_buffer("points", points)
        self.register_buffer("weights", weights)

    @property
    def num_points(self) -> int:
        r"""The number of atoms ``n``."""
        return self.points.shape[0]

    @property
    def dim(self) -> int:
        r"""The number of context dimensions ``d_c``."""
        return self.points.shape[1]

    @property
    def mean(self) -> Tensor:
        r"""The mean ``sum_i p_i c_i``, a ``d_c``-dim tensor."""
        return self.weights @ self.points

    @property
    def std(self) -> Tensor:
        r"""The population standard deviation ``sqrt(sum_i p_i (c_i - mean)^2)``."""
        away = self.points - self.mean
        away = away.where(self.points.amin(0) < self.points.amax(0), 0.0)  # rounding
        return (self.weights @ away.square()).sqrt()

    @property
    def effective_size(self) -> float:
        r"""The effective sample size ``1 / sum_i p_i^2``."""
        return effective_size(self.weights)

    def extra_repr(self) -> str:
        r"""The text that ``repr`` shows between the parentheses."""
        return (
            f"num_points={self.num_points}, dim={self.dim}, dtype={self.points.dtype}"
        )

    # ------------------------------------------------------------- constructors

    @classmethod
    def empirical(cls, observed: Tensor, half_life: float | None = None) -> ContextSet:
        r"""Give each of ``t`` observed contexts the weight ``1 / t``, or less with age.

        Every row stays an atom of its own, duplicates included. The reference
        distribution of data-driven WDRBO and of ERBO [Micheli2025wdrbo]_.

        Args:
            observed: A ``t x d_c`` tensor of observed contexts, the oldest first.
            half_life: The number of further contexts after which the weight of a
                context is halved: weights are proportional to ``2^(-age / half_life)``,
                and the newest has age 0. None for equal weights.

        Returns:
            A context set with ``t`` atoms.

        Raises:
            InputDataError: Not floating point or not finite, or a half life that is
                not positive.
            BotorchTensorDimensionError: Not ``t x d_c``, or no row.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> observed = torch.tensor([[0.1], [0.4], [0.1]])
            >>> ContextSet.empirical(observed).weights
            tensor([0.3333, 0.3333, 0.3333])
            >>> ContextSet.empirical(observed, half_life=1).weights
            tensor([0.1429, 0.2857, 0.5714])
        """
        check_points(observed, "observed")
        if half_life is None:
            return cls(observed)
        return cls(observed, half_life_weights(len(observed), half_life, observed))

    @classmethod
    def kernel_density(
        cls,
        observed: Tensor | ContextSet,
        num_samples: int,
        bounds: Tensor | None = None,
        bandwidth: float | Tensor | None = None,
        seed: int | None = None,
    ) -> ContextSet:
        r"""Sample a Gaussian kernel density estimate of the observed contexts.

        The density is a mixture of ``t`` Gaussians of equal weight, one centred at each
        observed context, with one bandwidth per dimension. By default this is
        Silverman's rule [Huang2024sbokde]_

        .. math:: h_j = \Big(\frac{4}{d_c + 2}\Big)^{1 / (d_c + 4)} \hat\sigma_j \,
            t^{-1 / (d_c + 4)},

        where :math:`\hat\sigma_j` is the sample standard deviation (divisor ``t - 1``).
        It is at least ``1e-4`` of the side of ``bounds``: the floor decides for a
        single observation and for a coordinate without spread. The samples are
        quasi-random: the first coordinate of a scrambled Sobol point picks the kernel,
        the others go through the normal quantile function. They are then clipped to
        ``bounds``.

        With a context set each atom's Gaussian has the atom's weight; in the bandwidth
        the effective size stands for ``t``, and the variance is the weighted one.

        Args:
            observed: A ``t x d_c`` tensor of observed contexts, inside ``bounds``, or a
                context set, whose weights then count.
            num_samples: The number of samples ``n``; powers of two are best.
            bounds: A ``2 x d_c`` tensor to which samples are clipped; None: no
                clipping.
            bandwidth: The standard deviation of the kernels in the units of the
                contexts: a number, or a ``d_c``-dim tensor. None: Silverman's rule.
            seed: Seed of the Sobol scrambling; the global generator is then left alone.
                None: drawn from torch's global generator.

        Returns:
            A context set with ``n`` atoms of equal weight, in the dtype of
            ``observed``.

        Raises:
            InputDataError: A context outside ``bounds``, ``num_samples < 1``, a
                bandwidth that is not positive, or a coordinate without spread when
                neither ``bounds`` nor ``bandwidth`` gives a scale.
            BotorchTensorDimensionError: Wrong shapes.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> observed = torch.tensor([[0.2], [0.4], [0.9]], dtype=torch.double)
            >>> bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> density = ContextSet.kernel_density(observed, 256, bounds, seed=0)
            >>> density.num_points
            256
        """
        weights = observed.weights if isinstance(observed, ContextSet) else None
        points = observed.points if isinstance(observed, ContextSet) else observed
        check_points(points, "observed")
        check_count(num_samples, "num_samples")
        if bounds is not None:
            bounds = _bounds_like(bounds, points)
            check_inside(points, bounds, "observed", "bounds")
        samples = kernel_density_samples(
            points, weights, num_samples, bounds, bandwidth, seed
        )
        return cls(_clip(samples.to(points), bounds))

    @classmethod
    def grid(
        cls,
        bounds: Tensor,
        num_points: int | Sequence[int],
        observed: Tensor | ContextSet | None = None,
    ) -> ContextSet:
        r"""Make the product grid over a box, weighted by a nearest-point histogram.

        Each dimension gets equally spaced coordinates from its lower to its upper bound
        (the midpoint if there is only one); the atoms are all their combinations, the
        last dimension running fastest. The weight of an atom is the share of the
        observed contexts to which it is the nearest; ties go to the lower coordinate.
        The reference distribution of DRBO-MMD [Kirschner2020drbo]_.

        Args:
            bounds: A ``2 x d_c`` tensor, the box.
            num_points: The number of coordinates per dimension: one number for all, or
                ``d_c`` numbers. The grid has their product in atoms.
            observed: A ``t x d_c`` tensor of observed contexts inside ``bounds``, or a
                context set, whose weights are then added up. None: equal weights.

        Returns:
            A context set with ``prod(num_points)`` atoms, in the dtype of ``bounds``.

        Raises:
            InputDataError: Bad bounds, ``num_points < 1``, or a context outside
                ``bounds``.
            BotorchTensorDimensionError: Wrong shapes, or ``num_points`` of wrong
                length.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> bounds = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
            >>> observed = torch.tensor([[0.1, 0.3], [0.9, 1.8]])
            >>> contexts = ContextSet.grid(bounds, (2, 3), observed)
            >>> contexts.points[:3].tolist()
            [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
            >>> contexts.weights.tolist()
            [0.5, 0.0, 0.0, 0.0, 0.0, 0.5]
        """
        bounds = check_bounds(bounds, "bounds").detach()
        counts = grid_counts(num_points, bounds.shape[1])
        points = product_grid(bounds, counts)
        if observed is None:
            return cls(points)
        if not isinstance(observed, ContextSet):
            observed = cls.empirical(observed)
        mass, observed = observed.weights.to(bounds), observed.points.to(bounds)
        check_inside(observed, bounds, "observed", "bounds")
        nearest = nearest_on_grid(observed, bounds, counts)
        return cls(points, torch.bincount(nearest, mass, minlength=points.shape[0]))

    @classmethod
    def from_distribution(
        cls,
        distribution: Distribution,
        num_samples: int,
        bounds: Tensor | None = None,
        seed: int | None = None,
    ) -> ContextSet:
        r"""Sample a known distribution of the contexts, quasi-randomly if its quantile
        function is known.

        Scrambled Sobol points are pushed through the quantile function for univariate
        laws with ``icdf``, for batches of ``d_c`` of them (read as independent
        coordinates) and for ``Independent`` ones, and through the Cholesky factor for
        ``MultivariateNormal``. Any other law is sampled by its own ``sample``. The
        samples are then clipped to ``bounds``.

        Args:
            distribution: A torch distribution of a scalar or of a ``d_c``-dim vector.
            num_samples: The number of samples ``n``; powers of two are best.
            bounds: A ``2 x d_c`` tensor to which samples are clipped; None: no
                clipping.
            seed: Seed; the global generators are then left alone. None: torch's global
                generator.

        Returns:
            A context set with ``n`` atoms of equal weight. Its dtype is that of
            ``bounds``, or else that of the distribution: in torch, ``Normal(0.5, 0.2)``
            is float32.

        Raises:
            InputDataError: Not a torch distribution, ``num_samples < 1``, invalid
                bounds, or samples that are not finite.
            BotorchTensorDimensionError: A distribution of matrices, a batch of
                multivariate distributions, or bounds of another dimension.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> law = torch.distributions.Normal(0.5, 0.2)
            >>> bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double)
            >>> contexts = ContextSet.from_distribution(law, 1024, bounds, seed=0)
            >>> round(contexts.mean.item(), 3)
            0.5
        """
        if not isinstance(distribution, Distribution):
            raise InputDataError(
                "`distribution` must be a torch.distributions.Distribution, got "
                f"{type(distribution).__name__}."
            )
        check_count(num_samples, "num_samples")
        samples, probe = law_samples(distribution, num_samples, seed)
        like = probe if probe.is_floating_point() else probe.double()
        if bounds is not None:
            check_bounds(bounds, "bounds", num_columns=probe.shape[1])
            bounds = like = bounds.detach()
        return cls(_clip(samples.to(like), bounds))

    @classmethod
    def fixed(cls, context: Tensor) -> ContextSet:
        r"""Put all mass on one context that is known before the decision.

        Args:
            context: A ``d_c``-dim or ``1 x d_c`` tensor.

        Returns:
            A context set with one atom.

        Raises:
            InputDataError: Not floating point or not finite.
            BotorchTensorDimensionError: Any other shape.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> ContextSet.fixed(torch.tensor([0.3, 0.7])).points.shape
            torch.Size([1, 2])
        """
        check_finite(context, "context")
        if context.ndim == 1:
            context = context.unsqueeze(0)
        if context.ndim != 2 or context.shape[0] != 1 or context.shape[1] == 0:
            raise BotorchTensorDimensionError(
                "`context` must be one context, a `d_c`- or `1 x d_c`-dim tensor, got "
                f"shape {tuple(context.shape)}. Use `ContextSet.empirical` for several."
            )
        return cls(context)

    # ------------------------------------------------------------------- views

    def representatives(self, num: int) -> Tensor:
        r"""At most ``num`` atoms that represent the distribution; deterministic.

        Systematic resampling: the atoms at which the cumulative weight, in the order of
        the atoms, first reaches ``(i + 1/2) / num`` for ``i = 0, ..., num - 1``, each
        atom once. If no more than ``num`` atoms have positive weight, these. Atoms that
        coincide count as different ones.

        Args:
            num: The largest number of atoms to return.

        Returns:
            A ``k x d_c`` tensor with ``1 <= k <= num``, in the order of the atoms.

        Raises:
            InputDataError: ``num < 1``.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> contexts = ContextSet.empirical(torch.arange(6.0).unsqueeze(-1))
            >>> contexts.representatives(3).squeeze(-1)
            tensor([0., 2., 4.])
        """
        check_count(num, "num")
        positive = self.weights.nonzero().squeeze(-1)
        if positive.numel() <= num:
            return self.points[positive]
        cumulative = self.weights[positive].double().cumsum(0)
        levels = torch.arange(num, dtype=torch.double, device=self.points.device)
        levels = (levels + 0.5) / num * cumulative[-1]  # num, strictly inside
        chosen = torch.searchsorted(cumulative, levels).unique()
        return self.points[positive[chosen]]

    def normalised(self, bounds: Tensor) -> Tensor:
        r"""The atoms in units of a box: :math:`(c - l) / (u - l)`.

        Args:
            bounds: A ``2 x d_c`` tensor that contains all atoms.

        Returns:
            An ``n x d_c`` tensor in ``[0, 1]``, in the dtype of the atoms.

        Raises:
            InputDataError: Bad bounds, or an atom outside them.
            BotorchTensorDimensionError: Bounds of another dimension.

        Example:
            >>> import torch
            >>> from botorch_drbo import ContextSet
            >>> contexts = ContextSet(torch.tensor([[10.0], [15.0]]))
            >>> contexts.normalised(torch.tensor([[10.0], [20.0]]))
            tensor([[0.0000],
                    [0.5000]])
        """
        bounds = _bounds_like(bounds, self.points)
        check_inside(self.points, bounds, "points", "bounds")
        unit = (self.points - bounds[0]) / (bounds[1] - bounds[0])
        return unit.clamp(0.0, 1.0)  # takes off the rounding that the check lets pass


def _bounds_like(bounds: Tensor, points: Tensor) -> Tensor:
    """Return checked ``bounds`` in the dtype and on the device of ``points``."""
    check_bounds(bounds, "bounds", num_columns=points.shape[1])
    # Checked again: two bounds can be apart in float64 and equal in float32.
    return check_bounds(bounds.detach().to(points), "bounds")


def _clip(points: Tensor, bounds: Tensor | None) -> Tensor:
    """Return ``points`` clipped to ``bounds``, if there are any."""
    return points if bounds is None else points.clamp(bounds[0], bounds[1])
