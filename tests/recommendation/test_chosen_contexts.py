"""Where to evaluate decisions: the variance of their value, by brute force."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Log
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.ambiguity import AmbiguitySet, FullSimplex, KullbackLeibler
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.mixture import joined, joint_covariance
from botorch_drbo.problem import SearchSpace
from botorch_drbo.recommendation.chosen_contexts import (
    chosen_contexts,
    conditioned,
    reductions,
)
from tests.models import UNIT, known_model, small_model, uniform

X, C = uniform(6, 2, seed=4), uniform(5, 1, seed=6)
WEIGHTS = torch.tensor([0.3, 0.1, 0.2, 0.0, 0.4]).double()
NONE = torch.empty(0, 3).double()


def variance(model: SingleTaskGP, Z: Tensor, told: Tensor) -> float:
    """That of the weighted sum, by BoTorch, once outcomes of further rows are told."""
    model.posterior(Z)
    if len(told):
        outcomes = torch.randn(len(told), 1).double()  # whatever they are
        model = cast(SingleTaskGP, model.condition_on_observations(told, outcomes))
    return (WEIGHTS @ model.posterior(Z).covariance_matrix @ WEIGHTS).item()


@pytest.mark.parametrize("num_known", [0, 1, 3])
def test_the_reduction_is_that_of_conditioning(num_known: int) -> None:
    model, Z = small_model(), joined(X[0], C)
    known = torch.cat([X, uniform(6, 1, seed=8)], dim=-1)[:num_known]
    before = variance(model, Z, known)
    by_hand = [before - variance(model, Z, torch.cat([known, z[None]])) for z in Z]
    found = reductions(*conditioned(model, Z, known), WEIGHTS)
    torch.testing.assert_close(found, torch.tensor(by_hand).double())


def test_of_an_ensemble_it_is_the_average() -> None:
    one, other = small_model(), small_model()
    other.likelihood.noise = 0.3
    Z, known = joined(X[0], C), torch.cat([X, uniform(6, 1, seed=8)], dim=-1)[:2]
    each = [reductions(*conditioned(m, Z, known), WEIGHTS) for m in (one, other)]
    both = reductions(*conditioned(ModelEnsemble([one, other]), Z, known), WEIGHTS)
    torch.testing.assert_close(both, 0.5 * (each[0] + each[1]))


def test_what_is_not_gaussian_is_sampled() -> None:
    Z = uniform(10, 3, seed=1)
    model = SingleTaskGP(Z, Z.sum(-1, keepdim=True) + 0.1, outcome_transform=Log())
    with torch.no_grad():
        S, noise = joint_covariance(model.eval(), Z[:4])
    assert S.shape == (1, 4, 4) and noise.shape == (1, 4) and (noise >= 0).all()


def problem(ball: AmbiguitySet, num: int = 5) -> WorstCaseProblem:
    space = SearchSpace(UNIT.expand(2, 2).clone(), UNIT)
    contexts = ContextSet(uniform(num, 1, seed=6))
    return WorstCaseProblem.of(contexts, ball, space, contexts_complete=True)


def test_a_plate_is_spread_and_has_no_well_twice() -> None:
    mean = problem(KullbackLeibler(0.0), 5)
    pending = torch.cat([X[:1], C[2:3]], dim=-1)
    plate = X[:1].expand(4, -1)  # one decision in all contexts that are left
    found = chosen_contexts(mean, small_model(), plate, pending, pending, seed=0)
    assert {*found.flatten().tolist()} == {*C.flatten().tolist()} - {C[2].item()}
    with pytest.raises(InputDataError, match="in all 5 contexts"):
        plate = X[:1].expand(5, -1)
        chosen_contexts(mean, small_model(), plate, pending, pending, seed=0)
    # Of six decisions no context comes twice before each has come once.
    found = chosen_contexts(mean, small_model(), X, NONE, NONE, seed=0)
    assert len(found[:5].unique()) == 5


def test_what_is_feared_says_where() -> None:
    """If one context alone carries the worst case, those far from it teach nothing."""
    Z = uniform(10, 3, seed=1)
    model = known_model(Z, -Z[:, 2:], lengthscale=0.05, noise=1e-3)
    found = chosen_contexts(problem(FullSimplex()), model, X[:1], NONE, NONE, seed=0)
    posterior = model.posterior(joined(X[0], C).unsqueeze(-2))
    low = posterior.mean - 1.5 * posterior.variance.sqrt()
    assert found.item() == C[low.argmin()].item()


def test_the_rows_of_a_plate_are_those_of_plates_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mean, model = problem(KullbackLeibler(0.0)), small_model()
    plate = X[:4].repeat_interleave(2, dim=0)
    found = chosen_contexts(mean, model, plate, NONE, NONE, seed=0)
    pairs = NONE
    for x in plate:
        one = chosen_contexts(mean, model, x.unsqueeze(0), pairs, pairs, seed=0)
        pairs = torch.cat([pairs, joined(x, one)])
    assert found.equal(pairs[:, 2:])
    monkeypatch.setattr(
        "botorch_drbo.recommendation.chosen_contexts._MOST_TOGETHER", 12
    )
    assert chosen_contexts(mean, model, plate, NONE, NONE, seed=0).equal(found)


def test_of_very_many_contexts_the_heaviest_can_be_chosen() -> None:
    many = problem(FullSimplex(), 300)  # all but one carry nothing
    plate = X[:1].expand(5, -1)
    found = chosen_contexts(many, small_model(), plate, NONE, NONE, seed=0)
    assert len(found.unique()) == 5
    one = chosen_contexts(many, small_model(), X[:1], NONE, NONE, seed=0)
    assert found[0].equal(one[0])


def test_of_equally_heavy_contexts_the_first_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("botorch_drbo.recommendation.chosen_contexts._MOST", 12)
    many = problem(KullbackLeibler(0.0), 300)
    plate = X[:1].expand(12, -1)  # as many wells as contexts that are looked at
    found = chosen_contexts(many, small_model(), plate, NONE, NONE, seed=0)
    assert {*found.flatten().tolist()} == {*many.contexts.points[:12, 0].tolist()}
