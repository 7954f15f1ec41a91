"""The bootstrap radius against closed forms, other programs, and its coverage."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy.stats import binom, chi2, entropy, wasserstein_distance

from botorch_drbo.ambiguity import (
    ConditionalValueAtRisk,
    CvxpyAmbiguity,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.calibrate import from_data
from botorch_drbo.contexts import ContextSet
from tests.models import UNIT, uniform


def metric(points):
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def coins(heads: int, tails: int) -> torch.Tensor:
    """Observed contexts of two kinds, ``t x 1``."""
    return torch.tensor([[1.0]] * heads + [[0.0]] * tails, dtype=torch.double)


@pytest.mark.parametrize("heads", [30, 5])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_total_variation_of_a_coin_is_a_quantile_of_the_binomial(confidence, heads):
    t = 100
    counts = torch.arange(t + 1)
    off = 2 * (counts - heads).abs() / t  # of the two-point distribution, in L1
    mass = torch.tensor(binom.pmf(counts, t, heads / t))
    levels = [d for d in off.unique() if mass[off <= d].sum() >= confidence]
    radius = from_data(
        coins(heads, t - heads),
        TotalVariation(0.0),
        confidence=confidence,
        num_resamples=20_000,
    )
    assert abs(radius - levels[0].item()) <= 2 / t + 1e-9  # the next level at most


@pytest.mark.parametrize(
    ("ambiguity_set", "per_unit"), [(KullbackLeibler, 0.5), (ModifiedChiSquared, 1.0)]
)
def test_divergences_tend_to_the_chi_squared_law(ambiguity_set, per_unit):
    # Wilks and Pearson: 2 t KL and t chi-squared have k - 1 degrees of freedom.
    t, weights = 4_000, torch.tensor([0.2, 0.3, 0.1, 0.4], dtype=torch.double)
    histogram = ContextSet(uniform(4, 1), weights)
    radius = from_data(
        histogram, ambiguity_set(0.0), num_observed=t, num_resamples=5_000
    )
    assert radius == pytest.approx(per_unit * chi2.ppf(0.95, 3) / t, rel=0.06)


def test_wasserstein_on_a_line_is_that_of_scipy():
    observed = uniform(12, 1, seed=3)
    radius = from_data(observed, metric_ball, num_resamples=50, seed=5)
    points = observed.sort(dim=0).values
    drawn = torch.multinomial(
        torch.full((50, 12), 1 / 12).double(),
        12,
        replacement=True,
        generator=torch.Generator().manual_seed(5),
    )
    line = points.flatten().numpy()
    distances = sorted(wasserstein_distance(line[row.numpy()], line) for row in drawn)
    assert radius == pytest.approx(distances[math.ceil(0.95 * 49)], abs=1e-9)


WEIGHTS = torch.tensor([0.5, 0.05, 0.3, 0.15], dtype=torch.double)


def resampled(num: int, t: int, seed: int) -> torch.Tensor:
    """What the world might have shown in place of ``WEIGHTS``, ``num x 4``."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(WEIGHTS.expand(num, -1), t, True, generator=generator)
    return torch.stack([(drawn == j).double().mean(-1) for j in range(4)], dim=-1)


def test_the_resampled_distribution_stands_where_the_reference_stands():
    """``KL(q || p)`` knows which is which: ``q`` is what we saw, ``p`` a resample."""
    points = torch.arange(4.0).double().unsqueeze(-1)
    seen = ContextSet(points, WEIGHTS)
    radius = from_data(
        seen,
        KullbackLeibler(0.0),
        num_observed=200,
        confidence=0.8,
        num_resamples=41,
        seed=3,
    )
    distances = sorted(
        entropy(WEIGHTS.numpy(), row.numpy()) for row in resampled(41, 200, 3)
    )
    assert radius == pytest.approx(distances[32], rel=1e-9)
    turned = sorted(
        entropy(row.numpy(), WEIGHTS.numpy()) for row in resampled(41, 200, 3)
    )
    assert abs(turned[32] / distances[32] - 1) > 0.01


def test_weights_stay_with_their_contexts():
    """In any order of the contexts, and with one of them on the list twice."""
    points = torch.tensor([[4.0], [-1.0], [0.5], [2.0]]).double()
    ordered = points.flatten().argsort()  # as `unique` has them
    generator = torch.Generator().manual_seed(7)
    drawn = torch.multinomial(
        WEIGHTS[ordered].expand(30, -1), 40, True, generator=generator
    )
    line = points.flatten()[ordered].numpy()
    distances = sorted(
        wasserstein_distance(line[row.numpy()], points[:, 0], None, WEIGHTS)
        for row in drawn
    )
    halves = torch.cat([WEIGHTS, WEIGHTS[:1] / 2])
    halves[0] /= 2
    twice = ContextSet(torch.cat([points, points[:1]]), halves)
    for seen in (ContextSet(points, WEIGHTS), twice):
        radius = from_data(seen, metric_ball, num_observed=40, num_resamples=30, seed=7)
        assert radius == pytest.approx(distances[math.ceil(0.95 * 29)], abs=1e-9)


