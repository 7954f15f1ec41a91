"""A radius from scenarios or from data."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import (
    check_bounds,
    check_count,
    check_finite,
    check_nonnegative,
)
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.base import (
    SetOrMaker,
    bound_to_list,
    check_has_radius,
    made_for,
)
from botorch_drbo.contexts import ContextSet


def on_common_list(
    context_sets: Sequence[ContextSet], ambiguity_set: SetOrMaker
) -> tuple[AmbiguitySet, Tensor]:
    """Write distributions as weights on one list, and make the set for it.

    A set that knows positions by a matrix stays on the list that it was made for.
    Otherwise equal contexts become one.

    Shapes: returns ``k x n``.
    """
    for contexts in context_sets:
        if not isinstance(contexts, ContextSet):
            raise InputDataError(
                f"Distributions must be ContextSets, got {type(contexts).__name__}. "
                "For observed contexts: ContextSet.empirical(observed)."
            )
    first = context_sets[0].points
    columns = sorted({contexts.dim for contexts in context_sets})
    if len(columns) > 1:
        raise BotorchTensorDimensionError(
            f"All distributions must have as many context columns, got {columns}."
        )
    bound = bound_to_list(ambiguity_set)
    if bound is not None:
        if not all(torch.equal(first, contexts.points) for contexts in context_sets):
            raise InputDataError(
                f"This {type(bound).__name__} knows the contexts of one list, "
                "and the distributions are on several. Give a function that makes the "
                "set for any contexts, for example `lambda points: "
                "Wasserstein(0.0, torch.cdist(points, points))`."
            )
        weights = torch.stack([contexts.weights.double() for contexts in context_sets])
        return _fitting(bound, weights), weights
    joined = torch.cat([contexts.points.double() for contexts in context_sets])
    points, index = joined.unique(dim=0, return_inverse=True)
    weights = points.new_zeros(len(context_sets), len(points))
    sizes = [contexts.num_points for contexts in context_sets]
    for row, contexts, at in zip(
        weights, context_sets, index.split(sizes), strict=True
    ):
        row.index_add_(0, at, contexts.weights.double())
    return _fitting(made_for(ambiguity_set, points), weights), weights


def _fitting(ambiguity_set: AmbiguitySet, weights: Tensor) -> AmbiguitySet:
    n = weights.shape[-1]
    check_has_radius(ambiguity_set)._check_sizes(n, n)
    return ambiguity_set


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


_MOST_UNSEEN = 0.5  # of the probability: more, and the list of contexts says little
_COUNT_ROUNDING = 1e-4  # of a count, which comes from float32 weights perhaps


def from_data(
    observed: Tensor | ContextSet,
    ambiguity_set: SetOrMaker,
    *,
    num_observed: int | None = None,
    confidence: float = 0.95,
    num_resamples: int = 200,
    seed: int | None = 0,
) -> float:
    r"""A radius from data: a bootstrap of the distance to the true distribution.

    .. math:: \epsilon = \text{the `confidence` quantile of } d(p^*, \hat p), \qquad
        t\, p^* \sim \text{Multinomial}(t, \hat p)

    The bootstrap [Efron1979]_: :math:`\hat p` was estimated from ``t`` contexts of the
    true distribution. So draw ``t`` contexts from :math:`\hat p` many times, and
    measure how far :math:`\hat p` is from each resample. Since a ball is centred at the
    estimate, the resampled distribution takes the place of the reference.

    *Guarantee.* None for a finite ``t``. If contexts are drawn independently from one
    distribution, the ball around :math:`\hat p` holds that distribution with a
    probability that tends to ``confidence`` as ``t`` grows: for every set if there are
    finitely many contexts; for ``MaximumMeanDiscrepancy`` always; for ``Wasserstein``
    with one context column (with more the ball is of the right order only).
    It does not apply if the distribution drifts or if contexts depend on each other
    (successive days); use ``from_scenarios`` there.

    Sets that ignore the positions of contexts (total variation, the divergences, CVaR)
    treat contexts that were never seen as infinitely or maximally different. They raise
    an error if more than half of the probability lies on contexts seen once, because
    about as much then lies on contexts not seen yet [Good1953]_. Bin such contexts on a
    coarse grid first, as in the second example.

    Args:
        observed: Contexts, ``t x d_c``; or a distribution that was estimated from
            ``num_observed`` contexts, such as a histogram on a grid.
        ambiguity_set: The set, on the contexts of ``observed`` if it knows them; or a
            function that makes it from contexts. Its own radius is ignored.
        num_observed: ``t``, with a distribution only.
        confidence: In (0, 1).
        num_resamples: How often to draw. The level has a standard deviation of
            ``sqrt(confidence (1 - confidence) / num_resamples)``. Each Wasserstein
            distance is a linear program: with hundreds of contexts, bin them on a grid
            first.
        seed: The seed of the draws; None uses torch's global generator.

    Returns:
        The radius, in the units of the set's own distance.

    Raises:
        InputDataError: A set without a radius, an argument outside its range, contexts
            that hardly repeat and a set that knows no positions, or a set that no
            radius makes large enough.
        BotorchTensorDimensionError: A set that knows another number of contexts.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.ambiguity import TotalVariation, Wasserstein
        >>> from botorch_drbo.calibrate import from_data
        >>> demand = torch.linspace(0.1, 0.9, 30, dtype=torch.double).unsqueeze(-1)
        >>> ball = Wasserstein(0.0, torch.cdist(demand, demand))
        >>> print(f"{from_data(demand, ball, num_resamples=40):.2f}")
        0.08
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> thirds = ContextSet.grid(unit, 3, demand)  # a histogram of three bars
        >>> print(f"{from_data(thirds, TotalVariation(0.0), num_observed=30):.2f}")
        0.33
    """
    if not 0.0 < confidence < 1.0:
        raise InputDataError(f"`confidence` must lie in (0, 1), got {confidence}.")
    check_count(num_resamples, "num_resamples")
    if isinstance(observed, ContextSet):
        if num_observed is None:
            raise InputDataError(
                "`observed` is a distribution: pass `num_observed`, the number of "
                "contexts that it was estimated from."
            )
        contexts, t = observed, check_count(num_observed, "num_observed", 2)
    else:
        if num_observed is not None:
            raise InputDataError(
                "`num_observed` goes with a distribution. `observed` is a tensor of "
                "contexts, which are counted."
            )
        contexts = ContextSet.empirical(observed)
        t = check_count(contexts.num_points, "the number of rows of `observed`", 2)
    ball, weights = on_common_list([contexts], ambiguity_set)
    estimate = weights[0] / weights[0].sum()  # n
    _check_repeats(ball, estimate, t)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(
        estimate.cpu().expand(num_resamples, -1), t, True, generator=generator
    ).to(estimate.device)  # num_resamples x t
    counts = estimate.new_zeros(num_resamples, len(estimate))
    counts.scatter_add_(-1, drawn, torch.ones_like(drawn, dtype=counts.dtype))
    distances = ball.distance(counts / t, estimate)
    radius = distances.quantile(confidence, interpolation="higher").item()
    if radius == float("inf"):
        share = distances.isinf().double().mean().item()
        raise InputDataError(
            f"No {type(ball).__name__} is large enough: in {share:.0%} of the "
            "resamples some context does not occur, and the set gives such contexts "
            "no mass. Count the contexts on a coarser list, or use TotalVariation, "
            "MaximumMeanDiscrepancy or Wasserstein."
        )
    return radius


def _check_repeats(ball: AmbiguitySet, estimate: Tensor, t: int) -> None:
    """Refuse contexts that another sample would rarely contain again."""
    if ball.knows_positions:
        return
    unseen = estimate[estimate * t <= 1.0 + _COUNT_ROUNDING].sum().item()
    if unseen > _MOST_UNSEEN:
        raise InputDataError(
            f"{unseen:.0%} of the {t} observed contexts occurred once only, so that "
            "about as much probability lies on contexts not seen yet, and "
            f"{type(ball).__name__} does not know which contexts are near each other. "
            "Count them on a coarse list (ContextSet.grid(bounds, 5, observed), with "
            "`num_observed`), or use Wasserstein or MaximumMeanDiscrepancy."
        )
