"""The batch benchmark: the regret that counts, the table, and one small run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments import batches, pending
from benchmarks.experiments.batches import METHODS, Setting, Task, report
from benchmarks.run.engine import make_run


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


def rows_of(
    label: str,
    seed: int,
    regret: tuple[float, ...],
    batch_regret: tuple[float, ...],
    values: tuple[float, float, float] | None = None,
    gap: float = 1.0,
) -> pd.DataFrame:
    """Those of one run; the same acquisition values in each round."""
    greedy, cold, joint = values or (None, None, None)
    return pd.DataFrame(
        {
            "problem": "p",
            "algorithm": label,
            "seed": seed,
            "iteration": range(len(regret)),
            "regret": regret,
            "batch_regret": batch_regret,
            "seconds": 0.25,
            "gap": gap,
            "greedy": greedy,
            "cold": cold,
            "joint": joint,
        }
    )


def test_the_table_pairs_the_methods_by_seed():
    runs = []
    for method in METHODS:
        for seed, end in enumerate((1.0, 3.0)):
            joint = method.label == "qUCB, jointly"
            values = ((1.0, 0.5, 1.5), (2.0, 2.5, 2.5))[seed] if joint else None
            regret = (5.0, end - 0.5 * joint)
            runs.append(rows_of(method.label, seed, regret, (2.0, 4.0), values))
    text = str(report(pd.concat(runs), q=4))
    assert "then 2 batches of 4; 2 seeds" in text
    # Both seeds differ by the same: the paired error is zero, the plain one is 1.
    assert "| qUCB, greedily | 2.0 ± 1.0 | 3.50 ± 0.50 | 3 | 0.25 |" in text
    assert "| qUCB, jointly - qUCB, greedily | -0.5 | -0.25 | 0 |" in text
    assert "| qUCB, jointly, cold | -0.5 | 0 | 0.5 | 50% |" in text
    assert "| qUCB, jointly, warm | 0.5 | 0.5 | 0.5 | 100% |" in text


def test_pending_is_compared_after_equal_numbers_of_outcomes():
    def run(label: str, seed: int, *regret: float) -> pd.DataFrame:
        # The regret of the decisions is that of the recommendations, and one more.
        batch = tuple(r + 1.0 for r in regret)
        return rows_of(label, seed, regret, batch, gap=0.125)

    runs = [
        *(run(pending.ONE_BY_ONE.label, seed, 8, 6, 4, 2) for seed in (0, 1)),
        run(pending.HALLUCINATED.label, 0, 5, 3),
        run(pending.HALLUCINATED.label, 1, 7, 5),
        run(pending.REPELLED.label, 0, 5, 2),
        run(pending.REPELLED.label, 1, 7, 4),
    ]
    text = str(pending.report(pd.concat(runs), q=2))
    assert "then 4 in batches of 2 or one by one; 2 seeds" in text
    assert "| p | one by one | 2 | 4 | 6 |  |" in text
    assert (
        "| p | UCB, hallucinated | 4.0 ± 1.0 | 5.0 ± 1.0 | 6.0 ± 1.0 | 0.12 |" in text
    )
    assert "| p | repelled - hallucinated | -1 | -0.5 | -0.5 |  |" in text


def test_a_run_is_a_function_of_its_task():
    """The starts of the searches are drawn with the generator of the process."""
    task = Task("branin_2_2", "qUCB, greedily", 0, 1, 2)
    first, second = (
        [row | {"seconds": 0.0} for row in make_run(task).rows] for _ in range(2)
    )
    assert first == second


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
