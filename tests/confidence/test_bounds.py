"""Regret bounds against the papers' formulas written out, and against a real run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.confidence import bounds, confidence_width

T, GAIN, LAM, EPS, WIDTH = 50, 3.7, 0.3, 0.2, 2.9


def test_theorems_4_and_8_of_wdrbo() -> None:
    found = bounds.round_regret_bound(0.7, 0.1, 3.0)
    assert found.item() == pytest.approx(2 * 0.7 + 2 * 0.1 * 3.0)
    found = bounds.round_regret_bound(0.7, 0.1, torch.tensor([3.0, 4.0]), 0.05)
    assert found.tolist() == pytest.approx([2.1, 2.3])


def test_theorems_5_and_9_of_wdrbo() -> None:
    radii = 0.3 / torch.arange(1, T + 1, dtype=torch.double).sqrt()
    steep = torch.linspace(1.0, 2.0, T, dtype=torch.double)
    gains = torch.linspace(0.1, GAIN, T, dtype=torch.double)
    plain = bounds.regret_bound(WIDTH, gains, radii, steep, delta=0.05)
    slack = bounds.regret_bound(WIDTH, gains, radii, steep, delta=0.05, slack=0.01)
    for n in (1, 17, T):
        # The paper's gamma is a log-determinant without 1/2.
        logdet = 2 * gains[n - 1].item()
        root = math.sqrt(n * (logdet + 4 * math.log(6 / 0.05)))
        shift = sum(2 * radii[i].item() * steep[i].item() for i in range(n))
        assert plain[n - 1].item() == pytest.approx(4 * WIDTH * root + shift)
        assert slack[n - 1].item() == pytest.approx(4 * WIDTH * root + shift + 0.02 * n)


def test_theorem_1_of_misspecified_with_constants() -> None:
    inner = (2 * LAM + 1) * GAIN
    want = 2 * WIDTH * math.sqrt(inner * T)
    want += 2 * EPS * LAM**-0.5 * T * math.sqrt(inner)
    found = bounds.misspecified_regret_bound(T, GAIN, WIDTH, EPS, LAM)
    assert found.item() == pytest.approx(want)


def test_candidate_bounds_have_the_properties_that_balancing_needs() -> None:
    n = torch.arange(0, 20_001, dtype=torch.double)
    found = bounds.candidate_regret_bound(n, 1.2, 1.5, 0.01, LAM)
    c1 = 2 * 1.5 * math.sqrt((2 * LAM + 1) * 1.2)
    c2 = 2 * LAM**-0.5 * math.sqrt((2 * LAM + 1) * 1.2)
    torch.testing.assert_close(found, torch.minimum(c1 * n**0.5 + c2 * 0.01 * n, n))
    steps = found.diff()
    assert found[0] == 0 and (steps >= 0).all() and (steps <= 1 + 1e-9).all()
    assert found[-1] < n[-1]  # and it promises something in the end


def test_phased_sampling_69_and_75() -> None:
    lost = 2 * EPS * math.sqrt((2 + 1 / LAM) * GAIN)
    assert bounds.elimination_loss_bound(GAIN, EPS, LAM).item() == pytest.approx(lost)
    want = lost + 4 * WIDTH * math.sqrt((1 + 2 * LAM) * GAIN / 16)
    found = bounds.survivor_gap_bound(16, GAIN, WIDTH, EPS, LAM)
    assert found.item() == pytest.approx(want)
    root = math.sqrt((2 + 1 / LAM) * GAIN)
    want = 1.7 + 6 * EPS * T * root + 6 * EPS * T * math.log(T) * root
    want += 32 * WIDTH * math.sqrt((1 + 2 * LAM) * T * GAIN)
    found = bounds.phased_regret_bound(T, GAIN, WIDTH, 1.7, EPS, LAM)
    assert found.item() == pytest.approx(want)


def test_deviations_at_the_data_sum_to_less_and_so_does_the_regret() -> None:
    """GP-UCB on a list by plain numpy: (31) and (39) hold, and are not vacuous."""
    rng, lam, sigma = np.random.default_rng(0), 0.05, 0.1
    points = np.linspace(0, 1, 60)
    K = np.exp(-0.5 * (points[:, None] - points) ** 2 / 0.2**2)
    weights = rng.standard_normal(60)
    f = K @ weights / math.sqrt(weights @ K @ weights)  # of norm 1
    chosen: list[int] = []
    outcomes: list[float] = []
    total = logdet = regret = 0.0
    for _ in range(80):
        mean, variance = np.zeros(60), np.ones(60)
        if chosen:
            A = np.linalg.inv(K[np.ix_(chosen, chosen)] + lam * np.eye(len(chosen)))
            mean = K[:, chosen] @ A @ np.array(outcomes)
            variance = 1 - np.einsum("ni,ij,nj->n", K[:, chosen], A, K[:, chosen])
        i = int((mean + 2 * variance.clip(0) ** 0.5).argmax())
        total += math.sqrt(variance[i])
        logdet += math.log1p(variance[i] / lam)
        regret += f.max() - f[i]
        chosen.append(i)
        outcomes.append(f[i] + sigma * rng.standard_normal())
    gain = 0.5 * logdet
    largest = bounds.deviation_sum_bound(gain, 80, lam).item()
    assert 0.1 * largest < total <= largest
    width = confidence_width(
        gain, norm_bound=1.0, delta=0.1, noise_std=sigma, noise_ratio=lam
    )
    promised = bounds.misspecified_regret_bound(80, gain, width, 0.0, lam).item()
    assert 0 < regret <= promised


def test_bad_numbers() -> None:
    with pytest.raises(InputDataError, match="`delta`"):
        bounds.regret_bound(1.0, 1.0, torch.ones(2), 1.0, delta=0.0)
    with pytest.raises(InputDataError, match="`radius` must not be negative"):
        bounds.round_regret_bound(1.0, -1.0, 1.0)
