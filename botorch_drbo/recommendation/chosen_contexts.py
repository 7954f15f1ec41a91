"""Where a laboratory should evaluate decisions: the contexts that teach most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries.base import WorstCaseProblem
from botorch_drbo.posterior.mixture import joined, joint_covariance
from botorch_drbo.recommendation.worst_case import moments_at, worst_case

_PESSIMISM = 1.5  # deviations below the mean, by which worst weights are found
_CARRIES = 1e-6  # less mass in a worst case is a rounding error
_MOST = 256  # contexts whose joint covariance is looked at
_MOST_TOGETHER = 1024  # pairs, unless one decision has more
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
    for block in _blocks(problem, model, X, seed):
        Z = torch.cat([joined(each.x, each.contexts) for each in block])
        S, noise = conditioned(model, Z, pending)
        end = 0
        for each in block:
            rows = slice(end, end := end + len(each.contexts))
            for _ in range(each.times):
                free = some_untried(Z[rows], taken)
                gains = reductions(S[:, rows, rows], noise[:, rows], each.weights)
                gains = gains.masked_fill(~free, -torch.inf)
                first = gains >= _NEARLY * gains.max()
                seen = pending[:, len(each.x) :]
                times = (each.contexts.unsqueeze(1) == seen).all(-1).sum(-1)
                first &= times == times[first].min()
                best = rows.start + int(gains.masked_fill(~first, -torch.inf).argmax())
                S = _measured(S, noise, best)
                pair = Z[best].unsqueeze(0)
                pending, taken = torch.cat([pending, pair]), torch.cat([taken, pair])
                chosen.append(pair[0, len(each.x) :])
    return torch.stack(chosen)


class _Asked(NamedTuple):
    """A decision, how often it is asked, and the contexts in which it may be tried."""

    x: Tensor
    times: int
    contexts: Tensor
    weights: Tensor


def _blocks(
    problem: WorstCaseProblem, model: Model, X: Tensor, seed: int
) -> Iterator[list[_Asked]]:
    """Decisions in blocks that one covariance serves, equal neighbours as one."""
    block: list[_Asked] = []
    decisions, times = X.unique_consecutive(dim=0, return_counts=True)
    for x, count in zip(decisions, times.tolist(), strict=True):
        asked = _Asked(x, count, *_worst_weights(problem, model, x, seed))
        num = sum(len(each.contexts) for each in block)
        if block and num + len(asked.contexts) > _MOST_TOGETHER:
            yield block
            block = []
        block.append(asked)
    yield block


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


def reductions(S: Tensor, noise: Tensor, weights: Tensor) -> Tensor:
    """How much an outcome at each row reduces the variance of the weighted sum.

    The formula of ``chosen_contexts``, averaged over the ``M`` models of an ensemble.

    Shapes: ``S``: ``M x n x n``, ``noise``: ``M x n``, returns ``n``.
    """
    own = S.diagonal(dim1=-2, dim2=-1) + noise
    return ((S @ weights.to(S)).square() / own).mean(0)


def conditioned(model: Model, Z: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Covariance and noise of rows ``n x d``, with outcomes at ``known`` to come.

    Shapes: returns ``M x n x n`` and ``M x n``.
    """
    S, noise = joint_covariance(model, torch.cat([Z, known]))
    noise = noise.clamp_min(_FLOOR * S.diagonal(dim1=-2, dim2=-1).amax())
    for j in range(len(Z), S.shape[-1]):  # one by one: equal rows need no jitter
        S = _measured(S, noise, j)
    return S[:, : len(Z), : len(Z)], noise[:, : len(Z)]


def _measured(S: Tensor, noise: Tensor, j: int) -> Tensor:
    """The covariance once the outcome of a row is known, whatever it is."""
    column = S[:, :, j]
    size = column[:, j] + noise[:, j]
    return S - column.unsqueeze(-1) * (column / size.unsqueeze(-1)).unsqueeze(-2)


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
    heaviest = weights.argsort(descending=True, stable=True)[:_MOST].sort().values
    return points[heaviest], weights[heaviest]
