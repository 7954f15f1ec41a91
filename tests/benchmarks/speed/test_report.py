"""The speed report at tiny sizes: what is compared, the verdicts, the files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from benchmarks.__main__ import main
from benchmarks.speed import growth, job, targets
from benchmarks.speed.grid import FIRST, GEMM, IDIOM, Row, grid_sections, measure_job
from benchmarks.speed.growth import Growth, Point, measure_growth, write_csv
from benchmarks.speed.iterations import (
    BASELINE,
    Search,
    make_history,
    measure_iterations,
    model_based_recipes,
    run_iteration_speed,
)
from benchmarks.speed.job import BETA, Job, Problem, botorch_expected_ucb
from benchmarks.speed.memory import measure_peak
from benchmarks.speed.rows import Sizes
from benchmarks.speed.targets import Target, grid_targets, targets_section
from benchmarks.speed.work import Work

TINY = Search(raw_samples=8, num_restarts=2)


def test_idiom_is_the_expected_ucb():
    problem = Problem(Job(3, 5, 7, 2))
    expected = []
    for x in problem.X.squeeze(-2):
        values = []
        for c in problem.contexts:  # one point at a time
            posterior = problem.model.posterior(torch.cat([x, c]).unsqueeze(0))
            values.append(posterior.mean + (BETA * posterior.variance).sqrt())
        expected.append(torch.stack(values).mean())
    actual = botorch_expected_ucb(problem.model, problem.X, problem.contexts)
    torch.testing.assert_close(actual, torch.stack(expected))


def test_slices_of_the_idiom_change_nothing(monkeypatch):
    problem = Problem(Job(5, 4, 3))
    whole = problem.idiom()()
    monkeypatch.setattr(job, "_SLICE", 2 * 8 * 4 * 3 * 3)  # two decisions of five
    calls = []
    original = botorch_expected_ucb
    monkeypatch.setattr(
        job,
        "botorch_expected_ucb",
        lambda model, X, contexts: calls.append(len(X)) or original(model, X, contexts),
    )
    torch.testing.assert_close(problem.idiom()(), whole)
    assert calls == [2, 2, 1]


def test_gemm_has_the_size_of_the_job():
    assert Problem(Job(2, 3, 4)).gemm()().shape == (6, 4)


def test_a_forced_method_that_would_hand_the_job_over_is_left_out():
    problem = Problem(Job(1, 5, 4))
    assert problem.ours("exact") is not None
    assert problem.ours("product") is None  # five contexts: the exact view serves
    assert problem.ours("auto") is not None


def test_a_method_that_refuses_the_job_is_left_out(monkeypatch):
    def refuse(self, method):
        raise UnsupportedError("not this model")

    problem = Problem(Job(1, 5, 4))
    monkeypatch.setattr(Problem, "acquisition", refuse)
    assert problem.ours("exact") is None


def test_a_job_is_measured_by_all_sides():
    row = measure_job(Job(2, 5, 4), repeats=2)
    assert {"auto", "exact", "generic", IDIOM, GEMM, FIRST} <= set(row.seconds)
    assert row.chosen == "exact"  # five contexts are too few for anything else
    assert row.work["dense"].flops == 10 * (2 * 16 + 6 * 3 * 4 + 4 * 4)


def row(size: Job, auto: float, idiom: float, gemm: float) -> Row:
    seconds = {"auto": [auto] * 3, IDIOM: [idiom] * 3, GEMM: [gemm] * 3}
    dense, product = Work(4_000_000, 2**20), Work(1_000_000, 2**19)
    work = {"dense": dense, "product": product}
    return Row(size, "product", seconds, work)


def test_grid_says_where_auto_is_slower():
    rows = [row(Job(1, 5, 5), 2.0, 3.0, 1.0), row(Job(2, 5, 5), 2.0, 1.0, 8.0)]
    times, work = grid_sections(rows)
    assert times.notes == [
        "Auto is slower than BoTorch's idiom at (2, 5, 5, 1): missed."
    ]
    verdict = times.head.index("slower than the idiom?")
    assert [cells[verdict] for cells in times.rows] == ["no", "**yes**"]
    ratios = slice(times.head.index("idiom / auto"), verdict)
    assert [list(cells[ratios]) for cells in times.rows] == [
        ["1.5", "2"],
        ["0.5", "0.25"],
    ]
    # 4 and 1 Mflop; the gemm of 5 x 5 x 5 in one second
    assert list(work.rows[0][1:6]) == ["4", "1", "1", "0.5", "4"]
    assert list(work.rows[0][6:]) == ["0.0005", "2.5e-07"]
    all_well, _ = grid_sections(rows[:1])
    assert all_well.notes[0].endswith("met.")


def test_targets_of_the_grid():
    base, two = Job(64, 1024, 100, 1), Job(64, 1024, 100, 2)
    rows = [row(base, 1.0, 160.0, 2.0), row(two, 1.0, 29.0, 2.0)]
    found = grid_targets([*rows, row(Job(1, 5, 5), 1.0, 0.9, 1.0)])
    assert [target.met for target in found] == [True, False, False, False]
    assert [target.measured for target in found] == [160.0, 0.5, 29.0, 0.9]
    assert found[-1].details == "at (1, 5, 5, 1)"


def test_limits_are_kept_or_not():
    assert Target("", 2.0, 2.0).met
    assert not Target("", 2.1, 2.0).met
    assert Target("", 2.0, 2.0, at_least=True).met
    assert not Target("", 1.9, 2.0, at_least=True).met
    section = targets_section([Target("a", 0.123456, 0.1, unit=" s")], TINY)
    assert section.rows == [["a", "0.123 s", "at most 0.1 s", "**missed**"]]
    assert section.notes == ["0 of 1 met."]


def test_robust_over_plain():
    (penalty,) = targets.measure_penalties([Job(2, 4, 5, 2)], repeats=1)
    ball = targets.measure_ball(Job(2, 4, 5), repeats=1)
    assert penalty.measured > 1.0  # a Lipschitz constant costs something
    assert ball.measured > 0.0
    assert penalty.limit == ball.limit == 2.0


def test_many_observations_are_checked_against_botorch(monkeypatch):
    assert targets.measure_large(Job(2, 4, 9), repeats=1).measured > 0.0
    monkeypatch.setattr(
        targets,
        "botorch_expected_ucb",
        lambda *arguments: botorch_expected_ucb(*arguments) + 1e-3,
    )
    with pytest.raises(AssertionError, match="not close"):
        targets.measure_large(Job(2, 4, 9), repeats=1)


def test_memory_is_measured_in_its_own_process(monkeypatch):
    assert targets.measure_peak is measure_peak
    peak = measure_peak(Job(2, 64, 10))
    assert peak.budget == Problem(Job(1, 2, 3)).acquisition().memory_budget
    assert 0 <= peak.used < peak.total < 2**30
    monkeypatch.setattr(targets, "measure_peak", {Job(2, 64, 10): peak}.get)
    target = targets.measure_memory(Job(2, 64, 10))
    assert target.met
    assert "the budget of the posterior 1 GiB" in target.details


@pytest.mark.slow
def test_peak_memory_is_far_below_one_dense_array():
    """4 x 16,384 x 1,000 numbers are 500 MiB, and the dense way holds several."""
    assert measure_peak(Job(4, 16_384, 1000)).used < 350 * 2**20


def test_recipes_that_have_a_whole_iteration():
    names = model_based_recipes()
    assert names[0] == BASELINE
    assert "random" not in names
    assert {"wdrbo", "drbo_kde", "drbo_mmd", "ts_bocu"} <= set(names)


def test_iterations_are_split_into_fit_and_rest():
    found = measure_iterations([BASELINE, "erbo"], t=4, search=TINY, repeats=2)
    for times in found.values():
        assert len(times.whole) == 2
        assert all(
            0 < a < b for a, b in zip(times.optimisation, times.whole, strict=True)
        )


def test_histories_differ_by_seed_only():
    (first, space), (again, _), (other, _) = (make_history(5, s) for s in (1, 1, 2))
    torch.testing.assert_close(first.X, again.X)
    torch.testing.assert_close(first.Y, again.Y)
    assert not torch.equal(first.X, other.X)
    assert (space.bounds[0] <= first.X).all()
    assert (space.bounds[1] >= first.X).all()


def test_growth_measures_each_job_once(monkeypatch):
    measured = []

    def measure(job, growth, repeats):
        measured.append(job)
        return "exact", {"auto": 1.0}

    monkeypatch.setattr(growth, "_measure", measure)
    curves = Growth(Job(2, 9, 5), t=(5, 6), n=(9, 64), b=(2,))
    points = measure_growth(curves, repeats=1)
    assert [(p.axis, p.size) for p in points] == [
        ("t", 5),
        ("t", 6),
        ("n", 9),
        ("n", 64),
        ("b", 2),
    ]
    assert measured == [Job(2, 9, 5), Job(2, 9, 6), Job(2, 64, 5)]


def test_growth_ends_where_it_would_take_too_long():
    curves = Growth(Job(2, 5, 4), idiom_limit=39, exact_limit=159)
    _, seconds = growth._measure(Job(2, 5, 4), curves, 1)
    assert set(seconds) == {"auto", GEMM}
    curves = Growth(Job(2, 5, 4), idiom_limit=40, exact_limit=160)
    _, seconds = growth._measure(Job(2, 5, 4), curves, 1)
    assert set(seconds) == {"auto", "exact", IDIOM, GEMM}


def test_numbers_of_the_plot(tmp_path: Path):
    point = Point("n", Job(2, 9, 5), "exact", {"auto": 0.5, GEMM: 0.25})
    write_csv([point], tmp_path / "a.csv")
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["seconds"] for row in rows] == ["0.5", "0.25"]
    assert [row["side"] for row in rows] == ["auto", GEMM]
    assert {row["n"] for row in rows} == {"9"}


@pytest.mark.slow
def test_speed_command_writes_its_report(tmp_path: Path):
    out = tmp_path / "folder" / "speed.md"
    assert main(["speed", "--quick", "--repeats", "1", "--out", str(out)]) == 0
    text = out.read_text()
    assert text.startswith("# Speed and memory\n")
    for word in (
        "### What must be reached",
        "peak memory",
        "### Expected UCB over contexts",
        "### The work behind it",
        "### Whole iterations",
        "### Growth",
        f"torch {torch.__version__}",
        *model_based_recipes(),
    ):
        assert word in text
    assert (tmp_path / "folder" / "speed_growth.png").stat().st_size > 10_000
    assert (tmp_path / "folder" / "speed_growth.csv").read_text().count("\n") > 20


@pytest.mark.slow
def test_the_iterations_of_all_recipes_have_a_report_of_their_own(tmp_path) -> None:
    out = tmp_path / "iterations.md"
    assert run_iteration_speed(out, repeats=1, quick=True) == 0
    text = out.read_text()
    assert "Tiny sizes" in text and "Asked for: at most 5 times `gp_ucb`" in text
    assert all(f"| {name} |" in text for name in model_based_recipes())


def test_part_of_the_rows_is_measured() -> None:
    few = Sizes().limited(1000, None)
    assert few == Sizes((("botorch", 1000), ("ensemble", 1000)), 0, ())
    one = Sizes().limited(None, "ensemble")
    assert one == Sizes((("ensemble", 1000),), Sizes.compared, Sizes.inducing)
    assert Sizes().limited(None, None) == Sizes()
