"""Where a laboratory should evaluate decisions: the contexts that teach most."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries.base import WorstCaseProblem
from botorch_drbo.posterior.mixture import joined, joint_covariance, thinned
from botorch_drbo.recommendation.worst_case import moments_at, worst_case

_PESSIMISM = 1.5  # deviations below the mean, by which worst weights are found
_CARRIES = 1e-6  # less mass in a worst case is a rounding error
_MOST = 256  # contexts whose joint covariance is looked at
_NEARLY = 0.5  # of the largest reduction: contexts between which a plate is spread
_FLOOR = 1e-10  # of the largest variance: what is known as well is known


def chosen_contexts(
    problem: WorstCaseProblem,
    model: Model,
    X: Tensor,
    pending: Tensor,
    taken: Tensor,
    *,
    seed: int,
) -> Tensor:
    r"""For each decision the context that most reduces the variance of its value.

    .. math:: \arg\max_c \frac{(w^\top S\, e_c)^2}{S_{cc} + \sigma_n^2}

    with ``S`` the posterior covariance over contexts, conditioned on pending pairs and
    on the rows before (variances need no outcomes), and ``w`` the weights that are
    worst for the pessimistic outcome, those of the reference if nothing is feared
    [Williams2000integrated]_. Of the contexts with at least half of the largest
    reduction those that are pending least often come first: it is flat, and a plate on
    one context learns nothing of the others where the model is wrong about them. No
    pair that is taken is chosen again.

    Shapes: ``X``: ``q x d_x``, ``pending``, ``taken``: pairs ``... x (d_x + d_c)``,
    returns ``q x d_c``.
    """
    chosen = []
    for x in X:
        contexts, weights = _worst_weights(problem, model, x, seed)
        pairs = joined(x, contexts)
        free = some_untried(pairs, taken)
        gains = variance_reductions(model, pairs, weights, pending)
        gains = gains.masked_fill(~free, -torch.inf)
        first = gains >= _NEARLY * gains.max()
        times = (contexts.unsqueeze(1) == pending[:, len(x) :]).all(-1).sum(-1)
        first &= times == times[first].min()
        best = pairs[gains.masked_fill(~first, -torch.inf).argmax()].unsqueeze(0)
        pending, taken = torch.cat([pending, best]), torch.cat([taken, best])
        chosen.append(best[0, len(x) :])
    return torch.stack(chosen)


def untried(pairs: Tensor, taken: Tensor) -> Tensor:
    """Which pairs ``n x d`` are not taken, ``n``."""
    return ~(pairs.unsqueeze(1) == taken).all(-1).any(-1)


def some_untried(pairs: Tensor, taken: Tensor) -> Tensor:
    """The same of the pairs of one decision; refuses one that was tried in all."""
    free = untried(pairs, taken)
    if not free.any():
        raise InputDataError(
            f"A decision was tried in all {len(pairs)} contexts that it may be tried "
            "in, and no pair is tried twice. Ask for fewer, or list more contexts."
        )
    return free


def variance_reductions(
    model: Model, Z: Tensor, weights: Tensor, known: Tensor
) -> Tensor:
    r"""How much the outcome at each row reduces the variance of the weighted sum.

    The formula of ``chosen_contexts``, averaged over the models of an ensemble.

    Shapes: ``Z``: ``n x d``, ``known``: ``k x d``, whose outcomes will be known,
    returns ``n``.
    """
    n = len(Z)
    S, noise = joint_covariance(model, torch.cat([Z, known]))  # (S x) r x r, (S x) r
    floor = _FLOOR * S.diagonal(dim1=-2, dim2=-1).amax()
    for j in range(n, S.shape[-1]):  # one by one: equal rows need no jitter
        column = S[..., j]
        size = (column[..., j] + noise[..., j]).clamp_min(floor)
        S = S - (column.unsqueeze(-1) * column.unsqueeze(-2)) / size[..., None, None]
    S, noise = S[..., :n, :n], noise[..., :n]
    own = (S.diagonal(dim1=-2, dim2=-1) + noise).clamp_min(floor)
    return ((S @ weights.to(S)).square() / own).mean(0)


def _worst_weights(
    problem: WorstCaseProblem, model: Model, x: Tensor, seed: int
) -> tuple[Tensor, Tensor]:
    """The contexts in which a decision may be tried, ``n x d_c``, and the weights."""
    least, moments = torch.finfo(x.dtype).tiny, moments_at(model, x)

    def pessimistic(contexts: Tensor) -> Tensor:
        mean, variance = moments(contexts)
        return mean - _PESSIMISM * variance.clamp_min(least).sqrt()

    contexts, robust = worst_case(problem, pessimistic, seed=seed)
    weights = robust.weights.clamp_min(0.0)
    counts = (weights > _CARRIES) | (contexts.weights > 0.0)
    points, weights = contexts.points[counts], weights[counts]
    return thinned(points, weights, _MOST)
