"""Table 2 of SBO-KDE: how far its density estimate is from the true law."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks.problems.laws import complicated_mixture
from botorch_drbo import ContextSet
from botorch_drbo.contexts.sources import silverman_bandwidth

RUNS, SIZES = 20, (10, 100, 200, 300)
NORMALS = ((0.1, 0.02), (0.3, 0.075), (0.4, 0.1), (0.5, 0.1), (0.7, 0.075), (0.8, 0.03))


def mixture(c: np.ndarray) -> np.ndarray:
    parts = [stats.norm(m, s).pdf(c) for m, s in NORMALS]
    parts += [stats.cauchy(m, 0.02).pdf(c) for m in (0.2, 0.8)]
    return np.mean(parts, axis=0)  # equal weights


LAWS = {
    # Contexts of the normal law are clipped. Those of the mixture are not: the table
    # was made with them as they were drawn, over the whole line.
    "normal": (stats.norm(0.5, 0.1).pdf, [0.3222, 0.1315, 0.1156, 0.0962]),
    "complicated": (mixture, [0.6216, 0.5380, 0.4853, 0.4724]),
}


def drawn(name: str, num: int, generator: torch.Generator) -> torch.Tensor:
    if name == "normal":
        draws = torch.randn(num, 1, generator=generator, dtype=torch.double)
        return (0.5 + 0.1 * draws).clamp(0.0, 1.0)
    u = torch.rand(num, 1, generator=generator, dtype=torch.double)
    return complicated_mixture().base_dist.icdf(u)


def grid() -> np.ndarray:
    """Fine in the middle, and as far out as the Cauchys reach."""
    tail = np.geomspace(2.0, 1e4, 800)
    return np.concatenate([-tail[::-1], np.linspace(-2, 3, 4001)[1:-1], tail + 1.0])


@pytest.mark.parametrize("name", LAWS)
def test_distance_to_the_true_law_is_that_of_the_table(name: str) -> None:
    """The full L1 distance, without 1/2; the mean of 20 runs."""
    pdf, table = LAWS[name]
    points = grid() if name == "complicated" else np.linspace(-0.5, 1.5, 4001)
    truth, generator = pdf(points), torch.Generator().manual_seed(0)
    for size, published in zip(SIZES, table, strict=True):
        distances = []
        for _ in range(RUNS):
            observed = drawn(name, size, generator)
            h = silverman_bandwidth(observed, None).item()
            z = (points[:, None] - observed.numpy().T) / h
            density = np.exp(-0.5 * z**2).mean(-1) / (h * np.sqrt(2 * np.pi))
            distances.append(np.trapezoid(np.abs(density - truth), points))
        # Three standard errors of a mean of 20, of theirs and of ours.
        error = 3 * np.std(distances, ddof=1) * np.sqrt(2 / RUNS)
        assert np.mean(distances) == pytest.approx(published, abs=error + 0.005)


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_that_density(name: str) -> None:
    """``ContextSet.kernel_density`` draws from the density of the test above."""
    observed = drawn(name, 40, torch.Generator().manual_seed(1))
    h = silverman_bandwidth(observed, None).item()
    found = ContextSet.kernel_density(observed, num_samples=8192, seed=0)

    def cdf(c: np.ndarray) -> np.ndarray:
        return stats.norm.cdf((c[:, None] - observed.numpy().T) / h).mean(-1)

    assert stats.kstest(found.points.flatten().numpy(), cdf).statistic < 0.003
