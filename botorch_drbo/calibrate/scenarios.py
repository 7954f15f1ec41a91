"""A radius from scenarios: the smallest ball that contains them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_finite, check_nonnegative
from botorch_drbo.ambiguity.sizing import SetOrMaker
from botorch_drbo.calibrate.common_list import on_common_list
from botorch_drbo.contexts import ContextSet


def from_scenarios(
    reference: ContextSet,
    scenarios: ContextSet | Sequence[ContextSet],
    ambiguity_set: SetOrMaker,
) -> float:
    r"""A radius from scenarios: the smallest ball that contains them.

    .. math:: \epsilon = \max_k d(p, q_k)

    *Guarantee.* By definition: a decision that is robust to this radius has at least
    its worst-case value under each scenario (on the contexts that the adversary may
    use). It implies nothing about how likely the scenarios are, nor about other
    distributions, except those that are nearer.

    For a set that ignores the positions of contexts, a shifted distribution is as far
    away as possible, because none of its contexts is the same. Use ``Wasserstein`` or
    ``MaximumMeanDiscrepancy``, or histograms on one grid (``ContextSet.grid(bounds, 10,
    scenario)``).

    Args:
        reference: The reference distribution.
        scenarios: One or several distributions that may occur instead. ``shifted`` and
            ``scaled`` construct some; for last winter's data use
            ``ContextSet.empirical(last_winter)``.
        ambiguity_set: The set, if it does not know where contexts lie or all
            distributions are on one list; else a function that makes it from
            contexts. Its own radius is ignored.

    Returns:
        The radius, in the units of the set's own distance.

    Raises:
        InputDataError: No scenario, a set without a radius, one that knows another list
            of contexts, or one that no radius makes large enough.
        BotorchTensorDimensionError: Other numbers of context columns.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.ambiguity import Wasserstein
        >>> from botorch_drbo.calibrate import from_scenarios, shifted
        >>> demand = ContextSet.empirical(torch.tensor([[50.0], [70.0], [90.0]]))
        >>> lower = shifted(demand, -0.2 * demand.mean)  # the mean may fall by 20 %
        >>> radius = from_scenarios(
        ...     demand, lower, lambda c: Wasserstein(0.0, torch.cdist(c, c))
        ... )
        >>> round(radius, 6)
        14.0
    """
    several = [scenarios] if isinstance(scenarios, ContextSet) else list(scenarios)
    if not several:
        raise InputDataError("`scenarios` is empty: give at least one ContextSet.")
    ball, weights = on_common_list([reference, *several], ambiguity_set)
    distances = ball.distance(weights[:1], weights[1:])  # k
    never = distances.isinf().nonzero().flatten().tolist()
    if never:
        raise InputDataError(
            f"No {type(ball).__name__} holds the scenarios {never}: they have mass "
            "where the reference has none, which the set never allows. Use Wasserstein "
            "or MaximumMeanDiscrepancy, or count all on one grid."
        )
    return distances.max().item()


def shifted(
    context_set: ContextSet, by: float | Tensor, bounds: Tensor | None = None
) -> ContextSet:
    r"""The same distribution, with every context shifted by the same amount.

    Args:
        context_set: The distribution.
        by: What is added to each context: a number, or one for each column, ``d_c``.
            ``-0.2 * context_set.mean`` lets the mean fall by 20 %.
        bounds: A box to which contexts are clipped, ``2 x d_c``.

    Returns:
        The shifted distribution, with the same weights.

    Raises:
        InputDataError: NaN or infinite numbers, or bad bounds.
        BotorchTensorDimensionError: Another number of columns.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.calibrate import shifted
        >>> shifted(ContextSet(torch.tensor([[1.0], [2.0]])), 0.5).points.flatten()
        tensor([1.5000, 2.5000])
    """
    shift = torch.as_tensor(by, dtype=context_set.points.dtype)
    if check_finite(shift, "by").ndim > 1 or shift.numel() not in (1, context_set.dim):
        raise BotorchTensorDimensionError(
            f"`by` must be a number or have {context_set.dim} entries, one per context "
            f"column, got shape {tuple(shift.shape)}."
        )
    return _moved(
        context_set, context_set.points + shift.to(context_set.points), bounds
    )


def scaled(
    context_set: ContextSet, factor: float, bounds: Tensor | None = None
) -> ContextSet:
    r"""The same distribution with another spread around the same mean.

    .. math:: c_i \mapsto m + \text{factor} \cdot (c_i - m)

    Args:
        context_set: The distribution.
        factor: The factor of the standard deviation; not negative.
        bounds: A box to which contexts are clipped, ``2 x d_c``.

    Returns:
        The scaled distribution, with the same weights.

    Raises:
        InputDataError: A negative or infinite factor, or bad bounds.
        BotorchTensorDimensionError: Bounds of another dimension.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.calibrate import scaled
        >>> scaled(ContextSet(torch.tensor([[1.0], [2.0]])), 3.0).points.flatten()
        tensor([0., 3.])
    """
    check_nonnegative(factor, "factor")
    mean = context_set.mean
    return _moved(context_set, mean + factor * (context_set.points - mean), bounds)


def _moved(
    context_set: ContextSet, points: Tensor, bounds: Tensor | None
) -> ContextSet:
    if bounds is not None:
        box = check_bounds(bounds, "bounds", num_columns=context_set.dim).to(points)
        points = points.clamp(box[0], box[1])
    return ContextSet(points, context_set.weights)
