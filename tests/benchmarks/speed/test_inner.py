"""The three sides of the inner benchmark solve the same problem, and are timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.speed.inner import gradient_error, measure_problem
from benchmarks.speed.inner_problems import inner_problems
from botorch_drbo.ambiguity import TotalVariation

PROBLEMS = inner_problems(3, 9)
AMBIGUOUS = pytest.mark.parametrize(
    "problem", PROBLEMS, ids=[problem.name for problem in PROBLEMS]
)


@AMBIGUOUS
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_all_sides_agree(problem):
    assert gradient_error(problem, problem.layer()(3)) <= 1e-3
    assert gradient_error(problem, problem.loop()(3)) <= 1e-3


@AMBIGUOUS
def test_the_ball_is_neither_a_point_nor_everything(problem):
    """A wrong ball would go unseen if every radius gave the same answer."""
    value, weights = problem.ours(3)
    mean = problem.values @ problem.weights
    assert (value < mean - 1e-3).all()
    assert (value > problem.values.amin(-1) + 1e-3).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3).double())


def test_disagreement_stops_the_measurement():
    other = replace(PROBLEMS[0], ambiguity_set=TotalVariation(0.3 + 1e-4))
    with pytest.raises(AssertionError, match="not close"):
        measure_problem(other, repeats=1, turns=1)
    value, gradient = PROBLEMS[0].ours(3)
    with pytest.raises(AssertionError, match=r"gradients differ by 0.01 "):
        gradient_error(PROBLEMS[0], (value, gradient + 0.01))
    one_wrong = gradient.clone()
    one_wrong[1, 2] += 0.25  # in one row only: reported, not refused
    assert gradient_error(PROBLEMS[0], (value, one_wrong)) == pytest.approx(0.25)


def test_ratios_and_targets():
    easy = replace(PROBLEMS[0], layer_target=1e-9, loop_target=1e9, loop_rows=2)
    layer, loop = measure_problem(easy, repeats=1, turns=1)
    assert layer.target == "at least 1e-09: met"
    assert loop.target == "at least 1e+09: missed"
    assert "(3 rows" in layer.other
    assert "(2 rows" in loop.other
    ratio = float(loop.result.split()[0])
    times = seconds(loop.other) / seconds(loop.ours)
    assert ratio == pytest.approx(times, rel=0.02)


def seconds(text: str) -> float:
    number, unit = text.split()[:2]
    return float(number) * {"us": 1e-6, "ms": 1e-3}[unit]


@pytest.mark.slow
def test_inner_command_writes_its_report(tmp_path: Path):
    out = tmp_path / "folder" / "inner.md"
    line = ["speed", "inner", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(line) == 0
    text = out.read_text()
    rows = [row for row in text.splitlines() if "times as fast" in row]
    assert len(rows) == 2 * len(PROBLEMS)
    assert "speed inner" in text
