"""The batch benchmark: the regret that counts, the table, and one small run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments import batches, pending
from benchmarks.experiments.batches import METHODS, Run, Setting, Values, report


def test_the_regret_is_that_of_the_robust_value():
    setting = Setting()
    X = torch.tensor([[0.2, 0.2], [0.7, 0.4]], dtype=torch.double)
    points = setting.context_set.points
    for x, value in zip(X, setting.value(X), strict=True):
        f = setting.problem.evaluate(x, points).sort().values
        # Total variation: half the radius leaves the best contexts for the worst one.
        moved, mass = batches.RADIUS / 2, torch.full((len(f),), 1 / len(f)).double()
        for i in reversed(range(len(f))):
            taken = min(moved, mass[i].item())
            mass[i], moved = mass[i] - taken, moved - taken
        mass[0] += batches.RADIUS / 2
        torch.testing.assert_close(value, mass @ f)
    dense = setting.value(setting.decisions)
    assert dense.max() <= setting.optimum <= dense.max() + 1.0


def test_the_table_pairs_the_methods_by_seed():
    def run(end: float, values: tuple[Values, ...] = ()) -> Run:
        regret, of_batches = torch.tensor([5.0, end]), torch.tensor([2.0, 4.0])
        return Run(regret, of_batches, 0.25, values, gaps=torch.ones(2))

    known = (Values(greedy=1.0, cold=0.5, joint=1.5), Values(2.0, 2.5, 2.5))
    runs = {method.label: [run(1.0), run(3.0)] for method in METHODS}
    runs["qUCB, jointly"] = [run(0.5, known[:1]), run(2.5, known[1:])]
    text = report(runs, rounds=2, q=4)
    # Both seeds differ by the same: the paired error is zero, the plain one is 1.
    assert "| qUCB, greedily | 2 ± 1 | 3.5 ± 0.5 | 3 ± 0 | 0.25 |" in text
    assert "| qUCB, jointly - qUCB, greedily | -0.5 ± 0 | -0.25 ± 0 | 0 ± 0 |" in text
    assert "| qUCB, jointly, cold | -0.4 | 0 | 0.4 | 50% |" in text
    assert "| qUCB, jointly, warm | 0.5 | 0.5 | 0.5 | 100% |" in text


def test_pending_is_compared_after_equal_numbers_of_outcomes():
    def run(*regret: float) -> Run:
        # The regret of the decisions is that of the recommendations, and one more.
        found = torch.tensor(regret, dtype=torch.double)
        return Run(found, found + 1.0, 0.25, (), gaps=torch.full((2,), 0.125))

    runs = {
        ("p", pending.ONE_BY_ONE): [run(8, 6, 4, 2), run(8, 6, 4, 2)],
        ("p", pending.HALLUCINATED.label): [run(5, 3), run(7, 5)],
        ("p", pending.REPELLED.label): [run(5, 2), run(7, 4)],
    }
    text = pending.report(runs, rounds=2, q=2)
    assert "| p | one by one | 2 ± 0 | 4 ± 0 | 6 ± 0 |  |" in text
    assert "| p | UCB, hallucinated | 4 ± 1 | 5 ± 1 | 6 ± 1 | 0.12 |" in text
    assert "| p | repelled - hallucinated | -1 ± 0 | -0.5 ± 0 | -0.5 ± 0 |  |" in text


@pytest.mark.slow
def test_the_command_writes_its_report(tmp_path: Path):
    out = tmp_path / "folder" / "batches.md"
    line = ["batches", "--seeds", "1", "--rounds", "1", "--q", "2", "--workers", "1"]
    assert main([*line, "--out", str(out)]) == 0
    text = out.read_text()
    assert all(f"| {method.label} | " in text for method in METHODS)
    shares = [
        row.split("|")[-2].strip() for row in text.splitlines() if "warm |" in row
    ]
    assert shares and all(share.endswith("%") for share in shares)
