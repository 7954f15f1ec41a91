"""Timing, work by formula, and the stopwatch that sees the backward pass."""

from __future__ import annotations

import time

import pytest
import torch
from benchmarks.speed.sections import REST, Stopwatch
from torch.utils.flop_counter import FlopCounterMode

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
    assert f"torch {torch.__version__}" in timing.machine()


def test_a_busy_machine_is_named(monkeypatch):
    monkeypatch.setattr(timing.os, "getloadavg", lambda: (2.34, 0.0, 0.0))
    assert "2.3: **the machine was busy" in timing.busy()
    monkeypatch.setattr(timing.os, "getloadavg", lambda: (0.3, 5.0, 5.0))
    assert timing.busy().endswith("0.3.")


def test_work_by_hand():
    assert gemm_work(2, 3) == Work(36, 8 * (6 + 6 + 9))
    # two gemms, and 2 * 3 * (6 * 4 + 4) for distances, mean and slopes
    assert dense_work(2, 3, 4) == Work(72 + 168, 2 * 168)
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


def stopwatch(monkeypatch, closed=()):
    clock = Clock(monkeypatch, "thread_time")
    return Stopwatch(closed=closed), clock


def test_stopwatch_sees_forward_and_backward(monkeypatch):
    watch, clock = stopwatch(monkeypatch)

    def two_nodes(x):  # the first in the backward pass has the longer one
        return Slow.apply(Slow.apply(x, clock, 0.25, 2.0), clock, 0.75, 8.0)

    inner = watch.part("inner", two_nodes)
    early = watch.part("early", lambda x: Slow.apply(x, clock, 2.0, 20.0))

    def function(x):
        a = Slow.apply(early(x), clock, 4.0, 40.0)
        return Slow.apply(inner(a) + x, clock, 8.0, 80.0)

    whole = watch.whole("whole", function)
    x = torch.ones(1, requires_grad=True)
    for _ in range(2):  # nothing is left over from one call to the next
        with watch.running():
            clock.now += 100.0
            y = whole(x)
            clock.now += 1000.0
            (gradient,) = torch.autograd.grad(y, x)
    assert gradient.item() == 2 * (2 * 2 * 2 * 2 + 1)
    assert watch.seconds == {
        REST: 2200.0,
        "whole": 2 * 132.0,
        "inner": 2 * 11.0,
        "early": 2 * 22.0,
    }
    assert watch.calls == {"whole": 2, "inner": 2, "early": 2}


def test_parts_need_no_tensor_for_their_boundary(monkeypatch):
    """A part may take what it differentiates from elsewhere, and return an object."""
    watch, clock = stopwatch(monkeypatch)

    def function(x):
        make = watch.part("a", lambda: [Slow.apply(x, clock, 1.0, 10.0)])
        (made,) = make()
        use = watch.part("b", lambda: Slow.apply(made, clock, 2.0, 20.0))
        return use() + made

    x = torch.ones(1, requires_grad=True)
    with watch.running():
        torch.autograd.grad(watch.whole("whole", function)(x), x)
    assert watch.seconds["a"] == 11.0
    assert watch.seconds["b"] == 22.0


def test_what_the_gradient_does_not_need_is_skipped(monkeypatch):
    watch, clock = stopwatch(monkeypatch)
    constant = torch.ones(1, requires_grad=True)

    def function(x):
        part = watch.part("a", lambda: Slow.apply(x, clock, 1.0, 10.0))
        other = watch.part("b", lambda: Slow.apply(constant, clock, 2.0, 20.0))
        return part() * other()

    x = torch.ones(1, requires_grad=True)
    with watch.running():
        torch.autograd.grad(watch.whole("whole", function)(x), x)
    assert watch.seconds["a"] == 11.0
    assert watch.seconds["b"] == 2.0


def test_closed_parts_keep_what_is_inside(monkeypatch):
    watch, clock = stopwatch(monkeypatch, closed=["search"])
    part = watch.part("part", lambda x: Slow.apply(x, clock, 1.0, 10.0))

    def search(x):  # differentiates on its own, as the Lipschitz search does
        leaf = x.detach().requires_grad_()
        torch.autograd.grad(part(leaf), leaf)
        return part(x)

    watched = watch.part("search", search)
    x = torch.ones(1, requires_grad=True)
    with watch.running():
        y = watch.whole("whole", lambda x: part(watched(x)))(x)
        torch.autograd.grad(y, x)
    assert watch.seconds["part"] == 11.0
    assert watch.seconds["search"] == 22.0
    assert watch.calls == {"whole": 1, "search": 1, "part": 1}


def test_without_a_gradient(monkeypatch):
    watch, clock = stopwatch(monkeypatch)
    whole = watch.whole("whole", lambda x: Slow.apply(x, clock, 1.0, 10.0))
    with watch.running(), torch.no_grad():
        whole(torch.ones(1, requires_grad=True))
    with watch.running():
        whole(torch.ones(1))
    assert watch.seconds["whole"] == 2.0


def test_a_part_that_is_not_left_is_an_error(monkeypatch):
    watch, clock = stopwatch(monkeypatch)
    with pytest.raises(RuntimeError, match="whole has not ended"), watch.running():
        watch._enter("whole")
