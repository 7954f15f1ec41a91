"""The measurements compare like with like, and run at tiny sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.speed import (
    BETA,
    QUICK,
    _joint_problem,
    alternate,
    botorch_expected_ucb,
    machine,
    measure_expected_ucb,
    measure_memory,
)


def test_idiom_is_the_expected_ucb():
    model, contexts, X = _joint_problem(3, 5, 7)
    expected = []
    for x in X.squeeze(-2):
        values = []
        for c in contexts:  # one point at a time
            posterior = model.posterior(torch.cat([x, c]).unsqueeze(0))
            values.append(posterior.mean + (BETA * posterior.variance).sqrt())
        expected.append(torch.stack(values).mean())
    actual = botorch_expected_ucb(model, X, contexts)
    torch.testing.assert_close(actual, torch.stack(expected))


def test_alternate_takes_turns():
    calls: list[str] = []
    times = alternate([lambda: calls.append("a"), lambda: calls.append("b")], 3)
    assert "".join(calls) == "ababab"
    assert [len(t) for t in times] == [3, 3]


def test_expected_ucb_is_measured():
    line = measure_expected_ucb(QUICK, repeats=2)
    assert "times as fast" in line.result
    assert "b=2, n=8, t=6" in line.what


def test_memory_is_measured_in_its_own_process():
    line = measure_memory(QUICK)
    assert "of the budget" in line.result
    assert "budget 1024 MiB" in line.other


@pytest.mark.slow
def test_peak_memory_is_far_below_one_dense_array():
    """4 x 16,384 x 1,000 numbers would be 500 MiB; forward and backward are run."""
    line = measure_memory(replace(QUICK, memory_b=4, memory_n=16_384, memory_t=1000))
    used = float(line.ours.split(" MiB")[0])
    assert used < 200


def test_machine_names_the_versions():
    assert f"torch {torch.__version__}" in machine()


@pytest.mark.slow
def test_speed_command_writes_its_report(tmp_path: Path):
    out = tmp_path / "folder" / "speed.md"
    assert main(["speed", "--quick", "--repeats", "1", "--out", str(out)]) == 0
    text = out.read_text()
    for word in ("expected UCB", "Ackley 2+1", "peak memory", "torch"):
        assert word in text
