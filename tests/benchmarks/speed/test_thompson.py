"""The step of Thompson sampling against the way of the paper's code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments.bocu import Setting, make_problem
from benchmarks.speed.thompson import check, drawn_jointly, line, observe, one_by_one


@pytest.mark.slow
def test_command_writes_its_report(tmp_path: Path):
    out = tmp_path / "step.md"
    arguments = ["speed", "thompson", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(arguments) == 0
    rows = [row for row in out.read_text().splitlines() if "times as fast" in row]
    assert len(rows) == 8


def test_the_loop_solves_the_same_problem():
    problem = make_problem("gp_prior_2_2", 0)
    weights = problem.context_set.weights
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(3, len(weights), generator=generator, dtype=torch.double)
    for distance in ("tv", "mmd"):
        objective = Setting("dro", distance).build(problem)
        solve = one_by_one(objective, weights)
        check(objective, values, weights, solve)
        with pytest.raises(AssertionError):
            check(objective, values, weights, lambda rows, s=solve: s(rows) + 1e-3)


def test_the_joint_draw_follows_the_data():
    problem = make_problem("gp_prior_2_2", 0)
    history = observe(problem, 1)
    torch.manual_seed(0)
    values = drawn_jointly(problem, history, history.X[:2], features=512)()
    assert values.shape == (2, problem.context_set.num_points)
    contexts = problem.context_set.points
    for i in range(2):
        here = (contexts == history.C[i]).all(-1).nonzero()
        assert len(here) == 1  # the initial contexts are among the 64
        assert abs(values[i, here[0, 0]] - history.Y[i, 0]) < 0.1


def test_a_line_compares_medians_and_takes_the_median_ratio():
    found = line("x", [0.01, 0.02, 0.1], [1.0, 1.0, 2.0], 50.0)
    assert found.ours == "20 ms" and found.other == "1 s"
    assert found.result == "50 times as fast"
    assert found.target == "at least 50: met"
