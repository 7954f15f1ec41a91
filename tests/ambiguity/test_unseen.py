"""Prices of contexts off the list: what has no negative reduced cost cannot help."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)

N = 8
RADII = (0.05, 0.2, 10.0)


def distances(first: Tensor, second: Tensor) -> Tensor:
    return (first.unsqueeze(-2) - second.unsqueeze(-3)).square().sum(-1).sqrt()


def kernel(first: Tensor, second: Tensor) -> Tensor:
    return torch.exp(-2.0 * distances(first, second).square())


KINDS = {
    "wasserstein": (lambda c, r: Wasserstein(r, distances(c, c)), distances),
    "mmd": (lambda c, r: MaximumMeanDiscrepancy(r, kernel(c, c)), kernel),
    "tv": (lambda c, r: TotalVariation(r), distances),
    "neyman": (lambda c, r: ChiSquared(r), distances),
    "minimax": (lambda c, r: MinimaxApproximation(TotalVariation(r)).original(), None),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("kind", KINDS)
def test_a_context_helps_if_and_only_if_its_reduced_cost_is_negative(
    kind: str, radius: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    contexts = torch.rand(N, 2, generator=generator, dtype=torch.double)
    f = torch.randn(N, generator=generator, dtype=torch.double)
    p = torch.rand(N, generator=generator, dtype=torch.double)
    p[0] = 0.0  # a context of the list may have no mass
    p = p / p.sum()
    make, between = KINDS[kind]
    ball = make(contexts, radius)
    robust = ball.worst_case(f, p)
    prices = ball.prices(robust, p)
    for _ in range(6):
        new = torch.rand(1, 2, generator=generator, dtype=torch.double)
        cost, listed = torch.zeros(1), torch.zeros(1, N)
        if prices.anchors.numel():
            anchors = contexts[prices.anchors]  # K x a x d_c
            A = prices.coefficients.unsqueeze(-1)
            cost = (A * between(anchors, new)).sum(-2).squeeze(-1)  # K
            listed = (A * between(anchors, contexts)).sum(-2)  # K x N
        # The score at which the new context is on the verge.
        verge = ((f + listed).amin(-1) - cost).max().item()
        larger = make(torch.cat([contexts, new]), radius)
        for score, helps in ((verge - 0.05, True), (verge + 1e-3, False)):
            scores = torch.cat([f, torch.tensor([score]).double()])
            value = larger.worst_case(scores, pad(p, (0, 1))).value
            if helps and kind == "neyman":  # a lower score is needed, not enough
                assert value <= robust.value + 1e-12
            elif helps:
                assert value < robust.value - 1e-7
            else:
                assert value == pytest.approx(robust.value.item(), abs=1e-7)


def test_which_sets_reach_contexts_that_are_not_listed() -> None:
    reaching = {TotalVariation, ChiSquared}
    everything: set[type[AmbiguitySet]] = {
        ConditionalValueAtRisk, FullSimplex, KullbackLeibler, MaximumMeanDiscrepancy,
        MinimaxApproximation, ModifiedChiSquared, NoAmbiguity, Wasserstein,
    } | reaching  # fmt: skip
    assert {kind for kind in everything if kind.reaches_unseen} == reaching


def test_the_original_of_an_approximation() -> None:
    ball = TotalVariation(0.2, floor=-1.0)
    rough = MinimaxApproximation(ball).with_radius(0.4)
    original = rough.original()
    assert isinstance(original, TotalVariation) and original.floor == -1.0
    assert original.radius == 0.4 and ball.radius == 0.2
    assert ball.original() is ball
