"""EDRBO's acquisition: against its formula, model by model, by BoTorch's posteriors."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DisagreementPenalizedUCB,
    DistributionallyRobustUCB,
)
from botorch_drbo.ambiguity import FullSimplex
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.testing.fixtures import ensemble, known_model, member_of
from tests.contracts.view_case import joined
from tests.models import uniform

SO = UncertaintyObjective.so()
WEIGHTS = uniform(7, seed=6)
CONTEXTS = ContextSet(uniform(7, 1, seed=5), WEIGHTS)
X = uniform(6, 2, seed=9)
ROWS = X.unsqueeze(1)
KAPPA = 1.41


def data() -> tuple[Tensor, Tensor]:
    Z = uniform(9, 3, seed=7)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos()
    return Z, (Y - Y.mean()) / Y.std()


def four() -> EnsembleMapSaasSingleTaskGP:
    return ensemble(*data(), members=4)


def acqf(model=None, **options) -> DisagreementPenalizedUCB:
    return DisagreementPenalizedUCB(
        four() if model is None else model, 2.25, CONTEXTS, SO, **options
    )


def averages(model: EnsembleMapSaasSingleTaskGP) -> tuple[Tensor, Tensor]:
    """Of mean and deviation over the contexts, of each model alone: ``S x b``."""
    means, deviations = [], []
    weights = WEIGHTS / WEIGHTS.sum()
    for s in range(4):
        with torch.no_grad():
            posterior = member_of(model, s).posterior(joined(X, CONTEXTS.points, [2]))
        means.append(posterior.mean.squeeze(-1) @ weights)
        deviations.append(posterior.variance.squeeze(-1).sqrt() @ weights)
    return torch.stack(means), torch.stack(deviations)


def spread(mean: Tensor, deviation: Tensor) -> Tensor:
    apart = (mean - mean.mean(0)) ** 2 + (deviation - deviation.mean(0)) ** 2
    return apart.sqrt().max(0).values


def test_the_formula_model_by_model() -> None:
    """A bound of 1.5 deviations, less 1.41 times the disagreement of the decision."""
    mean, deviation = averages(four())
    epsilon = spread(mean, deviation)
    bound = mean.mean(0) + 1.5 * deviation.mean(0)
    found = acqf()(ROWS)
    torch.testing.assert_close(found, bound - KAPPA * epsilon, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(acqf().disagreement(X), epsilon, rtol=1e-6, atol=1e-6)
    assert (epsilon > 0.05).all() and epsilon.max() > 1.5 * epsilon.min()


def test_over_the_batch_as_in_the_public_code() -> None:
    mean, deviation = averages(four())
    epsilon = spread(mean, deviation)
    bound = mean.mean(0) + 1.5 * deviation.mean(0)
    slip = acqf(penalty_over="batch")
    expected = bound - KAPPA * epsilon.max()
    torch.testing.assert_close(slip(ROWS), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(slip.ranking(ROWS), expected, rtol=1e-6, atol=1e-6)
    # What else is in the call matters, and no ranking changes.
    assert (slip(ROWS[:1]) - slip(ROWS)[:1]).abs() > 0.01 or epsilon.argmax() == 0
    plain = DistributionallyRobustUCB(four(), 2.25, CONTEXTS, SO)(ROWS)
    assert torch.equal(plain.argsort(), slip(ROWS).argsort())
    assert not torch.equal(plain.argsort(), acqf()(ROWS).argsort())


@pytest.mark.parametrize("penalty_over", ["decision", "batch"])
def test_small_blocks_change_nothing(penalty_over) -> None:
    options = {"penalty_over": penalty_over}
    found = acqf(memory_budget=1, **options)(ROWS)
    torch.testing.assert_close(found, acqf(**options)(ROWS), rtol=1e-8, atol=1e-8)
    rows = ROWS.reshape(2, 3, 1, 2)
    shaped = acqf(**options)(rows)
    torch.testing.assert_close(shaped.flatten(), found, rtol=1e-8, atol=1e-8)


def test_without_penalty_it_is_the_plain_bound() -> None:
    for objective in (SO, UncertaintyObjective(FullSimplex())):
        plain = DistributionallyRobustUCB(four(), 2.25, CONTEXTS, objective)
        free = DisagreementPenalizedUCB(four(), 2.25, CONTEXTS, objective, penalty=0.0)
        torch.testing.assert_close(free(ROWS), plain(ROWS))
        dear = DisagreementPenalizedUCB(four(), 2.25, CONTEXTS, objective)
        expected = plain(ROWS) - KAPPA * dear.disagreement(X)
        torch.testing.assert_close(dear(ROWS), expected)


def test_models_that_agree_are_not_punished() -> None:
    """And have a gradient: the root of zero has none."""
    same = EnsembleMapSaasSingleTaskGP(*data(), num_taus=3).eval()
    for parameter in same.parameters():
        parameter.requires_grad_(False)
    rows = ROWS.clone().requires_grad_()
    found = acqf(same)(rows)
    plain = DistributionallyRobustUCB(same, 2.25, CONTEXTS, SO)(ROWS)
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-4)
    (slope,) = torch.autograd.grad(found.sum(), rows)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("penalty_over", ["decision", "batch"])
def test_gradients(penalty_over) -> None:
    model = four()
    model.requires_grad_(False)
    rows = ROWS[:3].clone().requires_grad_()
    function = acqf(model, penalty_over=penalty_over)
    assert torch.autograd.gradcheck(function, rows, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, -1.0, 300.0])
def test_another_unit_and_another_level(scale: float) -> None:
    transform = ScalarizedPosteriorTransform(
        torch.tensor([scale], dtype=torch.double), offset=-40.0
    )
    found = acqf(posterior_transform=transform)(ROWS)
    mean, deviation = averages(four())
    mean, deviation = scale * mean - 40.0, abs(scale) * deviation
    expected = mean.mean(0) + 1.5 * deviation.mean(0)
    expected = expected - KAPPA * spread(mean, deviation)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6 * abs(scale))


def test_pending_decisions_lower_it() -> None:
    there = acqf()
    plain = there(ROWS[:1])
    there.set_X_pending(X[:1])
    assert there(ROWS[:1]) < plain
    there.set_X_pending(None)
    torch.testing.assert_close(there(ROWS[:1]), plain)


def test_optimize_acqf() -> None:
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    x, value = optimize_acqf(
        acqf(), box, q=2, num_restarts=2, raw_samples=16, sequential=True
    )
    assert x.shape == (2, 2) and torch.pdist(x) > 1e-3
    with torch.no_grad():
        assert value[0] >= acqf()(uniform(32, 1, 2, seed=3)).max() - 1e-4


def test_bad_arguments() -> None:
    with pytest.raises(UnsupportedError, match=r"ensemble.*got one SingleTaskGP"):
        acqf(known_model(*data()))
    with pytest.raises(InputDataError, match="`penalty` must"):
        acqf(penalty=-1.0)
    with pytest.raises(InputDataError, match="`penalty_over` must be one of"):
        acqf(penalty_over="rows")


def many(weights: Tensor, objective: UncertaintyObjective = SO):
    contexts = ContextSet(uniform(90, 1, seed=3), weights)
    return DisagreementPenalizedUCB(four(), 2.25, contexts, objective)


def test_an_expectation_is_ranked_by_every_third_context() -> None:
    rows = uniform(200, 1, 2, seed=4)
    by_all = many(torch.ones(90).double())
    with torch.no_grad():
        values, ranking = by_all(rows), by_all.ranking(rows)
    assert not torch.equal(values, ranking)
    few = ContextSet(by_all.context_set.points[::3])
    with torch.no_grad():
        expected = DisagreementPenalizedUCB(four(), 2.25, few, SO)(rows)
    torch.testing.assert_close(ranking, expected)
    assert values.argmax() in ranking.topk(10).indices


@pytest.mark.parametrize("which", ["weights", "objective"])
def test_other_rankings_are_by_all_contexts(which: str) -> None:
    """Nearly all weight may be on two of the contexts that a third leaves out."""
    weights = torch.ones(90).double()
    if which == "weights":
        weights[[1, 2]] = 1e3
    objective = SO if which == "weights" else UncertaintyObjective(FullSimplex())
    by_all, rows = many(weights, objective), uniform(20, 1, 2, seed=4)
    with torch.no_grad():
        torch.testing.assert_close(by_all.ranking(rows), by_all(rows))