def metric_ball(points):
    return Wasserstein(0.0, metric(points))


def test_a_set_on_the_observed_rows_and_a_function_of_contexts_agree():
    observed = uniform(15, 2, seed=1).sort(dim=0).values  # rows as `unique` has them
    of_rows = Wasserstein(0.0, metric(observed))
    by_matrix = from_data(observed, of_rows, num_resamples=20)
    by_function = from_data(observed, metric_ball, num_resamples=20)
    assert by_function == pytest.approx(by_matrix, rel=1e-9)


def test_equal_contexts_count_as_one():
    # Were they different atoms, a resample would never meet all of them again.
    assert from_data(coins(500, 500), TotalVariation(0.0)) < 0.15


def test_the_ball_holds_the_truth_about_as_often_as_stated():
    truth = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
    ball, points, held = TotalVariation(0.0), torch.arange(3.0).double(), 0
    generator = torch.Generator().manual_seed(0)
    for trial in range(200):
        seen = torch.multinomial(truth, 80, replacement=True, generator=generator)
        observed = points[seen].unsqueeze(-1)
        estimate = torch.bincount(seen, minlength=3) / 80
        radius = from_data(observed, ball, confidence=0.9, seed=trial)
        held += ball.distance(estimate, truth).item() <= radius
    # Nine in ten, by 2.4 standard deviations of 200 trials.
    assert 0.85 <= held / 200 <= 0.95


@pytest.mark.parametrize(
    "ambiguity_set",
    [
        ConditionalValueAtRisk(0.5),
        CvxpyAmbiguity(lambda q, p, r: [q - p <= r, p - q <= r], 0.1),
        MaximumMeanDiscrepancy(0.1, torch.eye(2)),
    ],
)
def test_any_set_with_a_distance_will_do_and_more_data_need_less(ambiguity_set):
    histogram = ContextSet(UNIT, torch.tensor([0.5, 0.5]))
    few, many = (
        from_data(histogram, ambiguity_set, num_observed=t, num_resamples=60)
        for t in (40, 4_000)
    )
    assert few > 4 * many > 0.0  # like one over the root: ten times


def test_confidence_and_seed_decide():
    observed, ball = coins(30, 50), TotalVariation(0.0)
    low, high = (from_data(observed, ball, confidence=level) for level in (0.5, 0.99))
    assert low < high
    assert from_data(observed, ball, confidence=0.5) == low
    state = torch.get_rng_state()
    from_data(observed, ball, seed=1)
    assert torch.equal(state, torch.get_rng_state())
    from_data(observed, ball, seed=None)
    assert not torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"confidence": 1.0}, "`confidence` must lie in"),
        ({"num_resamples": 0}, "`num_resamples`"),
        ({"num_observed": 5}, "`num_observed` goes with a distribution"),
        ({"ambiguity_set": NoAmbiguity()}, "has no radius"),
        ({"ambiguity_set": FullSimplex()}, "has no radius"),
        ({"ambiguity_set": "total variation"}, "must be an AmbiguitySet"),
        ({"ambiguity_set": lambda points: 3}, "must be an AmbiguitySet"),
        ({"observed": UNIT[:1]}, "number of rows"),
        ({"observed": ContextSet(UNIT)}, "pass `num_observed`"),
        ({"observed": uniform(9, 1)}, "100% of the 9 observed contexts"),
        ({"observed": coins(99, 1), "ambiguity_set": KullbackLeibler(0)}, "No Kull"),
    ],
)
def test_refuses_in_the_words_of_the_user(arguments, says):
    usual = {"observed": coins(9, 9), "ambiguity_set": TotalVariation(0.0)}
    with pytest.raises(InputDataError, match=says):
        from_data(**{**usual, **arguments})


def test_refuses_a_matrix_of_another_list():
    with pytest.raises(BotorchTensorDimensionError, match="needs 3 weights"):
        from_data(UNIT, Wasserstein(0.0, metric(uniform(3, 1))))


def test_it_is_the_probability_of_contexts_seen_once_that_counts():
    """Six of seven contexts were seen once, with 6 / 26 of the probability."""
    often = torch.zeros(20, 1).double()
    once = torch.arange(1, 7).double().unsqueeze(-1)
    assert 0.0 < from_data(torch.cat([often, once]), TotalVariation(0.0)) < 1.0
    twice = torch.arange(9.0).double().repeat(2).unsqueeze(-1)
    assert 0.0 < from_data(twice, TotalVariation(0.0)) < 2.0
    more = torch.arange(1, 22).double().unsqueeze(-1)  # 21 / 41
    with pytest.raises(InputDataError, match="51% of the 41 observed contexts"):
        from_data(torch.cat([often, more]), TotalVariation(0.0))
