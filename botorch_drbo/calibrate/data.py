"""A radius from the data: how far an estimate of the distribution may be off."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.sizing import SetOrMaker
from botorch_drbo.calibrate.common_list import on_common_list
from botorch_drbo.contexts import ContextSet

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
