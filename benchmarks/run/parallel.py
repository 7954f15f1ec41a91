"""Tasks in the processes of this machine, or in those of a dask cluster.

One joblib loop serves both. A process that dies takes one task with it and no other:
the task is tried again as long as it gets further each time, and once more if it did
not; then its error is its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from joblib import Parallel, delayed, parallel_config
from joblib._dask import DaskDistributedBackend
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from benchmarks.run.config import ConfigError

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
LOCAL_CLUSTER = "local"


def in_parallel(
    tasks: Mapping[Key, Callable[[], Result]],
    *,
    workers: int,
    dask: str | None = None,
    reached: Callable[[Key], int] = lambda key: 0,
) -> Iterator[tuple[Key, Result | BaseException]]:
    """Do all tasks and yield each outcome as it comes.

    Args:
        tasks: What to do; picklable. They are begun in this order.
        workers: Processes; 1 for this one.
        dask: The address of a dask scheduler, or ``"local"`` for a cluster of
            ``workers`` (at least two) on this machine; None for plain processes.
        reached: How far a task has come that goes on where it was, if it died.

    Yields:
        A key, and what its task returned or raised. A task whose process died twice
        at the same place has the error that says so.

    Raises:
        ConfigError: ``workers`` is not positive, or no cluster of one-thread workers
            answers at ``dask``.
    """
    if workers < 1:
        raise ConfigError(f"`workers` must be at least 1, got {workers}.")
    todo = dict(tasks)
    before = {key: reached(key) for key in todo}

    def got_further(key: Key) -> bool:
        last, before[key] = before[key], reached(key)
        return before[key] > last

    with _backend(workers, dask):
        while todo:
            taken: list[Key] = []
            suspects: list[Key] = []
            try:
                for key, outcome in _round(todo, workers, taken):
                    if isinstance(outcome, _GivenUp):
                        suspects.append(key)
                    else:
                        del todo[key]
                        yield key, outcome
            except TerminatedWorkerError:
                # The pool is gone, and with it all that was taken and not handed over:
                # nothing tells what was done of it from what was being done.
                suspects += [key for key in taken if key in todo]
                _end_pool()
            # Which of them ended a process shows when each is tried alone. One that got
            # further is tried again beside the others.
            for key in dict.fromkeys(suspects):
                if got_further(key):
                    continue
                outcome = _alone(key, todo[key], workers)
                if not (isinstance(outcome, BaseException) and got_further(key)):
                    del todo[key]
                    yield key, outcome


def _alone(
    key: Hashable, task: Callable[[], Result], workers: int
) -> Result | BaseException:
    """Do one task while nothing else is done."""
    try:
        ((_, outcome),) = _round({key: task}, workers, [])
    except TerminatedWorkerError as error:
        _end_pool()
        return error
    return outcome.error if isinstance(outcome, _GivenUp) else outcome


def _end_pool() -> None:
    """Wait until a broken pool is gone: the next call could be given it otherwise."""
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _round(
    tasks: Mapping[Key, Callable[[], Result]], workers: int, taken: list[Key]
) -> Iterator[tuple[Key, Result | BaseException | _GivenUp]]:
    """One call of joblib; notes in ``taken`` what it took on."""

    def calls() -> Iterator[Any]:
        for key, task in list(tasks.items()):
            taken.append(key)
            yield delayed(_attempt)(key, task)

    # No more than the workers can do is taken ahead, and no two as one piece of work.
    parallel: Any = Parallel(
        n_jobs=workers,
        batch_size=cast(Any, 1),  # annotated as str
        pre_dispatch="n_jobs",
        return_as="generator_unordered",
        max_nbytes=None,
    )
    yield from parallel(calls())


def _attempt(
    key: Key, task: Callable[[], Result]
) -> tuple[Key, Result | BaseException]:
    """Do one task, in whichever process: an error is an outcome like another."""
    try:
        return key, task()
    except Exception as error:
        return key, error


@contextmanager
def _backend(workers: int, dask: str | None) -> Iterator[None]:
    if dask is None:
        with parallel_config("loky", inner_max_num_threads=1):
            yield
        return
    import dask.config as settings
    from distributed import Client, LocalCluster

    if dask == LOCAL_CLUSTER:
        # dask blames all tasks that wait at a worker which dies, so the retry is ours.
        # A scheduler elsewhere has its own setting.
        with (
            settings.set({"distributed.scheduler.allowed-failures": 0}),
            LocalCluster(
                n_workers=max(2, workers),
                threads_per_worker=1,
                dashboard_address=cast(Any, None),
            ) as cluster,
            Client(cluster) as client,
            parallel_config(_DaskBackend(client=client)),
        ):
            yield
        return
    try:
        client = Client(dask, timeout=10)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"No dask scheduler answers at {dask!r}: {error}. Start `dask scheduler` "
            "and `dask worker`, or give `--dask local`."
        ) from error
    with client:
        threads = cast(dict[str, int], client.nthreads())
        if not threads or set(threads.values()) != {1}:
            raise ConfigError(
                f"The workers at {dask} have threads {list(threads.values())}; there "
                "must be workers, and each must have one (`dask worker --nthreads 1`): "
                "torch's random numbers are of a process, not of a thread."
            )
        with parallel_config(_DaskBackend(client=client)):
            yield


@dataclass(frozen=True)
class _GivenUp:
    """What dask says of a task that it has given up, in place of an outcome."""

    error: BaseException


class _DaskBackend(DaskDistributedBackend):
    """joblib's own waits for ever for a task whose workers died: no callback tells.

    And while the cluster has one worker, the others having just died, it would run the
    tasks in this process, which a task that ends its process would end.
    """

    def effective_n_jobs(self, n_jobs: int) -> int:
        """At least two: with one, joblib does without the cluster."""
        return max(2, super().effective_n_jobs(n_jobs))

    def submit(self, func: Any, callback: Any = None) -> Any:
        """Submit a call of ``_attempt``, and call back if dask gives it up."""
        ((_, (key, _), _),) = func.items
        submitted = super().submit(func, callback)

        def tell(future: Future[Any]) -> None:
            if (error := future.exception()) is not None:
                callback([(key, _GivenUp(error))])

        submitted.add_done_callback(tell)
        return submitted
