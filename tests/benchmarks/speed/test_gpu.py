"""The report on a GPU at tiny sizes, on the processor in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.speed import gpu
from benchmarks.speed.gpu import QUICK


def test_a_machine_without_a_gpu_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["speed", "gpu", "--out", str(tmp_path / "gpu.md")]) == 2
    assert "torch finds no CUDA device here" in capsys.readouterr().err
    assert not (tmp_path / "gpu.md").exists()


def test_values_of_all_sides_are_compared_and_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "peak_memory", lambda side: len(side()) << 30)
    section = gpu.values_section(QUICK, 2, "cpu")
    (row,) = section.rows
    assert row[:2] == ["(2, 5, 4, 1)", "exact"]
    assert dict(zip(section.head, row, strict=True))["memory, GiB"] == "2"


def test_the_gemm_is_not_copied() -> None:
    whole = torch.arange(6.0).reshape(3, 2)
    assert torch.equal(gpu._first_row(lambda: whole), whole[:1])


def test_worst_cases_are_moved_and_the_callers_stay() -> None:
    (problem, *_) = gpu.inner_problems(2, 9)
    moved = gpu._moved(problem, "cpu")
    assert moved.ambiguity_set is not problem.ambiguity_set
    section = gpu.inner_section(QUICK, 2, "cpu")
    assert {row[1] for row in section.rows} == {"2 x 9"}
    assert len(section.rows) == len(gpu.inner_problems(2, 9))


def test_asks_say_how_far_their_decisions_are_apart() -> None:
    threads = torch.get_num_threads()
    section = gpu.asks_section(QUICK, 1, "cpu")
    (row,) = section.rows
    assert row[0] == "erbo, botorch, t = 4, q = 2"
    assert row[-1] == "0e+00"  # the same device: the same decision
    assert torch.get_num_threads() == threads
