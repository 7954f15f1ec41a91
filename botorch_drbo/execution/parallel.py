"""One function of many arguments, in parallel; results in the order of completion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

from botorch_drbo.execution.attempt import Outcome, attempt
from botorch_drbo.execution.engine import Engine, Executor

Key = TypeVar("Key", bound=Hashable)
_AHEAD = 2  # calls submitted for each one that runs, so that no worker waits


def in_parallel(
    function: Callable[..., object],
    things: Mapping[Key, object],
    *,
    parallel: int,
    executor: Executor | None = None,
) -> Iterator[tuple[Key, Outcome]]:
    r"""Call a function with each of many things.

    Args:
        function: What is called.
        things: Its argument, by a key.
        parallel: How many calls are made at once; a single one without ``executor`` is
            made in this process, more of them in as many others.
        executor: Who makes them, or None.

    Yields:
        A key, and what came of its call, in the order in which they end.

    Raises:
        InputDataError: The function cannot be sent, or no worker ever answers.

    Example:
        >>> dict(in_parallel(len, {"a": "one", "b": "three"}, parallel=1))
        {'a': Returned(value=3), 'b': Returned(value=5)}
    """
    if executor is None and parallel == 1:
        for key, thing in things.items():
            yield key, attempt(function, (thing,))
        return
    waiting = iter(things.items())
    most = parallel if executor is None else _AHEAD * parallel
    left = len(things)
    with Engine[Key](function, executor) as engine:
        while left:
            while engine.num_running < min(most, left):
                engine.start(*next(waiting))
            engine.wait()
            for key in list(engine.ready):
                left -= 1
                yield key, engine.ready.pop(key)
