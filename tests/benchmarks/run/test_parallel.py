"""Each task has its outcome, whatever happens to the process that does it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from benchmarks.run.config import ConfigError
from benchmarks.run.parallel import in_parallel


def work(number: int, attempts: Path) -> int:
    with (attempts / str(number)).open("a") as file:
        file.write("x")
    if number == 1:
        os._exit(3)
    if number == 2:
        raise ValueError("two")
    if number == 5 and (attempts / "5").stat().st_size == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * number


@pytest.mark.slow
@pytest.mark.parametrize("dask", [None, "local"])
def test_a_worker_that_dies_is_tried_again_once_and_the_others_go_on(
    dask: str | None, tmp_path: Path
):
    tasks = {number: partial(work, number, tmp_path) for number in range(8)}
    outcomes = dict(in_parallel(tasks, workers=2, dask=dask))
    assert {k: v for k, v in outcomes.items() if isinstance(v, int)} == {
        number: 10 * number for number in (0, 3, 4, 5, 6, 7)
    }
    assert set(outcomes) == set(tasks)
    assert isinstance(outcomes[1], BaseException)
    # Once where the end of another task broke the pool before this one had begun.
    assert (tmp_path / "1").read_text() in ("x", "xx")
    assert isinstance(outcomes[2], ValueError)


def climb(name: str, most: int, steps: Path) -> str:
    """One step further each time, up to `most`; the fifth is the last."""
    file = steps / name
    if height(steps, name) < most:
        with file.open("a") as open_file:
            open_file.write("x")
        if height(steps, name) < 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return name
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def height(steps: Path, name: str) -> int:
    return (steps / name).stat().st_size if (steps / name).exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("dask", [None, "local"])
def test_what_gets_further_each_time_is_tried_until_it_is_done(
    dask: str | None, tmp_path: Path
):
    tasks = {
        name: partial(climb, name, most, tmp_path)
        for name, most in {"whole": 5, "stuck": 2}.items()
    }
    reached = partial(height, tmp_path)
    outcomes = dict(in_parallel(tasks, workers=2, dask=dask, reached=reached))
    assert outcomes["whole"] == "whole"
    assert isinstance(outcomes["stuck"], BaseException)
    assert [height(tmp_path, name) for name in tasks] == [5, 2]


def begin_then_climb(steps: Path) -> str:
    """It dies once before its first step."""
    mark = steps / "begun"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return climb("late", 5, steps)


@pytest.mark.slow
@pytest.mark.parametrize("dask", [None, "local"])
def test_what_died_at_the_beginning_and_then_gets_further_is_done(
    dask: str | None, tmp_path: Path
):
    tasks = {"late": partial(begin_then_climb, tmp_path)}
    reached = partial(height, tmp_path)
    outcomes = dict(in_parallel(tasks, workers=2, dask=dask, reached=reached))
    assert outcomes == {"late": "late"}


@pytest.mark.slow
def test_a_cluster_of_one_worker_does_the_work_and_not_this_process():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        tasks = dict.fromkeys(range(3), os.getpid)
        address = cluster.scheduler_address
        outcomes = dict(in_parallel(tasks, workers=2, dask=address))
    assert len(outcomes) == 3 and os.getpid() not in outcomes.values()


def test_an_error_in_this_process_is_an_outcome():
    def fail() -> int:
        raise ValueError("no")

    outcomes = dict(in_parallel({"a": fail, "b": lambda: 1}, workers=1))
    assert isinstance(outcomes["a"], ValueError)
    assert outcomes["b"] == 1


@pytest.mark.parametrize("workers", [0, -1])
def test_refuses_no_workers(workers: int):
    with pytest.raises(ConfigError, match="workers"):
        dict(in_parallel({}, workers=workers))


def test_refuses_an_address_where_nothing_answers():
    with pytest.raises(ConfigError, match="scheduler"):
        dict(in_parallel({"a": int}, workers=1, dask="tcp:/no"))
