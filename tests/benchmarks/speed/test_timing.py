"""Timing, work by formula, and the stopwatch that sees the backward pass."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.run import provenance
from benchmarks.speed import timing
from benchmarks.speed.job import Job, Problem
from benchmarks.speed.timing import alternate, median_ratio, race, readable
from benchmarks.speed.work import Work, dense_work, gemm_work, product_work


def test_alternate_takes_turns():
    calls: list[str] = []
    times = alternate([lambda: calls.append("a"), lambda: calls.append("b")], 3)
    assert "".join(calls) == "ababab"
    assert [len(t) for t in times] == [3, 3]


def test_ratios_are_taken_within_a_repeat():
    # A machine that slows down: 1.5 in each repeat, though the medians are 6 and 2.
    assert median_ratio([3.0, 6.0, 12.0], [2.0, 4.0, 1.0]) == 1.5


def test_sides_must_agree_unless_they_are_said_to_differ():
    sides = {"a": lambda: torch.ones(2), "b": lambda: torch.tensor([1.0, 1.0 + 1e-5])}
    with pytest.raises(AssertionError, match="b against a"):
        race(sides, 1)
    times = race(sides, 2, unlike=["b"])
    assert [len(side) for side in times.values()] == [2, 2]
    sides["b"] = lambda: torch.tensor([1.0, 1.0 + 1e-7])
    assert set(race(sides, 1)) == {"a", "b"}


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self, monkeypatch, name="perf_counter"):
        self.now = 0.0
        monkeypatch.setattr(time, name, lambda: self.now)

    def takes(self, seconds: float):
        def work() -> torch.Tensor:
            self.now += seconds
            return torch.ones(1)

        return work


def test_short_sides_are_repeated_and_long_ones_are_not(monkeypatch):
    clock = Clock(monkeypatch)
    times = race({"short": clock.takes(0.003), "long": clock.takes(30.0)}, 5)
    # 30 s a turn: three repeats are left, of 7 calls (21 ms) and one call
    assert clock.now == pytest.approx(5 * 0.003 - 0.009 + 3 * (7 * 0.003 + 30.0) + 30)
    assert times["short"] == pytest.approx([0.003] * 3)
    assert times["long"] == pytest.approx([30.0] * 3)
    assert len(race({"a": clock.takes(0.5)}, 5)["a"]) == 5
    assert len(race({"a": clock.takes(30.0)}, 1)["a"]) == 1


def test_what_the_first_call_builds_is_not_counted(monkeypatch):
    clock = Clock(monkeypatch)
    durations = iter([0.5, *[0.01] * 100])
    calls = []

    def side() -> torch.Tensor:
        calls.append(next(durations))
        clock.now += calls[-1]
        return torch.ones(1)

    assert race({"side": side}, 3)["side"] == pytest.approx([0.01] * 3)
    assert len(calls) == 2 + 3 * 2  # 20 ms for each timing


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.34, "12.3 s"),
        (1234.0, "1,234 s"),
        (0.9999, "1 s"),
        (0.01234, "12.3 ms"),
        (1.5e-6, "1.5 us"),
    ],
)
def test_readable(seconds, text):
    assert readable(seconds) == text


def test_machine_names_the_versions():
    assert f"torch {torch.__version__}" in provenance.machine()


def test_a_busy_machine_is_named(monkeypatch):
    monkeypatch.setattr(timing.os, "getloadavg", lambda: (2.34, 0.0, 0.0))
    assert "2.3: **the machine was busy" in timing.busy()
    monkeypatch.setattr(timing.os, "getloadavg", lambda: (0.3, 5.0, 5.0))
    assert timing.busy().endswith("0.3.")


def test_work_by_hand():
    assert gemm_work(2, 3) == Work(36, 8 * (6 + 6 + 9))
    # one gemm, and 2 * 3 * (6 * 4 + 4) for distances, mean and slopes
    assert dense_work(2, 3, 4) == Work(36 + 168, 168)
    # one context for five: two pairs; 8 * 2 * 1 * 5 flops to interpolate
    interpolation = Work(80, 2 * 8 * (2 * 2 * 1 + 1 * 5 + 2 * 2 * 5))
    assert product_work(2, 5, 3, 4, 1) == dense_work(2, 3, 4) + interpolation


def test_dense_work_is_what_the_exact_path_does():
    """Counted by torch; the rest is what does not grow with t."""
    job = Job(3, 40, 25, 2)
    problem = Problem(job)
    acqf = problem.acquisition("exact")
    X = problem.X.clone().requires_grad_()
    with FlopCounterMode(display=False) as counter:
        acqf(X).sum().backward()
    formula = dense_work(job.pairs, job.t, job.d).flops
    assert counter.get_total_flops() == pytest.approx(formula, rel=1e-3)


def test_gemm_work_is_what_the_floor_does():
    job = Job(3, 40, 25)
    side = Problem(job).gemm()
    with FlopCounterMode(display=False) as counter:
        side()
    assert counter.get_total_flops() == gemm_work(job.pairs, job.t).flops


class Slow(torch.autograd.Function):
    """Takes ``forward`` seconds there and ``backward`` seconds back."""

    @staticmethod
    def forward(ctx, x, clock, forward, backward):
        ctx.clock, ctx.seconds = clock, backward
        clock.now += forward
        return 2.0 * x

    @staticmethod
    def backward(ctx, *gradients):
        ctx.clock.now += ctx.seconds
        return 2.0 * gradients[0], None, None, None
