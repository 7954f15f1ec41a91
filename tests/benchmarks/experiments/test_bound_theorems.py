"""Regret bounds against the papers' formulas written out, and against a real run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from benchmarks.experiments.bounds import theorems
from botorch_drbo.confidence import confidence_width

T, GAIN, LAM, EPS, WIDTH = 50, 3.7, 0.3, 0.2, 2.9


def test_theorem_4_of_wdrbo() -> None:
    width, radius = torch.tensor(0.7), torch.tensor(0.1)
    found = theorems.round_regret_bound(width, radius, torch.tensor([3.0, 4.0]))
    assert found.tolist() == pytest.approx([2 * 0.7 + 2 * 0.1 * 3.0, 2.2])


def test_theorem_5_of_wdrbo() -> None:
    radii = 0.3 / torch.arange(1, T + 1, dtype=torch.double).sqrt()
    steep = torch.linspace(1.0, 2.0, T, dtype=torch.double)
    gains = torch.linspace(0.1, GAIN, T, dtype=torch.double)
    width = torch.tensor(WIDTH)
    found = theorems.regret_bound(width, gains, radii, steep, delta=0.05)
    for n in (1, 17, T):
        # The paper's gamma is a log-determinant without 1/2.
        logdet = 2 * gains[n - 1].item()
        root = math.sqrt(n * (logdet + 4 * math.log(6 / 0.05)))
        shift = sum(2 * radii[i].item() * steep[i].item() for i in range(n))
        assert found[n - 1].item() == pytest.approx(4 * WIDTH * root + shift)


def test_theorem_1_of_misspecified_with_constants() -> None:
    inner = (2 * LAM + 1) * GAIN
    want = 2 * WIDTH * math.sqrt(inner * T)
    want += 2 * EPS * LAM**-0.5 * T * math.sqrt(inner)
    found = theorems.misspecified_regret_bound(
        torch.tensor(T), torch.tensor(GAIN), torch.tensor(WIDTH), EPS, LAM
    )
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
    largest = theorems.deviation_sum_bound(
        torch.tensor(gain), torch.tensor(80), lam
    ).item()
    assert 0.1 * largest < total <= largest
    width = confidence_width(
        gain, norm_bound=1.0, delta=0.1, noise_std=sigma, noise_ratio=lam
    )
    promised = theorems.misspecified_regret_bound(
        torch.tensor(80), torch.tensor(gain), torch.tensor(width), 0.0, lam
    ).item()
    assert 0 < regret <= promised
